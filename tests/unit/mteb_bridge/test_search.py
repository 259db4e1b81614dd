"""Retrieval and reranking of mteb through our search: mteb's numbers, from a record per query."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest

from embeval import metrics
from embeval.core.ir import Run, TieRule
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Collected, EncoderInfo, Hybrid, System, TaskRef
from embeval.core.specs import DatasetRef, ModelSpec, TaskSpec
from embeval.encoders import loading as encoders
from embeval.errors import EvaluationError
from embeval.mteb_bridge import evaluation
from embeval.mteb_bridge.categories import Parity, Setting
from embeval.mteb_bridge.categories.retrieval import CATEGORY
from embeval.mteb_bridge.cross_encoder import BridgedReranker
from embeval.mteb_bridge.loading import Loaded, eager
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.mteb_bridge.search import BridgedSearch, Reranking
from embeval.mteb_bridge.tasks import _own
from embeval.mteb_bridge.tasks._bridged import BridgedTask
from tests.support.doubles import TableReranker

MOCKS = (
    "MockRetrievalTask",
    "MockRetrievalDialogTask",
    "MockMultilingualRetrievalTask",
    "MockInstructionRetrieval",
    "MockRerankingTask",
    "MockInstructionReranking",
    "MockMultilingualInstructionReranking",
)
REFERENCE = TaskRef(name="x", type="Retrieval")
WORDS = ("red", "green", "blue", "cyan", "pink", "gold", "grey", "plum", "teal", "rust", "lime", "navy")


@dataclass(frozen=True)
class Given(BridgedTask):
    """A task whose data is at hand."""

    given: Loaded

    def load(self) -> Loaded:
        return self.given


class Spoken:
    """A ranker that hands over what a table says, and nothing for other queries."""

    def __init__(self, scores: Mapping[str, Mapping[str, float]]) -> None:
        self.scores = scores
        self.spec = ModelSpec(name="spoken", revision="builtin:1")
        self.info = EncoderInfo(
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
        rows = [(query, doc, score) for query, hits in self.scores.items() for doc, score in hits.items()]
        return Run.from_rows(rows, ties, query_ids)


def hashing(dim: int = 16) -> System:
    """A bag of words in few dimensions, so that vectors of different texts differ and meet."""
    return encoders.load(encoders.resolve(ModelSpec(name="h", backend="hashing", args={"dim": dim})))


def mock(name: str, parity: Parity = "embeval") -> Loaded:
    """A mock task of mteb."""
    from mteb.mocks import mock_tasks

    task = getattr(mock_tasks, name)()
    task.load_data()
    eager(task)
    return Loaded(Setting(task=task, split="test", subsets=tuple(task.hf_subsets), parity=parity), CATEGORY)


def own(
    qrels: Mapping[str, Mapping[str, int]],
    *,
    queries: Mapping[str, str] | None = None,
    corpus: Mapping[str, str] | None = None,
    top_ranked: Mapping[str, Sequence[str]] | None = None,
    parity: Parity = "embeval",
    main_score: str = "ndcg_at_10",
    **attributes: Any,
) -> Loaded:
    """A task of mteb's class on data in memory; ids are texts unless there are others."""
    from datasets import Dataset

    queries = queries or {query: query for query in qrels}
    corpus = corpus or {doc: doc for grades in qrels.values() for doc in grades}
    rows = {
        "corpus": Dataset.from_dict({"id": list(corpus), "text": list(corpus.values())}),
        "queries": Dataset.from_dict({"id": list(queries), "text": list(queries.values())}),
        "relevant_docs": {query: dict(grades) for query, grades in qrels.items()},
        "top_ranked": None if top_ranked is None else {query: list(docs) for query, docs in top_ranked.items()},
    }
    loaded = _own.loaded(
        "own",
        task_class="AbsTaskRetrieval",
        type_name="Retrieval",
        main_score=main_score,
        dataset={"default": {"test": rows}},
        split="test",
        attributes=attributes,
    )
    return Loaded(replace(loaded.setting, parity=parity), CATEGORY)


def collected(loaded: Loaded, system: System) -> Collected:
    """What a task of ours tells of a system."""
    return bridged(loaded).collect(loaded, system, Silent())


