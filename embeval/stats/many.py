"""Many systems on the same items: how sure the difference of any two of them is, without a single resample.

What a system's value owes to each item is worked out once per system; the variance of the difference of two then is a
sum of squares. So a thousand pairs cost little more than one, and p-values are as small as they have to be where
thousands of pairs are tested at once, which resamples by the ten thousand can't show.

For means of values per item this is the paired t-test. Other metrics have the jackknife's standard error. Where items
come in clusters, clusters are what is summed over; a mean over sub-sets adds the variances of its parts.

Sources: Student, Biometrika 1908; Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapter 11 (jackknife);
Welch, Biometrika 1947 (degrees of freedom of a sum); Cochran, Sampling Techniques, 1977, section 9A (clusters).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric
from embeval.core.records import ItemRecords
from embeval.stats import bootstrap
from embeval.stats.draws import averages

Square = npt.NDArray[np.float64]
Weighting = Literal["mean", "wmean"]
ROUNDING = 1e-12
"""Largest difference of two contributions, in parts of the largest one, that is rounding error."""


@dataclass(frozen=True)
class Spread:
    """How far the differences of K systems on one metric may be from the truth."""

    variances: Square
    """float64 [K, K]: squared standard error of the difference of two systems; NaN where it can't be told."""
    different: npt.NDArray[np.int64]
    """int64 [K, K]: units (items, or clusters of them) that two systems differ on."""
    freedom: float
    """Degrees of freedom of the variances."""


def spread(systems: Sequence[ItemRecords], metric: Metric, weighting: Weighting | None = None) -> Spread:
    """The spread of the differences of systems on the same items in the same order.

    Two systems of which one has a value of an item and the other has none can't be told apart fairly: NaN.
    """
    parts = _parts(systems[0], weighting)
    variances = np.zeros((len(systems), len(systems)))
    different = np.zeros((len(systems), len(systems)), dtype=np.int64)
    inverse = 0.0
    for rows, share in parts:
        found, unlike, n_units = _of_part([each.take(rows) for each in systems], metric)
        variances += share**2 * found
        different += unlike
        inverse = max(inverse, 1.0 / max(n_units - 1, 1))
    # The fewest degrees of any part: never more than Welch's for the sum.
    return Spread(variances, different, 1.0 / inverse)


def _parts(records: ItemRecords, weighting: Weighting | None) -> list[tuple[npt.NDArray[np.intp], float]]:
    if weighting is None:
        return [(np.arange(len(records)), 1.0)]
    rows = list(records.rows_by("subset").values())
    weights = [float(len(each)) if weighting == "wmean" else 1.0 for each in rows]
    return [(each, weight / sum(weights)) for each, weight in zip(rows, weights, strict=True)]


def _of_part(systems: Sequence[ItemRecords], metric: Metric) -> tuple[Square, npt.NDArray[np.int64], int]:
    k = len(systems)
    variances, different = np.full((k, k), np.nan), np.zeros((k, k), dtype=np.int64)
    masks = np.stack([np.all([~np.isnan(each.columns[name]) for name in metric.columns], axis=0) for each in systems])
    n_units = 0
    for mask in np.unique(masks, axis=0):
        alike = np.flatnonzero((masks == mask).all(axis=1))
        rows = np.flatnonzero(mask)
        if len(rows) < 2:
            continue
        pulls, scale = _pulls([systems[int(place)].take(rows) for place in alike], metric)
        n_units = max(n_units, pulls.shape[1])
        gaps = pulls[:, None, :] - pulls[None, :, :] if pulls.size * len(alike) < 2e7 else None
        for row, place in enumerate(alike):
            gap = pulls - pulls[row] if gaps is None else gaps[row]
            gap = np.where(np.abs(gap) <= ROUNDING * np.abs(pulls).max(initial=1e-300), 0.0, gap)
            variances[place, alike] = scale * (gap**2).sum(axis=1)
            different[place, alike] = (gap != 0.0).sum(axis=1)
    return variances, different, n_units


def _pulls(systems: Sequence[ItemRecords], metric: Metric) -> tuple[Square, float]:
    """(float64 [K, units], factor): the variance of a difference is the factor times the sum of squared differences."""
    numbers = bootstrap.cluster_numbers(systems[0].clusters)
    if averages(metric):
        values = np.stack([each.columns[metric.name] for each in systems])
        pulls = (values - values.mean(axis=1, keepdims=True)) / values.shape[1]
        if numbers is not None:
            pulls = np.stack([np.bincount(numbers, row) for row in pulls])
        n = pulls.shape[1]
        return pulls, n / max(n - 1, 1)
    left_out = np.stack(
        [
            bootstrap.jackknife([metric], {name: each.columns[name] for name in metric.columns}, each.clusters)[0]
            for each in systems
        ]
    )
    pulls = left_out - left_out.mean(axis=1, keepdims=True)
    n = pulls.shape[1]
    return pulls, (n - 1) / n
