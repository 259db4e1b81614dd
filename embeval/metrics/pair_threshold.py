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
all that a threshold needs. Neighbouring pairs that don't belong together are one step, since no threshold between them
is better than the one above them.
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
            found = {id(sweep): sweep.statistics(counts, wanted[id(sweep)]) for sweep in sweeps.values()}
            return np.stack(
                [
                    np.max([found[id(sweep_of[name, metric.parity])][metric.statistic] for name in metric.scores], 0)
                    for metric in metrics
                ]
            )

        return resample


class _Sweep:
    """All thresholds on one column, from the highest score down, in steps of equal scores."""

    def __init__(self, scores: Column, gold: npt.NDArray[np.bool_], parity: bool) -> None:
        self.parity = parity
        self.order = np.argsort(-scores, kind="stable")
        ordered, positive = scores[self.order], gold[self.order]
        tie = np.cumsum(np.append(True, np.diff(ordered) != 0.0)) - 1
        mixed = np.bincount(tie, positive) > 0.0  # of each group of equal scores: whether one belongs together
        new = np.append(True, mixed[1:] | mixed[:-1])
        if parity:  # a threshold that accepts none isn't tried, and so can't stand for one within the first step
            new[:] = True
        step = (np.cumsum(new) - 1)[tie]
        self.starts = np.flatnonzero(np.append(True, np.diff(step) != 0))
        self.positives = self.order[positive]
        self.positive_starts = np.flatnonzero(np.append(True, np.diff(step[positive]) != 0))
        self.gains = step[positive][self.positive_starts] if positive.any() else np.empty(0, dtype=np.intp)
        """Steps in which something belongs together; between them no statistic grows."""

    def statistics(self, counts: Counts, wanted: set[Statistic]) -> dict[Statistic, Rows]:
        """Statistic -> float64 [R]."""
        drawn = np.add.reduceat(np.take(counts, self.order, axis=0), self.starts, axis=0)
        accepted = np.cumsum(drawn, axis=0, dtype=np.float64)
        total = accepted[-1]
        hits = np.zeros((len(self.gains), counts.shape[1]))
        if len(self.gains):
            hits[:] = np.add.reduceat(np.take(counts, self.positives, axis=0), self.positive_starts, axis=0)
        right, reached = np.cumsum(hits, axis=0), accepted[self.gains]
        found: dict[Statistic, Rows] = {}
        if "accuracy" in wanted:
            found["accuracy"] = self._accuracy(hits, accepted)
        if "ap" in wanted:
            with np.errstate(invalid="ignore"):
                found["ap"] = np.einsum("ij,ij->j", hits, right / np.maximum(reached, 1.0)) / hits.sum(axis=0)
        if wanted - {"accuracy", "ap"}:
            found |= self._best_f1(right, reached, total)
        return found

    def _accuracy(self, hits: Rows, accepted: Rows) -> Rows:
        """Right are those that are accepted and belong together, and those that are neither."""
        total, others = accepted[-1], accepted[-1] - hits.sum(axis=0)
        if not self.parity:
            correct = 2.0 * np.cumsum(hits, axis=0) - accepted[self.gains]
            return np.asarray((correct.max(axis=0, initial=0.0) + others) / total)
        right = np.zeros_like(accepted)
        right[self.gains] = hits
        correct = 2.0 * np.cumsum(right, axis=0) - accepted
        correct[(accepted == total) | (accepted == 0.0)] = -np.inf
        return np.asarray((np.maximum(correct.max(axis=0), -others) + others) / total)  # what is never tried is 0

    def _best_f1(self, right: Rows, reached: Rows, total: Rows) -> dict[Statistic, Rows]:
        if not len(right):
            return dict.fromkeys(("f1", "precision", "recall"), np.full(right.shape[1], np.nan))
        with np.errstate(invalid="ignore", divide="ignore"):
            precision, recall = right / np.maximum(reached, 1.0), right / right[-1]
            if self.parity:
                f1 = 2.0 * precision * recall / (precision + recall)
                f1[(right == 0.0) | (reached == total)] = -1.0
            else:
                f1 = 2.0 * right / (reached + right[-1])  # one division, so that equal ones are equal to the bit
        best = np.argmax(f1, axis=0), np.arange(f1.shape[1])
        found: dict[Statistic, Rows] = {"f1": f1[best], "precision": precision[best], "recall": recall[best]}
        none = found["f1"] < 0.0
        for value in found.values():
            value[none] = 0.0
            value[right[-1] == 0.0] = np.nan
        return found


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
