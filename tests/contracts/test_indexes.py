"""What every kind of index must do, compared by value with a full sort."""

from __future__ import annotations

import numpy as np
import pytest

from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.errors import InvalidEmbeddingsError
from embeval.retrieval.kinds import INDEXES

RNG = np.random.default_rng(11)
DOCS = RNG.normal(size=(200, 16)).astype(np.float32)
QUERIES = RNG.normal(size=(9, 16)).astype(np.float32)
KINDS = [(name, similarity) for name in INDEXES.names() for similarity in SIMILARITIES]


@pytest.mark.parametrize(("name", "similarity"), KINDS)
def test_neighbours_and_scores_are_the_true_ones(name: str, similarity: SimilarityName) -> None:
    """An exact index finds the 10 best of a full sort, with scores right to 1e-4 and higher always better.

    A kind that may miss neighbours must still give true scores for those that it finds.
    """
    kind = INDEXES.get(name)
    index = kind.create(16, similarity)
    index.add(DOCS[:70])
    index.add(DOCS[70:])
    assert len(index) == 200
    found = index.search(QUERIES, 10)
    for row, query in enumerate(QUERIES):
        truth = SIMILARITIES[similarity](np.broadcast_to(query, DOCS.shape), DOCS)
        np.testing.assert_allclose(found.scores[row], truth[found.positions[row]], atol=1e-4)
        assert np.all(np.diff(found.scores[row]) <= 1e-6)
        if kind.exact:
            assert found.positions[row].tolist() == np.argsort(-truth, kind="stable")[:10].tolist()


@pytest.mark.parametrize(("name", "similarity"), KINDS)
def test_fewer_vectors_than_wanted(name: str, similarity: SimilarityName) -> None:
    """3 vectors, 5 wanted: 3 found, then -1 and -inf; an empty index gives nothing but these."""
    index = INDEXES.get(name).create(16, similarity)
    empty = index.search(QUERIES, 5)
    assert np.all(empty.positions == -1)
    assert np.all(np.isneginf(empty.scores))
    index.add(DOCS[:3])
    found = index.search(QUERIES, 5)
    assert np.sort(found.positions[:, :3], axis=1).tolist() == [[0, 1, 2]] * len(QUERIES)
    assert np.all(found.positions[:, 3:] == -1)
    assert np.all(np.isneginf(found.scores[:, 3:]))
    assert index.search(QUERIES[:0], 5).positions.shape == (0, 5)


@pytest.mark.parametrize(("name", "similarity"), KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_vectors_are_refused(name: str, similarity: SimilarityName, bad: float) -> None:
    """NaN and Inf never get into an index or a query (F11)."""
    index = INDEXES.get(name).create(16, similarity)
    index.add(DOCS)
    broken = DOCS[:2].copy()
    broken[1, 3] = bad
    with pytest.raises(InvalidEmbeddingsError, match=r"1 of 2 texts: 'row 1'"):
        index.add(broken)
    with pytest.raises(InvalidEmbeddingsError, match=r"1 of 2 texts: 'row 1'"):
        index.search(broken, 3)
    assert len(index) == 200


@pytest.mark.parametrize("name", INDEXES.names())
def test_zero_vectors_have_cosine_0(name: str) -> None:
    """A zero document stands between the positive and the negative cosines."""
    index = INDEXES.get(name).create(2, "cosine")
    index.add(np.array([[-1, 0], [0, 0], [1, 0]], dtype=np.float32))
    found = index.search(np.array([[2, 0]], dtype=np.float32), 3)
    assert found.positions.tolist() == [[2, 1, 0]]
    assert found.scores.tolist() == [[1.0, 0.0, -1.0]]
