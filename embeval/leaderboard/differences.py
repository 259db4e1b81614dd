"""What differs between two built boards, in words: the first thing that a reader would notice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from embeval.core import figures
from embeval.leaderboard.snapshot import Column, Item, ItemList, Model, Snapshot

LISTS = ("columns", "models", "pairs", "tested", "history", "remarks", "failures")
"""Parts that are told in their own words, or last."""
LATER = (*LISTS, "reference", "date")
"""Parts that other differences bring with them: the newest result is another one wherever a value is."""


def first(old: Snapshot, new: Snapshot) -> str | None:
    """The first difference, as a sentence without its stop; None: they are equal."""
    return next(_differences(old, new), None)


def _differences(old: Snapshot, new: Snapshot) -> Iterator[str]:
    names = [each.name for each in fields(Snapshot) if each.name not in LATER]
    for name in names:
        yield from _of_part(name, old, new)
    yield from _of_names("column", [_name(each) for each in old.columns], [_name(each) for each in new.columns])
    yield from _of_columns(old.columns, new.columns)
    yield from _of_names("model", [each.label for each in old.models], [each.label for each in new.models])
    for was, now in zip(old.models, new.models, strict=True):
        yield from _of_models(was, now, new.columns)
    yield from _of_part("date", old, new)
    for name in (*LISTS, "reference"):
        if getattr(old, name) != getattr(new, name):
            yield _of_list(name, old, new) if name in LISTS else f"another {name}"


def _of_part(name: str, old: Snapshot, new: Snapshot) -> Iterator[str]:
    if (was := getattr(old, name)) != (now := getattr(new, name)):
        yield f"{name.replace('_', ' ')}: {was!r} there, {now!r} now"


def _of_list(name: str, old: Snapshot, new: Snapshot) -> str:
    was, now = getattr(old, name), getattr(new, name)
    added = [each for each in now if each not in was]
    return f"now among the {name}: {added[0]}" if added and isinstance(added[0], str) else f"{name} differ"


def _name(column: Column) -> str:
    return f"{column.heading} ({column.metric})"


def _of_names(kind: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for name in new:
        if name not in old:
            yield f"the {kind} {name} is not there yet"
    for name in old:
        if name not in new:
            yield f"the {kind} {name} is there and has no result now"
    if old != new:
        yield f"another order of {kind}s: {_moved(old, new)}"


def _moved(old: Sequence[str], new: Sequence[str]) -> str:
    return next(f"{was} there, {now} now" for was, now in zip(old, new, strict=True) if was != now)


def _of_columns(old: Sequence[Column], new: Sequence[Column]) -> Iterator[str]:
    for was, now in zip(old, new, strict=True):
        if was.protocol != now.protocol:
            yield f"the column {_name(now)}: of other data or options than there"
        if part := _part(was, now):
            yield f"the column {_name(now)}: {part}"


def _of_models(old: Model, new: Model, columns: Sequence[Column]) -> Iterator[str]:
    for column, was, now in zip(columns, old.cells, new.cells, strict=True):
        if was != now:
            values = [figures.figure(None if each is None else each.value) for each in (was, now)]
            part = None if was is None or now is None else _part(was, now)
            told = f"{values[0]} there, {values[1]} now" if values[0] != values[1] else part or "a gap on one side only"
            yield f"{new.label} on {_name(column)}: {told}"
    for part in ("standing", "facts", "measures", "gate"):
        was, now = getattr(old, part), getattr(new, part)
        if was != now:
            told = (None if was is None or now is None else _part(was, now)) or "there in one only"
            yield f"{new.label}, {part}: {told}"
    if old.items != new.items:
        yield f"{new.label}: {_of_items(old.items, new.items)}"
    if part := _part(old, new):
        yield f"{new.label}: {part}"


def _of_items(old: Sequence[ItemList], new: Sequence[ItemList]) -> str:
    if _without_texts(old) != _without_texts(new):
        return "other items lost or gained"
    texts = {item.text for each in new for item in (*each.lost, *each.gained)}
    return "the texts of its items are not at hand here" if texts == {None} else "other texts of its items"


def _without_texts(lists: Sequence[ItemList]) -> list[ItemList]:
    def bare(items: Sequence[Item]) -> tuple[Item, ...]:
        return tuple(replace(item, text=None) for item in items)

    return [replace(each, lost=bare(each.lost), gained=bare(each.gained)) for each in lists]


def _part(old: Any, new: Any) -> str | None:
    """The first field in which two records differ, with both values where they are short."""
    for each in fields(old):
        was, now = getattr(old, each.name), getattr(new, each.name)
        if was != now:
            told = f"{was!r} there, {now!r} now"
            return f"{each.name.replace('_', ' ')}: {told}" if len(told) < 120 else f"another {each.name}"
    return None
