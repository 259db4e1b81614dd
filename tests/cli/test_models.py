"""``embeval models``: what a model is and whether it behaves, for people and as JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from embeval.cli import models
from embeval.core.specs import ModelSpec
from embeval.workflows import model_checks
from tests.support.commands import embeval

RUNNER = CliRunner()


def test_show_as_json(tmp_path: Path) -> None:
    """One value with the model, its facts and the estimate."""
    done = embeval("models", "show", "hashing,dim=16", "--documents", "1000", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (
        done.json["digest"]
        == ModelSpec(name="hashing", backend="hashing", revision="builtin:1", args={"dim": 16}).digest
    )
    assert done.json["model"]["revision"] == "builtin:1"
    assert (done.json["dimensions"], done.json["languages"], done.json["memory_bytes"]) == (16, [], {})
    estimate = done.json["estimate"]
    assert (estimate["n_documents"], estimate["vector_bytes"]["binary"]) == (1000, 2000)
    assert estimate["hours"] == pytest.approx(1000 / estimate["documents_per_s"] / 3600, rel=0.01)


def test_show_for_people(tmp_path: Path) -> None:
    """What is known of the model; the estimate is two more rows, and without it nothing is measured."""
    plain = embeval("models", "show", "hashing,dim=16", cwd=tmp_path)
    assert plain.code == 0
    assert "documents" not in plain.out
    assert re.search(r"license\s+not declared", plain.out)
    assert re.search(r"weights\s+0 B", plain.out)
    done = embeval("models", "show", "hashing,dim=16", "--documents", "1000000", cwd=tmp_path)
    assert "1,000,000 documents" in done.out
    said = re.search(r"([\d.]+) (seconds|minutes|hours) here: ([\d,.]+) a second", done.out)
    assert said is not None
    seconds = float(said[1]) * {"seconds": 1, "minutes": 60, "hours": 3600}[said[2]]
    assert seconds == pytest.approx(1_000_000 / float(said[3].replace(",", "")), rel=0.06)  # one decimal of a minute
    assert "float32 64.0 MB, int8 20.0 MB, binary 2.0 MB" in done.out


def test_check_as_json(tmp_path: Path) -> None:
    """A sound model: exit code 0, and each finding with its state."""
    done = embeval("models", "check", "hashing", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (done.json["model"], done.json["passes"], len(done.json["checks"])) == ("hashing", True, 8)
    assert {each["state"] for each in done.json["checks"]} == {"ok", "n/a"}


@pytest.mark.parametrize("words", [["--json"], []])
def test_a_model_that_fails_a_check_is_exit_code_3(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """With all findings told before."""
    finding = model_checks.Finding("run again", "failed", "other vectors")
    shift = model_checks.Finding("in another order", "shifts", "differs by 1e-3")
    monkeypatch.setattr(model_checks, "run", lambda *arguments: iter([finding, shift]))
    done = RUNNER.invoke(models.app, ["check", "hashing", *words])
    assert done.exit_code == 3
    assert "other vectors" in done.output
    assert "differs by 1e-3" in done.output
    monkeypatch.setattr(model_checks, "run", lambda *arguments: iter([shift]))
    assert RUNNER.invoke(models.app, ["check", "hashing", *words]).exit_code == 0
