"""Files of rows, one after the other, each with its checksum; they only ever grow at their end.

A row is 48 bytes and the vector, little-endian: crc32 of all that follows; digest of the text (16 bytes); digest of
what the model sees of it (16); its tokens, tokens lost and tokens unknown (int32, -1 for not known); the vector
(float32). Reading goes through ``pread`` and not through a memory map: a file cut short under a map kills the process.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

DIGEST_BYTES = 16
CRC_BYTES = 4
BLOCK_BYTES = 4 << 20
"""How much is read or written at a time."""

Digests = npt.NDArray[np.uint8]
"""uint8 [n, 16]."""
Records = npt.NDArray[Any]
"""Structured [n]: rows of a file."""


def row_type(dim: int) -> np.dtype[Any]:
    """The layout of a row with a vector of ``dim`` numbers."""
    return np.dtype(
        [
            ("crc", "<u4"),
            ("text", "u1", (DIGEST_BYTES,)),
            ("key", "u1", (DIGEST_BYTES,)),
            ("length", "<i4"),
            ("lost", "<i4"),
            ("unknown", "<i4"),
            ("vector", "<f4", (dim,)),
        ]
    )


def block_rows(dim: int) -> int:
    """Rows that are handled at a time."""
    return max(1, BLOCK_BYTES // row_type(dim).itemsize)


def checksums(records: Records) -> npt.NDArray[np.uint32]:
    """uint32 [n]: what ``crc`` of each row should be."""
    size = records.dtype.itemsize
    data = _bytes(np.ascontiguousarray(records))
    return np.fromiter(
        (zlib.crc32(data[start + CRC_BYTES : start + size]) for start in range(0, len(data), size)),
        dtype=np.uint32,
        count=len(records),
    )


def sound(records: Records) -> npt.NDArray[np.bool_]:
    """bool [n]: which rows are as they were written."""
    return np.asarray(records["crc"] == checksums(records))


def append(path: Path, at_row: int, blocks: Iterator[Records]) -> None:
    """Writes rows from ``at_row`` on; on return they are on disk. What stood behind it, a killed writer left."""
    new = not path.exists()
    descriptor = _open(path)
    try:
        end: int | None = None
        for block in blocks:
            if end is None:
                end = at_row * block.dtype.itemsize
                os.ftruncate(descriptor, end)
            data = _bytes(block)
            while len(data):
                written = os.pwrite(descriptor, data, end)
                data, end = data[written:], end + written
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if new:
        for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
            _sync_folder(folder)


def read(path: Path, rows: npt.NDArray[np.int64], dim: int) -> Iterator[tuple[slice, Records]]:
    """Blocks of rows of a file, ``rows`` ascending, each with its place in ``rows``; zeros where the file is too short.

    Raises ``FileNotFoundError`` before the first block.
    """
    layout = row_type(dim)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for start in range(0, len(rows), block_rows(dim)):
            part = rows[start : start + block_rows(dim)]
            records = np.zeros(len(part), dtype=layout)
            data = _bytes(records)
            # Texts are mostly asked for as they were put: neighbours are read together.
            edges = [0, *(np.flatnonzero(np.diff(part) != 1) + 1).tolist(), len(part)]
            for first, stop in itertools.pairwise(edges):
                run = data[first * layout.itemsize : stop * layout.itemsize]
                os.preadv(descriptor, [run], int(part[first]) * layout.itemsize)
            yield slice(start, start + len(part)), records
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return os.open(path, flags, 0o644)
    except FileNotFoundError:  # just now, another process found the folder empty and removed it
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o644)


def _bytes(records: Records) -> memoryview:
    return records.view(np.uint8).data


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
