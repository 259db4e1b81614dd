"""``embeval cache`` as a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from embeval.encoders.cache import VectorCache
from tests.support.caching import DESCRIPTION, KEY, batch, counts_of, vectors_of
from tests.support.commands import Done, embeval

OTHER_KEY = "a0" * 32
N_TEXTS = 60
ROW_BYTES = 48 + 4 * 24


class Folder:
    """A cache folder, and the command on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, **variables: str) -> Done:
        """``embeval cache …`` with that folder."""
        env = {"EMBEVAL_CACHE": str(self.folder), **variables}
        return embeval("cache", *words, cwd=self.folder.parent, env=env)

    @property
    def rows(self) -> Path:
        """The only file of the first shelf."""
        return self.folder / "vectors" / "shelves" / KEY[:32] / "00000000.rows"


@pytest.fixture
def empty(tmp_path: Path) -> Folder:
    """A folder that is not there."""
    return Folder(tmp_path / "c")


@pytest.fixture
def filled(empty: Folder) -> Folder:
    """60 vectors of 24 numbers of one model, one of 2 numbers of another, whose name looks like markup."""
    cache = VectorCache(empty.folder / "vectors")
    texts = batch("cli", 0)
    cache.shelf(KEY, DESCRIPTION).put(texts, vectors_of(texts), counts_of(texts))
    other = {"model": "[red]other", "role": "text", "prompt": ""}
    cache.shelf(OTHER_KEY, other).put(["a"], np.ones((1, 2), np.float32), counts_of(["a"]))
    cache.close()
    return empty


def flip(file: Path) -> None:
    """Changes one bit of the last vector."""
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def test_nothing_there(empty: Folder) -> None:
    """Fine, said in one sentence, and no folder is made."""
    for words in (["stats"], ["verify"], ["stats", "--quiet"]):
        assert empty(*words) == Done(0, "The cache is empty.\n", "")
    assert empty("stats", "--json").json["shelves"] == []
    assert empty("prune", "--all").out == "0 vectors (0 B) were removed.\n"
    assert not empty.folder.exists()


def test_a_file_in_the_way_is_no_empty_cache(empty: Folder) -> None:
    """What is said names the file, for every verb."""
    empty.folder.write_text("", encoding="utf-8")
    for words in (["stats"], ["verify"], ["prune", "--all"], ["prune", "--to", "0"]):
        done = empty(*words)
        assert (done.code, done.out) == (3, "")
        assert f"{empty.folder} is no folder. Set EMBEVAL_CACHE to one." in done.err


def test_prune_all_takes_what_a_killed_one_left(filled: Folder) -> None:
    """A folder that was renamed and not removed any more."""
    (filled.folder / "vectors").rename(filled.folder / ".vectors.0123abcd.removed")
    assert filled("prune", "--all", "--dry-run").code == 0
    assert len(list(filled.folder.iterdir())) == 1
    assert filled("prune", "--all").code == 0
    assert list(filled.folder.iterdir()) == []


def test_stats(filled: Folder) -> None:
    """A line for each shelf, the largest first; then how much of the limit is used."""
    done = filled("stats", EMBEVAL_CACHE_LIMIT="500MiB")
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines() if line.strip()]
    assert lines[0] == [*("Model Role Prompt Dtype Dims Vectors Size Created (UTC) Last written (UTC)".split())]
    assert lines[2][:9] == ["org/model", "query", "'query:", "'", "float32", "24", "60", "8.4", "KiB"]
    assert lines[3][:6] == ["[red]other", "text", "2", "1", "56", "B"]
    assert done.out.splitlines()[-1].endswith(f"of at most 500 MiB in {filled.folder / 'vectors'}")


def test_stats_as_json(filled: Folder) -> None:
    """Nothing is left out: exact bytes and the whole key."""
    told = filled("stats", "--json").json
    assert (told["folder"], told["max_bytes"]) == (str(filled.folder / "vectors"), 20 * 2**30)
    first, second = told["shelves"]
    assert (first["key"], first["description"], first["dim"]) == (KEY, DESCRIPTION, 24)
    assert (first["n_vectors"], first["n_bytes"]) == (N_TEXTS, N_TEXTS * ROW_BYTES)
    assert (second["key"], second["n_bytes"]) == (OTHER_KEY, 56)
    assert told["n_bytes"] >= first["n_bytes"] + second["n_bytes"]


