"""What the approximate FAISS kinds share: training, adding, searching, files and devices.

Training is seeded and deterministic. FAISS fills short lists with id -1 and drops NaN without a word; neither gets
past this file. Source: faiss 1.15.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from embeval.core import strict_json
from embeval.core.embeddings import Vectors, refuse_nonfinite
from embeval.core.similarity import for_index
from embeval.core.specs import SimilarityName
from embeval.errors import StoreError
from embeval.retrieval.kinds import Neighbours

SIMILARITIES: tuple[SimilarityName, ...] = ("cosine", "dot", "euclidean")
"""What FAISS has approximate kinds for."""


class FaissIndex:
    """A FAISS index of float vectors. ``settled`` holds its options, ``n_training`` what it learns from."""

    def __init__(
        self,
        engine: Any,
        similarity: SimilarityName,
        *,
        settled: Mapping[str, strict_json.Json],
        candidates_per_hit: int,
        n_training: int = 0,
        built_by_one_thread: bool = False,
    ) -> None:
        self.engine = engine
        self.settled, self.candidates_per_hit, self.n_training = settled, candidates_per_hit, n_training
        self._similarity: SimilarityName = similarity
        self._built_by_one_thread = built_by_one_thread

    def __len__(self) -> int:
        return int(self.engine.ntotal)

    def train(self, sample: Vectors) -> None:
        refuse_nonfinite(sample, by="The vectors to train on")
        self.engine.train(np.ascontiguousarray(for_index(sample, self._similarity)))

    def add(self, vectors: Vectors) -> None:
        refuse_nonfinite(vectors, by="The vectors to index")
        with _threads(1 if self._built_by_one_thread else None):
            self.engine.add(np.ascontiguousarray(for_index(vectors, self._similarity)))

    def search(self, queries: Vectors, k: int) -> Neighbours:
        refuse_nonfinite(queries, by="The queries")
        found = min(k, len(self))
        if not found or not len(queries):
            return nobody(len(queries), k)
        scores, positions = self.engine.search(np.ascontiguousarray(for_index(queries, self._similarity)), found)
        if self._similarity == "euclidean":
            scores = -np.sqrt(np.maximum(scores, 0.0))  # FAISS gives squared distances
        return padded(scores, positions, k)

    def n_bytes(self) -> int:
        import faiss

        count = 0

        def see(data: bytes) -> None:
            nonlocal count
            count += len(data)

        writer = faiss.PyCallbackIOWriter(see)  # type: ignore[attr-defined]  # FAISS's types don't list it
        self._write_to(writer)
        del writer  # hands over what it still holds
        return count

    def write(self, path: Path) -> None:
        self._write_to(str(path))

    def _write_to(self, target: Any) -> None:
        import faiss

        faiss.write_index(self.engine, target)

    def to_device(self, device: str) -> None:
        self.engine = to_gpu_if_there(self.engine, device)


def to_gpu_if_there(engine: Any, device: str) -> Any:
    """The FAISS index on ``cuda`` or ``cuda:1``; as it is where FAISS has no GPU part, no such GPU or no such kind."""
    import faiss

    if not device.startswith("cuda") or not hasattr(faiss, "StandardGpuResources"):
        return engine
    number = int(device.partition(":")[2] or 0)
    if number >= faiss.get_num_gpus():
        return engine
    try:
        return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), number, engine)
    except RuntimeError:  # this kind has no GPU version
        return engine


def metric(similarity: SimilarityName) -> int:
    """The FAISS metric: inner product of unit vectors for cosine."""
    import faiss

    return int(faiss.METRIC_L2 if similarity == "euclidean" else faiss.METRIC_INNER_PRODUCT)


def nobody(n_queries: int, k: int) -> Neighbours:
    """No neighbours at all."""
    return Neighbours(np.full((n_queries, k), -np.inf, dtype=np.float32), np.full((n_queries, k), -1, dtype=np.int64))


def padded(scores: Any, positions: Any, k: int) -> Neighbours:
    """FAISS's answer [Q, found] as [Q, k], with -inf and -1 where there is nothing."""
    scores, positions = scores.astype(np.float32), positions.astype(np.int64)
    scores[positions < 0] = -np.inf
    padding = ((0, 0), (0, k - scores.shape[1]))
    return Neighbours(np.pad(scores, padding, constant_values=-np.inf), np.pad(positions, padding, constant_values=-1))


def read(path: Path, kind: str, classes: tuple[str, ...], dim: int, n: int, *, mapped: bool = False) -> Any:
    """The FAISS index of a file. Raises ``StoreError`` where it is not what it should be.

    ``mapped`` leaves inverted lists on disk and reads those that a search visits.
    """
    import faiss

    reader = faiss.read_index_binary if kind == "binary" else faiss.read_index
    flags = faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY if mapped else 0
    try:
        engine = reader(str(path), flags)
    except RuntimeError as error:
        last = str(error).strip().splitlines()[-1]
        raise StoreError(f"{path} is no FAISS index: {last}\nBuild the index again.") from None
    if type(engine).__name__ not in classes or engine.d != dim or engine.ntotal != n:
        raise StoreError(
            f"{path} holds {type(engine).__name__} with {engine.ntotal} vectors of {engine.d} dimensions, not an index "
            f"of kind {kind!r} with {n} of {dim}.\nBuild the index again."
        )
    return engine


@contextmanager
def _threads(n: int | None) -> Iterator[None]:
    import faiss

    if n is None:
        yield
        return
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
