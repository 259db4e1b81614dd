"""Vectors as a vector store keeps them when it saves memory, given back as float32 so that everything can compute on.

Both kinds need nothing but the vector itself, so a vector's code does not hang on the corpus around it:

- ``int8``: each vector is scaled by its own largest absolute value to whole numbers from -127 to 127. What comes back
  is these numbers times the scale. A quarter of float32's bytes, and 4 more for the scale.
- ``binary``: the sign of each dimension, +1 or -1; 0 counts as -1, as in sentence-transformers 6.2
  ``quantize_embeddings``. A thirty-second of the bytes. The dot product of two such vectors of length d is d minus
  twice the number of differing bits, so it ranks as Hamming distance does.

Zero vectors stay zero: an empty text is near to nothing, whatever it is stored as.
"""

from __future__ import annotations

import numpy as np

from embeval.core.embeddings import Vectors, zero_rows
from embeval.core.specs import Quantization

LEVELS = 127
"""Steps of int8 on either side of 0; -128 is left out so that both sides are alike."""


def coded(vectors: Vectors, kind: Quantization) -> Vectors:
    """float32 [n, d]: what is left of float32 [n, d] once stored as ``kind``."""
    if kind == "binary":
        signs = np.where(vectors > 0, np.float32(1.0), np.float32(-1.0))
        signs[zero_rows(vectors)] = 0.0
        return np.asarray(signs)
    scale = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0) / np.float32(LEVELS)
    steps = np.rint(np.divide(vectors, scale, out=np.zeros_like(vectors), where=scale > 0))
    return np.asarray((steps * scale).astype(np.float32))


def bytes_per_vector(dim: int, kind: Quantization | None) -> int:
    """What a vector store keeps per vector."""
    if kind == "binary":
        return -(-dim // 8)
    return dim + 4 if kind == "int8" else 4 * dim
