"""What is in the cache, what of it may go, and whether it is as it was written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from embeval.core.progress import Progress
from embeval.encoders.cache import eviction, records, shards
from embeval.encoders.cache.index import Tables
from embeval.encoders.cache.records import PREFIX_BYTES, VECTORS, ShardRecord
from embeval.encoders.cache.vectors import VectorCache
from embeval.errors import StoreError

REMOVED = ".removed"
"""Ending of the name of a cache that is on its way out."""

T = TypeVar("T")


@dataclass(frozen=True)
class ShelfStats:
    """A shelf and its size."""

    key: str
    """64 hex digits."""
    description: Mapping[str, str]
    """Model, role, prompt, dtype, as far as they are known."""
    dim: int
    n_vectors: int
    n_bytes: int
    """Bytes of its files."""
    created: str
    """UTC."""
    written: str
    """UTC, last time."""


@dataclass(frozen=True)
class Stats:
    """The cache and its size."""

    folder: Path
    n_bytes: int
    """Bytes of all files, the index among them."""
    max_bytes: int
    """The limit."""
    shelves: tuple[ShelfStats, ...]
    """The largest first."""


@dataclass(frozen=True)
class Pruned:
    """What went, or would go."""

    n_vectors: int
    n_bytes: int
    """Bytes of files."""


@dataclass(frozen=True)
class BadShelf:
    """A shelf with vectors that are not as they were written."""

    key: str
    description: Mapping[str, str]
    n_bad: int
    """How many."""


@dataclass(frozen=True)
class Verified:
    """What reading everything came to."""

    n_vectors: int
    """Vectors read."""
    bad: tuple[BadShelf, ...]
    left_over: tuple[Path, ...]
    """Files that a killed process left; harmless, and removed by the next ``put``."""
    n_left_over_bytes: int
    """Bytes of these, and behind the end of files; harmless."""


@dataclass(frozen=True)
class _Entries:
    """The index of vectors as arrays, by shard and row."""

    keys: npt.NDArray[np.uint8]
    """uint8 [n, 8]."""
    places: records.Places
    bounds: Mapping[int, slice]
    """Where each shard's are."""


def stats(cache: VectorCache) -> Stats:
    """What is there. Raises ``StoreError`` where the cache can't be read."""
    both = _read(cache, lambda tables: (list(records.shelves(tables)), records.shards(tables)))
    shelves, there = both or ([], [])
    sizes: dict[bytes, int] = {}
    for shard in there:
        sizes[shard.shelf] = sizes.get(shard.shelf, 0) + shard.n_bytes
    found = [
        ShelfStats(
            key.hex(), shelf.description, shelf.dim, shelf.n_vectors, sizes.get(key, 0), shelf.created, shelf.written
        )
        for key, shelf in shelves
    ]
    found.sort(key=lambda shelf: (-shelf.n_bytes, shelf.key))
    return Stats(cache.folder, _disk_bytes(cache.folder), cache.max_bytes, tuple(found))


def prune_models(cache: VectorCache, model: str, *, dry_run: bool = False) -> Pruned:
    """Drops the shelves of models called so, or with it in the name."""

    def goes(tables: Tables) -> list[ShardRecord]:
        chosen = {
            key
            for key, shelf in records.shelves(tables)
            if model.casefold() in shelf.description.get("model", "").casefold()
        }
        return [shard for shard in records.shards(tables) if shard.shelf in chosen]

    return _prune(cache, goes, dry_run)


def prune_to(cache: VectorCache, max_bytes: int, *, dry_run: bool = False) -> Pruned:
    """Drops the oldest shards until what is left, index included, has at most that size; all where that can't be."""

    def goes(tables: Tables) -> list[ShardRecord]:
        chosen = eviction.chosen_to_fit(tables, cache.folder, max_bytes)
        return records.shards(tables) if chosen is None else chosen

    return _prune(cache, goes, dry_run)


def prune_all(cache: VectorCache, *, dry_run: bool = False) -> Pruned:
    """Removes the whole folder, readable or not; processes that use it start a new one."""
    import secrets
    import shutil

    import lmdb

    _refuse_no_folder(cache.folder)
    if not dry_run:
        for left in cache.folder.parent.glob(f".{cache.folder.name}.*{REMOVED}"):  # by a process that was killed at it
            shutil.rmtree(left, ignore_errors=True)
    n_vectors = 0
    with contextlib.suppress(OSError, StoreError, lmdb.Error):  # of a broken one, nobody knows how many
        n_vectors = cache.index.read(lambda tables: sum(shelf.n_vectors for _, shelf in records.shelves(tables))) or 0
    freed = Pruned(n_vectors, _disk_bytes(cache.folder))
    if dry_run or not cache.folder.exists():
        return freed
    away = cache.folder.with_name(f".{cache.folder.name}.{secrets.token_hex(4)}{REMOVED}")
    cache.index.close()
    try:
        # In one step, so that nobody meets half of it. Others notice that their index has gone.
        cache.folder.rename(away)
        shutil.rmtree(away)
    except OSError as error:
        raise StoreError(f"{error.filename}: can't be removed ({error.strerror}).") from None
    return freed


