"""What starting costs: which libraries are loaded, and how long a help text takes."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
import typer

from embeval.cli.main import VERBS
from tests.support.commands import command, embeval, environment, fresh

HEAVY = {
    *("torch", "transformers", "sentence_transformers", "datasets", "mteb", "pandas", "scipy", "numpy", "pydantic"),
    *("faiss", "pyarrow"),
}
HELP_WITHIN_S = 0.6
STARTS = 5


def words_of_every_verb() -> list[str]:
    """The overview, each verb, and each verb below a verb."""
    found = [""]
    for verb in VERBS:
        made = typer.main.get_command(import_module(f"embeval.cli.{verb}").app)
        found += [verb, *(f"{verb} {name}" for name in getattr(made, "commands", {}))]
    return found


EVERY_VERB = words_of_every_verb()


def loaded_by(arguments: list[str], folder: Path, code: int = 0) -> set[str]:
    """The top-level packages that a Python process imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr[-2000:]
    names = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", done.stderr, re.MULTILINE)
    assert len(names) > 20
    return {name.split(".")[0] for name in names}


def test_importing_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    """``import embeval`` is names only."""
    assert loaded_by(["-c", "import embeval"], tmp_path) & HEAVY == set()


def test_importing_the_verbs_loads_nothing_heavy(tmp_path: Path) -> None:
    """Every file of the command line, and the façade that they call."""
    lines = "\n".join(f"import embeval.cli.{verb}" for verb in VERBS)
    assert loaded_by(["-c", f"import embeval.api\n{lines}"], tmp_path) & HEAVY == set()


@pytest.mark.parametrize("words", EVERY_VERB)
def test_help_loads_nothing_heavy(tmp_path: Path, words: str) -> None:
    """None of the libraries; but for pydantic, which typer itself loads for any verb with an option that is no flag."""
    allowed = {"pydantic"} if words else set()
    assert loaded_by(command(*words.split(), "--help")[1:], tmp_path) & HEAVY <= allowed


def test_listing_the_tasks_loads_no_model_library(tmp_path: Path) -> None:
    """The catalogue is data."""
    loaded = loaded_by(command("tasks", "list")[1:], tmp_path)
    assert loaded & {"torch", "transformers", "sentence_transformers", "datasets", "mteb", "faiss"} == set()


def test_a_finished_run_loads_no_torch(tmp_path: Path) -> None:
    """Looking at finished results needs no model library, whichever model they are of."""
    words = ("run", "--model", "hashing", "--task", "demo-pairs", "--task", "demo-docs", "--resamples", "100")
    assert embeval(*words, cwd=tmp_path).code == 0
    loaded = loaded_by(command(*words)[1:], tmp_path)
    assert "embeval" in loaded
    assert loaded & {"torch", "transformers", "sentence_transformers", "datasets", "mteb", "faiss"} == set()


@pytest.mark.timing
@pytest.mark.parametrize("words", EVERY_VERB)
def test_help_is_there_at_once(tmp_path: Path, words: str) -> None:
    """The median of five starts stays under 0.6 s, which is sure once three of them did."""
    seconds: list[float] = []
    while len(seconds) < STARTS and sum(each < HELP_WITHIN_S for each in seconds) <= STARTS // 2:
        began = time.perf_counter()
        done = fresh(*words.split(), "--help", cwd=tmp_path)
        seconds.append(time.perf_counter() - began)
        assert done.code == 0
    assert sum(each < HELP_WITHIN_S for each in seconds) > STARTS // 2, seconds
