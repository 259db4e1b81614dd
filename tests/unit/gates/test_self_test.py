"""The self-test of a policy: what it tries, what it finds too weak, and how far results are really worsened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from embeval import metrics
from embeval.compare import evidence
from embeval.core.ir import Run
from embeval.core.records import Column
from embeval.core.verdict import Outcome
from embeval.errors import EvidenceError, ExitCode
from embeval.gates import policy as policies
from embeval.gates import self_test, worsening
from embeval.gates.self_test import SelfTest, Sides, Trial
from embeval.store.results import ResultStore, Stored
from tests.support import stored as made

TODAY = date(2026, 6, 1)
N = 200
RANKED = np.random.default_rng(1).choice([0.0, 0.5, 1.0], N, p=[0.2, 0.3, 0.5])
GOLD = np.arange(N, dtype=float)
COSINE = GOLD + np.random.default_rng(2).normal(0, 60, N)
KINDS = ["short" if row % 2 else "long" for row in range(N)]
FOUND = Run.from_dict({f"q{row}": {f"d{hit}": 20.0 - hit for hit in range(12)} for row in range(N)})


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """A baseline, and a candidate that is a little better, on rankings and on pairs."""
    found = ResultStore(tmp_path / "results")
    for model, gain in (("base", 0.0), ("new", 0.001)):
        # The ranking is not stored for "docs": what it lacks is tried in a test of its own.
        made.put(found, {"ndcg_at_10": list(RANKED + gain)}, model=model, slices={"kind": KINDS})
        columns = {"gold": list(GOLD), "cosine": list(COSINE + gain * GOLD)}
        made.put(found, columns, model=model, task="pairs", measured=["cosine_spearman"])
    return found


def of(store: ResultStore, model: str, task: str) -> Stored:
    """The one result of a model on a task."""
    (found,) = store.find(model=model, task=task, subset="all")
    return found


def tried(store: ResultStore, *rules: dict[str, Any], candidate: str = "new", **keys: Any) -> SelfTest:
    """The self-test of a policy of these rules."""
    policy = policies.from_value({"rules": list(rules), "statistics": {"resamples": 1000}, **keys}, "policy")
    sides = {
        place: Sides(
            evidence.gather(store, of(store, candidate, place.task)),
            evidence.gather(store, of(store, "base", place.task)) if policy.compares else None,
        )
        for place in policy.places
    }
    results = [each.result for each in store.find(model=candidate)]
    return self_test.run(policy, sides, today=TODAY, results=results)


def passing(found: SelfTest) -> list[Trial]:
    """The harms that a policy lets pass."""
    return [trial for trial in found.trials if not trial.blocked]


DOCS = {"metric": "docs/ndcg_at_10", "no_regression": 0.02}
PAIRS = {"metric": "pairs/cosine_spearman", "no_regression": "3%"}


def test_a_policy_that_compares_blocks_everything(store: ResultStore) -> None:
    """Broken evidence is an error each time, worse results are not; every harm of the list is tried."""
    found = tried(store, DOCS, PAIRS)
    assert found.passed
    assert found.exit_code is ExitCode.OK
    assert (found.unwatched, found.not_tried) == ((), ())
    of_docs = {trial.harm: trial.outcome for trial in found.trials if trial.rule.startswith("docs")}
    worse = {harm: outcome for harm, outcome in of_docs.items() if "worse than" in harm}
    broken = {harm for harm, outcome in of_docs.items() if outcome is Outcome.ERROR}
    assert broken == {
        "no result of docs",
        "score of ndcg_at_10 of docs edited by hand",
        "score of ndcg_at_10 of docs is NaN",
        "20 items of docs without a value of ndcg_at_10",
        "an infinite value of ndcg_at_10 of docs",
        "result of docs from the future",
        "20 items of docs left out",
        "other data behind the result of docs",
        "the baseline's own result as candidate of docs",
    }
    assert worse == {
        "docs/ndcg_at_10 worse than the baseline by 2 x 0.02, on some items": Outcome.INCONCLUSIVE,
        "docs/ndcg_at_10 worse than the baseline by 2 x 0.02, by a little on every item": Outcome.FAIL,
    }
    assert set(of_docs) == broken | set(worse)


def test_each_check_of_the_gate_is_what_blocks(store: ResultStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of scores against items, scores edited by hand pass: the self-test sees it."""
    monkeypatch.setattr(evidence, "refuse_changed_scores", lambda *_, **__: None)
    assert {trial.harm for trial in passing(tried(store, DOCS))} == {
        "score of ndcg_at_10 of docs edited by hand",
        "score of ndcg_at_10 of docs is NaN",
    }