def bridged(loaded: Loaded) -> Given:
    """The task."""
    return Given(TaskSpec(name="own", type="mteb", dataset=DatasetRef(path="own")), loaded)


def value(found: Collected, name: str) -> float:
    """A metric by its name alone, from the records."""
    metric = metrics.get(name)
    columns = {each: found.records.columns[each] for each in metric.columns}
    kept = ~np.isnan(columns[metric.columns[0]])
    result = metric.aggregate({each: column[kept] for each, column in columns.items()})
    assert isinstance(result, float)
    return result


def by_mteb(loaded: Loaded, model: Any) -> dict[str, Mapping[str, Any]]:
    """mteb's scores by sub-set."""
    return {subset: outcome.scores for subset, outcome in evaluation.run(loaded.instance(), CATEGORY, model).items()}


def colours(n_queries: int = 12, n_documents: int = 40) -> Loaded:
    """Queries and documents of random colours, each query with a few documents of several grades."""
    random = np.random.default_rng(4)
    corpus = {f"d{row}": " ".join(random.choice(WORDS, 4)) for row in range(n_documents)}
    queries = {f"q{row}": " ".join(random.choice(WORDS, 3)) for row in range(n_queries)}
    qrels = {
        query: {f"d{doc}": int(random.integers(0, 4)) for doc in random.choice(n_documents, 6, replace=False)}
        for query in queries
    }
    return own(qrels, queries=queries, corpus=corpus)


@pytest.mark.parametrize("name", MOCKS)
def test_mock_tasks_score_as_with_mtebs_own_search(name: str) -> None:
    """Encoding, search and scoring of mteb 2.26 on the same encoder: its values from our records, to its 5 digits."""
    loaded, system = mock(name), hashing()
    theirs = by_mteb(loaded, BridgedEncoder(system, REFERENCE))  # type: ignore[arg-type]
    found = collected(loaded, system)
    assert len(found.records) == 2 * len(loaded.setting.subsets)
    labels = np.array(found.records.slices.get("subset", ("default",) * len(found.records)))
    for subset in loaded.setting.subsets:
        for metric in ("ndcg_at_1", "ndcg_at_10", "map_at_1000", "mrr_at_10", "recall_at_1", "precision_at_3"):
            ours = found.records.columns[metric][labels == subset].mean()
            assert ours == pytest.approx(theirs[subset][metric], abs=6e-6), (subset, metric)
    assert found.also == ()


def test_graded_judgments_score_as_with_mtebs_own_search() -> None:
    """Twelve queries, forty documents, every metric that both have."""
    loaded, system = colours(), hashing(64)
    theirs = by_mteb(loaded, BridgedEncoder(system, REFERENCE))["default"]  # type: ignore[arg-type]
    found = collected(loaded, system)
    names = [name for name in CATEGORY.metrics(loaded.setting) if not name.startswith("judged")]
    assert len(names) == 42
    for name in names:
        assert value(found, name) == pytest.approx(theirs[name.replace("success_at", "hit_rate_at")], abs=6e-6), name
    assert found.run is not None
    assert found.run.query_ids == tuple(f"q{row}" for row in range(12))
    assert found.records.slices.keys() >= {"query_length", "relevant_documents"}


def test_queries_without_a_ranking_count_zero() -> None:
    """F5: the run has q1 only. Ours is 0.5; mteb's class leaves q2 out, and its 1.0 stands beside ours."""
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    found = collected(own(qrels), Spoken({"q1": {"d1": 1.0}}))
    assert value(found, "ndcg_at_10") == 0.5
    assert "mteb_ndcg_at_10" in found.also
    assert value(found, "mteb_ndcg_at_10") == 1.0
    assert by_mteb(own(qrels), BridgedSearch(Spoken({"q1": {"d1": 1.0}}), REFERENCE, complete=False))["default"][
        "ndcg_at_10"
    ] == pytest.approx(1.0)
    sentence = f"mteb {version('mteb')} gives ndcg_at_10 1.0000 here: it leaves out 1 query without a ranking"
    assert f"{sentence}, which counts 0 in ours." in found.warnings
    assert found.counts["queries_without_ranking"] == 1
    assert CATEGORY.metrics(own(qrels, parity="mteb").setting)[:2] == ("mteb_ndcg_at_10", "ndcg_at_10")


