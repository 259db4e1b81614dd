"""``board.yaml``: what it says, and every complaint with the line that it is about."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core import border
from embeval.errors import ConfigError
from embeval.leaderboard import definition
from embeval.leaderboard.definition import BoardFile, ShownTask
from tests.support.board_files import board

FULL = """\
title: Ours
description: On our own data.
results: [../../results, "~/other"]
imported: [published]
tags: [prod]
models: ["org/*"]
tasks:
  - docs
  - {task: faq, metric: recall_at_10, split: dev, subset: de, group: Ours, weight: 2, heading: FAQ}
rank_by: borda
gaps: rank
reference: good
production: prod
gate: board.yaml
rag_k: 5
usd_per_hour: 0.8
level: 0.9
older: true
items: 3
texts: true
data: ../../data
reports: true
outputs: [json]
"""


def test_every_key(tmp_path: Path) -> None:
    """Each is read; none is missing from this file; paths start at the folder of the file."""
    found = board(tmp_path, FULL)
    assert {each.name for each in border.describe(BoardFile)} == {
        line.split(":")[0] for line in FULL.splitlines() if line[0].isalpha()
    }
    assert found.shown == (
        ShownTask(task="docs"),
        ShownTask(task="faq", metric="recall_at_10", split="dev", subset="de", group="Ours", weight=2.0, heading="FAQ"),
    )
    assert (found.name, found.title, found.board.rank_by, found.board.usd_per_hour) == ("mine", "Ours", "borda", 0.8)
    assert found.folder("../../results").resolve() == (tmp_path / "results").resolve()
    assert found.folder("~/other") == Path.home() / "other"
    assert found.output("html") == tmp_path / "leaderboards" / "mine" / "index.html"


def test_nothing_has_to_be_said(tmp_path: Path) -> None:
    """An empty file is a board of the results beside it, called as its folder."""
    found = board(tmp_path, "# nothing yet\n", name="minilm-variants")
    assert found.board == BoardFile()
    assert (found.title, found.shown) == ("minilm-variants", ())


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("results: [a]\ntitel: x", 2, "titel: unknown key. Did you mean 'title' or"),
        ("tasks:\n  - docs\n  - {task: faq, wieght: 2}", 3, "tasks[1].wieght: unknown key. Did you mean 'weight'?"),
        ("tasks:\n  - {metric: recall_at_10}", 2, "tasks[0]: the key 'task' is missing"),
        ("tasks:\n  - {task: a}\n  - {task: b, weight: 0}", 3, "weight: must be above 0, not 0.0"),
        ("tasks:\n  - {task: b, weight: -1}", 2, "weight: must be above 0"),
        ("tasks:\n  - {task: b, weight: .inf}", 2, "must be a finite number"),
        ("tasks:\n  - {task: b, group: ' '}", 2, "group: must not be empty"),
        ("tasks:\n  - docs\n  - faq\n  - docs", 4, "tasks[2]: 'docs' stands here twice; first in line 2."),
        (
            "tasks:\n  - {task: docs, metric: map_at_10}\n  - {task: docs, metric: map_at_10, weight: 2}",
            3,
            "tasks[1]: 'docs' stands here twice; first in line 2.",
        ),
        ("tasks:\n  - {task: a, heading: X}\n  - {task: b, heading: X}", 3, "another task is called 'X' too."),
        ("results: [a, b, a]", 1, "results[2]: 'a' stands here twice"),
        ("models:\n  - x\n  - x", 3, "models[1]: 'x' stands here twice; first in line 2."),
        ("outputs: [json, html, json]", 1, "outputs[2]: 'json' stands here twice"),
        ("title: x\nrank_by: mean", 2, "rank_by: Input should be 'mean_task', 'mean_type' or 'borda', not 'mean'"),
        ("title: x\ngaps: ignore", 2, "gaps: Input should be 'exclude' or 'rank'"),
        ("level: 95", 1, "level: must be at least 0.5 and below 1, not 95.0"),
        ("\nrag_k: 0", 2, "rag_k: must be at least 1, not 0"),
        ("items: -1", 1, "items: must not be negative"),
        ("usd_per_hour: 0", 1, "usd_per_hour: must be above 0, not 0.0"),
        ("outputs: []", 1, "outputs: must name at least one"),
        ("outputs: [pdf]", 1, "outputs[0]: Input should be 'html'"),
        ("title: x\nresults: []", 2, "results: name at least one folder, here or under 'imported'."),
        ("results:\n  - ''", 2, "results[0]: a path must not be empty."),
        ('results:\n  - "a\\0b"', 2, "results[0]: a path can't hold the character 0."),
        ("title: x\ndata: ''", 2, "data: a path must not be empty."),
        (f"results:\n  - {'x' * 300}", 2, "results[0]: the name is too long for this file system."),
        ("results:\n  - ~nobody-of-that-name/x", 2, "results[0]: '~nobody-of-that-name/x': the home folder"),
        ("title: x\ngate: none.yaml", 2, "gate: no such file: "),
        ("reference: ''", 1, "reference: must not be empty"),
        ("title: x\ntitle: y", 2, "the key 'title' stands here twice"),
        ("title: x\nresults: ../r", 2, "results: must be a list: [../r]"),
        ("tasks:\n  - docs\n  - 3", 3, "tasks[1]: must be the name of a task, or keys such as 'task', not 3"),
        ("tasks:\n  - task: a\n    weight: high", 3, "tasks[0].weight: Input should be a valid number, not 'high'"),
        ("title: [", 1, "not valid YAML"),
    ],
)
def test_what_is_wrong(text: str, line: int, said: str, tmp_path: Path) -> None:
    """One to three lines: the file, the line, what is wrong."""
    with pytest.raises(ConfigError) as caught:
        board(tmp_path, text)
    message = str(caught.value)
    assert said in message
    assert f"board.yaml, line {line}: " in message
    assert message.count("\n") < 3


@pytest.mark.parametrize("text", ["- docs", "docs", "3"])
def test_a_file_without_keys(text: str, tmp_path: Path) -> None:
    """A list or a word is no board."""
    with pytest.raises(ConfigError, match="must hold keys such as 'results' and 'tasks'"):
        board(tmp_path, text)


def test_no_file(tmp_path: Path) -> None:
    """The message names the command that writes one of this kind."""
    with pytest.raises(ConfigError, match="'embeval leaderboard init' writes one"):
        definition.load(tmp_path / "board.yaml")


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["task", "weight", "x"]), below),
    max_leaves=5,
)
KEYS = st.sampled_from([*BoardFile.__dataclass_fields__, "titel"])


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(KEYS, ANYTHING, max_size=4))
def test_whatever_stands_in_a_file(value: dict[str, Any]) -> None:
    """It loads, or the complaint names the file and the line; no other error comes up."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = board(Path(folder), json.dumps(value))
        except ConfigError as error:
            assert "board.yaml, line 1: " in str(error)  # noqa: PT017  # what stands there is anything
        else:
            assert {name: each for name, each in border.dump(found.board).items() if name in value}.keys() == {*value}
