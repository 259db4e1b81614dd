"""``sq8``: FAISS scalar quantisation (IndexScalarQuantizer): a byte per dimension, all vectors looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core.border import BORDER
from embeval.core.specs import SimilarityName
from embeval.retrieval.indexes import _engine

SAMPLE = 100_000
"""Vectors from which the range of each dimension is learned."""


@dataclass(frozen=True, kw_only=True)
class Sq8Options:
    """Options of ``sq8``."""

    __pydantic_config__ = BORDER

    rescore: int = 2
    """Candidates per hit whose true score is computed."""

    def __post_init__(self) -> None:
        if self.rescore < 1:
            raise ValueError(f"rescore must be at least 1, not {self.rescore}")


class _Sq8Type:
    summary = "FAISS scalar quantisation (IndexScalarQuantizer), a byte per dimension: a quarter of the memory"
    exact = False
    options = Sq8Options
    similarities = _engine.SIMILARITIES

    def plan(self, dim: int, similarity: SimilarityName, options: Sq8Options, n: int) -> _engine.FaissIndex:
        import faiss

        engine = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_8bit, _engine.metric(similarity))
        return self._around(engine, similarity, options)

    def read(self, path: Path, dim: int, similarity: SimilarityName, options: Sq8Options, n: int) -> _engine.FaissIndex:
        return self._around(_engine.read(path, "sq8", ("IndexScalarQuantizer",), dim, n), similarity, options)

    def _around(self, engine: Any, similarity: SimilarityName, options: Sq8Options) -> _engine.FaissIndex:
        return _engine.FaissIndex(
            engine,
            similarity,
            settled={"rescore": options.rescore},
            candidates_per_hit=options.rescore,
            n_training=SAMPLE,
        )


INDEX = _Sq8Type()
