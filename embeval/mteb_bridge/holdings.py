"""What a mirror holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from embeval.errors import DataError
from embeval.mteb_bridge import mirror
from embeval.mteb_bridge.mirror import MANIFEST, Place


@dataclass(frozen=True, kw_only=True)
class Held:
    """One data set of a mirror."""

    folder: Path
    tasks: tuple[str, ...]
    """Tasks that read it; none where no task of the installed mteb does."""
    source: str
    """``hub``, ``import``, ``hand`` for what was laid out by hand, or ``unknown``."""
    bytes: int
    problem: str | None = None
    """Why it can't be used; None where it can."""


def held(folder: Path, *, verify: bool = False) -> Iterator[Held]:
    """Every data set of a mirror, each file compared with its hash; ``verify`` hashes again what is remembered.

    Raises ``DataError`` where there is no such folder.
    """
    mirror.refuse_no_folder(folder)
    for name in sorted(mirror.sources()):
        own = folder / name
        if mirror.holds_files(own):
            yield _held(own, (name,), verify=verify)
    readers: dict[Path, list[str]] = {}
    for name, source in mirror.sources().items():
        readers.setdefault(source.folder(folder), []).append(name)
    for manifest in sorted(folder.glob(f"*/*/*/{MANIFEST}")):
        yield _held(manifest.parent, tuple(readers.get(manifest.parent, ())), verify=verify)


def _held(folder: Path, tasks: tuple[str, ...], *, verify: bool) -> Held:
    n_bytes = sum((folder / name).stat().st_size for name in mirror.files_of(folder))
    source, problem = "unknown", None
    try:
        place = Place(folder, mirror.read_manifest(folder))
        source = "hand" if place.manifest is None else place.manifest.source
        mirror.refuse_changed(place, verify=verify)
    except DataError as error:
        problem = str(error)
    return Held(folder=folder, tasks=tasks, source=source, bytes=n_bytes, problem=problem)
