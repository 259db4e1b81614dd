"""Faults that other tools shipped, where they reach a board of many models: each with the right answer, by hand."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from embeval.errors import StoreError
from embeval.leaderboard import snapshot
from embeval.leaderboard.render.flat import flat
from embeval.leaderboard.render.html import packed
from embeval.leaderboard.render.parquet import parquet
from embeval.leaderboard.render.readme import readme
from embeval.leaderboard.snapshot import Model, Snapshot
from embeval.store.results import ResultStore
from embeval.workflows.boards import building
from tests.support.board_files import NDCG, board
from tests.support.stored import put

N = 60
GOLD = [float(row % 6) for row in range(N)]


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """A folder of results, which boards reach as ``../../results``."""
    return ResultStore(tmp_path / "results")


def built(store: ResultStore, text: str = "") -> Snapshot:
    """The board of a file."""
    return building.snapshot(board(store.root.parent, f"results: [../../results]\n{text}"))


def rows(made: Snapshot) -> dict[str, Model]:
    """By label."""
    return {each.label: each for each in made.models}


def pairs(store: ResultStore, model: str, cosine: list[float], task: str = "pairs") -> None:
    """A result on pairs of texts."""
    columns = {"gold": GOLD, "cosine": cosine}
    put(store, columns, model=model, task=task, measured=["cosine_spearman", "cosine_pearson"])


def edited(store: ResultStore, model: str, value: str) -> Path:
    """The file of a model's only result, with another value in it."""
    (stored,) = store.find(model=model)
    stored.path.write_text(re.sub('"value": [0-9.]+', f'"value": {value}', stored.path.read_text("utf-8")), "utf-8")
    return stored.path


def noisy(seed: int) -> list[float]:
    """Cosines that follow gold, more or less."""
    return list(np.asarray(GOLD) + np.random.default_rng(seed).normal(0.0, 1.0, N))


def test_f13_a_constant_has_no_correlation_and_no_rank(store: ResultStore) -> None:
    """Null with its reason in every form, never 0, never NaN; who has it has a gap, and the others their rank."""
    pairs(store, "org/one", noisy(1))
    pairs(store, "org/two", noisy(2))
    pairs(store, "org/flat", [0.5] * N)
    made = built(store)
    found = rows(made)
    (cell,) = found["flat"].cells
    assert cell is not None
    assert (cell.value, cell.low, cell.reason) == (None, None, "constant_input")
    standing = found["flat"].standing
    assert (standing.rank, standing.mean_task, standing.borda, standing.gaps) == (None, None, None, 1)
    assert standing.untested == "no value on pairs: constant_input"
    assert {found[name].standing.rank for name in ("one", "two")} == {1, 2}
    assert [found[name].standing.rank_high for name in ("one", "two")] == [2, 2]  # of two ranked models, not three

    assert "n/a<br><sub>constant_input</sub>" in readme(made)
    (row,) = [each for each in csv.DictReader(io.StringIO(flat(made))) if each["model"] == "flat"]
    assert (row["pairs cosine_spearman"], row["mean_task"], row["rank"]) == ("", "", "")
    (line,) = [each for each in pq.read_table(io.BytesIO(parquet(made))).to_pylist() if each["model"] == "flat"]
    assert (line["value"], line["reason"], line["rank"]) == (None, "constant_input", None)
    for text in (snapshot.dumps(made), json.dumps(packed(made))):
        assert "NaN" not in text
        json.loads(text, parse_constant=pytest.fail)


def test_f13_constant_gold_ranks_nobody(store: ResultStore) -> None:
    """The task tells nothing of anyone: no mean over the rest stands for a mean over all."""
    for name, seed in (("one", 1), ("two", 2)):
        pairs(store, f"org/{name}", noisy(seed))
        columns = {"gold": [3.0] * N, "cosine": noisy(seed)}
        put(store, columns, model=f"org/{name}", task="flat", measured=["cosine_spearman"])
    made = built(store)
    assert [(each.standing.rank, each.standing.mean_task) for each in made.models] == [(None, None)] * 2
    assert {each.standing.untested for each in made.models} == {"no value on flat: constant_input"}


@pytest.mark.parametrize("gaps", ["exclude", "rank"])
def test_f5_a_task_that_is_missing_helps_nobody(gaps: str, store: ResultStore) -> None:
    """The mean is over all tasks or there is none; ranked all the same, a model is the worst where it has no value."""
    for name, easy, hard in (("whole", 0.8, 0.4), ("half", 0.7, None), ("weak", 0.5, 0.5)):
        put(store, {NDCG: [easy] * N}, model=f"org/{name}", task="easy")
        if hard is not None:
            put(store, {NDCG: [hard] * N}, model=f"org/{name}", task="hard")
    found = rows(built(store, f"gaps: {gaps}\n"))
    assert {name: each.standing.mean_task for name, each in found.items()} == {
        "whole": pytest.approx(0.6),
        "half": None,
        "weak": pytest.approx(0.5),
    }
    # As the worst on "hard", half has (0.7 + 0.4) / 2; over what it has it would be the best of all.
    expected = {"whole": 1, "half": None, "weak": 2} if gaps == "exclude" else {"whole": 1, "half": 2, "weak": 3}
    assert {name: each.standing.rank for name, each in found.items()} == expected
    assert found["half"].standing.gaps == 1
    assert (found["half"].standing.rank_low, found["half"].standing.letters) == (None, None)


