"""Whether anything that a board is made from has changed on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from embeval.leaderboard.definition import Definition

State = tuple[tuple[str, int, int, int], ...]


def state(path: Path, definition: Definition | None) -> State:
    """(path, size, mtime_ns, inode) of every file behind a board, by path; equal as long as nothing changes.

    Without a definition, since the file is broken, only of the file itself.
    """
    found = list(_of(path))
    if definition is not None:
        if definition.board.gate is not None:
            found += _of(definition.folder(definition.board.gate))
        for given in (*definition.board.results, *definition.board.imported):
            found += _below(definition.folder(given))
    return tuple(sorted(found))


def _of(path: Path) -> Iterator[tuple[str, int, int, int]]:
    try:
        told = path.stat()
    except OSError:
        return
    yield str(path), told.st_size, told.st_mtime_ns, told.st_ino


def _below(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    """Of each JSON file below a folder; others are written before these, and under names of their own."""
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(".json") and not name.startswith("."):
                yield from _of(Path(here) / name)
