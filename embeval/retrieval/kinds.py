"""Index kinds by name, and what each must offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from embeval.core import border, strict_json
from embeval.core.border import BORDER
from embeval.core.embeddings import Vectors
from embeval.core.ir import FloatRows
from embeval.core.protocols import Index
from embeval.core.specs import SimilarityName
from embeval.errors import ConfigError
from embeval.registry import Registry


@dataclass(frozen=True)
class Neighbours:
    """Best candidates per query, best first."""

    scores: FloatRows
    """float32 [Q, k], higher is better; -inf where there are fewer than k."""
    positions: npt.NDArray[np.int64]
    """int64 [Q, k]: place of the vector in the order of ``add``; -1 where there are fewer than k."""


class Candidates(NamedTuple):
    """Pairs of a query and a document that may belong to the query's best."""

    rows: npt.NDArray[np.int64]
    """int64 [n]: place of the query."""
    positions: npt.NDArray[np.int64]
    """int64 [n]: place of the document in the chunk."""


class Scanner(Protocol):
    """An engine that looks through chunks of a corpus for the same queries. Never misses a neighbour."""

    def scan(self, chunk: Vectors, best: FloatRows) -> Iterator[Candidates]:
        """Every document of float32 [n, d] that may be among the k best, and few others.

        ``best`` float32 [Q, k] are the k best scores so far in any order, -inf where there are fewer; it may be
        changed between two yields, and is read again then. NaN and Inf in the chunk are refused.
        """


class Approximate(Index, Protocol):
    """An index of a kind that may miss neighbours. It is trained once, before the first ``add``."""

    candidates_per_hit: int
    """How many times k is fetched, so that the k best by their true scores are likely among them."""
    settled: Mapping[str, strict_json.Json]
    """The options as they are used, those that were null worked out."""
    n_training: int
    """How many vectors the training wants to see; 0 where nothing is trained."""

    def train(self, sample: Vectors) -> None:
        """Learns from float32 [n, d]. Same sample, same index."""

    def n_bytes(self) -> int:
        """Bytes of the index as it would lie on disk, without the vectors that hits are scored by."""

    def write(self, path: Path) -> None:
        """Writes it to a file."""

    def to_device(self, device: str) -> None:
        """Moves it to ``cuda`` or ``cuda:1`` if this FAISS can; to stay on the CPU is no error."""


@dataclass(frozen=True, kw_only=True)
class NoOptions:
    """Options of a kind that has none."""

    __pydantic_config__ = BORDER


@runtime_checkable
class ExactType(Protocol):
    """What a module of ``embeval/retrieval/indexes`` holds under the name ``INDEX`` where its kind is exact."""

    summary: str
    """One line for listings."""
    exact: bool
    """True: a search never misses a neighbour."""

    def create(self, dim: int, similarity: SimilarityName) -> Index:
        """An empty index for float32 vectors of that many dimensions."""


@runtime_checkable
class Scanning(Protocol):
    """An exact kind with an engine of its own for a corpus that passes by."""

    def scanner(self, queries: Vectors, similarity: SimilarityName, k: int) -> Scanner | None:
        """The engine for these queries float32 [Q, d]; None where the kind has none for the similarity."""


@runtime_checkable
class ApproximateType(Protocol):
    """What a module of ``embeval/retrieval/indexes`` holds under the name ``INDEX`` where its kind may miss some."""

    summary: str
    """One line for listings."""
    exact: bool
    """False: a search may miss neighbours."""
    options: type[Any]
    """Frozen border dataclass of its options."""
    similarities: tuple[SimilarityName, ...]
    """What it can compare by."""

    def plan(self, dim: int, similarity: SimilarityName, options: Any, n: int) -> Approximate:
        """An empty index for ``n`` vectors. Raises ``ConfigError`` for options that don't fit the dimensions."""

    def read(self, path: Path, dim: int, similarity: SimilarityName, options: Any, n: int) -> Approximate:
        """The index that ``Approximate.write`` wrote. FAISS trusts its files, so the caller has checked it.

        Raises ``StoreError`` where the file holds another kind, other dimensions or another number of vectors.
        """


IndexType = ExactType | ApproximateType

INDEXES: Registry[IndexType] = Registry(
    kind="index", package="embeval.retrieval.indexes", attribute="INDEX", group="embeval.indexes"
)
"""One file per kind of index. Each holds ``INDEX``, an object that fits ``ExactType`` or ``ApproximateType``."""


def read_options(kind: str, values: Mapping[str, strict_json.Json]) -> Any:
    """The options of a kind as its dataclass. Raises ``ConfigError`` naming the option."""
    index_type = INDEXES.get(kind)
    options = index_type.options if isinstance(index_type, ApproximateType) else NoOptions
    try:
        return border.load(options, dict(values))
    except border.BorderError as error:
        problem = error.problems[0]
        raise ConfigError(f"Index {kind!r}: {problem}", key=problem.path) from None


def refuse_similarity(kind: str, similarity: SimilarityName) -> None:
    """Raises ``ConfigError`` where a kind can't compare by a similarity."""
    index_type = INDEXES.get(kind)
    if isinstance(index_type, ApproximateType) and similarity not in index_type.similarities:
        raise ConfigError(
            f"Index {kind!r} can't compare by {similarity}, only by {', '.join(index_type.similarities)}.\n"
            "Use the index exact, or another similarity.",
            key=("index",),
        )
