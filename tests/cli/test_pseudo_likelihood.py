"""Pseudo-likelihood by commands: what it costs, its tokens shown and exported, and what a second run does."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from tests.support.commands import Done, embeval
from tests.support.language_models import tiny_language_model

TEXTS = "the archive of the night server restored backups.\n[MASK]\nthe red file\n"
FEW = ("--resamples", "100")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """(a folder with a result on three texts, the run that made it)."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "texts.txt").write_text(TEXTS, encoding="utf-8")
    return folder, run(folder)


def run(folder: Path, options: str = "") -> Done:
    """Evaluates the tiny model."""
    model = str(tiny_language_model("masked"))
    env = {"EMBEVAL_CACHE": str(folder / "cache")}
    task = f"pseudo_likelihood:texts.txt{options}"
    done = embeval("run", "-m", model, "-t", task, *FEW, cwd=folder, env=env, model=True)
    assert done.code == 0, done.err
    return done


def test_the_cost_is_told_before_it_begins(project: tuple[Path, Done]) -> None:
    """On standard error, before the value; what was left out is told behind it."""
    _, done = project
    lines = [line.strip() for line in done.err.splitlines()]
    (cost,) = [place for place, line in enumerate(lines) if line.endswith("of 3 texts")]
    (value,) = [place for place, line in enumerate(lines) if line.startswith("pppl_within_word_l2r")]
    assert lines[cost].split(" ", 1)[1].startswith("passes for ")
    assert cost < value
    assert "Note: 1 text (2) has no token to score, only special ones, and is left out." in lines


def test_the_worst_texts_are_those_of_the_highest_perplexity(project: tuple[Path, Done]) -> None:
    """exp(-PLL / tokens) of each text alone, from the exported columns; less is better, and the table says so."""
    folder, done = project
    assert "pppl_within_word_l2r ↓" in done.out
    assert "↓ less is better." in done.out
    assert " passes" in next(line for line in done.err.splitlines() if "pppl_within_word_l2r" in line)
    exported = embeval("results", "export", "texts", "--format", "jsonl", cwd=folder).out
    rows = [json.loads(line) for line in exported.splitlines()]
    sums = {row["id"]: row["values"] for row in rows if row["values"]["tokens"]}
    expected = {item: math.exp(-of["pll_within_word_l2r"] / of["tokens"]) for item, of in sums.items()}
    worst = embeval("results", "show", "texts", "--worst", "9", "--json", cwd=folder).json["worst"]
    assert [each["id"] for each in worst] == sorted(expected, key=lambda item: -expected[item])
    assert [each["value"] for each in worst] == pytest.approx(sorted(expected.values(), reverse=True))
    assert "This result has no slices" in embeval("results", "show", "texts", "--by", "all", cwd=folder).out


def test_the_tokens_of_an_item_are_shown(project: tuple[Path, Done]) -> None:
    """Each with its log-probabilities, which add up to those of the text; as JSON with places and numbers."""
    folder, _ = project
    shown = embeval("results", "show", "texts", "--tokens", "1", cwd=folder)
    value = embeval("results", "show", "texts", "--tokens", "1", "--json", cwd=folder).json["tokens"]
    assert (value["id"], value["values"]["tokens"]) == ("1", len(value["tokens"]))
    for mode in ("original", "within_word_l2r"):
        total = math.fsum(each["log_prob"][mode] for each in value["tokens"])
        assert value["values"][f"pll_{mode}"] == pytest.approx(total, rel=1e-9)
        assert f"PLL, {mode}: {total:.4f}" in shown.out
    text = TEXTS.splitlines()[0]
    assert "".join(text[each["begin"] : each["end"]] for each in value["tokens"]) == text.replace(" ", "")
    for each in value["tokens"]:
        (*_, row) = [line.split() for line in shown.out.splitlines() if line.split()[:1] == [each["token"]]]
        assert len(row) >= 4
    assert shown.out.count("▇" * 24) == 1  # the least probable one
    assert f"Item 1, {len(value['tokens'])} tokens" in shown.out
    left_out = embeval("results", "show", "texts", "--tokens", "2", cwd=folder)
    assert "Item 2, 0 tokens\nPLL, within_word_l2r: not scored\nPLL, original: not scored" in left_out.out


def test_an_item_that_is_not_tembeval(project: tuple[Path, Done]) -> None:
    """Told with those that are."""
    folder, _ = project
    done = embeval("results", "show", "texts", "--tokens", "7", cwd=folder)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: Unknown item '7'. ")


def test_tokens_are_exported(project: tuple[Path, Done]) -> None:
    """A row for each, with the same numbers as are shown."""
    folder, _ = project
    done = embeval("results", "export", "texts", "--format", "tokens", cwd=folder)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    shown = embeval("results", "show", "texts", "--tokens", "3", "--json", cwd=folder).json["tokens"]["tokens"]
    third = [row for row in rows if row["item"] == "3"]
    assert {row["item"] for row in rows} == {"1", "3"}
    assert [row["token"] for row in third] == [each["token"] for each in shown]
    for name in ("place", "id", "begin", "end", "word"):
        assert [int(row[name]) for row in third] == [each[name] for each in shown]
    for mode in ("original", "within_word_l2r"):
        written = [float(row[f"log_prob_{mode}"]) for row in third]
        assert written == pytest.approx([each["log_prob"][mode] for each in shown], rel=1e-6)


def test_tokens_that_were_not_kept_are_made_when_they_are_asked_for(tmp_path: Path) -> None:
    """A result without them is no longer finished; one with them is, whatever is asked. Other statistics keep them."""
    (tmp_path / "texts.txt").write_text(TEXTS, encoding="utf-8")

    def files() -> list[str]:
        return sorted(path.name for path in (tmp_path / "results").rglob("*.tokens.parquet"))

    run(tmp_path, ",keep_tokens=false")
    assert files() == []
    missing = embeval("results", "show", "texts", "--tokens", "1", cwd=tmp_path)
    assert (missing.code, "this result has no tokens" in missing.err) == (3, True)
    assert "finished before" not in run(tmp_path).out
    kept = files()
    assert len(kept) == 1
    assert "finished before" in run(tmp_path, ",keep_tokens=false").out
    done = embeval(
        *("run", "-m", str(tiny_language_model("masked")), "-t", "pseudo_likelihood:texts.txt", "--resamples", "120"),
        cwd=tmp_path,
        env={"EMBEVAL_CACHE": str(tmp_path / "cache")},
        model=True,
    )
    assert "from stored items" in done.out
    assert files() == kept
    assert embeval("results", "show", "texts", "--tokens", "1", cwd=tmp_path).code == 0


def test_an_estimate_stands_apart(tmp_path: Path) -> None:
    """It is told to be one, its tokens aren't kept, and it is never skipped for the exact value."""
    (tmp_path / "texts.txt").write_text(TEXTS * 2, encoding="utf-8")
    exact, estimate = run(tmp_path), run(tmp_path, ",sample=0.5")
    assert "Estimated from" in estimate.err
    assert "Estimated from" not in exact.err
    found = embeval("results", "list", "--json", cwd=tmp_path).json
    protocols = [each["signature"]["protocol"]["sample"] for each in found]
    assert sorted(protocols, key=str) == [None, {"seed": 0, "share": 0.5}]
    assert [each.get("tokens") is None for each in found].count(True) == 1
