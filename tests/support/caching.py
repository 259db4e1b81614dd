"""Vectors that follow from their texts, and processes that put them into a cache or look for them.

``python -m tests.support.caching write FOLDER PREFIX PUTS LIMIT`` says ``0``, ``1``, … once each put has returned;
``… read FOLDER PREFIX SECONDS`` fails where a vector is not that of its text.
"""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path

import numpy as np

from embeval.core.embeddings import Vectors
from embeval.encoders.cache import TokenCounts, VectorCache, index

DIM = 24
PER_PUT = 60
KEY = "5c" * 32
DESCRIPTION = {"model": "org/model", "role": "query", "prompt": "query: ", "dtype": "float32"}


def vectors_of(texts: list[str], dim: int = DIM) -> Vectors:
    """float32 [n, dim] in [0, 1), from SHAKE-128 of each text."""
    data = b"".join(hashlib.shake_128(text.encode("utf-8", "surrogatepass")).digest(4 * dim) for text in texts)
    return (np.frombuffer(data, dtype="<u4").reshape(-1, dim) / 2**32).astype(np.float32)


def counts_of(texts: list[str]) -> TokenCounts:
    """Counts that follow from the texts too."""
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    digests = b"".join(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
    )
    keys = np.frombuffer(digests, dtype=np.uint8).reshape(-1, 16)
    return TokenCounts(lengths, lengths % 3, None, keys)


def batch(prefix: str, number: int) -> list[str]:
    """The texts of one put."""
    return [f"{prefix} {number} {place}" for place in range(PER_PUT)]


def refuse_wrong(cache: VectorCache, texts: list[str]) -> int:
    """How many of the texts are there; raises where one has another vector or other counts than its own."""
    found = cache.shelf(KEY, DESCRIPTION).get(texts)
    there = [texts[row] for row in found.rows]
    expected = counts_of(there)
    assert found.vectors.tobytes() == vectors_of(there).tobytes()
    assert found.counts.lengths.tolist() == expected.lengths.tolist()
    assert found.counts.keys.tobytes() == expected.keys.tobytes()
    return len(there)


def _write(folder: str, prefix: str, n_puts: str, max_bytes: str) -> None:
    index.INITIAL_MAP_BYTES = 1 << 16  # so that it has to grow, in this process and under others
    cache = VectorCache(Path(folder), max_bytes=int(max_bytes))
    shelf = cache.shelf(KEY, DESCRIPTION)
    for number in range(int(n_puts)):
        texts = batch(prefix, number)
        shelf.put(texts, vectors_of(texts), counts_of(texts))
        assert cache.trouble is None, cache.trouble
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


def _read(folder: str, prefix: str, seconds: str) -> None:
    index.INITIAL_MAP_BYTES = 1 << 16
    cache = VectorCache(Path(folder))
    until = time.monotonic() + float(seconds)
    n_found = number = 0
    while time.monotonic() < until:
        n_found += refuse_wrong(cache, [*batch(prefix, number % 200), *batch(prefix, number * 7 % 200)])
        number += 1
    assert cache.trouble is None, cache.trouble
    assert cache.n_damaged == 0
    sys.stdout.write(f"{n_found}\n")


if __name__ == "__main__":
    (_write if sys.argv[1] == "write" else _read)(*sys.argv[2:])
