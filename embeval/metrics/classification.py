"""Classification: ``accuracy``, and F1, precision, recall and average precision as the mean over fitted classifiers.

``accuracy`` is the mean of its own column, the share of classifiers that are right about a text. The others read
``gold`` and ``predicted_0`` … ``predicted_9``: codes of labels, where larger codes are larger labels. Names without a
suffix are macro averages over the labels that gold or the classifier has, those with ``_weighted`` are weighted by
gold. ``ap`` takes the predicted label as the score of the larger of two labels, and is undefined for more labels.

``f1_over_5_fits`` is the same over five classifiers. ``f1_over_5_folds`` is the mean over five folds: each text was
predicted once (``predicted``), by a classifier fitted without the texts of its ``fold``.

Source: sklearn.metrics ``f1_score``, ``precision_score``, ``recall_score`` and ``average_precision_score`` with
``zero_division=0``, averaged as mteb 2.26 averages them (tests/unit/metrics, tests/unit/mteb_bridge).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Resampler, Swapper, Undefined
from embeval.core.records import Column
from embeval.metrics import _fits
from embeval.metrics._family import MeanOf
from embeval.metrics._sums import EXACT

VERSION = 1
GOLD, PREDICTED, FOLD = "gold", _fits.PREDICTED, "fold"
ACCURACY = "accuracy"
BINARY = ("ap", "ap_weighted")
"""Measures for two labels."""
KINDS = ("f1", "f1_weighted", "precision", "precision_weighted", "recall", "recall_weighted", *BINARY)
"""Measures that are a mean over classifiers."""

PIECE = 2048
"""Rows added up at a time, so that their values stay in the processor's cache."""

Codes = npt.NDArray[np.intp]
Rows = npt.NDArray[np.float64]
Sums = npt.NDArray[np.floating]
"""Whole numbers."""
_FOLDS = re.compile(r"(\w+)_over_([2-9]|[1-9]\d)_folds")


@dataclass(frozen=True)
class OfClassifiers:
    """The mean of a measure over classifiers."""

    kind: str
    name: str
    columns: tuple[str, ...]
    folds: int | None = None
    """Number of folds; None: every classifier predicted every text."""
    version: int = VERSION
    higher_is_better: bool = True

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The mean in [0, 1]; undefined for no items, and ``ap`` for other than two labels."""
        gold = columns[GOLD]
        if not len(gold):
            return Undefined("too_few_items")
        if self.kind in BINARY and len(np.unique(gold)) != 2:
            return Undefined("not_two_labels")
        if self.folds is not None and columns[FOLD].max() >= self.folds:
            return Undefined("more_folds")
        value = float(self.resampler([self], columns)(np.ones((len(gold), 1), dtype=np.int64))[0, 0])
        return Undefined("not_two_labels") if np.isnan(value) else value  # not even in one fold

    @staticmethod
    def resampler(metrics: Sequence[OfClassifiers], columns: Mapping[str, Column]) -> Resampler:
        """Each mean under resampling, from sums of counts over the cells of each classifier's confusion matrix."""
        tables = {read: _Table(read, columns) for read in dict.fromkeys(metric.columns for metric in metrics)}

        def resample(counts: npt.NDArray[np.int64]) -> Rows:
            measured = {
                read: table.means(counts, {metric.kind for metric in metrics if metric.columns == read})
                for read, table in tables.items()
            }
            return np.stack([measured[metric.columns][metric.kind] for metric in metrics])

        return resample

    @staticmethod
    def swapper(
        metrics: Sequence[OfClassifiers], baseline: Mapping[str, Column], candidate: Mapping[str, Column]
    ) -> Swapper:
        """Differences where texts change places with all that was predicted for them."""
        return _fits.swapper(OfClassifiers.resampler, metrics, baseline, candidate)


@dataclass(frozen=True)
class _Confusion:
    """How often each of F classifiers predicted each of K labels for each gold label, on R resamples."""

    right: Rows
    """[F, K, R]: texts of each label that were predicted to have it."""
    gold: Rows
    """[F, K, R]: texts of each label."""
    predicted: Rows
    """[F, K, R]: texts predicted to have it."""
    positive: Rows
    """[F, K, R]: of these, texts of the larger of two labels."""


