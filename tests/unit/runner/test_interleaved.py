"""Systems that are timed in turns once all are evaluated: what is replaced, what stays, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.compare import evidence, facts
from embeval.compare.pairs import pair
from embeval.core.protocols import Task
from embeval.core.result import Result
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.encoders import loading
from embeval.errors import EvaluationError, EvidenceError, UsageError
from embeval.retrieval import latency
from embeval.runner import interleaved, local
from embeval.runner.local import Outcome, RunOptions
from embeval.store.results import ResultStore, Stored
from embeval.tasks import TASK_TYPES
from tests.support.data import write_beir, write_jsonl

HASHING = ModelSpec(name="hashing", backend="hashing")
SMALL = ModelSpec(name="small", backend="hashing", args={"dim": 16})
BM25 = ModelSpec(name="bm25", backend="bm25")
FEW = RunOptions(statistics=StatisticsOptions(resamples=100))
TURNS = ("latency_ms", "encode_latency_ms", "search_latency_ms", "queries_per_s")


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """An empty store."""
    return ResultStore(tmp_path / "results")


@pytest.fixture
def golden(tmp_path: Path) -> Task[Any]:
    """Retrieval over four documents; three of four queries are timed."""
    write_beir(
        tmp_path / "golden",
        corpus={"d1": "restore a backup", "d2": "rotate the keys", "d3": "rotate the logs", "d4": "zebra quagga"},
        queries={"q1": "restore a backup", "q2": "rotate the keys", "q3": "the logs", "q4": "zebra"},
        qrels={"q1": {"d1": 1}, "q2": {"d2": 1}, "q3": {"d3": 1}, "q4": {"d4": 1}},
    )
    return retrieval(tmp_path, latency=3)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Times that are known: the system at place p takes 10 p + 1, 2, 3 ms for its queries, twice that when alone.

    The list says how many systems each measurement was of.
    """
    measured: list[int] = []

    def times(systems: Sequence[Sequence[latency.Stage]], queries: Sequence[str], **_: Any) -> list[latency.Latencies]:
        measured.append(len(systems))
        scale = 2.0 if len(systems) == 1 else 1.0
        return [
            latency.Latencies(
                stage_ms={name: scale * (10.0 * place + np.arange(1.0, 1 + len(queries))) for name, _ in stages},
                total_ms=scale * (10.0 * place + np.arange(1.0, 1 + len(queries))),
                cold_ms={name: 77.0 for name, _ in stages},
                warmup=0,
                repeats=1,
            )
            for place, stages in enumerate(systems)
        ]

    def per_s(batches: Sequence[Any], queries: Sequence[str], **_: Any) -> list[float]:
        return [(50.0 if len(batches) == 1 else 100.0) * (1 + place) for place, _ in enumerate(batches)]

    monkeypatch.setattr(latency, "measure_in_turns", times)
    monkeypatch.setattr(latency, "throughput_in_turns", per_s)
    return measured


def retrieval(folder: Path, **options: Any) -> Task[Any]:
    """The task of ``golden`` in a folder."""
    spec = TaskSpec(name="golden", type="retrieval", dataset=DatasetRef(path="golden"), options=options)
    return TASK_TYPES.get("retrieval").bind(spec, root=folder)


def run(
    store: ResultStore, tasks: Sequence[Task[Any]], models: Sequence[ModelSpec] = (HASHING, SMALL), **options: Any
) -> list[Outcome]:
    """Every outcome of a run in turns."""
    return list(interleaved.run(models, tasks, store, replace(FEW, **options)))


