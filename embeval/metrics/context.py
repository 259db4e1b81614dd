"""What goes into a prompt: ``context_precision``, ``context_recall`` and ``context_ap``, ``_at_k`` or ``_at_N_tokens``.

The prompt holds the first k passages of a ranking, or as many as fit into N tokens: passages are taken by rank, and
the first one that doesn't fit ends the prompt, though a shorter one further down might. ``measure`` gives a value
per query, in [0, 1]; the metric is the mean of these values. Passages with a grade above 0 are relevant.

- precision: relevant passages over passages in the prompt, 0 for an empty prompt. ``precision_at_k`` divides by k
  instead, and so counts the places that a short ranking leaves empty as wrong; a prompt has no empty places.
- recall: relevant passages in the prompt over all relevant ones. By count it is ``recall_at_k``.
- ap: mean of the precision at each relevant passage of the prompt, 0 without any, so that a prompt is better where
  these come first. Source: Ragas 0.1 to 0.4, "context precision", with judgments in place of a model's verdicts.

A prompt has one order, so ties are not averaged: under ``TieRule.AVERAGE`` passages are taken in the run's order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from embeval.core.ir import NOTHING, IntRows, JudgedRuns, Run
from embeval.core.records import Column
from embeval.metrics._family import MeanOf

CUTOFFS = (1, 3, 5, 10, 20)
"""Passages in a prompt, for listings."""
BUDGETS = (1000, 2000, 4000, 8000)
"""Tokens in a prompt, for listings."""
VERSION = 1

Mask = npt.NDArray[np.bool_]
Tokens = npt.NDArray[np.int64]


def measure(
    judged: JudgedRuns, names: Iterable[str], *, docs: IntRows | None = None, tokens: Tokens | None = None
) -> dict[str, Column]:
    """float64 [Q] per metric name, in the order of ``judged``. Raises ``KeyError`` for another family's name.

    Names with a budget need ``docs`` int32 [Q, K], the document at each rank (``docs_of``), and ``tokens``
    int64 [N], the length of each document; who counts, by words or by a tokenizer, is up to the caller.
    """
    spent = None
    values = {}
    for name in names:
        kind, size, by_tokens = _parse(name)
        if by_tokens:
            spent = _spent(judged, docs, tokens) if spent is None else spent
            taken = judged.retrieved & (spent <= size)
        else:
            taken = judged.retrieved & (np.arange(judged.retrieved.shape[1]) < size)
        values[name] = MEASURES[kind](judged, taken)
    return values


def docs_of(run: Run, query_ids: Sequence[str]) -> IntRows:
    """int32 [Q, K]: the document at each rank of these queries, ``NOTHING`` where the run has none.

    Where ``judge`` is asked to drop documents, the run has to be the one without them (``Run.without``).
    """
    row_of = {query: row for row, query in enumerate(run.query_ids)}
    none = np.full((1, run.docs.shape[1]), NOTHING, dtype=np.int32)
    rows = np.array([row_of.get(query, -1) for query in query_ids], dtype=np.intp)
    return np.concatenate([run.docs, none])[rows]


def unfilled(judged: JudgedRuns, docs: IntRows, tokens: Tokens, budget: int) -> Mask:
    """bool [Q]: whether a ranking ended, at its full depth, with tokens to spare.

    A deeper ranking might put more into the prompt, unless it already holds the whole corpus.
    """
    if not docs.shape[1]:
        return np.zeros(len(docs), dtype=np.bool_)
    return np.asarray(judged.retrieved[:, -1] & (_spent(judged, docs, tokens)[:, -1] <= budget))


def _precision(judged: JudgedRuns, taken: Mask) -> Column:
    return _ratio((taken & (judged.grades > 0)).sum(axis=1), taken.sum(axis=1))


def _recall(judged: JudgedRuns, taken: Mask) -> Column:
    return _ratio((taken & (judged.grades > 0)).sum(axis=1), judged.n_relevant)


def _ap(judged: JudgedRuns, taken: Mask) -> Column:
    relevant = taken & (judged.grades > 0)
    precision = np.cumsum(relevant, axis=1) / np.arange(1, relevant.shape[1] + 1)
    return _ratio((relevant * precision).sum(axis=1), relevant.sum(axis=1))


MEASURES: dict[str, Callable[[JudgedRuns, Mask], Column]] = {"precision": _precision, "recall": _recall, "ap": _ap}
"""Every measure by name; metrics are ``context_`` with these names and a size."""

_NAME = re.compile(rf"context_({'|'.join(MEASURES)})_at_([1-9][0-9]{{0,6}})(_tokens)?")


def _parse(name: str) -> tuple[str, int, bool]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise KeyError(name)
    return match[1], int(match[2]), match[3] is not None


def _spent(judged: JudgedRuns, docs: IntRows | None, tokens: Tokens | None) -> Tokens:
    """int64 [Q, K]: tokens of all passages down to each rank."""
    if docs is None or tokens is None:
        raise ValueError("a budget of tokens needs the document at each rank and the tokens of each document")
    if not np.array_equal(docs != NOTHING, judged.retrieved):
        raise ValueError("docs and judged are not of the same ranking")
    if docs.max(initial=NOTHING) >= len(tokens) or (tokens < 0).any():
        raise ValueError("tokens must be whole numbers from 0, one for each document of the run")
    return np.asarray(np.cumsum(np.append(tokens, 0)[docs], axis=1))  # NOTHING, -1, is the 0 at the end


def _ratio(numerator: npt.NDArray[np.generic], denominator: Tokens) -> Column:
    parts = numerator.astype(np.float64)
    return np.divide(parts, denominator, out=np.zeros_like(parts), where=denominator > 0)


class _Family:
    def names(self) -> tuple[str, ...]:
        sizes = [*(str(k) for k in CUTOFFS), *(f"{budget}_tokens" for budget in BUDGETS)]
        return tuple(f"context_{measure_name}_at_{size}" for measure_name in MEASURES for size in sizes)

    def make(self, name: str) -> MeanOf | None:
        return MeanOf(name, version=VERSION) if _NAME.fullmatch(name) else None


FAMILY = _Family()
