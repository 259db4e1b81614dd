"""Means and ranks over tasks, against scipy, least squares and values by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
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


def least_squares(values: npt.NDArray[np.float64], shares: list[float]) -> npt.NDArray[np.float64]:
    """Means once gaps hold what the best sum of an effect of the model and one of the task says."""
    rows, columns = np.nonzero(~np.isnan(values))
    design = np.zeros((len(rows), sum(values.shape)))
    design[np.arange(len(rows)), rows] = 1.0
    design[np.arange(len(rows)), len(values) + columns] = 1.0
    root = np.sqrt(np.array(shares)[columns])
    effects = np.linalg.lstsq(design * root[:, None], values[rows, columns] * root, rcond=None)[0]
    fitted = effects[: len(values), None] + effects[None, len(values) :]
    return np.asarray(np.where(np.isnan(values), fitted, values) @ shares)


@pytest.mark.parametrize("gaps", [0.0, 0.1, 0.3, 0.5])
def test_gaps_hold_what_least_squares_says(gaps: float) -> None:
    """Equal to ``numpy.linalg.lstsq`` on the two effects, weighted as the mean weighs."""
    rng = np.random.default_rng(0)
    values = rng.normal(0.6, 0.1, (30, 12))
    values[rng.random(values.shape) < gaps] = GAP
    shares = standings.task_shares(list(rng.uniform(0.5, 2.0, 12)))
    assert standings.expected_means(values, shares) == pytest.approx(least_squares(values, shares), abs=1e-9)


def test_leaving_out_the_hard_task_gains_nothing() -> None:
    """Where others lose 0.4 on it, so would a model without a value; by the mean of what it has it would come first."""
    values = np.array([[0.9, 0.5], [0.9, GAP], [0.8, GAP], [0.5, 0.1]])
    found = standings.expected_means(values, [0.5, 0.5])
    assert found == pytest.approx([0.7, 0.7, 0.6, 0.3])
    assert standings.competition_ranks(-found).tolist() == [1, 1, 3, 4]


def test_gaps_of_others_leave_the_order_of_complete_models() -> None:
    """However many there are; and a row with nothing has no mean."""
    rng = np.random.default_rng(1)
    complete = rng.normal(0.6, 0.1, (5, 6))
    others = rng.normal(0.6, 0.3, (20, 6))
    others[rng.random(others.shape) < 0.5] = GAP
    others[0] = GAP
    found = standings.expected_means(np.concatenate([complete, others]), [1 / 6] * 6)
    assert found[:5] == pytest.approx(complete.mean(axis=1), abs=1e-12)
    assert np.isnan(found[5])
