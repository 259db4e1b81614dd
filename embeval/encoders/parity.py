"""How near the vectors of one way to run a model are to those of another."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from embeval.core.embeddings import Vectors, unit
from embeval.core.similarity import SIMILARITIES

NEIGHBOURS = 10
"""Nearest neighbours that are compared."""


@dataclass(frozen=True, kw_only=True)
class Parity:
    """Differences between two sets of vectors of the same texts."""

    n_texts: int
    """Texts compared; those without a vector are left out."""
    cosine_min: float
    """Smallest cosine between the two vectors of a text."""
    cosine_mean: float
    """Their mean."""
    max_abs: float
    """Largest difference in any dimension, of vectors scaled to length 1."""
    top_10_overlap: float
    """Share of the 10 nearest neighbours of each text, among the texts, that both sides have in common; mean."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What is near enough."""

    cosine_min: float
    """No text may be farther from itself."""
    top_10_overlap: float
    """No less of the neighbours may stay the same."""

    def broken_by(self, parity: Parity) -> list[str]:
        """What of it a comparison breaks, in words."""
        return below(self, parity)


def below(bounds: Any, found: Any) -> list[str]:
    """Every field of ``bounds`` that the field of that name in ``found`` is less than, in words."""
    told = []
    for name, least in asdict(bounds).items():
        value = getattr(found, name)
        if not value >= least:  # so that NaN breaks it too
            told.append(f"{name} {value:.5f} is below {least:g}")
    return told


BOUNDS = {
    "float32": Bounds(cosine_min=0.9999, top_10_overlap=0.99),
    "bfloat16": Bounds(cosine_min=0.999, top_10_overlap=0.95),
    "float16": Bounds(cosine_min=0.999, top_10_overlap=0.95),
    "int8": Bounds(cosine_min=0.97, top_10_overlap=0.80),
}
"""For each number format, against float32: what a sound model of a few layers keeps. A score on real data says more."""


def compare(reference: Vectors, other: Vectors) -> Parity:
    """Two float32 [n, d] side by side. Raises ``ValueError`` where their shapes differ or no text has a vector."""
    if reference.shape != other.shape:
        raise ValueError(f"vectors of shape {list(other.shape)} can't be compared with {list(reference.shape)}")
    present = reference.any(axis=1) | other.any(axis=1)
    left, right = unit(reference[present]), unit(other[present])
    if not len(left):
        raise ValueError("no text has a vector")
    cosines = SIMILARITIES["cosine"](left, right)
    return Parity(
        n_texts=len(left),
        cosine_min=float(cosines.min()),
        cosine_mean=float(cosines.mean()),
        max_abs=float(np.abs(left - right).max()),
        top_10_overlap=_overlap(left, right),
    )


def _overlap(left: Vectors, right: Vectors) -> float:
    k = min(NEIGHBOURS, len(left) - 1)
    if k < 1:
        return 1.0
    shared = [len(np.intersect1d(a, b)) for a, b in zip(_nearest(left, k), _nearest(right, k), strict=True)]
    return float(np.mean(shared) / k)


def _nearest(vectors: Vectors, k: int) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    return np.argpartition(-scores, k - 1, axis=1)[:, :k]
