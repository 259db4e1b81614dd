"""The batch plan and deduplication."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeval.encoders import batching


@given(lengths=st.lists(st.integers(0, 50), max_size=60), budget=st.integers(1, 120))
def test_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    """Each row appears once; rows x longest row fits the budget unless a batch holds one text; longest first."""
    batches = batching.plan(np.array(lengths, dtype=np.int64), budget)
    flat = [int(row) for rows in batches for row in rows]
    assert sorted(flat) == list(range(len(lengths)))
    assert [lengths[row] for row in flat] == sorted(lengths, reverse=True)
    for rows in batches:
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= budget


def test_plan_by_hand() -> None:
    """Lengths 5, 1, 3, 3, 2 under 6 tokens: the 5 alone, both 3s, then 2 and 1."""
    batches = batching.plan(np.array([5, 1, 3, 3, 2]), 6)
    assert [rows.tolist() for rows in batches] == [[0], [2, 3], [4, 1]]


def test_a_budget_below_1_is_refused() -> None:
    """It would never end."""
    with pytest.raises(ValueError, match="at least 1"):
        batching.plan(np.array([1]), 0)


@given(texts=st.lists(st.sampled_from(["a", "b", "", "A", " a"]), max_size=20))
def test_unique_leads_back(texts: list[str]) -> None:
    """Distinct texts in order of first appearance, and where each came from."""
    distinct, place = batching.unique(texts)
    assert distinct == list(dict.fromkeys(texts))
    assert [distinct[row] for row in place] == texts
