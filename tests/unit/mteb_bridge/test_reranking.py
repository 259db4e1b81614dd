"""Reranking on one's own files: scored by mteb's class, from the command's spec to the stored result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from embeval.compare import evidence
from embeval.core.progress import Silent
from embeval.core.specs import DatasetRef, ModelSpec, RuntimeOptions, StatisticsOptions, TaskSpec
from embeval.encoders import loading
from embeval.errors import ConfigError, DataError, EvaluationError, ModelError
from embeval.mteb_bridge.tasks.reranking import TASK, RerankingTask
from embeval.rerankers import loading as rerankers
from embeval.runner import local
from embeval.store.results import ResultStore
from tests.support.data import write_jsonl
from tests.support.doubles import TableReranker
from tests.support.models import save_tiny_cross_encoder

ROWS: list[dict[str, Any]] = [
    {"query": "red fox", "positive": ["a red fox"], "negative": ["red", "sea"], "kind": "a"},
    {"query": "blue sea", "positive": ["red"], "negative": ["blue sea"], "kind": "a"},
    {"query": "none", "positive": [], "negative": ["red"], "kind": "b"},
    {"query": "green", "positive": ["green", "red"], "negative": ["sea"], "kind": "b"},
]
HASHING = ModelSpec(name="hashing", backend="hashing")


def task(folder: Path, **options: Any) -> RerankingTask:
    """The task of ``test.jsonl``."""
    write_jsonl(folder / "test.jsonl", ROWS)
    spec = TaskSpec(name="own", type="reranking", dataset=DatasetRef(path="test.jsonl"), options=options)
    return TASK.bind(spec, root=folder)


def test_values_by_hand_and_a_second_run_is_skipped(tmp_path: Path) -> None:
    """A bag of words in 2,048 dimensions.

    "red fox" finds its document first: 1. "blue sea" finds the wrong one first: 1/2. "none" has no relevant one: 0.
    "green" finds the same word first and ties "red" with "sea" at cosine 0, for which the id decides: 1 or 5/6.
    """
    own, store = task(tmp_path), ResultStore(tmp_path / "results")
    model = ModelSpec(name="hashing", backend="hashing", args={"dim": 2048})
    options = local.RunOptions(statistics=StatisticsOptions(resamples=100))
    (first,) = local.run([model], [own], store, options)
    assert first.error is None
    assert first.result is not None
    records, run = store.records(first.stored[-1]), store.run(first.stored[-1])
    values = records.columns["map_at_1000"].tolist()
    assert values[:3] == pytest.approx([1.0, 0.5, 0.0])
    assert run is not None
    red_first = [run.hits("4")[place][0] for place in (1, 2)]
    assert red_first == sorted(red_first, reverse=True)
    assert values[3] == pytest.approx(1.0 if own_id("red") > own_id("sea") else 5 / 6)
    assert records.slices["kind"] == ("a", "a", "b", "b")
    assert first.result.main_score == "map_at_1000"
    assert first.result.counts["queries_without_relevant"] == 1
    assert first.result.counts["documents"] == 5
    (second,) = local.run([model], [task(tmp_path)], store, options)
    assert second.status == "skipped"


def own_id(text: str) -> str:
    """The id of a document."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def test_a_cross_encoder_orders_the_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its scores decide; the signature names it, and what it lifts stands beside."""
    texts = {row["query"]: [*row["positive"], *row["negative"]] for row in ROWS}
    table = {(query, text): float(-len(text)) for query, found in texts.items() for text in found}
    model = save_tiny_cross_encoder(tmp_path / "cross")
    monkeypatch.setattr(rerankers, "load", lambda *_: TableReranker(table))
    plain, own = task(tmp_path), task(tmp_path, rerank={"model": str(model), "depth": 50})
    payload = own.load()
    protocol = own.protocol(payload)
    assert protocol["rerank"] == {"model": rerankers.resolve(own.second.options.spec).spec.digest, "depth": 50}  # type: ignore[union-attr]
    assert {**protocol, "rerank": None} == {**plain.protocol(payload), "rerank": None}
    encoder = loading.load_system(loading.resolve(HASHING))
    found = own.equipped(RuntimeOptions(), None, lambda: encoder).collect(payload, encoder, Silent())
    # Shorter first: "red", "sea" (3), "a red fox" (9); "red" (3), "blue sea" (8); "red"; "red"/"sea" (3), "green" (5).
    assert found.records.columns["map_at_1000"][:3].tolist() == pytest.approx([1 / 3, 1.0, 0.0])
    assert found.records.columns["lift_map_at_1000"][:3].tolist() == pytest.approx([-2 / 3, 0.5, 0.0])
    assert found.counts["pairs_reranked"] == 9
    names = [metric.name for metric in own.metrics(payload)]
    assert "lift_map_at_1000" in names
    assert "lift_map_at_1000" not in [metric.name for metric in plain.metrics(payload)]
    assert set(names) <= found.records.columns.keys()


