"""Index kinds by name, and what each must offer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from embeval.core.ir import FloatRows
from embeval.core.protocols import Index
from embeval.core.specs import SimilarityName
from embeval.registry import Registry


@dataclass(frozen=True)
class Neighbours:
    """Best candidates per query, best first."""

    scores: FloatRows
    """float32 [Q, k], higher is better; -inf where there are fewer than k."""
    positions: npt.NDArray[np.int64]
    """int64 [Q, k]: place of the vector in the order of ``add``; -1 where there are fewer than k."""


class IndexType(Protocol):
    """What a module of ``embeval/retrieval/indexes`` holds under the name ``INDEX``."""

    summary: str
    """One line for listings."""
    exact: bool
    """Whether a search never misses a neighbour."""

    def create(self, dim: int, similarity: SimilarityName) -> Index:
        """An empty index for float32 vectors of that many dimensions."""


INDEXES: Registry[IndexType] = Registry(
    kind="index", package="embeval.retrieval.indexes", attribute="INDEX", group="embeval.indexes"
)
