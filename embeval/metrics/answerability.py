"""Whether the best score tells questions that the corpus answers from those that it doesn't.

Reads the columns ``top_score``, the score of the first hit, and ``answerable``, 1 or 0 (from 0.5 on: answerable).

- ``answerable_auroc``: probability that an answerable query has a higher top score than an unanswerable one, ties
  counted half; 0.5 is chance. Source: Hanley & McNeil, Radiology 1982; equal to scikit-learn's ``roc_auc_score``.
- ``threshold_at_recall_N``: the highest score that N % of the answerable queries reach. A setting, which is neither
  good nor bad; it is the threshold to use where a system shall refuse to answer.
- ``refusal_at_recall_N``: share of the unanswerable queries below that threshold.

Undefined (``one_class``) without queries of both kinds, and (``no_threshold``) where so many answerable queries have
no hit that no threshold keeps N % of them. Scores of reciprocal rank fusion say how well rankings agree and not how
well a document fits, so expect little of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from embeval.core.ir import NOTHING, Run
from embeval.core.protocols import Resampler, Undefined
from embeval.core.records import Column, ItemRecords

Kind = Literal["answerable_auroc", "threshold_at_recall", "refusal_at_recall"]

RECALLS = (90, 95, 99)
"""Per cent of the answerable queries to keep, for listings."""
NO_HIT = float(np.finfo(np.float32).min)
"""Top score of a query without any hit: below every other score, and still a number."""
VERSION = 1


def records(run: Run, answerable: Sequence[str], unanswerable: Sequence[str]) -> ItemRecords:
    """One row per query of both kinds, with the columns that these metrics read.

    The run has to hold the unanswerable queries too; a query that it doesn't hold counts as one without a hit.
    """
    ids = (*answerable, *unanswerable)
    return ItemRecords(
        unit="query",
        ids=ids,
        columns={
            "top_score": top_scores(run, ids),
            "answerable": np.repeat([1.0, 0.0], [len(answerable), len(unanswerable)]),
        },
    )


def top_scores(run: Run, query_ids: Sequence[str]) -> Column:
    """float64 [n]: score of the first hit of each query, ``NO_HIT`` where there is none."""
    rows = {query: row for row, query in enumerate(run.query_ids) if (run.docs[row, :1] != NOTHING).any()}
    return np.array([run.scores[rows[query], 0] if query in rows else NO_HIT for query in query_ids], dtype=np.float64)


@dataclass(frozen=True)
class Separation:
    """How well the top score separates answerable from unanswerable queries."""

    name: str
    kind: Kind
    recall: int = 0
    """Per cent of the answerable queries to keep, for the kinds with a threshold."""
    version: int = VERSION
    higher_is_better: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return ("top_score", "answerable")

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The metric over all queries."""
        answerable = columns["answerable"] >= 0.5
        if not len(answerable):
            return Undefined("too_few_items")
        if answerable.all() or not answerable.any():
            return Undefined("one_class")
        each_once = np.ones((len(answerable), 1), dtype=np.int64)
        value = float(self.resampler([self], columns)(each_once)[0, 0])
        return Undefined("no_threshold") if np.isnan(value) else value

    @staticmethod
    def resampler(metrics: Sequence[Separation], columns: Mapping[str, Column]) -> Resampler:
        """Each metric under resampling; queries are sorted once, and counts summed along that order."""
        order = np.argsort(columns["top_score"], kind="stable")
        is_answerable = columns["answerable"][order] >= 0.5
        answerable, unanswerable = order[is_answerable], order[~is_answerable]
        levels, others = columns["top_score"][answerable], columns["top_score"][unanswerable]
        lower, upper = np.searchsorted(others, levels, side="left"), np.searchsorted(others, levels, side="right")

        def resample(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            if not len(answerable) or not len(unanswerable):
                return np.full((len(metrics), counts.shape[1]), np.nan)
            drawn = counts[answerable]
            up_to = np.zeros((len(others) + 1, counts.shape[1]), dtype=np.int64)
            np.cumsum(counts[unanswerable], axis=0, out=up_to[1:])
            draws = _Draws(
                levels=levels,
                answerable=drawn,
                kept=drawn.sum(axis=0) - np.cumsum(drawn, axis=0) + drawn,
                below=up_to[lower],
                not_above=up_to[upper],
                n_unanswerable=up_to[-1],
            )
            return np.stack([_value(metric, draws) for metric in metrics])

        return resample


@dataclass(frozen=True)
class _Draws:
    """What R resamples drew, by the m answerable queries, lowest top score first."""

    levels: Column
    """[m]: their top scores."""
    answerable: npt.NDArray[np.int64]
    """[m, R]: how often each was drawn."""
    kept: npt.NDArray[np.int64]
    """[m, R]: those drawn from here on upwards."""
    below: npt.NDArray[np.int64]
    """[m, R]: unanswerable queries with a lower top score."""
    not_above: npt.NDArray[np.int64]
    """[m, R]: those with a lower or an equal one."""
    n_unanswerable: npt.NDArray[np.int64]
    """[R]"""


def _value(metric: Separation, draws: _Draws) -> Column:
    """float64 [R], NaN where undefined."""
    n_answerable = draws.kept[0]
    pairs = n_answerable * draws.n_unanswerable
    if metric.kind == "answerable_auroc":
        # Of every pair: 2 where the answerable query is above, 1 where they tie.
        half_wins = np.einsum("ij,ij->j", draws.answerable, draws.below + draws.not_above)
        return _divide(half_wins, 2 * pairs, pairs > 0)
    # Whole numbers, so that 95 % of 20 queries are 19 and never 20. Fewer and fewer are kept, and the lowest keeps all.
    highest = (100 * draws.kept >= metric.recall * n_answerable).sum(axis=0) - 1
    threshold = draws.levels[highest]
    defined = (pairs > 0) & (threshold > NO_HIT)
    if metric.kind == "threshold_at_recall":
        return np.where(defined, threshold, np.nan)
    refused = np.take_along_axis(draws.below, highest[None, :], axis=0)[0]
    return _divide(refused, draws.n_unanswerable, defined)


def _divide(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64], where: npt.NDArray[np.bool_]) -> Column:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=where))


_NAME = re.compile(r"(threshold_at_recall|refusal_at_recall)_([1-9][0-9]?|100)")


class _Family:
    def names(self) -> tuple[str, ...]:
        return (
            "answerable_auroc",
            *(f"refusal_at_recall_{recall}" for recall in RECALLS),
            *(f"threshold_at_recall_{recall}" for recall in RECALLS),
        )

    def make(self, name: str) -> Separation | None:
        if name == "answerable_auroc":
            return Separation(name, "answerable_auroc")
        if (match := _NAME.fullmatch(name)) is None:
            return None
        kind: Kind = "refusal_at_recall" if match[1] == "refusal_at_recall" else "threshold_at_recall"
        return Separation(name, kind, int(match[2]))


FAMILY = _Family()
