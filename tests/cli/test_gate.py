"""``embeval gate``: every case of fault F20, exit codes, files, and what people read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval import api
from embeval.core import border
from embeval.core.ir import Run
from embeval.core.verdict import GateReport
from embeval.errors import ConfigError
from embeval.store.results import ResultStore, Stored
from tests.support import stored
from tests.support.commands import Done, embeval, here

LONG_AGO = -400
"""Days from the usual date of stored results, so that it is in the past for any clock."""
RULE = "metric: docs/ndcg_at_10"


def put(folder: Path, model: str, values: Any, **options: Any) -> Stored:
    """A result of a model on the task ``docs``."""
    store = ResultStore(folder / "results")
    options = {"days": LONG_AGO, **options}
    return stored.put(store, {"ndcg_at_10": list(values)}, model=f"org/{model}", **options)[-1]


def policy(folder: Path, *rules: str, **keys: str) -> None:
    """``gate.yaml`` with these rules."""
    lines = [f"{key}: {value}" for key, value in {"baseline": "old", **keys}.items()]
    lines += ["statistics: {resamples: 1000}", "rules:", *(f"  - {{{rule}}}" for rule in rules)]
    (folder / "gate.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def gate(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> Done:
    """``embeval gate … --policy gate.yaml``."""
    return here("gate", *words, "--policy", "gate.yaml", cwd=folder, env=env)


def decided(folder: Path, *words: str) -> tuple[int, GateReport]:
    """Exit code and report; they have to agree, and so does what people read."""
    done = gate(folder, *words, "--json")
    assert done.out, done.err
    report: GateReport = border.load(GateReport, done.json)
    assert report.exit_code == done.code == report.outcome.exit_code, done.err
    return done.code, report


def outcome(folder: Path, *candidates: str, **options: Any) -> tuple[int, str]:
    """(exit code, everything said) of a gate in this process."""
    found = api.gate(folder / "gate.yaml", list(candidates), results=folder / "results", **options)
    return found.exit_code, reasons(found)


def reasons(report: GateReport) -> str:
    """Everything that was said."""
    return " ".join([report.error or "", *(rule.reason for each in report.verdicts for rule in each.rules)])


# --- fault F20, case by case --------------------------------------------------------------------------------------


def test_f20_a_a_metric_that_is_nan(tmp_path: Path) -> None:
    """No item has a value: an error, not a pass and not a failure."""
    put(tmp_path, "old", [0.9] * 10)
    put(tmp_path, "new", [float("nan")] * 10)
    policy(tmp_path, f"{RULE}, min: 0.5")
    code, report = decided(tmp_path, "new")
    assert (code, report.outcome) == (3, "error")
    assert "10 of 10 items have no value" in reasons(report)


@pytest.mark.parametrize("spoil", ["no results", "no scores", "nan", "not json"])
def test_f20_b_an_empty_result(tmp_path: Path, spoil: str) -> None:
    """Nothing stored, no scores in the file, a NaN token in it, or no JSON at all."""
    put(tmp_path, "old", [0.9] * 10)
    if spoil != "no results":
        new = put(tmp_path, "new", [0.9] * 10)
        value = json.loads(new.path.read_text(encoding="utf-8"))
        if spoil == "no scores":
            value["scores"] = {}
        if spoil == "nan":
            value["scores"]["ndcg_at_10"]["value"] = float("nan")
        new.path.write_text("{" if spoil == "not json" else json.dumps(value), encoding="utf-8")
    policy(tmp_path, f"{RULE}, min: 0.5")
    assert outcome(tmp_path, "new")[0] == 3
    if spoil == "no results":
        assert decided(tmp_path, "new")[0] == 3


def test_f20_c_half_of_the_queries_failed(tmp_path: Path) -> None:
    """0.9 on five of ten and nothing on the others is no 0.9."""
    put(tmp_path, "old", [0.9] * 10)
    put(tmp_path, "new", [0.9] * 5 + [float("nan")] * 5)
    policy(tmp_path, f"{RULE}, min: 0.5", f"{RULE}, no_regression: 0.5")
    code, report = decided(tmp_path, "new")
    assert code == 3
    assert [rule.outcome for rule in report.verdicts[0].rules] == ["error", "error"]


def test_f20_c_half_of_the_queries_left_out_by_choice(tmp_path: Path) -> None:
    """A ranking of one query of two, scored with missing_queries: skip, is 1.0 on the rest, and that is no 1.0."""
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 1\n", encoding="utf-8")
    (tmp_path / "half.run").write_text("q1 Q0 a 1 1.0 t\n", encoding="utf-8")
    words = ("--qrels", "qrels.txt", "--name", "half", "--results", "results", "--missing-queries", "skip")
    assert here("score", "half.run", *words, "--metric", "ndcg_at_1", cwd=tmp_path).code == 0
    policy(tmp_path, "metric: qrels/ndcg_at_1, min: 0.5")
    code, report = decided(tmp_path, "half")
    assert (code, report.outcome) == (3, "error")
    assert "1 query without a ranking left out" in reasons(report)


def test_f20_d_an_option_that_is_none(tmp_path: Path) -> None:
    """A threshold on the command line, number or not, is a usage error."""
    policy(tmp_path, f"{RULE}, min: 0.5")
    assert gate(tmp_path, "new", "--threshold", "nan").code == 2


def test_f20_d_a_threshold_that_is_no_number(tmp_path: Path) -> None:
    """A wrong policy: exit code 2, with the line."""
    policy(tmp_path, f"{RULE}, min: .nan")
    done = gate(tmp_path, "new", "--json")
    assert done.code == 2
    assert "gate.yaml, line 4: rules[0].min: must be a finite number" in done.err
    assert done.json["error"]["exit_code"] == 2


def test_f20_e_candidate_and_baseline_are_the_same_file(tmp_path: Path) -> None:
    """Whatever it is called: by name, by path, or as a copy elsewhere."""
    old = put(tmp_path, "old", [0.9] * 60)
    policy(tmp_path, f"{RULE}, no_regression: 0.01", f"{RULE}, min: 0.1")
    assert decided(tmp_path, "old")[0] == 3
    copy = tmp_path / "copy.test.all.0123abcd.json"
    copy.write_bytes(old.path.read_bytes())
    assert old.result.items is not None
    items = old.result.items.file
    (tmp_path / items).write_bytes((old.path.parent / items).read_bytes())
    for candidate in ("old", str(old.path), str(copy)):
        code, said = outcome(tmp_path, candidate)
        assert code == 3
        assert "is baseline and candidate at once" in said


def test_f20_f_other_queries_or_other_data(tmp_path: Path) -> None:
    """Refused as not comparable, with what differs."""
    put(tmp_path, "old", [0.9] * 60)
    put(tmp_path, "queries", [0.9] * 60, ids=[f"other{row}" for row in range(60)])
    put(tmp_path, "data", [0.9] * 60, protocol={"data": "another"})
    policy(tmp_path, f"{RULE}, no_regression: 0.5")
    assert decided(tmp_path, "data")[0] == 3
    for candidate, words in (("queries", "different items"), ("data", "didn't measure the same thing")):
        code, said = outcome(tmp_path, candidate)
        assert code == 3
        assert words in said


def test_f20_g_exactly_at_the_threshold_and_h_below_it(tmp_path: Path) -> None:
    """At it passes, as documented; below it fails with 1. So ends the process, too."""
    put(tmp_path, "new", [0.9] * 10)
    for limit, code in ((0.9, 0), (0.91, 1)):
        policy(tmp_path, f"{RULE}, min: {limit}")
        assert decided(tmp_path, "new")[0] == code
        assert embeval("gate", "new", "--policy", "gate.yaml", cwd=tmp_path).code == code


# --- the rest of failing closed -----------------------------------------------------------------------------------


def test_what_else_is_an_error(tmp_path: Path) -> None:
    """A score edited by hand, a date in the future, an old baseline, a failed run, a model that nobody can verify."""
    policy(tmp_path, f"{RULE}, no_regression: 0.1", max_baseline_age_days="30")
    put(tmp_path, "old", [0.5] * 60)
    edited = put(tmp_path, "edited", [0.4] * 60)
    value = json.loads(edited.path.read_text(encoding="utf-8"))
    value["scores"]["ndcg_at_10"]["value"] = 0.9
    edited.path.write_text(json.dumps(value), encoding="utf-8")
    put(tmp_path, "future", [0.5] * 60, days=36500)
    put(tmp_path, "somebody", [0.5] * 60, revision="unverifiable")
    failed = put(tmp_path, "failed", [0.5] * 60)
    store = ResultStore(tmp_path / "results")
    store.put(replace(failed.result, status="error", scores={}, main_score=None, items=None))
    put(tmp_path, "good", [0.5] * 60)
    other = put(tmp_path, "other", [0.5] * 60)
    value = json.loads(other.path.read_text(encoding="utf-8"))
    value["signature"]["model_digest"] = "0" * 64
    other.path.write_text(json.dumps(value), encoding="utf-8")
    for name, words in (
        ("other", "its signature names another model"),
        ("edited", "The file was changed after the run"),
        ("future", "lies in the future"),
        ("somebody", "nobody can verify"),
        ("failed", "this run failed"),
        ("good", "the policy allows 30"),
        ("nobody", "Unknown side 'nobody'"),
    ):
        code, said = outcome(tmp_path, name)
        assert (code, words in said) == (3, True), (name, said)
    policy(tmp_path, f"{RULE}, no_regression: 0.1", allow_unverifiable="true")
    assert outcome(tmp_path, "good")[0] == 0
    assert outcome(tmp_path, "somebody")[0] == 0


def ranked(lengths: dict[str, int]) -> Run:
    """A ranking with so many hits of each query."""
    rows = [(query, f"d{place}", 1.0 - place / 1000) for query, n in lengths.items() for place in range(n)]
    return Run.from_rows(rows, query_ids=list(lengths))


def test_rankings_behind_the_numbers(tmp_path: Path) -> None:
    """One that has gone is an error; one that looks cut, and two sides with one set of values, are told."""
    policy(tmp_path, f"{RULE}, no_regression: 0.1")
    whole = ranked({f"q{number}": 10 for number in range(60)})
    put(tmp_path, "old", [0.5] * 60, run=whole)
    put(tmp_path, "gone", [0.6] * 60)
    assert "it has no ranking, and the other side has one" in outcome(tmp_path, "gone")[1]
    assert outcome(tmp_path, "gone")[0] == 3
    put(tmp_path, "cut", [0.5] * 60, run=ranked({f"q{number}": 10 if number else 2 for number in range(60)}))
    code, report = decided(tmp_path, "cut")
    assert code == 0
    told = " ".join(report.verdicts[0].warnings)
    assert "1 of 60 queries of cut on docs have fewer hits than ndcg_at_10 looks at" in told
    assert "Both sides have the very same values on docs" in told
    put(tmp_path, "fine", [0.5, 0.6] * 30, run=whole)
    assert decided(tmp_path, "fine")[1].verdicts[0].warnings == ()


def test_reports_that_cannot_be_written_leave_no_verdict(tmp_path: Path) -> None:
    """Two in one file are a usage error; where one fails there is no JSON that says pass."""
    policy(tmp_path, f"{RULE}, min: 0.1")
    put(tmp_path, "new", [0.5] * 60)
    done = gate(tmp_path, "new", "--json-file", "one", "--junit", "./one")
    assert (done.code, "Two reports can't be written to one file" in done.err) == (2, True)
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert gate(tmp_path, "new", "--json-file", "verdict.json", "--html", "file/page.html").code == 3
    assert not (tmp_path / "verdict.json").exists()
    assert gate(tmp_path, "new", "--json-file", "verdict.json", "--html", "page.html").code == 0
    assert json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))["outcome"] == "pass"


def test_a_model_whose_only_file_is_broken_is_told_so(tmp_path: Path) -> None:
    """And not only that it is unknown."""
    policy(tmp_path, f"{RULE}, min: 0.1")
    broken = put(tmp_path, "new", [0.5] * 60)
    broken.path.write_text("{", encoding="utf-8")
    code, said = outcome(tmp_path, "new")
    assert code == 3
    assert "A file that can't be read" in said
    assert broken.path.name in said


def test_results_of_several_options_are_not_chosen_from(tmp_path: Path) -> None:
    """Two protocols are named with what differs; newer data of the same options is taken."""
    put(tmp_path, "new", [0.5] * 60)
    put(tmp_path, "new", [0.9] * 60, protocol={"depth": 7})
    policy(tmp_path, f"{RULE}, min: 0.1")
    code, said = outcome(tmp_path, "new")
    assert code == 3
    assert "depth" in said
    put(tmp_path, "other", [0.9] * 60, protocol={"data": "older"}, days=LONG_AGO - 1)
    put(tmp_path, "other", [0.5] * 60)
    policy(tmp_path, f"{RULE}, min: 0.6")
    assert outcome(tmp_path, "other")[0] == 1


def test_an_older_result_does_not_stand_in_for_a_broken_newer_one(tmp_path: Path) -> None:
    """The newer file of the same model and task was cut short, so what it says isn't known."""
    put(tmp_path, "new", [0.9] * 60, protocol={"data": "older"}, days=LONG_AGO - 1)
    policy(tmp_path, f"{RULE}, min: 0.6")
    assert outcome(tmp_path, "new")[0] == 0
    newer = put(tmp_path, "new", [0.5] * 60).path
    newer.write_bytes(newer.read_bytes()[:500])
    code, said = outcome(tmp_path, "new")
    assert code == 3
    assert f"{newer}: not valid JSON" in said


