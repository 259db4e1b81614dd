"""The processes that these tests fork for a command are what a user's are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.commands import embeval, environment, fresh
from tests.support.forking import Server


@pytest.mark.parametrize(
    ("words", "env"),
    [
        ("--version", {}),
        ("nope", {}),
        ("tasks show demo-docs --json", {}),
        ("leaderboard show", {"EMBEVAL_RESULTS": "none"}),
        ("models show hashing", {"EMBEVAL_JSON": "1"}),
        ("run -m hashing -t demo-pairs --resamples 5 --debug", {}),
        ("", {"_EMBEVAL_COMPLETE": "complete_bash", "COMP_WORDS": "embeval r", "COMP_CWORD": "1"}),
    ],
)
def test_a_forked_command_is_what_a_fresh_one_is(tmp_path: Path, words: str, env: dict[str, str]) -> None:
    """Exit code and both streams, to the letter; tracebacks but for the lines that start the program."""
    forked, started = (each(*words.split(), cwd=tmp_path, env=env) for each in (embeval, fresh))
    assert (forked.code, forked.out) == (started.code, started.out)
    assert forked.err.splitlines()[-1:] == started.err.splitlines()[-1:]
    assert ("Traceback" in forked.err) == ("Traceback" in started.err) == ("--debug" in words)
    assert forked.out or forked.err


def test_only_an_environment_that_imports_do_not_see_is_taken() -> None:
    """Others get an interpreter of their own."""
    server = Server(environment())
    try:
        assert server.fits(environment({"EMBEVAL_SEED": "1", "XDG_CACHE_HOME": "/elsewhere", "COLUMNS": "80"}))
        for name in ("HF_ENDPOINT", "PYTHONIOENCODING", "OMP_NUM_THREADS", "LC_ALL"):
            assert not server.fits(environment({name: "1"})), name
        with pytest.raises(subprocess.TimeoutExpired):
            server(("models", "show", "hashing"), Path.cwd(), environment(), 0.01)
    finally:
        server.close()
