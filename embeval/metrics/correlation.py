"""Correlation of a score with gold: ``<similarity>_spearman`` and ``<similarity>_pearson``.

Reads the columns ``gold`` and ``<similarity>``. Ties get average ranks. Undefined, never 0 and never NaN, where
gold or score is constant or fewer than two items are there.

Source: scipy.stats ``spearmanr`` and ``pearsonr``, to which both are equal (tests/unit/metrics). The resampled
Spearman needs no sort per resample: with items sorted once, the mid-rank of a value in a resample is the number
of draws below it plus (its own draws + 1) / 2, a cumulative sum of counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Resampler, Swapper, Undefined
from embeval.core.records import Column
from embeval.core.specs import SimilarityName
from embeval.metrics._sums import EXACT, Whole, cumulated

Kind = Literal["spearman", "pearson"]
Rows = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

FEW = 8
"""With more items than this to a group of equal values, adding them up comes before the sum over groups."""
SPREAD_OF_ROUNDING = 1e-13
"""Largest variance of equal values scaled to at most 1 that is still rounding error."""


@dataclass(frozen=True)
class Correlation:
    """Correlation of two columns."""

    kind: Kind
    x: str
    y: str
    name: str
    version: int = 1
    higher_is_better: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (self.x, self.y)

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The coefficient in [-1, 1]."""
        x, y = columns[self.x], columns[self.y]
        if len(x) < 2:
            return Undefined("too_few_items")
        if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
            return Undefined("constant_input")
        if self.kind == "spearman":
            x, y = _mid_ranks(x), _mid_ranks(y)
        value = _correlation(x, y)
        return value if np.isfinite(value) else Undefined("constant_input")

    def on(self, names: Mapping[str, str]) -> Correlation:
        """The same of other columns; those that ``names`` doesn't have stay."""
        return replace(self, x=names.get(self.x, self.x), y=names.get(self.y, self.y))

    @staticmethod
    def resampler(metrics: Sequence[Correlation], columns: Mapping[str, Column]) -> Resampler:
        """Each coefficient under resampling; NaN where a resample is constant."""
        spearman = [row for row, metric in enumerate(metrics) if metric.kind == "spearman"]
        pearson = [row for row, metric in enumerate(metrics) if metric.kind == "pearson"]
        by_rank = _spearman([metrics[row] for row in spearman], columns)
        by_value = _pearson([metrics[row] for row in pearson], columns)

        def resample(counts: Counts) -> Rows:
            rows = np.empty((len(metrics), counts.shape[1]))
            if spearman:
                rows[spearman] = by_rank(counts)
            if pearson:
                rows[pearson] = by_value(counts)
            return rows

        return resample

    @staticmethod
    def swapper(
        metrics: Sequence[Correlation], baseline: Mapping[str, Column], candidate: Mapping[str, Column]
    ) -> Swapper:
        """Differences of coefficients where what changes places is on one scale for both systems.

        Mid-ranks within each system for Spearman, scores in standard deviations of each system for Pearson. Raw scores
        would not do: two models may use ranges that hardly meet.
        """
        parts = [_swapper(metric, baseline, candidate) for metric in metrics]

        def swap(signs: Rows) -> Rows:
            return np.stack([part(signs) for part in parts])

        return swap


def _mid_ranks(values: Column) -> Column:
    """float64 [n]: ranks from 1, equal values sharing the mean of theirs."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2.0)[group])


def _correlation(x: Column, y: Column) -> float:
    """Pearson's coefficient; NaN where the spread of one side is no more than rounding error."""
    # By the largest value first, so that no square is too large or too small for a float.
    x, y = (values / np.abs(values).max() for values in (x, y))
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return min(1.0, max(-1.0, float(x @ y) / spread)) if spread > 0.0 else math.nan


@dataclass(frozen=True)
class _Sorted:
    """A column of n items sorted once; equal values form one of G groups."""

    order: npt.NDArray[np.intp]
    """[n]: items, smallest value first."""
    starts: npt.NDArray[np.intp]
    """[G]: where each group begins in that order."""
    group: npt.NDArray[np.intp]
    """[n]: group of each item."""

    @property
    def ends(self) -> npt.NDArray[np.intp]:
        """[G]: the last place of each group."""
        return np.append(self.starts[1:], len(self.order)) - 1

    @classmethod
    def of(cls, values: Column) -> _Sorted:
        order = np.argsort(values, kind="stable")
        new = np.append(True, np.diff(values[order]) != 0.0)
        group = np.empty(len(values), dtype=np.intp)
        group[order] = np.cumsum(new) - 1
        return cls(order, np.flatnonzero(new), group)

    def ranks(self, counts: Whole, totals: Column) -> tuple[Whole, Column]:
        """([n, R] centred ranks x 2, [R] their weighted sum of squares) for counts [n, R] and their sums [R]."""
        # The mid-rank of a group is what was drawn below it plus (its own draws + 1) / 2; n + 1 is the mean of
        # twice that.
        drawn = np.take(counts, self.order, axis=0)
        if len(self.starts) <= len(self.order) // FEW:
            drawn = np.add.reduceat(drawn, self.starts, axis=0)
            ranks = cumulated(drawn)
        else:
            ranks = cumulated(drawn)
            if len(self.starts) < len(self.order):
                ranks = np.take(ranks, self.ends, axis=0)
                drawn = ranks.copy()
                drawn[1:] -= ranks[:-1]
        ranks *= 2.0
        ranks -= drawn
        ranks -= totals.astype(np.float32)
        # The squares of n ranks without ties sum up to (n³ - n) / 3, and t that are tied take (t³ - t) / 3 away.
        tied = np.einsum("ij,ij,ij->j", drawn, drawn, drawn)
        if tied.max() >= EXACT:
            tied = np.einsum("ij,ij,ij->j", drawn, drawn, drawn, dtype=np.float64)
        return np.take(ranks, self.group, axis=0), (totals**3 - tied) / 3.0


