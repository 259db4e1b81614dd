"""A board of published results beside our own: the numbers agree, and what was only read here says so.

Published numbers: ``reference_scores.json`` of the data folder, laid out as mteb lays out its results. Our own are of
all-MiniLM-L6-v2 on two of these tasks, run through mteb's task classes.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from embeval.leaderboard.snapshot import Model, Snapshot, load
from tests.support.commands import embeval
from tests.support.mirror import lay_out

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

TOLERANCES = {"STSBenchmark": 1e-4, "STS12": 1e-4}
"""Task that is run here -> how near to the published score."""
FILE = """\
title: Published and our own
imported: [published]
reference: all-MiniLM-L6-v2
"""


@dataclass(frozen=True)
class Built:
    """A board that was built by the command."""

    folder: Path
    made: Snapshot

    def model(self, label: str) -> Model:
        """The row of a label."""
        return next(each for each in self.made.models if each.label == label)

    def value(self, label: str, task: str) -> float | None:
        """A value, by the name of the task in mteb."""
        place = next(place for place, each in enumerate(self.made.columns) if each.task == f"mteb:{task}")
        cell = self.model(label).cells[place]
        return None if cell is None else cell.value


@pytest.fixture(scope="module")
def published(real_data: Path) -> Mapping[str, Any]:
    """Model -> task -> its file."""
    content = json.loads((real_data / "reference_scores.json").read_text(encoding="utf-8"))
    return {
        model: {task: files[0] for task, files in of_model.items()}
        for model, of_model in content["mteb_results"]["models"].items()
    }


@pytest.fixture(scope="module")
def folder(
    encoded: None, real_data: Path, published: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Published results in mteb's layout, and our own."""
    folder = tmp_path_factory.mktemp("boards")
    for of_model in published.values():
        for task, file in of_model.items():
            path = folder / "published" / file["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            told = {name: file[name] for name in ("dataset_revision", "mteb_version", "scores")}
            path.write_text(json.dumps({"task_name": task, "evaluation_time": 1.0, **told}), encoding="utf-8")
    mirror = lay_out(real_data, folder / "mirror", tuple(TOLERANCES))
    tasks = [word for task in TOLERANCES for word in ("-t", f"mteb:{task},splits=[test]")]
    done = embeval("run", "-m", "demo", *tasks, "--mirror", str(mirror), cwd=folder, timeout=600)
    assert done.code == 0, done.err
    return folder


def build(folder: Path, name: str, text: str) -> Built:
    """The board of a file, which lies beside the results."""
    (folder / name).mkdir()
    shown = FILE.replace("[published]", "[../published]") + f"results: [../results]\n{text}"
    (folder / name / "board.yaml").write_text(shown, encoding="utf-8")
    done = embeval("leaderboard", "build", name, cwd=folder, timeout=300)
    assert done.code == 0, done.err
    return Built(folder / name, load(folder / name / "board.json"))


@pytest.fixture(scope="module")
def shared(folder: Path) -> Built:
    """The board of the tasks that were run here."""
    names = ", ".join(f"'mteb:{task}'" for task in TOLERANCES)
    return build(folder, "shared", f"tasks: [{names}]\n")


def test_published_values_are_those_of_the_files(shared: Built, published: Mapping[str, Any]) -> None:
    """Every model on both tasks, to the digit, marked as imported and without an interval or items."""
    for name, of_model in published.items():
        label = f"{name.split('/')[-1]} (imported)"
        for task in TOLERANCES:
            (score,) = of_model[task]["scores"]["test"]
            assert shared.value(label, task) == score["main_score"]
        row = shared.model(label)
        assert {(cell.imported, cell.low, cell.n_items) for cell in row.cells if cell is not None} == {(True, None, 0)}
        assert (row.standing.rank_low, row.standing.letters) == (None, None)
        assert row.standing.untested
        assert row.imported is not None
        assert row.imported.mteb_version == of_model["STSBenchmark"]["mteb_version"]


@pytest.mark.parametrize("task", list(TOLERANCES))
def test_our_own_row_agrees_with_the_published_one(shared: Built, task: str) -> None:
    """In one column, since it is the same task; ours with an interval that holds both."""
    ours, theirs = shared.value("all-MiniLM-L6-v2", task), shared.value("all-MiniLM-L6-v2 (imported)", task)
    assert ours == pytest.approx(theirs, abs=TOLERANCES[task])
    place = [column.task for column in shared.made.columns].index(f"mteb:{task}")
    cell = shared.model("all-MiniLM-L6-v2").cells[place]
    assert cell is not None
    assert (cell.imported, cell.n_items) == (False, {"STSBenchmark": 1379, "STS12": 3108}[task])
    assert cell.low is not None
    assert cell.high is not None
    assert theirs is not None
    assert cell.low < theirs < cell.high


def test_ranks_are_by_the_mean_of_the_published_values(shared: Built, published: Mapping[str, Any]) -> None:
    """All four rows are ranked; means and their order by hand."""
    means = {
        f"{name.split('/')[-1]} (imported)": sum(of[task]["scores"]["test"][0]["main_score"] for task in TOLERANCES) / 2
        for name, of in published.items()
    }
    for label, mean in means.items():
        assert shared.model(label).standing.mean_task == pytest.approx(mean, abs=1e-12)
    imported = [model.label for model in shared.made.models if model.label in means]
    assert imported == sorted(means, key=lambda label: -means[label])
    assert sorted(model.standing.rank or 0 for model in shared.made.models) == [1, 2, 3, 4]


def test_every_file_tells_what_was_only_read(shared: Built) -> None:
    """README, CSV and page; and --check finds them fresh."""
    text = (shared.folder / "README.md").read_text(encoding="utf-8")
    assert "| bge-small-en-v1.5 (imported) |" in text
    assert "No interval: " in text
    rows = list(csv.DictReader(io.StringIO((shared.folder / "board.csv").read_text(encoding="utf-8"))))
    assert {row["model"]: bool(row["imported"]) for row in rows} == {
        model.label: model.label.endswith("(imported)") for model in shared.made.models
    }
    assert "bge-small-en-v1.5 (imported)" in (shared.folder / "index.html").read_text(encoding="utf-8")
    done = embeval("leaderboard", "build", "shared", "--check", cwd=shared.folder.parent, timeout=300)
    assert done.code == 0, done.out + done.err


def test_all_published_tasks_on_one_board(folder: Path, published: Mapping[str, Any]) -> None:
    """Our own row has gaps, which are gaps, and no rank; published values of every task are there."""
    built = build(folder, "everything", "outputs: [json]\n")
    ours = built.model("all-MiniLM-L6-v2").standing
    assert (ours.rank, ours.mean_task) == (None, None)
    assert ours.gaps == len(built.made.columns) - len(TOLERANCES)
    for name, of_model in published.items():
        for task in ("Banking77Classification", "SciFact", "SummEval"):
            (score,) = of_model[task]["scores"]["test"]
            place = [column.task for column in built.made.columns].index(f"mteb:{task}")
            # A model has a row for each revision that was published.
            cells = [model.cells[place] for model in built.made.models if model.spec.name == name]
            assert score["main_score"] in [cell.value for cell in cells if cell is not None]
