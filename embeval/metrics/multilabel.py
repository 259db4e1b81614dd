"""Classification with several labels per text: ``lrap``, ``hamming`` and ``multilabel_f1``.

``lrap`` (label ranking average precision) and ``hamming`` (labels that gold and classifier share, of those that either
has) are means of their own columns, a text's value averaged over the classifiers; so is ``accuracy``, the share of
classifiers with exactly the gold labels. ``multilabel_f1`` reads ``gold_bits`` and ``predicted_bits_0`` …
``predicted_bits_9``: the labels of a text as the binary digits of a number, of at most 52 labels. It is mteb's ``f1``:
macro over the labels, averaged over classifiers; labels that neither gold nor the classifier has stay out.

Source: sklearn.metrics ``label_ranking_average_precision_score`` and ``f1_score`` with ``zero_division=0``, mteb 2.26
``hamming_score`` (tests/unit/metrics, tests/unit/mteb_bridge).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Resampler, Swapper, Undefined
from embeval.core.records import Column
from embeval.metrics import _fits
from embeval.metrics._family import MeanOf

VERSION = 1
MEANS = ("lrap", "hamming")
F1 = "multilabel_f1"
GOLD = "gold_bits"
PREDICTED = "predicted_bits"
MAX_LABELS = 52
"""Labels whose bits a float64 holds exactly."""

Counts = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float64]


def to_bits(labels: npt.NDArray[np.bool_]) -> Column:
    """float64 [n]: the labels bool [n, L] of each text as one number. L is at most ``MAX_LABELS``."""
    return np.asarray(labels.astype(np.float64) @ 2.0 ** np.arange(labels.shape[1]))


def from_bits(bits: Column, n_labels: int) -> npt.NDArray[np.bool_]:
    """bool [n_labels, n]: which texts have each label."""
    return np.asarray((bits.astype(np.int64) >> np.arange(n_labels)[:, None] & 1) == 1)


@dataclass(frozen=True)
class MultilabelF1:
    """The mean over classifiers of macro F1 over labels."""

    name: str
    columns: tuple[str, ...]
    version: int = VERSION
    higher_is_better: bool = True

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The mean in [0, 1]; undefined for no items, and where neither gold nor a classifier has any label."""
        n = len(columns[GOLD])
        if not n:
            return Undefined("too_few_items")
        value = float(self.resampler([self], columns)(np.ones((n, 1), dtype=np.int64))[0, 0])
        return Undefined("no_labels") if np.isnan(value) else value

    @staticmethod
    def resampler(metrics: Sequence[MultilabelF1], columns: Mapping[str, Column]) -> Resampler:
        """Each mean under resampling, from counts of texts that have a label, in one matrix product."""
        names = list(dict.fromkeys(name for metric in metrics for name in metric.columns if name != GOLD))
        places = [[names.index(name) for name in metric.columns if name != GOLD] for metric in metrics]
        largest = max(float(columns[name].max(initial=0.0)) for name in (GOLD, *names))
        n_labels = int(largest).bit_length()
        gold = from_bits(columns[GOLD], n_labels)
        predicted = [from_bits(columns[name], n_labels) for name in names]
        # Whole numbers far below 2^24, which float32 holds exactly.
        marks = np.concatenate([gold, *predicted, *(each & gold for each in predicted)]).astype(np.float32)

        def resample(counts: Counts) -> Rows:
            sums = (marks @ counts.astype(np.float32)).astype(np.float64)
            of_gold, *others = sums.reshape(1 + 2 * len(names), n_labels, -1)
            values = [
                _macro_f1(of_gold, of_predicted, right)
                for of_predicted, right in zip(others[: len(names)], others[len(names) :], strict=True)
            ]
            return np.stack([np.mean([values[row] for row in rows], axis=0) for rows in places])

        return resample

    @staticmethod
    def swapper(
        metrics: Sequence[MultilabelF1], baseline: Mapping[str, Column], candidate: Mapping[str, Column]
    ) -> Swapper:
        """Differences where texts change places with all that was predicted for them."""
        return _fits.swapper(MultilabelF1.resampler, metrics, baseline, candidate)


def _macro_f1(gold: Rows, predicted: Rows, right: Rows) -> Rows:
    """[R]: the mean over labels of F1, from texts [L, R] that have each label; NaN where there is no label."""
    both = gold + predicted
    scores = np.divide(2.0 * right, both, out=np.zeros(both.shape), where=both > 0.0)
    there = (both > 0.0).sum(axis=0)
    return np.asarray(np.divide(scores.sum(axis=0), there, out=np.full(len(there), np.nan), where=there > 0))


class _Family:
    def names(self) -> tuple[str, ...]:
        return (*MEANS, F1, _fits.name(F1, 5))

    def make(self, name: str) -> Metric | None:
        if name in MEANS:
            return MeanOf(name, version=VERSION)
        if (found := _fits.parse(name, (F1,))) is None:
            return None
        return MultilabelF1(name, (GOLD, *_fits.columns(found[1], PREDICTED)))


FAMILY = _Family()
