"""The k best documents per query, with the corpus passing by in chunks.

An index finds candidates in each chunk; their scores are then computed again by ``core.similarity``. So a score
in a run depends on the two vectors and on nothing else: not on the index kind, the chunk, the place in a matrix
product or the number of threads, and documents with equal vectors tie exactly. Where a tie reaches across the
last place, the tie rule decides over all documents of the chunk and not only over those that the index gave.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Vectors
from embeval.core.ir import FloatRows, rank
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.retrieval.kinds import INDEXES, Neighbours

SLACK = 32
"""Candidates fetched beyond k, so that a tie at the last place is seen."""
ENGINE_ERROR = 1e-5
"""Bound on how far a float32 engine may be off, relative to the largest product of norms; 100 times what is seen
at 384 dimensions."""
PAIRS_AT_ONCE = 65_536
"""Query-document pairs whose vectors are gathered at once: 200 MB at 384 dimensions in float64."""


class TopK:
    """Keeps the k best documents per query while chunks of the corpus come by.

    ``queries`` float32 [Q, d]; ``tie_keys`` int64 [N] for all documents of the corpus in the order in which they
    will come (``core.ir.tie_keys``). With ``rescored_by`` float32 [Q, d], the k are found by ``queries``, and then
    scored and ranked by those: quantised queries find candidates, and what they lost is put right among these.
    """

    def __init__(
        self,
        queries: Vectors,
        *,
        k: int,
        similarity: SimilarityName,
        tie_keys: npt.NDArray[np.int64],
        index: str = "flat",
        rescored_by: Vectors | None = None,
    ) -> None:
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        self._queries, self._k, self._similarity = queries, k, similarity
        self._compare = SIMILARITIES[similarity]
        self._index_type = INDEXES.get(index)
        self._keys = np.append(tie_keys, -1)  # the last one is for "no document"
        self._scores: FloatRows = np.full((len(queries), k), -np.inf, dtype=np.float32)
        self._positions = np.full((len(queries), k), -1, dtype=np.int64)
        self._rescored_by = rescored_by
        self._second: FloatRows = np.full(
            (len(queries), k if rescored_by is not None else 0), -np.inf, dtype=np.float32
        )
        self._seen = 0
        self._query_norm = _largest_norm(queries)

    def add(self, chunk: Vectors) -> None:
        """The next float32 [n, d] documents of the corpus."""
        if not len(chunk):
            return
        index = self._index_type.create(chunk.shape[1], self._similarity)
        index.add(chunk)
        fetched = min(len(chunk), self._k + SLACK)
        found = index.search(self._queries, fetched)
        chunk_norm = _largest_norm(chunk)
        # Only candidates that can still enter the list are scored again: few, once some chunks have passed.
        worth = (found.positions >= 0) & self._may_reach(found.scores, self._scores[:, -1:], chunk_norm)
        scores = np.where(worth, np.float32(0.0), np.float32(-np.inf))
        rows, places = np.nonzero(worth)
        scores[rows, places] = self._score(rows, found.positions[rows, places], chunk)
        self._merge(np.arange(len(self._queries)), scores, np.where(worth, found.positions + self._seen, -1), chunk)
        if fetched < len(chunk) and self._index_type.exact:
            # What the index left out scores at most its last score, give or take its error.
            unsure = np.flatnonzero(self._may_reach(found.scores[:, -1], self._scores[:, -1], chunk_norm))
            everything = np.arange(len(chunk))
            for row in unsure:
                of_row = np.full(len(chunk), row)
                candidates = np.setdiff1d(everything, found.positions[row][worth[row]], assume_unique=True)
                self._merge(
                    np.array([row]),
                    self._score(of_row[: len(candidates)], candidates, chunk)[None, :],
                    candidates[None, :] + self._seen,
                    chunk,
                )
        self._seen += len(chunk)

    def result(self) -> Neighbours:
        """The k best documents per query of all that came by, best first; positions count over the whole corpus."""
        if self._rescored_by is None:
            return Neighbours(self._scores, self._positions)
        order = rank(self._second, self._keys[self._positions])
        return Neighbours(
            np.take_along_axis(self._second, order, axis=1), np.take_along_axis(self._positions, order, axis=1)
        )

    def _score(
        self,
        rows: npt.NDArray[np.intp],
        positions: npt.NDArray[np.int64],
        chunk: Vectors,
        queries: Vectors | None = None,
    ) -> FloatRows:
        queries = self._queries if queries is None else queries
        scores = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            scores[part] = self._compare(queries[rows[part]], chunk[positions[part]])
        return scores

    def _merge(
        self,
        rows: npt.NDArray[np.intp],
        scores: FloatRows,
        positions: npt.NDArray[np.int64],
        chunk: Vectors,
    ) -> None:
        all_scores = np.concatenate([self._scores[rows], scores], axis=1)
        all_positions = np.concatenate([self._positions[rows], positions], axis=1)
        order = rank(all_scores, self._keys[all_positions])[:, : self._k]
        self._scores[rows] = np.take_along_axis(all_scores, order, axis=1)
        self._positions[rows] = kept = np.take_along_axis(all_positions, order, axis=1)
        if self._rescored_by is None:
            return
        before = np.concatenate([self._second[rows], np.full_like(scores, -np.inf)], axis=1)
        second = np.take_along_axis(before, order, axis=1)
        new_rows, new_places = np.nonzero((order >= self._k) & (kept >= self._seen))
        second[new_rows, new_places] = self._score(
            rows[new_rows], kept[new_rows, new_places] - self._seen, chunk, self._rescored_by
        )
        self._second[rows] = second

    def _may_reach(self, found: FloatRows, last: FloatRows, chunk_norm: float) -> npt.NDArray[np.bool_]:
        """Whether a true score may be at least ``last`` where the index gave ``found``."""
        if self._similarity == "euclidean":
            # FAISS computes squared distances from norms and products, so its error is one of squares.
            error = ENGINE_ERROR * (self._query_norm + chunk_norm) ** 2
            return np.asarray(found.astype(np.float64) ** 2 - error <= last.astype(np.float64) ** 2)
        scale = {
            "cosine": 1.0,
            "dot": self._query_norm * chunk_norm,
            "manhattan": (self._query_norm + chunk_norm) * self._queries.shape[1] ** 0.5,
        }[self._similarity]
        return np.asarray(found.astype(np.float64) + ENGINE_ERROR * scale >= last)


def _largest_norm(vectors: Vectors) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)).max(initial=0.0))
