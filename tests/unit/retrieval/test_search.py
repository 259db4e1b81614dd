"""Chunked search: what the property tests don't say."""

from __future__ import annotations

import numpy as np
import pytest

from embeval.core.ir import TieRule, tie_keys
from embeval.core.similarity import SIMILARITIES
from embeval.errors import InvalidEmbeddingsError, UnknownNameError
from embeval.retrieval.search import TopK

RNG = np.random.default_rng(3)


def test_scores_hang_on_nothing_but_the_two_vectors() -> None:
    """The same document in any chunk, at any place, through any exact index: the same float32 score."""
    docs = RNG.normal(size=(500, 96)).astype(np.float32)
    queries = RNG.normal(size=(4, 96)).astype(np.float32)
    keys = tie_keys([f"{number:03}" for number in range(500)], TieRule.DOC_ID_DESC)
    found = []
    for index, chunk in (("flat", 500), ("flat", 7), ("brute", 64), ("exact", 500), ("exact", 3)):
        top = TopK(queries, k=50, similarity="cosine", tie_keys=keys, index=index)
        for start in range(0, 500, chunk):
            top.add(docs[start : start + chunk])
        found.append(top.result())
    for other in found[1:]:
        assert np.array_equal(found[0].positions, other.positions)
        assert np.array_equal(found[0].scores, other.scores)


@pytest.mark.parametrize("similarity", list(SIMILARITIES))
def test_a_constant_model_is_ordered_by_the_tie_rule_alone(similarity: str) -> None:
    """1,000 equal documents, 5 wanted: the 5 greatest ids, though the index itself gave any."""
    docs = np.ones((1000, 8), dtype=np.float32)
    ids = [f"{number:04}" for number in RNG.permutation(1000)]
    top = TopK(
        np.ones((2, 8), dtype=np.float32),
        k=5,
        similarity=similarity,  # type: ignore[arg-type]
        tie_keys=tie_keys(ids, TieRule.DOC_ID_DESC),
    )
    for start in range(0, 1000, 300):
        top.add(docs[start : start + 300])
    for row in top.result().positions:
        assert [ids[place] for place in row] == ["0999", "0998", "0997", "0996", "0995"]


@pytest.mark.parametrize("index", ["exact", "flat"])
def test_few_candidates_are_scored_twice_once_the_list_is_good(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later chunks rescore only what can still enter: far less than all that the index hands over."""
    scored = 0
    original = SIMILARITIES["dot"]

    def counting(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nonlocal scored
        scored += len(a)
        return original(a, b)

    monkeypatch.setitem(SIMILARITIES, "dot", counting)
    docs = RNG.normal(size=(20_000, 16)).astype(np.float32)
    queries = RNG.normal(size=(10, 16)).astype(np.float32)
    top = TopK(queries, k=10, similarity="dot", tie_keys=np.arange(20_000), index=index)
    for start in range(0, 20_000, 1000):
        top.add(docs[start : start + 1000])
    assert scored < 10 * 42 * 20 / 3


def test_what_is_asked_for_must_make_sense() -> None:
    """At least one document, and an index that exists."""
    queries = np.ones((1, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="k must be at least 1"):
        TopK(queries, k=0, similarity="dot", tie_keys=np.arange(1))
    with pytest.raises(ValueError, match="tie_keys must hold every number from 0 once"):
        TopK(queries, k=1, similarity="dot", tie_keys=np.array([0, 0]))
    with pytest.raises(ValueError, match="hnsw may miss neighbours"):
        TopK(queries, k=1, similarity="dot", tie_keys=np.arange(1), index="hnsw")
    with pytest.raises(InvalidEmbeddingsError, match="The queries gave NaN"):
        TopK(queries * np.float32(np.nan), k=1, similarity="dot", tie_keys=np.arange(1))
    with pytest.raises(UnknownNameError, match="Did you mean 'flat'"):
        TopK(queries, k=1, similarity="dot", tie_keys=np.arange(1), index="flt")