def test_a_ranking_that_lacks_queries(store: ResultStore) -> None:
    """Tried where there is a ranking."""
    for model in ("base", "new"):
        made.put(store, {"ndcg_at_10": list(RANKED)}, model=model, task="ranked", run=FOUND)
    found = tried(store, {"metric": "ranked/ndcg_at_10", "min": 0.1})
    (trial,) = [trial for trial in found.trials if trial.harm == "ranking of ranked lacks 20 queries"]
    assert (trial.outcome, trial.blocked) == (Outcome.ERROR, True)


def test_too_little_evidence_let_through_is_told(store: ResultStore) -> None:
    """on_inconclusive: pass lets a true loss of twice the margin through where it falls on few items."""
    found = tried(store, DOCS, on_inconclusive="pass")
    assert found.exit_code is ExitCode.OVER_BOUND
    (trial,) = passing(found)
    assert trial.harm.endswith("on some items")
    assert trial.weakness is not None
    assert "on_inconclusive: pass" in trial.weakness


@pytest.mark.parametrize(
    "rule",
    [
        {"metric": "docs/ndcg_at_10", "min": 0.0},
        {"metric": "docs/ndcg_at_10", "no_regression": 0.9},
    ],
)
def test_a_rule_that_nothing_could_break_is_told(store: ResultStore, rule: dict[str, Any]) -> None:
    """All values 0 satisfy it."""
    (trial,) = passing(tried(store, rule))
    assert trial.outcome is Outcome.PASS
    assert trial.weakness is not None


def test_a_waiver_is_told(store: ResultStore) -> None:
    """While it holds, the rule blocks no worse result; broken evidence it still does."""
    waiver = {"rule": "docs/ndcg_at_10", "until": "2026-12-31", "reason": "agreed"}
    found = passing(tried(store, DOCS, waivers=[waiver]))
    assert [trial.harm.split(",")[-1] for trial in found] == [" on some items", " by a little on every item"]
    assert all(trial.weakness == "A waiver lets it through until 2026-12-31: agreed" for trial in found)
    assert tried(store, DOCS, waivers=[{**waiver, "until": "2026-05-31"}]).passed


def test_a_threshold_alone(store: ResultStore) -> None:
    """Blocks what is below it; what it can't notice, and what nobody watches, is told."""
    found = tried(store, {"metric": "docs/ndcg_at_10", "min": 0.5})
    assert found.passed
    (text,) = found.not_tried
    assert text.startswith("docs: items left out, and other data, are noticed only by a rule that compares")
    assert found.unwatched == ("No rule speaks of pairs: a drop there goes unnoticed.",)


def test_the_main_metric_of_a_watched_task(store: ResultStore) -> None:
    """A rule on something else of a task leaves its main metric unwatched."""
    columns = {"ndcg_at_10": list(RANKED), "recall_at_100": [1.0] * N}
    for model in ("base", "new"):
        made.put(store, columns, model=model, task="two")
    found = tried(store, {"metric": "two/recall_at_100", "min": 0.9})
    assert "No rule speaks of ndcg_at_10, the main metric of two." in found.unwatched


def test_improvement(store: ResultStore) -> None:
    """A candidate with the baseline's own values is no better."""
    found = tried(store, {"metric": "docs/ndcg_at_10", "improve": True})
    (trial,) = [trial for trial in found.trials if trial.outcome is not Outcome.ERROR]
    assert trial.harm == "docs/ndcg_at_10 as the baseline has it"
    assert trial.blocked


def test_groups_are_hurt_where_it_has_to_hurt(store: ResultStore) -> None:
    """Of ``any`` all rules at once, since one alone may fall; of ``all`` each by itself."""
    either = [trial for trial in tried(store, {"any": [DOCS, PAIRS]}).trials if "worse than" in trial.harm]
    assert [("docs/" in trial.harm, "pairs/" in trial.harm) for trial in either] == [(True, True), (True, False)]
    assert either[0].blocked
    both = [trial for trial in tried(store, {"all": [DOCS, PAIRS]}).trials if "worse than" in trial.harm]
    assert [("docs/" in trial.harm, "pairs/" in trial.harm) for trial in both] == [
        *[(True, False), (True, False)],
        (False, True),
    ]
    assert all(trial.blocked for trial in both)


def test_rules_by_label(store: ResultStore) -> None:
    """One label alone is hurt, and that is enough to block."""
    found = tried(store, {**DOCS, "by": "kind"})
    assert found.passed
    assert [trial.harm for trial in found.trials if "worse than" in trial.harm] == [
        f"docs/ndcg_at_10 on kind:long worse than the baseline by 2 x 0.02, {how}"
        for how in ("on some items", "by a little on every item")
    ]


def test_one_result_on_both_sides(store: ResultStore) -> None:
    """A policy can be tried before there is a candidate."""
    assert tried(store, DOCS, candidate="base").passed


def test_evidence_that_is_broken_already(store: ResultStore) -> None:
    """Proves nothing, since everything would be blocked: refused with the reason."""
    with pytest.raises(EvidenceError, match=r"it can't be decided even on what is stored\. Unknown slice 'colour'"):
        tried(store, {**DOCS, "by": "colour"})