def test_prune_a_model(filled: Folder) -> None:
    """By a part of its name; a dry run leaves it."""
    would = filled("prune", "--model", "ORG/", "--dry-run")
    assert (would.code, would.out, would.err) == (0, "60 vectors (8.4 KiB) would be removed.\n", "")
    assert filled.rows.exists()
    assert filled("prune", "-m", "org/", "--json").json == {"n_vectors": 60, "n_bytes": 8640, "dry_run": False}
    assert not filled.rows.exists()
    assert [shelf["key"] for shelf in filled("stats", "--json").json["shelves"]] == [OTHER_KEY]


def test_prune_to_a_size_and_all(filled: Folder) -> None:
    """The oldest go first; with --all the folder goes too."""
    assert filled("prune", "--to", "1GB").out == "0 vectors (0 B) were removed.\n"
    assert filled("prune", "--to", "0").out == "61 vectors (8.5 KiB) were removed.\n"
    assert filled("prune", "--all").code == 0
    assert list(filled.folder.iterdir()) == []


@pytest.mark.parametrize("words", [[], ["--all", "--to", "1GB"], ["--model", "x", "--all"]])
def test_prune_wants_to_know_what(filled: Folder, words: list[str]) -> None:
    """One of three, else nothing is removed."""
    done = filled("prune", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: Say what to remove: one of --model, --to and --all.")
    assert filled.rows.exists()


def test_a_variable_of_another_verb_removes_nothing(filled: Folder) -> None:
    """What 'leaderboard show --all' and 'results list --model' take from the environment is no wish to prune."""
    for variables in ({"EMBEVAL_ALL": "1"}, {"EMBEVAL_MODEL": "org/"}):
        done = filled("prune", **variables)
        assert (done.code, done.out) == (2, "")
        assert filled.rows.exists()


def test_sizes_that_are_none(filled: Folder) -> None:
    """Of the option and of the variable, both by name."""
    done = filled("prune", "--to", "half")
    assert (done.code, done.err) == (
        2,
        "Error: --to must be a size such as 20GB, 500MiB or 1000000 (bytes), not 'half'.\n",
    )
    done = filled("stats", EMBEVAL_CACHE_LIMIT="lots")
    assert (done.code, done.err.split(" must")[0]) == (2, "Error: EMBEVAL_CACHE_LIMIT")


def test_verify(filled: Folder) -> None:
    """All is well; then a bit flips: exit code 3 and whose vectors they are, until they are removed."""
    assert filled("verify", "--quiet") == Done(0, "All 61 vectors are as they were written.\n", "")
    flip(filled.rows)
    done = filled("verify", "-q")
    assert (done.code, done.err) == (3, "")
    lines = [line for line in done.out.splitlines() if line.strip()]
    assert lines[2].split() == ["org/model", "query", "query:", "1"]
    assert lines[-1] == (
        "1 of 61 vectors are not as they were written. They are not used; 'embeval cache verify --fix' removes them."
    )
    told = filled("verify", "--json", "-q")
    assert (told.code, told.json["bad"]) == (3, [{"key": KEY, "description": DESCRIPTION, "n_bad": 1}])
    fixed = filled("verify", "--fix", "-q")
    assert (fixed.code, fixed.out.splitlines()[-1].split(". ")[1]) == (0, "They were removed.")
    assert filled("verify", "-q") == Done(0, "All 60 vectors are as they were written.\n", "")


def test_verify_tells_of_what_killed_processes_left(filled: Folder) -> None:
    """Which is harmless: exit code 0."""
    with filled.rows.open("ab") as file:
        file.write(b"x" * 2048)
    done = filled("verify")
    assert (done.code, done.out) == (0, "All 61 vectors are as they were written.\n")
    assert "Killed processes left 2.0 KiB, which is harmless.\n" in done.err
    assert "harmless and was removed.\n" in filled("verify", "--fix").err
    assert filled.rows.stat().st_size == N_TEXTS * ROW_BYTES


def test_a_broken_index(filled: Folder) -> None:
    """Exit code 3 and the way out, which works."""
    (filled.folder / "vectors" / "index" / "data.mdb").write_bytes(os.urandom(65536))
    for words in (["stats"], ["verify"], ["prune", "--to", "1GB"]):
        done = filled(*words)
        assert (done.code, done.out) == (3, "")
        assert "can't be used" in done.err
        assert done.err.endswith("'embeval cache prune --all' empties it.\n")
        assert "Traceback" not in done.err
    assert filled("prune", "--all").code == 0
    assert filled("stats").out == "The cache is empty.\n"
