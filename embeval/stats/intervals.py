"""Bounds of confidence intervals: BCa, percentile, studentised bootstrap, and Wilson's for shares.

A two-sided interval of level L has the one-sided bounds at (1 - L) / 2 as its ends. Which to take, by
``benchmarks/study_intervals.py``: Wilson's for a share of items (a column of 0 and 1), BCa for every other score, BCa
or studentised for differences, and BCa on ``with_unseen`` where a decision hangs on the difference of two means.

Sources: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapters 12 (studentised), 13 (percentile) and
14 (BCa); Wilson, JASA 1927.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal

import numpy as np

from embeval.core.records import Column
from embeval.stats.rng import seed_sequence

Method = Literal["bca", "studentised", "wilson", "score"]
"""How an interval was made, as results name it."""
Side = Literal["lower", "upper"]

NORMAL = NormalDist()
ROUNDING = 1e-9
"""A value per item may lie beyond its limits by so much, and no limits are lost by it."""


def percentile_bound(samples: Column, alpha: float, side: Side) -> float:
    """The quantile of the resampled values that leaves ``alpha`` of them outside."""
    return float(np.quantile(samples[~np.isnan(samples)], alpha if side == "lower" else 1.0 - alpha))


def bca_bound(
    estimate: float, samples: Column, jackknife: Column, alpha: float, side: Side, *, guarded: Column | None = None
) -> float:
    """The percentile bound, corrected for bias and for an error that changes with the value.

    ``jackknife`` float64 [J] holds leave-one-out values of the same metric; only their distances from their mean
    count. With ``guarded`` the quantile is taken of these values, as ``with_unseen`` makes them of ``samples``.
    Equal to ``scipy.stats.bootstrap`` with the method BCa on the same samples.
    """
    drawn = samples[~np.isnan(samples)]
    level = alpha if side == "lower" else 1.0 - alpha
    # Half of the resamples that equal the estimate count as below it. What is left of rounding is no difference.
    slack = 1e-12 * max(1.0, abs(estimate))
    below = float((drawn < estimate - slack).mean() + (drawn <= estimate + slack).mean()) / 2.0
    if 0.0 < below < 1.0:  # else all resamples lie on one side, and there is nothing to correct with
        bias = NORMAL.inv_cdf(below)
        z = bias + NORMAL.inv_cdf(level)
        level = NORMAL.cdf(bias + z / (1.0 - acceleration(jackknife) * z))
    return float(np.quantile(drawn if guarded is None else guarded[~np.isnan(guarded)], level))


def acceleration(jackknife: Column) -> float:
    """How fast the standard error changes with the value: a sixth of the skewness of the leave-one-out values.

    0 where these don't differ. Source: Efron & Tibshirani 1993, equation 14.15.
    """
    values = jackknife[~np.isnan(jackknife)]
    if not len(values):
        return 0.0
    pulls = values.mean() - values
    spread = float((pulls**2).sum())
    return float((pulls**3).sum()) / (6.0 * spread**1.5) if spread > 0.0 else 0.0


def limits(*columns: Column) -> tuple[float, float] | None:
    """(0, 1) where all values lie there, as those of ranking metrics do, (-1, 1) where they lie there, as lifts do.

    None: not known. A rounding error beyond counts as there: two equal sums in another order may have a ratio of
    1 + 4e-16.
    """
    for low, high in ((0.0, 1.0), (-1.0, 1.0)):
        if all(len(each) and each.min() >= low - ROUNDING and each.max() <= high + ROUNDING for each in columns):
            return low, high
    return None


def with_unseen(samples: Column, n_items: float, worst: float) -> Column:
    """Resampled means, each with a share of the items that were never drawn and have the value ``worst``.

    A resample holds nothing but what was seen. Where most queries are unchanged and some are lost altogether, fifty
    of them may well show none of those, and every bootstrap then says that there are none: its bound is wrong in a
    third of the cases instead of a twentieth (``benchmarks/results/intervals.md``). Here one item stands for all that
    was not seen, with a weight drawn from Beta(1, n), so that the bound is that of Clopper and Pearson where no item
    changed, and the ordinary one where there are many. For bounds that a decision hangs on, of a mean with known
    limits: ``worst`` is -1 for the lower bound of a difference of values in [0, 1], and 1 for the upper one. With
    clusters, ``n_items`` is how many there are.

    Source: Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
    variable", Mathematical Methods of Statistics 2005; Learned-Miller & Thomas, "A new confidence interval for the
    mean of a bounded random variable", 2019. There the items have Dirichlet weights, here those of the resample.
    """
    # The weights are quantiles, the same for every metric, in an order that has nothing to do with the resamples.
    order = np.random.default_rng(seed_sequence(len(samples), "unseen")).permutation(len(samples))
    weights = -np.expm1(np.log1p(-(order + 0.5) / len(samples)) / n_items)
    return np.asarray(samples + weights * (worst - samples))


def studentised_bound(
    estimate: float, error: float, samples: Column, errors: Column, alpha: float, side: Side
) -> float:
    """The bound from the distribution of (resampled - estimate) / its own error, the bootstrap-t.

    ``error`` is the standard error on all items, ``errors`` float64 [R] that of each resample. Resamples without any
    spread say nothing of it and are left out. Of single scores it is too wide where fifty values are skewed.
    """
    defined = (errors > 0.0) & ~np.isnan(samples)
    if error == 0.0 or not defined.any():
        return estimate
    steps = (samples[defined] - estimate) / errors[defined]
    return float(estimate - error * np.quantile(steps, 1.0 - alpha if side == "lower" else alpha))


def wilson(successes: float, n: int, level: float) -> tuple[float, float]:
    """Wilson's score interval of a share, ``successes`` of ``n``; never outside [0, 1].

    Equal to ``scipy.stats.binomtest(...).proportion_ci(method="wilson")``.
    """
    z = NORMAL.inv_cdf((1.0 + level) / 2.0)
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1.0 + z * z / n)
    half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4 * n * n)) ** 0.5
    low = 0.0 if successes == 0 else middle - half  # exactly, where rounding would leave a trace
    return low, 1.0 if successes == n else middle + half


def f1(tp: float, fp: float, fn: float, level: float) -> tuple[float, float]:
    """Interval of F1 = 2 tp / (2 tp + fp + fn): Wilson's of the share tp / (tp + fp + fn), carried over.

    F1 grows with that share and hangs on nothing else, so the ends of one are those of the other. At least one of the
    three must be above 0.
    """
    low, high = wilson(tp, int(tp + fp + fn), level)
    return 2.0 * low / (1.0 + low), 2.0 * high / (1.0 + high)
