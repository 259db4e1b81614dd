"""Folders that are either whole or not there, the old one or the new one."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from embeval.errors import ConfigError, StoreError
from embeval.store.atomic import STALE_AFTER_S

_AT_WORKING_FOLDER = -100
_EXCHANGE = 2


@contextlib.contextmanager
def written(
    folder: Path, *, overwrite: bool, refuse_to_replace: Callable[[Path], None], hint: str
) -> Iterator[Path]:  # fmt: skip
    """An empty folder to write into, which takes the place of ``folder`` when the block ends, and only if it does.

    Whoever is killed leaves the old folder as it was. ``refuse_to_replace`` raises where an old one holds what must
    not be lost; ``hint`` names the option that overwrites. Raises ``ConfigError`` where something is in the way,
    ``StoreError`` where it can't be written.
    """
    place = Path(os.path.realpath(folder))
    _refuse(place, folder, overwrite, refuse_to_replace, hint)
    partial = place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    _sweep(place)
    try:
        partial.mkdir(parents=True)
        yield partial
        sync(partial)
        _refuse(place, folder, overwrite, refuse_to_replace, hint)
        _put_in_place(partial, place)
        sync(place.parent)
    except OSError as error:
        raise StoreError(
            f"{folder} can't be written ({error.strerror or error}).\nNothing was changed there; free some space, or "
            "choose another folder."
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _sweep(place: Path) -> None:
    """Removes what killed processes left beside a folder; what a running one writes is not that old."""
    limit = time.time() - STALE_AFTER_S
    for left in place.parent.glob(f".{glob.escape(place.name)}.*.partial"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < limit:
                shutil.rmtree(left, ignore_errors=True)


def sync(folder: Path) -> None:
    """Waits until the names in a folder, and in those below it, are on disk, where the file system can."""
    for here, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            descriptor = os.open(here, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _refuse(
    place: Path, shown: Path, overwrite: bool, refuse_to_replace: Callable[[Path], None], hint: str
) -> None:  # fmt: skip
    if place.is_symlink():
        raise ConfigError(f"{shown} is a link that leads back to itself. Choose another folder.")
    if not place.exists():
        return
    if not place.is_dir():
        raise ConfigError(f"{shown} is a file. Choose another folder.")
    if not any(place.iterdir()):
        return
    if not overwrite:
        raise ConfigError(f"{shown} exists and is not empty. Choose another folder, or give {hint} to replace it.")
    refuse_to_replace(place)


def _put_in_place(partial: Path, place: Path) -> None:
    if not place.exists() or not any(place.iterdir()):
        partial.rename(place)  # over an empty folder too
    elif not _exchanged(partial, place):
        old = partial.with_suffix(".old")
        place.rename(old)
        try:
            partial.rename(place)
        except BaseException:  # Ctrl-C as well
            old.rename(place)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Whether two folders have changed their names in one step, which Linux can, and not on every file system."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    done = rename(_AT_WORKING_FOLDER, os.fsencode(one), _AT_WORKING_FOLDER, os.fsencode(other), _EXCHANGE)
    if done == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(code, os.strerror(code))