def test_an_encoder_that_has_no_candidates_is_not_left_out() -> None:
    """mteb's own wrapper has an entry for each query, which counts 0; so there is nothing to tell."""
    loaded = own({"q1": {"d1": 1}, "q2": {"d2": 1}}, top_ranked={"q1": ["d1", "d2"]})
    theirs = by_mteb(loaded, BridgedEncoder(hashing(), REFERENCE))["default"]  # type: ignore[arg-type]
    found = collected(loaded, hashing())
    assert value(found, "recall_at_10") == theirs["recall_at_10"] == 0.5
    assert found.also == ()


def test_what_is_no_hit_of_a_query_is_left_out() -> None:
    """``ignore_identical_ids``: the document that is the query itself."""
    qrels = {"a b": {"a c": 1}, "a c": {"a b": 1}}
    corpus = {"a b": "a b", "a c": "a c", "d": "d"}
    loaded = own(qrels, corpus=corpus, ignore_identical_ids=True)
    assert value(collected(loaded, hashing()), "ndcg_at_1") == 1.0
    assert value(collected(own(qrels, corpus=corpus), hashing()), "ndcg_at_1") == 0.0


def test_every_kind_of_system_ranks_candidates() -> None:
    """Only a query's own candidates, whether by vectors, by BM25 or by both."""
    loaded = own(
        {"red fox": {"d1": 1}, "blue sea": {"d2": 1}},
        corpus={"d1": "red fox", "d2": "blue sea wave", "d3": "red sea", "d4": "red fox blue sea"},
        top_ranked={"red fox": ["d1", "d3"], "blue sea": ["d2", "d3"]},
    )
    bm25 = encoders.load_system(encoders.resolve(ModelSpec(name="bm25", backend="bm25")))
    encoder = hashing(512)
    assert not isinstance(encoder, Hybrid)
    assert not isinstance(bm25, Hybrid)
    both = Hybrid(spec=encoder.spec, info=encoder.info, parts=(encoder, bm25))
    for system in (encoder, bm25, both):
        run = collected(loaded, system).run
        assert run is not None
        assert [doc for doc, _ in run.hits("red fox")] == ["d1", "d3"]
        assert [doc for doc, _ in run.hits("blue sea")] == ["d2", "d3"]


def test_a_second_stage_scores_as_mtebs_cross_encoder() -> None:
    """mteb's wrapper of cross-encoders with the same reranker: the same values; lift and first stage beside them."""
    loaded = own(
        {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 0, "d3": 1}},
        corpus={"d1": "one", "d2": "two", "d3": "three"},
        top_ranked={"q1": ["d1", "d2", "d3"], "q2": ["d1", "d3"]},
        main_score="map_at_1000",
    )
    table = {("q1", "one"): 0.1, ("q1", "two"): 0.7, ("q1", "three"): 0.3, ("q2", "one"): -1.0, ("q2", "three"): 2.0}
    theirs = by_mteb(loaded, BridgedReranker(TableReranker(table)))["default"]
    model = BridgedSearch(hashing(), REFERENCE, second=Reranking(TableReranker(table), 10))
    setting = loaded.instance()
    gathered = CATEGORY.gather(setting, evaluation.run(setting, CATEGORY, model), model)
    columns = gathered.records.columns
    assert columns["map_at_1000"].tolist() == pytest.approx([1 / 3, 1.0])
    assert columns["map_at_1000"].mean() == pytest.approx(theirs["map_at_1000"], abs=6e-6)
    assert columns["lift_map_at_1000"].tolist() == pytest.approx(
        (columns["map_at_1000"] - columns["first_stage_map_at_1000"]).tolist()
    )
    assert columns["oracle_map_at_1000"].tolist() == [1.0, 1.0]
    assert model.summary()[0]["pairs_reranked"] == 5


