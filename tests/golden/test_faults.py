"""Faults that other tools shipped, each with an input small enough to type and the right answer.

Right values are hand calculations or pytrec_eval-terrier 0.5.11, as noted. Where the fault is one of ranking, both
ways in are tested: searching with vectors, and scoring a ranking that came from elsewhere.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core import strict_json
from embeval.core.border import dump
from embeval.core.embeddings import Embeddings
from embeval.core.ir import Qrels, Run, TieRule, judge
from embeval.core.progress import Silent
from embeval.core.protocols import EncoderInfo, Undefined
from embeval.core.specs import DatasetRef, ModelSpec, RerankerSpec, Role, RuntimeOptions, StatisticsOptions, TaskSpec
from embeval.data.beir import RetrievalData, load_beir
from embeval.data.pairs import Pairs
from embeval.encoders import loading, locate, pooling
from embeval.encoders.cache import VectorCache
from embeval.encoders.encoder import BatchedEncoder
from embeval.encoders.shelves import Shelves
from embeval.errors import DataError, InvalidEmbeddingsError
from embeval.metrics import ranking
from embeval.metrics.correlation import Correlation
from embeval.rerankers import loading as rerankers
from embeval.rerankers.rerank import rerank
from embeval.runner import local
from embeval.store.results import ResultStore
from embeval.tasks import TASK_TYPES
from embeval.tasks.retrieval import Measured, RetrievalOptions, RetrievalTask, rank_and_measure
from embeval.tasks.sts import StsTask
from tests.support.data import write_beir, write_pairs
from tests.support.doubles import TableEncoder, rows
from tests.support.models import save_tiny_cross_encoder, save_tiny_model

NAMES = ("ndcg_at_10", "mrr_at_10", "map_at_10", "recall_at_10", "ndcg_at_3", "recall_at_3")


def data_for(qrels: Mapping[str, Mapping[str, int]], docs: Sequence[str], extra_queries: Sequence[str] = ()) -> Any:
    """Retrieval data whose texts are its ids."""
    queries = [*qrels, *extra_queries]
    return RetrievalData(
        doc_ids=tuple(docs), doc_texts=tuple(docs), queries={each: each for each in queries}, qrels=Qrels(qrels)
    )


def score(run: Mapping[str, Mapping[str, float]], data: RetrievalData, **options: Any) -> Measured:
    """A ranking from elsewhere, scored."""
    chosen = RetrievalOptions(**options)
    return rank_and_measure(Run.from_dict(run, ties=chosen.ties), data, NAMES, chosen)


def searched(data: RetrievalData, table: Mapping[str, Sequence[float]], **options: Any) -> Any:
    """Vectors searched and scored; the inner product of query and document is the score."""
    spec = TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path="unused"))
    task = RetrievalTask(spec, Path("unused"), RetrievalOptions(**options))
    return task.collect(data, TableEncoder(table, similarity="dot"), Silent())


def means(records: Any, *names: str) -> list[float]:
    """Means over queries, to five decimals."""
    return [round(float(records.columns[name].mean()), 5) for name in names]


class TestF1ConstantScorer:
    """A model that gives everything the same score must not profit from the order of the input."""

    @pytest.mark.parametrize("order", list(itertools.permutations("amz")))
    def test_every_order_gives_the_trec_value(self, order: Sequence[str]) -> None:
        """Ranking z, m, a: MRR 1/2, nDCG 1/log2(3), MAP 1/2 (pytrec_eval), scored and searched alike."""
        data = data_for({"q": {"m": 1}}, order)
        scored = score({"q": dict.fromkeys(order, 0.5)}, data)
        found = searched(data, {"q": [1.0], "a": [0.5], "m": [0.5], "z": [0.5]})
        for records in (scored.records, found.records):
            assert means(records, "mrr_at_10", "ndcg_at_10", "map_at_10") == [0.5, 0.63093, 0.5]
        assert [doc for doc, _ in found.run.hits("q")] == ["z", "m", "a"]

    @pytest.mark.parametrize("order", list(itertools.permutations("amz")))
    def test_tie_averaging_by_choice(self, order: Sequence[str]) -> None:
        """MRR (1 + 1/2 + 1/3) / 3 and nDCG (1 + 1/log2 3 + 1/2) / 3."""
        scored = score({"q": dict.fromkeys(order, 0.5)}, data_for({"q": {"m": 1}}, order), ties=TieRule.AVERAGE)
        assert means(scored.records, "mrr_at_10", "ndcg_at_10") == [0.61111, 0.71031]

    @pytest.mark.parametrize("order", list(itertools.permutations("amz")))
    @pytest.mark.parametrize(
        ("ties", "expected"),
        [(TieRule.DOC_ID_DESC, [0.5, 0.63093, 0.5]), (TieRule.AVERAGE, [0.61111, 0.71031, 0.61111])],
    )
    def test_equal_vectors_give_the_same(self, order: Sequence[str], ties: TieRule, expected: list[float]) -> None:
        """By search: the corpus in every order, all its vectors equal."""
        table = {text: [0.5] for text in ("q", *order)}
        found = searched(data_for({"q": {"m": 1}}, order), table, ties=ties)
        assert means(found.records, "mrr_at_10", "ndcg_at_10", "map_at_10") == expected

    def test_ties_at_the_cut_off_are_reported(self) -> None:
        """12 documents of equal score: the tie reaches across rank 10."""
        docs = [f"d{number:02}" for number in range(12)]
        scored = score({"q": dict.fromkeys(docs, 0.5)}, data_for({"q": {"d00": 1}}, docs))
        assert scored.counts["queries_tied_at_10"] == 1
        assert "1 query with a tie across rank 10, decided by doc_id_desc." in scored.warnings


class TestF2IdEqualToTheQuery:
    """A document must not vanish because its id equals the query's id, unless that is asked for."""

    QRELS: Mapping[str, Mapping[str, int]] = {"2": {"1": 1, "2": 1, "3": 1}}
    TABLE: Mapping[str, Sequence[float]] = {"2": [2.0], "1": [3.0], "3": [1.0]}

    def test_kept_by_default_and_a_warning_is_due(self) -> None:
        """recall@3 and nDCG@3 are 1 (pytrec_eval); query and document ids overlap, so a choice is asked for."""
        data = data_for(self.QRELS, ["1", "2", "3"])
        scored = score({"2": {"1": 3.0, "2": 2.0, "3": 1.0}}, data)
        found = searched(data, self.TABLE)
        for records, warnings in ((scored.records, scored.warnings), (found.records, found.warnings)):
            assert means(records, "recall_at_3", "ndcg_at_3") == [1.0, 1.0]
            assert any("1 query id is also a document id" in warning for warning in warnings)

    def test_dropped_when_asked_for(self) -> None:
        """recall@3 2/3 and nDCG@3 0.76536 (pytrec_eval) both ways, and no warning."""
        data = data_for(self.QRELS, ["1", "2", "3"])
        scored = score({"2": {"1": 3.0, "2": 2.0, "3": 1.0}}, data, self_match="drop")
        found = searched(data, self.TABLE, self_match="drop")
        for records, warnings in ((scored.records, scored.warnings), (found.records, found.warnings)):
            assert means(records, "recall_at_3", "ndcg_at_3") == [0.66667, 0.76536]
            assert not any("document ids" in warning for warning in warnings)

    def test_search_still_fills_the_list(self) -> None:
        """At depth 10 of 12 documents, the filter leaves 10 hits and not 9."""
        docs = [f"{number}" for number in range(12)]
        data = data_for({"3": {"1": 1}}, docs)
        found = searched(data, {doc: [1.0 + int(doc)] for doc in docs}, self_match="drop", depth=10)
        assert [doc for doc, _ in found.run.hits("3")] == ["11", "10", "9", "8", "7", "6", "5", "4", "2", "1"]


