"""Whether models of a board may replace the one in use: as ``embeval gate`` decides on the same results."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from embeval.errors import ConfigError
from embeval.gates import policy as policies
from embeval.leaderboard import definition
from embeval.leaderboard.snapshot import GateOutcome, Snapshot
from embeval.store.results import ResultStore
from embeval.store.tags import Tags
from embeval.workflows import gating
from embeval.workflows.boards import building
from tests.support.stored import MADE_AT, put

POLICY = """
rules:
  - {metric: docs/ndcg_at_10, no_regression: 0.05}
  - {metric: docs/recall_at_10, min: 0.2, name: found}
statistics: {resamples: 1000}
"""
N = 400


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """A model, one like it, one that is worse, one of another task, and one that differs both ways."""
    found = ResultStore(tmp_path / "results")
    rng = np.random.default_rng(0)
    base = rng.uniform(0.4, 0.8, N)
    sides = {
        "base": base,
        "same": base,
        "worse": base - 0.3,
        "unclear": np.clip(base + rng.choice([-0.4, 0.4], N), 0.0, 1.0),
    }
    for name, values in sides.items():
        put(found, {"ndcg_at_10": list(values), "recall_at_10": [0.5] * N}, model=name)
    put(found, {"ndcg_at_10": [0.5] * N}, model="other", task="elsewhere", days=3)
    return found


def board(folder: Path, text: str, policy: str | None = POLICY) -> Snapshot:
    """The board of a file."""
    (folder / "board.yaml").write_text(text, encoding="utf-8")
    if policy is not None:
        (folder / "gate.yaml").write_text(policy, encoding="utf-8")
    return building.snapshot(definition.load(folder / "board.yaml"))


def outcomes(made: Snapshot) -> dict[str, GateOutcome | None]:
    """The verdict on each model."""
    return {each.label: each.gate for each in made.models}


def test_every_model_is_judged_as_the_gate_judges_all_of_them(store: ResultStore, tmp_path: Path) -> None:
    """The one in use is in use; without the evidence nothing is decided, and that is an outcome."""
    made = board(tmp_path, "production: base\ngate: gate.yaml\n")
    found = outcomes(made)
    assert found["base"] == GateOutcome(outcome="in_use", sentence="It is the model in use.")
    file = policies.load(tmp_path / "gate.yaml")
    candidates = ("other", "same", "unclear", "worse")
    request = gating.Request(file.policy, "gate.yaml", store.root, candidates, "base")
    report = gating.gate(request, now=MADE_AT + timedelta(days=3))
    by_gate = {each.candidate: each for each in report.verdicts}
    for name in candidates:
        outcome = found[name]
        assert outcome is not None
        assert outcome.outcome == by_gate[name].outcome.value
        blocking = [each for each in by_gate[name].rules if each.blocks]
        assert len(outcome.rules) == len(blocking)
        assert all(told.startswith(each.rule) for told, each in zip(outcome.rules, blocking, strict=True))
    kinds = {label: each.outcome for label, each in found.items() if each is not None}
    assert kinds == {
        "base": "in_use",
        "same": "pass",
        "worse": "fail",
        "unclear": "inconclusive",
        "other": "error",
    }
    assert "The gate judges as of 2026-01-04, the day of the newest result." in made.remarks
    assert (made.production, made.reference) == ("base", None)


def test_sentences(store: ResultStore, tmp_path: Path) -> None:
    """One each, and no path of this machine in any of them."""
    found = outcomes(board(tmp_path, "production: base\ngate: gate.yaml\n"))
    told = {label: each for label, each in found.items() if each is not None}
    assert told["same"].sentence == "All 2 rules hold."
    assert told["worse"].sentence == told["worse"].rules[0]
    assert told["worse"].sentence.startswith("docs/ndcg_at_10 no_regression 0.05: The difference is -0.3000, and with")
    assert told["unclear"].sentence.endswith("that does not tell whether it is above -0.0500.")
    assert len(told["unclear"].rules[0]) > len(told["unclear"].sentence)
    assert told["other"].sentence == (
        "docs/ndcg_at_10 no_regression 0.05: other has no result of the task 'docs'. 1 more rule blocks."
    )
    for each in told.values():
        assert str(tmp_path) not in " ".join((each.sentence, *each.rules))


def test_a_tag_names_the_model_in_use(store: ResultStore, tmp_path: Path) -> None:
    """By what it pins, whatever it is called; once that has changed, nothing is decided and nobody passes."""
    Tags(store.root).put("prod", list(store.find(model="same")))
    text = "production: tag:prod\ngate: gate.yaml\nmodels: [base, same]\n"
    found = outcomes(board(tmp_path, text))
    assert {label: each.outcome for label, each in found.items() if each is not None} == {
        "base": "pass",
        "same": "in_use",
    }
    (stored,) = store.find(model="same")
    stored.path.write_text(stored.path.read_text("utf-8").replace('"wall_s": 1.0', '"wall_s": 2.0'), "utf-8")
    changed = outcomes(board(tmp_path, text))["base"]
    assert changed is not None
    assert changed.outcome == "error"
    assert "results/same" in changed.sentence
    assert str(tmp_path) not in changed.sentence
    assert "has changed since" in changed.sentence


def test_a_tagged_model_need_not_be_on_the_board(store: ResultStore, tmp_path: Path) -> None:
    """It is the baseline all the same."""
    Tags(store.root).put("prod", list(store.find(model="base")))
    found = outcomes(board(tmp_path, "production: prod\ngate: gate.yaml\nmodels: [worse]\n"))
    assert found["worse"] is not None
    assert found["worse"].outcome == "fail"


def test_without_a_policy_nothing_is_judged(store: ResultStore, tmp_path: Path) -> None:
    """But the one in use is marked."""
    found = outcomes(board(tmp_path, "production: worse\n", None))
    assert {label for label, each in found.items() if each is not None} == {"worse"}
    assert set(outcomes(board(tmp_path, "{}\n", None)).values()) == {None}


def test_a_policy_that_compares_with_nothing(store: ResultStore, tmp_path: Path) -> None:
    """Needs no model in use; one that compares does, and the line of the file says so."""
    absolute = "rules:\n  - {metric: docs/recall_at_10, min: 0.2}\n"
    found = outcomes(board(tmp_path, "gate: gate.yaml\nmodels: [worse, base]\n", absolute))
    assert [each.sentence for each in found.values() if each is not None] == ["The rule holds."] * 2
    with pytest.raises(ConfigError, match=r"board.yaml, line 2: gate: its rules compare .* under 'production'"):
        board(tmp_path, "models: [worse]\ngate: gate.yaml\n")


def test_groups_and_waivers(store: ResultStore, tmp_path: Path) -> None:
    """Of a group that blocks its rules are told too; what is waived on the day of the newest result doesn't block."""
    policy = """
rules:
  - any: [{metric: docs/ndcg_at_10, min: 0.9}, {metric: docs/recall_at_10, min: 0.9}]
  - {metric: docs/ndcg_at_10, min: 0.99, name: dream}
waivers: [{rule: dream, until: "2026-01-04", reason: agreed}]
statistics: {resamples: 1000}
"""
    (found,) = outcomes(board(tmp_path, "gate: gate.yaml\nmodels: [base]\n", policy)).values()
    assert found is not None
    assert (found.outcome, len(found.rules)) == ("fail", 3)
    assert "more rule" not in found.sentence
    waived = policy.replace("min: 0.9}", "min: 0.1}")
    (found,) = outcomes(board(tmp_path, "gate: gate.yaml\nmodels: [base]\n", waived)).values()
    assert found == GateOutcome(outcome="pass", sentence="1 of 2 rules hold; the policy lets the others pass.")
    late = waived.replace("2026-01-04", "2026-01-03")
    (found,) = outcomes(board(tmp_path, "gate: gate.yaml\nmodels: [base]\n", late)).values()
    assert found is not None
    assert found.outcome == "fail"


def test_two_builds_are_equal(store: ResultStore, tmp_path: Path) -> None:
    """Whenever they are made: ages go by the newest result."""
    aged = POLICY + "max_candidate_age_days: 2\n"
    text = "production: base\ngate: gate.yaml\n"
    first = board(tmp_path, text, aged)
    assert first == board(tmp_path, text, aged)
    same = outcomes(first)["same"]
    assert same is not None
    assert (same.outcome, "3 days ago" in same.sentence) == ("error", True)
