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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric
from embeval.core.records import Column, ItemRecords
from embeval.stats import bootstrap
from embeval.stats.draws import averages
from embeval.stats.parts import scored

Square = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float64]
Weighting = Literal["mean", "wmean"]
ROUNDING = 1e-12
"""Difference of two numbers, in parts of the largest, that is rounding error."""


@dataclass(frozen=True)
class Spread:
    """How far the differences of K systems on one metric may be from the truth."""

    variances: Square
    """float64 [K, K]: squared standard error of the difference of two systems; NaN where it can't be told."""
    different: npt.NDArray[np.int64]
    """int64 [K, K]: units (items, or clusters of them) that two systems differ on."""
    freedom: float
    """Degrees of freedom of the variances."""


@dataclass(frozen=True)
class _Part:
    """Items that a value is computed on, alone or as one of several whose mean it is."""

    rows: npt.NDArray[np.intp]
    """Their places."""
    share: float
    """What the part counts in the mean."""
    units: npt.NDArray[np.intp] | None
    """The number of each item's cluster; None where items are independent."""

    @property
    def n_units(self) -> int:
        return len(self.rows) if self.units is None else int(self.units.max(initial=-1)) + 1


def spread(systems: Sequence[ItemRecords], metric: Metric, weighting: Weighting | None = None) -> Spread:
    """The spread of the differences of systems on the same items in the same order.

    Two systems of which one has a value of an item and the other has none can't be told apart fairly: NaN. Nor can any
    with fewer than two items, or clusters of them, in a part.
    """
    k = len(systems)
    variances, different = np.full((k, k), np.nan), np.zeros((k, k), dtype=np.int64)
    np.fill_diagonal(variances, 0.0)
    masks = np.stack([scored(each, metric) for each in systems])
    fewest: list[int] = []
    for mask in np.unique(masks, axis=0):
        alike = np.flatnonzero((masks == mask).all(axis=1))
        parts = _parts(systems[0], mask, weighting)
        if len(alike) < 2 or not parts or any(part.n_units < 2 for part in parts):
            continue
        together = np.ix_(alike, alike)
        variances[together] = 0.0
        for part in parts:
            columns = [
                {name: systems[place].columns[name][part.rows] for name in metric.columns} for place in alike.tolist()
            ]
            found, freedom = _variances(columns, metric, part.units)
            variances[together] += part.share**2 * found
            different[together] += _different(columns, metric, part)
            fewest.append(freedom)
    # The fewest degrees of any part: never more than Welch's for the sum.
    return Spread(variances, different, float(min(fewest, default=1)))


def _parts(records: ItemRecords, mask: npt.NDArray[np.bool_], weighting: Weighting | None) -> list[_Part]:
    """The items that have a value, by sub-set where the value is a mean over these."""
    every = [np.arange(len(records))] if weighting is None else list(records.rows_by("subset").values())
    rows = [each[mask[each]] for each in every]
    weights = [float(len(each)) if weighting == "wmean" else 1.0 for each in rows]
    return [
        _Part(each, weight / (sum(weights) or 1.0), _units(records, each))
        for each, weight in zip(rows, weights, strict=True)
    ]


def _units(records: ItemRecords, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp] | None:
    return bootstrap.cluster_numbers(None if records.clusters is None else [records.clusters[row] for row in rows])


def _variances(
    systems: Sequence[Mapping[str, Column]], metric: Metric, units: npt.NDArray[np.intp] | None
) -> tuple[Square, int]:
    """(squared standard errors, their degrees of freedom)."""
    pulls, factor, noise = _pulls(systems, metric, units)
    found = np.empty((len(pulls), len(pulls)))
    for row, own in enumerate(pulls):
        gap = pulls - own
        gap[np.abs(gap) <= noise] = 0.0
        found[row] = factor * (gap**2).sum(axis=1)
    return found, pulls.shape[1] - 1


def _pulls(
    systems: Sequence[Mapping[str, Column]], metric: Metric, units: npt.NDArray[np.intp] | None
) -> tuple[Rows, float, float]:
    """What each unit moves the values by, float64 [K, units]; a factor; and what is rounding error.

    The variance of a difference is the factor times the sum of squared differences.
    """
    if averages(metric):
        values = np.stack([each[metric.name] for each in systems])
        pulls = (values - values.mean(axis=1, keepdims=True)) / values.shape[1]
        if units is not None:
            pulls = np.stack([np.bincount(units, row) for row in pulls])
        n = pulls.shape[1]
        return pulls, n / (n - 1), ROUNDING * float(np.abs(values).max()) / values.shape[1]
    left_out = _left_out(systems, metric, None if units is None else units.astype(str).tolist())
    n = left_out.shape[1]
    return left_out - left_out.mean(axis=1, keepdims=True), (n - 1) / n, ROUNDING * float(np.abs(left_out).max())


def _left_out(systems: Sequence[Mapping[str, Column]], metric: Metric, clusters: Sequence[str] | None) -> Rows:
    """float64 [K, J]: the values without some units; what systems have in common, such as gold, is worked out once."""
    if not hasattr(metric, "on"):
        return np.concatenate([bootstrap.jackknife([metric], each, clusters) for each in systems])
    columns, named = dict(systems[0]), []
    for place, each in enumerate(systems):
        own = {name: f"{name} {place}" for name in each if not np.array_equal(each[name], systems[0][name])}
        columns |= {new: each[name] for name, new in own.items()}
        named.append(metric.on(own))
    return bootstrap.jackknife(named, columns, clusters)


def _different(systems: Sequence[Mapping[str, Column]], metric: Metric, part: _Part) -> npt.NDArray[np.int64]:
    """int64 [K, K]: units on which a column of the metric differs."""
    found = np.zeros((len(systems), len(systems)), dtype=np.int64)
    columns = [np.stack([each[name] for each in systems]) for name in metric.columns]
    for row in range(len(systems)):
        unlike = np.zeros((len(systems), len(part.rows)), dtype=np.bool_)
        for values in columns:
            unlike |= np.abs(values - values[row]) > ROUNDING * float(np.abs(values).max())
        found[row] = [_n_units(each, part.units) for each in unlike]
    return found


def _n_units(chosen: npt.NDArray[np.bool_], units: npt.NDArray[np.intp] | None) -> int:
    return int(chosen.sum()) if units is None else len(np.unique(units[chosen]))
