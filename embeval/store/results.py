"""Results on disk: one JSON per result, with a Parquet file of its items beside it.

::

    results/<org>__<model>/<revision>/<digest8>/<task>/<split>.<subset>.<protocol8>.json
                                                       <sha256>.items.parquet, <sha256>.run.parquet
                                                       <split>.<subset>.error.json

Item files are named by their content and written first, the JSON last and atomically: a JSON that is there has
its items. A failed run leaves an ``error.json`` and never touches a result that was finished before.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from embeval.core import border, strict_json
from embeval.core.ir import Run
from embeval.core.records import ItemRecords
from embeval.core.result import SCHEMA_VERSION, FileRef, Result
from embeval.core.specs import ModelSpec
from embeval.errors import StoreError
from embeval.store import atomic, items, pins

MIN_AGE_S = 3600
"""A file of items without a result is garbage once it is this old."""
REMEDY = "Run that evaluation again, or remove the file."
DEPTH = 4
"""Folders between the root and a result: model, revision, digest, task."""
MAX_NAME = 100
"""Characters of a folder or file name; longer names end in a hash."""


@dataclass(frozen=True)
class Stored:
    """A result and where it lies."""

    path: Path
    """Its JSON file."""
    result: Result
    """Its content."""

    @property
    def id(self) -> str:
        """Eight characters that name it among all results, for people to type."""
        place = "/".join(self.path.parts[-5:])
        return hashlib.sha256(place.encode("utf-8")).hexdigest()[:8]


def safe_name(name: str) -> str:
    """A name as one part of a path; different names give different parts.

    ``/`` becomes ``__``. Anything unusual is percent-encoded, and so is an underscore beside another one or beside a
    ``/``, where it could be taken for one. A long name ends in its hash.
    """
    pieces = re.split(r"(/|_(?=[_/])|(?<=[_/])_)", name)
    encoded = "".join({"/": "__", "_": "%5F"}.get(piece) or quote(piece, safe="", errors="strict") for piece in pieces)
    encoded = re.sub(r"^\.", "%2E", encoded).replace("~", "%7E")
    if len(encoded) > MAX_NAME:
        encoded = encoded[: MAX_NAME - 17] + "-" + hashlib.sha256(name.encode("utf-8")).hexdigest()[:16]
    return encoded or "%empty"


def name_filter(there: Iterable[str], wanted: Sequence[str] | None) -> Callable[[str], bool]:
    """Whether a name is wanted: exactly, or for a word that is nobody's name as a part; upper and lower case alike."""
    if wanted is None:
        wanted = [""]  # a part of every name
    names = {name.casefold() for name in there}
    exact = {word.casefold() for word in wanted if word.casefold() in names}
    parts = [word.casefold() for word in wanted if word.casefold() not in names]
    return lambda name: name.casefold() in exact or any(part in name.casefold() for part in parts)


