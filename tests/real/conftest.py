"""The project's own evaluation file, run once for all tests on real data, whichever process they are in."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from embeval.store.results import ResultStore, Stored
from tests.support.commands import Done, embeval
from tests.support.once import once

MODEL = "all-MiniLM-L6-v2"
TASKS = (
    "STSBenchmark STS12 STS14 STS15 STSBenchmarkMultilingualSTS-de STSBenchmarkMultilingualSTS-es "
    "STSBenchmarkMultilingualSTS-zh BIOSSES SciFact Cranfield ADI"
).split()
LEFT_OUT = ("CISI", "Vaswani")
"""Tasks of the file that would take two minutes more and show nothing else."""
LONGEST = (
    ("SciFact",),
    ("Cranfield",),
    ("STS12", "STS14", "STS15"),
    ("STSBenchmark", *(name for name in TASKS if "Multilingual" in name)),
)
"""Tasks whose texts are encoded before all else, the longest first; what is left, the file's own run encodes."""
ORDER = ("published", "mteb", "reranking", "boards", "precisions", "systems")
"""Files in the order in which they are begun: what is long first, and what waits for the file's run late."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the files here in order; within a file, and elsewhere, tests stay as they come."""
    here = [place for place, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    for place, item in zip(here, sorted((items[place] for place in here), key=_place), strict=True):
        items[place] = item


def _place(item: pytest.Item) -> int:
    name = item.path.stem.removeprefix("test_")
    return ORDER.index(name) if name in ORDER else len(ORDER)


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run of pytest share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "real"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True, scope="session")
def own_cache(common: Path) -> Path:
    """One cache for all of them."""
    folder = common / "cache"
    os.environ["XDG_CACHE_HOME"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def encoded(common: Path, own_cache: Path, real_data: Path) -> None:
    """The texts of the longest tasks are in the cache, each encoded in one process, and in several at once.

    Nobody asks for them before: two processes that encode a text at the same time differ in its last digits.
    """

    def run(tasks: tuple[str, ...]) -> str:
        words = [word for task in tasks for word in ("-t", task)]
        folder = ("--results", "-".join(tasks), "--resamples", "0", "--data", str(real_data))
        done = embeval("run", "-m", "demo", *words, *folder, cwd=common, timeout=2700, model=True)
        assert done.code == 0, done.err
        return ""

    for wait in (False, True):
        for tasks in LONGEST:
            once(common / f"encoded-{tasks[0]}", lambda tasks=tasks: run(tasks), wait=wait)  # type: ignore[misc]


@pytest.fixture(scope="session")
def folder(common: Path, real_data: Path, repository: Path) -> Path:
    """A folder with the project's own evaluation file as its embeval.yaml."""
    folder = common / "public"

    def write() -> str:
        folder.mkdir()
        public = (repository / "leaderboards" / "public.yaml").read_text(encoding="utf-8")
        kept = [line for line in public.splitlines() if line.strip("- ") not in LEFT_OUT]
        (folder / "embeval.yaml").write_text("\n".join([*kept, f"data: {real_data}", ""]), encoding="utf-8")
        return ""

    once(common / "written", write)
    return folder


@pytest.fixture(scope="session")
def run(folder: Path, encoded: None, common: Path) -> Done:
    """``embeval run`` on that file."""

    def work() -> str:
        return json.dumps(asdict(embeval("run", cwd=folder, timeout=2700, model=True)))

    told = once(common / "run.json", work)
    assert told is not None
    return Done(**json.loads(told))


@pytest.fixture(scope="session")
def results(run: Done, folder: Path) -> Mapping[str, Stored]:
    """Task -> stored result of the model for the whole split."""
    assert run.code == 0, run.err
    found = ResultStore(folder / "results").find(model=MODEL, subset="all", status="ok")
    by_task = {each.result.task.name: each for each in found}
    assert set(by_task) == set(TASKS)
    return by_task
