"""Means and ranks of models over tasks. A missing task is a gap, never a zero.

Sources: Mean(Task), Mean(TaskType) and Rank(Borda) as ``mteb.benchmarks._create_table`` of mteb 2.26 computes them,
which a test holds them to.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


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
    """float64 [K]: weighted mean of each row of ``values`` [K, T]; NaN for a row with a gap."""
    return np.asarray(values @ np.asarray(shares, dtype=float)) if values.size else np.full(len(values), np.nan)


def means_of_known(values: Values, shares: Sequence[float]) -> Values:
    """float64 [K]: weighted mean of what a row has, its gaps left out; NaN for a row with nothing."""
    known = ~np.isnan(values)
    weights = known * np.asarray(shares, dtype=float)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).dot(np.diag(shares)).sum(axis=1) / weights.sum(axis=1))


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
    """int64 [n]: ranks from 1, smallest first; equal ones share the better: 1, 2, 2, 4."""
    return np.asarray(np.searchsorted(np.sort(values), values, side="left") + 1, dtype=np.int64)
