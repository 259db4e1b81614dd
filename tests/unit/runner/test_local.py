"""Models x tasks in this process: what is skipped, rescored, evaluated again, recorded as failed."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from embeval.core import strict_json
from embeval.core.facts import ModelFacts
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, EncoderInfo, Metric, System, Task
from embeval.core.result import Result, without_timings
from embeval.core.specs import DatasetRef, ModelSpec, RuntimeOptions, StatisticsOptions, TaskSpec
from embeval.encoders import loading
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, DataError, EvaluationError, ModelError, StoreError
from embeval.runner import local
from embeval.runner.local import Outcome, RunOptions, Step
from embeval.store.results import ResultStore
from embeval.store.tags import Tags
from embeval.tasks import TASK_TYPES
from tests.support.data import write_beir, write_jsonl
from tests.support.doubles import TableEncoder

HASHING = ModelSpec(name="hashing", backend="hashing")
WIDE = ModelSpec(name="wide", backend="hashing", args={"dim": 512})
FEW = RunOptions(statistics=StatisticsOptions(resamples=100))

# Cosines of 1.0, 0.6, 0.0 in A and 0.8, 0.96, 0.28 in B.
VECTORS = {
    "east": (1.0, 0.0),
    "north": (0.0, 1.0),
    "3-4-5": (0.6, 0.8),
    "4-3-5": (0.8, 0.6),
    "7-24-25": (0.28, 0.96),
}
PAIRS = [
    ("A", "east", "east", 5.0),
    ("A", "east", "3-4-5", 3.0),
    ("A", "east", "north", 1.0),
    ("B", "east", "4-3-5", 4.0),
    ("B", "north", "7-24-25", 2.0),
    ("B", "east", "7-24-25", 0.0),
]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The label of each model that is loaded, in order."""
    seen: list[str] = []
    real = loading.load_system

    def counted(located: Located, runtime: RuntimeOptions | None = None, cache: Any = None) -> System:
        seen.append(located.spec.label)
        return real(located, runtime)

    monkeypatch.setattr(loading, "load_system", counted)
    return seen


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """An empty store."""
    return ResultStore(tmp_path / "results")


@pytest.fixture
def pairs(tmp_path: Path) -> Task[Any]:
    """STS with two sub-sets."""
    write_jsonl(tmp_path / "pairs.jsonl", pair_rows())
    return sts(tmp_path)


@pytest.fixture
def golden(tmp_path: Path) -> Task[Any]:
    """Retrieval over four documents."""
    write_beir(
        tmp_path / "golden",
        corpus={"d1": "restore a backup", "d2": "rotate the keys", "d3": "rotate the logs", "d4": "zebra quagga"},
        queries={"q1": "restore a backup", "q2": "rotate the keys"},
        qrels={"q1": {"d1": 1}, "q2": {"d3": 1}},
    )
    return retrieval(tmp_path)


def pair_rows() -> list[dict[str, Any]]:
    """The rows of ``PAIRS``."""
    return [
        {"sentence1": left, "sentence2": right, "score": score, "subset": subset}
        for subset, left, right, score in PAIRS
    ]


def sts(folder: Path, *, name: str = "pairs", **fields: Any) -> Task[Any]:
    """The task of ``pairs.jsonl`` in a folder."""
    spec = TaskSpec(name=name, type="sts", dataset=DatasetRef(path=f"{name}.jsonl"), **fields)
    return TASK_TYPES.get("sts").bind(spec, root=folder)


def retrieval(folder: Path, **options: Any) -> Task[Any]:
    """The task of ``golden`` in a folder."""
    spec = TaskSpec(name="golden", type="retrieval", dataset=DatasetRef(path="golden"), options=options)
    return TASK_TYPES.get("retrieval").bind(spec, root=folder)


def run(
    store: ResultStore,
    tasks: Sequence[Task[Any]],
    models: Sequence[ModelSpec] = (HASHING,),
    options: RunOptions = FEW,
    on_start: Callable[[Step], None] | None = None,
) -> list[Outcome]:
    """All outcomes."""
    return list(local.run(models, tasks, store, options, on_start=on_start))


def statuses(outcomes: Sequence[Outcome]) -> list[str]:
    """What became of each step."""
    return [outcome.status for outcome in outcomes]


