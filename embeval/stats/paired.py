"""Two systems on the same items: the difference of every metric, with bounds, a p-value and an effect size.

Both sides see the same resamples of the items, so what they have in common cancels out. All metrics of a comparison
share one draw of them.

A metric that is a mean of values per item is all about the differences per item. Its interval is studentised: the
standard error of each resample comes from weighted second moments, by cluster where items are clustered. Shares of
right answers have the interval of the score test, other metrics that of BCa with leave-one-out values of the
difference. The one-sided bounds that decisions hang on allow for items of a kind that was not seen
(``intervals.with_unseen``). P-values come from paired randomisation (``stats.randomization``) where a metric can swap
sides, else from the same bootstrap.

Sources: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapters 12, 14 and 16; Davison & Hinkley,
Bootstrap Methods and their Application, 1997, chapter 5 (several samples); Cochran, Sampling Techniques, 1977,
section 9A (clusters, error of a ratio); Cohen, Statistical Power Analysis, 1988, section 2.3.5 (d_z).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Undefined
from embeval.core.records import Column, ItemRecords
from embeval.core.result import APPROXIMATE_BELOW
from embeval.core.specs import StatisticsOptions
from embeval.stats import bootstrap, intervals, scoring
from embeval.stats.bootstrap import Interval
from embeval.stats.draws import Swaps, averages, can_swap, draw
from embeval.stats.intervals import Method, Side
from embeval.stats.moments import Moments
from embeval.stats.parts import Part, Weighting, by_scored_items, scored, split
from embeval.stats.score import score_bound

EQUAL = 1e-12
"""Values of an item that differ by less are equal: sums in another order differ by so much."""
FEWEST_CLUSTERS = 5
"""Of fewer, resamples are a handful of different ones, and so are their quantiles."""
FEW_DIFFERENT = 25
"""Items of which fewer differ leave a studentised interval of the mean difference too narrow: with 20 of 200 it holds
the truth in 91 of 100 cases instead of 95, with 100 of 1,000 in 94 (``benchmarks/results/intervals.md``)."""
Test = Literal["randomization", "bootstrap"]
Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """candidate - scale x baseline of one metric, and how sure it is."""

    estimate: float
    """Its value on all items."""
    samples: Column
    """float64 [R]: on each resample, NaN where undefined; R is 0 where none were drawn."""
    n_items: int
    """Items."""
    jackknife: Column = field(default_factory=lambda: np.empty(0))
    """float64 [J]: on all items but one, or but a few; only distances from their mean count."""
    error: float | None = None
    """Standard error, for means of values per item."""
    errors: Column | None = None
    """float64 [R]: that of each resample."""
    unseen: Unseen | None = None
    """What an item may be that none of the resamples holds, for means with known limits."""
    changed: tuple[int, int] | None = None
    """Items that went from 0 to 1 and from 1 to 0, for shares of independent items."""
    n_different: int | None = None
    """Items of different values on both sides; None where single items have no value."""
    n_clusters: int | None = None
    """Clusters that the items come in; None where items are independent."""

    @property
    def method(self) -> Method:
        """How the interval is made."""
        if self.error is None:
            return "bca"
        return "score" if self.changed is not None and self.error > 0.0 else "studentised"

    @property
    def missing(self) -> str | None:
        """Why there are no bounds; None where there are."""
        if not len(self.samples) and self.n_items >= 2:
            return "no interval: nothing was resampled"
        if self.n_clusters is not None and self.n_clusters < FEWEST_CLUSTERS:
            return f"no interval: {self.n_clusters} clusters are too few to tell how clusters differ"
        return bootstrap.no_interval(self.samples, self.n_items)

    def lower(self, alpha: float) -> float | None:
        """The one-sided bound that lies above the truth with probability ``alpha``; None where there is none.

        For decisions. A mean with known limits allows for items of a kind that was not seen (``with_unseen``), so
        that twenty queries without a difference don't show that there is none: this bound lies outside the interval.
        """
        return self._decisive(alpha, "lower")

    def upper(self, alpha: float) -> float | None:
        """The one-sided bound that lies below the truth with probability ``alpha``, as ``lower`` does above."""
        return self._decisive(alpha, "upper")

    def interval(self, level: float) -> Interval:
        """The two-sided interval, with a note where it is rough or missing. Its ends are equal where all items are."""
        if (missing := self.missing or self._same_spread) is not None:
            return Interval(None, None, missing)
        alpha = (1.0 - level) / 2.0
        return Interval(self._end(alpha, "lower"), self._end(alpha, "upper"), self._note())

    @property
    def _same_spread(self) -> str | None:
        """Why studentised bounds say nothing: of two items or clusters, every resample with a spread is the sample."""
        if self.method != "studentised" or not self.error or self.errors is None:
            return None
        steps = np.abs(self.samples - self.estimate)[self.errors > 0.0]
        alike = not len(steps) or float(steps.max()) <= EQUAL
        return "no interval: too few items or clusters to tell their spread" if alike else None

    def _note(self) -> str | None:
        """What the study of intervals found of such ones: of few differences a mean of them is not sure."""
        few = self.n_different is not None and 0 < self.n_different < FEW_DIFFERENT
        if few and self.method == "studentised" and self.n_items >= APPROXIMATE_BELOW:
            return f"approximate: only {self.n_different} of {self.n_items} items differ"
        if self.n_clusters is not None and self.n_clusters < APPROXIMATE_BELOW:
            return f"approximate: {self.n_items} items in {self.n_clusters} clusters"
        return bootstrap.approximate(self.n_items)

    def _end(self, alpha: float, side: Side) -> float:
        if self.error is None:
            return intervals.bca_bound(self.estimate, self.samples, self.jackknife, alpha, side)
        if self.method == "score":
            assert self.changed is not None
            return score_bound(*self.changed, self.n_items, alpha, side)
        assert self.errors is not None
        return intervals.studentised_bound(self.estimate, self.error, self.samples, self.errors, alpha, side)

    def _decisive(self, alpha: float, side: Side) -> float | None:
        if self.missing is not None:
            return None
        if self.unseen is None:
            return None if self._same_spread is not None else self._end(alpha, side)
        worst = self.unseen.lowest if side == "lower" else self.unseen.highest
        guarded = intervals.with_unseen(self.samples, self.unseen.n_units, worst)
        return intervals.bca_bound(self.estimate, self.samples, self.jackknife, alpha, side, guarded=guarded)


class Unseen(NamedTuple):
    """Limits of candidate - scale x baseline for a single item."""

    lowest: float
    highest: float
    n_units: float
    """See ``Paired.n_units``."""


class Outcomes(NamedTuple):
    """On how many items the candidate is better, equal and worse."""

    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Paired:
    """One metric of two systems on the same items."""

    metric: Metric
    """The metric."""
    baseline: float | Undefined
    """Of the baseline."""
    candidate: float | Undefined
    """Of the candidate."""
    samples: Rows
    """float64 [2, R]: baseline and candidate on the same resamples."""
    n_items: int
    """Items with a value on both sides."""
    unscored: tuple[int, int]
    """Items without a value that should have one, of baseline and candidate."""
    differences: Column | None
    """float64 [n]: candidate - baseline of each item; None where single items have no value."""
    jackknife: Rows = field(default_factory=lambda: np.empty((2, 0)))
    """float64 [2, J]: baseline and candidate on all items but one or a few; only distances from their mean count."""
    moments: tuple[Moments, Moments] | None = None
    """Of means of values per item: on all items, and on each resample."""
    limits: tuple[float, float] | None = None
    """Between which values per item lie; None: not known, or single items have no value."""
    n_units: float = 0.0
    """Items, or clusters of them; over sub-sets, as many as there would be if all weighed as much as the heaviest."""
    n_clusters: int | None = None
    """Clusters that the items come in; None where items are independent."""
    changed: tuple[int, int] | None = None
    """Items that went from 0 to 1 and from 1 to 0; None where other values occur, or items are not independent."""
    swaps: Swaps | None = None
    """Where the p-value comes from; None for metrics that can't swap sides."""

    @property
    def undefined(self) -> str | None:
        """Why there is no difference; None where there is one."""
        for side in (self.baseline, self.candidate):
            if isinstance(side, Undefined):
                return side.reason
        return None

    def contrast(self, scale: float = 1.0, *, as_seen: bool = False) -> Contrast:
        """candidate - scale x baseline. Only where both are defined.

        Bounds that decide allow for items that may lose, or gain, all that there is; with ``as_seen`` no more than the
        largest change among the items at hand.
        """
        assert not isinstance(self.baseline, Undefined)
        assert not isinstance(self.candidate, Undefined)
        error = errors = unseen = None
        if self.moments is not None:
            at, drawn = self.moments
            error, errors = float(at.error(scale)[0]), drawn.error(scale)
        if self.limits is not None:
            low, high = self.limits
            unseen = Unseen(low - scale * high, high - scale * low, self.n_units)
            if as_seen and self.differences is not None:
                largest = float(np.abs(self.differences).max())
                by_scale = (1.0 - scale) * low, (1.0 - scale) * high  # of an item that is as good as it was
                unseen = Unseen(
                    max(unseen.lowest, min(by_scale) - largest),
                    min(unseen.highest, max(by_scale) + largest),
                    self.n_units,
                )
        return Contrast(
            self.candidate - scale * self.baseline,
            self.samples[1] - scale * self.samples[0],
            self.n_items,
            self.jackknife[1] - scale * self.jackknife[0],
            error,
            errors,
            unseen,
            self.changed if scale == 1.0 else None,
            None if self.differences is None else int((np.abs(self.differences) > EQUAL).sum()),
            self.n_clusters,
        )

    def p_value(self) -> tuple[float, Test] | None:
        """Two-sided p of "there is no difference" and where it comes from; None where there is none."""
        if self.undefined is not None:
            return None
        if self.swaps is not None:
            return self.swaps.p_values[self.metric.name], "randomization"
        found = self.contrast()
        if found.missing is not None:
            return None
        low, high = int((found.samples <= 0).sum()), int((found.samples >= 0).sum())
        drawn = int((~np.isnan(found.samples)).sum())
        return min(1.0, 2.0 * (min(low, high) + 1) / (drawn + 1)), "bootstrap"

    @property
    def error(self) -> float | None:
        """Standard error of the difference; None where there is none."""
        if self.undefined is not None:
            return None
        found = self.contrast()
        if found.missing is not None:
            return None
        return float(np.nanstd(found.samples, ddof=1)) if found.error is None else found.error

    @property
    def spread(self) -> float | None:
        """Standard deviation that ``stats.power`` asks for: the standard error of the difference times √n."""
        return None if self.error is None else self.error * float(np.sqrt(self.n_items))

    @property
    def effect_size(self) -> float | None:
        """Mean of the differences per item over their standard deviation (Cohen's d_z).

        Not oriented. None where single items have no value, or where all differ by the same.
        """
        if self.differences is None or len(self.differences) < 2 or self.error == 0.0:
            return None
        spread = float(self.differences.std(ddof=1))
        return float(self.differences.mean()) / spread if spread else None

    @property
    def outcomes(self) -> Outcomes | None:
        """On how many items the candidate is better, equal and worse, by the metric's direction.

        None where single items have no value.
        """
        if self.differences is None:
            return None
        gains = self.differences if self.metric.higher_is_better else -self.differences
        won, lost = int((gains > EQUAL).sum()), int((gains < -EQUAL).sum())
        return Outcomes(won, len(gains) - won - lost, lost)


