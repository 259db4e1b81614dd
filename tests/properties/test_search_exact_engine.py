"""The exact engine against brute force, with tiles, blocks and waiting lists so small that all of them are used."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core.specs import SimilarityName
from embeval.retrieval.indexes import exact
from embeval.retrieval.ordering import ordered, unordered
from embeval.retrieval.search import TopK, best_of


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_equal_to_brute_force_whatever_the_tiles(data: st.DataObject) -> None:
    """Positions and scores equal those of brute force in float64: grids full of ties, or vectors of any length."""
    n, d, n_queries = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    if data.draw(st.booleans()):
        docs = rng.integers(-1, 2, size=(n, d)).astype(np.float32)
        queries = rng.integers(-1, 2, size=(n_queries, d)).astype(np.float32)
    else:
        docs = (rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, size=(n, 1))).astype(np.float32)
        queries = rng.normal(size=(n_queries, d)).astype(np.float32)
    similarity: SimilarityName = data.draw(st.sampled_from(["cosine", "dot", "euclidean"]))
    k, chunk = data.draw(st.integers(1, n + 2)), data.draw(st.integers(1, n))
    keys = rng.permutation(n)
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        block = data.draw(st.sampled_from([1, 4, 8]))
        patch.setattr(exact, "BLOCK", block)
        patch.setattr(exact, "TILE", block * data.draw(st.integers(1, 5)))
        patch.setattr(exact, "QUERIES_AT_ONCE", data.draw(st.integers(1, 3)))
        patch.setattr(exact, "MOST_WAITING", data.draw(st.integers(1, 50)))
        for index in ("exact", "brute"):
            top = TopK(queries, k=k, similarity=similarity, tie_keys=keys, index=index)
            for start in range(0, n, chunk):
                top.add(docs[start : start + chunk])
            found[index] = top.result()
    assert found["exact"].positions.tolist() == found["brute"].positions.tolist()
    assert found["exact"].scores.tolist() == found["brute"].scores.tolist()


FLOATS = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=30)


@given(values=FLOATS)
def test_whole_numbers_order_as_floats_do(values: list[float]) -> None:
    """Infinities and subnormal numbers too; they come back as they were, but for the sign of zero."""
    floats = np.array(values, dtype=np.float32)
    numbers = ordered(floats)
    assert np.array_equal(unordered(numbers), floats)
    assert np.array_equal(numbers[:, None] < numbers[None, :], floats[:, None] < floats[None, :])


@given(values=FLOATS.filter(lambda values: all(np.isfinite(values))), k=st.integers(1, 35), seed=st.integers(0, 99))
def test_the_best_of_candidates_are_those_of_a_full_sort(values: list[float], k: int, seed: int) -> None:
    """Greatest score first, equal ones by tie key, places without a candidate left out."""
    rng = np.random.default_rng(seed)
    scores = np.array([values], dtype=np.float32)
    positions = rng.permutation(len(values))
    positions[rng.random(len(values)) < 0.3] = -1
    keys = rng.permutation(len(values))
    found = best_of(scores, positions[None, :], keys, k)
    pairs = [(score, keys[place], place) for score, place in zip(scores[0], positions, strict=True) if place >= 0]
    expected = [place for _, _, place in sorted(pairs, reverse=True)][:k]
    assert found.positions[0].tolist() == expected + [-1] * (k - len(expected))
