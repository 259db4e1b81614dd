"""``brute``: brute force in float64 with numpy alone. Exact, and the reference that other kinds are tested against."""

from __future__ import annotations

import numpy as np

from embeval.core.embeddings import Vectors, refuse_nonfinite
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.retrieval.kinds import Neighbours


class _Brute:
    def __init__(self, dim: int, similarity: SimilarityName) -> None:
        self._compare = SIMILARITIES[similarity]
        self._vectors = np.empty((0, dim), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._vectors)

    def add(self, vectors: Vectors) -> None:
        refuse_nonfinite(vectors, by="The vectors to index")
        self._vectors = np.concatenate([self._vectors, vectors])

    def search(self, queries: Vectors, k: int) -> Neighbours:
        refuse_nonfinite(queries, by="The queries")
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        positions = np.full((len(queries), k), -1, dtype=np.int64)
        k_found = min(k, len(self))
        for row, query in enumerate(queries):
            against_all = self._compare(np.broadcast_to(query, self._vectors.shape), self._vectors)
            best = np.argsort(-against_all, kind="stable")[:k_found]
            scores[row, :k_found], positions[row, :k_found] = against_all[best], best
        return Neighbours(scores, positions)


class _BruteType:
    summary = "brute force in float64 with numpy alone: exact, slow, the reference"
    exact = True

    def create(self, dim: int, similarity: SimilarityName) -> _Brute:
        return _Brute(dim, similarity)


INDEX = _BruteType()
