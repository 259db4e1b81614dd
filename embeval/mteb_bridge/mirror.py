"""Where the data of a task of mteb lies in a mirror: a folder from which data is read instead of the hub.

::

    DIR/STS12/                              laid out by hand, or by `embeval data import --as-mteb STS12`
    DIR/mteb/sts12-sts/a0d554a6…/           a data set of the hub at a revision, by `embeval data pull STS12`

A folder that a command stored has a manifest: its files with sizes and hashes. A folder of a task's own name comes
first. Tasks that share a data set and a revision share its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from embeval.core import border, strict_json
from embeval.core.border import BORDER
from embeval.errors import DataError
from embeval.mteb_bridge import door
from embeval.store import atomic

MANIFEST = ".embeval-manifest.json"
"""Lies in the folder that it speaks of. ``datasets`` takes no hidden file for data."""


@dataclass(frozen=True, kw_only=True)
class MirroredFile:
    """A file of a data set as it was when it was stored."""

    __pydantic_config__ = BORDER

    size: int
    """Bytes."""
    sha256: str
    """64 hexadecimal digits."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a folder of a mirror holds, and where it came from."""

    __pydantic_config__ = BORDER

    source: str
    """``hub`` or ``import``."""
    stored_at: str
    """UTC, ISO 8601."""
    files: Mapping[str, MirroredFile]
    """Path below the folder -> file."""
    path: str | None = None
    """Name of the data set on the hub; None for an import."""
    revision: str | None = None
    """Revision that the task of mteb asks for."""
    commit: str | None = None
    """Commit of the hub that this revision was."""
    task: str | None = None
    """Task that an import was made for."""
    inputs: Mapping[str, str] | None = None
    """Name -> sha256 of each file that an import was made from."""


@dataclass(frozen=True)
class Source:
    """Where mteb would get the data of a task."""

    path: str
    """Name of a data set on the hub."""
    revision: str
    """Its commit, or what else mteb names."""

    def folder(self, mirror: Path) -> Path:
        """Where a mirror has it."""
        return mirror / self.path / self.revision


@dataclass(frozen=True)
class Place:
    """A folder that holds the data of a task."""

    folder: Path
    manifest: Manifest | None
    """What it holds; None where it was laid out by hand."""

    @property
    def origin(self) -> str:
        """Where it came from, in a few words without a path of this machine."""
        if self.manifest is None:
            return "mirror, laid out by hand"
        if self.manifest.source == "hub":
            return f"mirror of {self.manifest.path} at {self.manifest.commit}"
        return f"mirror, imported on {self.manifest.stored_at[:10]}"


def has(mirror: Path, task_name: str) -> bool:
    """Whether a mirror holds the data of a task of mteb; of an aggregate, that of all its tasks."""
    return task_name in _known() and all(find(mirror, name) is not None for name in parts(task_name))


def find(mirror: Path, task_name: str) -> Place | None:
    """Where a mirror holds the data of a task, or None. Raises ``DataError`` for a manifest that can't be read."""
    own = mirror / task_name
    if _holds_files(own):
        return Place(own, read_manifest(own))
    pulled = sources()[task_name].folder(mirror)
    manifest = read_manifest(pulled)
    return None if manifest is None else Place(pulled, manifest)


def _holds_files(folder: Path) -> bool:
    return folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir())


def read_manifest(folder: Path) -> Manifest | None:
    """What stands in the manifest of a folder; None where there is none."""
    file = folder / MANIFEST
    try:
        return border.load(Manifest, strict_json.loads(file.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: can't be read ({error}).\nRemove its folder and store the data set again.") from None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest of a folder, whole or not at all."""
    atomic.write(folder / MANIFEST, strict_json.dumps(border.dump(manifest)).encode("utf-8"))


@cache
def sources() -> dict[str, Source]:
    """Task of mteb -> where the hub has its data. Aggregates have none of their own."""
    return {name: Source(**dataset) for name, (dataset, parts) in _known().items() if not parts}


def parts(task_name: str) -> tuple[str, ...]:
    """The tasks that an aggregate is made of, or the task itself."""
    return _known()[task_name][1] or (task_name,)


@cache
def _known() -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    """Task -> (its data set, the tasks that it is made of)."""
    library = door.library()
    with door.quiet():
        tasks = library.get_tasks(exclude_superseded=False, exclude_private=False, exclude_beta=False)
    return {
        each.metadata.name: (
            {key: each.metadata.dataset[key] for key in ("path", "revision")},
            tuple(part.metadata.name for part in getattr(each.metadata, "tasks", ())),
        )
        for each in tasks
    }
