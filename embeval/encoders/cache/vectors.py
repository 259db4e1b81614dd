"""The cache as encoders see it: shelves that take vectors of texts and give them back."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Vectors
from embeval.encoders.cache import eviction, index, records, shards
from embeval.encoders.cache.index import Tables
from embeval.encoders.cache.records import MISSING, NOTES, SHELVES, Places, ShelfRecord
from embeval.encoders.cache.shards import DIGEST_BYTES, Digests, Records
from embeval.encoders.cache.sizes import size_text
from embeval.errors import StoreError

DEFAULT_MAX_BYTES = 20 << 30
SHARD_BYTES = 128 << 20
SHARDS_IN_LIMIT = 8
"""A small cache has small files: what is dropped to make room is at most this part of it."""
MAX_ROWS = 1 << 31
"""Rows of a shard that the index can count."""
NOT_KNOWN = -1

Counts = npt.NDArray[np.int64]
T = TypeVar("T")


class LimitError(StoreError):
    """What is to be kept is larger than all that may be kept."""


@dataclass(frozen=True)
class TokenCounts:
    """What is known of texts besides their vectors; one entry per row."""

    lengths: Counts
    """int64 [m]: tokens that the model sees."""
    lost: Counts | None
    """int64 [m]: tokens cut off; None where the model can't tell."""
    unknown: Counts | None
    """int64 [m]: tokens seen that stand for what the tokenizer doesn't know; None where the model can't tell."""
    keys: Digests
    """uint8 [m, 16]: digest of what the model sees."""


@dataclass(frozen=True)
class Found:
    """What the cache has of the texts that were asked for."""

    rows: npt.NDArray[np.int64]
    """int64 [m]: places of these texts among those asked for, ascending."""
    vectors: Vectors
    """float32 [m, d]: their vectors, bit for bit as they were put; [0, 0] where nothing is there."""
    counts: TokenCounts
    """Of these texts."""