class TestF3EmptyJudgments:
    """A query without judgments makes no NaN, nothing above 1, and nothing that changes from run to run."""

    QRELS: Mapping[str, Mapping[str, int]] = {"q1": {"d1": 1}, "q2": {}, "q3": {"d3": 0}}
    RUN: Mapping[str, Mapping[str, float]] = {q: {"d1": 1.0, "d2": 0.5} for q in ("q1", "q2", "q3")}

    def test_left_out_and_counted(self) -> None:
        """q2 is left out, q3 counts 0: mean nDCG@10 over q1 and q3 is 0.5, three times the same (trec_eval)."""
        for _ in range(3):
            scored = score(self.RUN, data_for(self.QRELS, ["d1", "d2", "d3"]))
            assert scored.records.ids == ("q1", "q3")
            assert means(scored.records, "ndcg_at_10") == [0.5]
            assert scored.counts["queries_without_judgments"] == 1
            assert scored.counts["queries_without_relevant"] == 1
            assert scored.counts["queries_scored"] == 2
            assert all(np.all((each >= 0) & (each <= 1)) for each in scored.records.columns.values())

    def test_queries_without_relevant_documents_left_out_by_choice(self) -> None:
        """Mean 1.0 over q1 alone, and the result says so."""
        scored = score(self.RUN, data_for(self.QRELS, ["d1", "d2", "d3"]), no_relevant="skip")
        assert scored.records.ids == ("q1",)
        assert means(scored.records, "ndcg_at_10") == [1.0]
        assert "1 query without a relevant document is left out." in scored.warnings


def test_f3_by_search() -> None:
    """As from a file: q1 counts 1, q3, whose only judgment is 0, counts 0, and q2 is not asked (pytrec_eval)."""
    data = data_for({"q1": {"d1": 1}, "q3": {"d1": 0}}, ["d1", "d2"], extra_queries=["q2"])
    found = searched(data, {"q1": [1.0], "q3": [1.0], "d1": [1.0], "d2": [0.5]})
    assert found.run.query_ids == ("q1", "q3")
    assert means(found.records, "ndcg_at_10") == [0.5]
    assert found.counts["queries_without_judgments"] == 1
    assert found.counts["queries_without_relevant"] == 1


class TestF4UnreachableDocuments:
    """Judgments that point outside the corpus must not cap every model in silence."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return write_beir(
            tmp_path / "ghosts",
            corpus={"d1": "d1", "d2": "d2"},
            queries={"q1": "q1"},
            qrels={"q1": {"d1": 1, "ghost": 1}},
        )

    def test_refused_by_name_before_anything_is_encoded(self, folder: Path) -> None:
        """The message names the document and the query."""
        with pytest.raises(DataError, match=r"line 3: 1 relevant document not in the corpus.*'ghost' of query 'q1'"):
            load_beir(folder)

    def test_kept_by_choice_under_a_stated_ceiling(self, folder: Path) -> None:
        """A perfect model has recall 1/2 and nDCG 1 / (1 + 1/log2 3); the result says that recall can't exceed 0.5."""
        data = load_beir(folder, unreachable="keep")  # type: ignore[arg-type]
        found = searched(data, {"q1": [1.0], "d1": [2.0], "d2": [1.0]}, unreachable="keep")
        assert means(found.records, "recall_at_10", "ndcg_at_10") == [0.5, 0.61315]
        expected = "1 relevant document not in the corpus, so recall can't exceed 0.5000."
        assert expected in found.warnings


