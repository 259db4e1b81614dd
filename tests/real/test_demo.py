"""``embeval demo`` as a user meets it: run once with the real model, and again from what it stored."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from embeval.core.result import MetricValue
from embeval.store.results import ResultStore
from tests.support.commands import Done, embeval, fresh

pytestmark = [pytest.mark.timing, pytest.mark.timeout(300)]

MODEL, DOCS, PAIRS = "demo/all-MiniLM-L6-v2", "demo-docs", "demo-pairs"
LABELS = {"all-MiniLM-L6-v2": MODEL, "hashing": "hashing", "bm25": "bm25"}


@dataclass(frozen=True)
class Shown:
    """What the demo came to."""

    done: Done
    seconds: float
    folder: Path

    @property
    def values(self) -> dict[tuple[str, str], MetricValue]:
        """(model, task) -> main score of the stored results; those of the exported model are left out."""
        return {
            (each.result.model.name, each.result.task.name): value
            for each in ResultStore(self.folder / "kept").find(status="ok")
            if each.result.subset == "all" and (value := each.result.main_value) is not None
        }


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The demo in an empty folder."""
    folder = tmp_path_factory.mktemp("demo")
    began = time.monotonic()
    done = fresh("demo", "--results", "kept", cwd=folder)
    return Shown(done, time.monotonic() - began, folder)


def test_demo_takes_less_than_90_seconds_and_tells_the_story(shown: Shown) -> None:
    """Under 90 s on 2 cores; the real model beats the baseline; figures are those that the datasheet states."""
    assert shown.seconds < 90
    assert shown.done.code == 0, shown.done.err
    model, baseline = (shown.values[name, DOCS] for name in (MODEL, "hashing"))
    assert model.ci_low is not None
    assert baseline.ci_high is not None
    assert model.ci_low > baseline.ci_high
    sheet = (Path(__file__).parents[2] / "embeval/data/demo/DATASHEET.md").read_text(encoding="utf-8")
    stated = re.search(r"nDCG@10 (0\.\d{3}), recall@10 (0\.\d{3})", sheet)
    assert stated is not None
    assert model.value == pytest.approx(float(stated[1]), abs=6e-4)
    stated_pairs = re.search(r"Spearman on the pairs: (0\.\d+)", sheet)
    assert stated_pairs is not None
    assert shown.values[MODEL, PAIRS].value == pytest.approx(float(stated_pairs[1]), abs=6e-3)
    for expected in ("all-MiniLM-L6-v2", "hashing", "multi_document", "hardest queries", "embeval init"):
        assert expected in shown.done.out
    assert "Traceback" not in shown.done.err


def test_demo_shows_the_whole_thing(shown: Shown) -> None:
    """Leaderboard, weak spots by kind of query, the hardest queries, and how to go on; the same numbers as JSON."""
    plain = embeval("demo", "--results", "kept", cwd=shown.folder)
    assert plain.code == 0
    for part in (*LABELS, "0.3920", "Kind of query", "The 3 hardest queries", "embeval init"):
        assert part in plain.out
    assert plain.err.splitlines()[0].startswith("Evaluating demo, hashing and bm25 on demo-docs and demo-pairs")

    value = embeval("demo", "--results", "kept", "--json", cwd=shown.folder).json
    rows = value["leaderboard"]["rows"]
    assert [row["model"] for row in rows] == list(LABELS)
    for row in rows:
        cells = [None if cell is None else cell["value"] for cell in row["values"]]
        stored = [shown.values.get((LABELS[row["model"]], task)) for task in (DOCS, PAIRS)]
        assert cells == [None if each is None else each.value for each in stored]
    kinds = value["by_kind"]
    assert sum(kind["queries"] for kind in kinds) == 103
    for label, model in LABELS.items():
        total = sum(kind["queries"] * kind["ndcg_at_10"][label] for kind in kinds)
        assert total / 103 == pytest.approx(shown.values[model, DOCS].value, abs=1e-9)

    quiet = embeval("demo", "--results", "kept", "--quiet", cwd=shown.folder)
    assert (quiet.code, quiet.out, quiet.err) == (0, plain.out, "")

    release = value["release"]
    assert release["question"].startswith("May minilm-int8 (int8) replace all-MiniLM-L6-v2?")
    assert (release["gate"]["outcome"], release["gate"]["exit_code"]) == ("pass", 0)
    assert [rule["kind"] for rule in release["gate"]["verdicts"][0]["rules"]] == [
        "no_regression",
        "min",
        "no_regression",
    ]
    for path in release["files"]:
        assert (shown.folder / path).is_file()
