"""Faults that other tools shipped, on the way through mteb's task classes: its own tasks and one's own files.

The same inputs and right values as in ``test_faults``, by hand or by pytrec_eval-terrier 0.5.11 as noted there.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval import metrics
from embeval.core import strict_json
from embeval.core.progress import Silent
from embeval.core.protocols import Collected, System, Undefined
from embeval.core.specs import DatasetRef, ModelSpec, Role, StatisticsOptions, TaskSpec
from embeval.encoders import loading as encoders
from embeval.errors import DataError
from embeval.mteb_bridge.loading import Loaded, eager
from embeval.mteb_bridge.tasks import _own
from embeval.mteb_bridge.tasks._bridged import BridgedTask
from embeval.runner import local
from embeval.store.results import ResultStore
from embeval.tasks import TASK_TYPES
from tests.support.data import write_jsonl
from tests.support.doubles import TableEncoder
from tests.support.models import save_tiny_model

RANKED = ("ndcg_at_10", "mrr_at_10", "map_at_10", "recall_at_10")
SAME = {"a": [1.0], "m": [1.0], "z": [1.0], "2": [1.0], "q": [1.0]}
"""Texts that are all alike."""


@dataclass(frozen=True)
class Given(BridgedTask):
    """A task whose data is at hand."""

    given: Loaded

    def load(self) -> Loaded:
        return self.given


def retrieval(
    qrels: Mapping[str, Mapping[str, int]],
    docs: Sequence[str],
    *,
    queries: Sequence[str] = (),
    candidates: Mapping[str, Sequence[str]] | None = None,
    **attributes: Any,
) -> Loaded:
    """Data of mteb's class of retrieval and reranking; ids are texts."""
    queries = queries or list(qrels)
    rows = {
        "corpus": table(id=docs, text=docs),
        "queries": table(id=queries, text=queries),
        "relevant_docs": {query: dict(grades) for query, grades in qrels.items()},
        "top_ranked": None if candidates is None else {query: list(given) for query, given in candidates.items()},
    }
    return task_of("AbsTaskRetrieval", "Retrieval", "ndcg_at_10", {"default": {"test": rows}}, **attributes)


def task_of(task_class: str, kind: str, main_score: str, dataset: Any, **attributes: Any) -> Loaded:
    """A task of one of mteb's classes."""
    found = _own.loaded(
        "own",
        task_class=task_class,
        type_name=kind,
        main_score=main_score,
        dataset=dataset,
        split="test",
        attributes=attributes,
    )
    eager(found.setting.task)
    return found


def table(**columns: Sequence[Any]) -> Any:
    """A data set of the hub's kind."""
    from datasets import Dataset

    return Dataset.from_dict({name: list(values) for name, values in columns.items()})


def bridged(loaded: Loaded) -> Given:
    """The task."""
    return Given(TaskSpec(name="own", type="mteb", dataset=DatasetRef(path="own")), loaded)


def collected(loaded: Loaded, system: System) -> Collected:
    """What the task tells of a system."""
    return bridged(loaded).collect(loaded, system, Silent())


def values(found: Collected, *names: str) -> list[float | str]:
    """Metrics from the items, to five decimals; why, where one is undefined."""
    given = []
    for name in names:
        metric = metrics.get(name)
        value = metric.aggregate({each: found.records.columns[each] for each in metric.columns})
        given.append(value.reason if isinstance(value, Undefined) else round(value, 5))
    return given


def own_file(kind: str, path: Path, **options: strict_json.Json) -> Any:
    """A task on files of one's own."""
    spec = TaskSpec(name="own", type=kind, dataset=DatasetRef(path=str(path)), options=options)
    return TASK_TYPES.get(kind).bind(spec, root=path.parent)


def loaded_model(spec: ModelSpec) -> Any:
    """The model of a spec."""
    return encoders.load(encoders.resolve(spec))


