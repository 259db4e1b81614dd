"""Chunked search through every index against a full sort of all scores, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core.ir import TieRule, tie_keys
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.retrieval import search
from embeval.retrieval.kinds import INDEXES
from embeval.retrieval.search import TopK


@pytest.mark.parametrize("index", [name for name in INDEXES.names() if INDEXES.get(name).exact])
@pytest.mark.parametrize("similarity", list(SIMILARITIES))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_equal_to_sorting_everything(index: str, similarity: SimilarityName, data: st.DataObject) -> None:
    """Scores and order equal those of a full sort by (score, doc id), whatever the chunks and however many ties."""
    n, d = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    # Vectors from a small grid: zero vectors, repeated ones and exact ties are the rule.
    docs = rng.integers(-1, 2, size=(n, d)).astype(np.float32)
    queries = rng.integers(-1, 2, size=(3, d)).astype(np.float32)
    ids = [f"{number:x}" for number in rng.permutation(n)]
    ties = data.draw(st.sampled_from([TieRule.DOC_ID_DESC, TieRule.DOC_ID_ASC]))
    k, chunk = data.draw(st.integers(1, n + 3)), data.draw(st.integers(1, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SLACK", data.draw(st.integers(0, 3)))
        top = TopK(queries, k=k, similarity=similarity, tie_keys=tie_keys(ids, ties), index=index)
        for start in range(0, n, chunk):
            top.add(docs[start : start + chunk])
    found = top.result()
    for row, query in enumerate(queries):
        scores = SIMILARITIES[similarity](np.broadcast_to(query, docs.shape), docs)
        by_id = sorted(range(n), key=lambda doc: ids[doc], reverse=ties is TieRule.DOC_ID_DESC)
        expected = sorted(by_id, key=lambda doc: -scores[doc])[:k]
        assert found.positions[row, : len(expected)].tolist() == expected
        assert found.scores[row, : len(expected)].tolist() == scores[expected].tolist()
        assert np.all(found.positions[row, len(expected) :] == -1)
        assert np.all(np.isneginf(found.scores[row, len(expected) :]))


@pytest.mark.parametrize("similarity", list(SIMILARITIES))
def test_long_vectors_that_differ_by_less_than_an_engine_sees(
    similarity: SimilarityName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lengths in the thousands whose products cancel out: the engine's error grows with the lengths."""
    monkeypatch.setattr(search, "SLACK", 0)
    rng = np.random.default_rng(5)
    base = rng.standard_normal(256) * 300
    docs = np.asarray(base * (1 + 2e-7 * rng.standard_normal((600, 256))), dtype=np.float32)
    wide = rng.standard_normal((4, 256)) * 300
    if similarity in ("dot", "cosine"):
        wide -= np.outer(wide @ base / (base @ base), base)
    queries = np.asarray(wide, dtype=np.float32)
    ids = [str(number) for number in range(len(docs))]
    top = TopK(queries, k=3, similarity=similarity, tie_keys=tie_keys(ids, TieRule.DOC_ID_DESC))
    for start in range(0, len(docs), 200):
        top.add(docs[start : start + 200])
    for row, query in enumerate(queries):
        scores = SIMILARITIES[similarity](np.broadcast_to(query, docs.shape), docs)
        expected = sorted(sorted(range(len(docs)), key=lambda doc: ids[doc], reverse=True), key=lambda d: -scores[d])[
            :3
        ]
        assert top.result().positions[row].tolist() == expected
