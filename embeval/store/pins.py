"""The file of tags in a folder of results: which result files each tag pins, and with what content.

``tags.json`` lies beside the folders of models. Its paths are relative, so the folder can be moved, packed or kept in
a repository. It is replaced as a whole, by one process at a time.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from embeval.core import border, strict_json
from embeval.core.border import BORDER
from embeval.errors import StoreError, UsageError
from embeval.store import atomic

FILE = "tags.json"
"""Name of the file, in the folder of results."""
LOCK = ".tags.lock"
"""What a process holds while it changes the file."""
SCHEMA_VERSION = 1
"""Version of its form."""
PARTS = 5
"""Parts of the path of a result below the root: model, revision, digest, task, file."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a tag may be called."""
RESULT_ID = re.compile(r"[0-9a-f]{8}")
"""What ids of results look like."""


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One result as it was when it was tagged."""

    __pydantic_config__ = BORDER

    file: str
    """Its JSON file, relative to the folder of results, parts joined by ``/``."""
    sha256: str
    """Hash of that file, 64 hexadecimal digits."""
    keeps: tuple[str, ...] = ()
    """Names of the files of its items and ranking, in the same folder."""

    def __post_init__(self) -> None:
        parts = PurePosixPath(self.file).parts
        if len(parts) != PARTS or ".." in parts or self.file.startswith("/") or not self.file.endswith(".json"):
            raise ValueError(f"{self.file!r} is no result of this folder")
        if any("/" in name or name in ("", ".", "..") for name in self.keeps):
            raise ValueError(f"{self.file!r} can only keep files of its own folder")


@dataclass(frozen=True, kw_only=True)
class Tag:
    """A name for results of one model."""

    __pydantic_config__ = BORDER

    model: str
    """Label of the model."""
    model_digest: str
    """Its digest."""
    tagged_at: str
    """UTC, ISO 8601."""
    results: tuple[Pin, ...]
    """What it pins, in the order of the paths."""


@dataclass(frozen=True, kw_only=True)
class _File:
    __pydantic_config__ = BORDER

    schema_version: int
    tags: Mapping[str, Tag] = field(default_factory=dict)


def checked_name(name: str) -> str:
    """The name, if a tag may be called so. Raises ``UsageError``."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"A tag can't be called {name!r}: its name is up to 64 letters, digits, dots, dashes and underscores, and "
            "starts with a letter or digit."
        )
    if RESULT_ID.fullmatch(name):
        raise UsageError(f"A tag can't be called {name!r}: that could be the id of a result. Try 'v{name}'.")
    return name


def read(root: Path) -> dict[str, Tag]:
    """Tag name -> tag, by name; empty where nothing was ever tagged. Raises ``StoreError`` for a broken file."""
    path = root / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"{path}: can't be read ({error.strerror}).") from None
    try:
        value = strict_json.loads(data)
        version = value.get("schema_version") if isinstance(value, dict) else None
        if type(version) is not int or version != SCHEMA_VERSION:
            raise ValueError(f"not tags of schema version {SCHEMA_VERSION} (found {version!r})")
        return dict(sorted(border.load(_File, value).tags.items()))
    except (ValueError, border.BorderError) as error:
        problem = error.problems[0] if isinstance(error, border.BorderError) else error
        raise StoreError(
            f"{path}: not the tags of results ({problem}).\nBring back an older version of the file, or remove it and "
            "tag anew with 'embeval results tag'."
        ) from None


@contextlib.contextmanager
def changing(root: Path) -> Iterator[dict[str, Tag]]:
    """The tags, to be changed in the block; they are written when it ends without an error.

    Other processes that want to change them wait. Raises ``StoreError``.
    """
    with _locked(root):
        tags = read(root)
        before = dict(tags)
        yield tags
        if tags != before:
            value = border.dump(_File(schema_version=SCHEMA_VERSION, tags=tags))
            atomic.write(root / FILE, strict_json.dumps(value).encode("utf-8"))


def pinned(root: Path) -> dict[Path, tuple[str, ...]]:
    """File -> names of the tags that need it: results with their items and rankings. Raises ``StoreError``."""
    found: dict[Path, tuple[str, ...]] = {}
    for name, tag in read(root).items():
        for pin in tag.results:
            path = root / pin.file
            for each in (path, *(path.parent / kept for kept in pin.keeps)):
                found[each] = (*found.get(each, ()), name)
    return found


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    path = root / LOCK
    if not root.is_dir():
        raise StoreError(f"{root}: no such folder of results. Run an evaluation first.")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise StoreError(f"{path}: can't be written ({error.strerror}), so tags can't be changed there.") from None
    try:
        _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)  # which lets go of it


def _lock(descriptor: int, path: Path) -> None:
    import fcntl  # there is none on Windows, where tags can still be read

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        raise StoreError(f"{path}: can't be locked ({error.strerror}), so tags can't be changed safely.") from None
