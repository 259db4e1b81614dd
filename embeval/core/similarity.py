"""How two vectors are compared: one definition for pairs, for search and for scores in a run.

Higher is better always: distances are negated. Values are computed in float64 from float32 vectors and rounded
to float32 once, so that equal vectors give equal scores wherever they stand in a batch or a corpus.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Vectors, unit
from embeval.core.specs import SimilarityName

Scores = npt.NDArray[np.float32]


def cosine(a: Vectors, b: Vectors) -> Scores:
    """float32 [...], in [-1, 1]: cosine of float32 [..., d] and [..., d]; 0 where either vector is zero."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    norms = np.sqrt(np.einsum("...d,...d->...", x, x) * np.einsum("...d,...d->...", y, y))
    dots = np.einsum("...d,...d->...", x, y)
    values = np.divide(dots, norms, out=np.zeros_like(dots), where=norms != 0.0)
    return np.asarray(np.clip(values, -1.0, 1.0), dtype=np.float32)


def dot(a: Vectors, b: Vectors) -> Scores:
    """float32 [...]: inner product."""
    return np.asarray(np.einsum("...d,...d->...", a.astype(np.float64), b.astype(np.float64)), dtype=np.float32)


def euclidean(a: Vectors, b: Vectors) -> Scores:
    """float32 [...], at most 0: negated Euclidean distance."""
    gap = a.astype(np.float64) - b.astype(np.float64)
    return np.asarray(-np.sqrt(np.einsum("...d,...d->...", gap, gap)), dtype=np.float32)


def manhattan(a: Vectors, b: Vectors) -> Scores:
    """float32 [...], at most 0: negated sum of absolute differences."""
    return np.asarray(-np.abs(a.astype(np.float64) - b.astype(np.float64)).sum(axis=-1), dtype=np.float32)


SIMILARITIES: dict[SimilarityName, Callable[[Vectors, Vectors], Scores]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}
"""Every similarity by name."""


def for_index(vectors: Vectors, similarity: SimilarityName) -> Vectors:
    """The vectors as an index wants them: unit length for cosine, untouched otherwise."""
    return unit(vectors) if similarity == "cosine" else vectors
