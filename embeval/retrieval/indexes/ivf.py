"""``ivf``: FAISS inverted lists (IndexIVFFlat). A search looks only into the lists nearest to the query."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core.border import BORDER
from embeval.core.specs import SimilarityName
from embeval.retrieval.indexes import _engine, _lists


@dataclass(frozen=True, kw_only=True)
class IvfOptions:
    """Options of ``ivf``."""

    __pydantic_config__ = BORDER

    nlist: int | None = None
    """Lists; null: 4 times the square root of the number of vectors, with at least 39 vectors each."""
    nprobe: int | None = None
    """Lists that a search visits; null: a sixteenth of them."""
    rescore: int = 1
    """Candidates per hit whose true score is computed."""

    def __post_init__(self) -> None:
        _lists.check(self.nlist, self.nprobe, self.rescore)


class _IvfType:
    summary = "FAISS inverted lists (IndexIVFFlat): approximate, fast, full vectors in memory"
    exact = False
    options = IvfOptions
    similarities = _engine.SIMILARITIES

    def plan(self, dim: int, similarity: SimilarityName, options: IvfOptions, n: int) -> _lists.ListIndex:
        import faiss

        lists = _lists.cut(n, options.nlist, options.nprobe)
        measure = _engine.metric(similarity)
        quantizer = faiss.IndexFlat(dim, measure)
        return self._around(faiss.IndexIVFFlat(quantizer, dim, lists.n, measure), similarity, options, lists)

    def read(self, path: Path, dim: int, similarity: SimilarityName, options: IvfOptions, n: int) -> _lists.ListIndex:
        engine = _engine.read(path, "ivf", ("IndexIVFFlat",), dim, n, mapped=True)
        return self._around(engine, similarity, options, _lists.cut(n, options.nlist, options.nprobe))

    def _around(
        self, engine: Any, similarity: SimilarityName, options: IvfOptions, lists: _lists.Lists
    ) -> _lists.ListIndex:
        return _lists.ListIndex(
            engine,
            similarity,
            lists=lists,
            settled={"nlist": lists.n, "nprobe": lists.visited, "rescore": options.rescore},
            candidates_per_hit=options.rescore,
        )


INDEX = _IvfType()
