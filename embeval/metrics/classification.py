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

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Resampler, Swapper, Undefined
from embeval.core.records import Column
from embeval.metrics import _fits
from embeval.metrics._family import MeanOf

VERSION = 1
GOLD, PREDICTED, FOLD = "gold", _fits.PREDICTED, "fold"
ACCURACY = "accuracy"
BINARY = ("ap", "ap_weighted")
"""Measures for two labels."""
KINDS = ("f1", "f1_weighted", "precision", "precision_weighted", "recall", "recall_weighted", *BINARY)
"""Measures that are a mean over classifiers."""

Codes = npt.NDArray[np.intp]
Rows = npt.NDArray[np.float64]
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


class _Sums:
    """Sums of rows [n, R] over groups, for groups given as numbers [n]: those that no row has are 0."""

    def __init__(self, groups: Codes, n_groups: int) -> None:
        self._order = np.argsort(groups, kind="stable")
        self._present, self._starts = np.unique(groups[self._order], return_index=True)
        self._n_groups = n_groups

    def __call__(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        sums = np.zeros((self._n_groups, rows.shape[1]), dtype=rows.dtype)
        if len(self._order):
            sums[self._present] = np.add.reduceat(np.take(rows, self._order, axis=0), self._starts, axis=0)
        return sums


@dataclass(frozen=True)
class _Confusion:
    """How often each label was predicted for each gold label by one classifier, on R resamples."""

    right: Rows
    """[K, R]: texts of each label that were predicted to have it."""
    gold: Rows
    """[K, R]: texts of each label."""
    predicted: Rows
    """[K, R]: texts predicted to have it."""
    positive: Rows
    """[K, R]: of these, texts of the larger of two labels."""


class _Classifier:
    """One classifier's predictions, as cells of its confusion matrix."""

    def __init__(self, gold: Codes, predicted: Codes, n_labels: int, positive: int) -> None:
        cells, of_row = np.unique(gold * n_labels + predicted, return_inverse=True)
        cell_gold, cell_predicted = np.divmod(cells, n_labels)
        self._cells = _Sums(of_row, len(cells))
        self._gold, self._predicted = _Sums(cell_gold, n_labels), _Sums(cell_predicted, n_labels)
        self._right = (cell_gold == cell_predicted)[:, None]
        self._positive = (cell_gold == positive)[:, None]

    def confusion(self, counts: npt.NDArray[np.int64]) -> _Confusion:
        cells = self._cells(counts)
        sums = (
            self._predicted(cells * self._right),
            self._gold(cells),
            self._predicted(cells),
            self._predicted(cells * self._positive),
        )
        return _Confusion(*(each.astype(np.float64) for each in sums))


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
        of_text = of_text.ravel()
        gold, n = patterns[0], len(labels)
        positive = np.unique(gold)[-1] if len(gold) else 0
        self._patterns = _Sums(of_text, patterns.shape[1])
        self._classifiers: list[tuple[slice | Codes, _Classifier]]
        if folds:
            members = [np.flatnonzero(patterns[-1] == fold) for fold in np.unique(patterns[-1])]
            self._classifiers = [(rows, _Classifier(gold[rows], patterns[1, rows], n, positive)) for rows in members]
        else:
            self._classifiers = [(slice(None), _Classifier(gold, each, n, positive)) for each in patterns[1:]]
        self._binary = len(np.unique(gold)) == 2

    def means(self, counts: npt.NDArray[np.int64], kinds: set[str]) -> dict[str, Rows]:
        """Measure -> its mean over the classifiers, float64 [R]; a fold in which it is undefined has no part in it."""
        patterns = self._patterns(counts)
        values: dict[str, list[Rows]] = {kind: [] for kind in kinds}
        for rows, classifier in self._classifiers:
            confusion = classifier.confusion(patterns[rows])
            for kind, of_classifiers in values.items():
                if kind in BINARY and not self._binary:
                    of_classifiers.append(np.full(counts.shape[1], np.nan))
                else:
                    of_classifiers.append(MEASURES[kind](confusion))
        return {kind: _mean(np.stack(each)) for kind, each in values.items()}


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
    return _ratio(table.right.sum(axis=0), table.gold.sum(axis=0), np.nan)


def _macro(of_labels: Callable[[_Confusion], Rows]) -> Callable[[_Confusion], Rows]:
    def mean(table: _Confusion) -> Rows:
        there = (table.gold + table.predicted > 0.0).sum(axis=0).astype(np.float64)
        return _ratio(of_labels(table).sum(axis=0), there, np.nan)  # of a label that isn't there it is 0

    return mean


def _weighted(of_labels: Callable[[_Confusion], Rows]) -> Callable[[_Confusion], Rows]:
    def mean(table: _Confusion) -> Rows:
        return _ratio((of_labels(table) * table.gold).sum(axis=0), table.gold.sum(axis=0), np.nan)

    return mean


def _average_precision(table: _Confusion) -> Rows:
    """The precision among texts predicted to be at least as large, at each step of recall; NaN for one label."""
    found = table.positive[::-1]
    precision = _ratio(found.cumsum(axis=0), table.predicted[::-1].cumsum(axis=0))
    positives, texts = found.sum(axis=0), table.gold.sum(axis=0)
    two = (positives > 0.0) & (positives < texts)
    return _ratio((precision * found).sum(axis=0), np.where(two, positives, 0.0), np.nan)


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
"""Measure -> what gives it for one classifier, float64 [R]; NaN where undefined."""


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
