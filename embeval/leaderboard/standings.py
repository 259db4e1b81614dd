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
ROUNDS = 200
"""How often gaps are estimated anew: enough for all digits where models share half of their tasks."""


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


def expected_means(values: Values, shares: Sequence[float]) -> Values:
    """float64 [K]: weighted mean of each row as it would be without its gaps; NaN for a row with nothing.

    A model that left out a hard task would look better by the mean of what it has. Here a gap holds what the model
    shows elsewhere, less or more by what others lose or gain on that task. Rows without gaps keep their means. Source:
    Yates, Empire Journal of Experimental Agriculture 1933 (values that are missing from a table with two ways).
    """
    known = ~np.isnan(values)
    if known.all():
        return means(values, shares)
    own = known * np.asarray(shares, dtype=float)
    weights, counts = _filled(own.sum(axis=1)), _filled(known.sum(axis=0).astype(float))
    there = np.where(known, values, 0.0)
    columns = np.zeros(values.shape[1])
    for _ in range(ROUNDS):
        rows = (own * (there - columns)).sum(axis=1) / weights
        columns = (known * (there - rows[:, None])).sum(axis=0) / counts
    filled = np.where(known, values, rows[:, None] + columns)
    return np.where(known.any(axis=1), means(filled, shares), np.nan)


def _filled(sums: Values) -> Values:
    """The sums, 1 for 0: nothing is divided by them then."""
    return np.where(sums > 0.0, sums, 1.0)


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
