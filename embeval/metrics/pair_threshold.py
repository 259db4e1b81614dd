"""Pair classification: how well a threshold on a similarity tells pairs that belong together from those that don't.

``<similarity>_<statistic>`` with ``similarity`` (the model's own), ``cosine``, ``dot``, ``euclidean`` or
``manhattan``, and ``max_<statistic>``, the largest over these. Statistics: ``ap`` (average precision), ``accuracy`` at
the threshold that makes it largest, and ``f1``, ``precision`` and ``recall`` at the threshold with the largest F1.

Reads the columns ``gold`` (1 for a pair that belongs together, 0 for one that doesn't) and those of the similarities.
A threshold accepts all pairs of one score or none of them; that it accepts every pair is tried too, and for accuracy
that it accepts none. Of several thresholds with the largest F1 the highest counts. Undefined where no pair belongs
together, but for accuracy.

``mteb_…`` is what mteb 2.26 computes from its own scores (columns ``mteb_<similarity>``): it tries no threshold that
accepts every pair, nor one that accepts none, so that the best one is missed where it is one of these, and where all
scores are equal it gives 0.

Source: scikit-learn ``average_precision_score``, to which ap is equal, and mteb's ``AbsTaskPairClassification``
(tests/unit/metrics). A resample is a vector of counts, and items are sorted once: sums of counts along that order are
all that a threshold needs. None is best right below a pair that doesn't belong to its like, so these are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import PARITY_PREFIX, Resampler, Undefined
from embeval.core.records import Column
from embeval.core.specs import SimilarityName
from embeval.metrics._sums import Whole, cumulated

Statistic = Literal["ap", "accuracy", "f1", "precision", "recall"]
Rows = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

OWN = "similarity"
"""Column with the similarity by which the model means its vectors to be compared."""
SIMILARITIES: tuple[str, ...] = (OWN, *get_args(SimilarityName))
MAX = "max"
GOLD = "gold"
POSITIVE = 0.5
"""Gold above it belongs together."""
VERSION = 1


@dataclass(frozen=True)
class Threshold:
    """One statistic of one similarity, or the largest over several."""

    name: str
    statistic: Statistic
    scores: tuple[str, ...]
    """Columns of similarities."""
    parity: bool = False
    """Whether thresholds are those that mteb tries."""
    version: int = VERSION
    higher_is_better: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (GOLD, *self.scores)

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The statistic in [0, 1]; undefined for no items, and where no pair belongs together."""
        n = len(columns[GOLD])
        if not n:
            return Undefined("too_few_items")
        value = float(self.resampler([self], columns)(np.ones((n, 1), dtype=np.int64))[0, 0])
        return Undefined("no_positive_pairs") if np.isnan(value) else value

    @staticmethod
    def resampler(metrics: Sequence[Threshold], columns: Mapping[str, Column]) -> Resampler:
        """Each statistic under resampling; NaN where undefined. Metrics of one column share one sweep over it."""
        gold = columns[GOLD] > POSITIVE
        sweeps: dict[tuple[bytes, bool], _Sweep] = {}  # the model's own similarity is another one's column again
        sweep_of: dict[tuple[str, bool], _Sweep] = {}
        wanted: dict[int, set[Statistic]] = {}
        for metric in metrics:
            for name in metric.scores:
                if (name, metric.parity) not in sweep_of:
                    key = columns[name].tobytes(), metric.parity
                    if key not in sweeps:
                        sweeps[key] = _Sweep(columns[name], gold, metric.parity)
                    sweep_of[name, metric.parity] = sweeps[key]
                sweep = sweep_of[name, metric.parity]
                wanted.setdefault(id(sweep), set()).add(metric.statistic)

        def resample(counts: Counts) -> Rows:
            narrow = counts.astype(np.float32)
            found = {id(sweep): sweep.statistics(narrow, wanted[id(sweep)]) for sweep in sweeps.values()}
            return np.stack(
                [
                    np.max([found[id(sweep_of[name, metric.parity])][metric.statistic] for name in metric.scores], 0)
                    for metric in metrics
                ]
            )

        return resample


