"""Several rankings of the same queries made into one.

``rrf`` adds weight / (rrf_k + rank) over the rankings, where a rank is a place, from 1, in the ranking as its tie rule
put it: documents of equal score have different ranks. ``weighted`` adds weight * score, each ranking's scores of a
query scaled to [0, 1] over its hits; where all of these are equal, they are all 1. A document that a ranking lacks gets
nothing from it.

Both hang on how deep the rankings are, so parts of a hybrid are asked for at least ``PART_DEPTH`` hits: a task that
keeps 10 fuses the same rankings as one that keeps 1000. Documents that are no hits for a query (``Run.without``) must
be gone before rankings are fused, since they would take ranks and set the scale.

Sources: Cormack, Clarke & Büttcher, Reciprocal Rank Fusion, SIGIR 2009; Bruch, Gai & Ingber, An Analysis of Fusion
Functions for Hybrid Retrieval, TOIS 2023.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embeval.core.ir import NOTHING, Run, TieRule
from embeval.core.protocols import Fusion

PART_DEPTH = 1000
"""Hits that each ranking to be fused should have, where there are as many."""

Contributions = npt.NDArray[np.float64]


def part_depth(depth: int) -> int:
    """Hits to ask of each part where the ``depth`` best of the whole are wanted."""
    return max(depth, PART_DEPTH)


def fuse(
    runs: Sequence[Run],
    *,
    method: Fusion = "rrf",
    weights: Sequence[float] = (),
    rrf_k: int = 60,
    depth: int | None = None,
    ties: TieRule = TieRule.DOC_ID_DESC,
) -> Run:
    """The ``depth`` best of all hits of the runs, per query that any of them has.

    ``weights``: one per run; empty: 1 each. Queries and documents are in the order in which the runs name them first.
    """
    weights = tuple(weights) or (1.0,) * len(runs)
    if not runs or len(weights) != len(runs):
        raise ValueError(f"one weight per ranking is needed, not {len(weights)} for {len(runs)}")
    query_ids = _union([run.query_ids for run in runs])
    doc_ids = _union([run.doc_ids for run in runs])
    queries = {query: row for row, query in enumerate(query_ids)}
    docs = {doc: place for place, doc in enumerate(doc_ids)}

    cells, parts = [], []
    for run, weight in zip(runs, weights, strict=True):
        rows, ranks = np.nonzero(run.docs != NOTHING)
        row_of = np.array([queries[query] for query in run.query_ids], dtype=np.int64)
        place_of = np.array([docs[doc] for doc in run.doc_ids], dtype=np.int64)
        cells.append(row_of[rows] * len(doc_ids) + place_of[run.docs[rows, ranks]])
        scores = 1.0 / (rrf_k + 1.0 + ranks) if method == "rrf" else _scaled(run)[rows, ranks]
        parts.append(weight * scores)
    return _summed(np.concatenate(cells), np.concatenate(parts), query_ids, doc_ids, depth, ties, runs)


def _summed(
    cells: npt.NDArray[np.int64],
    parts: Contributions,
    query_ids: tuple[str, ...],
    doc_ids: tuple[str, ...],
    depth: int | None,
    ties: TieRule,
    runs: Sequence[Run],
) -> Run:
    """The run in which every cell, a query and a document, scores the sum of its parts."""
    order = np.argsort(cells, kind="stable")  # stable: what a document gets is added in the order of the rankings
    cells, parts = cells[order], parts[order]
    starts = np.flatnonzero(np.append(True, cells[1:] != cells[:-1])[: len(cells)])
    sums = np.add.reduceat(parts, starts) if len(starts) else parts
    rows, places = np.divmod(cells[starts], max(len(doc_ids), 1))
    sizes = np.bincount(rows, minlength=len(query_ids))
    columns = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shape = (len(query_ids), int(sizes.max(initial=0)))
    fused_docs = np.full(shape, NOTHING, dtype=np.int32)
    fused_scores = np.full(shape, -np.inf, dtype=np.float32)
    fused_docs[rows, columns], fused_scores[rows, columns] = places, sums
    return Run.ranked(
        query_ids=query_ids,
        doc_ids=doc_ids,
        docs=fused_docs,
        scores=fused_scores,
        ties=ties,
        depth=depth,
        n_duplicates=sum(run.n_duplicates for run in runs),
    )


def _scaled(run: Run) -> Contributions:
    """float64 [Q, K]: each row's scores from 0, the least of its hits, to 1, the best; 1 where all are equal."""
    present = run.docs != NOTHING
    scores = run.scores.astype(np.float64)
    least = np.where(present, scores, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    span = np.where(present, scores, -np.inf).max(axis=1, keepdims=True, initial=-np.inf) - least
    with np.errstate(invalid="ignore", divide="ignore"):  # of rows without hits, and cells without a document
        return np.asarray(np.where(span > 0, (scores - least) / span, 1.0))


def _union(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return names[0] if all(each == names[0] for each in names) else tuple(dict.fromkeys(sum(names, ())))
