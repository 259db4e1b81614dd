"""Sums of how often items were drawn, along an order of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.float32]
"""Whole numbers small enough to be exact in float32."""
EXACT = 1 << 24
"""Up to here float32 holds every whole number."""

STRIDE = 12
"""Rows that are added up apart: in a sum over rows numpy starts anew for each, and takes twice as long."""


def cumulated(drawn: Whole) -> Whole:
    """float32 [n, R]: sums over the rows up to each, as ``numpy.cumsum`` along the first axis."""
    n, width = drawn.shape
    n_runs = -(-n // STRIDE)
    runs = np.zeros((n_runs * STRIDE, width), dtype=np.float32)
    runs[:n] = drawn
    runs = runs.reshape(n_runs, STRIDE, width)
    for place in range(1, STRIDE):
        runs[:, place] += runs[:, place - 1]
    runs[1:] += np.cumsum(runs[:-1, -1], axis=0)[:, None]
    return np.asarray(runs.reshape(-1, width)[:n])