class ResultStore:
    """A folder of results."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, model: ModelSpec, task: str) -> Path:
        """Where the results of a resolved model on a task lie."""
        revision = model.revision or "unresolved"
        if ":" in revision:
            kind, value = revision.split(":", 1)
            revision = f"{kind}-{value[:16]}"
        return self.root / safe_name(model.name) / safe_name(revision) / model.digest[:8] / safe_name(task)

    def path(self, result: Result) -> Path:
        """The JSON file of a result."""
        stem = f"{safe_name(result.split)}.{safe_name(result.subset)}"
        ending = "error" if result.status == "error" else result.signature.protocol_digest[:8]
        return self.folder(result.model, result.task.name) / f"{stem}.{ending}.json"

    def put(self, result: Result, records: ItemRecords | None = None, run: Run | None = None) -> Stored:
        """Writes a result and its items. Raises ``StoreError``; then the old result, if any, is still there."""
        path = self.path(result)
        atomic.sweep(path.parent)
        if records is not None:
            result = replace(result, items=self._put_file(path.parent, items.records_to_bytes(records), "items"))
        if run is not None:
            result = replace(result, run=self._put_file(path.parent, items.run_to_bytes(run), "run"))
        try:
            text = strict_json.dumps(border.dump(result))
        except ValueError as error:
            raise StoreError(f"Can't write {path}: the result doesn't fit strict JSON ({error}).") from None
        atomic.write(path, text.encode("utf-8"))
        if result.status == "ok":
            try:
                self.path(replace(result, status="error")).unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(f"Can't remove the record of an earlier failure ({error}).") from None
        return Stored(path, result)

    def get(self, path: Path) -> Result:
        """The result in a JSON file. Raises ``StoreError`` where it is missing, broken or of another version."""
        try:
            value = strict_json.loads(path.read_bytes())
        except OSError as error:
            raise StoreError(f"{path}: can't be read ({error.strerror}).") from None
        except ValueError as error:
            raise StoreError(f"{path}: not valid JSON ({error}).\n{REMEDY}") from None
        version = value.get("schema_version") if isinstance(value, dict) else None
        if type(version) is not int or version != SCHEMA_VERSION:
            raise StoreError(f"{path}: not a result of schema version {SCHEMA_VERSION} (found {version!r}).\n{REMEDY}")
        try:
            return border.load(Result, value)
        except border.BorderError as error:
            raise StoreError(f"{path}: not a result: {error.problems[0]}\n{REMEDY}") from None

    def records(self, stored: Stored) -> ItemRecords:
        """The items behind a result. Raises ``StoreError`` where they are missing or not the ones it was made from."""
        return items.records_from_bytes(self._get_file(stored, stored.result.items, "items"))

    def run(self, stored: Stored) -> Run:
        """The ranking behind a result. Raises ``StoreError`` where it is missing or another one."""
        return items.run_from_bytes(self._get_file(stored, stored.result.run, "run"))

    def hit_counts(self, stored: Stored) -> dict[str, int]:
        """Query -> hits of the ranking behind a result, in a fraction of the time of ``run``. Raises as that does."""
        return items.hit_counts(self._get_file(stored, stored.result.run, "run"))

    def rankings(self, stored: Stored, queries: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Query -> its documents, best first, of the ranking behind a result, for some queries only."""
        return items.rankings(self._get_file(stored, stored.result.run, "run"), queries)

    def verify(self, stored: Stored) -> None:
        """Raises ``StoreError`` where the files behind a result are missing or not the ones it was made from."""
        for reference, kind in ((stored.result.items, "items"), (stored.result.run, "run")):
            if reference is not None:
                self._get_file(stored, reference, kind)

    def refuse_unwritable(self) -> None:
        """Raises ``StoreError`` where nothing can be written, before hours are spent on what can't be kept."""
        atomic.refuse_unwritable(self.root)

    def find(
        self,
        *,
        model: str | None = None,
        task: str | Sequence[str] | None = None,
        subset: str | None = None,
        status: str | None = None,
        broken: list[str] | None = None,
    ) -> Iterator[Stored]:
        """Stored results in the order of their paths.

        ``task`` is a name or names: a result fits if its task is called so, or, where no task is, if the name is a part
        of its task's. ``model`` likewise, by label or name. Raises ``StoreError`` for a file that isn't a result,
        unless ``broken`` is given, which then takes its message.
        """
        everything = []
        for path in self._json_files(broken):
            try:
                stored = Stored(path, self.get(path))
                if (path.parent.name, path.name) != self.path(stored.result).parts[-2:]:
                    raise StoreError(
                        f"{path}: not where this result belongs; a copy?\nRemove it, or give it its place."
                    )
                everything.append(stored)
            except StoreError as error:
                if broken is None:
                    raise
                broken.append(str(error))
        tasks = [task] if isinstance(task, str) else task
        fits_task = name_filter([each.result.task.name for each in everything], tasks)
        names = [name for each in everything for name in (each.result.label, each.result.model.name)]
        fits_model = name_filter(names, [model] if model is not None else None)
        for stored in everything:
            result = stored.result
            if (
                fits_task(result.task.name)
                and (fits_model(result.label) or fits_model(result.model.name))
                and subset in (None, result.subset)
                and status in (None, result.status)
            ):
                yield stored

    def _json_files(self, broken: list[str] | None) -> list[Path]:
        """Every file that should be a result, sorted. A folder that can't be read is told like a file."""
        found = []

        def unreadable(error: OSError) -> None:
            message = f"{error.filename}: can't be read ({error.strerror})."
            if broken is None:
                raise StoreError(message)
            broken.append(message)

        if not self.root.is_dir():
            return []
        for folder, folders, files in os.walk(self.root, onerror=unreadable):
            if len(Path(folder).relative_to(self.root).parts) == DEPTH:
                names = [name for name in (*files, *folders) if name.endswith(".json") and not name.startswith(".")]
                found += [Path(folder) / name for name in names]
        return sorted(found)

    def garbage(self) -> list[Path]:
        """Files that can go: records of failures, files that no result refers to, and what killed runs left.

        Item files younger than an hour are spared: a run may be about to write the result that refers to them. So is
        what a tag pins. Raises ``StoreError`` where the tags can't be read.
        """
        found = []
        pinned = pins.pinned(self.root)
        young = time.time() - MIN_AGE_S
        for folder in sorted({path.parent for path in self.root.glob("*/*/*/*/*")}):
            used = set()
            try:
                there = [Stored(path, self.get(path)) for path in sorted(folder.glob("*.json"))]
            except StoreError:
                continue  # what a broken result refers to can't be known
            for stored in there:
                if stored.result.status == "error":
                    found.append(stored.path)
                used |= {each.file for each in (stored.result.items, stored.result.run) if each is not None}
            files = sorted([*folder.glob("*.parquet"), *folder.glob(".*.tmp")])
            found += [path for path in files if path.name not in used and path.stat().st_mtime < young]
        return [path for path in found if path not in pinned]

    def _put_file(self, folder: Path, data: bytes, kind: str) -> FileRef:
        digest = hashlib.sha256(data).hexdigest()
        path = folder / f"{digest[:16]}.{kind}.parquet"
        # A file of that name may be the remains of a crash below the file system: trust its bytes, not its name.
        if not (path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest):
            atomic.write(path, data)
        return FileRef(file=path.name, sha256=digest)

    def _get_file(self, stored: Stored, reference: FileRef | None, kind: str) -> bytes:
        if reference is None:
            raise StoreError(f"{stored.path}: this result has no {kind} file.")
        path = stored.path.parent / safe_name(reference.file)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise StoreError(f"{path}: can't be read ({error.strerror}). Run the evaluation again.") from None
        if hashlib.sha256(data).hexdigest() != reference.sha256:
            raise StoreError(f"{path}: not the {kind} that {stored.path.name} was made from (sha256 differs).")
        return data