def test_borda_gives_a_missing_task_no_points(store: ResultStore) -> None:
    """K less the average rank on each task: 2 + 1.5, 0 + 0, 1 + 1.5 points; the ranks are 1, 3, 2."""
    values = {"first": (0.8, 0.5), "half": (0.6, None), "even": (0.7, 0.5)}
    for name, of_tasks in values.items():
        for task, value in zip(("one", "two"), of_tasks, strict=True):
            if value is not None:
                put(store, {NDCG: [value] * N}, model=f"org/{name}", task=task)
    found = rows(built(store, "gaps: rank\nrank_by: borda\n"))
    assert {name: each.standing.rank for name, each in found.items()} == {"first": 1, "half": 3, "even": 2}


def test_f20_what_is_no_number_is_no_value(store: ResultStore) -> None:
    """A file with NaN in place of a score is left out and told, and a built board with one is refused."""
    for name, skill in (("good", 0.8), ("poor", 0.2)):
        put(store, {NDCG: [skill] * N}, model=f"org/{name}")
    path = edited(store, "org/good", "NaN")
    made = built(store)
    assert [each.label for each in made.models] == ["poor"]
    (told,) = [each for each in made.remarks if each.startswith("Left out: ")]
    assert path.name in told
    path = store.root / "board.json"
    path.write_text(re.sub('"value":[0-9.]+', '"value":NaN', snapshot.dumps(made)), "utf-8")
    with pytest.raises(StoreError, match="not valid JSON"):
        snapshot.load(path)


def test_f20_scores_that_no_items_make_are_not_tested(store: ResultStore) -> None:
    """An edited score is shown as it stands, but the model has no interval and the board says why."""
    for name, skill in (("one", 0.8), ("two", 0.6), ("three", 0.4)):
        put(store, {NDCG: [skill, skill / 2] * (N // 2)}, model=f"org/{name}")
    edited(store, "org/three", "0.9")
    found = rows(built(store))
    assert found["three"].standing.untested == "its evidence doesn't hold"
    assert (found["three"].standing.rank, found["three"].standing.rank_low) == (1, None)
    assert {
        name: (each.standing.rank_low, each.standing.rank_high) for name, each in found.items() if each.standing.letters
    } == {
        "one": (1, 2),
        "two": (2, 3),
    }


def test_f20_other_judgments_are_another_column(store: ResultStore) -> None:
    """By the hash of the data, and by an option: no mean is over both, and nobody is ranked by a mixture."""
    put(store, {NDCG: [0.6] * N}, model="org/one")
    put(store, {NDCG: [0.9] * N}, model="org/two", protocol={"data": "other judgments"}, days=1)
    put(store, {NDCG: [0.7] * N}, model="org/one", protocol={"ties": "average"})
    made = built(store, "older: true\n")
    values = [[None if cell is None else cell.value for cell in each.cells] for each in made.models]
    assert len(made.columns) == 3
    assert sorted(sum(value is not None for value in of_model) for of_model in values) == [1, 2]
    assert all(sum(of_model[place] is not None for of_model in values) == 1 for place in range(3))
    assert [each.standing.rank for each in made.models] == [None, None]


def test_g12_sub_sets_are_shown_by_their_name(store: ResultStore) -> None:
    """``all`` stands for the task; ``mean`` and ``wmean`` are columns of their own where they are asked for."""
    subset = ["small"] * 12 + ["large"] * (N - 12)
    for name, seed in (("one", 1), ("two", 2)):
        columns = {"gold": GOLD, "cosine": noisy(seed)}
        measured = ["cosine_spearman"]
        put(store, columns, model=f"org/{name}", task="sts", slices={"subset": subset}, measured=measured)
    assert [each.subset for each in built(store).columns] == ["all"]
    text = "tasks:\n" + "".join(f"  - {{task: sts, subset: {name}}}\n" for name in ("mean", "wmean", "all", "small"))
    made = built(store, text)
    assert [each.subset for each in made.columns] == ["mean", "wmean", "all", "small"]
    cosine = np.asarray(noisy(1))
    small, large = (
        stats.spearmanr(np.asarray(GOLD)[part], cosine[part]).statistic for part in (slice(12), slice(12, N))
    )
    expected = [
        (small + large) / 2,
        (12 * small + (N - 12) * large) / N,
        stats.spearmanr(GOLD, cosine).statistic,
        small,
    ]
    assert [cell and cell.value for cell in rows(made)["one"].cells] == pytest.approx(expected)
    assert len({each.heading for each in made.columns}) == 4
