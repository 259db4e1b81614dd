"""Where a candidate is worse: by the labels of a slice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from embeval import metrics
from embeval.compare import differences
from embeval.compare.differences import Names
from embeval.compare.evidence import MEANS
from embeval.compare.pairs import Pair
from embeval.compare.report import FewItems
from embeval.core.comparison import Comparison
from embeval.core.protocols import Undefined
from embeval.core.records import ItemRecords
from embeval.errors import UnknownNameError

ALL = "all"
"""Stands for every slice."""
WORST = 3
"""Labels with the largest drops that are always shown."""


class Found(NamedTuple):
    """Comparisons by label, and the labels that are too small for one."""

    comparisons: tuple[Comparison, ...]
    few: tuple[FewItems, ...]


class _Drop(NamedTuple):
    gain: float
    pair: Pair
    names: Names
    slice_name: str
    label: str


def names(pair: Pair) -> tuple[str, ...]:
    """The slices of a pair that have more than one label: one label is the whole result.

    None for a mean over sub-sets, which a slice would cut across.
    """
    if pair.baseline.result.subset in MEANS:
        return ()
    return tuple(name for name, labels in pair.baseline.records.slices.items() if len(set(labels)) > 1)


def by_slice(pair: Pair, wanted: Sequence[str], called: Names, slice_name: str, min_items: int) -> Found:
    """Metrics by label of a slice, or of every slice; labels of fewer than ``min_items`` items are only named.

    Raises ``UnknownNameError`` for a slice that the items don't have.
    """
    records = pair.baseline.records
    if pair.baseline.result.subset in MEANS:
        return Found((), ())
    if slice_name != ALL and slice_name not in records.slices:
        raise UnknownNameError("slice", slice_name, records.slices)
    found: list[Comparison] = []
    few: list[FewItems] = []
    for name in names(pair) if slice_name == ALL else (slice_name,):
        for label, n_items in _sizes(records, name).items():
            if n_items < min_items:
                few.append(FewItems(task=pair.baseline.result.task.name, slice=name, label=label, n_items=n_items))
            else:
                found += differences.compared(pair, wanted, called, slice_name=name, label=label)
    return Found(tuple(found), tuple(few))


def worst(pairs: Iterable[tuple[Pair, Names]], min_items: int, n: int = WORST) -> tuple[Comparison, ...]:
    """The labels with the largest drops of their task's main metric, the largest first.

    They are chosen for being the worst, so their p-values are multiplied by the number of labels looked at.
    """
    looked_at = 0
    drops: list[_Drop] = []
    for pair, called in pairs:
        for name in names(pair):
            for label, n_items in _sizes(pair.baseline.records, name).items():
                if n_items >= min_items and (gain := _gain(pair, name, label)) is not None:
                    looked_at += 1
                    drops += [_Drop(gain, pair, called, name, label)] if gain < 0.0 else []
    drops.sort(key=lambda each: each.gain)
    found = []
    for each in drops[:n]:
        (shown,) = differences.compared(
            each.pair, each.pair.metric_names[:1], each.names, slice_name=each.slice_name, label=each.label
        )
        found.append(replace(shown, p_adjusted=None if shown.p is None else min(1.0, shown.p * looked_at)))
    return tuple(found)


def _sizes(records: ItemRecords, slice_name: str) -> dict[str, int]:
    """Label -> its items that count, queries without an answer left aside."""
    outside = records.outside
    counts = {label: int((~outside[rows]).sum()) for label, rows in records.rows_by(slice_name).items()}
    return {label: n for label, n in sorted(counts.items()) if n}


def _gain(pair: Pair, slice_name: str, label: str) -> float | None:
    """Of the main metric, positive where the candidate is better; None where it has none there."""
    main = pair.metric_names[:1]
    if not main:
        return None
    metric = metrics.get(main[0])
    rows = pair.baseline.records.rows_by(slice_name)[label]
    sides = [side.records.take(rows) for side in (pair.baseline, pair.candidate)]
    if pair.refusal(metric, sides[0], sides[1]) is not None:
        return None
    both = ~np.any([np.isnan(side.columns[name]) for side in sides for name in metric.columns], axis=0)
    if not both.any():
        return None
    values = [metric.aggregate({name: side.columns[name][both] for name in metric.columns}) for side in sides]
    if isinstance(values[0], Undefined) or isinstance(values[1], Undefined):
        return None
    delta = values[1] - values[0]
    return delta if metric.higher_is_better else -delta
