"""Minimal pairs from the command line: what is shown, compared and refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from embeval.store.results import ResultStore
from tests.support.commands import Done, here
from tests.support.data import write_jsonl
from tests.support.language_models import tiny_language_model
from tests.support.minimal_pairs import PARADIGMS, save_causal, write_blimp
from tests.support.models import save_tiny_checkpoint

RUN = ("run", "-t", "minimal_pairs:pairs", "--resamples", "200")
FIELDS: dict[str, list[str]] = {}
for _paradigm, _row in PARADIGMS.items():
    FIELDS.setdefault(_row[0], []).append(_paradigm)
"""Field -> its paradigms."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two masked models and a causal one on the same pairs."""
    folder = tmp_path_factory.mktemp("project")
    write_blimp(folder / "pairs")
    save_tiny_checkpoint(folder / "masked", "bert", head="AutoModelForMaskedLM")
    save_tiny_checkpoint(folder / "other", "bert", head="AutoModelForMaskedLM", seed=3)
    save_causal(folder / "causal")
    done = run(folder, "masked", "other", "causal")
    assert done.code == 0, done.err
    return folder


def run(folder: Path, *models: str, more: Sequence[str] = ()) -> Done:
    """Evaluates models that lie in the folder."""
    return here(*RUN, *(word for name in models for word in ("-m", f"./{name}")), *more, cwd=folder)


def values(folder: Path, model: str, metric: str) -> dict[str, dict[str, list[float]]]:
    """Slice -> label -> stored values of the items."""
    store = ResultStore(folder / "results")
    (stored,) = store.find(model=model, task="pairs", subset="all")
    records = store.records(stored)
    return {
        name: {label: records.columns[metric][rows].tolist() for label, rows in records.rows_by(name).items()}
        for name in records.slices
    }


def row_of(name: str, of: list[float]) -> str:
    """A line of a table: the label, how many, the mean, Wilson's interval by scipy, and what it says of chance."""
    low, high = binomtest(int(sum(of)), len(of)).proportion_ci(method="wilson")
    told = "at chance" if low <= 0.5 <= high else "below chance" if high < 0.5 else ""
    return rf"{name} +{len(of)} +{np.mean(of):.4f} +≈ {low:.4f} – {high:.4f} +{told} *"


def test_a_result_is_shown_by_field_and_paradigm(project: Path) -> None:
    """Worst first on both levels, each with its interval, beside what a coin would get."""
    shown = here("results", "show", "-m", "masked", "-t", "pairs", cwd=project).out
    found = values(project, "masked", "pll_accuracy")
    lines = [line.rstrip() for line in shown.splitlines()]
    start = next(place for place, line in enumerate(lines) if line.strip().startswith("Field, sub-set")) + 2

    def worst_first(labels: list[str], of: dict[str, list[float]]) -> list[str]:
        return sorted(labels, key=lambda label: (np.mean(of[label]), label))

    expected = []
    for field in worst_first([*FIELDS], found["field"]):
        expected.append(row_of(f" {field}", found["field"][field]))
        paradigms = worst_first(FIELDS[field], found["subset"])
        expected += [row_of(f"   {paradigm}", found["subset"][paradigm]) for paradigm in paradigms]
    for line, pattern in zip(lines[start : start + len(expected)], expected, strict=True):
        assert re.fullmatch(pattern, line), (line, pattern)
    assert "≈ marks intervals from fewer than 50 items" in shown
    assert "Note: Not told from chance (0.5)" in shown


def test_a_run_ends_with_the_fields(project: Path) -> None:
    """Of each model, and of no paradigm; where these are is told."""
    done = run(project, "masked", "causal")
    assert "finished before" in done.out
    for model, metric in (("masked", "pll_accuracy"), ("causal", "ll_accuracy")):
        for field, of in values(project, model, metric)["field"].items():
            assert re.search(
                rf"{model} +pairs +{field} +{metric} +{np.mean(of):.4f} +≈ [^ ]+ – [^ ]+ +{len(of)}", done.out
            )
    assert not any(paradigm in done.out for paradigm in PARADIGMS)
    assert "By sub-set: embeval results show -m MODEL -t TASK" in done.err


def test_paradigms_are_results_of_their_own(project: Path) -> None:
    """With the interval that the table of the whole shows."""
    store = ResultStore(project / "results")
    found = {each.result.subset: each.result.main_value for each in store.find(model="masked", task="pairs")}
    assert set(found) == {*PARADIGMS, "mean", "wmean", "all"}
    shown = here("results", "show", "-m", "masked", "-t", "pairs", cwd=project).out
    for paradigm in PARADIGMS:
        value = found[paradigm]
        assert value is not None
        assert re.search(rf"{paradigm} +\d+ +{value.value:.4f} +≈ {value.ci_low:.4f} – {value.ci_high:.4f}", shown)


@pytest.mark.parametrize("fields", [True, False])
def test_a_tie_counts_half(project: Path, fields: bool) -> None:
    """In a share like any other, and it is told; without fields there is no table of them."""
    pairs = [*PARADIGMS["article"][2], *PARADIGMS["order"][2]]
    rows = [
        {"sentence_good": good, "sentence_bad": good if place in (1, 4) else bad, "UID": f"p{place // 4}"}
        for place, (good, bad) in enumerate(pairs)
    ]
    if fields:
        rows = [{**row, "field": "syntax"} for row in rows]
    name = f"tied-{fields}"
    write_jsonl(project / f"{name}.jsonl", rows)
    done = here("run", "-m", "./masked", "-t", f"minimal_pairs:{name}.jsonl", "--resamples", "200", cwd=project)
    assert done.code == 0, done.err
    assert "2 pairs have two sentences with the same tokens (2 in the data already)" in done.err
    shown = here("results", "show", "-t", name, cwd=project).out
    assert ("Field, sub-set" in shown) == ("syntax" in done.out) == fields
    (stored,) = ResultStore(project / "results").find(task=name, subset="p1")
    value = stored.result.main_value
    assert value is not None
    assert value.interval == "wilson"
    assert value.value in (0.5 / 3, 1.5 / 3, 2.5 / 3)
    line = rf"  p1 +3 +{value.value:.4f} +≈ {value.ci_low:.4f} – {value.ci_high:.4f} "
    assert bool(re.search(line, shown)) == fields


