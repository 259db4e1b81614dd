"""What a reranker is worth: ranking metrics before it, their change, and the best that it could have done.

``first_stage_M`` is the ranking metric M before reranking, ``lift_M`` is M after it minus M before it (negative where
the reranker does harm), ``oracle_M`` is M with the candidates in the best order that their judgments allow, for each M
of ``metrics.ranking``. ``candidate_recall_at_K`` is the share of the relevant documents that are among the K candidates
per query: no reranker gets above it.

Each is the mean of a value per query, which ``columns`` computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from embeval.core.ir import JudgedRuns, TieRule
from embeval.core.records import Column
from embeval.metrics import ranking
from embeval.metrics._family import MeanOf
from embeval.metrics.ranking import Options

VERSION = 1
USUAL_CUTOFF, USUAL_DEPTH = 10, 100
"""Of the names in listings."""

DEFAULTS = Options()

_STAGED = re.compile(r"(first_stage|lift|oracle)_(.+)")
_CEILING = re.compile(r"candidate_recall_at_([1-9][0-9]{0,5})")


def names(ranking_names: Iterable[str], *, depth: int) -> tuple[str, ...]:
    """Those of every stage for each ranking metric, and the ceiling of the first ``depth`` candidates."""
    of_stages = [f"{stage}_{name}" for name in ranking_names for stage in ("first_stage", "lift", "oracle")]
    return (*of_stages, f"candidate_recall_at_{depth}")


def columns(
    before: JudgedRuns, after: JudgedRuns, names_: Iterable[str], *, depth: int, options: Options = DEFAULTS
) -> dict[str, Column]:
    """float64 [Q] per metric name, in the order of the two runs, which are of the same queries.

    ``depth`` is how many candidates per query were reranked. Raises ``KeyError`` for another family's name,
    ``ValueError`` where the runs don't belong together.
    """
    if before.query_ids != after.query_ids:
        raise ValueError("the runs before and after reranking are not of the same queries")
    wanted = list(names_)
    metrics = {_parse(name)[1] for name in wanted if not _CEILING.fullmatch(name)}
    stages = {
        "first_stage": ranking.measure(before, metrics, options),
        "oracle": ranking.measure(best_order(before, depth), metrics, options),
    }
    final = ranking.measure(after, metrics, options)
    found: dict[str, Column] = {}
    for name in wanted:
        stage, metric = _parse(name)
        if stage == "lift":
            found[name] = final[metric] - stages["first_stage"][metric]
        elif stage == "candidate_recall":
            # Of ties across the last place too, only those that were chosen are candidates: nothing to average.
            chosen = replace(before, ties=TieRule.DOC_ID_DESC)
            found[name] = ranking.measure(chosen, [metric], options)[metric]
        else:
            found[name] = stages[stage][metric]
    return found


def best_order(runs: JudgedRuns, depth: int) -> JudgedRuns:
    """The runs with their first ``depth`` documents by grade, highest first; the rest as it was, and no ties."""
    grades, judged = runs.grades.copy(), runs.judged.copy()
    order = np.argsort(-np.maximum(grades[:, :depth], 0), axis=1, kind="stable")
    for values in (grades, judged):
        values[:, :depth] = np.take_along_axis(values[:, :depth], order, axis=1)
    places = np.arange(grades.shape[1], 0, -1, dtype=np.float32)
    scores = np.where(runs.retrieved, places, np.float32(-np.inf))
    return replace(runs, grades=grades, judged=judged, scores=scores, ties=TieRule.DOC_ID_DESC)


def positives_never_candidates(runs: JudgedRuns, depth: int) -> int:
    """Relevant documents, over all queries, that are not among the first ``depth``: a reranker never sees them."""
    return int(runs.n_relevant.sum() - (runs.grades[:, :depth] > 0).sum())


def _parse(name: str) -> tuple[str, str]:
    """(stage, ranking metric) of a name."""
    if ceiling := _CEILING.fullmatch(name):
        return "candidate_recall", f"recall_at_{ceiling[1]}"
    staged = _STAGED.fullmatch(name)
    if staged is None:
        raise KeyError(name)
    ranking.cutoff(staged[2])  # KeyError where that is no ranking metric
    return staged[1], staged[2]


class _Family:
    def names(self) -> tuple[str, ...]:
        usual = [name for name in ranking.names([USUAL_CUTOFF]) if not name.startswith("judged")]
        return names(usual, depth=USUAL_DEPTH)

    def make(self, name: str) -> MeanOf | None:
        try:
            _parse(name)
        except KeyError:
            return None
        return MeanOf(name, version=VERSION)


FAMILY = _Family()