class TestF5MissingQueries:
    """A system that returns nothing for hard queries must not look better for it."""

    QRELS: Mapping[str, Mapping[str, int]] = {"q1": {"d1": 1}, "q2": {"d2": 1}}

    def test_a_missing_query_counts_0(self) -> None:
        """Mean nDCG@10 0.5 over two queries (ir-measures), the missing one counted."""
        scored = score({"q1": {"d1": 1.0}}, data_for(self.QRELS, ["d1", "d2"]))
        assert means(scored.records, "ndcg_at_10") == [0.5]
        assert scored.counts["queries_without_ranking"] == 1
        assert "1 judged query without a ranking counts 0." in scored.warnings

    def test_an_unjudged_query_of_the_run_is_left_out(self) -> None:
        """q9 changes nothing and is counted."""
        scored = score({"q1": {"d1": 1.0}, "q9": {"d1": 1.0}}, data_for(self.QRELS, ["d1", "d2"]))
        assert means(scored.records, "ndcg_at_10") == [0.5]
        assert scored.counts["queries_without_judgments"] == 1

    def test_skipping_is_a_choice(self) -> None:
        """As pytrec_eval and mteb do: mean 1.0 over one query, and the result says so."""
        scored = score({"q1": {"d1": 1.0}}, data_for(self.QRELS, ["d1", "d2"]), missing_queries="skip")
        assert means(scored.records, "ndcg_at_10") == [1.0]
        assert "1 judged query without a ranking is left out." in scored.warnings


class TestF6AveragePrecision:
    """Average precision is divided by all relevant documents, and a document counts once."""

    def test_divided_by_all_relevant(self) -> None:
        """a, x, y with a and b relevant: AP 1/2, recall 1/2 (TREC definition)."""
        scored = score({"q": {"a": 3.0, "x": 2.0, "y": 1.0}}, data_for({"q": {"a": 1, "b": 1}}, ["a", "b", "x", "y"]))
        assert means(scored.records, "map_at_10", "recall_at_10") == [0.5, 0.5]

    def test_a_document_found_twice_counts_once(self) -> None:
        """a, a, x collapses to a, x: AP 1/2, and the duplicate is counted."""
        run = Run.from_rows([("q", "a", 3.0), ("q", "a", 2.0), ("q", "x", 1.0)])
        data = data_for({"q": {"a": 1, "b": 1}}, ["a", "b", "x"])
        scored = rank_and_measure(run, data, NAMES, RetrievalOptions())
        assert means(scored.records, "map_at_10") == [0.5]
        assert scored.counts["duplicate_hits"] == 1

    @pytest.mark.parametrize(("denominator", "expected"), [("R", 2 / 3), ("min(k,R)", 1.0)])
    def test_denominator_at_k_is_a_named_choice(self, denominator: str, expected: float) -> None:
        """R = 3, k = 2, both hits relevant: 2/3 as trec_eval, 1 as sentence-transformers."""
        runs = judge(Run.from_dict({"q": {"a": 2.0, "b": 1.0}}), Qrels({"q": {"a": 1, "b": 1, "c": 1}}))
        options = ranking.Options(map_denominator=ranking.MapDenominator(denominator))
        assert ranking.measure(runs, ["map_at_2"], options)["map_at_2"][0] == pytest.approx(expected, abs=1e-12)


def test_f7_scores_are_not_computed_in_half_precision() -> None:
    """All values are exact in bfloat16, their products are not: 0.90283203 > 0.90234375, MRR 1."""
    data = data_for({"q": {"a": 1}}, ["a", "b"])
    table = {"q": [1.0, 0.0625], "a": [0.90234375, 0.0078125], "b": [0.90234375, 0.0]}
    found = searched(data, table)
    assert means(found.records, "mrr_at_10") == [1.0]
    assert [round(each, 8) for _, each in found.run.hits("q")] == [0.90283203, 0.90234375]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_f7_scores_of_pairs_are_logits(tmp_path: Path, dtype: Any) -> None:
    """Heads that only give 8, 8.5 and 9, exact in bfloat16; behind a sigmoid there 0.9995 and more would all be 1."""
    from safetensors.torch import load_file, save_file

    scores = []
    for logit in (8.0, 8.5, 9.0):
        folder = save_tiny_cross_encoder(tmp_path / str(logit))
        weights = load_file(folder / "model.safetensors")
        weights["classifier.weight"].zero_()
        weights["classifier.bias"].fill_(logit)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        reranker = rerankers.load(rerankers.resolve(RerankerSpec(name=str(folder), dtype=dtype)))
        scores += reranker.score([("a", "b")]).scores.tolist()
    assert scores == [8.0, 8.5, 9.0]


