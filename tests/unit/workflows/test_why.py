"""Why queries fail, on a golden set whose ranking by the hashing baseline is plain to see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import embeval
from embeval.core.ir import Run, TieRule
from embeval.core.progress import Progress
from embeval.core.protocols import EncoderInfo
from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions
from embeval.encoders import loading
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, DataError, EvaluationError, UnknownNameError, UsageError
from embeval.store.results import ResultStore, Stored
from embeval.workflows import failures, report, stored_data, why
from embeval.workflows.why import Diagnosis
from tests.support.data import write_beir, write_pairs
from tests.support.doubles import TableEncoder

CORPUS = {
    "fox": "a quick red fox runs over the hill",
    "fox-copy": "a quick red fox runs over the hills",
    "kiln": "lime kilns of the northern valley",
    "dog": "one lazy dog sleeps all day",
    "cat": "cats chase mice at night",
}
QUERIES = {
    "good": "quick red fox runs over hill",
    "copy": "quick red fox runs over the hills",
    "gap": "lazy dog sleeps",
    "gone": "cats chase mice",
    "zero": "lime kilns",
    "open": "northern valley",
}
QRELS = {
    "good": {"fox": 1},
    "copy": {"fox": 1},
    "gap": {"kiln": 1},
    "gone": {"cat": 1, "dog": 1, "elsewhere": 1},
    "zero": {"kiln": 0},
}


def evaluated(folder: Path, results: Path, *, model: str = "hashing", **options: object) -> Stored:
    """The stored result of the baseline."""
    keys = {"data": folder.name, "unreachable": "keep", "cutoffs": [1, 3], "main_score": "ndcg_at_3", **options}
    embeval.evaluate(
        model,
        keys,
        results=results,
        runtime=RuntimeOptions(cache=False),
        statistics=StatisticsOptions(resamples=100),
    )
    (stored,) = ResultStore(results).find(task=folder.name)
    return stored


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results name data by paths that start from the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """The golden set, with a field that groups queries."""
    folder = write_beir(tmp_path / "golden", corpus=CORPUS, queries=QUERIES, qrels=QRELS)
    lines = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [{**line, "kind": "animal" if line["_id"] in ("good", "copy", "gap") else "place"} for line in lines]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def diagnosed(golden: Path, tmp_path: Path, **options: object) -> Diagnosis:
    """The diagnosis of its result."""
    store = ResultStore(tmp_path / "results")
    stored = evaluated(golden, tmp_path / "results")
    return why.diagnose(store, stored, stored_data.retrieval_data(stored), **options)  # type: ignore[arg-type]


def test_failing_queries_with_ranks_and_classes(golden: Path, tmp_path: Path) -> None:
    """The one in order is not among them, nor the one without judgments; lowest first."""
    found = diagnosed(golden, tmp_path)
    assert (found.metric, found.k) == ("ndcg_at_3", 3)
    by_id = {each.id: each for each in found.queries}
    assert set(by_id) == {"good", "copy", "gap", "gone", "zero"}
    assert by_id["good"].value == 1.0
    assert by_id["good"].classes == ()
    assert by_id["copy"].value == pytest.approx(1 / np.log2(3))
    assert by_id["copy"].hits[0][:2] == (1, "fox-copy")
    assert by_id["copy"].hits[0].grade is None
    assert [(each.doc, each.rank) for each in by_id["copy"].positives] == [("fox", 2)]
    assert by_id["copy"].classes == ("near_duplicate_competitor", "unjudged_hit", "wrong_order")
    assert by_id["gap"].hits[0].doc == "dog"
    assert {"lexical_gap", "unjudged_hit"} <= set(by_id["gap"].classes)
    gone = {each.doc: each for each in by_id["gone"].positives}
    assert (gone["elsewhere"].rank, gone["elsewhere"].reachable) == (None, False)
    assert gone["cat"][:4] == ("cat", 1, 1, True)
    assert "unreachable" in by_id["gone"].classes
    assert by_id["zero"].classes[0] == "nothing_relevant"
    assert [each.id for each in found.failing] == [each.id for each in found.queries if each.id != "good"]
    assert [each.value for each in found.queries] == sorted(each.value for each in found.queries)
    assert by_id["copy"].labels["kind"] == "animal"


def test_counts_by_class_leave_out_what_was_not_looked_at(golden: Path, tmp_path: Path) -> None:
    """The sums over the queries; the two that need more are named."""
    found = diagnosed(golden, tmp_path)
    assert [each.name for each in found.not_checked] == ["truncated_positive", "bm25_finds_it"]
    assert found.by_class == {
        name: sum(name in query.classes for query in found.failing)
        for name in failures.names()
        if name not in ("truncated_positive", "bm25_finds_it")
    }
    assert found.by_class["near_duplicate_competitor"] == 1


def test_another_metric_has_another_cut_off(golden: Path, tmp_path: Path) -> None:
    """success_at_1: the copy in front is a failure, of which the positive is beyond the cut-off."""
    found = diagnosed(golden, tmp_path, metric="success_at_1")
    assert (found.metric, found.k) == ("success_at_1", 1)
    assert why.one(found, "copy").value == 0.0
    assert "wrong_order" not in why.one(found, "copy").classes
    # Of three positives one fits, and it is there.
    assert why.one(found, "gone").classes == ()
    with pytest.raises(UnknownNameError, match="ndcg_at_3"):
        diagnosed(golden, tmp_path, metric="ndcg_at_4")


def test_a_value_below_1_that_can_t_be_better_is_no_failure(golden: Path, tmp_path: Path) -> None:
    """precision_at_3 with one positive, which is in front."""
    found = diagnosed(golden, tmp_path, metric="precision_at_3")
    assert why.one(found, "good").value == pytest.approx(1 / 3)
    assert why.one(found, "good").classes == ()


def test_queries_by_id_and_by_class(golden: Path, tmp_path: Path) -> None:
    """Names that are not known are told with those that are."""
    found = diagnosed(golden, tmp_path)
    assert [each.id for each in why.of_class(found, "near_duplicate_competitor")] == ["copy"]
    with pytest.raises(UnknownNameError, match="Did you mean 'lexical_gap'"):
        why.of_class(found, "lexical_gab")
    with pytest.raises(UnknownNameError, match="'goood'"):
        why.one(found, "goood")
    with pytest.raises(UsageError, match=r"not looked at. Add --limits MODEL"):
        why.of_class(found, "truncated_positive")


def test_what_is_not_in_the_ranking(golden: Path, tmp_path: Path) -> None:
    """With a depth of 1 the second of two is lost; what is not in the corpus is not, it is out of reach."""
    stored = evaluated(golden, tmp_path / "results", depth=1, cutoffs=[1], main_score="recall_at_1")
    found = why.diagnose(ResultStore(tmp_path / "results"), stored, stored_data.retrieval_data(stored))
    copy = why.one(found, "copy")
    assert [hit.doc for hit in copy.hits] == ["fox-copy"]
    assert copy.positives[0].rank is None
    assert "lost_in_first_stage" in copy.classes


# --- the data -------------------------------------------------------------------------------------------------------


def test_data_that_is_not_the_same_is_refused(golden: Path, tmp_path: Path) -> None:
    """One letter is enough; the message names the folder and what to do."""
    stored = evaluated(golden, tmp_path / "results")
    corpus = (golden / "corpus.jsonl").read_text(encoding="utf-8")
    copy = tmp_path / "elsewhere"
    golden.rename(copy)
    with pytest.raises(DataError, match="--golden FOLDER"):
        stored_data.retrieval_data(stored)
    assert stored_data.retrieval_data(stored, golden=copy).queries == QUERIES
    (copy / "corpus.jsonl").write_text(corpus.replace("lazy", "crazy"), encoding="utf-8")
    with pytest.raises(DataError, match=r"elsewhere: not the data that the result \w{8} was made from"):
        stored_data.retrieval_data(stored, golden=copy)


def test_data_of_a_catalogue_task_is_found(tmp_path: Path) -> None:
    """That of the package needs no path."""
    embeval.evaluate("hashing", "demo-docs", results=tmp_path, statistics=StatisticsOptions(resamples=0))
    (stored,) = ResultStore(tmp_path).find(task="demo-docs")
    assert len(stored_data.retrieval_data(stored).doc_ids) == 232


def test_a_result_without_a_ranking_is_refused(tmp_path: Path) -> None:
    """sts has pairs."""
    pairs = write_pairs(tmp_path / "pairs.jsonl", [("a b", "a b", 5.0), ("a b", "a c", 3.0), ("a b", "c d", 0.0)])
    embeval.evaluate("hashing", str(pairs), results=tmp_path / "results", statistics=StatisticsOptions(resamples=0))
    (stored,) = ResultStore(tmp_path / "results").find()
    with pytest.raises(UsageError, match="holds no ranking of a corpus: its task is of type sts"):
        stored_data.retrieval_data(stored)


# --- what the model cuts --------------------------------------------------------------------------------------------


def test_limits_are_found_word_by_word(golden: Path, tmp_path: Path) -> None:
    """The baseline counts words, so that what it keeps can be counted by hand; a shorter text is whole."""
    stored = evaluated(golden, tmp_path / "results", model="hashing:h,max_seq_length=3")
    limits = why.limits_of(
        stored, ModelSpec(name="h", backend="hashing", max_seq_length=3), RuntimeOptions(cache=False)
    )
    assert limits.kept("one two  three four five") == "one two  three"
    assert limits.kept("one two three") == "one two three"
    assert limits.kept("one-two three-four five") == "one-two"
    assert limits.kept("one-two-three-four five") == ""


def test_what_is_cut_off_shows_as_a_class(tmp_path: Path) -> None:
    """The words of the query are the last ones of a positive of which three are read."""
    corpus = {"long": "some words before the red fox", "other": "red lime", "more": "fox kiln"}
    folder = write_beir(tmp_path / "cut", corpus=corpus, queries={"q": "red fox"}, qrels={"q": {"long": 1}})
    stored = evaluated(folder, tmp_path / "results", model="hashing:h,max_seq_length=3")
    limits = why.limits_of(
        stored, ModelSpec(name="h", backend="hashing", max_seq_length=3), RuntimeOptions(cache=False)
    )
    data = stored_data.retrieval_data(stored)
    found = why.diagnose(ResultStore(tmp_path / "results"), stored, data, limits=limits)
    assert [each.id for each in why.of_class(found, "truncated_positive")] == ["q"]


def test_limits_of_another_model_are_refused(golden: Path, tmp_path: Path) -> None:
    """Also of the same one with another setting; and of one that doesn't tell."""
    stored = evaluated(golden, tmp_path / "results", model="hashing:h,max_seq_length=3")
    with pytest.raises(ConfigError, match="is not the model of the result"):
        why.limits_of(stored, ModelSpec(name="h", backend="hashing", max_seq_length=4), RuntimeOptions())


