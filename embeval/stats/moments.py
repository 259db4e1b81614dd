"""Means of paired values and their standard errors, on all items and on resamples of them, in matrix products.

The standard error is that of a mean over units drawn with replacement. Units are items, or clusters of them; then the
mean is a ratio of two sums over clusters, and its error is linearised by cluster.

Source: Cochran, Sampling Techniques, 1977, section 9A (ratio to size of clusters).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float64]

ROUNDING = 1e-13
"""Largest spread, in squares of the largest value, that is still rounding error and no spread."""


@dataclass(frozen=True)
class Moments:
    """Squared standard errors of paired means, from which that of candidate - scale x baseline follows."""

    squares: Rows
    """float64 [3, ..., R]: variance of the mean difference, its covariance with the mean of the baseline, and the
    variance of that."""

    def error(self, scale: float) -> Rows:
        """float64 [..., R]: the standard error of candidate - scale x baseline; 0 where all items agree."""
        # candidate - scale x baseline = difference + (1 - scale) x baseline
        difference, product, baseline = self.squares
        left = 1.0 - scale
        square = difference + 2.0 * left * product + left**2 * baseline
        square[square <= ROUNDING * (difference + left**2 * baseline)] = 0.0
        return np.asarray(np.sqrt(square))


class PairedMeans:
    """Means of M metrics of two systems, for any weights of the units."""

    def __init__(self, baseline: Rows, candidate: Rows, units: npt.NDArray[np.intp] | None) -> None:
        """Values float64 [M, n] of both sides; ``units`` [n] numbers the cluster of each item, None: none."""
        both = np.concatenate([candidate - baseline, baseline])
        self._centres = both.mean(axis=1, keepdims=True)
        centred = both - self._centres
        # What is left of equal values is rounding error.
        largest = np.maximum(np.abs(baseline).max(axis=1), np.abs(candidate).max(axis=1))
        centred[np.abs(centred) <= ROUNDING * np.tile(largest, 2)[:, None]] = 0.0
        sums = centred if units is None else np.stack([np.bincount(units, row) for row in centred])
        self._sizes = None if units is None else np.bincount(units).astype(np.float64)
        self._largest = np.split((sums**2).max(axis=1, keepdims=True), 2)
        self.n_units = sums.shape[1]
        difference, base = np.split(sums, 2)
        terms = [sums, difference**2, difference * base, base**2]
        if self._sizes is not None:
            terms += [sums * self._sizes, self._sizes[None], self._sizes[None] ** 2]
        self._ends = np.cumsum([len(term) for term in terms])[:-1]
        self._terms = np.concatenate(terms)

    def weighted(self, weights: Rows) -> tuple[Rows, Moments]:
        """(means float64 [2, M, R] of baseline and candidate, their moments) for weights float64 [n_units, R]."""
        first, dd, db, bb, *of_sizes = np.split(self._terms @ weights, self._ends)
        # Per unit sum x and size s: the mean is Σx / Σs, and Σ(x - mean s)(y - mean' s) is written out below.
        cross, size, square = (
            of_sizes if self._sizes is not None else (first, *[weights.sum(axis=0, keepdims=True)] * 2)
        )
        means = first / size
        (mean_d, mean_b), (cross_d, cross_b) = np.split(means, 2), np.split(cross, 2)
        spreads = [
            dd - 2.0 * mean_d * cross_d + mean_d**2 * square,
            db - mean_d * cross_b - mean_b * cross_d + mean_d * mean_b * square,
            bb - 2.0 * mean_b * cross_b + mean_b**2 * square,
        ]
        for spread, largest in zip(spreads[::2], self._largest, strict=True):
            spread[spread <= ROUNDING * largest] = 0.0
        bessel = self.n_units / max(1, self.n_units - 1)
        difference, base = np.split(self._centres + means, 2)
        return np.stack([base, base + difference]), Moments(np.stack(spreads) * bessel / size**2)
