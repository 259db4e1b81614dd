"""The project's own evaluation file, run once for all tests on real data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from embeval.store.results import ResultStore, Stored
from tests.support.commands import Done, embeval

MODEL = "all-MiniLM-L6-v2"
TASKS = (
    "STSBenchmark STS12 STS14 STS15 STSBenchmarkMultilingualSTS-de STSBenchmarkMultilingualSTS-es "
    "STSBenchmarkMultilingualSTS-zh BIOSSES SciFact Cranfield ADI"
).split()
LEFT_OUT = ("CISI", "Vaswani")
"""Tasks of the file that would take two minutes more and show nothing else."""


@pytest.fixture(scope="session")
def folder(real_data: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the project's own evaluation file as its embeval.yaml."""
    folder = tmp_path_factory.mktemp("real")
    public = (repository / "leaderboards" / "public.yaml").read_text(encoding="utf-8")
    kept = [line for line in public.splitlines() if line.strip("- ") not in LEFT_OUT]
    (folder / "embeval.yaml").write_text("\n".join([*kept, f"data: {real_data}", ""]), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def run(folder: Path) -> Done:
    """``embeval run`` on that file."""
    return embeval("run", cwd=folder, timeout=2700, model=True)


@pytest.fixture(scope="session")
def results(run: Done, folder: Path) -> Mapping[str, Stored]:
    """Task -> stored result of the model for the whole split."""
    assert run.code == 0, run.err
    found = ResultStore(folder / "results").find(model=MODEL, subset="all", status="ok")
    by_task = {each.result.task.name: each for each in found}
    assert set(by_task) == set(TASKS)
    return by_task
