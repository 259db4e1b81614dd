"""The files of a board: written together, left alone where they are fresh, and told where they are stale."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embeval.errors import ConfigError, StoreError, UnknownNameError, UsageError
from embeval.leaderboard import definition, snapshot
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Snapshot
from embeval.workflows.boards import building, finding, opening, writing
from embeval.workflows.boards.template import TEMPLATE
from tests.support.board_files import NDCG, POOR, RECALL, board, three
from tests.support.stored import put
from tests.support.whole_board import whole

TEXT = "results: [../../results]\noutputs: [html, json]\n"


@pytest.fixture
def mine(tmp_path: Path) -> Definition:
    """A board that was built."""
    three(tmp_path)
    found = board(tmp_path, TEXT)
    writing.write(building.snapshot(found), found)
    return found


def stale(of: Definition) -> dict[str, str]:
    """Name of each stale file -> why."""
    return {each.path.name: each.why for each in writing.check(of).stale}


def files(of: Definition) -> dict[str, tuple[bytes, int]]:
    """Name -> content and time of every file beside a board."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in of.path.parent.iterdir()}


# --- writing ------------------------------------------------------------------------------------------------------


def test_fresh_files_are_left_as_they_are(mine: Definition) -> None:
    """A second build writes nothing: the same bytes, and the times of the first; a stale one is written alone."""
    before = files(mine)
    assert before.keys() == {"board.yaml", "index.html", "board.json"}
    writing.write(building.snapshot(mine), mine)
    assert files(mine) == before
    mine.output("html").write_bytes(before["index.html"][0] + b"edited")
    writing.write(building.snapshot(mine), mine)
    assert {name: data for name, (data, _) in files(mine).items()} == {name: data for name, (data, _) in before.items()}
    assert files(mine)["board.json"] == before["board.json"]


def test_nothing_is_replaced_where_one_cannot_be_made(mine: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files are rendered before any is written."""

    def broken(made: Snapshot) -> bytes:
        raise StoreError("no")

    before = files(mine)
    put(three(mine.path.parents[2]), {NDCG: POOR, RECALL: POOR}, model="org/new", task="docs")
    monkeypatch.setattr(writing, "FORMS", {**writing.FORMS, "json": broken})  # the last one
    with pytest.raises(StoreError, match="no"):
        writing.write(building.snapshot(mine), mine)
    assert files(mine) == before


@pytest.mark.parametrize(("kind", "name"), [("html", "index.html"), ("readme", "README.md")])
def test_what_is_not_of_a_board_is_not_replaced(kind: str, name: str, mine: Definition) -> None:
    """A board.yaml in the folder of a project leaves its README.md, and its page, and says what to do."""
    found = board(mine.path.parents[2], f"results: [../../results]\noutputs: [json, {kind}]\n")
    file = mine.path.parent / name
    file.write_text("# Our project", encoding="utf-8")
    before = files(found)
    with pytest.raises(ConfigError, match=f"line 2: outputs: .*{name} is not of a board, .* or leave '{kind}' out"):
        writing.write(building.snapshot(found), found)
    assert files(found) == before
    file.write_text("\n", encoding="utf-8")
    writing.write(building.snapshot(found), found)
    file.write_bytes(file.read_bytes() + b"edited")
    writing.write(building.snapshot(found), found)  # what it made it also replaces
    assert writing.check(found).stale == ()


@pytest.mark.parametrize("name", ["index.html", "board.json"])
def test_a_pipe_or_a_folder_in_the_way(name: str, mine: Definition) -> None:
    """It is told, and nothing waits for the end of a pipe."""
    file = mine.path.parent / name
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(StoreError, match=rf"{name}: can't be read \(Not a file\)"):
        writing.write(building.snapshot(mine), mine)
    with pytest.raises(StoreError, match="Not a file"):
        writing.check(mine)
    file.unlink()
    file.mkdir()
    with pytest.raises(StoreError, match="Not a file"):
        writing.write(building.snapshot(mine), mine)


def test_a_folder_whose_name_is_no_text(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, in the name of the board and of a file that can't be read: the pages show a stand-in."""
    three(tmp_path)
    broken = tmp_path / "results" / "a\udcff" / "b" / "c" / "d" / "e.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{", encoding="utf-8")
    found = board(tmp_path, "results: [../../results]\n", name="b\udcff\udcc3\udca9")
    assert found.title == "b\ufffdé"
    writing.write(building.snapshot(found), found)
    assert writing.check(found).stale == ()
    assert "results/a\ufffd/b/c/d/e.json" in found.output("readme").read_text(encoding="utf-8")


