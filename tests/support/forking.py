"""``python -m embeval`` as a process of its own that begins with its imports done.

Most of what a short command takes is importing. A server imports once what most commands need, and forks for each:
the child has streams, a folder, an environment and an end of its own, as the command of a user has. What is not kept
is what happens while modules are imported; tests of that start an interpreter (``commands.fresh``).
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import random
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TextIO

IMPORTED = (
    *("numpy", "scipy.stats", "pandas", "pyarrow.parquet", "pydantic", "yaml", "rich.table", "rich.progress", "lmdb"),
    *("embeval.cli.run", "embeval.cli.leaderboard", "embeval.cli.results", "embeval.cli.models", "embeval.cli.tasks"),
    *("embeval.cli.data", "embeval.cli.score", "embeval.cli.search", "embeval.cli.cache", "embeval.cli.doctor"),
    *(
        "embeval.cli._tables",
        "embeval.cli._progress",
        "embeval.cli.main",
        "embeval.api",
        "embeval.runner.local",
        "embeval.workflows.samples",
        "embeval.workflows.mteb_entries",
    ),
    *("embeval.encoders.backends.hashing", "embeval.tasks.retrieval", "embeval.tasks.sts"),
    *("embeval.retrieval.indexes.exact", "embeval.workflows.config", "pyarrow.pandas_compat", "pydantic.json_schema"),
)
"""Modules that no variable of the environment changes, and that start no thread."""
MODELS = ("torch", "sentence_transformers")
"""What running a model in torch imports besides."""
OWN = ("EMBEVAL_", "_EMBEVAL_", "COMP_", "COLUMNS", "TERM", "XDG_CACHE_HOME", "PYTEST_")
"""Variables that are read when a command runs, not when a module is imported."""


class Server:
    """A process that forks. It ends with this one."""

    def __init__(self, environment: Mapping[str, str], modules: tuple[str, ...] = IMPORTED) -> None:
        self.environment = _fixed(environment)
        self.folder = Path(tempfile.mkdtemp(prefix="embeval-tests-"))
        asked, ask = os.pipe()
        told, tell = os.pipe()
        code = f"from tests.support import forking; forking.serve({asked}, {tell}, {modules!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(asked, tell),
        )
        os.close(asked)
        os.close(tell)
        self.ask, self.told = os.fdopen(ask, "w"), os.fdopen(told)
        atexit.register(self.close)

    def close(self) -> None:
        """Ends it."""
        atexit.unregister(self.close)
        self.ask.close()
        self.told.close()
        self.process.wait()
        shutil.rmtree(self.folder)

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether modules are imported alike in that environment."""
        return self.process.poll() is None and _fixed(environment) == self.environment

    def __call__(
        self, words: tuple[str, ...], cwd: Path, environment: Mapping[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """(exit code, standard output, standard error) of a command."""
        files = [self.folder / name for name in ("out", "err")]
        request = [words, str(cwd), dict(environment), [str(file) for file in files], timeout]
        self.ask.write(json.dumps(request) + "\n")
        self.ask.flush()
        code = int(self.told.readline())
        if code == -signal.SIGALRM:
            raise subprocess.TimeoutExpired(words, timeout)
        out, err = (file.read_text(encoding="utf-8") for file in files)
        return code, out, err


def _fixed(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(OWN)}


def serve(asked: int, tell: int, modules: tuple[str, ...]) -> None:
    """Answers requests until there are no more; in a child, runs the command and never returns."""
    for name in modules:
        import_module(name)
    warm()
    gc.freeze()
    requests, answers = os.fdopen(asked), os.fdopen(tell, "w")
    for line in iter(requests.readline, ""):
        child = os.fork()
        if child == 0:
            os.close(asked)
            os.close(tell)
            _become(*json.loads(line))
        _, status = os.waitpid(child, 0)
        _answer(answers, os.waitstatus_to_exitcode(status))


def warm() -> None:
    """Reads what nearly every command reads: the forms of records, and the model that tells languages."""
    from embeval.core import border
    from embeval.core.result import Result
    from embeval.core.specs import ModelSpec, TaskSpec
    from embeval.data.language import language_of

    for record in (Result, ModelSpec, TaskSpec):
        with contextlib.suppress(border.BorderError):
            border.load(record, {})
    language_of("Which language is this?")


def _answer(answers: TextIO, code: int) -> None:
    answers.write(f"{code}\n")
    answers.flush()


def _become(words: list[str], cwd: str, environment: dict[str, str], files: list[str], timeout: float) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(files, start=1):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, number)
        os.close(opened)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    random.seed()
    sys.argv = ["embeval", *words]
    runpy.run_module("embeval", run_name="__main__", alter_sys=True)
    sys.exit(0)