# How results are worsened


@pytest.mark.parametrize("target", [0.1, 0.4, 0.6])
def test_a_mean_falls_to_the_target_by_whole_items(target: float) -> None:
    """As few items as it takes are 0, the others as they were."""
    metric = metrics.get("ndcg_at_10")
    columns = {"ndcg_at_10": RANKED}
    rows = np.arange(N)
    after = worsening.on_some_items(
        columns,
        metric,
        rows,
        target,
        value=lambda found: float(found["ndcg_at_10"].mean()),
        rng=np.random.default_rng(0),
    )["ndcg_at_10"]
    assert target - 1.0 / N < after.mean() <= target
    changed = after != RANKED
    assert set(after[changed]) == {0.0}


@pytest.mark.parametrize("target", [-0.5, 0.2, 0.6])
def test_a_correlation_falls_to_the_target_by_exchanged_values(target: float) -> None:
    """The values stay what they were, on other items; by scipy's correlation."""
    columns = {"gold": GOLD, "cosine": COSINE}
    after = worsening.on_some_items(
        columns,
        metrics.get("cosine_spearman"),
        np.arange(N),
        target,
        value=lambda found: float(spearmanr(found["gold"], found["cosine"]).statistic),
        rng=np.random.default_rng(0),
    )
    assert target - 0.05 < spearmanr(GOLD, after["cosine"]).statistic <= target
    assert sorted(after["cosine"]) == sorted(COSINE)
    assert np.array_equal(after["gold"], GOLD)


@pytest.mark.parametrize(
    ("name", "target"),
    [("pppl_original", 20.0), ("pppl_original", 4.0), ("bits_per_character_original", 1.0), ("mlm_accuracy", 0.2)],
)
def test_a_ratio_of_sums_comes_to_the_target_by_whole_items(name: str, target: float) -> None:
    """As few texts as it takes are worse, or better where that is asked for; what is counted stays as it was."""
    metric = metrics.get(name)
    counted = np.random.default_rng(0).integers(1, 30, N).astype(float)
    per_unit = {"pppl_original": -2.0, "bits_per_character_original": -0.5, "mlm_accuracy": 0.6}[name]
    above, below = metric.columns
    columns = {above: per_unit * counted, below: counted}

    def value(found: Mapping[str, Column]) -> float:
        measured = metric.aggregate(found)
        assert isinstance(measured, float)
        return measured

    after = worsening.on_some_items(columns, metric, np.arange(N), target, value=value, rng=np.random.default_rng(0))
    assert after[below] is counted
    changed = np.flatnonzero(after[above] != columns[above])
    assert 0 < len(changed) < N
    start = value(columns)
    assert value(after) >= target if target > start else value(after) <= target
    without = after[above].copy()
    last = changed[np.argmax(counted[changed])]
    without[last] = columns[above][last]
    back = value({**after, above: without})
    assert back < target if target > start else back > target


def test_every_item_moves_with_noise_of_the_given_size() -> None:
    """The mean is exactly the target; the noise has the standard deviation asked for, within 20 %."""
    columns = {"ndcg_at_10": RANKED}
    after = worsening.on_every_item(
        columns,
        metrics.get("ndcg_at_10"),
        np.arange(N),
        0.5,
        value=lambda found: float(found["ndcg_at_10"].mean()),
        rng=np.random.default_rng(0),
        noise=0.03,
    )["ndcg_at_10"]
    assert after.mean() == pytest.approx(0.5, abs=1e-12)
    assert np.std(after - RANKED) == pytest.approx(0.03, rel=0.2)


@pytest.mark.parametrize(("name", "target"), [("f1", 0.1), ("max_ap", 0.45), ("f1_over_2_folds", 0.1), ("rmse", 1.5)])
def test_all_that_a_metric_reads_of_a_system_is_made_worse(name: str, target: float) -> None:
    """Of ten classifiers, four similarities and ten regressors each; three labels, of which a reversal keeps one."""
    rng = np.random.default_rng(0)
    metric = metrics.get(name)
    gold = (np.arange(90) % (2 if name == "max_ap" else 3)).astype(np.float64)
    own = [each for each in metric.columns if each not in ("gold", "fold")]
    noise = 0.0 if name.startswith("f1") else 0.3
    columns = {each: gold + noise * rng.normal(size=90) for each in own}
    columns |= {"gold": gold} | ({"fold": (np.arange(90) // 45).astype(np.float64)} if "fold" in metric.columns else {})

    def value(found: Mapping[str, Column]) -> float:
        measured = metric.aggregate(found)
        assert isinstance(measured, float)
        return measured

    after = worsening.on_some_items(columns, metric, np.arange(90), target, value=value, rng=rng)
    assert value(after) <= target if metric.higher_is_better else value(after) >= target
    assert all(sorted(after[each]) == sorted(columns[each]) for each in own)
    assert all(after[each] is columns[each] for each in columns if each not in own)
