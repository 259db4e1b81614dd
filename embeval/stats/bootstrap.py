"""Many metrics on resamples of their items, and without some of them, without drawing a single item.

A resample is a vector of counts, how often each item was drawn; metrics take counts as weights
(``ResampledMetric.resampler``). All metrics of a result see the same resamples. Resamples come in blocks of
fixed size with a random stream each, so they can be computed anywhere, in any order, to the same numbers.

Source: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 (resampling) and 11 (jackknife).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Resampler, Undefined
from embeval.core.records import Column
from embeval.core.result import APPROXIMATE_BELOW
from embeval.stats.intervals import Side, bca_bound
from embeval.stats.rng import seed_sequence

BLOCK = 32
"""Resamples per block. Part of the definition of a seed's resamples: another value gives other draws. Counts of 32
resamples over some thousand items stay in the cache; blocks of 128 take twice as long."""
AT_A_TIME = 60_000
"""Counts drawn in one step: so many stay in the processor's cache."""
JACKKNIFE = 1000
"""Most sets of items that are left out in turn: a tenth of what the usual number of resamples takes."""
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
    return _counted(n, size, [rng], clusters)


def draw_blocks(
    n: int, streams: Sequence[np.random.SeedSequence], clusters: npt.NDArray[np.intp] | None = None
) -> npt.NDArray[np.int64]:
    """int64 [n, len(streams) x BLOCK]: the counts of several blocks side by side, each from its own stream."""
    return _counted(n, BLOCK, [np.random.default_rng(stream) for stream in streams], clusters)


def drawn(
    n: int, streams: Sequence[np.random.SeedSequence], clusters: npt.NDArray[np.intp] | None = None
) -> Iterator[tuple[slice, npt.NDArray[np.int64]]]:
    """(places, int64 [n, places]) of some blocks at a time: of few items several come together.

    Each step has a price of its own. The counts are those of ``draw_counts``, block by block.
    """
    together = max(1, AT_A_TIME // (max(1, n) * BLOCK))
    for start in range(0, len(streams), together):
        counts = draw_blocks(n, streams[start : start + together], clusters)
        yield slice(start * BLOCK, start * BLOCK + counts.shape[1]), counts


def _counted(
    n: int, size: int, rngs: Sequence[np.random.Generator], clusters: npt.NDArray[np.intp] | None
) -> npt.NDArray[np.int64]:
    units = n if clusters is None else int(clusters.max()) + 1
    width = size * len(rngs)
    cells = np.empty((units, width), dtype=np.int64)
    for block, rng in enumerate(rngs):
        cells[:, block * size : (block + 1) * size] = rng.integers(0, units, size=(units, size), dtype=np.int64)
    cells *= width
    cells += np.arange(width)
    counts = np.bincount(cells.ravel(), minlength=units * width).reshape(units, width)
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
    numbers = cluster_numbers(clusters)
    resample = resampler(metrics, columns)
    n_blocks = -(-resamples // BLOCK)
    values = np.empty((len(metrics), n_blocks * BLOCK))
    streams = seed_sequence(seed, "bootstrap", *purpose).spawn(n_blocks)
    for place, counts in drawn(n, streams, numbers):
        values[:, place] = resample(counts)
    return values[:, :resamples]


def jackknife(
    metrics: Sequence[Metric], columns: Mapping[str, Column], clusters: Sequence[str] | None = None
) -> npt.NDArray[np.float64]:
    """float64 [len(metrics), J]: each metric without one item, or one cluster, at a time; NaN where undefined.

    Of more than ``JACKKNIFE`` items, several are left out together, in groups of one size.
    """
    numbers = cluster_numbers(clusters)
    if numbers is None:
        numbers = np.arange(len(next(iter(columns.values()))))
    units = int(numbers.max()) + 1
    n_groups = -(-units // -(-units // JACKKNIFE))
    groups = numbers % n_groups
    resample = resampler(metrics, columns)
    values = np.empty((len(metrics), n_groups))
    for start in range(0, n_groups, BLOCK):
        left_out = np.arange(start, min(start + BLOCK, n_groups))
        values[:, left_out] = resample((groups[:, None] != left_out).astype(np.int64))
    return values


def cluster_numbers(clusters: Sequence[str] | None) -> npt.NDArray[np.intp] | None:
    """[n]: the number of each item's cluster, from 0; None where items are independent."""
    if clusters is None:
        return None
    return np.unique(np.asarray(clusters, dtype=str), return_inverse=True)[1].astype(np.intp)


def resampler(metrics: Sequence[Metric], columns: Mapping[str, Column]) -> Resampler:
    """Counts [n, R] to all metrics [M, R]; those of one class share their work."""
    by_class: dict[type, list[int]] = {}
    for place, metric in enumerate(metrics):
        by_class.setdefault(type(metric), []).append(place)
    resamplers: list[tuple[list[int], Resampler]] = []
    for cls, places in by_class.items():
        make = getattr(cls, "resampler", _one_by_one)
        resamplers.append((places, make([metrics[place] for place in places], columns)))

    def resample(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        values = np.empty((len(metrics), counts.shape[1]))
        for places, each in resamplers:
            values[places] = each(counts)
        return values

    return resample


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


def bca(estimate: float, samples: Column, jackknife: Column, level: float, *, n_items: int) -> Interval:
    """The BCa interval of a metric from its values on R resamples and on J sets with an item or a few left out."""
    if (reason := no_interval(samples, n_items)) is not None:
        return Interval(None, None, reason)
    if not len(samples):
        return Interval(None, None)
    low, high = (bca_bound(estimate, samples, jackknife, (1.0 - level) / 2.0, side) for side in get_args(Side))
    return Interval(low, high, approximate(n_items))


def no_interval(samples: Column, n_items: int) -> str | None:
    """Why these resamples give no bounds; None where they do, or where there are none."""
    if n_items < 2:
        return "no interval: fewer than 2 items"
    share = float(np.isnan(samples).mean()) if len(samples) else 0.0
    if share > 1.0 - MIN_DEFINED:
        return f"no interval: undefined on {share:.0%} of the resamples"
    return None


def approximate(n_items: int) -> str | None:
    """What to say of an interval of so few items; None where they are enough."""
    return f"approximate: {n_items} items" if n_items < APPROXIMATE_BELOW else None
