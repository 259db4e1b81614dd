"""``embeval demo`` as a user meets it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from embeval.store.results import ResultStore
from tests.support.commands import fresh

pytestmark = [pytest.mark.timing, pytest.mark.timeout(300)]


def test_demo_takes_less_than_90_seconds_and_tells_the_story(tmp_path: Path) -> None:
    """Under 90 s on 2 cores; the real model beats the baseline; figures are those that the datasheet states."""
    began = time.monotonic()
    done = fresh("demo", "--results", "kept", cwd=tmp_path)
    assert time.monotonic() - began < 90
    assert done.code == 0, done.err
    value = {
        (each.result.model.name, each.result.task.name): each.result.main_value
        for each in ResultStore(tmp_path / "kept").find(status="ok")
        if each.result.subset == "all"
    }
    model, baseline = (value[name, "demo-docs"] for name in ("demo/all-MiniLM-L6-v2", "hashing"))
    assert model is not None
    assert baseline is not None
    assert model.ci_low is not None
    assert baseline.ci_high is not None
    assert model.ci_low > baseline.ci_high
    sheet = (Path(__file__).parents[2] / "embeval/data/demo/DATASHEET.md").read_text(encoding="utf-8")
    stated = re.search(r"nDCG@10 (0\.\d{3}), recall@10 (0\.\d{3})", sheet)
    assert stated is not None
    assert model.value == pytest.approx(float(stated[1]), abs=6e-4)
    pairs = value["demo/all-MiniLM-L6-v2", "demo-pairs"]
    assert pairs is not None
    stated_pairs = re.search(r"Spearman on the pairs: (0\.\d+)", sheet)
    assert stated_pairs is not None
    assert pairs.value == pytest.approx(float(stated_pairs[1]), abs=6e-3)
    for expected in ("all-MiniLM-L6-v2", "hashing", "multi_document", "hardest queries", "embeval init"):
        assert expected in done.out
    assert "Traceback" not in done.err
