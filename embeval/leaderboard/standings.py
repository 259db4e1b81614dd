"""Means and ranks of models over tasks. A missing task is a gap, never a zero.

Sources: Mean(Task), Mean(TaskType) and Rank(Borda) as ``mteb.benchmarks._create_table`` of mteb 2.26 computes them,
which a test holds them to.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
ROUNDING = 1e-12
"""Difference of two means, in parts of the largest, up to which they are equal."""


def task_shares(weights: Sequence[float]) -> list[float]:
    """What each task counts in the mean over tasks."""
    total = sum(weights)
    return [weight / total for weight in weights]


def type_shares(weights: Sequence[float], groups: Sequence[str]) -> list[float]:
    """What each task counts in the mean over groups of the means within them."""
    names = list(dict.fromkeys(groups))
    within = {name: sum(w for w, group in zip(weights, groups, strict=True) if group == name) for name in names}
    return [weight / within[group] / len(names) for weight, group in zip(weights, groups, strict=True)]


def means(values: Values, shares: Sequence[float]) -> Values:
    """float64 [K]: weighted mean of each row of ``values`` [K, T]; NaN for a row with a gap.

    Added up task by task, so that every machine, and the page, gets the same digits.
    """
    total = np.zeros(len(values))
    for share, column in zip(shares, values.T, strict=True):
        total += share * column
    return total


def at_worst(values: Values) -> Values:
    """float64 [K, T]: the values, higher being better, with each gap as the worst that any row has there.

    So a gap helps nobody, as it does not in Borda's count: a model never stands above one that is as good wherever both
    have a value, but for gaps of that one. Of a column without any value all get 0.
    """
    worst = np.where(np.isnan(values), np.inf, values).min(axis=0, initial=np.inf)
    return np.where(np.isnan(values), np.where(np.isinf(worst), 0.0, worst), values)


def borda(values: Values) -> npt.NDArray[np.int64]:
    """int64 [K]: rank by Borda's count; of K models the best on a task gets K - 1 points, a gap 0.

    Ties share the average rank on a task, and the better of their ranks in the end.
    """
    k = len(values)
    points = np.zeros(k)
    for column in values.T:
        there = ~np.isnan(column)
        points[there] += k - average_ranks(-column[there])
    return competition_ranks(-points)


def average_ranks(values: Values) -> Values:
    """float64 [n]: ranks from 1, smallest first, ties sharing their average."""
    order = np.argsort(values, kind="stable")
    _, inverse, counts = np.unique(values[order], return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = np.empty(len(values))
    ranks[order] = (ends - (counts - 1) / 2.0)[inverse]
    return ranks


def competition_ranks(values: Values) -> npt.NDArray[np.int64]:
    """int64 [n]: ranks from 1, smallest first; equal ones share the better: 1, 2, 2, 4.

    Values are equal that differ by rounding alone: the same scores add up differently in another order.
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    smallest = ROUNDING * float(np.abs(values).max(initial=0.0))
    starts = np.concatenate([[True], np.diff(ascending) > smallest]) if len(values) else np.zeros(0, dtype=np.bool_)
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.maximum.accumulate(np.where(starts, np.arange(1, len(values) + 1), 1))
    return ranks
