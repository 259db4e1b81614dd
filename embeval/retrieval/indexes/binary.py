"""``binary``: the sign of each dimension, compared by Hamming distance (FAISS IndexBinaryFlat).

The bits only find candidates, ``rescore`` per hit; their order comes from the full vectors. Source:
sentence-transformers 6.2, ``semantic_search_faiss`` with ``rescore_multiplier``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embeval.core.border import BORDER
from embeval.core.embeddings import Vectors, refuse_nonfinite
from embeval.core.specs import SimilarityName
from embeval.retrieval.indexes import _engine
from embeval.retrieval.kinds import Neighbours


@dataclass(frozen=True, kw_only=True)
class BinaryOptions:
    """Options of ``binary``."""

    __pydantic_config__ = BORDER

    rescore: int = 8
    """Candidates per hit whose true score is computed."""

    def __post_init__(self) -> None:
        if self.rescore < 1:
            raise ValueError(f"rescore must be at least 1, not {self.rescore}")


class _Binary(_engine.FaissIndex):
    def train(self, sample: Vectors) -> None:
        """Nothing to learn."""

    def add(self, vectors: Vectors) -> None:
        refuse_nonfinite(vectors, by="The vectors to index")
        self.engine.add(_bits(vectors))

    def search(self, queries: Vectors, k: int) -> Neighbours:
        refuse_nonfinite(queries, by="The queries")
        found = min(k, len(self))
        if not found or not len(queries):
            return _engine.nobody(len(queries), k)
        distances, positions = self.engine.search(_bits(queries), found)
        return _engine.padded(-distances, positions, k)

    def _write_to(self, target: Any) -> None:
        import faiss

        faiss.write_index_binary(self.engine, target)

    def to_device(self, device: str) -> None:
        """Stays on the CPU, where it is fast enough."""


def _bits(vectors: Vectors) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.packbits(vectors > 0, axis=1)


class _BinaryType:
    summary = "a bit per dimension by Hamming distance (IndexBinaryFlat), candidates scored again: a 32nd of the memory"
    exact = False
    options = BinaryOptions
    similarities = _engine.SIMILARITIES

    def plan(self, dim: int, similarity: SimilarityName, options: BinaryOptions, n: int) -> _Binary:
        import faiss

        return self._around(faiss.IndexBinaryFlat(_in_bytes(dim)), similarity, options)

    def read(self, path: Path, dim: int, similarity: SimilarityName, options: BinaryOptions, n: int) -> _Binary:
        engine = _engine.read(path, "binary", ("IndexBinaryFlat",), _in_bytes(dim), n)
        return self._around(engine, similarity, options)

    def _around(self, engine: Any, similarity: SimilarityName, options: BinaryOptions) -> _Binary:
        return _Binary(engine, similarity, settled={"rescore": options.rescore}, candidates_per_hit=options.rescore)


def _in_bytes(dim: int) -> int:
    """Bits of whole bytes."""
    return -(-dim // 8) * 8


INDEX = _BinaryType()
