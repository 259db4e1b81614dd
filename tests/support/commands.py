"""The command line as users meet it: a process of its own, or, where the process isn't the point, this one."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from embeval.cli import _state, main
from tests.support import forking


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON value."""
        return json.loads(self.out)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a user without settings and without a hub."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EMBEVAL_", "PYTEST_"))}
    # Without the row of BM25, which would stand in every table; tests/cli/test_baseline.py has it.
    ours = {"HF_HUB_OFFLINE": "1", "COLUMNS": "160", "TERM": "dumb", "EMBEVAL_BM25": "false"}
    return {**kept, **ours, **(extra or {})}


def command(*words: str) -> list[str]:
    """``embeval`` with the interpreter of these tests."""
    return [sys.executable, "-m", "embeval", *words]


@functools.cache
def _server(modules: tuple[str, ...]) -> forking.Server:
    return forking.Server(environment(), modules)


def embeval(
    *words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 300, model: bool = False
) -> Done:
    """Runs ``embeval`` in a process of its own and waits for it; where nothing speaks against it, a forked one.

    ``model``: it is one of several commands that run a model in torch, which is imported for all of them then.
    """
    wanted = environment(env)
    server = _server((*forking.IMPORTED, *forking.MODELS) if model else forking.IMPORTED)
    if not server.fits(wanted):
        return fresh(*words, cwd=cwd, env=env, timeout=timeout)
    return Done(*server(words, cwd, wanted, timeout))


def fresh(*words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 300) -> Done:
    """Runs ``embeval`` in an interpreter that starts for it, and waits."""
    done = subprocess.run(
        command(*words), cwd=cwd, env=environment(env), capture_output=True, text=True, timeout=timeout, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def here(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> Done:
    """What ``embeval`` comes to in this process, which saves the start of one.

    Streams, folder, environment and the settings of a command are its own; what is imported is not.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, environment(env), clear=True),
        mock.patch.object(sys, "argv", ["embeval", *words]),
        mock.patch.object(_state, "settings", _state.Settings()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main._run()
    return Done(int(code), *(stream.buffer.getvalue().decode() for stream in (out, err)))


def serve() -> None:
    """For a Python of its own that is asked for many commands: a list of words a line, as JSON; answers likewise."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(asdict(here(*json.loads(line), cwd=Path.cwd()))) + "\n")
        sys.stdout.flush()