def test_limits_of_a_model_that_does_not_tell(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder that is no batched one."""
    stored = evaluated(golden, tmp_path / "results")
    monkeypatch.setattr(loading, "load", lambda *_: TableEncoder({"text": (1.0,)}))
    with pytest.raises(EvaluationError, match="doesn't tell what it cuts"):
        why.limits_of(stored, ModelSpec(name="hashing", backend="hashing"), RuntimeOptions())


# --- BM25 -----------------------------------------------------------------------------------------------------------


class ByOrder:
    """Ranks documents in the order of the corpus, whatever the query, and remembers the depth."""

    spec = ModelSpec(name="bm25", backend="bm25")
    info = EncoderInfo(
        dim=0,
        max_seq_length=None,
        similarity="dot",
        prompts={},
        pooling=None,
        n_parameters=0,
        device="cpu",
        num_threads=1,
        batch_tokens=1,
    )
    depth = 0

    def rank(
        self,
        doc_ids: Sequence[str],
        doc_texts: Sequence[str],
        query_ids: Sequence[str],
        query_texts: Sequence[str],
        *,
        depth: int,
        ties: TieRule,
        progress: Progress | None = None,
    ) -> Run:
        """The first documents."""
        self.depth = depth
        hits = {doc: -float(place) for place, doc in enumerate(doc_ids[:depth])}
        return Run.from_dict(dict.fromkeys(query_ids, hits))


def test_what_bm25_finds(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for the judged queries, as deep as the cut-off; ``kiln`` is third there and beyond the cut-off here."""
    ranker = ByOrder()
    asked: list[ModelSpec] = []

    def resolve(spec: ModelSpec) -> Located:
        asked.append(spec)
        return Located(spec, None)

    stored = evaluated(golden, tmp_path / "results")
    monkeypatch.setattr(loading, "resolve", resolve)
    monkeypatch.setattr(loading, "load_system", lambda _: ranker)
    data = stored_data.retrieval_data(stored)
    run = why.bm25_run(stored, data, why.cutoff(stored, None))
    assert asked == [ModelSpec(name="bm25", backend="bm25")]
    assert ranker.depth == 3
    assert run.query_ids == ("good", "copy", "gap", "gone", "zero")
    found = why.diagnose(ResultStore(tmp_path / "results"), stored, data, bm25=run)
    gap = why.one(found, "gap")
    assert gap.positives[0].rank is not None
    assert gap.positives[0].rank > 3
    assert [each.id for each in why.of_class(found, "bm25_finds_it")] == ["gap"]
    assert "bm25_finds_it" in found.by_class


# --- every slice ----------------------------------------------------------------------------------------------------


def test_every_slice_worst_first_and_small_ones_last(tmp_path: Path) -> None:
    """Of 11 queries the odd ones hit. A label of four comes last, and a slice with one label not at all."""
    corpus = {f"d{number}": f"word{number} alone" for number in range(11)} | {"x": "nothing of it"}
    queries = {f"q{number:02}": f"word{number}" for number in range(11)}
    qrels = {f"q{number:02}": {f"d{number}" if number % 2 else "x": 1} for number in range(11)}
    folder = write_beir(tmp_path / "slices", corpus=corpus, queries=queries, qrels=qrels)
    rows = [
        {
            "_id": query,
            "text": text,
            "half": "odd" if number % 2 else "even",
            "part": "small" if number < 4 else "large",
            "same": "same",
        }
        for number, (query, text) in enumerate(queries.items())
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    stored = evaluated(folder, tmp_path / "results", main_score="success_at_1")
    values = report.all_slices(ResultStore(tmp_path / "results"), stored)
    shown = [
        (each.slice, each.label, each.value.n_items, each.value.value)
        for each in values
        if each.slice in ("half", "part", "same")
    ]
    assert shown == [
        ("half", "even", 6, 0.0),
        ("part", "large", 7, pytest.approx(3 / 7)),
        ("half", "odd", 5, 1.0),
        ("part", "small", 4, 0.5),
    ]
    assert all(each.value.ci_low is not None for each in values)
    by_one = report.by_slice(ResultStore(tmp_path / "results"), stored, "half")
    assert [each.value for each in by_one] == [each.value for each in values if each.slice == "half"]
