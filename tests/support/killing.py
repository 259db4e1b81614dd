"""Runs that are killed: forked from a process that has imported everything, so that each is short.

``python -m tests.support.killing MODULE…`` reads one ``Wanted`` a line, as JSON, and answers with one ``Done`` a line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions
from embeval.encoders.cache import VectorCache, upkeep
from embeval.encoders.locate import cache_folder
from embeval.mteb_bridge import door
from embeval.runner import local
from embeval.store.results import ResultStore
from embeval.workflows import requests
from tests.support import forking
from tests.support.commands import environment
from tests.support.mirror import bound

FEW = StatisticsOptions(resamples=100)
LIBRARY = ("sentence_transformers", "sklearn.linear_model", "mteb")
"""What runs of mteb's tasks import."""


@dataclass(frozen=True)
class Wanted:
    """A run."""

    model: str
    mirror: str
    tasks: Sequence[str]
    """Names of mteb's tasks, whose data lies in ``mirror``; without one, tasks as ``embeval run -t`` takes them."""
    results: str
    cache: str
    """Folder of vectors."""
    kill_after: float | None = None
    """CPU seconds after which it is killed: on a busy machine the same moment of the run."""


@dataclass(frozen=True)
class Done:
    """What it came to."""

    seconds: float
    """CPU seconds."""
    steps: Sequence[tuple[str, str, int]] = ()
    """Task, status, and texts that went through the model; none of a run that was killed."""


class Server:
    """The process that runs are forked from."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, wanted: Wanted) -> Done:
        """Runs, and waits for the end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asdict(wanted)), file=self._process.stdin, flush=True)
        found = json.loads(self._process.stdout.readline())
        return Done(found["seconds"], tuple(tuple(step) for step in found["steps"]))


@contextmanager
def server(repository: Path, modules: Sequence[str] = LIBRARY) -> Iterator[Server]:
    """A server that has imported these for all that are forked, ended afterwards."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.killing", *modules],
        cwd=repository,
        env=environment({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Server(process)
        assert process.stdin is not None
        process.stdin.close()


def vectors_kept(cache: Path) -> int:
    """Vectors in the cache below a folder."""
    kept = VectorCache(cache / "vectors")
    try:
        return sum(shelf.n_vectors for shelf in upkeep.stats(kept).shelves) if kept.folder.is_dir() else 0
    finally:
        kept.close()


def _main() -> None:
    for name in sys.argv[1:]:
        door.library() if name == "mteb" else import_module(name)
    forking.warm()
    for line in sys.stdin:
        wanted = Wanted(**json.loads(line))
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _run(wanted, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            said = file.read()
        _, _, used = os.wait4(child, 0)
        steps = json.loads(said) if said else []
        sys.stdout.write(json.dumps({"seconds": used.ru_utime + used.ru_stime, "steps": steps}) + "\n")
        sys.stdout.flush()


def _run(wanted: Wanted, writer: int) -> NoReturn:
    """The forked process: never comes back."""
    os.environ["EMBEVAL_CACHE"] = wanted.cache
    if wanted.kill_after is not None:
        signal.setitimer(signal.ITIMER_PROF, wanted.kill_after)  # its signal ends a process at once, as a kill does
    assert cache_folder() == Path(wanted.cache)
    store = ResultStore(Path(wanted.results))
    tasks = [
        bound(task, Path(wanted.mirror)) if wanted.mirror else requests.parse_task(task, root=Path.cwd(), data=None)
        for task in wanted.tasks
    ]
    steps = []
    options = local.RunOptions(runtime=RuntimeOptions(num_threads=1), statistics=FEW)
    for outcome in local.run([ModelSpec(name=wanted.model)], tasks, store, options):
        timings = outcome.result.timings if outcome.result else None
        encoded = timings.texts_encoded or 0 if timings and outcome.status == "done" else 0
        steps.append((outcome.step.task.name, outcome.status, encoded))
        if outcome.error is not None:
            sys.stderr.write(f"{outcome.error}\n")
    os.write(writer, json.dumps(steps).encode())
    os._exit(0)


if __name__ == "__main__":
    _main()
