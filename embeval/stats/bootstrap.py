"""Confidence intervals by bootstrap over items, for many metrics at once and without drawing a single item.

A resample is a vector of counts, how often each item was drawn; metrics take counts as weights
(``ResampledMetric.resampler``). All metrics of a result see the same resamples. Resamples come in blocks of
fixed size with a random stream each, so they can be computed anywhere, in any order, to the same numbers.

Source: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13 (percentile interval).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Resampler, Undefined
from embeval.core.records import Column
from embeval.core.result import APPROXIMATE_BELOW
from embeval.stats.rng import seed_sequence

BLOCK = 32
"""Resamples per block. Part of the definition of a seed's resamples: another value gives other draws. Counts of 32
resamples over some thousand items stay in the cache; blocks of 128 take twice as long."""
MIN_DEFINED = 0.95
"""Share of resamples on which a metric must be defined for its interval to be given."""


class Interval(NamedTuple):
    """A confidence interval; None, None where there is none, with the reason in ``note``."""

    low: float | None
    high: float | None
    note: str | None = None


def draw_counts(
    n: int, size: int, rng: np.random.Generator, clusters: npt.NDArray[np.intp] | None = None
) -> npt.NDArray[np.int64]:
    """int64 [n, size]: how often each of n items is drawn in each resample.

    Items are drawn n at a time with replacement. With ``clusters`` (cluster number of each item), whole clusters
    are drawn with replacement instead, as many as there are.
    """
    units = n if clusters is None else int(clusters.max()) + 1
    cells = rng.integers(0, units, size=(units, size), dtype=np.int64) * size + np.arange(size)
    counts = np.bincount(cells.ravel(), minlength=units * size).reshape(units, size)
    return counts if clusters is None else counts[clusters]


def distribution(
    metrics: Sequence[Metric],
    columns: Mapping[str, Column],
    *,
    resamples: int,
    seed: int,
    purpose: tuple[str, ...] = (),
    clusters: Sequence[str] | None = None,
) -> npt.NDArray[np.float64]:
    """float64 [len(metrics), resamples]: each metric on each resample; NaN where undefined.

    ``purpose`` names the random stream, ``clusters`` the cluster of each item where items are not independent.
    """
    n = len(next(iter(columns.values())))
    numbers = None
    if clusters is not None:
        numbers = np.unique(np.asarray(clusters, dtype=str), return_inverse=True)[1].astype(np.intp)
    by_class: dict[type, list[int]] = {}
    for place, metric in enumerate(metrics):
        by_class.setdefault(type(metric), []).append(place)
    resamplers: list[tuple[list[int], Resampler]] = []
    for cls, places in by_class.items():
        make = getattr(cls, "resampler", _one_by_one)
        resamplers.append((places, make([metrics[place] for place in places], columns)))

    n_blocks = -(-resamples // BLOCK)
    values = np.empty((len(metrics), n_blocks * BLOCK))
    for block, stream in enumerate(seed_sequence(seed, "bootstrap", *purpose).spawn(n_blocks)):
        counts = draw_counts(n, BLOCK, np.random.default_rng(stream), numbers)
        for places, resample in resamplers:
            values[places, block * BLOCK : (block + 1) * BLOCK] = resample(counts)
    return values[:, :resamples]


def _one_by_one(metrics: Sequence[Metric], columns: Mapping[str, Column]) -> Resampler:
    def resample(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        values = np.full((len(metrics), counts.shape[1]), np.nan)
        for place in range(counts.shape[1]):
            drawn = {name: np.repeat(column, counts[:, place]) for name, column in columns.items()}
            for row, metric in enumerate(metrics):
                value = metric.aggregate(drawn)
                if not isinstance(value, Undefined):
                    values[row, place] = value
        return values

    return resample


def percentile(samples: npt.NDArray[np.float64], level: float, *, n_items: int) -> Interval:
    """The percentile interval of one metric from its values on R resamples."""
    if n_items < 2:
        return Interval(None, None, "no interval: fewer than 2 items")
    defined = samples[~np.isnan(samples)]
    if len(samples) == 0:
        return Interval(None, None)
    if len(defined) < MIN_DEFINED * len(samples):
        share = 1.0 - len(defined) / len(samples)
        return Interval(None, None, f"no interval: undefined on {share:.0%} of the resamples")
    low, high = np.quantile(defined, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    note = f"approximate: {n_items} items" if n_items < APPROXIMATE_BELOW else None
    return Interval(float(low), float(high), note)
