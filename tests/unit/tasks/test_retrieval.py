"""The retrieval task: options, chunks, slices, and metrics without the model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from embeval.core.ir import Run
from embeval.core.progress import Silent
from embeval.core.specs import DatasetRef, ModelSpec, Role, TaskSpec
from embeval.encoders import loading
from embeval.errors import ConfigError
from embeval.metrics import ranking
from embeval.retrieval import first_stage
from embeval.runner import local
from embeval.store.results import ResultStore
from embeval.tasks import retrieval
from embeval.tasks.retrieval import RetrievalTask
from tests.support.data import write_beir
from tests.support.doubles import TableEncoder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """40 documents, 6 queries with a kind, one of them unanswerable."""
    corpus = {f"d{number:02}": f"document {number} of the archive about key {number % 7}" for number in range(40)}
    queries = {f"q{number}": f"key {number} archive" for number in range(6)}
    qrels = {f"q{number}": {f"d{number:02}": 2, f"d{number + 7:02}": 1} for number in range(5)}
    folder = write_beir(tmp_path / "data", corpus=corpus, queries=queries, qrels=qrels)
    lines = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        line["kind"] = "even" if number % 2 == 0 else "odd"
    lines[5]["answerable"] = False
    (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def task_on(data: Path, **options: object) -> RetrievalTask:
    """The task with options."""
    spec = TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path=str(data)), options=options)
    return retrieval.TASK.bind(spec, root=Path())


def hashing() -> object:
    """The baseline."""
    return loading.load(loading.resolve(ModelSpec(name="h", backend="hashing")))


def test_small_chunks_give_the_same_ranking(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoded and searched 3 documents at a time: ranking, records and counts are equal."""
    task = task_on(data)
    whole = task.collect(task.load(), hashing(), Silent())  # type: ignore[arg-type]
    monkeypatch.setattr(first_stage, "CHUNK", 3)
    parts = task.collect(task.load(), hashing(), Silent())  # type: ignore[arg-type]
    assert whole.run is not None
    assert parts.run is not None
    assert np.array_equal(whole.run.docs, parts.run.docs)
    assert np.array_equal(whole.run.scores, parts.run.scores)
    assert whole.counts == parts.counts


def test_fields_of_the_queries_become_slices(data: Path) -> None:
    """``kind`` of each judged query; the unanswerable one is outside and counted."""
    task = task_on(data)
    collected = task.collect(task.load(), hashing(), Silent())  # type: ignore[arg-type]
    assert collected.records.ids == ("q0", "q1", "q2", "q3", "q4")
    assert collected.records.slices == {"kind": ("even", "odd", "even", "odd", "even")}
    assert collected.counts["queries_unanswerable"] == 1
    assert collected.counts["queries_without_judgments"] == 0


def test_a_judged_query_that_is_marked_unanswerable_does_not_count(data: Path) -> None:
    """Its judgments are there (grade 0 ones tell what was looked at), but neither numbers nor ranking have it."""
    edit_queries(data, {"q0": {"answerable": False}})
    task = task_on(data)
    collected = task.collect(task.load(), hashing(), Silent())  # type: ignore[arg-type]
    assert collected.records.ids == ("q1", "q2", "q3", "q4")
    assert collected.counts["queries_unanswerable"] == 2
    assert collected.run is not None
    rows = {query: dict(collected.run.hits(query)) for query in collected.run.query_ids}
    foreign = Run.from_dict({**rows, "q0": {"d00": 1.0}})  # a ranking from elsewhere may have it
    measured = retrieval.rank_and_measure(foreign, task.load(), ["ndcg_at_10"], task.options)
    assert measured.records.ids == collected.records.ids