@dataclass
class Words:
    """Texts as words, of which so many are kept."""

    words: list[list[str]]
    role: Role
    limit: int | None
    unknown: None = None

    @property
    def lengths(self) -> Any:
        return np.array([len(words[: self.limit]) for words in self.words], dtype=np.int64)

    @property
    def lost(self) -> Any:
        return np.array([len(words) for words in self.words], dtype=np.int64) - self.lengths

    def key(self, row: int) -> bytes:
        return " ".join(self.words[row][: self.limit]).encode()


class Sides:
    """Queries are e1 and documents e2, whatever they say."""

    default_prompt_name: str | None = None

    def __init__(self, spec: ModelSpec) -> None:
        self.n_run = 0
        self._limit = spec.max_seq_length
        self.info = EncoderInfo(
            dim=2,
            max_seq_length=self._limit,
            similarity="cosine",
            prompts={},
            pooling=spec.pooling,
            n_parameters=0,
            device="cpu",
            num_threads=1,
            batch_tokens=64,
        )

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> Words:
        return Words([(prompt + text).split() for text in texts], role, self._limit)

    def forward(self, prepared: Words, rows: Any) -> Any:
        self.n_run += len(rows)
        return np.array([[1, 0] if prepared.role == Role.QUERY else [0, 1]] * len(rows), dtype=np.float32)


