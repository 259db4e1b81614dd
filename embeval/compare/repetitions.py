"""Systems of which there are several runs each, such as seeds of a training: differences over items and runs."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from embeval import metrics
from embeval.compare import pairs
from embeval.compare.differences import Names, not_together
from embeval.compare.evidence import MEANS, Evidence
from embeval.core.comparison import Comparison
from embeval.core.protocols import Undefined
from embeval.core.specs import StatisticsOptions
from embeval.core.words import plural
from embeval.errors import UsageError
from embeval.stats import power, two_way

Runs = Sequence[Evidence]


def compared(
    baseline: Runs, candidate: Runs, wanted: Sequence[str], names: Names, statistics: StatisticsOptions
) -> tuple[Comparison, ...]:
    """A comparison for each wanted metric: mean of the candidate's runs - mean of the baseline's.

    A metric that is no mean of a value per item has no difference, and a reason; nor has a mean over sub-sets, nor one
    of items in clusters: here every item weighs the same and is drawn for itself. Raises ``NotComparableError`` where
    two runs didn't measure the same, or are the same result.
    """
    reference, *others = [*baseline, *candidate]
    made = [pairs.pair(reference, other, statistics) for other in others]
    aligned = [reference, *(pair.candidate for pair in made)]
    found = []
    for name in wanted:
        start = _start(reference, name, names, statistics)
        reason = _refusal(name, made) or _not_together(name, baseline, candidate)
        if reason is not None:
            found.append(replace(start, reason=reason))
            continue
        values = np.stack([each.records.columns[name] for each in aligned])
        found.append(_comparison(start, values[: len(baseline)], values[len(baseline) :], statistics))
    return tuple(found)


def refuse_shared(baseline: AbstractSet[str], candidate: AbstractSet[str]) -> None:
    """Raises ``UsageError`` where a run belongs to both sides."""
    if shared := sorted(baseline & candidate):
        raise UsageError(f"{shared[0]!r} is a run of both sides. Write labels that fit one side only.")


def _refusal(name: str, made: Sequence[pairs.Pair]) -> str | None:
    metric = metrics.get(name)
    if metric.columns != (name,):
        return "a value of all items together: with repetitions only means of a value per item are compared"
    if made[0].baseline.result.subset in MEANS:
        return "a mean over sub-sets: with repetitions only means over items are compared"
    if any(side.records.clusters is not None for side in (made[0].baseline, *(pair.candidate for pair in made))):
        return "its items come in clusters: with repetitions only items that are independent are compared"
    for pair in made:
        if name not in pair.metric_names:
            return pair.lacks(name)
        if (reason := pair.refusal(metric, pair.baseline.records, pair.candidate.records)) is not None:
            return reason
    return None


def _not_together(name: str, baseline: Runs, candidate: Runs) -> str | None:
    """Why times can't be compared."""
    reasons = (not_together(one, other, name) for one in baseline for other in candidate)
    return next((reason for reason in reasons if reason is not None), None)


def _start(reference: Evidence, metric: str, names: Names, statistics: StatisticsOptions) -> Comparison:
    result = reference.result
    return Comparison(
        task=result.task.name,
        split=result.split,
        subset=result.subset,
        metric=metric,
        higher_is_better=metrics.get(metric).higher_is_better,
        baseline_model=names.baseline,
        candidate_model=names.candidate,
        baseline=None,
        candidate=None,
        delta=None,
        level=statistics.level,
        resamples=statistics.resamples,
        seed=statistics.seed,
        n_items=0,
    )


def _comparison(
    start: Comparison,
    one: npt.NDArray[np.float64],
    other: npt.NDArray[np.float64],
    statistics: StatisticsOptions,
) -> Comparison:
    found = two_way.compare(one, other, statistics, start.task, start.metric)
    if isinstance(found, Undefined):
        return replace(start, reason=found.reason)
    scored = ~np.isnan(one[0])
    contrast = found.contrast
    interval = contrast.interval(statistics.level)
    alpha = 1.0 - statistics.level
    few = min(found.n_runs) < 2
    note = "one run of a side says nothing of others, so there is no interval" if few else interval.note
    runs = f"{plural(found.n_runs[0], 'run')} and {plural(found.n_runs[1], 'run')}, resampled with the items"
    return replace(
        start,
        baseline=float(one[:, scored].mean()),
        candidate=float(other[:, scored].mean()),
        delta=contrast.estimate,
        ci_low=interval.low,
        ci_high=interval.high,
        interval=contrast.method if interval.low is not None else None,
        p=found.p,
        test=None if found.p is None else "two-way bootstrap",
        n_items=int(scored.sum()),
        n_unscored=int((~scored).sum()),
        detectable=None if contrast.error is None else power.detectable_gain(contrast.error, 1, alpha=alpha),
        note=f"{runs}; {note}" if note else runs,
    )
