"""board.json: a built board written and read back equal, small, and refused where it is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from embeval.core import border, strict_json
from embeval.core.specs import ModelSpec
from embeval.errors import StoreError
from embeval.leaderboard.snapshot import Point, Snapshot, dumps, load
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
    point = Point(model="m", label="m", revision="r", date="2026-01-01", values=(None, 0.5), mean=None)
    odd = ModelSpec(name="x", dtype="int8", prompts={"query": ""}, args={"trust_remote_code": False})
    made = shown.small()
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


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """By its path."""
    with pytest.raises(StoreError, match=r"board\.json: can't be read \(No such file"):
        load(tmp_path / "board.json")