class _Table:
    """What classifiers predicted for n texts."""

    def __init__(self, read: Sequence[str], columns: Mapping[str, Column]) -> None:
        predicted = [name for name in read if name not in (GOLD, FOLD)]
        labels = np.unique(np.concatenate([columns[name] for name in (GOLD, *predicted)]))
        rows = np.stack([np.searchsorted(labels, columns[name]) for name in (GOLD, *predicted)])
        if folds := FOLD in read:
            rows = np.concatenate([rows, np.unique(columns[FOLD], return_inverse=True)[1][None]])
        # Texts with the same label and predictions count as one: of two labels there are few such patterns.
        patterns, of_text = np.unique(rows, axis=1, return_inverse=True)
        n_texts, n_patterns = rows.shape[1], patterns.shape[1]
        self._patterns: Callable[[Sums], Sums] | None = None
        if n_patterns <= n_texts // 2:
            self._patterns = _sums(np.arange(n_texts), of_text.ravel(), n_patterns)
        else:  # adding up what has few equals takes longer than it saves
            patterns, n_patterns = rows, n_texts
        everything = np.arange(n_patterns)
        if folds:
            pattern, classifier, guess = everything, patterns[-1], patterns[1]
        else:
            pattern, guess = np.tile(everything, len(predicted)), patterns[1:].ravel()
            classifier = np.repeat(np.arange(len(predicted)), n_patterns)
        gold, n = patterns[0][pattern], len(labels)
        self._shape = int(classifier.max(initial=-1)) + 1, n
        cells, of_pattern = np.unique((classifier * n + gold) * n + guess, return_inverse=True)
        self._cells = _sums(pattern, of_pattern.ravel(), len(cells))
        of_gold, cell_guess = np.divmod(cells, n)
        of_guess, cell_gold = of_gold // n * n + cell_guess, of_gold % n
        n_lines, each = self._shape[0] * n, np.arange(len(cells))
        self._gold, self._predicted = _sums(each, of_gold, n_lines), _sums(each, of_guess, n_lines)
        present = np.unique(gold)
        self._binary = len(present) == 2
        # Of each guess there is one cell that is right, and one of the larger label.
        self._of_guess, self._right = of_guess, np.flatnonzero(cell_gold == cell_guess)
        self._positive = np.flatnonzero(cell_gold == present[-1]) if self._binary else each[:0]

    def means(self, counts: npt.NDArray[np.int64], kinds: set[str]) -> dict[str, Rows]:
        """Measure -> its mean over the classifiers, float64 [R]; a fold in which it is undefined has no part in it."""
        undefined = {kind for kind in kinds if kind in BINARY and not self._binary}
        confusion = self._confusion(counts)
        values = {measure: _mean(measure(confusion)) for measure in {MEASURES[kind] for kind in kinds - undefined}}
        nowhere = np.full(counts.shape[1], np.nan)
        return {kind: nowhere if kind in undefined else values[MEASURES[kind]] for kind in kinds}

    def _confusion(self, counts: npt.NDArray[np.int64]) -> _Confusion:
        drawn: Sums = counts.astype(np.float32) if len(counts) < EXACT else counts.astype(np.float64)
        cells = self._cells(drawn if self._patterns is None else self._patterns(drawn))
        shape = (*self._shape, counts.shape[1])
        chosen = []
        for places in (self._right, self._positive):
            lines = np.zeros((shape[0] * shape[1], shape[2]), dtype=cells.dtype)
            lines[self._of_guess[places]] = cells[places]
            chosen.append(lines)
        right, positive = chosen
        sums = right, self._gold(cells), self._predicted(cells), positive
        return _Confusion(*(each.reshape(shape).astype(np.float64) for each in sums))