class _Sweep:
    """Thresholds on one column, from the highest score down; equal scores are accepted together."""

    def __init__(self, scores: Column, gold: npt.NDArray[np.bool_], parity: bool) -> None:
        self.parity = parity
        self.order = np.argsort(-scores, kind="stable")
        positive = gold[self.order]
        self.positives = self.order[positive]
        ends = np.flatnonzero(np.append(np.diff(scores[self.order]) != 0.0, True))
        found = np.cumsum(positive)[ends]
        if not parity:  # where none is found that belongs together, the threshold before was at least as good
            gains = np.diff(found, prepend=0) > 0
            ends, found = ends[gains], found[gains]
        self.ends = ends
        """[T]: of each threshold, the last item that it accepts."""
        self.found = found
        """[T]: how many items that belong together it accepts."""

    def statistics(self, counts: Whole, wanted: set[Statistic]) -> dict[Statistic, Rows]:
        """Statistic -> float64 [R] for counts [n, R]."""
        accepted = cumulated(np.take(counts, self.order, axis=0))
        total, accepted = accepted[-1], accepted[self.ends]
        right, positives = np.zeros_like(accepted), np.zeros_like(total)
        if len(self.positives):
            among = cumulated(np.take(counts, self.positives, axis=0))
            right, positives = among[self.found - 1], among[-1]
            right[self.found == 0] = 0.0
        found: dict[Statistic, Rows] = {}
        if "accuracy" in wanted:
            found["accuracy"] = self._accuracy(right, accepted, total, total - positives)
        if wanted - {"accuracy"} and not len(self.positives):
            return found | dict.fromkeys(wanted - {"accuracy"}, np.full(counts.shape[1], np.nan))
        wide = right.astype(np.float64), accepted.astype(np.float64), positives.astype(np.float64)
        if "ap" in wanted:
            found["ap"] = _average_precision(*wide)
        if wanted - {"accuracy", "ap"}:
            found |= self._best_f1(*wide, total)
        return found

    def _accuracy(self, right: Whole, accepted: Whole, total: Whole, others: Whole) -> Rows:
        """Right are those that are accepted and belong together, and those that are neither."""
        correct = 2.0 * right - accepted
        least: Whole | float = 0.0
        if self.parity:
            correct[(accepted == total) | (accepted == 0.0)] = -np.inf
            least = -others  # where none is tried it is 0
        best = np.maximum(correct.max(axis=0, initial=-np.inf), least) + others
        return np.asarray(best.astype(np.float64) / total.astype(np.float64))

    def _best_f1(self, right: Rows, accepted: Rows, positives: Rows, total: Whole) -> dict[Statistic, Rows]:
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.parity:
                precision, recall = right / np.maximum(accepted, 1.0), right / positives
                f1 = 2.0 * precision * recall / (precision + recall)
                f1[(right == 0.0) | (accepted == total)] = 0.0
            else:
                f1 = 2.0 * right / (accepted + positives)  # one division, so that equal ones are equal to the bit
            best = np.argmax(f1, axis=0), np.arange(f1.shape[1])
            none = f1[best] == 0.0
            found: dict[Statistic, Rows] = {
                "f1": f1[best],
                "precision": np.where(none, 0.0, right[best] / accepted[best]),
                "recall": np.where(none, 0.0, right[best] / positives),
            }
        for value in found.values():
            value[positives == 0.0] = np.nan
        return found


def _average_precision(right: Rows, accepted: Rows, positives: Rows) -> Rows:
    with np.errstate(invalid="ignore"):
        gained = np.diff(right, axis=0, prepend=0.0)
        return np.asarray(np.einsum("ij,ij->j", gained, right / np.maximum(accepted, 1.0)) / positives)


class _Family:
    def names(self) -> tuple[str, ...]:
        ours = [f"{score}_{statistic}" for score in (MAX, *SIMILARITIES) for statistic in get_args(Statistic)]
        return (*ours, *(PARITY_PREFIX + name for name in ours))

    def make(self, name: str) -> Threshold | None:
        if name not in self.names():
            return None
        parity = name.startswith(PARITY_PREFIX)
        score, chosen = name.removeprefix(PARITY_PREFIX).rsplit("_", 1)
        statistic = next(each for each in get_args(Statistic) if each == chosen)
        # The model's own similarity is one of the others, so the largest is theirs; to mteb it differs by rounding.
        scores = (SIMILARITIES if parity else SIMILARITIES[1:]) if score == MAX else (score,)
        prefix = PARITY_PREFIX if parity else ""
        return Threshold(name, statistic, tuple(prefix + each for each in scores), parity)


FAMILY = _Family()
