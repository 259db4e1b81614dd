"""board.json: a built board written and read back equal, small, and refused where it is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from embeval.core import border, strict_json
from embeval.core.specs import ModelSpec
from embeval.errors import StoreError
from embeval.leaderboard.snapshot import ItemList, Point, Snapshot, dumps, load
from tests.support import boards, shown
from tests.support.hostile import hostile


def back(made: Snapshot, folder: Path) -> Snapshot:
    """The board, written and read."""
    file = folder / "board.json"
    file.write_bytes(dumps(made).encode())
    return load(file)


@pytest.mark.parametrize(
    "made", [shown.small(), boards.synthetic(12, 7, n_tested=5), Snapshot(title="", columns=(), models=())]
)
def test_comes_back_equal(made: Snapshot, tmp_path: Path) -> None:
    """Whatever is in it, and equal in what it writes."""
    assert back(made, tmp_path) == made
    assert dumps(back(made, tmp_path)) == dumps(made)


def test_what_differs_from_the_default_stays(tmp_path: Path) -> None:
    """A list that is empty where it isn't by default, nulls in lists, settings of models."""
    made = shown.small()
    values = (0.5, *(None for _ in made.columns[1:]))
    point = Point(model="m", label="m", revision="r", date="2026-01-01", values=values, mean=None)
    odd = ModelSpec(name="x", dtype="int8", prompts={"query": ""}, args={"trust_remote_code": False})
    made = replace(made, outputs=(), history=(point,), models=(replace(made.models[0], spec=odd), *made.models[1:]))
    assert back(made, tmp_path) == made


def test_it_is_small_and_can_be_compared_by_line() -> None:
    """Less than half of what it would be with defaults; a model that changes is one line that changes."""
    made = boards.synthetic(50, 20)
    text = dumps(made)
    assert len(text) < 0.5 * len(strict_json.canonical(border.dump(made)))
    assert json.loads(text)["schema_version"] == 1
    changed = replace(made, models=(replace(made.models[0], label="other"), *made.models[1:]))
    old, new = text.splitlines(), dumps(changed).splitlines()
    assert len([1 for was, now in zip(old, new, strict=True) if was != now]) == 1


@settings(max_examples=40, deadline=None)
@given(hostile())
def test_texts_come_back(text: str) -> None:
    """Any text, as JSON and as a record."""
    made = replace(shown.small(), title=text, remarks=(text,))
    again = border.load(Snapshot, strict_json.loads(dumps(made)))
    assert again == made


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "not a board of form 1 (found None)"),
        (b'{"schema_version": 2}', "not a board of form 1 (found 2)"),
        (b'{"schema_version": 1, "title": "x", "columns": []}', "not a board: the key 'models' is missing"),
        (
            b'{"schema_version": 1, "title": "x", "columns": [], "models": [], "colour": 1}',
            "not a board: colour: unknown key",
        ),
    ],
)
def test_anything_else_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    """With the file, what is wrong with it, and what to do."""
    file = tmp_path / "board.json"
    file.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)
    assert "embeval leaderboard build" in str(caught.value)


CHANGES: list[tuple[Callable[[Snapshot], Snapshot], str]] = [
    (lambda made: replace(made, columns=made.columns[1:]), "model-0000 has 3 cells, and there are 2 columns"),
    (lambda made: replace(made, reference=4), "the reference isn't among the models"),
    (lambda made: replace(made, reference=-1), "the reference isn't among the models"),
    (lambda made: replace(made, tested=(0, 4)), "what is tested isn't among the models"),
    (lambda made: replace(made, tested=(0, 0)), "what is tested isn't among the models"),
    (lambda made: replace(made, tested=(0,)), "Task00 has other pairs than the models that are tested"),
    (lambda made: replace(made, pairs=made.pairs[1:]), "there are pairs of 2 columns, and 3 columns"),
    (
        lambda made: replace(made, pairs=tuple(replace(each, freedom=0.0) for each in made.pairs)),
        "Task00 has pairs of no degrees of freedom",
    ),
    (lambda made: replace(made, level=1.0), "level must be at least 0.5 and below 1, not 1"),
    (
        lambda made: replace(made, columns=(replace(made.columns[0], weight=0.0), *made.columns[1:])),
        "a column has no weight",
    ),
    (lambda made: replace(made, models=(made.models[0], *made.models[:-1])), "two models have the same label"),
    (lambda made: _first(made, report="../../x.html"), "the report of model-0000 is no file of this folder"),
    (
        lambda made: _first(made, items=(ItemList(column=3, n_lost=0, n_gained=0),)),
        "model-0000 has items of a column that isn't there",
    ),
    (
        lambda made: replace(
            made, history=(Point(model="m", label="m", revision="r", date="", values=(None,), mean=None),)
        ),
        "the history has other columns",
    ),
]


def _first(made: Snapshot, **fields: Any) -> Snapshot:
    return replace(made, models=(replace(made.models[0], **fields), *made.models[1:]))


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_parts_that_do_not_fit_together(change: Callable[[Snapshot], Snapshot], message: str, tmp_path: Path) -> None:
    """An edited file is told from a built one before pages are made of it."""
    made = boards.synthetic(4, 3, n_tested=2)
    assert back(made, tmp_path) == made
    with pytest.raises(StoreError) as caught:
        back(change(made), tmp_path)
    assert f"not a board: {message}." in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """By its path."""
    with pytest.raises(StoreError, match=r"board\.json: can't be read \(No such file"):
        load(tmp_path / "board.json")
