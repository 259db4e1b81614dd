"""The items of two systems that a metric is computed on, in the groups that are resampled among themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Undefined
from embeval.core.records import Column, ItemRecords
from embeval.stats.bootstrap import BLOCK, drawn
from embeval.stats.rng import seed_sequence

Weighting = Literal["mean", "wmean"]
Counts = npt.NDArray[np.int64]

LEFT_OUT = 1000
"""Leave-one-out values at most of each part: of more units, several are left out at a time."""


@dataclass(frozen=True)
class Part:
    """Items that are resampled among themselves."""

    baseline: Mapping[str, Column]
    """float64 [n] by name."""
    candidate: Mapping[str, Column]
    """The same of the candidate."""
    n_items: int
    """n"""
    units: npt.NDArray[np.intp] | None
    """[n]: number of the cluster of each item; None: items are independent."""
    share: float
    """Weight in the mean over parts."""
    purpose: tuple[str, ...]
    """Names the random stream."""
    label: str | None
    """The sub-set, where the metric is a mean over sub-sets."""

    @property
    def n_units(self) -> int:
        """Items, or clusters of them: what is drawn."""
        return self.n_items if self.units is None else int(self.units.max(initial=-1)) + 1

    @property
    def firsts(self) -> npt.NDArray[np.intp]:
        """[n_units]: an item of each unit."""
        if self.units is None:
            return np.arange(self.n_items)
        return np.asarray(np.unique(self.units, return_index=True)[1])

    def resampled(self, resamples: int, seed: int) -> Iterator[tuple[slice, Counts]]:
        """(places, int64 [n, places]) of some blocks at a time: how often each item is drawn.

        The same counts as in ``bootstrap.distribution``.
        """
        streams = seed_sequence(seed, "bootstrap", *self.purpose).spawn(-(-resamples // BLOCK))
        yield from drawn(self.n_items, streams, self.units)

    def left_out(self) -> Iterator[Counts]:
        """int64 [n, up to BLOCK] at a time: 0 for the items of one unit, or of some, and 1 for the others."""
        at_a_time = -(-self.n_units // LEFT_OUT)
        n_groups = -(-self.n_units // at_a_time)
        group = np.arange(self.n_units) % n_groups
        group = group if self.units is None else group[self.units]
        for start in range(0, n_groups, BLOCK):
            yield (group[:, None] != np.arange(start, min(start + BLOCK, n_groups))).astype(np.int64)

    def values(self, metric: Metric) -> tuple[float | Undefined, float | Undefined]:
        """The metric of baseline and candidate."""
        if not self.n_items:
            return Undefined("too_few_items"), Undefined("too_few_items")
        return metric.aggregate(self.baseline), metric.aggregate(self.candidate)


def scored(records: ItemRecords, metric: Metric) -> npt.NDArray[np.bool_]:
    """bool [n]: items on which all columns of the metric have a value."""
    found = np.ones(len(records), dtype=np.bool_)
    for name in metric.columns:
        found &= ~np.isnan(records.columns[name])
    return found


def by_scored_items(
    baseline: ItemRecords, candidate: ItemRecords, metrics: Sequence[Metric]
) -> list[tuple[npt.NDArray[np.bool_], list[Metric]]]:
    """Metrics grouped by the items that both sides have a value of, as bool [n]."""
    groups: dict[bytes, tuple[npt.NDArray[np.bool_], list[Metric]]] = {}
    for metric in metrics:
        both = scored(baseline, metric) & scored(candidate, metric)
        groups.setdefault(both.tobytes(), (both, []))[1].append(metric)
    return list(groups.values())


def split(
    baseline: ItemRecords,
    candidate: ItemRecords,
    names: Sequence[str],
    both: npt.NDArray[np.bool_],
    weighting: Weighting | None,
    purpose: tuple[str, ...],
) -> list[Part]:
    """Columns ``names`` of the items ``both``: one part, or with ``weighting`` one for each label of ``subset``."""
    every: Mapping[str | None, npt.NDArray[np.intp]] = {None: np.arange(len(baseline))}
    if weighting is not None:
        every = dict(baseline.rows_by("subset").items())
    rows_by = {label: rows[both[rows]] for label, rows in every.items()}
    weights = {label: float(len(rows)) if weighting == "wmean" else 1.0 for label, rows in rows_by.items()}
    return [
        Part(
            baseline={name: baseline.columns[name][rows] for name in names},
            candidate={name: candidate.columns[name][rows] for name in names},
            n_items=len(rows),
            units=_units(baseline, rows),
            share=weights[label] / (sum(weights.values()) or 1.0),
            purpose=purpose if label is None else (*purpose, label),
            label=label,
        )
        for label, rows in rows_by.items()
    ]


def _units(records: ItemRecords, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp] | None:
    if records.clusters is None:
        return None
    labels = np.array([records.clusters[row] for row in rows], dtype=str)
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)
