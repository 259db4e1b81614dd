"""How much of the exact result an approximate search found."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embeval.core.ir import FloatRows


def ann_recall(
    found: npt.NDArray[np.int64],
    exact: npt.NDArray[np.int64],
    exact_scores: FloatRows,
    found_scores: FloatRows,
    k: int,
) -> npt.NDArray[np.float64]:
    """float64 [Q], in [0, 1]: the share of the k best that was found; 1 where fewer than k exist and all were found.

    ``found`` and ``exact`` int64 [Q, K] are positions, best first, -1 after the last; the scores float32 [Q, K] are
    true ones of both, as ``TopK`` and ``approximate.search_corpus`` give. A hit that scores what the k-th exact one
    scores counts, though the tie rule chose another: equal documents stand for each other. Raises ``ValueError``
    where a query has no exact hit or a document is found twice. Source: recall of ann-benchmarks, Aumüller et al.,
    ANN-Benchmarks, Information Systems 2020, which counts by distance too.
    """
    if k < 1 or k > exact.shape[1]:
        raise ValueError(f"k must be 1 to {exact.shape[1]}, the depth of the exact search, not {k}")
    there = (exact[:, :k] >= 0).sum(axis=1)
    if (there == 0).any():
        raise ValueError(f"query {int(np.argmin(there))} has no exact neighbour to find")
    in_order = np.sort(found[:, :k], axis=1)
    if ((in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)).any():
        raise ValueError("a document is found twice for one query")
    last = exact_scores[np.arange(len(exact)), there - 1]
    hits = (found[:, :k] >= 0) & (found_scores[:, :k] >= last[:, None])
    return np.asarray(hits.sum(axis=1) / there, dtype=np.float64)
