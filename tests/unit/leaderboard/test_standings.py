"""Means and ranks over tasks, against scipy, least squares and values by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from embeval.leaderboard import standings

GAP = float("nan")
FEW_VALUES = st.lists(st.integers(0, 4), min_size=1, max_size=12)


@given(FEW_VALUES)
def test_ranks_of_ties(values: list[int]) -> None:
    """Those of ``scipy.stats.rankdata``: ties share the average on a task, and the better rank in the end."""
    column = np.array(values) / 10.0
    assert standings.average_ranks(column).tolist() == stats.rankdata(column, "average").tolist()
    assert standings.competition_ranks(column).tolist() == stats.rankdata(column, "min").tolist()


def test_equal_means_share_a_rank_in_whatever_order_they_are_added_up() -> None:
    """0.1 + 0.2 + 0.3 isn't 0.3 + 0.2 + 0.1 in floating point, and both are the same mean."""
    values = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.1, 0.2, 0.4]])
    found = standings.means(values, [1.0, 1.0, 1.0])
    assert found[0] != found[1]
    assert standings.competition_ranks(-found).tolist() == [2, 2, 1]


def test_what_tasks_count() -> None:
    """Weights within tasks, and within groups that count the same each."""
    assert standings.task_shares([1.0, 3.0]) == [0.25, 0.75]
    assert standings.type_shares([1.0, 1.0, 2.0], ["STS", "STS", "Retrieval"]) == [0.25, 0.25, 0.5]
    assert standings.type_shares([1.0, 3.0, 2.0], ["STS", "STS", "Retrieval"]) == [0.125, 0.375, 0.5]


def test_a_gap_leaves_no_mean() -> None:
    """Never a zero, and never the mean of the rest."""
    found = standings.means(np.array([[0.2, 0.4], [0.9, GAP]]), [0.25, 0.75])
    assert found[0] == pytest.approx(0.35)
    assert np.isnan(found[1])


def test_borda_by_hand() -> None:
    """Three models, ties halved: 2 + 1.5, 1 + 1.5 and 0 + 0 points; the model with a gap gets none there."""
    values = np.array([[0.9, 0.5], [0.8, 0.5], [0.7, GAP]])
    assert standings.borda(values).tolist() == [1, 2, 3]
    assert standings.borda(np.array([[0.9, 0.5], [0.5, 0.9], [0.1, 0.1]])).tolist() == [1, 1, 3]


def test_a_gap_is_as_bad_as_the_worst() -> None:
    """Never a zero, unless nobody has a value."""
    values = np.array([[0.9, GAP, GAP], [0.8, 0.3, GAP], [GAP, 0.2, GAP]])
    assert standings.at_worst(values).tolist() == [[0.9, 0.2, 0.0], [0.8, 0.3, 0.0], [0.8, 0.2, 0.0]]
    assert standings.at_worst(np.empty((0, 2))).shape == (0, 2)


@given(st.integers(0, 10_000))
def test_gaps_help_nobody(seed: int) -> None:
    """No model has a better mean than a complete one that is as good wherever both have a value."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (6, 4)) / 4.0 - 1.0
    values[1:][rng.random((5, 4)) < 0.4] = GAP
    found = standings.means(standings.at_worst(values), [0.25] * 4)
    for model in range(1, 6):
        known = ~np.isnan(values[model])
        if (values[0, known] >= values[model, known]).all():
            assert found[0] >= found[model]
