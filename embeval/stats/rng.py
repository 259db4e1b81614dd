"""Random numbers that depend on a seed and a purpose, and on nothing else."""

from __future__ import annotations

import hashlib

import numpy as np


def seed_sequence(seed: int, *purpose: str) -> np.random.SeedSequence:
    """A SeedSequence of its own for each (seed, purpose): streams of different purposes are independent.

    No global state is read or set, so results don't depend on what ran before, in which order, or where.
    """
    words = hashlib.sha256("\0".join(purpose).encode("utf-8")).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(words, dtype=np.uint32).tolist()])
