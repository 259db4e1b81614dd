"""``results tag``: what it prints where, and how it ends."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from embeval.store.results import ResultStore
from tests.support import stored as made
from tests.support.commands import here


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results of two models."""
    folder = tmp_path_factory.mktemp("project")
    store = ResultStore(folder / "results")
    for model in ("org/one", "org/two"):
        made.put(store, {"ndcg_at_10": [1.0, 0.5, 0.0]}, model=model)
    return folder


@pytest.fixture
def project(filled: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(filled / "results", tmp_path / "results")
    return tmp_path


def test_a_tag_from_its_making_to_its_end(project: Path) -> None:
    """Made, shown, moved (with what it was before), listed with results, and removed."""
    done = here("results", "tag", "prod", "-m", "one", cwd=project)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("prod: one #")
    assert done.out.endswith(", 1 result of 1 task\n")
    again = here("results", "tag", "prod", "-m", "one", cwd=project)
    assert again.out == done.out.replace("task\n", "task; as before\n")
    moved = here("results", "tag", "prod", "-m", "two", cwd=project)
    assert moved.out.startswith("prod: two #")
    assert f"; before: {done.out.removeprefix('prod: ').strip()}, tagged at 20" in moved.out
    shown = here("results", "list", "--json", cwd=project).json
    assert [(each["model"]["name"], each["tags"]) for each in shown] == [("org/one", []), ("org/two", ["prod"])]
    table = here("results", "list", cwd=project).out.splitlines()
    assert table[1].split()[-1] == "Tags"
    assert [line.split()[-1] == "prod" for line in table[3:5]] == [False, True]
    gone = here("results", "tag", "prod", "--remove", cwd=project)
    assert gone.out.startswith("prod is no tag any more; before: two #")
    listed = here("results", "tag", "--list", cwd=project)
    assert (listed.code, listed.out) == (0, "")
    assert "Nothing is tagged in results" in listed.err
    assert "Tags" not in here("results", "list", cwd=project).out


def test_what_a_tag_pins_is_told_and_whether_it_is_whole(project: Path) -> None:
    """Paths of one tag, the state of all; the same as JSON."""
    here("results", "tag", "prod", "-m", "one", cwd=project)
    (path,) = (project / "results").glob("org__one/*/*/*/*.json")
    shown = here("results", "tag", "prod", "--list", cwd=project)
    assert shown.out.splitlines()[1:] == [str(path.relative_to(project))]
    assert "whole" in here("results", "tag", "--list", cwd=project).out
    path.unlink()
    assert "broken: 1 changed or gone" in here("results", "tag", "--list", cwd=project).out
    told = here("results", "tag", "prod", "--list", cwd=project)
    assert "tagged 'prod', is gone" in told.err
    (value,) = here("results", "tag", "--list", "--json", cwd=project).json
    assert value["tag"] == "prod"
    assert value["model"] == "one"
    assert [each["file"] for each in value["results"]] == [str(path.relative_to(project / "results"))]
    assert len(value["problems"]) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("prod",), 2, "these are of 2: one #"),
        ((), 2, "Which tag?"),
        (("prod", "--list", "--remove"), 2, "can't go together"),
        (("prod", "--remove", "-m", "one"), 2, "leave out which results"),
        (("a b", "-m", "one"), 2, "A tag can't be called 'a b'"),
        (("prod", "--remove"), 2, "Unknown tag 'prod'. Nothing is tagged here."),
        (("prod", "--list"), 2, "Unknown tag 'prod'"),
        (("prod", "nowhere"), 3, "No stored result fits 'nowhere'"),
        (("prod", "--results", "none", "-m", "one"), 3, "No stored result fits"),
    ],
)
def test_what_is_refused(project: Path, words: tuple[str, ...], code: int, said: str) -> None:
    """A short message, and nothing is written."""
    done = here("results", "tag", *words, cwd=project)
    assert done.code == code
    assert done.err.startswith("Error: ")
    assert said in done.err
    assert done.out == ""
    assert not (project / "results" / "tags.json").exists()