def test_a_result_is_shown_without_its_items(project: Path) -> None:
    """All but what they alone tell."""
    done = here(*RUN, "-m", "./masked", "--results", "bare", cwd=project)
    assert done.code == 0
    for file in (project / "bare").rglob("*.parquet"):
        file.unlink()
    shown = here("results", "show", "-t", "pairs", "--subset", "all", "--results", "bare", cwd=project)
    assert (shown.code, "pll_accuracy" in shown.out, "Field" in shown.out) == (0, True, False)


def test_of_one_kind_they_are_compared(project: Path) -> None:
    """Also by field."""
    done = here("compare", "masked", "other", "--by", "field", "--min-items", "4", "--json", cwd=project)
    assert done.code == 0, done.err
    (whole,) = done.json["comparisons"]
    one, two = (values(project, name, "pll_accuracy")["field"] for name in ("masked", "other"))
    mean = {name: np.mean([value for of in each.values() for value in of]) for name, each in (("a", one), ("b", two))}
    assert whole["delta"] == pytest.approx(mean["b"] - mean["a"])
    by_field = {each["label"]: each["delta"] for each in done.json["slices"]}
    assert by_field == {field: pytest.approx(np.mean(two[field]) - np.mean(one[field])) for field in FIELDS}


def test_pll_and_likelihood_are_never_compared(project: Path) -> None:
    """Refused with what differs; on a board they have a column each, and no model has a value in both."""
    refused = here("compare", "masked", "causal", cwd=project)
    assert (refused.code, refused.out) == (3, "")
    assert "didn't measure the same thing" in refused.err
    assert 'scoring: "pseudo_log_likelihood:within_word_l2r" and "log_likelihood"' in refused.err
    board = here("leaderboard", "show", "-t", "pairs", "--json", cwd=project).json
    assert sorted(column["metric"] for column in board["columns"]) == ["ll_accuracy", "pll_accuracy"]
    assert [sum(value is not None for value in row["values"]) for row in board["rows"]] == [1, 1, 1]
    assert {row["mean"] for row in board["rows"]} == {None}


def test_modes_are_variants(project: Path) -> None:
    """Two columns of one metric; neither is compared with the other."""
    done = here(*RUN, "-m", "./masked", "-t", "minimal_pairs:pairs,mode=original", "--results", "two", cwd=project)
    assert done.code == 2  # one folder of results for both
    for mode in ("original", "within_word_l2r"):
        words = ("run", "-t", f"minimal_pairs:pairs,mode={mode}", "-m", "./masked", "--results", "two")
        assert here(*words, "--resamples", "200", cwd=project).code == 0
    board = here("leaderboard", "show", "--results", "two", "--json", cwd=project).json
    assert [column["metric"] for column in board["columns"]] == ["pll_accuracy"] * 2


def test_what_is_no_such_model_is_refused(project: Path) -> None:
    """With the reason, and the ruler that it has; an embedding model has none."""
    electra = tiny_language_model("replaced")
    save_tiny_checkpoint(project / "bare", "bert")
    for model, said in (
        (str(electra), "ELECTRA's discriminator tells replaced tokens from kept ones"),
        ("./bare,pooling=mean", "no language-model head"),
        ("hashing", "can't be evaluated on the task 'pairs'"),
    ):
        done = here(*RUN, "-m", model, "--results", "refused", cwd=project)
        assert done.code == 3
        assert said in done.err


def test_a_quick_look_at_the_catalogue_s_own(project: Path) -> None:
    """BLiMP by its name, with the first pairs of each paradigm."""
    write_blimp(project / "sets" / "lm" / "blimp")
    words = ("run", "-m", "./masked", "-t", "blimp,per_paradigm=2", "--data", "sets", "--results", "quick", "--json")
    done = here(*words, "--resamples", "200", cwd=project)
    assert done.code == 0, done.err
    whole = next(result for result in done.json["results"] if result["subset"] == "all")
    assert (whole["counts"]["pairs"], whole["task"]["name"]) == (6, "blimp")
    assert whole["signature"]["protocol"]["per_paradigm"] == 2


def test_a_gate_takes_the_accuracy_of_a_field(project: Path) -> None:
    """As of any slice."""
    rate = np.mean(values(project, "masked", "pll_accuracy")["field"]["syntax"])
    for bound, code in ((rate - 0.01, 0), (rate + 0.01, 1)):
        rule = f"{{metric: 'pairs[slice=field:syntax]/pll_accuracy', min: {bound:.4f}, 'on': point}}"
        (project / "gate.yaml").write_text(
            f"models: [./masked]\ntasks: ['minimal_pairs:pairs']\ngate:\n  candidate: masked\n"
            f"  min_slice_items: 4\n  rules: [{rule}]\n",
            encoding="utf-8",
        )
        done = here("gate", "-c", "gate.yaml", cwd=project)
        assert done.code == code, done.err + done.out
