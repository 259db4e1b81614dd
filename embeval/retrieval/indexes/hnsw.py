"""``hnsw``: FAISS navigable small-world graph (IndexHNSWFlat). Fast to search, slow to build.

Built by one thread: with several, the graph hangs on which is first, and so do the hits. Source: Malkov & Yashunin,
Efficient and Robust Approximate Nearest Neighbor Search Using HNSW Graphs, TPAMI 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core.border import BORDER
from embeval.core.embeddings import Vectors
from embeval.core.specs import SimilarityName
from embeval.retrieval.indexes import _engine
from embeval.retrieval.kinds import Neighbours


@dataclass(frozen=True, kw_only=True)
class HnswOptions:
    """Options of ``hnsw``."""

    __pydantic_config__ = BORDER

    m: int = 16
    """Neighbours that a vector is linked to, 2 to 128; twice as many at the bottom."""
    ef_construction: int = 100
    """Candidates kept while the graph is built."""
    ef_search: int | None = None
    """Candidates kept while it is searched, never fewer than the hits wanted; null: 128, or twice those hits."""
    rescore: int = 1
    """Candidates per hit whose true score is computed."""

    def __post_init__(self) -> None:
        if not 2 <= self.m <= 128:
            raise ValueError(f"m must be 2 to 128, not {self.m}")
        for name in ("ef_construction", "ef_search", "rescore"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")


class _Hnsw(_engine.FaissIndex):
    ef_search: int | None = None

    def search(self, queries: Vectors, k: int) -> Neighbours:
        self.engine.hnsw.efSearch = max(self.ef_search or max(128, 2 * k), k)
        return super().search(queries, k)


class _HnswType:
    summary = "FAISS navigable small-world graph (IndexHNSWFlat): approximate, fastest search, slow to build"
    exact = False
    options = HnswOptions
    similarities = _engine.SIMILARITIES

    def plan(self, dim: int, similarity: SimilarityName, options: HnswOptions, n: int) -> _Hnsw:
        import faiss

        engine = faiss.IndexHNSWFlat(dim, options.m, _engine.metric(similarity))
        engine.hnsw.efConstruction = options.ef_construction
        return self._around(engine, similarity, options)

    def read(self, path: Path, dim: int, similarity: SimilarityName, options: HnswOptions, n: int) -> _Hnsw:
        return self._around(_engine.read(path, "hnsw", ("IndexHNSWFlat",), dim, n), similarity, options)

    def _around(self, engine: Any, similarity: SimilarityName, options: HnswOptions) -> _Hnsw:
        index = _Hnsw(
            engine,
            similarity,
            settled={
                "m": options.m,
                "ef_construction": options.ef_construction,
                "ef_search": options.ef_search,
                "rescore": options.rescore,
            },
            candidates_per_hit=options.rescore,
            built_by_one_thread=True,
        )
        index.ef_search = options.ef_search
        return index


INDEX = _HnswType()
