"""Inverted lists: how many, how many are visited, and how they are learned. Shared by ``ivf`` and ``ivf_pq``."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from embeval.core.embeddings import Vectors
from embeval.core.specs import SimilarityName
from embeval.retrieval.indexes._engine import FaissIndex

POINTS_PER_LIST = 39
"""Vectors that a list should have to learn its centre from. Source: faiss ``ClusteringParameters``."""
SAMPLE_PER_LIST = 64
"""Vectors that the training is given per list."""
VISITED = 16
"""One list in so many is visited, unless ``nprobe`` says otherwise."""


class Lists(NamedTuple):
    """How a corpus is cut."""

    n: int
    """Lists."""
    visited: int
    """Lists that a search visits."""


def cut(n: int, nlist: int | None, nprobe: int | None) -> Lists:
    """Lists for ``n`` vectors: as asked for, but never more than there are vectors.

    By default 4 times the square root of n, with at least 39 vectors each, of which a sixteenth is visited. Source:
    faiss wiki, "Guidelines to choose an index".
    """
    lists = nlist or min(round(4 * math.sqrt(n)), n // POINTS_PER_LIST)
    lists = max(1, min(lists, n))
    return Lists(lists, min(nprobe or max(1, math.ceil(lists / VISITED)), lists))


def check(nlist: int | None, nprobe: int | None, rescore: int) -> None:
    """Raises ``ValueError`` for numbers that can't be."""
    for name, value in (("nlist", nlist), ("nprobe", nprobe), ("rescore", rescore)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    if nlist is not None and nprobe is not None and nprobe > nlist:
        raise ValueError(f"nprobe must be at most nlist, {nlist}, not {nprobe}")


class ListIndex(FaissIndex):
    """An inverted file. What it learns from is repeated where it is too little, so that tiny corpora work."""

    def __init__(
        self, engine: Any, similarity: SimilarityName, *, lists: Lists, n_centres: int = 1, **rest: Any
    ) -> None:
        engine.nprobe = lists.visited
        if hasattr(engine, "cp"):
            engine.cp.min_points_per_centroid = 1  # else FAISS writes warnings to the terminal
            engine.cp.max_points_per_centroid = SAMPLE_PER_LIST
        self._at_least = max(lists.n, n_centres)
        n_training = SAMPLE_PER_LIST * self._at_least
        super().__init__(engine, similarity, n_training=n_training, **rest)

    def train(self, sample: Vectors) -> None:
        if 0 < len(sample) < self._at_least:
            sample = np.tile(sample, (-(-self._at_least // len(sample)), 1))
        super().train(sample)
