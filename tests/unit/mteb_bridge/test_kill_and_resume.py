"""Runs of mteb's tasks that are killed, resumed, or made in another order: the same digits, and nothing twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from embeval.core import strict_json
from embeval.core.result import without_timings
from embeval.store.results import ResultStore
from tests.support.data import write_jsonl
from tests.support.killing import Done, Server, Wanted, server, vectors_kept
from tests.support.mocks import sentence

TASKS = ("STS12", "Banking77Classification")
KILLS = 10


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random rows under the names of two tasks."""
    folder = tmp_path_factory.mktemp("mirror")
    dice = random.Random(0)  # noqa: S311 - data for tests, no secret

    def long() -> str:
        return f"{sentence(dice)} {sentence(dice)}"

    pairs = [{"sentence1": long(), "sentence2": long(), "score": round(5 * dice.random(), 2)} for _ in range(100)]
    write_jsonl(folder / "STS12" / "test.jsonl", pairs)
    for split in ("train", "test"):
        rows = [{"text": long(), "label": row % 3} for row in range(60)]
        write_jsonl(folder / "Banking77Classification" / f"{split}.jsonl", rows)
    return folder


@pytest.fixture(scope="module")
def runs(repository: Path) -> Iterator[Server]:
    """Where runs are forked from."""
    with server(repository) as started:
        yield started


@pytest.fixture
def wanted(mirror: Path, tiny_model: Path, tmp_path: Path) -> Wanted:
    """Both tasks, with a cache and results of their own."""
    return Wanted(
        model=str(tiny_model),
        mirror=str(mirror),
        tasks=TASKS,
        results=str(tmp_path / "results"),
        cache=str(tmp_path / "cache"),
    )


def contents(root: str) -> dict[str, bytes]:
    """Every file but temporary ones; results without their timings."""
    found = {}
    for path in sorted(Path(root).rglob("*")):
        if path.is_file() and path.suffix != ".tmp":
            raw = path.read_bytes()
            if path.suffix == ".json":
                raw = strict_json.dumps(without_timings(strict_json.loads(raw))).encode()
            found[path.relative_to(root).as_posix()] = raw
    return found


def finished(root: str) -> set[str]:
    """Tasks whose result for the whole split is there, with its items."""
    store = ResultStore(Path(root))
    found = list(store.find(subset="all"))
    for stored in found:
        assert stored.result.status == "ok"
        store.records(stored)
    return {stored.result.task.name.removeprefix("mteb:") for stored in found}


def encoded(done: Done) -> int:
    """Texts that went through the model."""
    return sum(texts for _, _, texts in done.steps)


def test_either_order_and_alone(runs: Server, wanted: Wanted) -> None:
    """Both, both in the other order, and each in a run of its own with a cache of its own: files equal to the byte."""
    other = replace(wanted, tasks=TASKS[::-1], results=f"{wanted.results}-other", cache=f"{wanted.cache}-other")
    runs.run(wanted)
    runs.run(other)
    for task in TASKS:
        runs.run(replace(wanted, tasks=(task,), results=f"{wanted.results}-alone", cache=f"{wanted.cache}-{task}"))
    expected = contents(wanted.results)
    assert finished(wanted.results) == set(TASKS)
    assert contents(other.results) == expected
    assert contents(f"{wanted.results}-alone") == expected


def test_killed_at_ten_moments_and_resumed(runs: Server, wanted: Wanted) -> None:
    """What was kept of vectors isn't made again, finished tasks are skipped, and every file is as of a whole run."""
    whole = runs.run(wanted)
    expected, n_texts = contents(wanted.results), vectors_kept(Path(wanted.cache))
    assert encoded(whole) == n_texts > 300
    dice = random.Random()  # noqa: S311 - moments, no secret
    kept = []
    for number in range(KILLS):
        killed = replace(
            wanted,
            results=f"{wanted.results}-{number}",
            cache=f"{wanted.cache}-{number}",
            kill_after=whole.seconds * (number + dice.random()) / KILLS,
        )
        runs.run(killed)
        done_before = finished(killed.results)
        kept.append(vectors_kept(Path(killed.cache)))
        resumed = runs.run(replace(killed, kill_after=None))
        assert {task.removeprefix("mteb:") for task, status, _ in resumed.steps if status == "skipped"} == done_before
        assert encoded(resumed) == n_texts - kept[-1], killed.kill_after
        assert contents(killed.results) == expected, killed.kill_after
    assert kept[0] == 0 < kept[-1], kept
