"""Tags: names for a set of results of one model, such as the baseline of a gate.

A tag pins its results by content. One that has changed or gone since it was tagged is told, never used.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from embeval.core.words import plural
from embeval.errors import StoreError, UnknownNameError, UsageError
from embeval.store import pins
from embeval.store.pins import Pin, Tag
from embeval.store.results import ResultStore, Stored


class Tags:
    """The tags of a folder of results."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = ResultStore(root)

    def all(self) -> dict[str, Tag]:
        """Name -> tag, by name. Raises ``StoreError`` for a broken file of tags."""
        return pins.read(self.root)

    def get(self, name: str) -> tuple[Stored, ...]:
        """What a tag pins, in the order of the paths.

        Raises ``UnknownNameError`` for no such tag, ``StoreError`` where one of its results has changed or gone.
        """
        tag = _named(name, self.all())
        found = []
        for pin in tag.results:
            path = self.root / pin.file
            if path.exists():
                found.append(Stored(path, self.store.get(path)))
            # Read first, hashed second: whatever is replaced in between is noticed.
            if problem := self._problem(name, tag, pin):
                raise StoreError(problem)
        return tuple(found)

    def held(self, name: str) -> tuple[tuple[Path, ...], tuple[str, ...]]:
        """(the files of a tag that are still as they were tagged, one message for each of the others).

        Raises ``UnknownNameError`` for no such tag.
        """
        tag = _named(name, self.all())
        problems = {pin.file: self._problem(name, tag, pin) for pin in tag.results}
        held = tuple(self.root / file for file, problem in problems.items() if problem is None)
        return held, tuple(each for each in problems.values() if each is not None)

    def problems(self, name: str) -> list[str]:
        """One message for each result of a tag that has changed or gone. Raises ``UnknownNameError``."""
        return list(self.held(name)[1])

    def put(self, name: str, results: Sequence[Stored]) -> tuple[Tag | None, Tag]:
        """Gives results a name: (what the tag was before, what it is now).

        Raises ``UsageError`` for a bad name, no results, results of several models or two results of the same sub-set
        of a task; ``StoreError`` for failed runs, results of another folder, and broken items.
        """
        pins.checked_name(name)
        _refuse_mixed(results)
        made = [self._pin(each) for each in sorted(results, key=lambda each: each.path)]
        model = results[0].result
        now = Tag(
            model=model.model.label,
            model_digest=model.signature.model_digest,
            tagged_at=datetime.now(UTC).isoformat(timespec="seconds"),
            results=tuple(made),
        )
        with pins.changing(self.root) as tags:
            before = tags.get(name)
            tags[name] = now
        return before, now

    def remove(self, name: str) -> Tag:
        """Forgets a tag and says what it was; its results stay. Raises ``UnknownNameError``, ``StoreError``."""
        _named(name, self.all())  # leaves no lock behind for a name that is none
        with pins.changing(self.root) as tags:
            before = _named(name, tags)
            del tags[name]
        return before

    def _pin(self, stored: Stored) -> Pin:
        if stored.result.status != "ok":
            raise StoreError(f"{stored.path}: this run failed, and a tag needs results. Run it again.")
        try:
            place = stored.path.resolve().relative_to(self.root.resolve())
        except ValueError:
            raise StoreError(f"{stored.path}: not in {self.root}, and tags are kept beside their results.") from None
        self.store.verify(stored)
        digest = _digest(stored.path)
        if digest is None:
            raise StoreError(f"{stored.path}: gone just now. Run that evaluation again.")
        try:
            return Pin(file=place.as_posix(), sha256=digest, keeps=tuple(each.file for _, each in stored.result.files))
        except ValueError as error:
            raise StoreError(f"{stored.path}: not where results belong ({error}).") from None

    def _problem(self, name: str, tag: Tag, pin: Pin) -> str | None:
        path = self.root / pin.file
        digest = _digest(path)
        if digest == pin.sha256:
            return None
        what = "is gone" if digest is None else f"has changed since (it was tagged at {tag.tagged_at})"
        command = shlex.join(["embeval", "results", "tag", name, "-m", tag.model])
        return f"{path}, tagged {name!r}, {what}.\nBring the old file back, or tag what is there now: {command}"


def summary(tag: Tag) -> str:
    """What a tag pins, in words: ``minilm #1a2b3c4d, 14 results of 13 tasks``."""
    tasks = {Path(pin.file).parent for pin in tag.results}
    results = plural(len(tag.results), "result", "results")
    return f"{tag.model} #{tag.model_digest[:8]}, {results} of {plural(len(tasks), 'task', 'tasks')}"


def _named(name: str, tags: dict[str, Tag]) -> Tag:
    if name not in tags:
        raise UnknownNameError("tag", name, tags, hint="" if tags else "Nothing is tagged here.")
    return tags[name]


def _refuse_mixed(results: Sequence[Stored]) -> None:
    if not results:
        raise UsageError("There are no results to tag.")
    models = {each.result.signature.model_digest: each for each in results}
    if len(models) > 1:
        shown = ", ".join(f"{each.result.model.label} #{digest[:8]}" for digest, each in models.items())
        raise UsageError(
            f"A tag pins results of one model, and these are of {len(models)}: {shown}.\nNarrow it down with --model, "
            "or name results by ids or a part of their path, such as what stands after #."
        )
    places: dict[tuple[str, str, str], Stored] = {}
    for each in results:
        result = each.result
        other = places.setdefault((result.task.name, result.split, result.subset), each)
        if other is not each:
            raise UsageError(
                f"{other.id} and {each.id} are both of {result.task.name} ({result.split}, {result.subset}), and a "
                "tag pins one. Name one of them."
            )


def _digest(path: Path) -> str | None:
    """sha256 of a file; None where there is none. Raises ``StoreError`` where it can't be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(f"{path}: can't be read ({error.strerror}).") from None
