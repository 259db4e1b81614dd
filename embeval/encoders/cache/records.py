"""What the index says of shelves, of their files, and of each vector: in bytes and back."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from embeval.encoders.cache.index import Tables
from embeval.encoders.cache.shards import CRC_BYTES, Digests, row_type
from embeval.errors import StoreError

META, SHELVES, SHARDS, VECTORS, NOTES = b"m", b"s", b"f", b"v", b"n"
"""The tables."""
PREFIX_BYTES = 8
"""Bytes of a text's digest that the index knows; the row has all 16, so that no other text's vector can come out."""
MISSING = 0xFFFFFFFF
_ABSENT = struct.pack("<II", MISSING, MISSING)
_NEXT = b"next shard"
DAMAGED = "its index is damaged"

Places = npt.NDArray[np.uint32]
"""uint32 [n, 2]: shard and row of each text; ``MISSING`` where there is none."""


@dataclass(frozen=True)
class ShelfRecord:
    """A shelf: the vectors of one model in one role, under one prompt."""

    dim: int
    created: str
    """UTC."""
    written: str
    """UTC, last time."""
    n_vectors: int = 0
    description: Mapping[str, str] = field(default_factory=dict)

    def dumps(self) -> bytes:
        """As the index keeps it: JSON behind its crc32, since LMDB has no checksums."""
        data = json.dumps(asdict(self)).encode()
        return zlib.crc32(data).to_bytes(CRC_BYTES, "little") + data

    @classmethod
    def loads(cls, data: bytes) -> Self:
        """From what the index keeps. Raises ``StoreError`` where that has changed."""
        told, rest = data[:CRC_BYTES], data[CRC_BYTES:]
        if told != zlib.crc32(rest).to_bytes(CRC_BYTES, "little"):
            raise StoreError(DAMAGED)
        return cls(**json.loads(rest))


@dataclass(frozen=True)
class ShardRecord:
    """A file of rows."""

    number: int
    """Files are numbered in the order in which they were begun, over all shelves; no number comes twice."""
    shelf: bytes
    """Key of its shelf."""
    dim: int
    n_rows: int = 0
    """Rows that are whole; what follows in the file counts for nothing."""
    n_live: int = 0
    """Rows that the index points at."""

    LAYOUT = struct.Struct("<III32s")

    @property
    def n_bytes(self) -> int:
        """Bytes of its rows."""
        return self.n_rows * row_type(self.dim).itemsize

    def path(self, folder: Path) -> Path:
        """Its file below the folder of the cache."""
        return shard_path(folder, self.shelf, self.number)


def shard_path(folder: Path, shelf: bytes, number: int) -> Path:
    """The file of a shard."""
    return folder / "shelves" / shelf.hex()[:32] / f"{number:08d}.rows"


def shelf_of(tables: Tables, key: bytes) -> ShelfRecord | None:
    """A shelf, if there is one."""
    found = tables.get(SHELVES, key)
    return None if found is None else ShelfRecord.loads(found)


def shelves(tables: Tables) -> Iterator[tuple[bytes, ShelfRecord]]:
    """All shelves with their keys."""
    return ((key, ShelfRecord.loads(value)) for key, value in tables.items(SHELVES))


def shards(tables: Tables) -> list[ShardRecord]:
    """All shards, the oldest first."""
    return [_shard(key, value) for key, value in tables.items(SHARDS)]


def shard_of(tables: Tables, number: int) -> ShardRecord | None:
    """A shard, if there is one."""
    key = struct.pack(">I", number)
    found = tables.get(SHARDS, key)
    return None if found is None else _shard(key, found)


def set_shard(tables: Tables, shard: ShardRecord) -> None:
    """Sets or replaces a shard."""
    value = ShardRecord.LAYOUT.pack(shard.dim, shard.n_rows, shard.n_live, shard.shelf)
    tables.put(SHARDS, struct.pack(">I", shard.number), value)


def delete_shard(tables: Tables, number: int) -> None:
    """Forgets a shard; its number is not used again."""
    tables.delete(SHARDS, struct.pack(">I", number))


def new_shard(tables: Tables, shelf: bytes, dim: int) -> ShardRecord:
    """A shard with the next number, without rows."""
    number = int.from_bytes(tables.get(META, _NEXT) or b"", "big")
    tables.put(META, _NEXT, (number + 1).to_bytes(4, "big"))
    return ShardRecord(number, shelf, dim)


def places(tables: Tables, digests: Digests) -> Places:
    """Where the vectors of texts are."""
    get = tables.txn.get
    found = b"".join(get(VECTORS + prefix, _ABSENT) for prefix in prefixes(digests))
    if len(found) != len(digests) * len(_ABSENT):
        raise StoreError(DAMAGED)
    return np.frombuffer(found, dtype="<u4").reshape(-1, 2)


def set_places(tables: Tables, digests: Digests, shard: int, first_row: int) -> None:
    """Texts are in consecutive rows of a shard from now on."""
    value = struct.Struct("<II").pack
    # By key, so that neighbours in the tree are written together and its pages fill up.
    pairs = sorted((VECTORS + key, value(shard, first_row + row)) for row, key in enumerate(prefixes(digests)))
    tables.txn.cursor().putmulti(pairs)


def prefixes(digests: Digests) -> list[bytes]:
    """The part of each digest that is the key in the index."""
    data = np.ascontiguousarray(digests[:, :PREFIX_BYTES]).tobytes()
    return [data[start : start + PREFIX_BYTES] for start in range(0, len(data), PREFIX_BYTES)]


def remove_places(tables: Tables, keys: Sequence[bytes], shard: int) -> int:
    """Forgets texts as far as they are in that shard. How many were."""
    n_removed = 0
    begin = struct.pack("<I", shard)
    for key in sorted(keys):
        found = tables.get(VECTORS, key)
        if found is not None and found.startswith(begin):
            tables.delete(VECTORS, key)
            n_removed += 1
    return n_removed


def count_out(tables: Tables, shard: int, n_vectors: int) -> None:
    """So many vectors of a shard are not there any more."""
    found = shard_of(tables, shard)
    if found is None:
        return
    set_shard(tables, replace(found, n_live=found.n_live - n_vectors))
    shelf = shelf_of(tables, found.shelf)
    if shelf is not None:
        tables.put(SHELVES, found.shelf, replace(shelf, n_vectors=shelf.n_vectors - n_vectors).dumps())


def _shard(key: bytes, value: bytes) -> ShardRecord:
    if (len(key), len(value)) != (4, ShardRecord.LAYOUT.size):
        raise StoreError(DAMAGED)
    dim, n_rows, n_live, shelf = ShardRecord.LAYOUT.unpack(value)
    return ShardRecord(struct.unpack(">I", key)[0], shelf, dim, n_rows, n_live)
