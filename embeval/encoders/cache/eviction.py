"""Room for new vectors: whole shards go, the oldest over all shelves first."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from embeval.encoders.cache import records, shards
from embeval.encoders.cache.index import Tables
from embeval.encoders.cache.records import PREFIX_BYTES, SHELVES, VECTORS, ShardRecord

INDEX_BYTES_PER_VECTOR = 48
"""By how much the index may grow with a vector: an entry in a page two thirds full."""
INDEX_BYTES_PER_PUT = 16 * 4096
BLOCK_BYTES = 4096
"""What file systems give space in: the last block of a file counts in full."""


def make_room(tables: Tables, folder: Path, max_bytes: int, n_bytes: int, n_vectors: int) -> list[Path] | None:
    """Drops shards until ``n_bytes`` more fit. Files to be removed after the commit; None where they can't fit."""
    growth = n_vectors * INDEX_BYTES_PER_VECTOR + INDEX_BYTES_PER_PUT
    chosen = chosen_to_fit(tables, folder, max_bytes - n_bytes - growth)
    return None if chosen is None else [drop(tables, folder, shard) for shard in chosen]


def chosen_to_fit(tables: Tables, folder: Path, max_bytes: int) -> list[ShardRecord] | None:
    """The shards to be dropped, the oldest first, for at most that size to be left; None where all are not enough."""
    there = records.shards(tables)
    excess = _index_bytes(folder, max_bytes) + sum(map(_blocks, there)) - max_bytes
    n_chosen = 0
    while excess > 0 and n_chosen < len(there):
        excess -= _blocks(there[n_chosen])
        n_chosen += 1
    return there[:n_chosen] if excess <= 0 else None


def disk_bytes(path: Path) -> int:
    """Bytes of a file on disk, without holes in it."""
    found = path.stat()
    return min(found.st_size, found.st_blocks * 512)


def _blocks(shard: ShardRecord) -> int:
    return -(-shard.n_bytes // BLOCK_BYTES) * BLOCK_BYTES


def _index_bytes(folder: Path, max_bytes: int) -> int:
    """Bytes of the index as they count towards a limit.

    LMDB's file never shrinks. After a limit was lowered that must not push all vectors out: half the limit is theirs.
    """
    return min(sum(disk_bytes(path) for path in (folder / "index").iterdir()), max_bytes // 2)


def drop(tables: Tables, folder: Path, shard: ShardRecord) -> Path:
    """Forgets a shard and all that points at it; a shelf with nothing left goes too. The file to be removed."""
    path = shard.path(folder)
    n_removed = records.remove_places(tables, _keys_in(path, shard), shard.number)
    if n_removed < shard.n_live:  # the file doesn't tell all of it any more
        begin = shard.number.to_bytes(4, "little")
        rest = [key for key, value in tables.items(VECTORS) if value.startswith(begin)]
        n_removed += records.remove_places(tables, rest, shard.number)
    records.delete_shard(tables, shard.number)
    shelf = records.shelf_of(tables, shard.shelf)
    if shelf is not None:
        shelf = replace(shelf, n_vectors=shelf.n_vectors - n_removed)
        if any(other.shelf == shard.shelf for other in records.shards(tables)):
            tables.put(SHELVES, shard.shelf, shelf.dumps())
        else:
            tables.delete(SHELVES, shard.shelf)
    return path


def _keys_in(path: Path, shard: ShardRecord) -> list[bytes]:
    keys: list[bytes] = []
    with contextlib.suppress(OSError):
        for _, block in shards.read(path, np.arange(shard.n_rows), shard.dim):
            data = np.ascontiguousarray(block["text"][:, :PREFIX_BYTES]).tobytes()
            keys += [data[start : start + PREFIX_BYTES] for start in range(0, len(data), PREFIX_BYTES)]
    return keys


def left_over_files(tables: Tables, folder: Path) -> list[Path]:
    """Files of rows that the index doesn't know: a killed process left them. Sound inside a write transaction only."""
    known = {shard.path(folder) for shard in records.shards(tables)}
    return sorted(path for path in (folder / "shelves").glob("*/*.rows") if path not in known)


def sweep(tables: Tables, folder: Path, *, keep: Iterable[Path]) -> None:
    """Removes what killed processes left; ``keep`` has been dropped in this transaction and goes after its commit."""
    unlink(set(left_over_files(tables, folder)) - set(keep))


def unlink(paths: Iterable[Path]) -> None:
    """Removes files, and the folders that this empties."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()
