"""Tags, for the terminal and as JSON."""

from __future__ import annotations

from typing import Any

from embeval.cli import _state
from embeval.core import border
from embeval.store.pins import Tag
from embeval.store.tags import Tags, summary
from embeval.workflows.tagging import Chosen


def made(name: str, before: Tag | None, now: Tag, found: Chosen) -> None:
    """Says what a tag pins now, what it did before, and what was not taken."""
    for message in found.broken:
        _state.note(f"Left out: {message}")
    for each in found.older:
        _state.note(f"Left out: {each.id}, an older result of {each.result.task.name} with other data or options.")
    if _state.settings.json:
        older = [each.id for each in found.older]
        _state.out_json({"tag": name, "before": _json(before), "now": _json(now), "left_out": older})
        return
    if before is None:
        moved = ""
    elif _same(before, now):
        moved = "; as before"
    else:
        moved = f"; before: {summary(before)}, tagged at {before.tagged_at}"
    _state.out_text(f"{name}: {summary(now)}{moved}\n")


def removed(name: str, before: Tag) -> None:
    """Says what a tag was that is gone."""
    if _state.settings.json:
        _state.out_json({"tag": name, "before": _json(before), "now": None})
        return
    _state.out_text(f"{name} is no tag any more; before: {summary(before)}, tagged at {before.tagged_at}\n")


def listed(tags: Tags, name: str | None) -> None:
    """Shows every tag, or with a name what it pins; and whether that is still there as it was."""
    if name is not None:
        _one(tags, name)
        return
    every = tags.all()
    problems = {each: tags.problems(each) for each in every}
    if _state.settings.json:
        _state.out_json([{"tag": each, **_json(tag), "problems": problems[each]} for each, tag in every.items()])
        return
    if not every:
        _state.note(f"Nothing is tagged in {tags.root}. 'embeval results tag prod -m MODEL' does that.")
        return
    from embeval.cli import _tables

    rows = [[each, summary(tag), tag.tagged_at, _state_of(problems[each])] for each, tag in every.items()]
    headings = ["Tag", "Results", "Tagged at", ""]
    _state.out(_tables.fitting(headings, rows, _state.console(), whole=("Tag",), spare=("Tagged at",)))


def _one(tags: Tags, name: str) -> None:
    problems = tags.problems(name)
    tag = tags.all()[name]
    if _state.settings.json:
        _state.out_json({"tag": name, **_json(tag), "problems": problems})
        return
    _state.out_text(f"{name}: {summary(tag)}, tagged at {tag.tagged_at}\n")
    for pin in tag.results:
        _state.out_text(f"{tags.root / pin.file}\n")
    for problem in problems:
        _state.error_line(problem)


def _state_of(problems: list[str]) -> str:
    return f"broken: {len(problems)} changed or gone" if problems else "whole"


def _same(before: Tag, now: Tag) -> bool:
    return before.results == now.results


def _json(tag: Tag | None) -> Any:
    return None if tag is None else border.dump(tag)