class TestF8VectorsOfAnotherModel:
    """A cached vector is never taken for one of another role, prompt, revision, pooling, limit or number format."""

    TEXT = "one two three four five six seven eight nine ten eleven twelve"

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A model's files."""
        made = tmp_path / "model"
        made.mkdir()
        (made / "config.json").write_text("{}")
        (made / "model.safetensors").write_bytes(bytes(range(100)))
        return made

    def encoder(self, folder: Path, *, cached: bool = True, **fields: Any) -> BatchedEncoder[Words]:
        """The stub under the revision that the files have now, with the cache beside them or without."""
        spec = locate.locate(ModelSpec(name=str(folder), **fields), verify=True).spec
        store = Shelves(VectorCache(folder.parent / "cache"), RuntimeOptions()) if cached else None
        return BatchedEncoder(spec, Sides(spec), shelves=store)

    @pytest.mark.parametrize("cached", [True, False])
    def test_a_document_that_equals_a_query(self, folder: Path, cached: bool) -> None:
        """Cosine 0 in both orders, twice: the second time all is found, bit for bit, and nothing is run."""
        made: dict[Role, list[bytes]] = {Role.QUERY: [], Role.DOCUMENT: []}
        for number, role in enumerate([Role.QUERY, Role.DOCUMENT, Role.DOCUMENT, Role.QUERY]):
            encoder = self.encoder(folder, cached=cached)
            found = encoder.encode([self.TEXT], role=role)
            made[role].append(found.vectors.tobytes())
            assert found.work.n_texts == (0 if cached and number > 1 else 1)
            assert encoder.backend.n_run == found.work.n_texts  # type: ignore[attr-defined]  # the stub's
        query, document = (np.frombuffer(made[role][0], dtype=np.float32) for role in made)
        assert float(query @ document) == 0.0
        assert made[Role.QUERY][0] == made[Role.QUERY][1] != made[Role.DOCUMENT][0] == made[Role.DOCUMENT][1]

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({}, {"prompts": {"query": "query: "}}),
            ({"prompts": {"query": "query: "}}, {"prompts": {"query": "query:  "}}),
            ({"prompts": {"query": "query: "}}, {"prompts": {"query": "query: "}, "prompting": "none"}),
            ({"pooling": "mean"}, {"pooling": "cls"}),
            ({"max_seq_length": 8}, {"max_seq_length": 16}),
            ({"dtype": "float32"}, {"dtype": "float16"}),
            ({"dtype": "float32"}, {"dtype": "bfloat16"}),
            ({"dtype": "float32"}, {"dtype": "int8"}),
            ({"backend": "transformers"}, {"backend": "onnx"}),
            ({}, {"args": {"trust_remote_code": True}}),
        ],
    )
    def test_every_change_is_a_miss(self, folder: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
        """And the unchanged model still has its vectors and its counts: 12 tokens, of which 8 or 12 are kept."""
        first = self.encoder(folder, **before).encode([self.TEXT], role=Role.QUERY)
        second = self.encoder(folder, **after).encode([self.TEXT], role=Role.QUERY)
        assert (first.work.n_texts, second.work.n_texts) == (1, 1)
        for fields, known in ((before, first), (after, second)):
            again = self.encoder(folder, **fields).encode([self.TEXT], role=Role.QUERY)
            assert again.work.n_texts == 0
            assert (again.vectors.tobytes(), again.counts, again.truncated) == (
                known.vectors.tobytes(),
                known.counts,
                known.truncated,
            )
        if "max_seq_length" in before:
            assert [each.counts.tokens_lost for each in (first, second)] == [4, 0]

    def test_one_byte_of_the_weights_is_a_miss(self, folder: Path) -> None:
        """Under the same name; with the old byte back, the old vectors are there."""
        weights = folder / "model.safetensors"
        old = weights.read_bytes()
        worked = []
        for content in (old, old[:-1] + b"X", old, old[:-1] + b"X"):
            weights.write_bytes(content)
            worked.append(self.encoder(folder).encode([self.TEXT], role=Role.QUERY).work.n_texts)
        assert worked == [1, 1, 0, 0]

    def test_what_is_done_afterwards_shares_the_vectors(self, tmp_path: Path) -> None:
        """Cut, normalised, quantised or compared otherwise: found, and what a run without a cache gives."""
        texts = ["restore a backup", "rotate the keys", "", "rotate"]
        base = ModelSpec(name="hashing", backend="hashing")
        runtime = RuntimeOptions()

        def encoded(spec: ModelSpec, cache: VectorCache | None) -> Embeddings:
            return loading.load(loading.resolve(spec), runtime, cache).encode(texts, role=Role.QUERY)

        encoded(base, VectorCache(tmp_path))
        for fields in (
            {"truncate_dim": 8},
            {"truncate_dim": 256},
            {"normalize": True},
            {"normalize": False},
            {"quantize": "int8"},
            {"quantize": "binary", "truncate_dim": 32},
            {"quantize": "binary", "rescore": 4},
            {"similarity": "dot"},
        ):
            spec = replace(base, **fields)
            found, plain = encoded(spec, VectorCache(tmp_path)), encoded(spec, None)
            assert found.work.n_texts == 0, fields
            assert plain.work.n_texts == 3
            assert replace(found, work=plain.work).vectors.tobytes() == plain.vectors.tobytes()
            assert (found.counts, found.normalized) == (plain.counts, plain.normalized)


class TestF10Padding:
    """First- and last-token pooling never pick a padding token, whichever side it is on."""

    TOKENS = np.arange(12, 24, dtype=np.float32).reshape(1, 4, 3)
    RIGHT = np.array([[1, 1, 0, 0]])
    LEFT = np.array([[0, 0, 1, 1]])

    @pytest.mark.parametrize(
        ("name", "right", "left"),
        [
            ("lasttoken", [15, 16, 17], [21, 22, 23]),
            ("cls", [12, 13, 14], [18, 19, 20]),
            ("mean", [13.5, 14.5, 15.5], [19.5, 20.5, 21.5]),
        ],
    )
    def test_by_hand(self, name: Any, right: list[float], left: list[float]) -> None:
        """The expected vectors are read off the input."""
        assert pooling.POOLING[name](self.TOKENS, self.RIGHT)[0].tolist() == right
        assert pooling.POOLING[name](self.TOKENS, self.LEFT)[0].tolist() == left


class TestF11NotFinite:
    """NaN and Inf are refused by name; they never become a score."""

    def test_a_run_with_nan_is_refused(self) -> None:
        """pytrec_eval scores it 0.63093."""
        with pytest.raises(DataError, match=r"query 'q', document 'd1' is nan"):
            Run.from_dict({"q": {"d1": float("nan"), "d2": 1.0}})
        with pytest.raises(DataError, match=r"query 'q', document 'd2' is inf"):
            Run.from_dict({"q": {"d1": 1.0, "d2": float("inf")}})

    def test_a_score_too_large_for_float32_is_refused(self) -> None:
        """1e300 would become inf."""
        with pytest.raises(DataError, match=r"query 'q', document 'd1' is inf"):
            Run.from_dict({"q": {"d1": 1e300}})

    def test_documents_with_nan_stop_the_run_and_are_named(self, tmp_path: Path) -> None:
        """A model whose weights overflow: the error names the document ids, and the stored record has no scores."""
        import safetensors.numpy

        folder = save_tiny_model(tmp_path / "overflowing", normalize=False)
        weights = safetensors.numpy.load_file(folder / "model.safetensors")
        weights["embeddings.LayerNorm.weight"][:] = np.inf
        safetensors.numpy.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        data = write_beir(
            tmp_path / "data", corpus={"d1": "backup", "d2": "token"}, queries={"q1": "a"}, qrels={"q1": {"d1": 1}}
        )
        task = TASK_TYPES.get("retrieval").bind(
            TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path=str(data))), root=tmp_path
        )
        store = ResultStore(tmp_path / "results")
        (outcome,) = local.run([ModelSpec(name=str(folder))], [task], store, local.RunOptions())
        assert outcome.status == "failed"
        assert isinstance(outcome.error, InvalidEmbeddingsError)
        assert outcome.error.ids == ("q1",)
        assert "float32 on cpu" in str(outcome.error)
        (stored,) = store.find()
        assert stored.result.status == "error"
        assert not stored.result.scores

    def test_embeddings_can_not_hold_nan(self) -> None:
        """The type itself refuses."""
        with pytest.raises(InvalidEmbeddingsError, match="NaN in the embeddings of 1 of 2 texts"):
            Embeddings(rows([1, 0], [np.nan, 0]), role=Role.TEXT, normalized=False, spec_digest="")