class TestRankings:
    """Retrieval and reranking."""

    @pytest.mark.parametrize("order", list(itertools.permutations("amz")))
    def test_f1_a_constant_scorer(self, order: Sequence[str]) -> None:
        """Ranking z, m, a whatever the order of the corpus, or of the candidates: MRR 1/2, nDCG 0.63093, MAP 1/2."""
        expected = [0.63093, 0.5, 0.5, 1.0]
        for candidates in (None, {"q": order}):
            loaded = retrieval({"q": {"m": 1}}, order, candidates=candidates)
            assert values(collected(loaded, TableEncoder(SAME)), *RANKED) == expected

    def test_f2_a_document_is_not_lost_for_its_id(self) -> None:
        """Query 2 and document 2: kept where the task doesn't say otherwise, left out where it does."""
        vectors = {"2": [2.0], "1": [3.0], "3": [1.0]}
        for dropped, expected in ((False, [1.0, 1.0]), (True, [0.66667, 0.76536])):
            loaded = retrieval({"2": {"1": 1, "2": 1, "3": 1}}, ["1", "2", "3"], ignore_identical_ids=dropped)
            found = collected(loaded, TableEncoder(vectors, similarity="dot"))
            assert values(found, "recall_at_3", "ndcg_at_3") == expected

    def test_f3_f4_judgments_that_are_empty_zero_or_of_a_ghost(self) -> None:
        """q2 stays out, q3 counts 0, the ghost is told: nDCG (0.61315 + 0) / 2 and recall (1/2 + 0) / 2."""
        qrels = {"q1": {"d1": 1, "ghost": 1}, "q2": {}, "q3": {"d1": 0, "ghost": 0}}
        vectors = {"d1": [1.0], "d2": [0.5], "q1": [1.0], "q2": [1.0], "q3": [1.0]}
        for _ in range(3):
            found = collected(retrieval(qrels, ["d1", "d2"]), TableEncoder(vectors, similarity="dot"))
            assert found.records.ids == ("q1", "q3")
            assert values(found, "ndcg_at_10", "recall_at_10") == [pytest.approx(0.61315 / 2, abs=1e-5), 0.25]
            assert found.counts["queries_without_relevant"] == 1
            assert "1 relevant document not in the corpus, so recall can't exceed 0.5000." in found.warnings

    def test_f6_average_precision_is_over_all_relevant_documents(self) -> None:
        """b is relevant and no candidate: AP 1/2. A candidate that is given twice counts once."""
        vectors = {"q": [1.0], "a": [3.0], "b": [2.5], "x": [2.0], "y": [1.0]}
        for given in (["a", "x", "y"], ["a", "a", "x"]):
            loaded = retrieval({"q": {"a": 1, "b": 1}}, ["a", "b", "x", "y"], candidates={"q": given})
            found = collected(loaded, TableEncoder(vectors, similarity="dot"))
            assert values(found, "map_at_10", "recall_at_10", "mrr_at_10") == [0.5, 0.5, 1.0]

    @pytest.mark.parametrize("order", list(itertools.permutations(["a", "m", "2"])))
    def test_g16_the_first_result_is_the_same_in_any_order(self, order: Sequence[str]) -> None:
        """Three documents tie, and the task skips the first, which is m, the largest id: a and 2 are left."""
        loaded = retrieval({"2": {"a": 1}}, order, skip_first_result=True)
        found = collected(loaded, TableEncoder(SAME))
        assert found.run is not None
        assert [doc for doc, _ in found.run.hits("2")] == ["a", "2"]
        assert values(found, "mrr_at_10") == [1.0]

    def test_f8_g13_queries_and_documents_have_their_prompts(self, tmp_path: Path) -> None:
        """One text as query and as document: the vector of each is the one that its prompt gives."""
        prompts = {"query": "red ", "document": "blue blue "}
        encoder = loaded_model(ModelSpec(name=str(save_tiny_model(tmp_path / "model", prompts=prompts))))
        found = collected(retrieval({"key": {"key": 1}}, ["key"], queries=["key"]), encoder)
        query, document = (encoder.encode(["key"], role=role).vectors[0] for role in (Role.QUERY, Role.DOCUMENT))
        assert found.prompts == prompts
        assert found.run is not None
        ((_, score),) = found.run.hits("key")
        assert score == pytest.approx(float(query @ document), abs=1e-6)
        assert score < 0.999


