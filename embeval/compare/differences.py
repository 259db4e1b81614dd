"""From pairs of results to comparisons: values, difference, interval, p-value, and what difference would show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from embeval import metrics
from embeval.compare import facts
from embeval.compare.evidence import Evidence
from embeval.compare.pairs import Pair
from embeval.core.comparison import Comparison
from embeval.core.protocols import Undefined
from embeval.core.words import plural
from embeval.errors import EvidenceError, UnknownNameError
from embeval.stats import corrections, power
from embeval.stats.paired import Paired

CORRECTIONS: Mapping[str, Callable[[Sequence[float | None]], tuple[float | None, ...]]] = {
    "holm": corrections.holm,
    "bh": corrections.benjamini_hochberg,
    "none": lambda p: (None,) * len(p),
}
"""By the name that a user gives."""


@dataclass(frozen=True)
class Names:
    """What the two sides are called."""

    baseline: str
    candidate: str


def compared(
    pair: Pair,
    wanted: Sequence[str],
    names: Names,
    *,
    slice_name: str | None = None,
    label: str | None = None,
    with_p: bool = True,
) -> tuple[Comparison, ...]:
    """A comparison for each wanted metric, p-values not yet corrected; none where ``with_p`` is false.

    Where a metric is undefined, missing on one side or not comparable, there is no difference and a reason. Raises
    ``UnknownNameError`` for a metric that neither side has.
    """
    there = [name for name in wanted if name in pair.metric_names]
    found = pair.compared(there, slice_name=slice_name, label=label)
    return tuple(
        _comparison(pair, found[name], names, slice_name, label, with_p)
        if name in found
        else _missing(pair, name, names, slice_name, label)
        for name in wanted
    )


def adjusted(comparisons: Iterable[Comparison], correction: str) -> tuple[Comparison, ...]:
    """The same, p-values corrected over all of them; with ``none`` they are as they were.

    Raises ``UnknownNameError`` for a correction that there is not.
    """
    if correction not in CORRECTIONS:
        raise UnknownNameError("correction", correction, CORRECTIONS)
    shown = list(comparisons)
    corrected = CORRECTIONS[correction]([each.p for each in shown])
    return tuple(replace(each, p_adjusted=p) for each, p in zip(shown, corrected, strict=True))


def _comparison(
    pair: Pair, found: Paired, names: Names, slice_name: str | None, label: str | None, with_p: bool
) -> Comparison:
    start = _start(pair, found.metric.name, names, slice_name, label)
    sides = [None if isinstance(each, Undefined) else float(each) for each in (found.baseline, found.candidate)]
    values = replace(
        start, baseline=sides[0], candidate=sides[1], n_items=found.n_items, n_unscored=max(found.unscored)
    )
    reason = found.undefined or not_together(pair.baseline, pair.candidate, found.metric.name)
    if reason is not None or sides[0] is None or sides[1] is None:
        return _with_stored(replace(values, reason=reason), pair)
    contrast = found.contrast()
    level = pair.statistics.level
    interval = contrast.interval(level)
    p = found.p_value() if with_p else None
    outcomes = found.outcomes
    spread = found.spread
    return replace(
        values,
        delta=contrast.estimate,
        ci_low=interval.low,
        ci_high=interval.high,
        interval=contrast.method if interval.low is not None else None,
        p=None if p is None else p[0],
        test=None if p is None else p[1],
        effect_size=found.effect_size,
        wins=None if outcomes is None else outcomes.wins,
        ties=None if outcomes is None else outcomes.ties,
        losses=None if outcomes is None else outcomes.losses,
        # Without an interval the spread isn't known well enough to say what would have been seen.
        detectable=None
        if spread is None or interval.low is None
        else power.detectable_gain(spread, found.n_items, alpha=1.0 - level),
        note=interval.note or _missing_rankings(pair),
    )


def _start(pair: Pair, metric: str, names: Names, slice_name: str | None, label: str | None) -> Comparison:
    result = pair.baseline.result
    return Comparison(
        task=result.task.name,
        split=result.split,
        subset=result.subset,
        slice=slice_name,
        label=label,
        metric=metric,
        higher_is_better=metrics.get(metric).higher_is_better,
        baseline_model=names.baseline,
        candidate_model=names.candidate,
        baseline=None,
        candidate=None,
        delta=None,
        level=pair.statistics.level,
        resamples=pair.statistics.resamples,
        seed=pair.statistics.seed,
        n_items=0,
    )


def _missing(pair: Pair, metric: str, names: Names, slice_name: str | None, label: str | None) -> Comparison:
    """Raises ``UnknownNameError`` for a metric that neither side has."""
    known = {*pair.baseline.result.scores, *pair.candidate.result.scores}
    if metric not in known:
        raise UnknownNameError(f"metric of {pair.baseline.result.task.name}", metric, known)
    return _with_stored(replace(_start(pair, metric, names, slice_name, label), reason=pair.lacks(metric)), pair)


def _with_stored(shown: Comparison, pair: Pair) -> Comparison:
    """A line without a difference, with the values of both sides as their results have them."""
    if shown.slice is not None:
        return shown
    found = [side.result.scores.get(shown.metric) for side in (pair.baseline, pair.candidate)]
    one, other = (None if each is None else each.value for each in found)
    return replace(shown, baseline=one, candidate=other)


def not_together(baseline: Evidence, candidate: Evidence, metric: str) -> str | None:
    """Why two times can't be compared; None where they can, or where the metric is none."""
    try:
        facts.refuse_unless_together(baseline.result, candidate.result, metric)
    except EvidenceError as error:
        return " ".join(str(error).split())
    return None


def _missing_rankings(pair: Pair) -> str | None:
    lacking = [
        f"{plural(n, 'query', 'queries')} of {side.result.model.label}"
        for side in (pair.baseline, pair.candidate)
        if (n := len(side.without_ranking))
    ]
    return f"no ranking for {' and '.join(lacking)}: counted as 0" if lacking else None
