"""A baseline and a candidate on one task, checked to be comparable; differences on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

import numpy as np

from embeval import metrics
from embeval.compare.evidence import MEANS, Evidence, named
from embeval.core.protocols import Metric, Undefined
from embeval.core.records import ItemRecords
from embeval.core.signature import other_tokens
from embeval.core.specs import StatisticsOptions
from embeval.core.words import have, plural
from embeval.errors import NotComparableError, UnknownNameError
from embeval.stats import paired
from embeval.stats.paired import Paired


@dataclass(frozen=True)
class Pair:
    """Two results of the same items. Made by ``pair``.

    A difference on fewer items than both should have a value of would be that of other systems, so there is none where
    an item has a value on one side only, or where a ranking ends before the metric does.
    """

    baseline: Evidence
    """One side."""
    candidate: Evidence
    """The other; its records are in the order of the baseline's."""
    statistics: StatisticsOptions
    """How uncertainty is estimated."""
    _found: dict[tuple[str, ...], dict[str, Paired]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Metrics that both have, of the same version, and per token of the same tokenizer; the main one first."""
        one, other = self.baseline.result, self.candidate.result
        names = [
            name
            for name in one.scores
            if name in other.scores
            and one.signature.metrics.get(name) == other.signature.metrics.get(name)
            and self.other_tokens(name) is None
        ]
        return tuple(sorted(names, key=lambda name: (name != one.main_score, name)))

    def compared(
        self, names: Sequence[str], *, slice_name: str | None = None, label: str | None = None
    ) -> dict[str, Paired]:
        """Metric name -> both sides on all items, or on those of one label. What was computed once is kept.

        Raises ``UnknownNameError`` for a metric that one side lacks, a slice, or a label.
        """
        for name in names:
            if name not in self.metric_names:
                raise UnknownNameError("metric of both results", name, self.metric_names)
        place = () if slice_name is None else (slice_name, label or "")
        kept = self._found.setdefault(place, {})
        if missing := [name for name in names if name not in kept]:
            sides = self._sides(slice_name, label)
            wanted: list[Metric] = [metrics.get(name) for name in missing]
            data = str(self.baseline.result.signature.protocol.get("data"))
            subset = self.baseline.result.subset
            weighting = cast(Literal["mean", "wmean"], subset) if subset in MEANS else None
            found = paired.compare(*sides, wanted, self.statistics, data, subset, *place, weighting=weighting)
            for name, each in found.items():
                refused = self.refusal(metrics.get(name), *sides)
                kept[name] = each if refused is None else replace(each, candidate=Undefined(refused))
        return {name: kept[name] for name in names}

    def lacks(self, name: str) -> str:
        """Why a metric isn't among ``metric_names``."""
        one, other = self.baseline.result, self.candidate.result
        for side in (one, other):
            if name not in side.scores:
                return f"{side.model.label} has no {name} on {side.task.name}"
        if (reason := self.other_tokens(name)) is not None:
            return reason
        mine, theirs = one.signature.metrics.get(name), other.signature.metrics.get(name)
        return f"computed by version {mine} of the metric for the baseline and by {theirs} for the candidate"

    def other_tokens(self, name: str) -> str | None:
        """Why values of a metric are of tokens that aren't the same for both; None where they are, or are of none."""
        if not metrics.is_per_token(name):
            return None
        return other_tokens(side.result.signature for side in (self.baseline, self.candidate))

    def refusal(self, metric: Metric, one: ItemRecords, other: ItemRecords) -> str | None:
        """Why there is no difference of a metric that both have; None where there is one."""
        for side in (self.baseline, self.candidate):
            if (short := side.too_short_for(metric.name)) is not None:
                return short
        if getattr(metric, "of_some_items", False):
            return None
        unscored = [
            np.any([np.isnan(records.columns[name]) for name in metric.columns], axis=0) for records in (one, other)
        ]
        for missing, there, side in ((*unscored, self.baseline), (*unscored[::-1], self.candidate)):
            rows = np.flatnonzero(missing & ~there)
            if len(rows):
                ids = [one.ids[row] for row in rows]
                what = f"{plural(len(ids), 'item')} {have(len(ids))} no value of {side.result.model.label} alone"
                return f"{what}: {named(ids)}"
        return None

    def _sides(self, slice_name: str | None, label: str | None) -> tuple[ItemRecords, ItemRecords]:
        one, other = self.baseline.records, self.candidate.records
        if slice_name is None:
            return one, other
        if slice_name not in one.slices:
            raise UnknownNameError("slice", slice_name, one.slices)
        rows = one.rows_by(slice_name)
        if label not in rows:
            raise UnknownNameError(f"label of the slice {slice_name!r}", str(label), rows)
        return one.take(rows[label]), other.take(rows[label])


def pair(baseline: Evidence, candidate: Evidence, statistics: StatisticsOptions) -> Pair:
    """The two sides, candidate's items in the baseline's order.

    Raises ``NotComparableError`` where they didn't measure the same thing (it names the parts of the signature that
    differ) or not the same items, and where both are the very same result.
    """
    one, other = baseline.result, candidate.result
    if baseline.digest == candidate.digest:
        raise NotComparableError(
            f"{baseline.source} is baseline and candidate at once: a result compared with itself says nothing.",
            ("same result",),
        )
    if parts := one.signature.differences(other.signature):
        raise NotComparableError(
            f"{one.model.label} and {other.model.label} on {one.task.name} didn't measure the same thing.\n"
            f"Different: {'; '.join(parts)}.\nRun both with the same data and options.",
            parts,
        )
    return Pair(baseline, _aligned(baseline, candidate), statistics)


def _aligned(baseline: Evidence, candidate: Evidence) -> Evidence:
    ids, others = baseline.records.ids, candidate.records.ids
    if ids == others:
        return candidate
    place = {item: row for row, item in enumerate(others)}
    missing = [item for item in ids if item not in place] or sorted(set(others) - set(ids))
    if missing:
        raise NotComparableError(
            f"{baseline.source} and {candidate.source} hold different items: {len(missing)} of one are not in the "
            f"other ({named(missing)}).",
            ("items",),
        )
    rows = np.array([place[item] for item in ids], dtype=np.intp)
    return replace(candidate, records=candidate.records.take(rows))