class TestPairs:
    """Pair classification, STS and summarization."""

    @pytest.mark.parametrize(
        ("labels", "expected", "of_mteb"),
        [
            ([1, 1, 1, 1], [1.0, 1.0], [0.75, 0.85714]),
            ([0, 1, 1, 1], [0.75, 0.85714, 0.63889], [0.5, 0.66667, 0.63889]),
        ],
    )
    def test_f19_every_cut_is_tried(self, labels: list[int], expected: list[float], of_mteb: list[float]) -> None:
        """Scores .9 .8 .7 .6: that every pair is accepted is tried too. mteb 2.26's values stand beside."""
        vectors = {"x": [1.0, 0.0], **{str(c): [c, float(np.sqrt(1 - c * c))] for c in (0.9, 0.8, 0.7, 0.6)}}
        rows = table(sentence1=["x"] * 4, sentence2=["0.9", "0.8", "0.7", "0.6"], labels=labels)
        loaded = task_of("AbsTaskPairClassification", "PairClassification", "max_ap", {"default": {"test": rows}})
        found = collected(loaded, TableEncoder(vectors))
        names = ("cosine_accuracy", "cosine_f1", "cosine_ap")[: len(expected)]
        assert values(found, *names) == expected
        assert values(found, *(f"mteb_{name}" for name in names)) == of_mteb

    def test_f12_an_empty_text_has_cosine_0(self, tmp_path: Path, tiny_model: Path) -> None:
        """Of a pair and of a summary, although a BERT gives the empty text a vector; counted and told."""
        encoder = loaded_model(ModelSpec(name=str(tiny_model)))
        pairs = [("", "", 0), ("key", "   ", 0), ("key", "key", 1)]
        rows = [{"sentence1": one, "sentence2": other, "label": label} for one, other, label in pairs]
        task = own_file("pair_classification", write_jsonl(tmp_path / "test.jsonl", rows))
        found = task.collect(task.load(), encoder, Silent())
        assert found.records.columns["cosine"].tolist() == pytest.approx([0.0, 0.0, 1.0])
        assert (found.counts["texts_empty"], found.counts["texts_zero_vectors"]) == (3, 3)
        assert values(found, "cosine_ap") == [1.0]
        row = {"human_summaries": ["key"], "machine_summaries": ["", "red", "key"], "relevance": [0, 1, 2]}
        task = own_file("summarization", write_jsonl(tmp_path / "summaries" / "test.jsonl", [row, row]))
        found = task.collect(task.load(), loaded_model(ModelSpec(name="h", backend="hashing")), Silent())
        # 0, 0 and 1 against 0, 1 and 2: ranks 1.5, 1.5, 3 have Spearman 0.5 / sqrt(1 / 3).
        assert values(found, "mean_cosine_spearman") == [0.86603]

    def test_f13_summaries_of_one_score_are_left_out_and_null(self, tmp_path: Path) -> None:
        """One of two texts has no value: it is counted, and JSON is strict. Of one text alone the score is null."""
        alike = {"human_summaries": ["key"], "machine_summaries": ["key"] * 3, "relevance": [1, 2, 3]}
        ranked = {"human_summaries": ["key"], "machine_summaries": ["red", "key", "key red"], "relevance": [0, 2, 1]}
        options = local.RunOptions(statistics=StatisticsOptions(resamples=100))
        for name, rows, expected in (("two", [alike, ranked], 1.0), ("one", [alike], None)):
            task = own_file("summarization", write_jsonl(tmp_path / name / "test.jsonl", rows))
            store = ResultStore(tmp_path / name / "results")
            (outcome,) = local.run([ModelSpec(name="h", backend="hashing")], [task], store, options)
            (stored,) = outcome.stored
            score = stored.result.scores["mean_cosine_spearman"]
            assert score.value == (None if expected is None else pytest.approx(expected))
            assert stored.result.counts["constant_input"] == 1
            assert any("(constant_input)" in each for each in stored.result.warnings)
            strict_json.loads(stored.path.read_text(encoding="utf-8"))

    def test_f14_what_is_cut_off_is_told(self, tmp_path: Path, tiny_model: Path) -> None:
        """Two texts of 401 words that differ in the last: both cut to 16 tokens, and alike."""
        rows = [
            {"sentence1": "night " * 400 + "needle", "sentence2": "night " * 400 + "other", "label": label}
            for label in (0, 1)
        ]
        task = own_file("pair_classification", write_jsonl(tmp_path / "test.jsonl", rows))
        found = task.collect(task.load(), loaded_model(ModelSpec(name=str(tiny_model))), Silent())
        assert found.counts["texts_truncated"] == 4
        warnings = " ".join(found.warnings)
        assert "4 of 4 texts cut to 16 tokens" in warnings
        assert "look the same to the model as another one, once cut." in warnings
        assert found.records.columns["cosine"].tolist() == pytest.approx([1.0, 1.0])