@pytest.mark.parametrize("key", ["baseline", "candidate"])
@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_name_is_not_the_folder_of_the_policy(tmp_path: Path, key: str, empty: str) -> None:
    """What a template left empty: results that lie beside the policy were not named by it."""
    put(tmp_path, "old", [0.5] * 60)
    put(tmp_path / "elsewhere", "old", [0.5] * 60)
    put(tmp_path / "elsewhere", "new", [0.6] * 60)
    policy(tmp_path, f"{RULE}, no_regression: 0.2", **{"candidate": "new", key: f"'{empty}'"})
    found = api.gate(tmp_path / "gate.yaml", results=tmp_path / "elsewhere" / "results")
    assert found.exit_code == 3
    assert "must not be empty" in reasons(found)


def test_several_candidates(tmp_path: Path) -> None:
    """One that passes is enough, unless one is broken; each is listed."""
    for name, value in (("old", 0.5), ("worse", 0.1), ("equal", 0.5)):
        rng = np.random.default_rng(3)
        put(tmp_path, name, [value] * 60 + rng.normal(0, 0.001, 60))
    policy(tmp_path, f"{RULE}, no_regression: 0.15")
    assert outcome(tmp_path, "worse", "equal")[0] == 0
    assert outcome(tmp_path, "worse")[0] == 1
    assert outcome(tmp_path, "worse", "equal", "nobody")[0] == 3