class TestF12ZeroVectors:
    """The cosine with a zero vector is 0, by policy and counted; never NaN and never 0.5."""

    def test_spearman_with_a_zero_vector(self) -> None:
        """Cosines 0, 0.3, 0.9 follow gold 0, 1, 5: Spearman 1."""
        table = {"zero": [0.0, 0.0], "x": [1.0, 0.0], "low": [0.3, 0.953939], "high": [0.9, 0.435890]}
        pairs = Pairs(("1", "2", "3"), ("zero", "x", "x"), ("x", "low", "high"), np.array([0.0, 1.0, 5.0]))
        collected = sts().collect(pairs, TableEncoder(table), Silent())
        assert np.round(collected.records.columns["cosine"], 4).tolist() == [0.0, 0.3, 0.9]
        assert spearman("cosine").aggregate(collected.records.columns) == pytest.approx(1.0)
        assert collected.counts["texts_zero_vectors"] == 1

    def test_empty_texts_are_found_in_the_text(self, tiny_model: Path) -> None:
        """A BERT gives the empty text a vector that is not zero: emptiness is found in the text. Cosine 0, counted."""
        for spec in (ModelSpec(name=str(tiny_model)), ModelSpec(name="h", backend="hashing")):
            encoder = loading.load(loading.resolve(spec))
            pairs = Pairs(("1", "2", "3"), ("", "", "key"), ("   ", "backup", "key"), np.array([0.0, 1.0, 5.0]))
            collected = sts().collect(pairs, encoder, Silent())
            assert collected.records.columns["cosine"].tolist() == pytest.approx([0.0, 0.0, 1.0])
            assert (collected.counts["texts_empty"], collected.counts["texts_zero_vectors"]) == (3, 3)
            assert "3 of 6 texts are empty: cosine 0 with anything." in collected.warnings


class TestF13Constants:
    """An undefined correlation is null with a reason; it never poisons JSON or a mean."""

    @pytest.mark.parametrize(
        ("gold", "predicted", "reason"),
        [
            ([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], "constant_input"),
            ([2.0, 2.0, 2.0], [0.1, 0.2, 0.3], "constant_input"),
            ([1.0], [0.5], "too_few_items"),
        ],
    )
    @pytest.mark.parametrize("kind", ["spearman", "pearson"])
    def test_undefined_has_a_reason(self, kind: Any, gold: list[float], predicted: list[float], reason: str) -> None:
        """scipy gives NaN here."""
        metric = Correlation(kind=kind, x="gold", y="cosine", name=f"cosine_{kind}")
        value = metric.aggregate({"gold": np.array(gold), "cosine": np.array(predicted)})
        assert value == Undefined(reason)

    def test_stored_as_null_in_strict_json(self, tmp_path: Path) -> None:
        """A constant model: null with its reason, no bare NaN, and no mean over sub-sets."""
        file = tmp_path / "pairs.jsonl"
        lines = [
            {"sentence1": "a", "sentence2": "b", "score": number, "subset": "x" if number < 3 else "y"}
            for number in range(6)
        ]
        file.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
        task = TASK_TYPES.get("sts").bind(
            TaskSpec(name="t", type="sts", dataset=DatasetRef(path=str(file))), root=tmp_path
        )
        options = local.RunOptions(statistics=StatisticsOptions(resamples=100))
        store = ResultStore(tmp_path / "results")
        (outcome,) = local.run([ModelSpec(name="h", backend="hashing")], [task], store, options)
        by_subset = {each.result.subset: each for each in outcome.stored}
        assert set(by_subset) == {"x", "y", "mean", "wmean", "all"}
        for subset, reason in (("all", "constant_input"), ("mean", "undefined_in_subset:x")):
            value = by_subset[subset].result.scores["cosine_spearman"]
            assert (value.value, value.ci_low, value.ci_high, value.reason) == (None, None, None, reason)
            strict_json.loads(by_subset[subset].path.read_text(encoding="utf-8"))


class TestF14Truncation:
    """What the limit of a model cuts off is told, and so is that different documents look alike."""

    def test_truncated_documents_are_counted(self, tiny_model: Path, tmp_path: Path) -> None:
        """Two documents of 401 words differ in their last word only: 2 of 2 truncated, and alike."""
        data = write_beir(
            tmp_path / "long",
            corpus={"d1": "night " * 400 + "needle", "d2": "night " * 400 + "other"},
            queries={"q": "needle"},
            qrels={"q": {"d1": 1}},
        )
        task = TASK_TYPES.get("retrieval").bind(
            TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path=str(data))), root=tmp_path
        )
        encoder = loading.load(loading.resolve(ModelSpec(name=str(tiny_model))), RuntimeOptions(batch_tokens=16))
        found = task.collect(task.load(), encoder, Silent())
        assert found.counts["documents_truncated"] == 2
        assert found.counts["documents_truncated_alike"] == 2
        # needle and other are in pieces of 6 and 5 (o ##t ##h ##e ##r); 14 words are kept beside [CLS] and [SEP].
        assert found.counts["documents_tokens_lost"] == (406 - 14) + (405 - 14)
        assert found.counts["documents_tokens_kept"] == 32
        warnings = " ".join(found.warnings)
        assert "2 of 2 documents cut to 16 tokens: 783 tokens lost (96.1%)." in warnings
        assert "2 of 2 documents look the same to the model as another one, once cut." in warnings


def test_f14_a_long_query_leaves_something_of_the_document(tmp_path: Path) -> None:
    """20 words and 16 tokens: the query is cut, the two documents still differ, and no document is lost."""
    folder = save_tiny_cross_encoder(tmp_path / "reranker")
    reranker = rerankers.load(rerankers.resolve(RerankerSpec(name=str(folder), max_seq_length=16)))
    run = Run.from_dict({"q": {"yes": 2.0, "no": 1.0}})
    done = rerank(run, 10, reranker, {"q": "night " * 20}, {"yes": "yes", "no": "no"})
    assert done.scored.n_truncated == 2
    assert done.scored.n_document_lost == 0
    assert len(set(done.scored.scores.tolist())) == 2
    assert any("2 of 2 reranked pairs were truncated" in each for each in done.warnings)


