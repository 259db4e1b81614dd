"""The k best documents per query, with the corpus passing by in chunks.

An engine finds candidates in each chunk; their scores are then computed again by ``core.similarity``. So a score
in a run depends on the two vectors and on nothing else: not on the index kind, the chunk, the place in a matrix
product or the number of threads, and documents with equal vectors tie exactly. Where a tie reaches across the
last place, the tie rule decides over all documents of the chunk and not only over those that the engine gave.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Vectors, refuse_nonfinite
from embeval.core.ir import FloatRows
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.retrieval.kinds import INDEXES, Candidates, ExactType, Neighbours, Scanner, Scanning
from embeval.retrieval.ordering import ordered, unordered

SLACK = 32
"""Candidates fetched beyond k from an index without a scanner, so that a tie at the last place is seen."""
ENGINE_ERROR = 1e-5
"""Bound on how far a float32 engine may be off, relative to the largest product of norms; 100 times what is seen
at 384 dimensions."""
PAIRS_AT_ONCE = 512
"""Query-document pairs whose vectors are gathered at once: at 384 dimensions they stay in a processor's cache."""
NOTHING = np.iinfo(np.int64).min
"""Sort key of no document: below that of any score."""


class TopK:
    """Keeps the k best documents per query while chunks of the corpus come by.

    ``queries`` float32 [Q, d]; ``tie_keys`` int64 [N] for all documents of the corpus in the order in which they
    will come (``core.ir.tie_keys``); ``index`` an exact kind. With ``rescored_by`` float32 [Q, d], the k are found
    by ``queries``, and then scored and ranked by those: quantised queries find candidates, and what they lost is
    put right among these.
    """

    def __init__(
        self,
        queries: Vectors,
        *,
        k: int,
        similarity: SimilarityName,
        tie_keys: npt.NDArray[np.int64],
        index: str = "exact",
        rescored_by: Vectors | None = None,
    ) -> None:
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        index_type = INDEXES.get(index)
        if not isinstance(index_type, ExactType):
            raise ValueError(f"{index} may miss neighbours: it needs approximate.search_corpus")
        refuse_nonfinite(queries, by="The queries")
        self._queries, self._k, self._similarity = queries, k, similarity
        self._tie_keys, self._by_tie_key = tie_keys, _inverse(tie_keys)
        self._scanner = _scanner(index_type, queries, similarity, k)
        self._keys = np.full((len(queries), k), NOTHING, dtype=np.int64)
        self._rescored_by = rescored_by
        self._second: FloatRows = np.full(
            (len(queries), k if rescored_by is not None else 0), -np.inf, dtype=np.float32
        )
        self._seen = 0

    def add(self, chunk: Vectors) -> None:
        """The next float32 [n, d] documents of the corpus."""
        if not len(chunk):
            return
        best = _scores_of(self._keys)
        for candidates in self._scanner.scan(chunk, best):
            if len(candidates.rows):
                self._take(candidates, chunk)
                best[:] = _scores_of(self._keys)
        self._seen += len(chunk)

    def result(self) -> Neighbours:
        """The k best documents per query of all that came by, best first; positions count over the whole corpus."""
        keys = self._keys
        if self._rescored_by is not None:
            keys = np.where(keys == NOTHING, NOTHING, _keys(self._second, keys & 0xFFFFFFFF))
        return _neighbours(np.sort(keys, axis=1)[:, ::-1], self._by_tie_key)

    def _take(self, candidates: Candidates, chunk: Vectors) -> None:
        """Scores candidates and keeps the k best of each query."""
        order = np.argsort(candidates.rows, kind="stable")
        rows, positions = candidates.rows[order], candidates.positions[order]
        scores = self._score(self._queries, rows, positions, chunk)
        some, counts = np.unique(rows, return_counts=True)
        line = np.repeat(np.arange(len(some)), counts)
        place = self._k + np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        keys = np.full((len(some), self._k + counts.max()), NOTHING, dtype=np.int64)
        keys[:, : self._k] = self._keys[some]
        keys[line, place] = _keys(scores, self._tie_keys[self._seen + positions])
        if self._rescored_by is None:
            keys.sort(axis=1)
            self._keys[some] = keys[:, -self._k :]
            return
        kept = np.argsort(keys, axis=1)[:, -self._k :]
        self._keys[some] = np.take_along_axis(keys, kept, axis=1)
        second = np.full(keys.shape, -np.inf, dtype=np.float32)
        second[:, : self._k] = self._second[some]
        entered = np.zeros(keys.shape, dtype=bool)
        np.put_along_axis(entered, kept, True, axis=1)
        new = entered[line, place]
        second[line[new], place[new]] = self._score(self._rescored_by, rows[new], positions[new], chunk)
        self._second[some] = np.take_along_axis(second, kept, axis=1)

    def _score(
        self, queries: Vectors, rows: npt.NDArray[np.int64], positions: npt.NDArray[np.int64], chunk: Vectors
    ) -> FloatRows:
        return pair_scores(queries, rows, chunk, positions, self._similarity)


