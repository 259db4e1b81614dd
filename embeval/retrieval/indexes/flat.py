"""``flat``: FAISS brute force (IndexFlat), exact, on all cores. Needs no training; holds vectors as they are.

FAISS drops a NaN document without a word and fills short lists with id -1 and score -3.4e38; neither gets past
this file. Source: faiss 1.15 ``IndexFlat``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from embeval.core.embeddings import Vectors, refuse_nonfinite
from embeval.core.similarity import for_index
from embeval.core.specs import SimilarityName
from embeval.retrieval.kinds import Neighbours


class Flat:
    """FAISS IndexFlat."""

    def __init__(self, dim: int, similarity: SimilarityName) -> None:
        import faiss

        metric = {
            "cosine": faiss.METRIC_INNER_PRODUCT,
            "dot": faiss.METRIC_INNER_PRODUCT,
            "euclidean": faiss.METRIC_L2,
            "manhattan": faiss.METRIC_L1,
        }[similarity]
        self._index: Any = faiss.IndexFlat(dim, metric)
        self._similarity: SimilarityName = similarity

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, vectors: Vectors) -> None:
        refuse_nonfinite(vectors, by="The vectors to index")
        self._index.add(np.ascontiguousarray(for_index(vectors, self._similarity)))

    def search(self, queries: Vectors, k: int) -> Neighbours:
        refuse_nonfinite(queries, by="The queries")
        k_found = min(k, len(self))
        if not k_found or not len(queries):
            nobody = np.full((len(queries), k), -1, dtype=np.int64)
            return Neighbours(np.full((len(queries), k), -np.inf, dtype=np.float32), nobody)
        scores, positions = self._index.search(np.ascontiguousarray(for_index(queries, self._similarity)), k_found)
        if self._similarity == "euclidean":
            scores = -np.sqrt(np.maximum(scores, 0.0))  # FAISS gives squared distances
        elif self._similarity == "manhattan":
            scores = -scores
        missing = positions < 0
        scores[missing] = -np.inf
        padding = ((0, 0), (0, k - k_found))
        return Neighbours(
            np.pad(scores.astype(np.float32), padding, constant_values=-np.inf),
            np.pad(positions.astype(np.int64), padding, constant_values=-1),
        )


class _FlatType:
    summary = "FAISS brute force (IndexFlat): exact"
    exact = True

    def create(self, dim: int, similarity: SimilarityName) -> Flat:
        return Flat(dim, similarity)


INDEX = _FlatType()