def test_g3_a_text_alone_and_among_many(tiny_model: Path) -> None:
    """float32: batch of one and batch of many agree to 1e-6."""
    texts = [f"{word} document {number} of the archive" for number in range(9) for word in ("red", "blue", "green")]
    spec = ModelSpec(name=str(tiny_model))
    alone = loading.load(loading.resolve(spec), RuntimeOptions(batch_tokens=1)).encode(texts, role=Role.TEXT)
    together = loading.load(loading.resolve(spec), RuntimeOptions(batch_tokens=10_000)).encode(texts, role=Role.TEXT)
    np.testing.assert_allclose(alone.vectors, together.vectors, atol=1e-6)


def test_g12_sub_sets_pooled_and_averaged_are_not_mixed(tmp_path: Path) -> None:
    """``all`` pools the pairs, ``mean`` weights sub-sets alike, ``wmean`` by size; all three from scipy's Spearman."""
    from scipy import stats

    rng = np.random.default_rng(5)
    n = 40
    subsets = ["small"] * 8 + ["large"] * (n - 8)
    gold = rng.uniform(0, 5, n)
    words = [" ".join(rng.choice(["red", "blue", "green", "old", "new"], 4)) for _ in range(2 * n)]
    lines = [
        {"sentence1": words[i], "sentence2": words[n + i], "score": gold[i], "subset": subsets[i]} for i in range(n)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    task = TASK_TYPES.get("sts").bind(
        TaskSpec(name="t", type="sts", dataset=DatasetRef(path="pairs.jsonl")), root=tmp_path
    )
    store = ResultStore(tmp_path / "results")
    options = local.RunOptions(statistics=StatisticsOptions(resamples=0))
    (outcome,) = local.run([ModelSpec(name="h", backend="hashing")], [task], store, options)
    value = {each.result.subset: each.result.scores["cosine_spearman"].value for each in outcome.stored}
    cosine = store.records(outcome.stored[-1]).columns["cosine"]
    small = stats.spearmanr(gold[:8], cosine[:8]).statistic
    large = stats.spearmanr(gold[8:], cosine[8:]).statistic
    assert value["small"] == pytest.approx(small)
    assert value["large"] == pytest.approx(large)
    assert value["mean"] == pytest.approx((small + large) / 2)
    assert value["wmean"] == pytest.approx((8 * small + 32 * large) / 40)
    assert value["all"] == pytest.approx(stats.spearmanr(gold, cosine).statistic)
    assert outcome.result is not None
    assert outcome.result.subset == "all"


def test_g13_declared_prompts_that_were_not_used_are_reported(tmp_path: Path) -> None:
    """The model declares prompts under names that fit no role: the result says that none was used."""
    folder = save_tiny_model(tmp_path / "model", prompts={"search": "the query "})
    encoder = loading.load(loading.resolve(ModelSpec(name=str(folder))))
    data = data_for({"q": {"d1": 1}}, ["d1", "d2"])
    spec = TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path="unused"))
    task = RetrievalTask(spec, Path("unused"), RetrievalOptions())
    warnings = task.collect(data, encoder, Silent()).warnings
    assert "The model declares prompts (search), and this run used none." in warnings


class TestG10ExcludedDocuments:
    """Documents that a query excludes are no hits for it, and take no place of one."""

    DATA = replace(data_for({"q": {"b": 1}, "p": {"a": 1}}, ["a", "b", "c"]), excluded={"q": frozenset({"a", "x"})})

    def test_left_out_before_the_list_is_cut(self) -> None:
        """With one place per query, q has b and not the better a; p, which excludes nothing, keeps a (by hand)."""
        table = {"q": [1.0], "p": [1.0], "a": [3.0], "b": [2.0], "c": [1.0]}
        found = searched(self.DATA, table, depth=10)
        assert [doc for doc, _ in found.run.hits("q")] == ["b", "c"]
        assert [doc for doc, _ in found.run.hits("p")] == ["a", "b", "c"]
        spec = TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path="unused"), main_score="success_at_1")
        task = RetrievalTask(spec, Path("unused"), RetrievalOptions(depth=1, cutoffs=(1,)))
        shallow = task.collect(self.DATA, TableEncoder(table, similarity="dot"), Silent())
        assert shallow.run is not None
        assert [shallow.run.hits(query) for query in ("q", "p")] == [[("b", 2.0)], [("a", 3.0)]]
        assert means(shallow.records, "success_at_1") == [1.0]

    def test_left_out_of_a_ranking_from_elsewhere(self) -> None:
        """The same ranks as by search: MRR 1 for both queries."""
        hits = {"a": 3.0, "b": 2.0, "c": 1.0}
        scored = score({"q": hits, "p": hits}, self.DATA)
        assert means(scored.records, "mrr_at_10", "ndcg_at_10") == [1.0, 1.0]
        assert score({"q": hits, "p": hits}, replace(self.DATA, excluded={})).records.columns["mrr_at_10"].tolist() == [
            0.5,
            1.0,
        ]

    def test_what_is_excluded_is_part_of_the_data(self) -> None:
        """Rankings under another list measure something else."""
        assert self.DATA.data_hash != replace(self.DATA, excluded={}).data_hash