class TestHiddenLabels:
    """G6: a split whose labels are all -1, as those of hidden test sets are, is refused and no number."""

    def test_classification(self) -> None:
        """In the split that is evaluated, or in both."""
        shown, hidden = [0, 1] * 4, [-1] * 8
        for train, test, message in (
            (shown, hidden, "no row has a label that is in train, but -1 or the like"),
            (hidden, hidden, "train: all rows have the label -1"),
        ):
            texts = [f"text {row}" for row in range(8)]
            data = {"train": table(text=texts, label=train), "test": table(text=texts, label=test)}
            loaded = task_of("AbsTaskClassification", "Classification", "accuracy", data)
            with pytest.raises(DataError, match=message):
                bridged(loaded).metrics(loaded)

    def test_clustering(self) -> None:
        """V-measure would be 1 for every model."""
        texts = [f"text {row}" for row in range(8)]
        loaded = task_of(
            "AbsTaskClustering", "Clustering", "v_measure", {"test": table(sentences=texts, labels=[-1] * 8)}
        )
        with pytest.raises(DataError, match="all documents have the same label"):
            bridged(loaded).metrics(loaded)
        loaded = task_of(
            "AbsTaskClusteringLegacy",
            "Clustering",
            "v_measure",
            {"test": table(sentences=[texts, texts], labels=[[-1] * 8, [-1] * 8])},
        )
        with pytest.raises(DataError, match="all documents have the same label"):
            bridged(loaded).metrics(loaded)

    def test_pairs(self) -> None:
        """Neither 0 nor 1."""
        rows = table(sentence1=["a", "m"], sentence2=["z", "z"], labels=[-1, -1])
        loaded = task_of("AbsTaskPairClassification", "PairClassification", "max_ap", {"default": {"test": rows}})
        with pytest.raises(DataError, match="the label of a pair must be 0 or 1, not -1"):
            collected(loaded, TableEncoder(SAME))

    def test_scores(self) -> None:
        """Undefined, with the reason."""
        rows = table(sentence1=["a", "m", "z"], sentence2=["z", "z", "z"], score=[-1.0, -1.0, -1.0])
        loaded = task_of("AbsTaskSTS", "STS", "cosine_spearman", {"default": {"test": rows}})
        assert values(collected(loaded, TableEncoder(SAME)), "cosine_spearman") == ["constant_input"]


def test_g7_one_predicted_label_is_told(tmp_path: Path) -> None:
    """Seven of one label and three of the other, all predicted alike: accuracy 0.7, macro F1 0.41176, and a warning."""
    for split, counts in (("train", (3, 9)), ("test", (3, 7))):
        rows = [{"text": "key", "label": label} for label in (0, 1) for _ in range(counts[label])]
        write_jsonl(tmp_path / f"{split}.jsonl", rows)
    task = own_file("classification", tmp_path, samples_per_label=None)
    found = task.collect(task.load(), loaded_model(ModelSpec(name="h", backend="hashing")), Silent())
    assert values(found, "accuracy", "f1_over_1_fits") == [0.7, round(0.5 * 14 / 17, 5)]
    assert "1 classifier predicted one label for all texts." in found.warnings
