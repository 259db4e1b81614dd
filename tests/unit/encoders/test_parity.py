"""How near two sets of vectors are, by closed forms and by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embeval.encoders.parity import BOUNDS, Bounds, Parity, compare


def test_equal_vectors() -> None:
    """Cosine 1, no difference, all neighbours shared; length doesn't count."""
    vectors = np.random.default_rng(0).standard_normal((30, 8)).astype(np.float32)
    parity = compare(vectors, vectors * 3)
    assert parity.n_texts == 30
    assert parity.top_10_overlap == 1.0
    assert parity.cosine_min == pytest.approx(1.0, abs=1e-6)
    assert parity.max_abs == pytest.approx(0.0, abs=1e-6)


def test_a_turned_vector() -> None:
    """One of two turned by 60 degrees: cosines 1/2 and 1, mean 3/4; largest difference sin 60 degrees."""
    left = np.array([[1, 0], [0, 1]], dtype=np.float32)
    angle = math.pi / 3
    right = np.array([[math.cos(angle), math.sin(angle)], [0, 1]], dtype=np.float32)
    parity = compare(left, right)
    assert parity.cosine_min == pytest.approx(0.5, abs=1e-6)
    assert parity.cosine_mean == pytest.approx(0.75, abs=1e-6)
    assert parity.max_abs == pytest.approx(math.sin(angle), abs=1e-6)
    assert parity.top_10_overlap == 1.0  # the only neighbour of each is the other


def test_neighbours_by_brute_force() -> None:
    """The 10 nearest of each text by sorting all cosines, itself left out."""
    random = np.random.default_rng(1)
    left = random.standard_normal((40, 6)).astype(np.float32)
    right = (left + 0.3 * random.standard_normal((40, 6))).astype(np.float32)
    shares = []
    for row in range(40):
        nearest = []
        for side in (left.astype(np.float64), right.astype(np.float64)):
            cosines = [
                (side[row] @ other / np.linalg.norm(side[row]) / np.linalg.norm(other), place)
                for place, other in enumerate(side)
                if place != row
            ]
            nearest.append({place for _, place in sorted(cosines, reverse=True)[:10]})
        shares.append(len(nearest[0] & nearest[1]) / 10)
    found = compare(left, right).top_10_overlap
    assert found == pytest.approx(np.mean(shares), abs=1e-9)
    assert 0.5 < found < 0.95


def test_texts_without_a_vector_are_left_out() -> None:
    """On both sides; on one side alone it is a text that lost its vector, with cosine 0."""
    left = np.array([[1, 0], [0, 0], [0, 1]], dtype=np.float32)
    assert compare(left, left).n_texts == 2
    lost = left.copy()
    lost[2] = 0
    parity = compare(left, lost)
    assert (parity.n_texts, parity.cosine_min) == (2, 0.0)


def test_one_text_has_no_neighbours() -> None:
    """Nothing of them is lost."""
    assert compare(np.ones((1, 3), np.float32), np.ones((1, 3), np.float32)).top_10_overlap == 1.0


def test_what_cannot_be_compared() -> None:
    """Other shapes, and nothing at all."""
    with pytest.raises(ValueError, match=r"vectors of shape \[2, 3\] can't be compared with \[2, 2\]"):
        compare(np.ones((2, 2), np.float32), np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="no text has a vector"):
        compare(np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32))


def parity_of(cosine: float, overlap: float) -> Parity:
    """With those values."""
    return Parity(n_texts=9, cosine_min=cosine, cosine_mean=cosine, max_abs=0.0, top_10_overlap=overlap)


def test_bounds() -> None:
    """At the bound passes, below it doesn't, and NaN never does."""
    bounds = Bounds(cosine_min=0.9, top_10_overlap=0.8)
    assert bounds.broken_by(parity_of(0.9, 0.8)) == []
    assert bounds.broken_by(parity_of(0.89, 0.8)) == ["cosine_min 0.89000 is below 0.9"]
    assert bounds.broken_by(parity_of(math.nan, math.nan)) == [
        "cosine_min nan is below 0.9",
        "top_10_overlap nan is below 0.8",
    ]


def test_float32_is_held_to_the_most() -> None:
    """0.9999 in float32 (F9), and less the fewer bits there are."""
    assert BOUNDS["float32"].cosine_min == 0.9999
    assert [each.cosine_min for each in BOUNDS.values()] == sorted(
        (b.cosine_min for b in BOUNDS.values()), reverse=True
    )