# --- checking -----------------------------------------------------------------------------------------------------


def test_fresh(mine: Definition) -> None:
    """Nothing is told of a board that was just built."""
    assert writing.check(mine) == writing.Checked((), from_results=True)


def test_stale_by_a_new_result(mine: Definition) -> None:
    """Each file is named, with the first difference."""
    store = three(mine.path.parents[2])
    put(store, {NDCG: POOR, RECALL: POOR}, model="org/new", task="docs")
    assert stale(mine) == dict.fromkeys(("index.html", "board.json"), "the model new is not there yet")


def test_stale_by_another_value(mine: Definition) -> None:
    """The model and the task are told, with both values."""
    put(three(mine.path.parents[2]), {NDCG: POOR, RECALL: POOR}, model="org/good", task="docs")
    made = "good on docs (ndcg_at_10): 0.8500 there, 0.2000 now"
    found = stale(mine)
    assert set(found.values()) <= {made, "another order of models: good there, fair now"}
    assert found.keys() == {"index.html", "board.json"}


def test_stale_by_an_edit(mine: Definition) -> None:
    """A page that isn't what its numbers make, a file that is missing, and a broken board.json."""
    mine.output("html").write_bytes(mine.output("html").read_bytes() + b" ")
    assert stale(mine) == {"index.html": "made by another version, or edited by hand"}
    mine.output("html").unlink()
    assert stale(mine) == {"index.html": "not there"}
    mine.output("json").write_text("{", encoding="utf-8")
    assert stale(mine) == {"index.html": "not there", "board.json": "made by another version, or edited by hand"}


def test_every_form_of_board_json_is_that_of_the_results(tmp_path: Path) -> None:
    """Whatever order tasks, groups and settings have: in the file they are sorted by name."""
    made = whole()
    backwards = [
        replace(
            each,
            cells=each.cells[::-1],
            prompts=_backwards(each.prompts),
            standing=replace(each.standing, groups=_backwards(each.standing.groups)),
            imported=each.imported and replace(each.imported, settings=_backwards(each.imported.settings)),
        )
        for each in made.models
    ]
    made = replace(made, columns=made.columns[::-1], models=tuple(backwards), tested=(), pairs=(), history=())
    (tmp_path / "board.json").write_text(snapshot.dumps(made), encoding="utf-8")
    kept = snapshot.load(tmp_path / "board.json")
    for name, form in writing.FORMS.items():
        assert form(kept) == form(made), name


def _backwards(names: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(names.items(), reverse=True))


def test_without_the_results(mine: Definition) -> None:
    """Pages are held against board.json, which has to have what the file says; and that is told."""
    shutil.rmtree(mine.path.parents[2] / "results")
    assert writing.check(mine) == writing.Checked((), from_results=False)
    page = mine.output("html").read_text(encoding="utf-8")
    mine.output("html").write_text(page.replace("Leaderboard", "Ladder", 1), encoding="utf-8")
    assert stale(mine) == {"index.html": "made by another version, or edited by hand"}
    made = json.loads(mine.output("json").read_bytes())
    made["models"][0]["cells"][0]["value"] = 0.99
    mine.output("json").write_text(json.dumps(made), encoding="utf-8")
    assert stale(mine).keys() == {"index.html", "board.json"}

    changed = board(mine.path.parents[2], TEXT + "rank_by: borda\n")
    assert stale(changed) == {"board.json": "rank_by: 'mean_task' there, 'borda' in board.yaml"}
    mine.output("json").unlink()
    with pytest.raises(StoreError, match=r"the results aren't here, and nor is what was built of them"):
        writing.check(mine)


