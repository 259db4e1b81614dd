"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from embeval.errors import StoreError

STALE_AFTER_S = 24 * 3600
"""A temporary file older than this belongs to a process that was killed."""


def write(path: Path, data: bytes) -> None:
    """Writes a file so that a reader, or a kill at any moment, finds the old content or the new one.

    Temporary file in the same folder, fsync, rename, fsync of the folder. Raises ``StoreError``, also for a device or
    a pipe: the rename would put a file in its place, and /dev/null would be gone for the whole machine.
    """
    write_all({path: data})


def write_all(files: Mapping[Path, bytes]) -> None:
    """Writes files, each as ``write`` does, and none before all of them are on disk under temporary names.

    Raises ``StoreError``; then none has changed, unless a rename itself was refused.
    """
    temporary: dict[Path, Path] = {}
    path = Path()
    try:
        for path, data in files.items():
            _refuse_special(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary[path] = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
            with temporary[path].open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for path, written in temporary.items():
            written.replace(path)
        for folder in {each.parent for each in files}:
            _sync_folder(folder)
    except OSError as error:
        raise StoreError(_explain(path, error)) from None
    finally:
        for left in temporary.values():
            with contextlib.suppress(OSError):
                left.unlink(missing_ok=True)


def refuse_unwritable(folder: Path) -> None:
    """Raises ``StoreError`` where a folder, there or yet to be made, can't be written to. Leaves nothing behind."""
    there = folder.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise StoreError(_explain(folder, error)) from None


def sweep(folder: Path) -> None:
    """Removes temporary files that killed processes left in a folder."""
    limit = time.time() - STALE_AFTER_S
    with contextlib.suppress(OSError):
        for left in folder.glob(".*.tmp"):
            if left.stat().st_mtime < limit:
                left.unlink(missing_ok=True)


def _refuse_special(path: Path) -> None:
    with contextlib.suppress(OSError):  # not there, or it is told on writing
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise StoreError(f"Can't write {path}.\nIt is a device or a pipe, not a file. Name a file.")


def _sync_folder(folder: Path) -> None:
    # A rename is on disk once the folder is; some file systems can't sync folders, and then it is up to them.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _explain(path: Path, error: OSError) -> str:
    advice = {
        errno.ENOSPC: "There is no space left on the device. Free some, or write elsewhere with --results.",
        errno.EDQUOT: "The disk quota is used up. Free some space, or write elsewhere with --results.",
        errno.EROFS: "The file system is read-only. Write elsewhere with --results.",
        errno.EACCES: "Permission denied. Write elsewhere with --results.",
        errno.EPERM: "Permission denied. Write elsewhere with --results.",
        errno.ENOTDIR: "A part of that path is a file, not a folder.",
        errno.EEXIST: "A part of that path is a file, not a folder.",
        errno.ENAMETOOLONG: "The name is too long for this file system.",
    }.get(error.errno or 0, f"{error.strerror or error}.")
    return f"Can't write {path}.\n{advice} Results that were finished before are safe."
