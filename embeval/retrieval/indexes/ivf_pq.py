"""``ivf_pq``: FAISS inverted lists of product-quantised vectors (IndexIVFPQ). Small in memory.

A vector becomes ``m`` numbers of ``nbits`` bits. Source: Jégou et al., Product Quantization for Nearest Neighbor
Search, TPAMI 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core.border import BORDER
from embeval.core.specs import SimilarityName
from embeval.errors import ConfigError
from embeval.retrieval.indexes import _engine, _lists

DIMENSIONS_PER_CODE = 4
"""Dimensions behind one code, unless ``m`` says otherwise: a byte for every 16 of the vector."""
ROUNDS = 10
"""Rounds in which the codes are learned: of FAISS's 25, the last 15 take most of the build and change next to nothing,
as hits are scored again."""


@dataclass(frozen=True, kw_only=True)
class IvfPqOptions:
    """Options of ``ivf_pq``."""

    __pydantic_config__ = BORDER

    nlist: int | None = None
    """Lists; null: 4 times the square root of the number of vectors, with at least 39 vectors each."""
    nprobe: int | None = None
    """Lists that a search visits; null: a sixteenth of them."""
    m: int | None = None
    """Codes per vector, a divisor of its dimensions; null: the largest with at least 4 dimensions per code."""
    nbits: int = 8
    """Bits per code, 4 to 12."""
    rescore: int = 4
    """Candidates per hit whose true score is computed."""

    def __post_init__(self) -> None:
        _lists.check(self.nlist, self.nprobe, self.rescore)
        if self.m is not None and self.m < 1:
            raise ValueError(f"m must be at least 1, not {self.m}")
        if not 4 <= self.nbits <= 12:
            raise ValueError(f"nbits must be 4 to 12, not {self.nbits}")


def codes(dim: int, m: int | None) -> int:
    """Codes per vector of ``dim`` dimensions. Raises ``ConfigError`` where ``m`` doesn't divide them."""
    divisors = [number for number in range(1, dim + 1) if dim % number == 0]
    if m is None:
        return max(number for number in divisors if number == 1 or dim // number >= DIMENSIONS_PER_CODE)
    if m not in divisors:
        near = sorted(sorted(divisors, key=lambda number: abs(number - m))[:3])
        raise ConfigError(
            f"Index 'ivf_pq': m: {m} does not divide the {dim} dimensions of the vectors. "
            f"Near it do: {', '.join(map(str, near))}.",
            key=("m",),
        )
    return m


class _IvfPqType:
    summary = "FAISS inverted lists of product-quantised vectors (IndexIVFPQ): approximate, smallest but binary"
    exact = False
    options = IvfPqOptions
    similarities = _engine.SIMILARITIES

    def plan(self, dim: int, similarity: SimilarityName, options: IvfPqOptions, n: int) -> _lists.ListIndex:
        import faiss

        lists = _lists.cut(n, options.nlist, options.nprobe)
        measure = _engine.metric(similarity)
        quantizer = faiss.IndexFlat(dim, measure)
        m = codes(dim, options.m)
        engine = faiss.IndexIVFPQ(quantizer, dim, lists.n, m, options.nbits, measure)
        engine.pq.cp.min_points_per_centroid = 1
        engine.pq.cp.max_points_per_centroid = _lists.POINTS_PER_LIST
        engine.pq.cp.niter = ROUNDS
        return self._around(engine, similarity, options, lists, m)

    def read(self, path: Path, dim: int, similarity: SimilarityName, options: IvfPqOptions, n: int) -> _lists.ListIndex:
        engine = _engine.read(path, "ivf_pq", ("IndexIVFPQ",), dim, n, mapped=True)
        lists = _lists.cut(n, options.nlist, options.nprobe)
        return self._around(engine, similarity, options, lists, codes(dim, options.m))

    def _around(
        self, engine: Any, similarity: SimilarityName, options: IvfPqOptions, lists: _lists.Lists, m: int
    ) -> _lists.ListIndex:
        return _lists.ListIndex(
            engine,
            similarity,
            lists=lists,
            n_centres=2**options.nbits,
            settled={
                "nlist": lists.n,
                "nprobe": lists.visited,
                "m": m,
                "nbits": options.nbits,
                "rescore": options.rescore,
            },
            candidates_per_hit=options.rescore,
        )


INDEX = _IvfPqType()
