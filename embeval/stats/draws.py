"""Metrics of two systems on the same resamples of their items, all metrics in one go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Resampler, Swapper
from embeval.core.specs import StatisticsOptions
from embeval.stats import bootstrap, randomization
from embeval.stats.bootstrap import BLOCK
from embeval.stats.moments import Moments, PairedMeans
from embeval.stats.parts import Counts, Part

Rows = npt.NDArray[np.float64]
Step = Callable[[Counts, slice], None]
"""Takes the counts of a block of resamples and the block's place."""


@dataclass(frozen=True)
class Draws:
    """One metric of two systems on resamples, with what bounds are made of."""

    samples: Rows
    """float64 [2, R]: baseline and candidate; NaN where undefined."""
    jackknife: Rows
    """float64 [2, J]: what leaving out single units does to baseline and candidate."""
    moments: tuple[Moments, Moments] | None = None
    """Of a mean of values per item: on all items, and on each resample."""


def averages(metric: Metric) -> bool:
    """Whether a metric is the mean of a column, so that single items have a value of it."""
    return metric.columns == (metric.name,)


def draw(metrics: Sequence[Metric], parts: Sequence[Part], statistics: StatisticsOptions) -> dict[str, Draws]:
    """Name of the metric -> its draws.

    The resamples are those of ``bootstrap.distribution`` for the same seed and purpose, and the same for both sides
    and for all metrics, whatever their company.
    """
    means = [metric for metric in metrics if averages(metric)]
    others = [metric for metric in metrics if not averages(metric)]
    n_blocks = -(-statistics.resamples // BLOCK)
    collectors: list[_Means | _Others] = []
    if means:
        collectors.append(_Means(means, n_blocks * BLOCK))
    if others:
        collectors.append(_Others(others, n_blocks * BLOCK))
    for part in parts:
        steps = [collector.begin(part) for collector in collectors]
        for places, counts in part.resampled(statistics.resamples, statistics.seed):
            for step in steps:
                step(counts, places)
    return {name: found for each in collectors for name, found in each.found(statistics.resamples).items()}


class _Means:
    """Collects means of values per item, and their moments."""

    def __init__(self, metrics: Sequence[Metric], length: int) -> None:
        self._names = [metric.name for metric in metrics]
        self._samples = np.zeros((2, len(metrics), length))
        self._squares = np.zeros((3, len(metrics), length))
        self._on_all = np.zeros((3, len(metrics), 1))
        self._pulls: list[Rows] = []

    def begin(self, part: Part) -> Step:
        baseline, candidate = (
            np.stack([side[name] for name in self._names]) for side in (part.baseline, part.candidate)
        )
        means = PairedMeans(baseline, candidate, part.units)
        self._on_all += part.share**2 * means.weighted(np.ones((part.n_units, 1)))[1].squares
        firsts = part.firsts if part.units is not None else slice(None)
        self._pulls.append(_pulls(part, lambda counts: means.weighted(counts[firsts].astype(np.float64))[0]))

        def step(counts: Counts, place: slice) -> None:
            values, moments = means.weighted(counts[firsts].astype(np.float64))
            self._samples[:, :, place] += part.share * values
            self._squares[:, :, place] += part.share**2 * moments.squares

        return step

    def found(self, resamples: int) -> dict[str, Draws]:
        pulls = np.concatenate(self._pulls, axis=2)
        return {
            name: Draws(
                self._samples[:, row, :resamples],
                pulls[:, row],
                (Moments(self._on_all[:, row]), Moments(self._squares[:, row, :resamples])),
            )
            for row, name in enumerate(self._names)
        }


class _Others:
    """Collects metrics of any kind, and what leaving out single units does to them."""

    def __init__(self, metrics: Sequence[Metric], length: int) -> None:
        self._metrics = metrics
        self._samples = np.zeros((2, len(metrics), length))
        self._pulls: list[Rows] = []

    def begin(self, part: Part) -> Step:
        resample = _both_sides(self._metrics, part)

        def both(counts: Counts) -> Rows:
            return resample(counts).reshape(2, len(self._metrics), -1)

        self._pulls.append(_pulls(part, both))

        def step(counts: Counts, place: slice) -> None:
            self._samples[:, :, place] += part.share * both(counts)

        return step

    def found(self, resamples: int) -> dict[str, Draws]:
        pulls = np.concatenate(self._pulls, axis=2)
        return {
            metric.name: Draws(self._samples[:, row, :resamples], pulls[:, row])
            for row, metric in enumerate(self._metrics)
        }


def _both_sides(metrics: Sequence[Any], part: Part) -> Resampler:
    """Values [2 x M, R] of baseline and candidate; what both sides share, such as gold, is worked out once."""
    sides = part.baseline, part.candidate
    if not all(hasattr(metric, "on") for metric in metrics):
        one, other = (bootstrap.resampler(metrics, side) for side in sides)
        return lambda counts: np.concatenate([one(counts), other(counts)])
    own = {name: f"candidate {name}" for name in sides[1] if not np.array_equal(sides[0][name], sides[1][name])}
    columns = {**sides[0], **{new: sides[1][name] for name, new in own.items()}}
    return bootstrap.resampler([*metrics, *(metric.on(own) for metric in metrics)], columns)


def _pulls(part: Part, both: Callable[[Counts], Rows]) -> Rows:
    """float64 [2, M, J]: how far the whole moves when some of the part's units are left out.

    Source: Davison & Hinkley, Bootstrap Methods and their Application, 1997, section 3.2 (several samples).
    """
    left_out = np.concatenate([both(counts) for counts in part.left_out()], axis=2)
    n = left_out.shape[2]
    return np.asarray(part.share * (left_out - left_out.mean(axis=2, keepdims=True)) * (n - 1) / n)


@dataclass(frozen=True)
class Swaps:
    """P-values of metrics on the same items, all of them computed when the first is asked for."""

    metrics: Sequence[Metric]
    """Those that can swap sides."""
    parts: Sequence[Part]
    """The items."""
    statistics: StatisticsOptions
    """How many swaps, and their seed."""
    purpose: tuple[str, ...]
    """Names the random stream."""

    @cached_property
    def p_values(self) -> Mapping[str, float]:
        """Name of the metric -> two-sided p."""
        found = randomization.p_values(
            self._differences(),
            sum(part.n_units for part in self.parts),
            resamples=self.statistics.resamples,
            seed=self.statistics.seed,
            purpose=self.purpose,
        )
        return {metric.name: float(value) for metric, value in zip(self.metrics, found, strict=True)}

    def _differences(self) -> Swapper:
        swappers = [_swapper(self.metrics, part) for part in self.parts]
        ends = np.cumsum([part.n_units for part in self.parts])[:-1]

        def differences(signs: Rows) -> Rows:
            total = np.zeros((len(self.metrics), signs.shape[1]))
            for part, swapper, of_units in zip(self.parts, swappers, np.split(signs, ends), strict=True):
                total += part.share * swapper(of_units if part.units is None else of_units[part.units])
            return total

        return differences


def can_swap(metric: Metric) -> bool:
    """Whether the two sides of an item may change places for it, as ``SwappedMetric`` says."""
    return hasattr(type(metric), "swapper")


def _swapper(metrics: Sequence[Metric], part: Part) -> Swapper:
    """Of metrics of any classes, in their order."""
    by_class: dict[Any, list[int]] = {}
    for place, metric in enumerate(metrics):
        by_class.setdefault(type(metric), []).append(place)
    made = [
        (places, cls.swapper([metrics[place] for place in places], part.baseline, part.candidate))
        for cls, places in by_class.items()
    ]

    def swap(signs: Rows) -> Rows:
        values = np.empty((len(metrics), signs.shape[1]))
        for places, each in made:
            values[places] = each(signs)
        return values

    return swap
