"""``exact``: matrix products in tiles, and almost no sorting. Exact; the default.

Once k documents of a query are known, a tile of products needs one look per block of documents: is the largest at
least the query's k-th? What passes is few, and ``search.TopK`` scores it again in float64. Manhattan has no matrix
product and goes to ``flat``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Vectors, refuse_nonfinite, unit
from embeval.core.ir import FloatRows
from embeval.core.specs import SimilarityName
from embeval.retrieval.indexes import flat
from embeval.retrieval.kinds import Candidates, Neighbours
from embeval.retrieval.ordering import ordered, unordered

if TYPE_CHECKING:
    import torch


TILE = 16_384
"""Documents per matrix product. Threads wait for each other at the end of each, which is long on a busy machine."""
QUERIES_AT_ONCE = 1024
"""Queries per matrix product: with a tile, 64 MB of products."""
BLOCK = 64
"""Documents whose products are looked at by their largest one."""
ENGINE_ERROR = 1e-5
"""Bound on how far a product in float32 may be off, relative to the product of the norms; 100 times what is seen
at 384 dimensions."""
MOST_WAITING = 4_000_000
"""Candidates kept before they are handed over: 100 MB. Only models that give equal vectors get there."""
FEW_PAIRS, LITTLE_WORK = QUERIES_AT_ONCE * TILE, 2_000_000_000
"""Queries x documents, and x dimensions, up to which torch isn't imported for the products: half a second of one core,
and torch takes two."""
LARGEST, SMALLEST = 1e18, 1e-15
"""Norms beyond these leave the range where squares are good float32."""


class _Found(NamedTuple):
    rows: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    values: FloatRows

    def where(self, mask: npt.NDArray[np.bool_]) -> _Found:
        return _Found(self.rows[mask], self.positions[mask], self.values[mask])


class ProductScanner:
    """Candidates by float32 products.

    "Values" are what it compares: the score, or for euclidean half of |query|² - distance², which orders the documents
    of a query alike and is a product and a sum.
    """

    def __init__(self, queries: Vectors, similarity: SimilarityName, k: int) -> None:
        import torch

        refuse_nonfinite(queries, by="The queries")
        self._similarity, self._k = similarity, k
        prepared = unit(queries) if similarity == "cosine" else np.ascontiguousarray(queries, dtype=np.float32)
        self._queries = torch.from_numpy(prepared)
        self._scale = _Scale(queries, similarity)
        self._products = torch.empty(min(len(queries), QUERIES_AT_ONCE) * TILE, dtype=torch.float32)

    def scan(self, chunk: Vectors, best: FloatRows) -> Iterator[Candidates]:
        refuse, norms = _norms(chunk)
        if refuse:
            refuse_nonfinite(chunk, by="The vectors to index")
        largest = float(norms.max(initial=0.0))
        if max(largest, self._scale.norms.max(initial=0.0)) > LARGEST and self._similarity != "cosine":
            yield from _all_pairs(len(self._queries), len(chunk))  # float32 products overflow: let float64 decide
            return
        errors = self._scale.errors(largest)
        known = self._scale.values(best)
        floors = _above(known.min(axis=1) - errors)
        waiting: list[_Found] = []
        n_waiting = 0
        limit = max(2 * best.size, TILE)
        with _full_precision():
            for start in range(0, len(chunk), TILE):
                tile, halves = self._tile(chunk[start : start + TILE], norms[start : start + TILE])
                for first in range(0, len(self._queries), QUERIES_AT_ONCE):
                    part = slice(first, first + QUERIES_AT_ONCE)
                    found = self._look(tile, halves, part, floors, errors)
                    if len(found.rows):
                        waiting.append(_Found(found.rows + first, found.positions + start, found.values))
                        n_waiting += len(found.rows)
                    if n_waiting > limit:
                        pruned = self._prune(waiting, known, floors, errors)
                        waiting, n_waiting = [pruned], len(pruned.rows)
                        # What stays within the error of the k-th can't be pruned, so look again only when it doubles.
                        limit = max(limit, 2 * n_waiting)
                    if n_waiting > MOST_WAITING:
                        yield _joined(waiting)
                        waiting, n_waiting = [], 0
                        known = self._scale.values(best)
                        floors = np.maximum(floors, _above(known.min(axis=1) - errors))
        if n_waiting > best.size // 4:
            waiting = [self._prune(waiting, known, floors, errors)]
        if waiting:
            yield _joined(waiting)

    def _tile(self, vectors: Vectors, norms: npt.NDArray[np.float32]) -> tuple[torch.Tensor, torch.Tensor | None]:
        import torch

        if self._similarity == "cosine":
            if ((norms > LARGEST) | (norms < SMALLEST)).any():
                return _tensor(unit(vectors)), None
            return _tensor(vectors) / _tensor(norms)[:, None], None
        if self._similarity == "euclidean":
            return _tensor(vectors), torch.square(_tensor(norms)) / -2
        return _tensor(vectors), None

    def _look(
        self,
        tile: torch.Tensor,
        halves: torch.Tensor | None,
        part: slice,
        floors: FloatRows,
        errors: npt.NDArray[np.float64],
    ) -> _Found:
        import torch

        queries, n = self._queries[part], len(tile)
        padded = -(-n // BLOCK) * BLOCK
        values = self._products[: len(queries) * padded].view(len(queries), padded)
        if padded > n:
            values[:, n:] = -torch.inf
        if halves is None:
            torch.mm(queries, tile.T, out=values[:, :n])
        else:
            torch.addmm(halves, queries, tile.T, out=values[:, :n])
        if n >= self._k and np.isneginf(floors[part]).any():
            kth = torch.topk(values[:, :n], self._k, dim=1, sorted=False).values.amin(dim=1).numpy()
            # A view of floors, so that later tiles see it too.
            np.maximum(floors[part], _above(kth - 2 * errors[part]), out=floors[part])
        floor = floors[part][:, None]
        blocks = values.view(len(queries), padded // BLOCK, BLOCK)
        # What follows the largest of each block is little work: numpy does it without waking all threads.
        rows, places = np.nonzero(blocks.amax(dim=2).numpy() >= floor)
        few = blocks.numpy()[rows, places]
        hits, within = np.nonzero(few >= floor[rows])
        found = _Found(rows[hits], places[hits] * BLOCK + within, few[hits, within])
        if padded == n:
            return found
        return found.where(found.positions < n)

    def _prune(
        self,
        waiting: list[_Found],
        known: npt.NDArray[np.float64],
        floors: FloatRows,
        errors: npt.NDArray[np.float64],
    ) -> _Found:
        """What can still be among the k best, knowing all that waits; raises the floors."""
        found = _Found(*(np.concatenate(each) for each in zip(*waiting, strict=True)))
        n_queries, k = known.shape
        rows = np.concatenate([np.repeat(np.arange(n_queries), k), found.rows])
        values = np.concatenate([known.astype(np.float32).ravel(), found.values])
        descending = np.sort((rows << 32) + (-ordered(values).astype(np.int64) + 2**31))
        # Every query has at least its k known ones, so its k-th stands k - 1 after its first.
        starts = np.searchsorted(descending, np.arange(n_queries, dtype=np.int64) << 32)
        kth = unordered((2**31 - (descending[starts + k - 1] & 0xFFFFFFFF)).astype(np.int32))
        np.maximum(floors, _above(kth - 2 * errors), out=floors)
        return found.where(found.values >= floors[found.rows])


class _Scanner:
    """``ProductScanner``, whose torch takes seconds to import, only where it is there already or the work is much.

    Vectors from a cache or a service need no torch, and the products of a small corpus are soon made by numpy.
    """

    def __init__(self, queries: Vectors, similarity: SimilarityName, k: int) -> None:
        self._queries, self._k = queries, k
        self._similarity: SimilarityName = similarity
        self._pairs = 0
        self._fast: ProductScanner | None = None

    def scan(self, chunk: Vectors, best: FloatRows) -> Iterator[Candidates]:
        self._pairs += len(self._queries) * len(chunk)
        much = self._pairs > FEW_PAIRS or self._pairs * chunk.shape[1] > LITTLE_WORK
        if self._fast is None and (much or "torch" in sys.modules):
            self._fast = ProductScanner(self._queries, self._similarity, self._k)
        yield from self._plainly(chunk, best) if self._fast is None else self._fast.scan(chunk, best)

    def _plainly(self, chunk: Vectors, best: FloatRows) -> Iterator[Candidates]:
        refuse_nonfinite(chunk, by="The vectors to index")
        scale = _Scale(self._queries, self._similarity)
        largest = float(_lengths(chunk).max(initial=0.0))
        if max(largest, scale.norms.max(initial=0.0)) > LARGEST and self._similarity != "cosine":
            yield from _all_pairs(len(self._queries), len(chunk))
            return
        cosine = self._similarity == "cosine"
        queries, vectors = (unit(each) if cosine else each for each in (self._queries, chunk))
        values = queries @ vectors.T
        if self._similarity == "euclidean":
            values -= (_lengths(chunk) ** 2 / 2).astype(np.float32)
        errors = scale.errors(largest)
        floors = _above(scale.values(best).min(axis=1) - errors)
        if len(chunk) >= self._k:
            kth = np.partition(values, len(chunk) - self._k, axis=1)[:, len(chunk) - self._k]
            floors = np.maximum(floors, _above(kth - 2 * errors))
        yield Candidates(*np.nonzero(values >= floors[:, None]))


class _Scale:
    """How scores and the values that are compared instead belong together."""

    def __init__(self, queries: Vectors, similarity: SimilarityName) -> None:
        self._similarity = similarity
        self.norms = _lengths(unit(queries) if similarity == "cosine" else queries)

    def errors(self, largest: float) -> npt.NDArray[np.float64]:
        """float64 [Q]: how far a value may be off."""
        if self._similarity == "euclidean":
            return np.asarray(ENGINE_ERROR * (self.norms + largest) ** 2 / 2)
        return np.asarray(ENGINE_ERROR * self.norms * (1.0 if self._similarity == "cosine" else largest))

    def values(self, scores: FloatRows) -> npt.NDArray[np.float64]:
        """Of scores [Q, …]."""
        if self._similarity == "euclidean":
            return np.asarray((self.norms[:, None] ** 2 - scores.astype(np.float64) ** 2) / 2)
        return scores.astype(np.float64)


def _lengths(vectors: Vectors) -> npt.NDArray[np.float64]:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)))


def _all_pairs(n_queries: int, n: int) -> Iterator[Candidates]:
    for row in range(n_queries):
        yield Candidates(np.full(n, row, dtype=np.int64), np.arange(n, dtype=np.int64))


def _above(floors: npt.NDArray[np.float64]) -> FloatRows:
    """The floors in float32, rounded down."""
    return np.nextafter(floors.astype(np.float32), np.float32(-np.inf))


def _joined(waiting: list[_Found]) -> Candidates:
    return Candidates(
        np.concatenate([each.rows for each in waiting]), np.concatenate([each.positions for each in waiting])
    )


def _norms(vectors: Vectors) -> tuple[bool, npt.NDArray[np.float32]]:
    """Whether NaN or Inf may be among float32 [n, d], and the length of each."""
    import torch

    norms: npt.NDArray[np.float32] = torch.linalg.vector_norm(_tensor(vectors), dim=1).numpy()
    return not np.isfinite(norms).all(), norms


def _tensor(array: npt.NDArray[np.float32]) -> torch.Tensor:
    import torch

    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():  # torch warns that it can't promise not to write; nothing here writes
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


@contextmanager
def _full_precision() -> Iterator[None]:
    # Whoever asked torch for faster, coarser products meant a model; candidates would get lost by them.
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class _Exact:
    def __init__(self, similarity: SimilarityName) -> None:
        self._similarity: SimilarityName = similarity
        self._parts: list[Vectors] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, vectors: Vectors) -> None:
        refuse_nonfinite(vectors, by="The vectors to index")
        self._parts.append(vectors)

    def search(self, queries: Vectors, k: int) -> Neighbours:
        from embeval.retrieval.search import TopK

        top = TopK(queries, k=k, similarity=self._similarity, tie_keys=np.arange(len(self))[::-1], index="exact")
        for part in self._parts:
            top.add(part)
        return top.result()


class _ExactType:
    summary = "matrix products in tiles, scored again in float64: exact, the default"
    exact = True

    def create(self, dim: int, similarity: SimilarityName) -> _Exact | flat.Flat:
        return flat.INDEX.create(dim, similarity) if similarity == "manhattan" else _Exact(similarity)

    def scanner(self, queries: Vectors, similarity: SimilarityName, k: int) -> _Scanner | None:
        return None if similarity == "manhattan" else _Scanner(queries, similarity, k)


INDEX = _ExactType()