def compare(
    baseline: ItemRecords,
    candidate: ItemRecords,
    metrics: Sequence[Metric],
    statistics: StatisticsOptions,
    *purpose: str,
    weighting: Weighting | None = None,
) -> dict[str, Paired]:
    """Metric name -> both systems on it. The records have the same ids in the same order.

    Only items count that both sides have a value of. ``purpose`` names the random stream; with ``weighting`` a metric
    is the mean of its values in each label of the slice ``subset``, equally weighted or by number of items
    (``wmean``), and items stay in their sub-set when resampled.
    """
    assert baseline.ids == candidate.ids
    found: dict[str, Paired] = {}
    for both, group in by_scored_items(baseline, candidate, metrics):
        names = list(dict.fromkeys(name for metric in group for name in metric.columns))
        parts = split(baseline, candidate, names, both, weighting, purpose)
        found |= _compared(group, parts, statistics, purpose)
    for name, each in found.items():
        without = [scoring.unscored(side, each.metric, scored(side, each.metric)) for side in (baseline, candidate)]
        found[name] = replace(each, unscored=(without[0], without[1]))
    return {metric.name: found[metric.name] for metric in metrics}


def _compared(
    metrics: Sequence[Metric], parts: Sequence[Part], statistics: StatisticsOptions, purpose: tuple[str, ...]
) -> dict[str, Paired]:
    found = {metric.name: _on_all(metric, parts) for metric in metrics}
    defined = [metric for metric in metrics if found[metric.name].undefined is None]
    if not statistics.resamples or not defined or any(part.n_units < 2 for part in parts):
        return found
    swaps = Swaps([metric for metric in defined if can_swap(metric)], parts, statistics, purpose)
    for name, drawn in draw(defined, parts, statistics).items():
        found[name] = replace(
            found[name],
            samples=drawn.samples,
            jackknife=drawn.jackknife,
            moments=drawn.moments,
            limits=_limits(found[name].metric, parts),
            n_units=min(part.n_units / part.share for part in parts),
            n_clusters=None if any(part.units is None for part in parts) else sum(part.n_units for part in parts),
            changed=_changed(found[name].metric, parts),
            swaps=swaps if can_swap(found[name].metric) else None,
        )
    return found


