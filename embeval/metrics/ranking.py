"""Ranking metrics: ``ndcg``, ``map``, ``mrr``, ``recall``, ``precision``, ``success`` and ``judged``, each ``_at_k``.

``measure`` gives a value per query for arrays [queries, ranks]; the metric itself is the mean of these values.
All in [0, 1]. Equal to pytrec_eval (trec_eval 9.0.8) on the same run, ties included.

Under ``TieRule.AVERAGE`` each value is the mean over all orders of tied documents, in closed form.
Source: McSherry & Najork, ECIR 2008, sections 2.2 to 2.6; tests compare with enumeration of all orders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from embeval.core.ir import JudgedRuns, TieRule
from embeval.core.records import Column
from embeval.metrics._family import MeanOf

CUTOFFS = (1, 3, 5, 10, 20, 100, 1000)
"""The cut-offs that mteb 2.26 reports."""
VERSION = 1

Rows = npt.NDArray[np.float64]


class Gains(StrEnum):
    """What a grade is worth in nDCG."""

    LINEAR = "linear"
    """The grade itself. Source: trec_eval 9.0.8 ``ndcg_cut``; Järvelin & Kekäläinen, TOIS 2002."""
    EXP2 = "exp2"
    """2^grade - 1. Source: Burges et al., ICML 2005."""


class MapDenominator(StrEnum):
    """What average precision at k is divided by."""

    RELEVANT = "R"
    """All relevant documents. Source: trec_eval 9.0.8 ``map_cut``."""
    REACHABLE = "min(k,R)"
    """As many as fit into k. Source: sentence-transformers 6.2 InformationRetrievalEvaluator."""


@dataclass(frozen=True)
class Options:
    """Choices on which tools differ."""

    gains: Gains = Gains.LINEAR
    map_denominator: MapDenominator = MapDenominator.RELEVANT


def measure(runs: JudgedRuns, names: Iterable[str], options: Options = Options()) -> dict[str, Column]:
    """float64 [Q] per metric name, in the order of ``runs``. Raises ``KeyError`` for another family's name."""
    view = _View.of(runs, options)
    values = {}
    for name in names:
        measure_name, k = _parse(name)
        values[name] = MEASURES[measure_name](view, k)
    return values


@dataclass(frozen=True)
class _View:
    """What the measures compute on: expected values by rank, so that tied and untied runs read alike."""

    gains: Rows
    """[Q, K]: gain at each rank."""
    ideal_gains: Rows
    """[Q, J]: gains of all judged documents, greatest first."""
    relevant: Rows
    """[Q, K]: probability that the document at a rank is relevant; 0 or 1 without tie averaging."""
    judged: Rows
    """[Q, K]: probability that it is judged."""
    n_relevant: Rows
    """[Q]: relevant documents, retrieved or not."""
    first_relevant: Rows
    """[Q, K]: probability that the first relevant document stands at a rank."""
    precision_at_relevant: Rows
    """[Q, K]: expected (relevant at this rank) x (precision at this rank)."""
    options: Options

    @classmethod
    def of(cls, runs: JudgedRuns, options: Options) -> _View:
        gain = _gain(options.gains)
        gains, relevant = gain(runs.grades), (runs.grades > 0).astype(np.float64)
        judged = runs.judged.astype(np.float64)
        ranks = np.arange(1, runs.grades.shape[1] + 1)
        hits = np.cumsum(relevant, axis=1)
        first = relevant * (hits == 1)
        precision = relevant * hits / ranks
        if runs.ties == TieRule.AVERAGE:
            for row in np.flatnonzero(
                ((runs.scores[:, 1:] == runs.scores[:, :-1]) & runs.retrieved[:, 1:]).any(axis=1)
            ):
                _average_ties(
                    runs.scores[row],
                    runs.retrieved[row],
                    gains[row],
                    relevant[row],
                    judged[row],
                    first[row],
                    precision[row],
                )
        return cls(
            gains=gains,
            ideal_gains=gain(runs.ideal),
            relevant=relevant,
            judged=judged,
            n_relevant=runs.n_relevant.astype(np.float64),
            first_relevant=first,
            precision_at_relevant=precision,
            options=options,
        )


def _ndcg(view: _View, k: int) -> Column:
    """Discounted gain of the first k over that of the best possible order."""
    return _ratio(_discounted(view.gains, k), _discounted(view.ideal_gains, k))


