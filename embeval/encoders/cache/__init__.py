"""Vectors that were computed before, on this node's disk: one folder for all models, of a limited size.

A vector is found again under the digest of all that may change it (the shelf's key) together with its text. So a
vector of another role, prompt, revision or dtype is never taken for it, and a changed weights file finds an empty
shelf. What is there is given back bit for bit, or not at all: each row carries a checksum and the digest of its text.

On disk: ``index/`` is an LMDB environment that says where each vector is; ``shelves/<key>/<number>.rows`` are
append-only files of rows (``shards.py``). A row is on disk before the index points at it, so a kill at any moment
leaves what was acknowledged, and nothing else. Several processes may read and write at once.
"""

from __future__ import annotations

import os

from embeval.encoders import locate
from embeval.encoders.cache.sizes import parse_size
from embeval.encoders.cache.vectors import DEFAULT_MAX_BYTES, Found, Shelf, TokenCounts, VectorCache

__all__ = ["DEFAULT_MAX_BYTES", "LIMIT_VARIABLE", "Found", "Shelf", "TokenCounts", "VectorCache", "open_cache"]

LIMIT_VARIABLE = "EMBEVAL_CACHE_LIMIT"


def open_cache() -> VectorCache:
    """The user's cache: below ``cache_folder()``, limited to ``EMBEVAL_CACHE_LIMIT``, else 20 GiB.

    Raises ``ConfigError`` where the limit is no size. Touches no disk.
    """
    limit = os.environ.get(LIMIT_VARIABLE)
    max_bytes = parse_size(limit, LIMIT_VARIABLE) if limit else DEFAULT_MAX_BYTES
    return VectorCache(locate.cache_folder() / "vectors", max_bytes=max_bytes)