def _sums(rows: Codes, groups: Codes, n_groups: int) -> Callable[[Sums], Sums]:
    """Values [n, R] to sums [n_groups, R]: the i-th of ``rows`` adds to the i-th of ``groups``; of no rows it is 0."""
    order = np.argsort(groups, kind="stable")
    present, starts = np.unique(groups[order], return_index=True)
    cuts = np.unique([0, *np.searchsorted(starts, np.arange(PIECE, len(order), PIECE)), len(starts)])
    ends = np.append(starts, len(order))
    pieces = [
        (present[first:end], rows[order[ends[first] : ends[end]]], starts[first:end] - starts[first])
        for first, end in pairwise(cuts)
    ]

    def add(values: Sums) -> Sums:
        sums = np.zeros((n_groups, values.shape[1]), dtype=values.dtype)
        for some, taken, of_piece in pieces:
            sums[some] = np.add.reduceat(np.take(values, taken, axis=0), of_piece, axis=0)
        return sums

    return add


def _mean(values: Rows) -> Rows:
    """[R]: the mean over the first axis of those that are defined; NaN where none is."""
    defined = ~np.isnan(values)
    return _ratio(np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0).astype(np.float64), np.nan)


def _ratio(above: Rows, below: Rows, otherwise: float = 0.0) -> Rows:
    return np.asarray(np.divide(above, below, out=np.full(above.shape, otherwise), where=below > 0.0))


def _f1(table: _Confusion) -> Rows:
    return _ratio(2.0 * table.right, table.gold + table.predicted)


def _precision(table: _Confusion) -> Rows:
    return _ratio(table.right, table.predicted)


def _recall(table: _Confusion) -> Rows:
    return _ratio(table.right, table.gold)


def _accuracy(table: _Confusion) -> Rows:
    return _ratio(table.right.sum(axis=1), table.gold.sum(axis=1), np.nan)


def _macro(of_labels: Callable[[_Confusion], Rows]) -> Callable[[_Confusion], Rows]:
    def mean(table: _Confusion) -> Rows:
        there = (table.gold + table.predicted > 0.0).sum(axis=1).astype(np.float64)
        return _ratio(of_labels(table).sum(axis=1), there, np.nan)  # of a label that isn't there it is 0

    return mean


def _weighted(of_labels: Callable[[_Confusion], Rows]) -> Callable[[_Confusion], Rows]:
    def mean(table: _Confusion) -> Rows:
        return _ratio((of_labels(table) * table.gold).sum(axis=1), table.gold.sum(axis=1), np.nan)

    return mean


def _average_precision(table: _Confusion) -> Rows:
    """The precision among texts predicted to be at least as large, at each step of recall; NaN for one label."""
    found = table.positive[:, ::-1]
    precision = _ratio(found.cumsum(axis=1), table.predicted[:, ::-1].cumsum(axis=1))
    positives, texts = found.sum(axis=1), table.gold.sum(axis=1)
    two = (positives > 0.0) & (positives < texts)
    return _ratio((precision * found).sum(axis=1), np.where(two, positives, 0.0), np.nan)


MEASURES: Mapping[str, Callable[[_Confusion], Rows]] = {
    ACCURACY: _accuracy,
    "f1": _macro(_f1),
    "f1_weighted": _weighted(_f1),
    "precision": _macro(_precision),
    "precision_weighted": _weighted(_precision),
    "recall": _macro(_recall),
    "recall_weighted": _weighted(_recall),
    "ap": _average_precision,
    "ap_weighted": _average_precision,  # sklearn has but one average for two labels
}
"""Measure -> what gives it for F classifiers, of each, float64 [F, R]; NaN where undefined."""


def over_folds(kind: str, folds: int) -> str:
    """The name of the mean of a measure over so many folds."""
    return f"{kind}_over_{folds}_folds"


class _Family:
    def names(self) -> tuple[str, ...]:
        return (ACCURACY, *KINDS, _fits.name("f1", 5), over_folds(ACCURACY, 5), over_folds("f1", 5))

    def make(self, name: str) -> Metric | None:
        if name == ACCURACY:
            return MeanOf(name, version=VERSION)
        if (found := _fits.parse(name, KINDS)) is not None:
            kind, fits = found
            return OfClassifiers(kind, name, (GOLD, *_fits.columns(fits)))
        folds = _FOLDS.fullmatch(name)
        if folds is None or folds[1] not in (ACCURACY, *KINDS):
            return None
        return OfClassifiers(folds[1], name, (GOLD, PREDICTED, FOLD), folds=int(folds[2]))


FAMILY = _Family()