def _map(view: _View, k: int) -> Column:
    """Mean of the precision at each relevant document among the first k."""
    denominator = view.n_relevant
    if view.options.map_denominator == MapDenominator.REACHABLE:
        denominator = np.minimum(denominator, k)
    return _ratio(view.precision_at_relevant[:, :k].sum(axis=1), denominator)


def _mrr(view: _View, k: int) -> Column:
    """1 / rank of the first relevant document, 0 if it is not among the first k."""
    return np.asarray((view.first_relevant[:, :k] / np.arange(1, view.gains[:, :k].shape[1] + 1)).sum(axis=1))


def _recall(view: _View, k: int) -> Column:
    """Share of the relevant documents that are among the first k."""
    return _ratio(view.relevant[:, :k].sum(axis=1), view.n_relevant)


def _precision(view: _View, k: int) -> Column:
    """Relevant documents among the first k, over k."""
    return np.asarray(view.relevant[:, :k].sum(axis=1) / k)


def _success(view: _View, k: int) -> Column:
    """1 if a relevant document is among the first k (hit rate), else 0."""
    return np.asarray(view.first_relevant[:, :k].sum(axis=1))


def _judged(view: _View, k: int) -> Column:
    """Judged documents among the first k, over k: how much of the list the qrels know. Source: ir-measures."""
    return np.asarray(view.judged[:, :k].sum(axis=1) / k)


MEASURES: dict[str, Callable[[_View, int], Column]] = {
    "ndcg": _ndcg,
    "map": _map,
    "mrr": _mrr,
    "recall": _recall,
    "precision": _precision,
    "success": _success,
    "judged": _judged,
}
"""Every measure by name; metrics are these names with ``_at_k``."""

_NAME = re.compile(rf"({'|'.join(MEASURES)})_at_([1-9][0-9]{{0,5}})")


def names(cutoffs: Iterable[int] = CUTOFFS) -> tuple[str, ...]:
    """Every measure at the given cut-offs."""
    ks = tuple(cutoffs)
    return tuple(f"{measure_name}_at_{k}" for measure_name in MEASURES for k in ks)


def cutoff(name: str) -> int:
    """The k of a metric name."""
    return _parse(name)[1]


def _parse(name: str) -> tuple[str, int]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise KeyError(name)
    return match[1], int(match[2])


def _gain(gains: Gains) -> Callable[[npt.NDArray[np.int64]], Rows]:
    if gains == Gains.LINEAR:
        return lambda grades: np.maximum(grades, 0).astype(np.float64)
    return lambda grades: np.exp2(np.maximum(grades, 0)) - 1.0


def _discounted(gains: Rows, k: int) -> Column:
    first = gains[:, :k]
    return np.asarray((first / np.log2(np.arange(2, first.shape[1] + 2))).sum(axis=1))


def _ratio(numerator: Column, denominator: Column) -> Column:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _average_ties(
    scores: npt.NDArray[np.float32],
    retrieved: npt.NDArray[np.bool_],
    gains: Column,
    relevant: Column,
    judged: Column,
    first: Column,
    precision: Column,
) -> None:
    """Replaces one query's values by rank with their means over all orders of tied documents, in place."""
    n = int(retrieved.sum())
    bounds = [*np.flatnonzero(np.append(True, scores[1:n] != scores[: n - 1])).tolist(), n]
    before = 0.0  # relevant documents above the group
    nothing_yet = 1.0  # probability that no relevant document stands above it: 1 or 0
    for start, stop in pairwise(bounds):
        group = slice(start, stop)
        m, r = stop - start, float(relevant[group].sum())
        place = np.arange(m)
        ranks = start + 1 + place
        # P(no relevant among the first j of the group) = C(m - r, j) / C(m, j), as a product of shares.
        none_before = np.concatenate([[1.0], np.cumprod(np.maximum(m - r - place, 0.0) / (m - place))])[:m]
        first[group] = nothing_yet * none_before * r / (m - place) * (none_before > 0)
        others = (r - 1.0) / (m - 1.0) if m > 1 else 0.0  # of the other places, the share that is relevant
        precision[group] = r / m * (before + 1.0 + place * others) / ranks
        for values in (gains, relevant, judged):
            values[group] = values[group].mean()
        before += r
        if r > 0:
            nothing_yet = 0.0


class _Family:
    def names(self) -> tuple[str, ...]:
        return names()

    def make(self, name: str) -> MeanOf | None:
        return MeanOf(name, version=VERSION) if _NAME.fullmatch(name) else None


FAMILY = _Family()
