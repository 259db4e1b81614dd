"""Search by an index that may miss neighbours.

The vectors go to disk once; the index finds candidates, and these are scored by their vectors like any other pair.
So a score means the same as in exact search, whatever the index keeps of a vector, and only which documents are found
is approximate.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.core.embeddings import Vectors
from embeval.core.progress import Progress, Silent
from embeval.core.specs import SimilarityName
from embeval.retrieval.kinds import (
    INDEXES,
    Approximate,
    ApproximateType,
    Neighbours,
    read_options,
    refuse_similarity,
)
from embeval.retrieval.search import best_of, pair_scores
from embeval.retrieval.vectors_file import VectorsWriter, open_vectors

CHUNK = 16_384
"""Vectors added to an index at once: 25 MB at 384 dimensions."""
QUERIES_AT_ONCE = 1_024
"""Queries whose candidates are held at once."""
SEED = 0
"""Seed of the sample that an index is trained on."""


@dataclass(frozen=True)
class IndexFacts:
    """What an index took."""

    n_bytes: int
    """Bytes of the index, without the vectors that hits are scored by."""
    build_s: float
    """Seconds of training and adding."""
    search_s: float
    """Seconds of searching, scoring the candidates included."""
    settled: Mapping[str, strict_json.Json]
    """Its options as they were used, those that were null worked out."""


def search_corpus(
    chunks: Iterable[Vectors],
    queries: Vectors,
    *,
    k: int,
    kind: str,
    similarity: SimilarityName,
    tie_keys: npt.NDArray[np.int64],
    options: Mapping[str, strict_json.Json] | None = None,
    device: str = "cpu",
    folder: Path | None = None,
    progress: Progress | None = None,
) -> tuple[Neighbours, IndexFacts]:
    """The k best of a corpus that an approximate index of ``kind`` finds for float32 [Q, d], and what it took.

    ``chunks`` float32 [n, d] come by once and lie in a temporary file, in ``folder`` if given, until this returns.
    ``tie_keys`` int64 [N] as for ``TopK``. Raises ``ConfigError`` for options or a similarity that can't be.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    check(kind, similarity, queries.shape[1], options or {})
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "vectors.npy"
        with VectorsWriter(path, queries.shape[1]) as writer:
            for chunk in chunks:
                writer.append(chunk)
        vectors = open_vectors(path)
        began = time.perf_counter()
        index = build(vectors, kind=kind, similarity=similarity, options=options or {}, progress=progress)
        built, n_bytes = time.perf_counter(), index.n_bytes()
        moved = time.perf_counter()
        index.to_device(device)
        found = search(index, vectors, queries, k=k, similarity=similarity, tie_keys=tie_keys)
        done = time.perf_counter()
        return found, IndexFacts(n_bytes, built - began, done - moved, index.settled)


def check(kind: str, similarity: SimilarityName, dim: int, options: Mapping[str, strict_json.Json]) -> None:
    """Raises ``ConfigError`` where no index of that kind can be built so, before any vector is made.

    ``ValueError`` for an exact kind, which ``TopK`` searches.
    """
    _planned(kind, similarity, dim, options, n=1)


def build(
    vectors: Vectors,
    *,
    kind: str,
    similarity: SimilarityName,
    options: Mapping[str, strict_json.Json],
    progress: Progress | None = None,
) -> Approximate:
    """An index over float32 [n, d], trained on a seeded sample of them. Same vectors, same index."""
    progress = progress or Silent()
    index = _planned(kind, similarity, vectors.shape[1], options, len(vectors))
    if not len(vectors):
        return index
    sample = np.arange(len(vectors))
    if len(vectors) > index.n_training:
        sample = np.sort(np.random.default_rng(SEED).choice(len(vectors), index.n_training, replace=False))
    if index.n_training:
        index.train(np.asarray(vectors[sample]))
    progress.start(f"index {kind}", len(vectors), "vectors")
    for start in range(0, len(vectors), CHUNK):
        part = np.asarray(vectors[start : start + CHUNK])
        index.add(part)
        progress.advance(len(part))
    progress.finish()
    return index


def search(
    index: Approximate,
    vectors: Vectors,
    queries: Vectors,
    *,
    k: int,
    similarity: SimilarityName,
    tie_keys: npt.NDArray[np.int64],
) -> Neighbours:
    """The k best among an index's candidates by their true scores, computed from float32 ``vectors`` [N, d]."""
    plain = np.asarray(vectors)  # a plain view of a memory map, which is quicker to pick from
    parts = []
    for start in range(0, max(len(queries), 1), QUERIES_AT_ONCE):
        some = queries[start : start + QUERIES_AT_ONCE]
        found = index.search(some, min(k * index.candidates_per_hit, max(len(plain), 1)))
        rows, places = np.nonzero(found.positions >= 0)
        positions = found.positions[rows, places]
        scores = np.full(found.positions.shape, -np.inf, dtype=np.float32)
        scores[rows, places] = pair_scores(some, rows, plain, positions, similarity)
        parts.append(best_of(scores, found.positions, tie_keys, k))
    return Neighbours(
        np.concatenate([part.scores for part in parts]), np.concatenate([part.positions for part in parts])
    )


def _planned(
    kind: str, similarity: SimilarityName, dim: int, options: Mapping[str, strict_json.Json], n: int
) -> Approximate:
    index_type = INDEXES.get(kind)
    if not isinstance(index_type, ApproximateType):
        raise ValueError(f"{kind} is exact: it is searched by TopK")
    refuse_similarity(kind, similarity)
    return index_type.plan(dim, similarity, read_options(kind, options), max(n, 1))
