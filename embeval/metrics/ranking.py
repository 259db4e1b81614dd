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
NOWHERE = 1_000_000_000
"""A rank beyond every cut-off."""

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
    """What the measures compute on: expected values by rank, so that tied and untied runs read alike.

    Documents that are not judged count nothing in any measure, so only ranks with a judged document are held, H per
    query. Under tie averaging these are all ranks.
    """

    ranks: npt.NDArray[np.int64]
    """[Q, H]: ranks from 1, increasing; ``NOWHERE`` after the last."""
    discounted: Rows
    """[Q, H]: discounted gain at each rank."""
    ideal: Rows
    """[Q, J]: discounted gain at ranks 1, 2, … of the best possible order."""
    relevant: Rows
    """[Q, H]: probability that the document at a rank is relevant; 0 or 1 without tie averaging."""
    judged: Rows
    """[Q, H]: probability that it is judged."""
    n_relevant: Rows
    """[Q]: relevant documents, retrieved or not."""
    first_relevant: Rows
    """[Q, H]: probability that the first relevant document stands at a rank."""
    precision_at_relevant: Rows
    """[Q, H]: expected (relevant at this rank) x (precision at this rank)."""
    options: Options

    @classmethod
    def of(cls, runs: JudgedRuns, options: Options) -> _View:
        gain = _gain(options.gains)
        averaged = runs.ties == TieRule.AVERAGE
        if averaged:
            ranks = np.broadcast_to(np.arange(1, runs.grades.shape[1] + 1), runs.grades.shape)
            grades, judged = runs.grades, runs.judged.astype(np.float64)
        else:
            ranks, grades = _judged_ranks(runs)
            judged = (ranks != NOWHERE).astype(np.float64)
        gains, relevant = gain(grades), (grades > 0).astype(np.float64)
        hits = np.cumsum(relevant, axis=1)
        first = relevant * (hits == 1)
        precision = relevant * hits / ranks
        if averaged:
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
        ideal = gain(runs.ideal)
        return cls(
            ranks=ranks,
            discounted=gains / np.log2(ranks + 1),
            ideal=ideal / np.log2(np.arange(2, ideal.shape[1] + 2)),
            relevant=relevant,
            judged=judged,
            n_relevant=runs.n_relevant.astype(np.float64),
            first_relevant=first,
            precision_at_relevant=precision,
            options=options,
        )

    def total(self, values: Rows, k: int) -> Column:
        """float64 [Q]: the sum of values [Q, H] over the first k ranks."""
        # The i-th judged document can't stand above rank i, so later ones than the k-th don't matter.
        return np.asarray(np.where(self.ranks[:, :k] <= k, values[:, :k], 0.0).sum(axis=1))


def _judged_ranks(runs: JudgedRuns) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """int64 [Q, H] ranks of judged documents, and their grades."""
    rows, columns = np.nonzero(runs.judged)
    lengths = np.bincount(rows, minlength=len(runs.judged))
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    shape = (len(runs.judged), int(lengths.max(initial=0)))
    ranks, grades = np.full(shape, NOWHERE, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    ranks[rows, places] = columns + 1
    grades[rows, places] = runs.grades[rows, columns]
    return ranks, grades


def _ndcg(view: _View, k: int) -> Column:
    """Discounted gain of the first k over that of the best possible order."""
    return _ratio(view.total(view.discounted, k), view.ideal[:, :k].sum(axis=1))


def _map(view: _View, k: int) -> Column:
    """Mean of the precision at each relevant document among the first k."""
    denominator = view.n_relevant
    if view.options.map_denominator == MapDenominator.REACHABLE:
        denominator = np.minimum(denominator, k)
    return _ratio(view.total(view.precision_at_relevant, k), denominator)


def _mrr(view: _View, k: int) -> Column:
    """1 / rank of the first relevant document, 0 if it is not among the first k."""
    return view.total(view.first_relevant / view.ranks, k)


def _recall(view: _View, k: int) -> Column:
    """Share of the relevant documents that are among the first k."""
    return _ratio(view.total(view.relevant, k), view.n_relevant)


def _precision(view: _View, k: int) -> Column:
    """Relevant documents among the first k, over k."""
    return view.total(view.relevant, k) / k


def _success(view: _View, k: int) -> Column:
    """1 if a relevant document is among the first k (hit rate), else 0."""
    return view.total(view.first_relevant, k)


def _judged(view: _View, k: int) -> Column:
    """Judged documents among the first k, over k: how much of the list the qrels know. Source: ir-measures."""
    return view.total(view.judged, k) / k


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
