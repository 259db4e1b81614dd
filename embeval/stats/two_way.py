"""Two systems that were run several times each on the same items: how sure the difference is where both vary.

Other items would have given another difference, and so would other runs (another seed of a training, of sampling, of
an approximate index). Resampling only items takes the runs at hand for all there are, and its intervals are too narrow.
Here items, and runs of each side for themselves, are resampled at once, and a value counts as often as its item times
as its run is drawn. Bounds and p are studentised, so that few runs make them wide.

Sources: Owen, Annals of Applied Statistics 2007 (the pigeonhole bootstrap); Searle, Casella & McCulloch, Variance
Components, 1992, chapter 4 (the standard error: crossed items and runs with one value each).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Undefined
from embeval.core.specs import StatisticsOptions
from embeval.stats.bootstrap import BLOCK, draw_counts
from embeval.stats.paired import Contrast
from embeval.stats.rng import seed_sequence

Rows = npt.NDArray[np.float64]

ROUNDING = 1e-13
"""Largest variance, in squares of the largest value, that is still rounding error."""


@dataclass(frozen=True)
class TwoWay:
    """Mean of a candidate's runs - mean of a baseline's."""

    contrast: Contrast
    """The difference and its bounds."""
    n_runs: tuple[int, int]
    """Runs of baseline and candidate."""
    p: float | None
    """Two-sided p of "there is no difference"; None where there is none."""


def compare(baseline: Rows, candidate: Rows, statistics: StatisticsOptions, *purpose: str) -> TwoWay | Undefined:
    """The difference over items and runs from float64 [S, n] and [S', n]: one row per run, columns the same items.

    Items that lack a value (NaN) in any run are left out. With a single run of a side there are no bounds: it says
    nothing of other runs. ``purpose`` names the random stream. Raises ``ValueError`` for other shapes.
    """
    if baseline.ndim != 2 or candidate.ndim != 2 or baseline.shape[1] != candidate.shape[1]:
        raise ValueError(f"two tables [runs, items] of the same items, not {baseline.shape} and {candidate.shape}")
    whole = ~(np.isnan(baseline).any(axis=0) | np.isnan(candidate).any(axis=0))
    sides = [baseline[:, whole], candidate[:, whole]]
    n_items, n_runs = int(whole.sum()), (len(baseline), len(candidate))
    if not n_items or not min(n_runs):
        return Undefined("too_few_items")
    centres = [float(side.mean()) for side in sides]
    estimate = centres[1] - centres[0]
    if n_items < 2 or min(n_runs) < 2 or not statistics.resamples:
        return TwoWay(Contrast(estimate, np.empty(0), n_items), n_runs, None)
    differences = _Differences([side - centre for side, centre in zip(sides, centres, strict=True)])
    error = float(differences([np.ones((size, 1)) for size in (*n_runs, n_items)])[1][0])
    n_blocks = -(-statistics.resamples // BLOCK)
    drawn = np.empty((2, n_blocks * BLOCK))
    for block, stream in enumerate(seed_sequence(statistics.seed, "two-way", *purpose).spawn(n_blocks)):
        rng = np.random.default_rng(stream)
        weights = [draw_counts(size, BLOCK, rng).astype(np.float64) for size in (*n_runs, n_items)]
        drawn[:, block * BLOCK : (block + 1) * BLOCK] = differences(weights)
    samples, errors = drawn[:, : statistics.resamples]
    p = _p_value(estimate, error, samples, errors)
    return TwoWay(Contrast(estimate, samples + estimate, n_items, error=error, errors=errors), n_runs, p)


class _Differences:
    """Mean differences and their standard errors, for any weights of runs and items."""

    def __init__(self, sides: list[Rows]) -> None:
        """Baseline and candidate, each with a mean of 0."""
        self._sides = sides
        self._squares = [side**2 for side in sides]
        self._rounding = ROUNDING * max(float(square.max()) for square in self._squares)

    def __call__(self, weights: list[Rows]) -> Rows:
        """float64 [2, R]: differences and errors, for weights [S, R], [S', R] and [n, R] that sum up to S, S' and n."""
        items = weights[2]
        n = len(items)
        variance = np.zeros(items.shape[1])
        means, of_items = [], []
        for side, square, runs in zip(self._sides, self._squares, weights, strict=False):
            s = len(runs)
            of_runs = side @ items / n
            mean = (runs * of_runs).sum(axis=0) / s
            by_item = side.T @ runs / s
            between_runs = (runs * of_runs**2).sum(axis=0) / s - mean**2
            between_items = (items * by_item**2).sum(axis=0) / n - mean**2
            total = (runs * (square @ items)).sum(axis=0) / (s * n) - mean**2
            # What runs and items don't explain is in both of the variances between them, and counts once.
            variance += between_runs / (s - 1) - (total - between_runs - between_items) / ((s - 1) * (n - 1))
            means.append(mean)
            of_items.append(by_item)
        difference = means[1] - means[0]
        between = ((items * (of_items[1] - of_items[0]) ** 2).sum(axis=0) / n - difference**2) / (n - 1)
        variance = np.maximum(variance, 0.0) + between
        variance[variance <= self._rounding / n] = 0.0
        return np.stack([difference, np.sqrt(variance)])


def _p_value(estimate: float, error: float, steps: Rows, errors: Rows) -> float | None:
    """Share of resamples that are as many of their own errors away from the estimate as that is from zero."""
    if error == 0.0:
        return 1.0 if estimate == 0.0 else None
    spread = errors > 0.0
    far = np.abs(steps[spread]) >= abs(estimate) / error * errors[spread]
    return float(far.sum() + 1) / (int(spread.sum()) + 1)