def contents(store: ResultStore) -> dict[str, bytes]:
    """Every file of a store: results without their timings in the form that they are written in, others as they are."""
    found = {}
    for path in sorted(store.root.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".json":
                data = strict_json.dumps(without_timings(strict_json.loads(data))).encode()
            found[path.relative_to(store.root).as_posix()] = data
    return found


def value(result: Result | None, metric: str | None = None) -> float:
    """A metric of a result, its main one by default."""
    assert result is not None
    found = result.scores[metric] if metric else result.main_value
    assert found is not None
    assert found.value is not None
    return found.value


# --- numbers ------------------------------------------------------------------------------------------------------


def test_sub_sets_means_and_all_from_known_vectors(
    store: ResultStore, pairs: Task[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sub-set, mean, wmean and all have a result of their own, with the values worked out by hand."""
    spec = ModelSpec(name="table", revision="builtin:table")
    encoder = TableEncoder(VECTORS)
    monkeypatch.setattr(loading, "resolve", lambda model, verify=False: Located(spec, None))
    monkeypatch.setattr(loading, "load_system", lambda located, runtime=None, cache=None: encoder)
    (outcome,) = run(store, [pairs], [spec])
    assert [stored.result.subset for stored in outcome.stored] == ["A", "B", "mean", "wmean", "all"]
    found = {stored.result.subset: value(stored.result) for stored in outcome.stored}
    # A keeps the order. B: gold 4 2 0, cosine 0.8 0.96 0.28, so ranks 3 2 1 against 2 3 1.
    # All: gold 5 3 1 4 2 0, cosine 1 0.6 0 0.8 0.96 0.28: ranks 6 4 2 5 3 1 against 6 3 1 4 5 2.
    assert found == {
        "A": pytest.approx(1.0),
        "B": pytest.approx(0.5),
        "mean": pytest.approx(0.75),
        "wmean": pytest.approx(0.75),
        "all": pytest.approx(1 - 6 * (0 + 1 + 1 + 1 + 4 + 1) / (6 * 35)),
    }
    assert outcome.result is outcome.stored[-1].result
    assert sorted(each.path.name.split(".")[1] for each in store.find()) == ["A", "B", "all", "mean", "wmean"]


def test_a_ranking_from_real_vectors(store: ResultStore, golden: Task[Any]) -> None:
    """One query finds its document first and one second: nDCG@10 (1 + 1/log2 3) / 2, and the ranking is kept."""
    (outcome,) = run(store, [golden])
    assert value(outcome.result) == pytest.approx((1 + 1 / math.log2(3)) / 2)
    ranking = store.run(outcome.stored[-1])
    assert next(doc for doc, _ in ranking.hits("q1")) == "d1"
    assert [doc for doc, _ in ranking.hits("q2")][:2] == ["d2", "d3"]


def test_every_measure_at_every_cut_off_within_the_depth(store: ResultStore, golden: Task[Any], tmp_path: Path) -> None:
    """All seven measures at all seven cut-offs, fewer cut-offs for a smaller depth, and what goes into a prompt."""
    measures = ("ndcg", "map", "mrr", "recall", "precision", "success", "judged")
    prompts = {f"context_{name}_at_{size}" for name in ("precision", "recall", "ap") for size in ("5", "2000_tokens")}
    (outcome,) = run(store, [golden])
    assert outcome.result is not None
    by_rank = {f"{name}_at_{k}" for name in measures for k in (1, 3, 5, 10, 20, 100, 1000)}
    assert set(outcome.result.scores) == by_rank | prompts
    assert value(outcome.result, "recall_at_1") == pytest.approx(0.5)
    assert value(outcome.result, "mrr_at_10") == pytest.approx(0.75)
    (shallow,) = run(store, [retrieval(tmp_path, depth=10)])
    assert shallow.result is not None
    assert set(shallow.result.scores) == {f"{name}_at_{k}" for name in measures for k in (1, 3, 5, 10)} | prompts


# --- finished before ----------------------------------------------------------------------------------------------


def test_what_is_finished_is_skipped(store: ResultStore, pairs: Task[Any], golden: Task[Any], loads: list[str]) -> None:
    """The second run loads no model, writes nothing, and gives the stored results."""
    first = run(store, [pairs, golden], [HASHING, WIDE])
    assert statuses(first) == ["done"] * 4
    assert loads == ["hashing", "wide (dim=512)"]
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    second = run(store, [pairs, golden], [HASHING, WIDE])
    assert statuses(second) == ["skipped"] * 4
    assert [outcome.result for outcome in second] == [outcome.result for outcome in first]
    assert len(loads) == 2
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before


def test_what_was_timed_is_never_lost(store: ResultStore, golden: Task[Any], tmp_path: Path) -> None:
    """Without a wish for latency, results that have one are finished; they keep it when other metrics are wanted."""
    (timed,) = run(store, [retrieval(tmp_path, latency=1)])
    assert timed.result is not None
    assert timed.result.scores["latency_p50_ms"].n_items == 1
    assert statuses(run(store, [golden])) == ["skipped"]
    (rescored,) = run(store, [retrieval(tmp_path, cutoffs=[10])])
    assert rescored.result is not None
    assert rescored.status == "rescored"
    assert rescored.result.scores["latency_p50_ms"] == timed.result.scores["latency_p50_ms"]
    assert "recall_at_5" not in rescored.result.scores
    assert statuses(run(store, [retrieval(tmp_path, cutoffs=[10], latency=1)])) == ["skipped"]
    (more,) = run(store, [retrieval(tmp_path, cutoffs=[10], latency=2)])
    assert more.result is not None
    assert (more.status, more.result.scores["latency_p50_ms"].n_items) == ("done", 2)


@dataclass(frozen=True)
class _Differing:
    """A task whose records hold another tool's value besides, as a model alone can tell."""

    inner: Task[Any]
    spec: TaskSpec

    def load(self) -> Any:
        return self.inner.load()

    def protocol(self, payload: Any) -> dict[str, strict_json.Json]:
        return {**self.inner.protocol(payload), "type": "differing"}

    def metrics(self, payload: Any) -> tuple[Metric, ...]:
        return self.inner.metrics(payload)

    def collect(self, payload: Any, system: System, progress: Progress) -> Collected:
        found = self.inner.collect(payload, system, progress)
        columns = {**found.records.columns, "mteb_ndcg_at_10": np.array([0.25, np.nan])}
        return replace(found, records=replace(found.records, columns=columns), also=("mteb_ndcg_at_10", "ndcg_at_10"))


def test_values_that_only_the_model_tells_stay(store: ResultStore, golden: Task[Any], loads: list[str]) -> None:
    """They are in the result, are no reason to run again, and are there after rescoring."""
    task = _Differing(golden, golden.spec)
    (first,) = run(store, [task])
    assert first.result is not None
    assert first.result.scores["mteb_ndcg_at_10"].value == 0.25
    assert first.result.scores["mteb_ndcg_at_10"].n_items == 1
    assert first.result.main_score == "ndcg_at_10"
    assert statuses(run(store, [task])) == ["skipped"]
    (rescored,) = run(store, [task], options=RunOptions(statistics=StatisticsOptions(resamples=150)))
    assert rescored.result is not None
    assert (rescored.status, rescored.result.scores["mteb_ndcg_at_10"].value) == ("rescored", 0.25)
    assert len(loads) == 1


def test_a_skipped_step_gives_all_its_results(store: ResultStore, pairs: Task[Any]) -> None:
    """Whoever reads the outcomes finds the results of the sub-sets, whether they were made now or before."""
    (first,) = run(store, [pairs])
    (second,) = run(store, [pairs])
    assert [stored.result.subset for stored in second.stored] == ["A", "B", "mean", "wmean", "all"]
    assert second.stored == first.stored


def test_only_what_is_missing_is_run(store: ResultStore, pairs: Task[Any], golden: Task[Any], loads: list[str]) -> None:
    """A new task or model beside finished ones: one model is loaded, once."""
    run(store, [pairs])
    assert statuses(run(store, [pairs, golden], [HASHING, WIDE])) == ["skipped", "done", "done", "done"]
    assert loads == ["hashing", "hashing", "wide (dim=512)"]


def test_how_a_model_is_run_is_no_reason_to_run_again(store: ResultStore, pairs: Task[Any], loads: list[str]) -> None:
    """Runtime options change the speed, not what is measured."""
    run(store, [pairs])
    assert statuses(run(store, [pairs], options=replace(FEW, runtime=RuntimeOptions(batch_tokens=5)))) == ["skipped"]
    assert loads == ["hashing"]


def test_overwrite_runs_again(store: ResultStore, pairs: Task[Any], loads: list[str]) -> None:
    """Finished or not; the results are the same."""
    run(store, [pairs])
    before = contents(store)
    assert statuses(run(store, [pairs], options=replace(FEW, overwrite=True))) == ["done"]
    assert loads == ["hashing", "hashing"]
    assert contents(store) == before


@pytest.mark.parametrize(
    "statistics",
    [
        StatisticsOptions(resamples=150),
        StatisticsOptions(resamples=100, seed=7),
        StatisticsOptions(resamples=100, level=0.5),
        StatisticsOptions(resamples=0),
    ],
)
def test_other_statistics_are_rescored_from_stored_items(
    store: ResultStore,
    pairs: Task[Any],
    golden: Task[Any],
    loads: list[str],
    tmp_path: Path,
    statistics: StatisticsOptions,
) -> None:
    """No model is loaded, and the results of sub-sets, means and all equal those of a fresh evaluation."""
    run(store, [pairs, golden])
    options = RunOptions(statistics=statistics)
    rescored = run(store, [pairs, golden], options=options)
    assert statuses(rescored) == ["rescored", "rescored"]
    assert len(loads) == 1
    fresh = ResultStore(tmp_path / "fresh")
    run(fresh, [pairs, golden], options=options)
    assert contents(store) == contents(fresh)
    assert [stored.result.subset for stored in rescored[0].stored] == ["A", "B", "mean", "wmean", "all"]
    assert statuses(run(store, [pairs, golden], options=options)) == ["skipped", "skipped"]


def test_a_tokenizer_is_kept_when_rescored(
    store: ResultStore, pairs: Task[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the task named when it was evaluated stays in the signature of every result."""
    collect = type(pairs).collect

    def naming(self: Task[Any], payload: Any, system: System, progress: Progress) -> Collected:
        return replace(collect(self, payload, system, progress), tokenizer="aa")

    monkeypatch.setattr(type(pairs), "collect", naming)
    for options, status in ((FEW, "done"), (RunOptions(statistics=StatisticsOptions(resamples=150)), "rescored")):
        (outcome,) = run(store, [pairs], options=options)
        assert outcome.status == status
        assert [stored.result.signature.tokenizer for stored in outcome.stored] == ["aa"] * 5


def test_rescoring_keeps_the_time_of_the_evaluation(store: ResultStore, pairs: Task[Any]) -> None:
    """The timings stay those of the run that encoded."""
    (first,) = run(store, [pairs])
    (second,) = run(store, [pairs], options=RunOptions(statistics=StatisticsOptions(resamples=200)))
    assert first.result is not None
    assert second.result is not None
    assert second.result.timings == first.result.timings


@pytest.mark.parametrize("cutoffs", [[1, 10], [2, 7, 10, 50]])
def test_other_cut_offs_are_measured_from_the_stored_ranking(
    store: ResultStore, golden: Task[Any], loads: list[str], tmp_path: Path, cutoffs: list[int]
) -> None:
    """No model is loaded, and the results equal those of a fresh evaluation; then they are finished."""
    run(store, [golden])
    other = retrieval(tmp_path, cutoffs=cutoffs)
    (outcome,) = run(store, [other])
    assert (outcome.status, len(loads)) == ("rescored", 1)
    fresh = ResultStore(tmp_path / "fresh")
    (expected,) = run(fresh, [other])
    assert outcome.result is not None
    assert expected.result is not None
    assert outcome.result.scores == expected.result.scores
    assert set(outcome.result.scores) >= {f"recall_at_{k}" for k in cutoffs}
    assert (outcome.result.counts, outcome.result.warnings) == (expected.result.counts, expected.result.warnings)
    assert statuses(run(store, [other])) == ["skipped"]


@pytest.mark.parametrize(("first", "second"), [("ndcg_at_10", "ndcg_at_3"), ("ndcg_at_3", "ndcg_at_10")])
def test_counts_and_notes_follow_the_main_score(store: ResultStore, tmp_path: Path, first: str, second: str) -> None:
    """Ties are counted across its cut-off: a rescored result has the counts and notes of a fresh one."""
    corpus = {f"d{number}": f"word{number} common text" for number in range(8)}
    queries = {f"q{number}": f"word{number} question" for number in range(4)}
    write_beir(tmp_path / "golden", corpus=corpus, queries=queries, qrels={f"q{n}": {f"d{n}": 1} for n in range(4)})

    def task(main_score: str) -> Task[Any]:
        spec = TaskSpec(name="g", type="retrieval", dataset=DatasetRef(path="golden"), main_score=main_score)
        return TASK_TYPES.get("retrieval").bind(spec, root=tmp_path)

    run(store, [task(first)])
    (outcome,) = run(store, [task(second)])
    (fresh,) = run(ResultStore(tmp_path / "fresh"), [task(second)])
    assert outcome.status == "rescored"
    assert outcome.result is not None
    assert fresh.result is not None
    assert outcome.result.counts == fresh.result.counts
    assert outcome.result.warnings == fresh.result.warnings
    assert any("across rank 3" in each for each in fresh.result.warnings) == (second == "ndcg_at_3")


def test_another_main_score_needs_no_model(
    store: ResultStore, pairs: Task[Any], loads: list[str], tmp_path: Path
) -> None:
    """The result that stands for the task is then that of the metric asked for, not of the one before."""
    run(store, [pairs])
    (outcome,) = run(store, [sts(tmp_path, main_score="euclidean_pearson")])
    assert outcome.result is not None
    assert outcome.result.main_score == "euclidean_pearson"
    assert loads == ["hashing"]


def test_changed_labels_need_no_model(store: ResultStore, golden: Task[Any], loads: list[str], tmp_path: Path) -> None:
    """A label that is added, changed or taken away changes no number, but what the items can be grouped by."""
    (first,) = run(store, [golden])
    assert first.result is not None
    queries = [
        {"_id": "q1", "text": "restore a backup", "kind": "short"},
        {"_id": "q2", "text": "rotate the keys", "kind": "short"},
    ]
    plain = [{name: row[name] for name in ("_id", "text")} for row in queries]
    changed = [{**row, "kind": "long"} for row in queries]
    for rows, slices in ((queries, ("short", "short")), (changed, ("long", "long")), (plain, None)):
        write_jsonl(tmp_path / "golden" / "queries.jsonl", rows)
        (outcome,) = run(store, [golden])
        assert outcome.status == "rescored"
        assert outcome.result is not None
        assert outcome.result.scores == first.result.scores
        assert store.records(outcome.stored[-1]).slices.get("kind") == slices
        assert statuses(run(store, [golden])) == ["skipped"]
    assert loads == ["hashing"]


def test_the_interval_hangs_on_the_data_and_not_on_its_name(
    store: ResultStore, pairs: Task[Any], tmp_path: Path
) -> None:
    """A copy under another name has the same numbers to the digit; other data has other resamples."""
    write_jsonl(tmp_path / "copy.jsonl", pair_rows())
    first, second = run(store, [pairs, sts(tmp_path, name="copy")])
    assert first.result is not None
    assert second.result is not None
    assert first.result.scores == second.result.scores


# --- changed ------------------------------------------------------------------------------------------------------


def test_changed_data_is_evaluated_again(
    store: ResultStore, pairs: Task[Any], loads: list[str], tmp_path: Path
) -> None:
    """One other score in the file is another protocol; the old result stays beside the new one."""
    run(store, [pairs])
    before = contents(store)
    rows = pair_rows()
    rows[0]["score"] = 4.5
    write_jsonl(tmp_path / "pairs.jsonl", rows)
    assert statuses(run(store, [pairs])) == ["done"]
    assert len(loads) == 2
    after = contents(store)
    assert {name: after[name] for name in before} == before
    assert len(list(store.find())) == 10


def test_a_file_name_is_no_proof(store: ResultStore, pairs: Task[Any], tmp_path: Path) -> None:
    """File names carry eight digits of a digest: a result of another protocol under the right name is not taken."""
    (old,) = run(store, [pairs])
    rows = pair_rows()
    rows[0]["score"] = 0.5
    write_jsonl(tmp_path / "pairs.jsonl", rows)
    (expected,) = run(ResultStore(tmp_path / "fresh"), [pairs])
    old.stored[-1].path.rename(old.stored[-1].path.with_name(expected.stored[-1].path.name))
    (outcome,) = run(store, [pairs])
    assert outcome.status == "done"
    assert value(outcome.result) == value(expected.result) != value(old.result)


def test_data_written_otherwise_is_the_same_data(store: ResultStore, pairs: Task[Any], tmp_path: Path) -> None:
    """White space and the order of keys are no content."""
    run(store, [pairs])
    write_jsonl(tmp_path / "pairs.jsonl", [dict(reversed(row.items())) for row in pair_rows()])
    assert statuses(run(store, [pairs])) == ["skipped"]


@pytest.mark.parametrize("options", [{"depth": 100}, {"ties": "doc_id_asc"}, {"gains": "exp2"}, {"self_match": "drop"}])
def test_changed_options_are_evaluated_again(
    store: ResultStore, golden: Task[Any], loads: list[str], tmp_path: Path, options: dict[str, Any]
) -> None:
    """Each option can change a number, so its result is one of its own."""
    run(store, [golden])
    assert statuses(run(store, [retrieval(tmp_path, **options)])) == ["done"]
    assert len(loads) == 2
    assert statuses(run(store, [golden])) == ["skipped"]


@pytest.mark.parametrize(
    "change",
    [
        {"args": {"dim": 64}},
        {"prompts": {"text": "find: "}},
        {"truncate_dim": 16},
        {"max_seq_length": 1},
        {"normalize": True},
        {"similarity": "dot"},
    ],
)
def test_changed_model_settings_are_evaluated_again(
    store: ResultStore, pairs: Task[Any], loads: list[str], change: dict[str, Any]
) -> None:
    """A model with other settings is another model, with a folder of its own."""
    run(store, [pairs])
    (outcome,) = run(store, [pairs], [replace(HASHING, **change)])
    assert outcome.status == "done"
    assert len(loads) == 2
    assert len({each.path.parent for each in store.find()}) == 2


def test_a_new_version_of_the_task_is_evaluated_again(store: ResultStore, pairs: Task[Any], tmp_path: Path) -> None:
    """The same name measures something else."""
    run(store, [pairs])
    assert statuses(run(store, [sts(tmp_path, version=2)])) == ["done"]


def test_a_new_version_of_a_metric_is_evaluated_again(
    store: ResultStore, pairs: Task[Any], loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same columns give another number, so the stored number is not the metric any more."""
    run(store, [pairs])
    made = type(pairs).metrics

    def newer(task: Any, payload: Any) -> tuple[Metric, ...]:
        first, *others = made(task, payload)
        return (replace(first, version=2), *others)  # type: ignore[type-var]  # metrics of this task are dataclasses

    monkeypatch.setattr(type(pairs), "metrics", newer)
    (outcome,) = run(store, [pairs])
    assert (outcome.status, len(loads)) == ("done", 2)
    assert outcome.result is not None
    assert outcome.result.signature.metrics["cosine_spearman"] == 2
    assert statuses(run(store, [pairs])) == ["skipped"]


@pytest.mark.parametrize("harm", ["cut the result", "empty the result", "lose the items", "change the items"])
def test_a_result_that_is_broken_on_disk_is_evaluated_again(
    store: ResultStore, pairs: Task[Any], tmp_path: Path, harm: str
) -> None:
    """A file that was cut, emptied, lost or changed is replaced by a whole one."""
    (outcome,) = run(store, [pairs])
    whole = contents(store)
    stored = outcome.stored[-1]
    assert stored.result.items is not None
    items = stored.path.parent / stored.result.items.file
    match harm:
        case "cut the result":
            stored.path.write_bytes(stored.path.read_bytes()[:-20])
        case "empty the result":
            stored.path.write_bytes(b"")
        case "lose the items":
            items.unlink()
        case _:
            items.write_bytes(items.read_bytes()[:-1] + b"x")
    assert statuses(run(store, [pairs])) == ["done"]
    assert contents(store) == whole


@pytest.mark.parametrize("harm", ["lose", "cut", "other seed", "change a value", "change the value of all"])
def test_results_of_sub_sets_are_looked_at_too(
    store: ResultStore, pairs: Task[Any], loads: list[str], harm: str
) -> None:
    """One that is lost, broken, of another run or changed by hand is made again from the items, without the model.

    Two runs at once may each write some; a file may be edited; "finished" must not mean the one for all pairs only.
    """
    run(store, [pairs])
    whole = contents(store)
    paths = {each.result.subset: each.path for each in store.find()}
    match harm:
        case "lose":
            paths["mean"].unlink()
        case "cut":
            paths["A"].write_bytes(paths["A"].read_bytes()[:-20])
        case "other seed":
            seeded = RunOptions(statistics=StatisticsOptions(resamples=100, seed=1))
            other = ResultStore(store.root.parent / "other")
            run(other, [pairs], options=seeded)
            (path,) = (each.path for each in other.find(subset="B"))
            paths["B"].write_bytes(path.read_bytes())
        case _:
            path = paths["B" if harm == "change a value" else "all"]
            value = strict_json.loads(path.read_bytes())
            value["scores"]["cosine_spearman"]["value"] = 0.99
            path.write_text(strict_json.dumps(value), encoding="utf-8")
    loads.clear()
    (outcome,) = run(store, [pairs])
    assert (outcome.status, loads) == ("rescored", [])
    assert contents(store) == whole
    assert statuses(run(store, [pairs])) == ["skipped"]


def test_results_with_intervals_of_an_older_kind_get_new_ones(
    store: ResultStore, golden: Task[Any], loads: list[str]
) -> None:
    """From the stored items, without the model; one that names no method has the older kind."""
    run(store, [golden])
    whole = contents(store)
    (stored,) = store.find(subset="all")
    assert {score.interval for score in stored.result.scores.values() if score.ci_low is not None} == {"bca", "wilson"}
    value = strict_json.loads(stored.path.read_bytes())
    for score in value["scores"].values():
        score["interval"] = None
    stored.path.write_text(strict_json.dumps(value), encoding="utf-8")
    loads.clear()
    (outcome,) = run(store, [golden])
    assert (outcome.status, loads) == ("rescored", [])
    assert contents(store) == whole


def silenced(store: ResultStore) -> None:
    """Makes every result say as little of the model as one from before facts were kept."""
    for stored in list(store.find()):
        value = strict_json.loads(stored.path.read_bytes())
        del value["facts"]
        stored.path.write_text(strict_json.dumps(value), encoding="utf-8")


def test_results_that_do_not_say_what_the_model_is_are_told(
    store: ResultStore, pairs: Task[Any], loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the loaded model, without encoding: items and timings stay as they are, byte for byte."""
    run(store, [pairs])
    whole, timings = contents(store), [each.result.timings for each in store.find()]
    silenced(store)
    assert all(each.result.facts is None for each in store.find())
    loads.clear()
    monkeypatch.setattr(type(pairs), "collect", lambda *_: pytest.fail("encoded"))
    (outcome,) = run(store, [pairs])
    assert (outcome.status, loads) == ("rescored", ["hashing"])
    assert contents(store) == whole
    assert [each.result.timings for each in store.find()] == timings
    assert all(each.result.facts == ModelFacts(parameters=0, dimensions=256, weight_bytes=0) for each in store.find())
    assert (statuses(run(store, [pairs])), loads) == (["skipped"], ["hashing"])


def test_what_a_tag_pins_is_told_nothing(store: ResultStore, pairs: Task[Any], loads: list[str]) -> None:
    """It would be another file than the one that was tagged."""
    run(store, [pairs])
    silenced(store)
    Tags(store.root).put("prod", list(store.find()))
    before = contents(store)
    loads.clear()
    assert (statuses(run(store, [pairs])), loads) == (["skipped"], [])
    assert contents(store) == before
    assert Tags(store.root).problems("prod") == []


def test_a_model_that_can_not_be_loaded_any_more_leaves_results_as_they_are(
    store: ResultStore, pairs: Task[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are finished all the same."""
    run(store, [pairs])
    silenced(store)
    before = contents(store)

    def refused(*_: Any) -> System:
        raise ModelError("no")

    monkeypatch.setattr(loading, "load_system", refused)
    assert statuses(run(store, [pairs])) == ["skipped"]
    assert contents(store) == before


def test_results_learn_what_kind_of_task_it_was(store: ResultStore, tmp_path: Path, pairs: Task[Any]) -> None:
    """As those of mteb's tasks have it now."""
    run(store, [pairs])
    (outcome,) = run(store, [sts(tmp_path, category="STS")])
    assert (outcome.status, {each.result.task.category for each in store.find()}) == ("rescored", {"STS"})
    assert statuses(run(store, [sts(tmp_path, category="STS")])) == ["skipped"]


@pytest.mark.parametrize(
    ("card", "revision", "languages", "license_of"),
    [
        ("", "8b3219a92973c328a8e22fadcfa821b5dc75636a", ("eng-Latn",), "apache-2.0"),
        ("language: de", "8b3219a92973c328a8e22fadcfa821b5dc75636a", ("de",), "apache-2.0"),
        ("", "sha256:" + "ab" * 32, (), None),
    ],
)
def test_what_the_card_does_not_say_is_said_by_mteb(
    tmp_path: Path, card: str, revision: str, languages: tuple[str, ...], license_of: str | None
) -> None:
    """all-MiniLM-L6-v2 as mteb 2.26 lists it; of a folder nobody knows what it is, and sizes are the model's own."""
    (tmp_path / "README.md").write_text(f"---\n{card}\n---\n", encoding="utf-8")
    spec = ModelSpec(name="sentence-transformers/all-MiniLM-L6-v2", revision=revision, dtype="bfloat16")
    info = EncoderInfo(
        dim=64,
        max_seq_length=None,
        similarity="cosine",
        prompts={},
        pooling=None,
        n_parameters=1000,
        device="cpu",
        num_threads=1,
        batch_tokens=1,
    )
    model: Any = SimpleNamespace(info=info)
    assert local._facts(Located(spec, tmp_path), model) == ModelFacts(
        parameters=1000, dimensions=64, weight_bytes=2000, languages=languages, license=license_of
    )


def test_a_folder_that_was_copied_under_another_name_is_not_finished(
    store: ResultStore, pairs: Task[Any], tmp_path: Path
) -> None:
    """Its results are those of the other task, and would never be shown under the new name."""
    (outcome,) = run(store, [pairs])
    folder = outcome.stored[-1].path.parent
    shutil.copytree(folder, folder.parent / "copy")
    write_jsonl(tmp_path / "copy.jsonl", pair_rows())
    assert statuses(run(store, [sts(tmp_path, name="copy")])) == ["done"]
    assert {each.result.task.name for each in store.find()} == {"pairs", "copy"}


def test_counts_of_a_sub_set_are_its_own(store: ResultStore, pairs: Task[Any]) -> None:
    """Three of six pairs each; the means and the whole count everything."""
    (outcome,) = run(store, [pairs])
    counts = {each.result.subset: dict(each.result.counts) for each in outcome.stored}
    assert counts["A"] == counts["B"] == {"items": 3}
    assert counts["mean"] == counts["all"]
    assert counts["all"]["pairs"] == 6


def test_a_lost_ranking_is_no_dead_end(store: ResultStore, golden: Task[Any]) -> None:
    """Rescoring that finds the ranking gone evaluates again instead of giving up."""
    (outcome,) = run(store, [golden])
    stored = outcome.stored[-1]
    assert stored.result.run is not None
    (stored.path.parent / stored.result.run.file).unlink()
    (again,) = run(store, [golden], options=RunOptions(statistics=StatisticsOptions(resamples=200)))
    assert again.status == "done"
    assert [doc for doc, _ in store.run(again.stored[-1]).hits("q2")][:2] == ["d2", "d3"]


# --- failures -----------------------------------------------------------------------------------------------------


def test_a_failing_task_is_recorded_and_the_others_go_on(
    store: ResultStore, pairs: Task[Any], golden: Task[Any], tmp_path: Path
) -> None:
    """The error comes back in its outcome and lies beside the results; nothing else is lost."""
    (tmp_path / "broken.jsonl").write_text('{"sentence1": "a", "sentence2": "b"}\n', encoding="utf-8")
    broken = sts(tmp_path, name="broken")
    outcomes = run(store, [pairs, broken, golden])
    assert [outcome.step.task.name for outcome in outcomes] == ["broken", "pairs", "golden"]
    assert statuses(outcomes) == ["failed", "done", "done"]  # told before anything is encoded
    assert isinstance(outcomes[0].error, DataError)
    assert outcomes[0].stored == ()
    assert outcomes[0].result is None
    (failed,) = store.find(status="error")
    assert failed.path.name == "test.all.error.json"
    assert failed.result.task.name == "broken"
    assert failed.result.error is not None
    assert failed.result.error.type == "DataError"
    assert failed.result.error.message == str(outcomes[0].error)
    assert "line 1: there is no column 'score'" in failed.result.error.message
    assert failed.result.scores == {}


def test_success_takes_the_record_of_a_failure_away(store: ResultStore, tmp_path: Path) -> None:
    """Once the data is mended and the task has run, nothing says that it failed."""
    (tmp_path / "pairs.jsonl").write_text("not json\n", encoding="utf-8")
    task = sts(tmp_path)
    assert statuses(run(store, [task])) == ["failed"]
    assert len(list(store.find(status="error"))) == 1
    write_jsonl(tmp_path / "pairs.jsonl", pair_rows())
    assert statuses(run(store, [task])) == ["done"]
    assert list(store.find(status="error")) == []


def test_a_failure_leaves_finished_results_alone(store: ResultStore, pairs: Task[Any], tmp_path: Path) -> None:
    """Data that broke after it was evaluated: the old numbers are still there, byte for byte."""
    run(store, [pairs])
    before = contents(store)
    (tmp_path / "pairs.jsonl").write_text("", encoding="utf-8")
    assert statuses(run(store, [pairs])) == ["failed"]
    after = contents(store)
    assert {name: after[name] for name in before} == before
    assert [Path(name).name for name in set(after) - set(before)] == ["test.all.error.json"]


@dataclass(frozen=True)
class Faulty:
    """A task whose collecting ends with an error that is no mistake of the user's."""

    error: Exception
    spec: TaskSpec = field(
        default_factory=lambda: TaskSpec(name="faulty", type="sts", dataset=DatasetRef(path="nothing"))
    )

    def load(self) -> int:
        """Data."""
        return 7

    def protocol(self, payload: int) -> dict[str, strict_json.Json]:
        """What can change a number."""
        return {"data": str(payload), "task": "faulty"}

    def metrics(self, payload: int) -> tuple[Metric, ...]:
        """No metric."""
        return ()

    def collect(self, payload: int, system: System, progress: Progress) -> Collected:
        """Fails."""
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("a fault of ours"), ValueError(), KeyError("ndcg_at_10")])
def test_a_fault_of_the_program_is_recorded_too(store: ResultStore, pairs: Task[Any], error: Exception) -> None:
    """Any exception of one step is kept with its type, and the steps after it run."""
    outcomes = run(store, [Faulty(error), pairs])
    assert statuses(outcomes) == ["failed", "done"]
    assert outcomes[0].error is error
    (failed,) = store.find(status="error")
    assert failed.result.error is not None
    assert (failed.result.error.type, failed.result.error.message) == (type(error).__name__, str(error))


def test_what_the_system_refuses_is_no_fault_of_ours(store: ResultStore, pairs: Task[Any]) -> None:
    """A path that is too long, a disk that is gone: recorded in its words, as what can't be evaluated."""
    refusing = Faulty(OSError(36, "File name too long", "x" * 9))
    outcome, _ = run(store, [refusing, pairs])
    assert isinstance(outcome.error, EvaluationError)
    assert str(outcome.error) == "xxxxxxxxx: File name too long."


def test_a_model_that_cannot_be_found_fails_its_own_tasks_only(
    store: ResultStore, pairs: Task[Any], golden: Task[Any], tmp_path: Path
) -> None:
    """Each of its tasks fails with the same message; the models before and after it are evaluated."""
    gone = ModelSpec(name=str(tmp_path / "gone"))
    outcomes = run(store, [pairs, golden], [HASHING, gone, WIDE])
    assert statuses(outcomes) == ["failed", "failed", "done", "done", "done", "done"]
    for outcome in outcomes[:2]:
        assert isinstance(outcome.error, ModelError)
        assert str(outcome.error) == f"Model folder '{gone.name}' does not exist."
        assert outcome.step.model is gone
    # Without a revision a model has no folder of results, so nothing is written for it.
    assert {path.name for path in store.root.iterdir()} == {"hashing", "wide"}


def test_a_model_of_the_wrong_kind_is_told_first(store: ResultStore, pairs: Task[Any], tmp_path: Path) -> None:
    """What scores tokens is refused before the other task of the same model is evaluated."""
    (tmp_path / "texts.txt").write_text("a line\n", encoding="utf-8")
    spec = TaskSpec(name="tokens", type="pseudo_likelihood", dataset=DatasetRef(path="texts.txt"))
    tokens = TASK_TYPES.get("pseudo_likelihood").bind(spec, root=tmp_path)
    outcomes = run(store, [pairs, tokens])
    assert [(each.step.task.name, each.status) for each in outcomes] == [("tokens", "failed"), ("pairs", "done")]
    assert "can't be evaluated on the task 'tokens'" in str(outcomes[0].error)


def test_a_model_that_cannot_be_loaded_is_tried_once(
    store: ResultStore, pairs: Task[Any], golden: Task[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its tasks fail for the reason that the first one found, and each has a record."""
    tried = []

    def refuse(located: Located, runtime: RuntimeOptions | None = None, cache: Any = None) -> System:
        tried.append(located.spec.name)
        raise ModelError("the weights are broken")

    monkeypatch.setattr(loading, "load_system", refuse)
    outcomes = run(store, [pairs, golden])
    assert statuses(outcomes) == ["failed", "failed"]
    assert tried == ["hashing"]
    assert [str(outcome.error) for outcome in outcomes] == ["the weights are broken"] * 2
    assert [each.result.task.name for each in store.find(status="error")] == ["golden", "pairs"]


@pytest.mark.parametrize("args", [{"dim": 3}, {"dims": 64}])
def test_a_setting_that_no_backend_takes_stops_the_run(
    store: ResultStore, pairs: Task[Any], golden: Task[Any], args: dict[str, int]
) -> None:
    """It is a mistake in the request and no failure of a step: it is raised, and nothing is recorded."""
    with pytest.raises(ConfigError, match=r"'dims'|not 3"):
        run(store, [pairs, golden], [replace(HASHING, args=args)])
    assert list(store.root.rglob("*")) == []


@pytest.mark.parametrize("below", ["file", "file/deeper/still"])
def test_an_unwritable_store_stops_at_once(tmp_path: Path, below: str) -> None:
    """Nothing that follows could be kept: told before the first step begins."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "other.jsonl").write_text("", encoding="utf-8")
    write_jsonl(tmp_path / "pairs.jsonl", pair_rows())
    begun: list[str] = []
    with pytest.raises(StoreError, match="A part of that path is a file, not a folder"):
        run(
            ResultStore(tmp_path / below),
            [sts(tmp_path), sts(tmp_path, name="other")],
            on_start=lambda step: begun.append(step.task.name),
        )
    assert begun == []
    assert (tmp_path / "file").read_text(encoding="utf-8") == "in the way"


def test_a_failure_that_cannot_be_recorded_stops_too(tmp_path: Path) -> None:
    """A store that can't hold the record of a failure can't hold results either."""
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "pairs.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="A part of that path is a file"):
        run(ResultStore(tmp_path / "file"), [sts(tmp_path)])


# --- the same numbers ---------------------------------------------------------------------------------------------


def test_two_equal_runs_write_the_same_bytes(
    store: ResultStore, pairs: Task[Any], golden: Task[Any], tmp_path: Path
) -> None:
    """But for ``timings``: names of files, results, items and rankings."""
    again = ResultStore(tmp_path / "again")
    run(store, [pairs, golden], [HASHING, WIDE])
    run(again, [pairs, golden], [HASHING, WIDE])
    assert contents(again) == contents(store)
    assert len(contents(store)) == 2 * (5 + 3 + 1 + 2)  # results and items of sts, result, items and run of retrieval
    for path in store.root.rglob("*.json"):
        assert strict_json.dumps(strict_json.loads(path.read_bytes())).encode() == path.read_bytes()


def test_a_ranking_read_back_and_written_again_has_the_same_bytes(store: ResultStore, golden: Task[Any]) -> None:
    """Rescoring stores the ranking under the name that it had, and leaves no second copy."""
    run(store, [golden])
    before = {path.name for path in store.root.rglob("*.run.parquet")}
    run(store, [golden], options=RunOptions(statistics=StatisticsOptions(resamples=200)))
    assert {path.name for path in store.root.rglob("*.run.parquet")} == before


def test_the_order_of_tasks_and_models_makes_no_difference(
    store: ResultStore, pairs: Task[Any], golden: Task[Any], tmp_path: Path
) -> None:
    """Forwards, backwards, and one step at a time: the same files."""
    run(store, [pairs, golden], [HASHING, WIDE])
    backwards, single = ResultStore(tmp_path / "backwards"), ResultStore(tmp_path / "single")
    run(backwards, [golden, pairs], [WIDE, HASHING])
    for task in (golden, pairs):
        for model in (HASHING, WIDE):
            run(single, [task], [model])
    assert contents(backwards) == contents(store)
    assert contents(single) == contents(store)


def test_results_hold_no_path_of_this_machine(store: ResultStore, pairs: Task[Any], tmp_path: Path) -> None:
    """An absolute data path is cut to its last two parts: the data is named by its hash."""
    spec = replace(pairs.spec, dataset=DatasetRef(path=str(tmp_path / "pairs.jsonl")))
    (outcome,) = run(store, [TASK_TYPES.get("sts").bind(spec, root=Path())])
    assert outcome.result is not None
    assert outcome.result.task.dataset.path == f"{tmp_path.name}/pairs.jsonl"
    for path in store.root.rglob("*.json"):
        assert str(tmp_path) not in path.read_text(encoding="utf-8")


# --- what the watcher sees ----------------------------------------------------------------------------------------


def test_steps_are_announced_in_order(store: ResultStore, pairs: Task[Any], golden: Task[Any]) -> None:
    """Models outside, tasks inside, numbered from 1; each before its outcome."""
    events: list[str] = []
    steps = local.run(
        [HASHING, WIDE],
        [pairs, golden],
        store,
        FEW,
        on_start=lambda step: events.append(f"{step.number}/{step.total} {step.model.name} {step.task.name}"),
    )
    for outcome in steps:
        assert outcome.seconds > 0.0
        events.append(outcome.status)
    assert events == [
        "1/4 hashing pairs",
        "done",
        "2/4 hashing golden",
        "done",
        "3/4 wide pairs",
        "done",
        "4/4 wide golden",
        "done",
    ]


def test_results_are_stored_before_the_next_step_begins(
    store: ResultStore, pairs: Task[Any], golden: Task[Any]
) -> None:
    """A run that is stopped after its first outcome has that one on disk."""
    steps = local.run([HASHING], [pairs, golden], store, FEW)
    next(steps)
    assert {each.result.task.name for each in store.find()} == {"pairs"}
    assert statuses(run(store, [pairs, golden])) == ["skipped", "done"]


def test_timings_and_provenance_say_how_it_was_run(store: ResultStore, pairs: Task[Any], golden: Task[Any]) -> None:
    """Token budget and threads of the model, phases of the task; the time to load a model belongs to its first task."""
    options = replace(FEW, runtime=RuntimeOptions(batch_tokens=9))
    first, second = (outcome.result for outcome in run(store, [pairs, golden], options=options))
    assert first is not None
    assert second is not None
    assert (first.provenance.batch_tokens, first.provenance.num_threads, first.provenance.device) == (9, 1, "cpu")
    assert first.timings is not None
    assert second.timings is not None
    assert first.timings.load_model_s is not None
    assert second.timings.load_model_s is None
    assert set(first.timings.phases) == {"load_data", "encode"}
    assert set(second.timings.phases) == {"load_data", "encode", "search", "measure"}


# --- vectors that were computed before ----------------------------------------------------------------------------


@pytest.fixture
def forwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """How many texts each call of the model had, over a cache of the test's own."""
    from embeval.encoders.backends.hashing import _Hashing

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    seen: list[int] = []
    real = _Hashing.forward

    def counted(self: Any, prepared: Any, rows: Any) -> Any:
        seen.append(len(rows))
        return real(self, prepared, rows)

    monkeypatch.setattr(_Hashing, "forward", counted)
    return seen


def encoded(outcomes: Sequence[Outcome]) -> list[int | None]:
    """How many texts each step says it encoded."""
    return [
        outcome.result.timings.texts_encoded
        for outcome in outcomes
        if outcome.result is not None and outcome.result.timings is not None
    ]


def test_what_was_encoded_before_is_not_encoded_again(
    store: ResultStore, golden: Task[Any], tmp_path: Path, forwards: list[int]
) -> None:
    """Another list of metrics, another task on the same texts, all over again: 0 texts; with no cache, all."""
    assert encoded(run(store, [golden])) == [4 + 2]
    assert sum(forwards) == 6
    forwards.clear()
    other = replace(golden, spec=replace(golden.spec, name="other", version=2))  # type: ignore[type-var]  # a dataclass
    for tasks, options in (
        ([retrieval(tmp_path, cutoffs=[10, 2])], replace(FEW, overwrite=True)),
        ([other], FEW),
        ([golden], replace(FEW, overwrite=True)),
    ):
        outcomes = run(store, tasks, options=options)
        assert statuses(outcomes) == ["done"]
        assert encoded(outcomes) == [0]
    assert forwards == []
    uncached = replace(FEW, overwrite=True, runtime=RuntimeOptions(cache=False))
    assert encoded(run(store, [golden], options=uncached)) == [6]
    assert sum(forwards) == 6


def test_results_are_those_of_a_run_without_a_cache(
    tmp_path: Path, golden: Task[Any], pairs: Task[Any], forwards: list[int]
) -> None:
    """File for file but for the timings: cold, warm, and with no cache at all."""
    stores = [ResultStore(tmp_path / name) for name in ("cold", "warm", "uncached")]
    options = [FEW, FEW, replace(FEW, runtime=RuntimeOptions(cache=False))]
    for each, how in zip(stores, options, strict=True):
        assert statuses(run(each, [golden, pairs], [HASHING, WIDE], how)) == ["done"] * 4
    assert contents(stores[0]) == contents(stores[1]) == contents(stores[2])
    assert len(contents(stores[0])) > 8


def test_a_model_that_is_loaded_late_is_timed_as_loading(
    store: ResultStore, golden: Task[Any], pairs: Task[Any], forwards: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second task has new texts: a load of half a second is not part of encoding, and a warm step has none."""
    backend = loading.BACKENDS.get("hashing")
    real = backend.load

    def slow(located: Located, runtime: RuntimeOptions) -> System:
        time.sleep(0.5)
        return real(located, runtime)

    monkeypatch.setattr(backend, "load", slow, raising=False)
    run(store, [golden])
    outcomes = run(store, [golden, pairs], options=replace(FEW, overwrite=True))
    assert encoded(outcomes) == [0, 5]
    timings = [outcome.result.timings for outcome in outcomes if outcome.result is not None]
    assert timings[0] is not None
    assert timings[1] is not None
    assert (timings[0].load_model_s or 0.0) < 0.4
    assert (timings[1].load_model_s or 0.0) >= 0.5
    assert timings[1].phases["encode"] < 0.4
    assert timings[1].wall_s < 0.5


def test_what_does_not_fit_one_model_stops_no_other(store: ResultStore, golden: Task[Any], tmp_path: Path) -> None:
    """An index that can't compare as the first model does is found out when that is loaded; the second is evaluated."""
    strange = ModelSpec(name="hashing", backend="hashing", similarity="manhattan")
    outcomes = run(store, [retrieval(tmp_path, index="hnsw")], [strange, HASHING])
    assert sorted(statuses(outcomes)) == ["done", "failed"]
    assert "can't compare by manhattan" in str(next(each.error for each in outcomes if each.status == "failed"))


def test_the_folder_of_a_second_stage_is_not_told(tmp_path: Path) -> None:
    """Neither as a name nor among settings; names of hubs and other texts stay."""
    for given, kept in (("/home/me/reranker", "reranker"), ("org/name", "org/name"), ("~/x/model", "x/model")):
        spec = TaskSpec(
            name="t",
            type="retrieval",
            dataset=DatasetRef(path="data"),
            options={"depth": 10, "rerank": {"model": given, "depth": 5}},
        )
        assert local.portable(spec).options == {"depth": 10, "rerank": {"model": kept, "depth": 5}}
        assert local.portable(replace(spec, options={"rerank": given})).options == {"rerank": kept}