def _on_all(metric: Metric, parts: Sequence[Part]) -> Paired:
    """With nothing drawn yet."""
    values = [part.values(metric) for part in parts]
    differences = None
    if averages(metric):
        differences = np.concatenate([part.candidate[metric.name] - part.baseline[metric.name] for part in parts])
    return Paired(
        metric,
        _mean([baseline for baseline, _ in values], parts),
        _mean([candidate for _, candidate in values], parts),
        np.empty((2, 0)),
        sum(part.n_items for part in parts),
        (0, 0),
        differences,
    )


def _limits(metric: Metric, parts: Sequence[Part]) -> tuple[float, float] | None:
    if not averages(metric):
        return None
    return intervals.limits(*(side[metric.name] for part in parts for side in (part.baseline, part.candidate)))


def _changed(metric: Metric, parts: Sequence[Part]) -> tuple[int, int] | None:
    if len(parts) > 1 or parts[0].units is not None or not averages(metric):
        return None
    one, other = parts[0].baseline[metric.name], parts[0].candidate[metric.name]
    if not all(((side == 0.0) | (side == 1.0)).all() for side in (one, other)):
        return None
    return int((other > one).sum()), int((other < one).sum())


def _mean(values: Sequence[float | Undefined], parts: Sequence[Part]) -> float | Undefined:
    total = 0.0
    for value, part in zip(values, parts, strict=True):
        if isinstance(value, Undefined):
            return value if part.label is None else Undefined(f"undefined_in_subset:{part.label}")
        total += part.share * value
    return total
