"""What a rule speaks of, as a value with one-sided bounds: of a candidate alone, or of its difference to a baseline."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from embeval import metrics
from embeval.compare import facts
from embeval.compare.evidence import MEANS, Evidence
from embeval.compare.pairs import Pair
from embeval.core.protocols import Metric, Undefined
from embeval.core.records import ItemRecords
from embeval.core.specs import StatisticsOptions
from embeval.core.words import plural
from embeval.errors import EvidenceError, UnknownNameError
from embeval.gates.policy import MetricRef
from embeval.stats import scoring
from embeval.stats.paired import Contrast, Paired
from embeval.stats.scoring import Estimate

TAIL = 10
"""Resamples that have to lie beyond a bound: with fewer the bound itself is chance."""


@dataclass(frozen=True)
class Quantity:
    """One number and how sure it is."""

    value: float
    """On all items."""
    n_items: int
    """Items behind it; 0 for a fact."""
    lower: Callable[[float], float | None] | None = None
    """One-sided lower bound at an error rate; None: a fact, which has none."""
    upper: Callable[[float], float | None] | None = None
    """One-sided upper bound."""
    spread: float | None = None
    """Standard error times √n, of a difference."""
    limits: tuple[float, float] | None = None
    """What a single item may be at least and at most, where its bounds allow for items that were not seen."""
    narrow: Callable[[float], tuple[float | None, float | None]] | None = None
    """The bounds where no item changes by more than the largest change at hand; None where they are the same."""

    def bounds(self, alpha: float) -> tuple[float, float]:
        """Both one-sided bounds. Raises ``EvidenceError`` where there is none."""
        assert self.lower is not None
        assert self.upper is not None
        low, high = self.lower(alpha), self.upper(alpha)
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            raise EvidenceError(f"{plural(self.n_items, 'item')} give no bound, so nothing can be shown.")
        return low, high


def higher_is_better(metric: str) -> bool:
    """Direction of a metric or fact. Raises ``UnknownNameError``."""
    fact = facts.NAMES.get(metric)
    return metrics.get(metric).higher_is_better if fact is None else fact.higher_is_better


def fact(evidence: Evidence, name: str) -> Quantity:
    """A value that is no metric of items. Raises ``EvidenceError`` where the result doesn't tell it."""
    value = facts.value(evidence.result, name)
    if value is None or not math.isfinite(value):
        raise EvidenceError(f"{evidence.source}: it doesn't tell {name}.")
    return Quantity(float(value), 0)


def alone(evidence: Evidence, ref: MetricRef, statistics: StatisticsOptions) -> Quantity:
    """A metric of one result, computed from its items.

    Raises ``EvidenceError`` where the result has no such metric, items without a value, or an undefined value;
    ``UnknownNameError`` for a slice or label that there isn't.
    """
    if ref.metric in facts.NAMES:
        return fact(evidence, ref.metric)
    estimate = _estimate(evidence, ref, statistics)
    value = _defined(estimate.value, evidence, ref)

    def end(alpha: float, name: Literal["ci_low", "ci_high"]) -> float | None:
        found = estimate.to_value(replace(statistics, level=1.0 - 2.0 * alpha))
        return cast(float | None, getattr(found, name))

    return Quantity(value, estimate.n_items, lambda alpha: end(alpha, "ci_low"), lambda alpha: end(alpha, "ci_high"))


def difference(pair: Pair, ref: MetricRef, scale: float = 1.0, *, as_seen: bool = False) -> Quantity:
    """candidate - scale x baseline on the items of both. Raises as ``alone`` does, of either side.

    ``as_seen``: no item is supposed to change by more than the largest change at hand.
    """
    facts.refuse_unless_together(pair.baseline.result, pair.candidate.result, ref.metric)
    if ref.metric in facts.NAMES:
        one, other = fact(pair.baseline, ref.metric), fact(pair.candidate, ref.metric)
        return Quantity(other.value - scale * one.value, 0)
    both = paired(pair, ref)
    contrast = both.contrast(scale, as_seen=as_seen)
    if not math.isfinite(contrast.estimate):
        raise EvidenceError(f"{ref.metric} of {ref.place} is not a number.")
    if contrast.missing is not None:
        raise EvidenceError(f"{ref.metric} of {ref.place}: {contrast.missing}, so nothing can be shown.")
    error = contrast.error if contrast.error is not None else float(np.nanstd(contrast.samples))
    limits = None if contrast.unseen is None else (contrast.unseen.lowest, contrast.unseen.highest)
    return Quantity(
        contrast.estimate,
        contrast.n_items,
        contrast.lower,
        contrast.upper,
        error * math.sqrt(contrast.n_items) if math.isfinite(error) else None,
        limits,
        None if as_seen or limits is None else lambda alpha: _both_bounds(both.contrast(scale, as_seen=True), alpha),
    )