def statuses(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """(model, status) of each."""
    return [(outcome.step.model.name, outcome.status) for outcome in outcomes]


def there(store: ResultStore) -> dict[str, Stored]:
    """Model -> its stored result."""
    return {each.result.model.name: each for each in store.find()}


def session(result: Result) -> str | None:
    """The measurement that its times come from."""
    assert result.timings is not None
    return result.timings.session


def files(store: ResultStore) -> dict[Path, bytes]:
    """Every result file by its bytes."""
    return {path: path.read_bytes() for path in store.root.rglob("*.json")}


def fails(monkeypatch: pytest.MonkeyPatch, *names: str, error: Callable[[], BaseException]) -> None:
    """Models of those names can't be loaded without a cache, which is how they are loaded to be timed."""
    real, seen = loading.load_system, list[str]()

    def load(located: Any, runtime: Any = None, *cache: Any) -> Any:
        if located.spec.name in names and not cache:
            seen.append(located.spec.name)
            if seen.count(located.spec.name) > 1:  # the first time it is timed alone
                raise error()
        return real(located, runtime, *cache)

    monkeypatch.setattr(loading, "load_system", load)


def test_times_in_turns_replace_those_alone(
    store: ResultStore, golden: Task[Any], by_hand: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One session for all, the values by hand, and all else as it was measured alone, a named tokenizer too."""
    collect = type(golden).collect
    monkeypatch.setattr(type(golden), "collect", lambda *given: replace(collect(*given), tokenizer="aa"))
    list(local.run([HASHING, SMALL], [golden], store, FEW))
    alone = {name: (each.result, store.records(each)) for name, each in there(store).items()}
    outcomes = run(store, [golden])
    assert statuses(outcomes) == [
        ("hashing", "skipped"),
        ("small", "skipped"),
        ("hashing", "timed"),
        ("small", "timed"),
    ]
    assert by_hand == [1, 1, 2]
    found = there(store)
    assert {session(each.result) for each in found.values()} == {session(outcomes[2].stored[-1].result)}
    assert None not in {session(each.result) for each in found.values()}
    for place, name in enumerate(("hashing", "small")):
        result, records = found[name].result, store.records(found[name])
        times = [10.0 * place + 1, 10.0 * place + 2, 10.0 * place + 3]
        assert records.columns["latency_ms"][:3].tolist() == times
        assert np.isnan(records.columns["latency_ms"][3])
        assert result.scores["latency_p50_ms"].value == times[1]
        assert result.scores["search_latency_p95_ms"].value == pytest.approx(times[1] + 0.9)
        assert result.scores["latency_p50_ms"].n_items == 3
        assert result.scores["queries_per_s"].value == 100.0 * (1 + place)
        before, rows = alone[name]
        assert before.scores["latency_p50_ms"].value == 4.0
        assert session(before) is None
        for column, values in rows.columns.items():
            same = np.array_equal(values, records.columns[column], equal_nan=True)
            assert same is (column not in TURNS), column
        assert replace(before, timings=None, scores={}, items=None) == replace(
            result, timings=None, scores={}, items=None
        )


def test_what_was_timed_together_is_finished(store: ResultStore, golden: Task[Any], by_hand: list[int]) -> None:
    """The same command does nothing again; a plain run keeps the session; a third model is timed with the others."""
    first = run(store, [golden])
    assert [status for _, status in statuses(first)] == ["done", "done", "timed", "timed"]
    before = files(store)
    assert [status for _, status in statuses(run(store, [golden]))] == ["skipped", "skipped"]
    assert [each.status for each in local.run([SMALL, HASHING], [golden], store, FEW)] == ["skipped", "skipped"]
    assert files(store) == before
    assert by_hand == [1, 1, 2]

    third = run(store, [golden], [HASHING, SMALL, BM25])
    assert [status for _, status in statuses(third)] == ["skipped", "skipped", "done", "timed", "timed", "timed"]
    (now,) = {session(each.result) for each in there(store).values()}
    assert now not in (None, session(first[-1].stored[-1].result))
    assert by_hand == [1, 1, 2, 1, 3]


def test_a_run_alone_leaves_the_session(store: ResultStore, golden: Task[Any], by_hand: list[int]) -> None:
    """Its times are no longer those of the session, so the two can't be compared until both are timed again."""
    run(store, [golden])
    list(local.run([SMALL], [golden], store, replace(FEW, overwrite=True)))
    found = there(store)
    assert session(found["small"].result) is None
    with pytest.raises(EvidenceError, match=r"small .*timed alone"):
        facts.refuse_unless_together(found["hashing"].result, found["small"].result, "latency_p95_ms")
    assert [status for _, status in statuses(run(store, [golden]))] == ["skipped", "skipped", "timed", "timed"]
    found = there(store)
    facts.refuse_unless_together(found["hashing"].result, found["small"].result, "latency_p95_ms")


def test_they_can_be_compared(store: ResultStore, golden: Task[Any], by_hand: list[int]) -> None:
    """Scores follow from the items, and the difference is 10 ms for each query: no resample gives another."""
    run(store, [golden])
    sides = [evidence.gather(store, there(store)[name]) for name in ("hashing", "small")]
    compared = pair(sides[0], sides[1], FEW.statistics).compared(["latency_p50_ms"])["latency_p50_ms"]
    contrast = compared.contrast()
    assert contrast.estimate == 10.0
    assert (contrast.lower(0.025), contrast.upper(0.025)) == (10.0, 10.0)


def test_results_of_sub_sets_follow(store: ResultStore, golden: Task[Any], by_hand: list[int], tmp_path: Path) -> None:
    """Each has the times of its own queries, and the session."""
    queries = [
        {"_id": f"q{n}", "text": text, "subset": "ab"[n % 2]}
        for n, text in enumerate(["restore a backup", "rotate the keys", "the logs", "zebra"], start=1)
    ]
    write_jsonl(tmp_path / "golden" / "queries.jsonl", queries)
    run(store, [golden], [HASHING, SMALL])
    found = {
        each.result.subset: each.result for each in store.find(model="small") if each.result.subset in ("a", "b", "all")
    }
    assert {name: each.scores["latency_p50_ms"].value for name, each in found.items()} == {
        "a": 12.0,  # q2
        "b": 12.0,  # q1 and q3: 11 and 13
        "all": 12.0,
    }
    assert len({session(each.result) for each in store.find()} - {None}) == 1
    assert {each.result.subset for each in store.find()} == {"a", "b", "mean", "wmean", "all"}


def test_a_failing_system_is_told_and_the_others_are_timed(
    store: ResultStore, golden: Task[Any], by_hand: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its result stays as it was measured alone."""
    fails(monkeypatch, "small", error=lambda: MemoryError())
    outcomes = run(store, [golden], [HASHING, SMALL, BM25])
    assert statuses(outcomes)[3:] == [("small", "failed"), ("hashing", "timed"), ("bm25", "timed")]
    assert isinstance(outcomes[3].error, EvaluationError)
    assert "Out of memory" in str(outcomes[3].error)
    found = there(store)
    assert session(found["small"].result) is None
    assert found["small"].result.scores["latency_p50_ms"].value == 4.0
    assert session(found["hashing"].result) == session(found["bm25"].result) is not None
    assert all(each.result.status == "ok" for each in found.values())


def test_the_last_one_has_nobody_to_take_turns_with(
    store: ResultStore, golden: Task[Any], by_hand: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told for it too, and nothing is measured."""
    fails(monkeypatch, "small", error=lambda: ValueError("broken"))
    outcomes = run(store, [golden])
    assert statuses(outcomes)[2:] == [("small", "failed"), ("hashing", "failed")]
    assert [str(each.error) for each in outcomes[2:]] == ["broken", "Nothing to take turns with on golden."]
    assert by_hand == [1, 1]
    assert {session(each.result) for each in there(store).values()} == {None}


@pytest.mark.parametrize("error", [RuntimeError("mid-way"), KeyboardInterrupt()])
def test_what_breaks_in_the_middle_leaves_results_whole(
    store: ResultStore,
    golden: Task[Any],
    by_hand: list[int],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    """Every byte is what it was, whether a system fails or the user has had enough."""
    list(local.run([HASHING, SMALL], [golden], store, FEW))
    before = files(store)

    def broken(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(latency, "throughput_in_turns", broken)
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            run(store, [golden])
    else:
        assert statuses(run(store, [golden]))[2:] == [("hashing", "failed"), ("small", "failed")]
    assert files(store) == before


def test_a_kill_between_two_results(
    store: ResultStore, golden: Task[Any], by_hand: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has times in turns and the other its own; both are whole, and the next run times them together."""
    outcomes = interleaved.run([HASHING, SMALL], [golden], store, FEW)
    assert [next(outcomes).status for _ in range(3)] == ["done", "done", "timed"]
    outcomes.close()  # type: ignore[attr-defined]
    found = there(store)
    for each in found.values():
        store.verify(each)
    assert session(found["hashing"].result) is not None
    assert session(found["small"].result) is None
    assert [status for _, status in statuses(run(store, [golden]))] == ["skipped", "skipped", "timed", "timed"]
    assert len({session(each.result) for each in there(store).values()}) == 1


def test_what_only_reads_a_file_takes_no_turn(
    store: ResultStore, golden: Task[Any], by_hand: list[int], tmp_path: Path
) -> None:
    """It belongs to the session without times, so that the same command is finished the next time."""
    (tmp_path / "a.trec").write_text("q1 Q0 d1 1 2.5 x\nq2 Q0 d2 1 2.0 x\n", encoding="utf-8")
    models = [HASHING, SMALL, ModelSpec(name=str(tmp_path / "a.trec"), backend="ranking")]
    assert [status for _, status in statuses(run(store, [golden], models))][3:] == ["timed"] * 3
    assert by_hand == [1, 1, 2]
    values = {name: each.result.scores["latency_p50_ms"].value for name, each in there(store).items()}
    assert sorted(values.values(), key=str) == [12.0, 2.0, None]
    assert [status for _, status in statuses(run(store, [golden], models))] == ["skipped"] * 3


def test_without_a_fake_clock(store: ResultStore, golden: Task[Any]) -> None:
    """Encoder, BM25 and a hybrid of both answer in turns, with finite times for the queries timed."""
    hybrid = ModelSpec(name="hashing+bm25", backend="hybrid")
    run(store, [golden], [HASHING, BM25, hybrid])
    found = there(store)
    assert len({session(each.result) for each in found.values()} - {None}) == 1
    for each in found.values():
        values = store.records(each).columns["latency_ms"]
        assert np.isfinite(values).tolist() == [True, True, True, False]
        assert (values[:3] > 0).all()


@pytest.mark.parametrize(
    ("models", "options", "told"),
    [
        ([HASHING], {"latency": 3}, "needs two models, -m A -m B"),
        ([HASHING, SMALL], {}, "needs a task that is timed, as -t TASK,latency=200"),
        ([HASHING, SMALL], {"latency": 0}, "needs a task that is timed"),
    ],
)
def test_nothing_to_take_turns_is_refused(
    store: ResultStore, golden: Task[Any], tmp_path: Path, models: list[ModelSpec], options: dict[str, Any], told: str
) -> None:
    """Before anything is evaluated, also where BM25 would come along by itself."""
    task = retrieval(tmp_path, **options)
    with pytest.raises(UsageError, match=told):
        next(interleaved.run(models, [task], store, FEW, also=[(BM25, [task])]))
    assert not store.root.exists()


def test_tasks_without_times_are_only_evaluated(
    store: ResultStore, golden: Task[Any], by_hand: list[int], tmp_path: Path
) -> None:
    """Pairs beside a timed search."""
    rows = [{"sentence1": "a", "sentence2": f"a b{n}", "score": float(n)} for n in range(3)]
    write_jsonl(tmp_path / "pairs.jsonl", rows)
    pairs = TASK_TYPES.get("sts").bind(
        TaskSpec(name="pairs", type="sts", dataset=DatasetRef(path="pairs.jsonl")), root=tmp_path
    )
    outcomes = run(store, [pairs, golden])
    assert [(each.step.task.name, each.status) for each in outcomes[4:]] == [("golden", "timed")] * 2
    assert {session(each.result) for each in store.find(task="pairs")} == {None}