def _spearman(metrics: Sequence[Correlation], columns: Mapping[str, Column]) -> Callable[[Counts], Rows]:
    ordered = {name: _Sorted.of(columns[name]) for metric in metrics for name in metric.columns}

    def resample(counts: Counts) -> Rows:
        # Twice a rank is whole, and float32 holds whole numbers exactly up to 16 million. Sums are in float64.
        narrow = counts.astype(np.float32)
        totals = narrow.sum(axis=0, dtype=np.float64)
        ranked = {name: column.ranks(narrow, totals) for name, column in ordered.items()}
        weighted = {name: narrow * ranked[name][0] for name in {metric.x for metric in metrics}}
        covariance = [
            np.einsum("ij,ij->j", weighted[metric.x], ranked[metric.y][0], dtype=np.float64) for metric in metrics
        ]
        return _divide(np.stack(covariance), np.stack([ranked[m.x][1] * ranked[m.y][1] for m in metrics]))

    return resample


def _pearson(metrics: Sequence[Correlation], columns: Mapping[str, Column]) -> Callable[[Counts], Rows]:
    """From weighted sums of x, y, x², y² and xy, all of them in one matrix product."""
    names = list(dict.fromkeys(name for metric in metrics for name in metric.columns))
    place = {name: row for row, name in enumerate(names)}
    xs, ys = [place[metric.x] for metric in metrics], [place[metric.y] for metric in metrics]
    # Centred on all items, so that little is lost when the square of a resample's mean is taken away.
    centred = [columns[name] - columns[name].mean() for name in names]
    scaled = [values / (np.abs(values).max() or 1.0) for values in centred]
    products = (scaled[x] * scaled[y] for x, y in zip(xs, ys, strict=True))
    terms = np.stack([*scaled, *(values**2 for values in scaled), *products]) if metrics else np.empty((0, 0))

    def resample(counts: Counts) -> Rows:
        weights = counts.astype(np.float64)
        means = terms @ weights / weights.sum(axis=0)
        first, square, product = np.split(means, [len(names), 2 * len(names)])
        spread = square - first**2
        # A resample of equal values leaves a spread of rounding error only, which is no spread.
        spread[spread <= SPREAD_OF_ROUNDING] = 0.0
        return _divide(product - first[xs] * first[ys], spread[xs] * spread[ys])

    return resample


def _swapper(metric: Correlation, baseline: Mapping[str, Column], candidate: Mapping[str, Column]) -> Swapper:
    gold = _standardised(baseline[metric.x], metric.kind)
    one, other = (_standardised(side[metric.y], metric.kind) for side in (baseline, candidate))
    # A side after the swap is middle -+ sign * half, so its sums are linear in the signs.
    middle, half = (one + other) / 2.0, (other - one) / 2.0
    terms = np.stack([half, 2.0 * middle * half, gold * half]) / len(gold)
    square, product = float((middle**2 + half**2).mean()), float((gold * middle).mean())

    def swap(signs: Rows) -> Rows:
        mean, squares, products = terms @ signs
        sides = []
        for side in (-1.0, 1.0):
            spread = square + side * squares - mean**2
            spread[spread <= SPREAD_OF_ROUNDING] = 0.0  # all values equal after the swap
            sides.append(_divide(product + side * products, spread))
        return np.asarray(sides[1] - sides[0])

    return swap


def _standardised(values: Column, kind: Kind) -> Column:
    """Mean 0 and variance 1, of the mid-ranks for Spearman."""
    if kind == "spearman":
        once = np.ones((len(values), 1), dtype=np.float32)
        values = _Sorted.of(values).ranks(once, once.sum(axis=0, dtype=np.float64))[0][:, 0].astype(np.float64)
    centred = values - values.mean()
    return np.asarray(centred / (np.sqrt((centred**2).mean()) or 1.0))


def _divide(covariance: Rows, spreads: Rows) -> Rows:
    out = np.full(covariance.shape, np.nan)
    return np.asarray(np.clip(np.divide(covariance, np.sqrt(spreads), out=out, where=spreads > 0.0), -1.0, 1.0))


class _Family:
    def names(self) -> tuple[str, ...]:
        return tuple(f"{similarity}_{kind}" for similarity in get_args(SimilarityName) for kind in get_args(Kind))

    def make(self, name: str) -> Correlation | None:
        if name not in self.names():
            return None
        similarity, kind = name.rsplit("_", 1)
        return Correlation(kind="spearman" if kind == "spearman" else "pearson", x="gold", y=similarity, name=name)


FAMILY = _Family()