def _both_bounds(contrast: Contrast, alpha: float) -> tuple[float | None, float | None]:
    return contrast.lower(alpha), contrast.upper(alpha)


def paired(pair: Pair, ref: MetricRef) -> Paired:
    """Both sides of a metric, defined and with a value on every item that should have one. Raises as ``alone``.

    Raises ``EvidenceError`` too for a metric per token where the tokenizers differ.
    """
    if (reason := pair.other_tokens(ref.metric)) is not None:
        raise EvidenceError(f"{ref.metric} of {ref.place}: {reason}.")
    for side in (pair.baseline, pair.candidate):
        _defined(_estimate(side, ref, replace(pair.statistics, resamples=0)).value, side, ref)
    found = pair.compared([ref.metric], slice_name=ref.slice, label=ref.label)[ref.metric]
    if found.undefined is not None:
        raise EvidenceError(f"{ref.metric} of {ref.place} is undefined ({found.undefined}).")
    return found


def baseline_value(pair: Pair, ref: MetricRef) -> float:
    """The baseline's value of a metric or fact."""
    if ref.metric in facts.NAMES:
        return fact(pair.baseline, ref.metric).value
    return cast(float, paired(pair, ref).baseline)


def labels(evidence: Evidence, slice_name: str) -> dict[str, int]:
    """Label of a slice -> its items. Raises ``UnknownNameError``."""
    if slice_name not in evidence.records.slices:
        raise UnknownNameError("slice", slice_name, evidence.records.slices)
    return {label: len(rows) for label, rows in evidence.records.rows_by(slice_name).items()}


def _estimate(evidence: Evidence, ref: MetricRef, statistics: StatisticsOptions) -> Estimate:
    result = evidence.result
    if ref.metric not in result.scores:
        raise EvidenceError(str(UnknownNameError(f"metric of {result.task.name}", ref.metric, result.scores)))
    metric = metrics.get(ref.metric)
    records = _records(evidence, ref)
    purpose = (str(result.signature.protocol.get("data")), result.subset, ref.slice or "", ref.label or "")
    found = _pooled_or_mean(records, metric, statistics, result.subset, purpose)
    if found.n_unscored:
        raise EvidenceError(
            f"{evidence.source}: {found.n_unscored} of {found.n_items + found.n_unscored} items have no value of "
            f"{ref.metric}, and a mean over the rest would flatter it.\nFind out what failed and run it again."
        )
    return found


def _pooled_or_mean(
    records: ItemRecords, metric: Metric, statistics: StatisticsOptions, subset: str, purpose: tuple[str, ...]
) -> Estimate:
    if subset not in MEANS:
        return scoring.estimate(records, [metric], statistics, *purpose)[metric.name]
    groups = {
        label: scoring.estimate(records.take(rows), [metric], statistics, *purpose, label)
        for label, rows in sorted(records.rows_by("subset").items())
    }
    return scoring.mean_over(groups, cast(Literal["mean", "wmean"], subset))[metric.name]


def _records(evidence: Evidence, ref: MetricRef) -> ItemRecords:
    if ref.slice is None:
        return evidence.records
    known = labels(evidence, ref.slice)
    if ref.label not in known:
        raise UnknownNameError(f"label of the slice {ref.slice!r}", str(ref.label), known)
    return evidence.records.take(evidence.records.rows_by(ref.slice)[ref.label])


def _defined(value: float | Undefined, evidence: Evidence, ref: MetricRef) -> float:
    if isinstance(value, Undefined):
        raise EvidenceError(f"{evidence.source}: {ref.metric} is undefined ({value.reason}).")
    if not math.isfinite(value):
        raise EvidenceError(f"{evidence.source}: {ref.metric} is {value}.")
    return value