def test_the_content_hash_speaks_of_what_can_change_a_number() -> None:
    """Texts, grades and candidates; not the order of rows, nor queries without judgments."""
    base = own({"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}})
    assert own({"q2": {"d2": 1}, "q1": {"d2": 0, "d1": 1}}).data_hash == base.data_hash
    more = {"q1": "q1", "q2": "q2", "q3": "q3"}
    assert own({"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}}, queries=more).data_hash == base.data_hash
    different = [
        own({"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 1}}),
        own({"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}}, corpus={"d1": "d1", "d2": "other"}),
        own({"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}}, top_ranked={"q1": ["d1"], "q2": ["d2"]}),
        own({"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}}, ignore_identical_ids=True),
    ]
    assert len({each.data_hash for each in (base, *different)}) == 5


def test_evaluating_changes_nothing() -> None:
    """mteb filters its own data while it evaluates; a second run, and the hash, are the same."""
    loaded = colours()
    before = copy.deepcopy(loaded.data_hash)
    first, second = collected(loaded, hashing()), collected(loaded, hashing())
    assert np.array_equal(first.records.columns["ndcg_at_10"], second.records.columns["ndcg_at_10"])
    assert Loaded(loaded.setting, CATEGORY).data_hash == before


def test_an_unknown_main_score_is_told() -> None:
    """By the nearest name of a metric that there is."""
    spec = TaskSpec(name="own", type="mteb", dataset=DatasetRef(path="own"), main_score="ndcg_at_11")
    with pytest.raises(EvaluationError, match=r"'ndcg_at_11' is not one of its metrics\. Did you mean 'ndcg_at_1"):
        Given(spec, mock("MockRetrievalTask")).metrics(mock("MockRetrievalTask"))


def test_the_ranking_of_all_sub_sets_has_the_documents_of_each() -> None:
    """Each query's hits and scores are those of its sub-set alone, under names with the sub-set."""
    found = collected(mock("MockMultilingualRetrievalTask"), hashing())
    assert found.run is not None
    subsets = {query.partition("/")[0] for query in found.run.query_ids}
    assert len(subsets) > 1
    assert found.counts["queries_encoded"] == len(found.run.query_ids)
    for subset in subsets:
        loaded = mock("MockMultilingualRetrievalTask")
        alone = collected(replace(loaded, setting=replace(loaded.setting, subsets=(subset,))), hashing()).run
        assert alone is not None
        for query in alone.query_ids:
            hits = [(f"{subset}/{doc}", score) for doc, score in alone.hits(query)]
            assert found.run.hits(f"{subset}/{query}") == hits


def test_documents_are_put_together_as_mteb_does() -> None:
    """Title and text with spaces at the ends gone, the first of two with one id, as mteb's own loaders do."""
    from datasets import Dataset
    from mteb._create_dataloaders import _corpus_to_dict

    from embeval.mteb_bridge import retrieval_data

    rows = [("1", "Title", "text "), ("2", "", " alone"), ("3", "Only title", ""), ("1", "Another", "text")]
    corpus = Dataset.from_dict(dict(zip(("id", "title", "text"), map(list, zip(*rows, strict=True)), strict=True)))
    found = retrieval_data.documents(corpus)
    assert found.ids == ("1", "2", "3")
    assert found.texts == ("Title text", "alone", "Only title")
    theirs = [_corpus_to_dict(row)["text"] for row in corpus]
    assert list(found.texts) == theirs[:3]


def test_queries_of_one_group_are_drawn_together() -> None:
    """Intervals of a value per pair of queries must not take the two for independent."""

    def scores(*_: Any, **__: Any) -> dict[str, float]:
        return {"paired_accuracy": 0.0}

    queries = {"a_q1": "red", "a_q2": "blue", "b_q1": "pink", "b_q2": "gold"}
    corpus = {"d1": "red pink", "d2": "blue gold"}
    qrels = {query: {"d1" if query.endswith("1") else "d2": 1} for query in queries}
    loaded = own(qrels, queries=queries, corpus=corpus, main_score="paired_accuracy", task_specific_scores=scores)
    assert collected(loaded, hashing()).records.clusters == ("a", "a", "b", "b")


def test_no_metric_at_a_rank_that_no_document_has() -> None:
    """Of a task that takes the first 5, nothing is told at 10 or 1000."""
    loaded = own({"q": {"d": 1}}, main_score="ndcg_at_5")
    loaded.setting.task._top_k = 5
    names = [metric.name for metric in bridged(loaded).metrics(loaded)]
    assert names[0] == "ndcg_at_5"
    assert {name.rpartition("_")[2] for name in names} == {"1", "3", "5"}
