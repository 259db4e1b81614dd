"""Results on disk: one JSON per result, with a Parquet file of its items beside it.

::

    results/<org>__<model>/<revision>/<digest8>/<task>/<split>.<subset>.<protocol8>.json
                                                       <sha256>.items.parquet, <sha256>.run.parquet,
                                                       <sha256>.tokens.parquet
                                                       <split>.<subset>.error.json

Item files are named by their content and written first, the JSON last and atomically: a JSON that is there has
its items. A failed run leaves an ``error.json`` and never touches a result that was finished before. A folder of many
results has a catalogue beside them, ``.catalogue.npz``, which may go at any time.
"""

from __future__ import annotations

import functools
import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from embeval.core import border, strict_json
from embeval.core.ir import Run
from embeval.core.records import ItemRecords, TokenRecords
from embeval.core.result import SCHEMA_VERSION, FileRef, Result
from embeval.core.specs import ModelSpec
from embeval.errors import StoreError
from embeval.store import atomic, catalogue, items, pins
from embeval.store.packed import Wanted

MIN_AGE_S = 3600
"""A file of items without a result is garbage once it is this old."""
REMEDY = "Run that evaluation again, or remove the file."
MAX_NAME = 100
"""Characters of a folder or file name; longer names end in a hash."""


@dataclass(frozen=True)
class Stored:
    """A result and where it lies."""

    path: Path
    """Its JSON file."""
    result: Result
    """Its content."""
    remembered: bool = field(default=False, compare=False)
    """Whether it comes from the catalogue of its folder, the file itself unread: enough to be shown, not to decide."""

    @property
    def id(self) -> str:
        """Eight characters that name it among all results, for people to type."""
        place = "/".join(self.path.parts[-5:])
        return hashlib.sha256(place.encode("utf-8")).hexdigest()[:8]


@functools.lru_cache(maxsize=10_000)
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


def _file_name(result: Result) -> str:
    stem = f"{safe_name(result.split)}.{safe_name(result.subset)}"
    ending = "error" if result.status == "error" else result.signature.protocol_digest[:8]
    return f"{stem}.{ending}.json"


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
        return self.folder(result.model, result.task.name) / _file_name(result)

    def put(
        self,
        result: Result,
        records: ItemRecords | None = None,
        run: Run | None = None,
        tokens: TokenRecords | None = None,
    ) -> Stored:
        """Writes a result and its items. Raises ``StoreError``; then the old result, if any, is still there."""
        path = self.path(result)
        atomic.sweep(path.parent)
        if records is not None:
            result = replace(result, items=self._put_file(path.parent, items.records_to_bytes(records), "items"))
        if run is not None:
            result = replace(result, run=self._put_file(path.parent, items.run_to_bytes(run), "run"))
        if tokens is not None:
            result = replace(result, tokens=self._put_file(path.parent, items.tokens_to_bytes(tokens), "tokens"))
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
        return self._read(path)[1]

    def _read(self, path: Path) -> tuple[strict_json.Json, Result]:
        try:
            text = path.read_bytes()
            value = strict_json.loads(text)
        except OSError as error:
            raise StoreError(f"{path}: can't be read ({error.strerror}).") from None
        except ValueError as error:
            raise StoreError(f"{path}: not valid JSON ({error}).\n{REMEDY}") from None
        version = value.get("schema_version") if isinstance(value, dict) else None
        if type(version) is not int or version != SCHEMA_VERSION:
            raise StoreError(f"{path}: not a result of schema version {SCHEMA_VERSION} (found {version!r}).\n{REMEDY}")
        try:
            return value, border.load(Result, value, text)
        except border.BorderError as error:
            raise StoreError(f"{path}: not a result: {error.problems[0]}\n{REMEDY}") from None

    def records(self, stored: Stored, columns: Collection[str] | None = None) -> ItemRecords:
        """The items behind a result, with those of ``columns`` that there are, or all.

        Raises ``StoreError`` where they are missing or not the ones it was made from.
        """
        return items.records_from_bytes(self._get_file(stored, stored.result.items, "items"), columns)

    def run(self, stored: Stored) -> Run:
        """The ranking behind a result. Raises ``StoreError`` where it is missing or another one."""
        return items.run_from_bytes(self._get_file(stored, stored.result.run, "run"))

    def hit_counts(self, stored: Stored) -> dict[str, int]:
        """Query -> hits of the ranking behind a result, in a fraction of the time of ``run``. Raises as that does."""
        return items.hit_counts(self._get_file(stored, stored.result.run, "run"))

    def rankings(self, stored: Stored, queries: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Query -> its documents, best first, of the ranking behind a result, for some queries only."""
        return items.rankings(self._get_file(stored, stored.result.run, "run"), queries)

    def tokens(self, stored: Stored) -> TokenRecords:
        """The tokens behind a result. Raises ``StoreError`` where they are missing or others."""
        return items.tokens_from_bytes(self._get_file(stored, stored.result.tokens, "tokens"))

    def verify(self, stored: Stored) -> None:
        """Raises ``StoreError`` where the files behind a result are missing or not the ones it was made from."""
        for kind, reference in stored.result.files:
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
        """Stored results in the order of their paths, those of a large folder from its catalogue where that knows them.

        ``task`` is a name or names: a result fits if its task is called so, or, where no task is, if the name is a part
        of its task's. ``model`` likewise, by label or name. Raises ``StoreError`` for a file that isn't a result,
        unless ``broken`` is given, which then takes its message.
        """

        def tell(error: StoreError) -> None:
            if broken is None:
                raise error
            broken.append(str(error))

        there = catalogue.holdings(self.root, self._read_in_place, tell)
        tasks, models = there.names()
        wanted = Wanted(
            task=name_filter(tasks, [task] if isinstance(task, str) else task),
            model=name_filter(models, None if model is None else [model]),
            subset=lambda name: subset in (None, name),
            status=lambda name: status in (None, name),
        )
        for place, result, remembered in there.fitting(wanted):
            yield Stored(self.root / place, result, remembered)

    def _read_in_place(self, path: Path) -> tuple[strict_json.Json, Result]:
        """The JSON of a file and its result. Raises ``StoreError``, also for one that belongs elsewhere."""
        value, result = self._read(path)
        if (path.parent.name, path.name) != (safe_name(result.task.name), _file_name(result)):
            raise StoreError(f"{path}: not where this result belongs; a copy?\nRemove it, or give it its place.")
        return value, result

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
                used |= {each.file for _, each in stored.result.files}
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
