"""Where the data of a task of mteb lies in a mirror: a folder from which data is read instead of the hub.

::

    DIR/STS12/                              laid out by hand, or by `embeval data import --as-mteb STS12`
    DIR/mteb/sts12-sts/a0d554a6…/           a data set of the hub at a revision, by `embeval data pull STS12`

A folder that a command stored has a manifest: its files with sizes and hashes. A folder of a task's own name comes
first. Tasks that share a data set and a revision share its folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from embeval.core import border, strict_json
from embeval.core.border import BORDER
from embeval.encoders.locate import HashMemory
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
    def is_published(self) -> bool:
        """Whether it is what the hub has, file by file."""
        return self.manifest is not None and self.manifest.source == "hub"

    @property
    def origin(self) -> str:
        """Where it came from, in a few words without a path of this machine."""
        if self.manifest is None:
            return "mirror, laid out by hand"
        if self.is_published:
            return f"mirror of {self.manifest.path} at {self.manifest.commit}"
        return f"mirror, imported on {self.manifest.stored_at[:10]}"


def has(mirror: Path, task_name: str) -> bool:
    """Whether a mirror holds the data of a task of mteb; of an aggregate, that of all its tasks."""
    return task_name in _known() and all(find(mirror, name) is not None for name in parts(task_name))


def find(mirror: Path, task_name: str) -> Place | None:
    """Where a mirror holds the data of a task, or None. Raises ``DataError`` for a manifest that can't be read."""
    own = mirror / task_name
    if holds_files(own):
        return Place(own, read_manifest(own))
    pulled = sources()[task_name].folder(mirror)
    manifest = read_manifest(pulled)
    return None if manifest is None else Place(pulled, manifest)


def located(mirror: Path, task_name: str) -> Place:
    """Where a mirror holds the data of a task, every file as it was stored.

    Raises ``DataError`` that says how to get what is missing or was changed.
    """
    refuse_no_folder(mirror)
    place = find(mirror, task_name)
    if place is None:
        raise DataError(missing(mirror, task_name))
    refuse_changed(place)
    return place


def refuse_no_folder(mirror: Path) -> None:
    """Raises ``DataError`` where a mirror is no folder."""
    if not mirror.is_dir():
        raise DataError(f"The mirror {mirror}: {'not a folder' if mirror.exists() else 'no such folder'}.")


def missing(mirror: Path, task_name: str) -> str:
    """What to tell of a task whose data a mirror lacks."""
    source = sources()[task_name]
    wanted = f"{source.path} at revision {source.revision}"
    others = [path.name for path in stored(mirror, source.path) if path.name != source.revision]
    instead = f" It has {source.path} at {', '.join(others)}." if others else ""
    return (
        f"mteb:{task_name}: the mirror {mirror} lacks its data, {wanted}.{instead}\n"
        f"Where the hub can be reached: embeval data pull {task_name} --to {mirror}\n"
        f"With files of your own: embeval data import --as-mteb {task_name} FILE… --to {mirror}"
    )


def stored(mirror: Path, path: str) -> list[Path]:
    """The folders of a data set of the hub that a mirror holds, one for each revision."""
    return sorted(file.parent for file in (mirror / path).glob(f"*/{MANIFEST}"))


def refuse_changed(place: Place, *, verify: bool = False) -> None:
    """Raises ``DataError`` where a file isn't what the manifest says. Hashes are remembered unless ``verify``."""
    if place.manifest is None:
        return
    actual = hashes(place.folder, verify=verify)
    for name, file in place.manifest.files.items():
        if actual.pop(name, None) != file.sha256:
            what = "was changed since it was stored" if (place.folder / name).is_file() else "is missing"
            raise DataError(f"{place.folder / name} {what}.\n{_again(place)}")
    if actual:
        raise DataError(f"{place.folder / min(actual)} was added since the data set was stored.\n{_again(place)}")


def _again(place: Place) -> str:
    return f"Remove the folder {place.folder} and store the data set again."


def hashes(folder: Path, *, verify: bool = False) -> dict[str, str]:
    """Path below the folder -> sha256 of every file that isn't hidden. Hashes are remembered unless ``verify``."""
    with HashMemory() as memory:
        return {name: memory.sha256(folder / name, verify=verify) for name in files_of(folder)}


def files_of(folder: Path) -> list[str]:
    """Paths below a folder of its files that aren't hidden, also behind links, sorted."""
    found, seen = [], set()
    for parent, folders, files in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(parent))
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and os.path.realpath(Path(parent, name)) not in seen  # a link that leads back
        ]
        found += [Path(parent, name).relative_to(folder).as_posix() for name in files if not name.startswith(".")]
    return sorted(found)


def holds_files(folder: Path) -> bool:
    """Whether a folder is there and holds anything that isn't hidden."""
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
