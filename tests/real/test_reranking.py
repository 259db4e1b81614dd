"""A reranker trained on SelQA: better than the order that it is given, and the same in torch and onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import train_reranker
from benchmarks.train_reranker import Query
from embeval.core import ir
from embeval.core.ir import Qrels, Run
from embeval.core.protocols import Reranker
from embeval.core.specs import ModelSpec, RerankerSpec, RuntimeOptions
from embeval.encoders import export, loading
from embeval.encoders.cache import open_cache
from embeval.metrics import ranking
from embeval.rerankers import loading as reranker_loading
from embeval.rerankers.rerank import rerank

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

TRAINED_ON, TESTED_ON = 60, 40
CPU = RuntimeOptions(device="cpu")


@pytest.fixture(scope="module")
def halves(real_data: Path) -> tuple[list[Query], list[Query]]:
    """Queries to train on and others to test on."""
    learned, held_out = train_reranker.halves(train_reranker.selqa(real_data))
    return learned[:TRAINED_ON], held_out[:TESTED_ON]


@pytest.fixture(scope="module")
def rerankers(halves: tuple[list[Query], list[Query]], tmp_path_factory: pytest.TempPathFactory) -> list[Reranker]:
    """One that was trained for an epoch, in torch and as a graph."""
    folder = tmp_path_factory.mktemp("reranker")
    train_reranker.train(folder / "model", halves[0], epochs=1, rate=1e-4)
    (folder / "onnx").mkdir()
    export.write_cross_encoder(loading.resolve(ModelSpec(name=str(folder / "model"))), folder / "onnx")
    specs = [RerankerSpec(name=str(folder / "model")), RerankerSpec(name=str(folder / "onnx"), backend="onnx")]
    return [reranker_loading.load(reranker_loading.resolve(spec), CPU) for spec in specs]


def test_better_than_any_order(halves: tuple[list[Query], list[Query]], rerankers: list[Reranker]) -> None:
    """MRR of held-out queries above that of their sentences in any order, which ties give exactly."""
    texts, documents = dict[str, str](), dict[str, str]()
    grades: dict[str, dict[str, int]] = {}
    for query in halves[1]:
        texts[query.id] = query.text
        for grade, sentences in ((0, query.negative), (1, query.positive)):
            for number, sentence in enumerate(sentences):
                documents[f"{query.id} {grade} {number}"] = sentence
                grades.setdefault(query.id, {})[f"{query.id} {grade} {number}"] = grade
    run = Run.from_dict({query: dict.fromkeys(docs, 0.0) for query, docs in grades.items()}, ir.TieRule.AVERAGE)
    done = rerank(run, 100, rerankers[0], texts, documents)
    before, after = (
        float(ranking.measure(ir.judge(each, Qrels(grades)), ["mrr_at_10"])["mrr_at_10"].mean())
        for each in (run, done.run)
    )
    assert done.n_pairs == len(documents)
    assert after > before + 0.1


def test_the_graph_ranks_as_torch_does(encoded: None, real_data: Path, rerankers: list[Reranker]) -> None:
    """The first 10 documents of Cranfield for 15 queries: scores to 1e-4, and the same documents at every rank."""
    encoder = loading.load(loading.resolve(ModelSpec(name="demo")), CPU, open_cache())
    given = train_reranker.cranfield_candidates(real_data, encoder, n_queries=15, depth=10)
    own, graph = (rerank(given.run, 10, each, given.queries, given.documents) for each in rerankers)
    np.testing.assert_allclose(graph.scored.scores, own.scored.scores, atol=1e-4)
    assert np.array_equal(graph.run.docs, own.run.docs)
    assert not np.array_equal(own.run.docs, given.run.docs)
    assert np.array_equal(np.sort(own.run.docs, axis=1), np.sort(given.run.docs, axis=1))