def test_usage_errors(tmp_path: Path) -> None:
    """No policy, no candidate, no baseline where a rule needs one, one candidate twice."""
    policy(tmp_path, f"{RULE}, no_regression: 0.01")
    assert here("gate", "new", cwd=tmp_path).code == 2
    assert gate(tmp_path).code == 2
    assert gate(tmp_path, "new", "--json", "--format", "html").code == 2
    (tmp_path / "gate.yaml").write_text(f"rules: [{{{RULE}, improve: true}}]\n", encoding="utf-8")
    without = gate(tmp_path, "new")
    assert without.code == 2
    assert "--baseline" in without.err
    with pytest.raises(ConfigError):
        api.gate({"rules": []}, "new", results=tmp_path)


# --- what comes out -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A candidate that loses a little on one kind of query, and a policy of several rules."""
    folder = tmp_path_factory.mktemp("project")
    rng = np.random.default_rng(11)
    old = rng.uniform(0.3, 0.7, 120)
    kinds = ["easy"] * 80 + ["hard"] * 40
    put(folder, "old", old, slices={"kind": kinds})
    put(folder, "new", old + np.where(np.array(kinds) == "hard", -0.05, 0.0), slices={"kind": kinds})
    put(folder, "noisy", old + rng.normal(0, 0.1, 120), slices={"kind": kinds})
    policy(folder, f"{RULE}, no_regression: 0.1", f"{RULE}, min: 0.2", f"{RULE}, improve: 0.1, name: better")
    return folder


