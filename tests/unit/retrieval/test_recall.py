"""Recall of approximate search, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from embeval.retrieval.recall import ann_recall


def _rows(*rows: list[int]) -> np.ndarray:
    return np.array(rows)


def test_shares_counted_by_hand() -> None:
    """All, half, none; beyond k nothing counts."""
    exact, scores = _rows([1, 2, 3, 4]), np.array([[0.9, 0.8, 0.7, 0.6]], dtype=np.float32)
    for found, found_scores, k, share in [
        ([1, 2, 3, 4], [0.9, 0.8, 0.7, 0.6], 4, 1.0),
        ([1, 3, 7, 8], [0.9, 0.7, 0.5, 0.4], 4, 0.5),
        ([1, 3, 7, 8], [0.9, 0.7, 0.5, 0.4], 2, 0.5),
        ([5, 6, 7, 8], [0.5, 0.4, 0.3, 0.2], 4, 0.0),
        ([1, -1, -1, -1], [0.9, -np.inf, -np.inf, -np.inf], 4, 0.25),
    ]:
        got = ann_recall(_rows(found), exact, scores, np.array([found_scores], dtype=np.float32), k)
        assert got.tolist() == [share]
        assert got.dtype == np.float64


def test_equal_documents_stand_for_each_other() -> None:
    """The exact top 2 are 1 and 2; 9 ties with 2, so finding 1 and 9 is all there is to find."""
    exact, scores = _rows([1, 2, 9]), np.array([[0.9, 0.5, 0.5]], dtype=np.float32)
    found_scores = np.array([[0.9, 0.5, 0.1]], dtype=np.float32)
    assert ann_recall(_rows([1, 9, 3]), exact, scores, found_scores, 2).tolist() == [1.0]


def test_fewer_documents_than_k() -> None:
    """Of two documents in all, one found is a half; the padding is nothing that could be missed."""
    exact, scores = _rows([0, 1, -1]), np.array([[0.9, 0.5, -np.inf]], dtype=np.float32)
    found, found_scores = _rows([1, -1, -1]), np.array([[0.5, -np.inf, -np.inf]], dtype=np.float32)
    assert ann_recall(found, exact, scores, found_scores, 3).tolist() == [0.5]


def test_what_makes_no_sense_is_refused() -> None:
    """No exact neighbour, a k beyond the exact depth, a document twice: never a number."""
    scores = np.zeros((1, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="no exact neighbour"):
        ann_recall(_rows([0, 1]), _rows([-1, -1]), scores, scores, 2)
    with pytest.raises(ValueError, match="k must be 1 to 2"):
        ann_recall(_rows([0, 1]), _rows([0, 1]), scores, scores, 3)
    with pytest.raises(ValueError, match="found twice"):
        ann_recall(_rows([1, 1]), _rows([0, 1]), scores, scores, 2)