def pair_scores(
    queries: Vectors,
    rows: npt.NDArray[np.int64],
    docs: Vectors,
    positions: npt.NDArray[np.int64],
    similarity: SimilarityName,
) -> FloatRows:
    """float32 [n]: the true scores of pairs (``queries[rows[i]]``, ``docs[positions[i]]``)."""
    compare = SIMILARITIES[similarity]
    scores = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        scores[part] = compare(queries[rows[part]], docs[positions[part]])
    return scores


def best_of(scores: FloatRows, positions: npt.NDArray[np.int64], tie_keys: npt.NDArray[np.int64], k: int) -> Neighbours:
    """The k best of candidates [Q, C] in any order, equal scores by tie key; position -1 is no candidate."""
    keys = np.where(positions < 0, NOTHING, _keys(scores, np.append(tie_keys, 0)[positions]))
    if keys.shape[1] < k:
        keys = np.pad(keys, ((0, 0), (0, k - keys.shape[1])), constant_values=NOTHING)
    return _neighbours(np.sort(keys, axis=1)[:, ::-1][:, :k], _inverse(tie_keys))


class _IndexScanner:
    """Candidates from any exact index, built anew for each chunk."""

    def __init__(self, index_type: ExactType, queries: Vectors, similarity: SimilarityName, k: int) -> None:
        self._index_type, self._queries, self._k = index_type, queries, k
        self._similarity: SimilarityName = similarity
        self._query_norm = _largest_norm(queries)

    def scan(self, chunk: Vectors, best: FloatRows) -> Iterator[Candidates]:
        index = self._index_type.create(chunk.shape[1], self._similarity)
        index.add(chunk)
        fetched = min(len(chunk), self._k + SLACK)
        found = index.search(self._queries, fetched)
        chunk_norm = _largest_norm(chunk)
        worth = (found.positions >= 0) & self._may_reach(found.scores, best.min(axis=1)[:, None], chunk_norm)
        rows, places = np.nonzero(worth)
        yield Candidates(rows, found.positions[rows, places])
        if fetched == len(chunk):
            return
        # What the index left out scores at most its last score, give or take its error.
        unsure = np.flatnonzero(self._may_reach(found.scores[:, -1], best.min(axis=1), chunk_norm))
        everything = np.arange(len(chunk))
        for row in unsure:
            left_out = np.setdiff1d(everything, found.positions[row][worth[row]], assume_unique=True)
            yield Candidates(np.full(len(left_out), row), left_out)

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


def _scanner(index_type: ExactType, queries: Vectors, similarity: SimilarityName, k: int) -> Scanner:
    own = index_type.scanner(queries, similarity, k) if isinstance(index_type, Scanning) else None
    return own or _IndexScanner(index_type, queries, similarity, k)


def _keys(scores: FloatRows, tie_keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64: numbers that order by score and then by tie key, so that one plain sort ranks."""
    return np.asarray((ordered(scores).astype(np.int64) << 32) | tie_keys)


def _scores_of(keys: npt.NDArray[np.int64]) -> FloatRows:
    return np.where(keys == NOTHING, np.float32(-np.inf), unordered((keys >> 32).astype(np.int32)))


def _neighbours(keys: npt.NDArray[np.int64], by_tie_key: npt.NDArray[np.int64]) -> Neighbours:
    return Neighbours(_scores_of(keys), by_tie_key[np.where(keys == NOTHING, -1, keys & 0xFFFFFFFF)])


def _inverse(tie_keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64 [N + 1]: the document of each tie key, and -1 for no document."""
    inverse = np.full(len(tie_keys) + 1, -1, dtype=np.int64)
    inverse[tie_keys] = np.arange(len(tie_keys))
    if (inverse[:-1] < 0).any():
        raise ValueError("tie_keys must hold every number from 0 once")
    return inverse


def _largest_norm(vectors: Vectors) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)).max(initial=0.0))
