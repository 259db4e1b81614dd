"""Data sets of mteb's tasks, from the hub into a mirror."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from embeval.core.figures import size
from embeval.core.progress import Progress, Silent
from embeval.errors import ConfigError, DataError, EmbevalError, StoreError
from embeval.mteb_bridge import door, mirror, names
from embeval.mteb_bridge.mirror import Manifest, MirroredFile, Source
from embeval.mteb_bridge.names import Filters
from embeval.store import atomic, folders

PARTIAL = ".{}.partial"
"""Name of the folder that a revision is downloaded to; the next attempt goes on there."""
STATE = ".cache"
"""What the client of the hub keeps in a folder to go on from."""
SPARE = 1.05
"""Free space needed, as a multiple of what is to be downloaded."""


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """What became of one data set."""

    source: Source
    """Which it is."""
    tasks: tuple[str, ...]
    """The tasks that need it, of those that were asked for."""
    status: str
    """``pulled``, ``present`` because it was there already, or ``failed``."""
    bytes: int = 0
    """Its size."""
    error: EmbevalError | None = None
    """Why it failed."""


def pull(
    wanted: Sequence[str], folder: Path, *, filters: Filters | None = None, progress: Progress | None = None
) -> Iterator[Pulled]:
    """What becomes of each data set that tasks and benchmarks need. One that fails doesn't stop the others.

    Each is whole or not there; what a killed attempt downloaded is not downloaded again. ``filters`` say which of the
    tasks are kept. Raises ``UnknownNameError`` before anything is downloaded, and ``StoreError`` where ``folder`` can't
    be written.
    """
    needed: dict[Source, dict[str, None]] = {}
    for name in wanted:
        for task in names.kept(names.named(name.removeprefix("mteb:")), filters or Filters()):
            needed.setdefault(mirror.sources()[task.metadata.name], {})[task.metadata.name] = None
    if not needed:
        raise ConfigError("No task of these names fits the filters.")
    atomic.refuse_unwritable(folder)
    for number, (source, tasks) in enumerate(needed.items(), start=1):
        watched = progress or Silent()
        watched.start(f"pulling {source.path}, {number} of {len(needed)}", 1, "data set")
        try:
            status, n_bytes = _pull(source, folder)
            yield Pulled(source=source, tasks=tuple(tasks), status=status, bytes=n_bytes)
        except EmbevalError as error:
            yield Pulled(source=source, tasks=tuple(tasks), status="failed", error=error)
        finally:
            watched.finish()


def _pull(source: Source, folder: Path) -> tuple[str, int]:
    """(status, bytes) of one data set."""
    place = source.folder(folder)
    if (manifest := mirror.read_manifest(place)) is not None:
        return "present", sum(file.size for file in manifest.files.values())
    if place.exists():
        raise StoreError(f"{place} is there, and no data set that was pulled. Remove it and pull again.")
    info = _asked(source)
    files = {each.rfilename: each for each in info.siblings if not _is_hidden(each.rfilename)}
    script = f"{source.path.rsplit('/', 1)[-1]}.py"
    if script in files:
        raise DataError(f"{source.path} is read by a script of its own ({script}), which no mteb of today runs.")
    _refuse_too_large(sum(each.size or 0 for each in files.values()), place, source)
    partial = place.with_name(PARTIAL.format(place.name))
    _download(source, info.sha, partial)
    stored = {name: _checked(partial, name, said, source) for name, said in files.items()}
    shutil.rmtree(partial / STATE, ignore_errors=True)
    for extra in mirror.files_of(partial):
        if extra not in files:  # of an attempt at another commit, where the revision is a branch
            (partial / extra).unlink()
    mirror.write_manifest(
        partial,
        Manifest(
            source="hub",
            stored_at=datetime.now(UTC).isoformat(timespec="seconds"),
            files=stored,
            path=source.path,
            revision=source.revision,
            commit=info.sha,
        ),
    )
    folders.sync(partial)
    with _told(place):
        partial.rename(place)  # the last step: what is not whole has another name
        folders.sync(place.parent)
    return "pulled", sum(file.size for file in stored.values())


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _asked(source: Source) -> Any:
    """What the hub says of a data set: its commit, and size and hash of every file. Raises ``DataError``."""
    import huggingface_hub
    import huggingface_hub.constants as constants

    if constants.HF_HUB_OFFLINE:
        raise DataError(f"{source.path} can't be asked for: HF_HUB_OFFLINE is set.")
    with _of_the_hub(source):
        return huggingface_hub.HfApi().dataset_info(source.path, revision=source.revision, files_metadata=True)


def _download(source: Source, commit: str, partial: Path) -> None:
    import huggingface_hub

    partial.mkdir(parents=True, exist_ok=True)
    with _of_the_hub(source), door.quiet():
        huggingface_hub.snapshot_download(source.path, repo_type="dataset", revision=commit, local_dir=partial)


@contextlib.contextmanager
def _of_the_hub(source: Source) -> Iterator[None]:
    """Turns what the client of the hub raises into a ``DataError`` that says what to do."""
    from huggingface_hub import errors

    page = f"https://huggingface.co/datasets/{source.path}"
    try:
        yield
    except EmbevalError:
        raise
    except errors.GatedRepoError:
        raise DataError(
            f"{source.path} is given out on request. Ask for it on {page}, then log in with 'hf auth login'."
        ) from None
    except errors.RevisionNotFoundError:
        raise DataError(f"{source.path} has no revision {source.revision} on the hub any more.") from None
    except errors.RepositoryNotFoundError:
        raise DataError(
            f"{source.path} is private, or no longer on the hub. Where you may read it, log in with 'hf auth login'."
        ) from None
    except OSError as error:
        if error.errno is not None and error.filename is not None:
            raise StoreError(f"{error.filename}: {error.strerror}.") from None
        raise DataError(f"{source.path} can't be downloaded ({_first_line(error)}). Pull again to go on.") from None
    except Exception as error:  # which errors these are depends on the HTTP library that the hub client uses
        raise DataError(f"{source.path} can't be downloaded ({_first_line(error)}). Pull again to go on.") from None


def _first_line(error: Exception) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first[:160]}"


def _refuse_too_large(n_bytes: int, place: Path, source: Source) -> None:
    there = place
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if n_bytes * SPARE > free:
        raise StoreError(f"{source.path} is {size(n_bytes)}, and {there} has {size(free)} left. Free some space.")


def _checked(partial: Path, name: str, said: Any, source: Source) -> MirroredFile:
    """A downloaded file, compared with what the hub says of it. One that differs is removed."""
    path = partial / name
    try:
        actual = _read(path, said)
    except FileNotFoundError:
        raise DataError(f"{source.path}: {name} was not downloaded. Pull again to go on.") from None
    wanted = said.lfs.sha256 if said.lfs is not None else said.blob_id
    is_same = wanted in (None, actual[0].sha256, actual[1]) and said.size in (None, actual[0].size)
    if not is_same:
        path.unlink()
        raise DataError(f"{source.path}: {name} isn't what the hub has; it was removed. Pull again to go on.")
    return actual[0]


def _read(path: Path, said: Any) -> tuple[MirroredFile, str]:
    """(the file, the hash by which git names it, which the hub has for small files)."""
    n_bytes = path.stat().st_size
    whole = hashlib.sha256()
    named = hashlib.sha1(f"blob {n_bytes}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            whole.update(block)
            if said.lfs is None:
                named.update(block)
    return MirroredFile(size=n_bytes, sha256=whole.hexdigest()), named.hexdigest()


@contextlib.contextmanager
def _told(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if mirror.read_manifest(place) is None:  # else somebody else pulled it meanwhile
            raise StoreError(f"{place} can't be written ({error.strerror or error}).") from None
