"""Paths as people write them."""

from __future__ import annotations

import errno
import os
from os import PathLike, fspath
from pathlib import Path

from embeval.errors import ConfigError


def expanded(given: str | PathLike[str]) -> Path:
    """The path with ``~`` as a home folder. Raises ``ConfigError`` where that user, or a home folder, is not known."""
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{fspath(given)!r}: the home folder that the ~ stands for is not known here. Write the path out."
        ) from None


def seen_from_here(path: Path) -> Path:
    """The place that a path leads to, for a message: ``results`` for ``boards/mine/../../results``."""
    try:
        place, here = path.resolve(), Path.cwd()
    except (OSError, RuntimeError, ValueError):  # links in a circle, a folder that is gone, a null
        return path
    return place.relative_to(here) if place.is_relative_to(here) else place


def readable(text: str) -> str:
    """A path, or a message that names one, with U+FFFD for what is no UTF-8 in it: as any file can hold it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def content(path: Path) -> bytes:
    """What a file holds. Raises ``OSError``, also for a folder, a device and a pipe, which may have no end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "Not a file", os.fspath(path))
    return path.read_bytes()