@pytest.mark.parametrize("index", ["exact", "brute", "flat", "hnsw"])
def test_g10_by_every_index(index: str) -> None:
    """Ten documents by falling score, the best three excluded, four wanted: the fourth to the seventh."""
    docs = [f"d{place}" for place in range(10)]
    data = replace(data_for({"q": {"d3": 1}}, docs), excluded={"q": frozenset(docs[:3])})
    table = {"q": [1.0], **{doc: [10.0 - place] for place, doc in enumerate(docs)}}
    spec = TaskSpec(name="t", type="retrieval", dataset=DatasetRef(path="unused"), main_score="mrr_at_3")
    task = RetrievalTask(spec, Path("unused"), RetrievalOptions(depth=4, cutoffs=(3,), index=index))
    found = task.collect(data, TableEncoder(table, similarity="dot"), Silent())
    assert found.run is not None
    assert [doc for doc, _ in found.run.hits("q")] == docs[3:7]
    assert means(found.records, "mrr_at_3") == [1.0]


@pytest.mark.parametrize("order", list(itertools.permutations(["a", "m", "2"])))
def test_g16_the_query_itself_is_left_out_by_id_and_not_by_place(order: Sequence[str]) -> None:
    """Three hits tie at rank 1, one of which is the query: whatever the order, m and a are left, in that order."""
    data = data_for({"2": {"a": 1}}, order)
    scored = score({"2": dict.fromkeys(order, 0.5)}, data, self_match="drop")
    found = searched(data, {"2": [0.5], "a": [1.0], "m": [1.0]}, self_match="drop")
    assert [doc for doc, _ in found.run.hits("2")] == ["m", "a"]
    tied = searched(data, {"2": [1.0], "a": [1.0], "m": [1.0]}, self_match="drop")
    assert [doc for doc, _ in tied.run.hits("2")] == ["m", "a"]
    for records in (scored.records, found.records, tied.records):
        assert means(records, "mrr_at_10") == [0.5]


@pytest.mark.parametrize("index", ["exact", "brute", "flat", "hnsw", "ivf", "sq8"])
def test_g14_more_hits_wanted_than_documents_there_are(index: str) -> None:
    """Depth 1,000 of 2 documents: ids -1 and scores -3.4e38 never reach a ranking."""
    found = searched(data_for({"q": {"a": 1}}, ["a", "b"]), {"q": [1.0], "a": [2.0], "b": [-1.0]}, index=index)
    assert found.run.hits("q") == [("a", 2.0), ("b", -1.0)]


def test_g15_vectors_do_not_hang_on_the_hash_seed() -> None:
    """Two processes under different PYTHONHASHSEED give the same bytes."""
    code = (
        "import hashlib; from embeval.core.specs import ModelSpec, Role; from embeval.encoders import loading;"
        "e = loading.load(loading.resolve(ModelSpec(name='h', backend='hashing')));"
        "print(hashlib.sha256(e.encode(['restore a backup', 'b', 'token', 'b'], role=Role.TEXT).vectors).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_g15_vectors_are_found_again_under_another_hash_seed(tmp_path: Path) -> None:
    """The cache goes by digests that every process computes alike: all hits under another seed, and the same bytes."""
    code = (
        "import hashlib, sys; from pathlib import Path; from embeval.core.specs import ModelSpec, Role;"
        "from embeval.encoders import loading; from embeval.encoders.cache import VectorCache;"
        "s = ModelSpec(name='h', backend='hashing'); c = VectorCache(Path(sys.argv[1]));"
        "e = loading.load(loading.resolve(s), None, c);"
        "f = e.encode(['restore a backup', 'b', 'token', 'b'], role=Role.TEXT);"
        "print(hashlib.sha256(f.vectors).hexdigest(), f.work.n_texts)"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for seed in ("1", "2")
    ]
    assert [n for _, n in found] == ["3", "0"]
    assert found[0][0] == found[1][0]


def test_g20_max_pooling_of_nothing_is_an_empty_text() -> None:
    """A row that is all padding pools to zeros, not to -inf."""
    tokens = np.ones((2, 3, 2), dtype=np.float32)
    pooled = pooling.max_(tokens, np.array([[1, 1, 0], [0, 0, 0]]))
    assert pooled.tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_strict_json_has_no_nan() -> None:
    """A result can't be written with NaN in it, and one that holds it can't be read."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        strict_json.dumps({"value": float("nan")})
    with pytest.raises(ValueError, match="NaN is not a JSON number"):
        strict_json.loads('{"value": NaN}')
    assert dump(StatisticsOptions())["level"] == 0.95


def sts() -> StsTask:
    """An STS task whose data is handed to it."""
    spec = TaskSpec(name="t", type="sts", dataset=DatasetRef(path="unused"))
    task = TASK_TYPES.get("sts").bind(spec, root=Path())
    assert isinstance(task, StsTask)
    return task


def spearman(similarity: str) -> Correlation:
    """Spearman of a similarity with gold."""
    return Correlation(kind="spearman", x="gold", y=similarity, name=f"{similarity}_spearman")


def test_pairs_file_helper_writes_what_is_read(tmp_path: Path) -> None:
    """The helper of these tests and the loader agree on the columns."""
    from embeval.data.pairs import load_pairs

    pairs = load_pairs(write_pairs(tmp_path / "p.jsonl", [("a", "b", 1.5)]))
    assert (pairs.left, pairs.right, pairs.gold.tolist()) == (("a",), ("b",), [1.5])