class VectorCache:
    """Vectors of texts on this node's disk: at most ``max_bytes``, the oldest making room for new ones.

    Never raises for what is wrong with the disk: then nothing is found and nothing is kept, and ``trouble`` says why.
    """

    def __init__(self, folder: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.max_bytes = max_bytes
        self.trouble: str | None = None
        """The first thing that went wrong, in words for the user; None as long as all is well."""
        self.n_damaged = 0
        """Vectors that were found changed on disk, and so were not given."""
        self.index = index.share(self.folder / "index")
        self._closed = False

    def shelf(self, key: str, description: Mapping[str, str]) -> Shelf:
        """The vectors made in one way.

        ``key`` is 64 hex digits over everything that may change a vector; ``description`` is for people (model, role,
        prompt, dtype) and kept from the first ``put``.
        """
        if not re.fullmatch("[0-9a-f]{64}", key):
            raise ValueError(f"key must be 64 hex digits, not {key!r}")
        return Shelf(self, bytes.fromhex(key), dict(description))

    def note(self, key: str) -> bytes | None:
        """A small value that was put under that key."""
        return self.attempt(lambda: self.index.read(lambda tables: tables.get(NOTES, _note_key(key))), None)

    def put_note(self, key: str, value: bytes) -> None:
        """Keeps a small value; on disk when this returns."""
        self.attempt(lambda: self.index.write(lambda tables: tables.put(NOTES, _note_key(key), value)), None)

    def close(self) -> None:
        """Gives files back; vectors are on disk without it."""
        if not self._closed:
            self._closed = True
            index.release(self.index)

    def attempt(self, work: Callable[[], T], otherwise: T) -> T:
        """What ``work`` gives, or ``otherwise`` where the disk doesn't let it; ``trouble`` then says why."""
        import lmdb

        try:
            return work()
        except (OSError, StoreError, lmdb.Error) as error:
            self.trouble = self.trouble or _explain(self.folder, error)
            return otherwise


@dataclass(frozen=True)
class Shelf:
    """The vectors made in one way, by text."""

    cache: VectorCache
    key: bytes
    description: Mapping[str, str] = field(default_factory=dict)

    def get(self, texts: Sequence[str]) -> Found:
        """Those vectors that are there. A text may come twice."""
        digests = self._digests(texts)
        return self.cache.attempt(lambda: self._get(digests), _nothing())

    def put(self, texts: Sequence[str], vectors: Vectors, counts: TokenCounts) -> None:
        """Keeps float32 [n, d], on disk when this returns; texts that are there are left as they are.

        Raises ``ValueError`` where shapes don't fit, or where the shelf holds vectors of another length.
        """
        _check(len(texts), vectors, counts)
        if not len(texts) or not self.cache.max_bytes:
            return
        digests = self._digests(texts)
        nothing: list[Path] = []
        removed = self.cache.attempt(
            lambda: self.cache.index.write(lambda tables: self._put(tables, digests, vectors, counts)), nothing
        )
        eviction.unlink(removed)

    def _digests(self, texts: Sequence[str]) -> Digests:
        """uint8 [n, 16]: what texts go by. 128 bits, with the shelf's key in them: two texts that are met never share.

        Not Python's ``hash``, which is 64 bits of no cryptographic strength and another in each process.
        """
        begun = hashlib.blake2b(digest_size=DIGEST_BYTES, key=self.key)
        made = bytearray()
        for text in texts:
            one = begun.copy()
            one.update(text.encode("utf-8", "surrogatepass"))
            made += one.digest()
        return np.frombuffer(bytes(made), dtype=np.uint8).reshape(-1, DIGEST_BYTES)

    def _get(self, digests: Digests) -> Found:
        looked_up = self.cache.index.read(
            lambda tables: (records.shelf_of(tables, self.key), records.places(tables, digests))
        )
        shelf, places = looked_up or (None, None)
        if shelf is None or places is None:
            return _nothing()
        rows = np.flatnonzero(places[:, 0] != MISSING)
        found = np.zeros(len(rows), dtype=np.bool_)
        vectors = np.empty((len(rows), shelf.dim), dtype=np.float32)
        told = np.empty((len(rows), 3), dtype=np.int64)
        keys = np.empty((len(rows), DIGEST_BYTES), dtype=np.uint8)
        for at, block, good in self._read(places[rows], digests[rows], shelf.dim):
            found[at] = good
            vectors[at] = block["vector"]
            for column, name in enumerate(("length", "lost", "unknown")):
                told[at, column] = block[name]
            keys[at] = block["key"]
        if not found.all():
            rows, vectors, told, keys = rows[found], vectors[found], told[found], keys[found]
        return Found(rows, vectors, TokenCounts(told[:, 0], _known(told[:, 1]), _known(told[:, 2]), keys))

    def _read(
        self, places: Places, digests: Digests, dim: int
    ) -> Iterator[tuple[npt.NDArray[np.int64], Records, npt.NDArray[np.bool_]]]:
        """Blocks of rows with their places in ``places``, and which of them are whole and of these texts.

        A shard that has been dropped in the meantime gives no block.
        """
        order = np.lexsort((places[:, 1], places[:, 0]))
        bounds = np.flatnonzero(np.diff(places[order, 0])) + 1
        for part in np.split(order, bounds):
            if not len(part):
                continue
            path = records.shard_path(self.cache.folder, self.key, int(places[part[0], 0]))
            try:
                for at, block in shards.read(path, places[part, 1].astype(np.int64), dim):
                    good = shards.sound(block) & (block["text"] == digests[part[at]]).all(axis=1)
                    self.cache.n_damaged += int((~good).sum())
                    yield part[at], block, good
            except FileNotFoundError:
                continue

    def _put(self, tables: Tables, digests: Digests, vectors: Vectors, counts: TokenCounts) -> list[Path]:
        """Files to be removed once this is on disk."""
        shelf = records.shelf_of(tables, self.key)
        dim = vectors.shape[1]
        if shelf is not None and shelf.dim != dim:
            raise ValueError(f"the shelf holds vectors of {shelf.dim} numbers, not {dim}")
        places = records.places(tables, digests)
        rows = self._fresh(places, digests, dim)
        if not len(rows):
            return []
        row_bytes = shards.row_type(dim).itemsize
        cache = self.cache
        removed = eviction.make_room(tables, cache.folder, cache.max_bytes, len(rows) * row_bytes, len(rows))
        if removed is None:
            raise LimitError(f"its limit of {size_text(cache.max_bytes)} is less than what is to be kept at once")
        for shard, n_replaced in zip(*np.unique(places[rows, 0], return_counts=True), strict=True):
            records.count_out(tables, int(shard), int(n_replaced))
        eviction.sweep(tables, cache.folder, keep=removed)
        self._append(tables, digests, rows, lambda part: _rows(digests, vectors, counts, part), dim)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        shelf = records.shelf_of(tables, self.key) or ShelfRecord(dim, now, now, 0, self.description)
        shelf = replace(shelf, written=now, n_vectors=shelf.n_vectors + len(rows))
        tables.put(SHELVES, self.key, shelf.dumps())
        return removed

    def _fresh(self, places: Places, digests: Digests, dim: int) -> npt.NDArray[np.int64]:
        """Rows to be written: each text once, without those that are there and whole."""
        fresh = np.ones(len(places), dtype=np.bool_)
        there = np.flatnonzero(places[:, 0] != MISSING)
        for at, _, good in self._read(places[there], digests[there], dim):
            fresh[there[at]] = ~good
        rows = np.flatnonzero(fresh)
        _, first = np.unique(digests[rows].view(f"V{DIGEST_BYTES}").ravel(), return_index=True)
        return np.sort(rows[first])

    def _append(
        self,
        tables: Tables,
        digests: Digests,
        rows: npt.NDArray[np.int64],
        made: Callable[[npt.NDArray[np.int64]], Records],
        dim: int,
    ) -> None:
        """Writes rows at the end of this shelf's newest shard, and in new ones."""
        row_bytes = shards.row_type(dim).itemsize
        size = min(SHARD_BYTES, self.cache.max_bytes // SHARDS_IN_LIMIT)
        capacity = min(max(1, size // row_bytes), MAX_ROWS)
        own = [shard for shard in records.shards(tables) if shard.shelf == self.key]
        shard = own[-1] if own else None
        while len(rows):
            if shard is None or shard.n_rows >= capacity:
                shard = records.new_shard(tables, self.key, dim)
            part, rows = np.split(rows, [capacity - shard.n_rows])
            step = shards.block_rows(dim)
            blocks = (made(part[start : start + step]) for start in range(0, len(part), step))
            shards.append(shard.path(self.cache.folder), shard.n_rows, blocks)
            records.set_places(tables, digests[part], shard.number, shard.n_rows)
            shard = replace(shard, n_rows=shard.n_rows + len(part), n_live=shard.n_live + len(part))
            records.set_shard(tables, shard)


def _rows(digests: Digests, vectors: Vectors, counts: TokenCounts, part: npt.NDArray[np.int64]) -> Records:
    """Rows as they stand in a file."""
    made = np.empty(len(part), dtype=shards.row_type(vectors.shape[1]))
    made["text"] = digests[part]
    made["key"] = counts.keys[part]
    made["length"] = counts.lengths[part]
    made["lost"] = NOT_KNOWN if counts.lost is None else counts.lost[part]
    made["unknown"] = NOT_KNOWN if counts.unknown is None else counts.unknown[part]
    made["vector"] = vectors[part]
    made["crc"] = shards.checksums(made)
    return made


def _check(n_texts: int, vectors: Vectors, counts: TokenCounts) -> None:
    if vectors.ndim != 2 or vectors.dtype != np.float32:
        raise ValueError(f"vectors must be float32 [n, d], not {vectors.dtype} {list(vectors.shape)}")
    columns: list[tuple[str, npt.NDArray[Any] | None]] = [("vectors", vectors), ("lengths", counts.lengths)]
    for name, column in [*columns, ("lost", counts.lost), ("unknown", counts.unknown)]:
        if column is not None and len(column) != n_texts:
            raise ValueError(f"{n_texts} texts, but {len(column)} {name}")
    if counts.keys.shape != (n_texts, DIGEST_BYTES) or counts.keys.dtype != np.uint8:
        raise ValueError(f"keys must be uint8 [{n_texts}, {DIGEST_BYTES}]")


def _known(values: Counts) -> Counts | None:
    return None if (values == NOT_KNOWN).any() else values


def _nothing() -> Found:
    none = np.zeros(0, dtype=np.int64)
    counts = TokenCounts(none, none, none, np.zeros((0, DIGEST_BYTES), dtype=np.uint8))
    return Found(none, np.zeros((0, 0), dtype=np.float32), counts)


def _note_key(key: str) -> bytes:
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def _explain(folder: Path, error: Exception) -> str:
    reason, advice = str(error), "'embeval cache prune --all' empties it."
    number = (error.errno if isinstance(error, OSError) else getattr(error, "code", 0)) or 0
    if number > 0:  # from the system; LMDB's own are negative
        reason = os.strerror(number)
        full = number in (errno.ENOSPC, errno.EDQUOT)
        advice = f"{'Free some space, or set' if full else 'Set'} EMBEVAL_CACHE to a folder elsewhere."
    elif isinstance(error, LimitError):
        advice = "Set EMBEVAL_CACHE_LIMIT higher, or to 0 for no cache."
    return f"The embedding cache {folder} can't be used: {reason}. {advice}"