def verify(cache: VectorCache, progress: Progress, *, fix: bool = False) -> Verified:
    """Reads every vector. ``fix`` forgets those that are not as they were written, and removes what is left over.

    Raises ``StoreError`` where the cache can't be read.
    """
    stats(cache)  # refuses where what is known of shelves has changed
    there = _read(cache, records.shards)
    entries = _read(cache, _entries)
    if not there or entries is None:
        return Verified(0, (), *_left_over(cache, fix))
    progress.start("Reading vectors", len(entries.places), "vectors")
    bad: dict[bytes, BadShelf] = {}
    for shard in there:
        if found := _bad_in(cache, shard, entries, progress):
            told = _confirmed(cache, shard, found, fix)
            n_before = bad[shard.shelf].n_bad if shard.shelf in bad else 0
            if told is not None:
                bad[shard.shelf] = BadShelf(shard.shelf.hex(), told, n_before + len(found))
    progress.finish()
    return Verified(len(entries.places), tuple(bad.values()), *_left_over(cache, fix))


def _confirmed(cache: VectorCache, shard: ShardRecord, keys: list[bytes], fix: bool) -> Mapping[str, str] | None:
    """The description of the shelf, with ``fix`` once those vectors are forgotten; None where the shard has gone."""

    def work(tables: Tables) -> Mapping[str, str] | None:
        shelf = records.shelf_of(tables, shard.shelf)
        if records.shard_of(tables, shard.number) is None or shelf is None:
            return None
        if fix:
            records.count_out(tables, shard.number, records.remove_places(tables, keys, shard.number))
        return shelf.description

    return _write(cache, work) if fix else _read(cache, work)


def _entries(tables: Tables) -> _Entries:
    keys, values = bytearray(), bytearray()
    for key, value in tables.items(VECTORS):
        keys += key
        values += value
    if len(values) != len(keys):  # 8 bytes each
        raise StoreError(records.DAMAGED)
    places = np.frombuffer(bytes(values), dtype="<u4").reshape(-1, 2)
    order = np.lexsort((places[:, 1], places[:, 0]))
    places = places[order]
    numbers, starts, counts = np.unique(places[:, 0], return_index=True, return_counts=True)
    bounds = {
        int(number): slice(int(start), int(start + count))
        for number, start, count in zip(numbers, starts, counts, strict=True)
    }
    return _Entries(np.frombuffer(bytes(keys), dtype=np.uint8).reshape(-1, PREFIX_BYTES)[order], places, bounds)


def _bad_in(cache: VectorCache, shard: ShardRecord, entries: _Entries, progress: Progress) -> list[bytes]:
    """Keys of the vectors of a shard that are not as they were written."""
    at = entries.bounds.get(shard.number)
    if at is None:
        return []
    keys, rows = entries.keys[at], entries.places[at, 1].astype(np.int64)
    good = np.zeros(len(keys), dtype=np.bool_)
    with contextlib.suppress(OSError):
        for part, block in shards.read(shard.path(cache.folder), rows, shard.dim):
            good[part] = shards.sound(block) & (block["text"][:, :PREFIX_BYTES] == keys[part]).all(axis=1)
            progress.advance(len(block))
    return [key.tobytes() for key in keys[~good]]


def _left_over(cache: VectorCache, fix: bool) -> tuple[tuple[Path, ...], int]:
    """Left-over files, and all bytes that are left over; with ``fix`` they are removed."""
    if not cache.index.file.exists():
        return (), 0

    def work(tables: Tables) -> tuple[tuple[Path, ...], int]:
        files = eviction.left_over_files(tables, cache.folder)
        n_bytes = sum(file.stat().st_size for file in files)
        for shard in records.shards(tables):
            path = shard.path(cache.folder)
            behind = path.stat().st_size - shard.n_bytes if path.exists() else 0
            if behind > 0:
                n_bytes += behind
                if fix:
                    with path.open("r+b") as file:
                        file.truncate(shard.n_bytes)
        if fix:
            eviction.unlink(files)
        return tuple(files), n_bytes

    return _write(cache, work)


def _prune(cache: VectorCache, goes: Callable[[Tables], list[ShardRecord]], dry_run: bool) -> Pruned:
    def counted(chosen: list[ShardRecord]) -> Pruned:
        return Pruned(sum(shard.n_live for shard in chosen), sum(shard.n_bytes for shard in chosen))

    if dry_run or not cache.index.file.exists():
        return counted(_read(cache, goes) or [])

    def work(tables: Tables) -> tuple[list[ShardRecord], list[Path]]:
        chosen = goes(tables)
        return chosen, [eviction.drop(tables, cache.folder, shard) for shard in chosen]

    chosen, removed = _write(cache, work)
    eviction.unlink(removed)
    return counted(chosen)


def _refuse_no_folder(folder: Path) -> None:
    """Raises ``StoreError`` where a file is in the way of the folder: that is no empty cache."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise StoreError(f"The embedding cache {folder} can't be used: {there} is no folder. Set EMBEVAL_CACHE to one.")


def _read(cache: VectorCache, work: Callable[[Tables], T]) -> T | None:
    """None where there is no cache yet."""
    _refuse_no_folder(cache.folder)
    done = cache.attempt(lambda: (cache.index.read(work),), None)
    if done is None:
        raise StoreError(cache.trouble)
    return done[0]


def _write(cache: VectorCache, work: Callable[[Tables], T]) -> T:
    done = cache.attempt(lambda: (cache.index.write(work),), None)
    if done is None:
        raise StoreError(cache.trouble)
    return done[0]


def _disk_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # gone in the meantime
            if path.is_file():
                total += eviction.disk_bytes(path)
    return total
