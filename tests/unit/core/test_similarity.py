"""Similarities against hand calculation and scipy.spatial.distance."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial import distance

from embeval.core.embeddings import Vectors
from embeval.core.similarity import SIMILARITIES, cosine, dot, euclidean, for_index, manhattan
from embeval.core.specs import SimilarityName
from tests.support.doubles import rows

NAMES: tuple[SimilarityName, ...] = get_args(SimilarityName)
SCIPY: dict[SimilarityName, Callable[[Vectors, Vectors], float]] = {
    "cosine": lambda a, b: 1.0 - distance.cosine(a, b),
    "dot": lambda a, b: sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True)),
    "euclidean": lambda a, b: -distance.euclidean(a, b),
    "manhattan": lambda a, b: -distance.cityblock(a, b),
}
LARGEST = float(np.finfo(np.float32).max)


def random_vectors(n: int, d: int, seed: int) -> Vectors:
    """float32 [n, d] from a fixed seed."""
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def test_values_by_hand() -> None:
    """3-4-5: angle to the first axis 0.6, product 3, distances 2 * sqrt(5) and 2 + 4."""
    a, b = rows([3.0, 4.0]), rows([1.0, 0.0])
    assert cosine(a, b).tolist() == [float(np.float32(0.6))]
    assert dot(a, b).tolist() == [3.0]
    assert euclidean(a, b).tolist() == [float(-np.float32(20.0**0.5))]
    assert manhattan(a, b).tolist() == [-6.0]
    assert cosine(a, -a).tolist() == [-1.0]
    assert cosine(rows([1.0, 0.0]), rows([0.0, 2.0])).tolist() == [0.0]


def test_every_name_has_a_function() -> None:
    """The table holds exactly the similarities that a spec may name."""
    assert {"cosine": cosine, "dot": dot, "euclidean": euclidean, "manhattan": manhattan} == SIMILARITIES
    assert set(SIMILARITIES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_values_equal_those_of_scipy(name: SimilarityName) -> None:
    """Pair by pair on float64 copies, to the last bit of float32 but one."""
    a, b = random_vectors(50, 17, 1), random_vectors(50, 17, 2)
    expected = [SCIPY[name](x, y) for x, y in zip(a.astype(np.float64), b.astype(np.float64), strict=True)]
    ours = SIMILARITIES[name](a, b)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, np.array(expected, dtype=np.float32), rtol=2e-7, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_pair_has_one_score_wherever_it_stands(name: SimilarityName) -> None:
    """Alone, in a batch, in a slice of one, with its sides swapped, or in a table of all against all: to the bit."""
    similarity = SIMILARITIES[name]
    for d in (1, 3, 64, 383):
        a, b = random_vectors(40, d, d), random_vectors(40, d, d + 1)
        together = similarity(a, b)
        table = similarity(a[:, None, :], b[None, :, :])
        assert table.shape == (40, 40)
        assert np.array_equal(np.diagonal(table), together)
        assert np.array_equal(similarity(b, a), together)
        assert np.array_equal(similarity(a[7:], b[7:]), together[7:])
        assert all(similarity(a[row], b[row]) == together[row] for row in range(40))
        repeated = similarity(np.repeat(a[:1], 9, axis=0), np.repeat(b[:1], 9, axis=0))
        assert set(repeated.tolist()) == {float(together[0])}


@pytest.mark.parametrize("name", ["euclidean", "manhattan"])
def test_distances_are_negated(name: SimilarityName) -> None:
    """0 for a vector with itself and below 0 for any other, so that higher is better."""
    vectors = random_vectors(30, 8, 3)
    assert SIMILARITIES[name](vectors, vectors).tolist() == [0.0] * 30
    assert (SIMILARITIES[name](vectors, np.roll(vectors, 1, axis=0)) < 0).all()


@settings(deadline=None)
@given(
    vectors=hnp.arrays(
        np.float32,
        st.tuples(st.just(2), st.integers(1, 8)),
        elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
    )
)
def test_cosine_stays_within_one(vectors: Vectors) -> None:
    """For every pair of float32 vectors, the largest and the tiniest too; exactly 1 with itself, or 0 for zero."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, own = float(cosine(vectors[0], vectors[1])), cosine(vectors, vectors)
    assert -1.0 <= value <= 1.0
    assert own.tolist() == [1.0 if vector.any() else 0.0 for vector in vectors]


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e-44, 1e30, LARGEST])
def test_cosine_does_not_depend_on_length(scale: float) -> None:
    """45 degrees are 45 degrees at every size that float32 has."""
    (value,) = cosine(rows([scale, 0.0]), rows([scale, scale])).tolist()
    assert value == float(np.float32(0.5**0.5))


def test_cosine_with_a_zero_vector_is_zero() -> None:
    """With any vector and with another zero vector, and without a warning of numpy."""
    a = rows([0.0, 0.0], [0.0, 0.0], [1.0, 2.0])
    b = rows([1.0, 2.0], [0.0, 0.0], [-0.0, 0.0])
    assert cosine(a, b).tolist() == [0.0, 0.0, 0.0]


def test_no_pairs_have_no_scores() -> None:
    """An empty batch gives an empty array of float32."""
    nothing = np.zeros((0, 4), dtype=np.float32)
    for similarity in SIMILARITIES.values():
        assert similarity(nothing, nothing).tolist() == []
        assert similarity(nothing, nothing).dtype == np.float32


def test_inputs_are_left_alone() -> None:
    """No similarity writes into what it reads."""
    a, b = random_vectors(5, 4, 4), random_vectors(5, 4, 5)
    before = a.copy(), b.copy()
    for name in NAMES:
        SIMILARITIES[name](a, b)
        for_index(a, name)
    assert np.array_equal(a, before[0])
    assert np.array_equal(b, before[1])


def test_an_index_gets_unit_vectors_for_cosine_only() -> None:
    """Length 1 for cosine, zero rows left at zero; the very same array for the others."""
    vectors = rows([3.0, 4.0], [0.0, 0.0])
    np.testing.assert_allclose(for_index(vectors, "cosine"), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-7)
    for name in NAMES:
        assert (for_index(vectors, name) is vectors) == (name != "cosine")