@pytest.mark.parametrize("width", ["80", "120"])
def test_what_people_read(project: Path, width: str) -> None:
    """Verdict first, every rule with its outcome, why, and what the exit code means; no line is too long."""
    done = gate(project, "new", env={"COLUMNS": width})
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("FAIL  new against old: 2 of 3 rules pass, 1 fails.")
    assert lines[-1] == "Exit code 1: a rule fails."
    text = " ".join(done.out.split())
    for words in ("What blocks", "better: docs/ndcg_at_10 improve 0.1: The difference is -0.0167", "Worst slices"):
        assert words in text
    assert "docs: worse on 40 items, better on 0 (ndcg_at_10)" in text
    assert "Traceback" not in done.err


def test_too_little_evidence(project: Path) -> None:
    """Exit code 4 and how many items it would take; the command line can let it pass, and the report says so."""
    policy(project, f"{RULE}, no_regression: 0.005")
    try:
        done = gate(project, "noisy")
        assert done.code == 4
        assert "items would tell it, 120 were there" in " ".join(done.out.split())
        passed = gate(project, "noisy", "--on-inconclusive", "pass", "--json")
        assert (passed.code, passed.json["outcome"]) == (0, "pass")
        assert any("on_inconclusive" in text for text in passed.json["warnings"])
        by_environment = gate(project, "noisy", "--json", env={"EMBEVAL_ON_INCONCLUSIVE": "pass"})
        assert by_environment.code == 0
        assert any("EMBEVAL_ON_INCONCLUSIVE is set in the environment" in t for t in by_environment.json["warnings"])
    finally:
        policy(project, f"{RULE}, no_regression: 0.1", f"{RULE}, min: 0.2", f"{RULE}, improve: 0.1, name: better")


def test_every_form_in_one_go(project: Path) -> None:
    """JSON, JUnit, Markdown and HTML files beside the terminal, and the summary of a job."""
    files = ["--json-file", "gate.json", "--junit", "gate.xml", "--markdown", "gate.md", "--html", "gate.html"]
    summary = project / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    done = gate(project, "new", *files, "--github-summary", env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert done.code == 1
    assert json.loads((project / "gate.json").read_text(encoding="utf-8"))["outcome"] == "fail"
    assert (project / "gate.xml").read_text(encoding="utf-8").startswith("<?xml")
    assert (project / "gate.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    markdown = (project / "gate.md").read_text(encoding="utf-8")
    assert markdown.startswith("## ")
    assert summary.read_text(encoding="utf-8") == f"before\n{markdown}\n"
    to = gate(project, "new", "--format", "junit", "--to", "other.xml")
    assert (to.code, to.out) == (1, "")
    assert (project / "other.xml").exists()