def test_the_ceiling_of_recall_is_that_of_answerable_queries(data: Path) -> None:
    """q0 to q3 reach both of their documents, q4 one of two: (1 + 1 + 1 + 1 + 1/2) / 5; without q4 it is 1."""
    qrels = (data / "qrels" / "test.tsv").read_text(encoding="utf-8").replace("d11", "d99")
    (data / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")
    task = task_on(data, unreachable="keep")
    (warning,) = [each for each in warnings_of(task) if "not in the corpus" in each]
    assert warning == "1 relevant document not in the corpus, so recall can't exceed 0.9000."
    edit_queries(data, {"q4": {"answerable": False}})
    (warning,) = [each for each in warnings_of(task) if "not in the corpus" in each]
    assert warning.endswith("so recall can't exceed 1.0000.")


def warnings_of(task: RetrievalTask) -> tuple[str, ...]:
    """What the task says of its data and of the ranking of the baseline."""
    return tuple(task.collect(task.load(), hashing(), Silent()).warnings)  # type: ignore[arg-type]


def edit_queries(data: Path, fields: dict[str, dict[str, object]]) -> None:
    """Sets fields of queries."""
    lines = [json.loads(line) for line in (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    changed = [{**line, **fields.get(line["_id"], {})} for line in lines]
    (data / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in changed), encoding="utf-8")


def test_documents_of_one_text_are_told(data: Path) -> None:
    """They tie for every query, so that ids decide; empty ones are counted elsewhere."""
    lines = [json.loads(line) for line in (data / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        line["text"] = "same" if number < 3 else "" if number < 6 else line["text"]
    (data / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    task = task_on(data)
    collected = task.collect(task.load(), hashing(), Silent())  # type: ignore[arg-type]
    assert collected.counts["documents_same_text"] == 3
    assert collected.counts["documents_empty"] == 3
    assert "3 of 40 documents have the same text as another one: they tie for every query." in collected.warnings


def test_a_list_without_its_self_match_is_as_long_as_any_other(tmp_path: Path) -> None:
    """One more hit is searched for, and cut where there was no self-match to drop: depth 10 is 10 hits for both."""
    corpus = {f"d{number:02}": f"key {number} archive" for number in range(30)}
    queries = {"d00": "key 0 archive", "other": "key 0 archive"}
    folder = write_beir(
        tmp_path / "data", corpus=corpus, queries=queries, qrels={query: {"d01": 1} for query in queries}
    )
    task = task_on(folder, depth=10, self_match="drop")
    run = task.collect(task.load(), hashing(), Silent()).run  # type: ignore[arg-type]
    assert run is not None
    assert [len(run.hits(query)) for query in ("d00", "other")] == [10, 10]
    assert "d00" not in dict(run.hits("d00"))
    assert "d00" in dict(run.hits("other"))


def test_queries_that_count_for_nothing_are_not_encoded(data: Path) -> None:
    """The model sees queries with judgments or marked unanswerable, and all documents, each in its role."""
    task = task_on(data)
    payload = task.load()
    texts = [*payload.queries.values(), *payload.doc_texts]
    encoder = TableEncoder({text: [float(len(text)), 1.0] for text in texts})
    task.collect(payload, encoder, Silent())
    assert [(role, len(asked)) for role, asked in encoder.calls] == [(Role.QUERY, 6), (Role.DOCUMENT, 40)]


def test_other_cut_offs_come_from_the_stored_ranking(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """recall@7 is added without loading the model, and equals a run that asked for it at once."""
    model, store = ModelSpec(name="h", backend="hashing"), ResultStore(tmp_path / "results")
    (first,) = local.run([model], [task_on(data)], store, local.RunOptions())
    assert first.status == "done"
    wanted = task_on(data, cutoffs=[2, 7, 10])
    (fresh,) = local.run([model], [wanted], ResultStore(tmp_path / "fresh"), local.RunOptions())

    def must_not_load(*_: object) -> object:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(loading, "load_system", must_not_load)
    (again,) = local.run([model], [wanted], store, local.RunOptions())
    assert again.status == "rescored"
    assert again.result is not None
    assert fresh.result is not None
    assert again.result.scores == fresh.result.scores
    assert again.result.counts == fresh.result.counts
    assert again.result.warnings == fresh.result.warnings
    assert "recall_at_7" in again.result.scores
    assert "recall_at_5" not in again.result.scores
    (third,) = local.run([model], [wanted], store, local.RunOptions())
    assert third.status == "skipped"


def test_depth_bounds_ranking_and_metrics(data: Path) -> None:
    """12 documents kept: no metric beyond rank 10, and 12 hits a query."""
    task = task_on(data, depth=12)
    collected = task.collect(task.load(), hashing(), Silent())  # type: ignore[arg-type]
    assert collected.run is not None
    assert collected.run.docs.shape == (6, 12)  # 5 judged queries, and one that is marked unanswerable
    names = [metric.name for metric in task.metrics(task.load())]
    assert names == list(ranking.names((1, 3, 5, 10)))[3:4] + [
        n for n in ranking.names((1, 3, 5, 10)) if n != "ndcg_at_10"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 5}, "depth 5 is less than the cut-off of the main score 'ndcg_at_10'"),
        ({"cutoffs": []}, "cutoffs must be whole numbers from 1"),
        ({"cutoffs": [0]}, "cutoffs must be whole numbers from 1"),
        ({"cutoffs": ["10"]}, "cutoffs"),
        ({"ties": "doc_id"}, "ties"),
        ({"depht": 5}, "Did you mean 'depth'"),
    ],
)
def test_options_that_make_no_sense(data: Path, options: dict[str, object], message: str) -> None:
    """Refused before any data is read."""
    with pytest.raises(ConfigError, match=message):
        task_on(data, **options)


def test_main_score_must_be_a_ranking_metric(data: Path) -> None:
    """A correlation can't stand for retrieval."""
    spec = TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path=str(data)), main_score="cosine_spearman")
    with pytest.raises(ConfigError, match="'cosine_spearman' is not a metric of retrieval"):
        retrieval.TASK.bind(spec, root=Path())