def test_contradictions_are_told(tmp_path: Path) -> None:
    """A text that is relevant and not: the greater grade counts, and the line is named."""
    own = task(tmp_path)
    write_jsonl(tmp_path / "test.jsonl", [*ROWS, {"query": "x", "positive": ["a"], "negative": ["a", "b"]}])
    found = own.collect(own.load(), loading.load_system(loading.resolve(HASHING)), Silent())
    assert found.warnings[0] == "1 candidate has several grades for one query, such as in line 5: the greatest counts."
    assert found.counts["candidates_with_several_grades"] == 1


def test_mistakes_are_told_before_anything_runs(tmp_path: Path) -> None:
    """A metric of another kind, a file of another split, a cross-encoder that isn't there."""
    write_jsonl(tmp_path / "test.jsonl", ROWS)

    def bind(**fields: Any) -> RerankingTask:
        spec = {"name": "own", "type": "reranking", "dataset": DatasetRef(path="test.jsonl"), **fields}
        return TASK.bind(TaskSpec(**spec), root=tmp_path)

    with pytest.raises(ConfigError, match="'accuracy' is not a metric of reranking"):
        bind(main_score="accuracy")
    with pytest.raises(ConfigError, match=r"test\.jsonl is not the split 'dev'"):
        bind(dataset=DatasetRef(path="test.jsonl", split="dev"))
    with pytest.raises(ModelError, match=r"Task 'own', rerank: .*nowhere"):
        bind(options={"rerank": "./nowhere"})


def test_a_second_stage_needs_a_ranking(tmp_path: Path) -> None:
    """STS has none."""
    from datasets import Dataset, DatasetDict

    from embeval.mteb_bridge.loading import Loaded
    from embeval.mteb_bridge.tasks import _own

    rows = DatasetDict({"test": Dataset.from_dict({"sentence1": ["a"], "sentence2": ["b"], "score": [1.0]})})
    loaded: Loaded = _own.loaded(
        "x", task_class="AbsTaskSTS", type_name="STS", main_score="cosine_spearman", dataset=rows, split="test"
    )
    own = task(tmp_path, rerank=str(save_tiny_cross_encoder(tmp_path / "cross")))
    with pytest.raises(EvaluationError, match="'rerank' fits tasks in which documents are ranked"):
        own.protocol(loaded)


def test_queries_that_leave_nothing_to_rank(tmp_path: Path) -> None:
    """One of relevant candidates alone is counted and told; where all are such, or have none, there is no number."""
    alone = {"query": "green", "positive": ["green", "red"], "negative": []}
    own = task(tmp_path)
    write_jsonl(tmp_path / "test.jsonl", [*ROWS, alone])
    collected = own.collect(own.load(), loading.load(loading.resolve(HASHING)), Silent())
    assert collected.counts["queries_with_only_relevant"] == 1
    assert collected.warnings[0] == "1 query has relevant candidates only: MAP is 1 in any order."
    write_jsonl(tmp_path / "test.jsonl", [alone, ROWS[2]])
    with pytest.raises(DataError, match=r"test.jsonl: no query has both relevant candidates and others"):
        own.load()


def test_two_models_can_be_compared_and_held_against_each_other(tmp_path: Path) -> None:
    """Every candidate is ranked, though MAP looks at a thousand and no query has so many."""
    own, store = task(tmp_path), ResultStore(tmp_path / "results")
    models = [ModelSpec(name=f"h{dim}", backend="hashing", args={"dim": dim}) for dim in (64, 2048)]
    options = local.RunOptions(statistics=StatisticsOptions(resamples=100))
    sides = [evidence.gather(store, done.stored[-1]) for done in local.run(models, [own], store, options)]
    assert sides[0].result.counts["most_candidates"] == 3
    assert [side.too_short_for("map_at_1000") for side in sides] == [None, None]
