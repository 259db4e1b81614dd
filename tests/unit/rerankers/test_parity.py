"""Scores side by side, in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from embeval.rerankers.parity import ScoreBounds, compare


def scores(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """float32 [n]."""
    return np.array(values, dtype=np.float32)


def test_differences() -> None:
    """Five pairs of two queries: the last two change places, and so does the best of the second query."""
    found = compare(scores(5, 4, 3, 2, 1), scores(5, 4, 3, 1, 2), [3, 2])
    assert found.n_pairs == 5
    assert found.max_abs == 1.0
    assert found.spearman == pytest.approx(1 - 6 * 2 / (5 * 24))  # d = 0 0 0 1 1
    assert found.top_1 == 0.5


def test_no_order_at_all() -> None:
    """Constant scores keep an order only if both sides have none."""
    same = scores(1, 1, 1)
    assert compare(same, same, [3]).spearman == 1.0
    assert compare(same, scores(1, 2, 3), [3]).spearman == 0.0


def test_bounds() -> None:
    """What breaks them, in words; NaN breaks them too."""
    found = compare(scores(1, 2, 3), scores(1, 3, 2), [3])
    assert ScoreBounds(spearman=0.5, top_1=0.0).broken_by(found) == []
    assert ScoreBounds(spearman=0.9, top_1=1.0).broken_by(found) == [
        "spearman 0.50000 is below 0.9",
        "top_1 0.00000 is below 1",
    ]


def test_sizes_that_do_not_fit() -> None:
    """A mistake of the caller."""
    with pytest.raises(ValueError, match="can't be compared"):
        compare(scores(1, 2), scores(1, 2), [3])