def test_a_board_to_be_looked_at(mine: Definition) -> None:
    """From the results; without them as it was built, which is told; from a board.json."""
    given = str(mine.path.parent)
    live = opening.opened(given)
    assert live == opening.Opened(building.snapshot(mine))
    shutil.rmtree(mine.path.parents[2] / "results")
    assert opening.opened(given) == opening.Opened(live.made, "the results aren't here.")
    assert opening.opened(str(mine.output("json"))).made == live.made


# --- finding ------------------------------------------------------------------------------------------------------


def test_where_boards_lie(mine: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, by folder, by file; all of them; the only one; and the closest name for none."""
    root = mine.path.parents[2]
    monkeypatch.chdir(root)
    found = Path("leaderboards/mine/board.yaml")
    for given in ("mine", "leaderboards/mine", "leaderboards/mine/", "./leaderboards/mine/board.yaml"):
        assert finding.find(given) == found, given
    assert finding.find(str(mine.path.parent)) == mine.path
    assert finding.one(None) == found
    with pytest.raises(UnknownNameError, match=r"Unknown board 'mein'. Did you mean 'mine'\?"):
        finding.find("mein")
    # A path is not a misspelt name.
    with pytest.raises(UsageError, match=r"^leaderboards: no board\.yaml in this folder, so it is no board\. 'embeval"):
        finding.find("leaderboards")
    with pytest.raises(UsageError, match=r"^leaderboards/mine/board\.yml: no such board\. 'embeval"):
        finding.find("leaderboards/mine/board.yml")
    board(root, TEXT, name="other")
    assert finding.chosen([]) == [found, Path("leaderboards/other/board.yaml")]
    assert finding.chosen(["other", "mine", "other"]) == [Path("leaderboards/other/board.yaml"), found]
    with pytest.raises(UsageError, match=r"Which board\? There are mine, other\."):
        finding.one(None)
    # A folder of that name beside leaderboards is another board; the one in leaderboards comes first.
    (root / "mine").mkdir()
    (root / "mine" / "board.yaml").write_text("", encoding="utf-8")
    assert finding.find("mine") == found
    assert finding.find("./mine") == Path("mine/board.yaml")


def test_no_boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that writes one is named."""
    monkeypatch.chdir(tmp_path)
    for call in (lambda: finding.chosen([]), lambda: finding.one(None), lambda: finding.find("x")):
        with pytest.raises(UsageError, match="'embeval leaderboard init' writes one"):
            call()


def test_a_new_board_works_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file loads, shows the results beside it, and names every key; one that is there isn't overwritten."""
    monkeypatch.chdir(tmp_path)
    three(tmp_path)
    path = finding.begin("mine")
    assert path.read_text(encoding="utf-8") == TEMPLATE
    made = building.snapshot(definition.load(path))
    assert [model.label for model in made.models] == ["good", "fair", "poor"]
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"board\.yaml is there already. Edit it, or replace it with --force\."):
        finding.begin("mine")
    assert path.read_text(encoding="utf-8") == "mine"
    finding.begin("mine", overwrite=True)
    assert path.read_text(encoding="utf-8") == TEMPLATE
    for name in ("", "..", "a/b", "-x", "~", "x" * 65, "a b"):
        with pytest.raises(UsageError, match="A board can't be called"):
            finding.begin(name)
    assert os.listdir(tmp_path / "leaderboards") == ["mine"]  # noqa: PTH208  # hidden ones too


def test_the_template_names_every_key(tmp_path: Path) -> None:
    """With the comments taken off, each line is YAML that loads, or one of tasks; nothing is left out or made up."""
    (tmp_path / "embeval.yaml").write_text("", encoding="utf-8")
    lines = [line.removeprefix("# ") for line in TEMPLATE.splitlines()[3:]]
    found = board(tmp_path, "\n".join(lines))
    loaded = {key[0] for key in found.lines if len(key) == 1}
    assert loaded == set(definition.BoardFile.__dataclass_fields__)
