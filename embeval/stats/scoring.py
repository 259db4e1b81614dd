"""From item records to metric values with intervals: over all items, or as a mean over groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Undefined
from embeval.core.records import ANSWERABLE, Column, ItemRecords
from embeval.core.result import MetricValue
from embeval.core.specs import StatisticsOptions
from embeval.stats import bootstrap, intervals
from embeval.stats.bootstrap import Interval
from embeval.stats.intervals import Method

Weighting = Literal["mean", "wmean"]


@dataclass(frozen=True)
class Estimate:
    """A metric on some items, and on resamples of them."""

    value: float | Undefined
    """The metric."""
    samples: Column
    """float64 [R]: the metric on each resample, NaN where undefined; R is 0 where none were drawn."""
    n_items: int
    """Items with a value."""
    n_unscored: int
    """Items without one, left out."""
    jackknife: Column
    """float64 [J]: the metric without some item; of a mean over groups, what each adds to it. Only distances from the
    mean count."""
    is_share: bool = False
    """Whether it is the share of independent items with a property: the mean of a column of 0 and 1, or where ties
    count half also of 0.5. Its interval then is that of ties broken by a coin, which is never too narrow."""

    def to_value(self, statistics: StatisticsOptions) -> MetricValue:
        """The number for a result, with its interval."""
        if isinstance(self.value, Undefined):
            return MetricValue(value=None, reason=self.value.reason, n_items=self.n_items, n_unscored=self.n_unscored)
        interval, method = self._interval(statistics)
        return MetricValue(
            value=self.value,
            ci_low=interval.low,
            ci_high=interval.high,
            n_items=self.n_items,
            n_unscored=self.n_unscored,
            note=interval.note,
            interval=None if interval.low is None else method,
        )

    def _interval(self, statistics: StatisticsOptions) -> tuple[Interval, Method]:
        assert not isinstance(self.value, Undefined)
        level = statistics.level
        if self.is_share and statistics.resamples and self.n_items >= 2:
            low, high = intervals.wilson(self.value * self.n_items, self.n_items, level)
            return Interval(low, high, bootstrap.approximate(self.n_items)), "wilson"
        return bootstrap.bca(self.value, self.samples, self.jackknife, level, n_items=self.n_items), "bca"


def value(records: ItemRecords, metric: Metric, statistics: StatisticsOptions, *purpose: str) -> MetricValue:
    """One metric over all items, the same as by ``estimate``; without resamples where its interval needs none."""
    share = records.clusters is None and _is_share(metric, records.columns)
    return estimate(records, [metric], statistics, *purpose, draw=not share)[metric.name].to_value(statistics)


def estimate(
    records: ItemRecords,
    metrics: Sequence[Metric],
    statistics: StatisticsOptions,
    *purpose: str,
    draw: bool = True,
) -> dict[str, Estimate]:
    """Metric name -> estimate over all items. ``purpose`` names the random stream of the resamples.

    Without ``draw`` there are none: enough for the share of items with a property, and for no other interval.
    """
    estimates: dict[str, Estimate] = {}
    for scored, group in _by_scored_items(records, metrics):
        columns = {name: records.columns[name][scored] for metric in group for name in metric.columns}
        n_items = int(scored.sum())
        samples = left_out = np.empty((len(group), 0))
        clusters = None
        if records.clusters is not None:
            clusters = [records.clusters[row] for row in np.flatnonzero(scored)]
        if draw and n_items >= 2 and statistics.resamples:
            samples = bootstrap.distribution(
                group,
                columns,
                resamples=statistics.resamples,
                seed=statistics.seed,
                purpose=purpose,
                clusters=clusters,
            )
            left_out = bootstrap.jackknife(group, columns, clusters)
        for metric, sample, without in zip(group, samples, left_out, strict=True):
            estimates[metric.name] = Estimate(
                metric.aggregate(columns) if n_items else Undefined("too_few_items"),
                sample,
                n_items,
                unscored(records, metric, scored),
                without,
                clusters is None and _is_share(metric, columns),
            )
    return {metric.name: estimates[metric.name] for metric in metrics}


def _is_share(metric: Metric, columns: Mapping[str, Column]) -> bool:
    if metric.columns != (metric.name,):
        return False
    values = columns[metric.name]
    ties = values == 0.5 if getattr(metric, "ties_half", False) else False
    return bool(((values == 0.0) | (values == 1.0) | ties).all())


def unscored(records: ItemRecords, metric: Metric, scored: npt.NDArray[np.bool_]) -> int:
    """Items without a value that should have one."""
    if getattr(metric, "of_some_items", False):
        return 0
    missing = ~scored
    return int((missing if ANSWERABLE in metric.columns else missing & ~records.outside).sum())


def mean_over(groups: Mapping[str, Mapping[str, Estimate]], weighting: Weighting) -> dict[str, Estimate]:
    """Metric name -> mean of its estimates in each group, equally weighted or by number of items (``wmean``).

    Items stay in their group when resampled, so the interval speaks of these groups and not of groups in general.
    The interval is BCa's, as each group's is. Undefined in one group is undefined in the mean.
    """
    means = {}
    for name in next(iter(groups.values())):
        of_groups = {label: estimates[name] for label, estimates in groups.items()}
        shares = np.array([each.n_items if weighting == "wmean" else 1 for each in of_groups.values()], dtype=float)
        n_items = sum(each.n_items for each in of_groups.values())
        n_unscored = sum(each.n_unscored for each in of_groups.values())
        undefined = [label for label, each in of_groups.items() if isinstance(each.value, Undefined)]
        value: float | Undefined
        samples = left_out = np.empty(0)
        if undefined:
            value = Undefined(f"undefined_in_subset:{undefined[0]}")
        else:
            value = float(np.average([each.value for each in of_groups.values()], weights=shares))
            if len({len(each.samples) for each in of_groups.values()}) == 1:
                samples = np.average([each.samples for each in of_groups.values()], axis=0, weights=shares)
                left_out = np.concatenate(
                    [_pulls(each.jackknife) * share for each, share in zip(of_groups.values(), shares, strict=True)]
                )
        means[name] = Estimate(value, samples, n_items, n_unscored, left_out)
    return means


def _pulls(jackknife: Column) -> Column:
    """What each item of a group moves the group's value by: with m items, leaving one out moves it by more.

    Source: Davison & Hinkley, Bootstrap Methods and their Application, 1997, section 3.2 (several samples).
    """
    defined = jackknife[~np.isnan(jackknife)]
    return np.asarray((defined - defined.mean()) * (1.0 - 1.0 / len(defined))) if len(defined) else defined


def _by_scored_items(
    records: ItemRecords, metrics: Sequence[Metric]
) -> list[tuple[npt.NDArray[np.bool_], list[Metric]]]:
    """Metrics grouped by the items on which all their columns have a value, as bool [n]."""
    groups: dict[bytes, tuple[npt.NDArray[np.bool_], list[Metric]]] = {}
    for metric in metrics:
        scored = np.ones(len(records), dtype=bool)
        for name in metric.columns:
            scored &= ~np.isnan(records.columns[name])
        groups.setdefault(scored.tobytes(), (scored, []))[1].append(metric)
    return list(groups.values())
