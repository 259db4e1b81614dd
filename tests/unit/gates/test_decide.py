"""What becomes of rules on given items: against bounds of the t distribution, values by hand, and each refusal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from embeval.compare import evidence, pairs
from embeval.core.specs import StatisticsOptions
from embeval.core.verdict import Outcome, RuleVerdict, Verdict, Waiver
from embeval.gates import decide
from embeval.gates.decide import Case, Material
from embeval.gates.policy import Place, Policy, Resampling, Rule
from embeval.store.results import ResultStore
from tests.support import stored

PASS, FAIL, OPEN, ERROR = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.ERROR
TODAY = date(2026, 6, 1)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
DOCS = Place("docs")
METRIC = "docs/ndcg_at_10"


def material(folder: Path, baseline: Any, candidate: Any, *, metric: str = "ndcg_at_10", **options: Any) -> Material:
    """Two results with these values per item."""
    store = ResultStore(folder)
    sides = [
        evidence.gather(store, stored.put(store, {metric: list(values)}, model=f"org/{name}", **options)[-1], now=NOW)
        for name, values in (("old", baseline), ("new", candidate))
    ]
    statistics = StatisticsOptions(resamples=2000, level=0.95)
    return Material(sides[1], pairs.pair(sides[0], sides[1], statistics))


def judged(found: Material, *rules: Rule, n_candidates: int = 1, **keys: Any) -> Verdict:
    """What a policy of these rules says."""
    policy = Policy(rules=rules, statistics=Resampling(resamples=2000), **keys)
    return decide.judge(policy, Case("new", {DOCS: found}, baseline="old"), today=TODAY, n_candidates=n_candidates)


def one(found: Material, **keys: Any) -> RuleVerdict:
    """What becomes of a single rule."""
    return judged(found, Rule(**{"metric": METRIC, **keys})).rules[0]


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Material, float, float]:
    """300 items, normal differences; with the one-sided 95 % bounds of the t distribution."""
    rng = np.random.default_rng(1)
    old = rng.uniform(0.3, 0.7, 300)
    gain = rng.normal(0.002, 0.05, 300)
    half = float(stats.t.ppf(0.95, 299) * gain.std(ddof=1) / np.sqrt(300))
    found = material(tmp_path_factory.mktemp("noisy"), old, old + gain)
    return found, float(gain.mean()) - half, float(gain.mean()) + half


def unseen(n: int, alpha: float = 0.05) -> float:
    """The share that items of a kind may have that none of n is: Clopper and Pearson's upper bound for 0 of n."""
    return float(stats.beta.ppf(1 - alpha, 1, n))


def test_no_regression_against_the_t_distribution(noisy: tuple[Material, float, float]) -> None:
    """The bound lies below that of t (scipy), by no more than items that were not seen may cost."""
    found, lower, _ = noisy
    assert lower < 0
    passed = one(found, no_regression=-lower + 1.1 * unseen(300))
    assert (passed.outcome, passed.is_test, passed.alpha) == (PASS, True, 0.05)
    assert passed.bound is not None
    assert lower - 1.1 * unseen(300) < passed.bound < lower + 0.0002
    assert passed.low == passed.bound
    assert passed.level == pytest.approx(0.9)
    unclear = one(found, no_regression=-lower * 0.97 - 0.0001)
    assert unclear.outcome is OPEN
    assert unclear.needs_items is not None
    assert unclear.needs_items > 300


def test_improvement_against_the_t_distribution(noisy: tuple[Material, float, float]) -> None:
    """Fails where the upper bound is not above what is asked for, is open where it is."""
    found, _, upper = noisy
    assert one(found, improve=upper + 1.1 * unseen(300)).outcome is FAIL
    assert one(found, improve=upper - 0.0003).outcome is OPEN
    assert one(found, improve=True).outcome is OPEN


def test_a_real_loss_fails(tmp_path: Path) -> None:
    """Every item loses 0.02: below a margin of 0.01, above one of 0.03; an improvement is as clear."""
    rng = np.random.default_rng(2)
    old = rng.uniform(0.4, 0.6, 1000)
    down = material(tmp_path, old, old - 0.02 + rng.normal(0, 1e-4, 1000))
    assert one(down, no_regression=0.01).outcome is FAIL
    assert one(down, no_regression=0.03).outcome is PASS
    up = material(tmp_path / "up", old - 0.02, old + rng.normal(0, 1e-4, 1000))
    assert one(up, improve=True).outcome is PASS
    assert one(up, improve=0.03).outcome is FAIL


def test_relative_margins_are_of_the_baseline(tmp_path: Path) -> None:
    """A loss of 0.02 of 0.5 is 4 %: fails 2 %, passes 6 %; of a baseline of 0 there is no share."""
    rng = np.random.default_rng(3)
    old = rng.uniform(0.45, 0.55, 1000)
    old += 0.5 - old.mean()
    found = material(tmp_path, old, old - 0.02 + rng.normal(0, 1e-4, 1000))
    assert one(found, no_regression="2%").outcome is FAIL
    passed = one(found, no_regression="6%")
    assert passed.outcome is PASS
    assert passed.value == pytest.approx(0.48 - 0.94 * 0.5, abs=1e-4)  # candidate - 0.94 x baseline
    assert passed.threshold == 0.0
    nothing = material(tmp_path / "zero", np.zeros(60), np.zeros(60))
    assert one(nothing, no_regression="5%").outcome is ERROR


def test_lower_is_better_turns_everything_round(tmp_path: Path) -> None:
    """Latency that falls by 2 ms improves; that rises by 2 fails a margin of 1 and passes one of 3 and of 30 %."""
    rng = np.random.default_rng(4)
    old = rng.uniform(9, 11, 200)
    metric = "latency_ms"

    def timed(name: str, change: float) -> Material:
        new = old + change + rng.normal(0, 0.01, 200)
        store = ResultStore(tmp_path / name)
        sides = []
        for model, values in (("old", old), ("new", new)):
            put = stored.put(store, {metric: list(values)}, model=f"org/{model}", measured=["latency_p50_ms"])[-1]
            assert put.result.timings is not None
            together = replace(put.result, timings=replace(put.result.timings, session="one"))
            sides.append(evidence.Evidence(together, store.records(put), str(put.path), model))
        return Material(sides[1], pairs.pair(sides[0], sides[1], StatisticsOptions(resamples=2000)))

    rule = "docs/latency_p50_ms"
    assert one(timed("faster", -2), metric=rule, improve=True).outcome is PASS
    slower = timed("slower", 2)
    found = one(slower, metric=rule, no_regression=1.0)
    assert (found.outcome, found.threshold, found.higher_is_better) == (FAIL, 1.0, False)
    assert one(slower, metric=rule, no_regression=3.0).outcome is PASS
    assert one(slower, metric=rule, no_regression="30%").outcome is PASS
    assert one(slower, metric=rule, no_regression="10%").outcome is FAIL
    assert one(slower, metric=rule, max=20.0).outcome is PASS


def test_times_that_were_not_measured_together_decide_nothing(tmp_path: Path) -> None:
    """An error that says how to measure them; a limit of their own is fine."""
    values = np.linspace(5, 6, 60)
    found = material(tmp_path, values, values, metric="latency_ms", measured=["latency_p50_ms"])
    refused = one(found, metric="docs/latency_p50_ms", no_regression=1.0)
    assert refused.outcome is ERROR
    assert "--interleave" in refused.reason
    assert one(found, metric="docs/latency_p50_ms", max=20.0).outcome is PASS


def test_f20_g_h_a_threshold_is_passed_exactly_at_it(tmp_path: Path) -> None:
    """Ten times 0.9 is 0.9, whatever the sum of ten floats is; a little below is a failure (fault F20, g and h)."""
    found = material(tmp_path, [0.9] * 10, [0.9] * 5 + [0.9] * 5, days=0)
    assert one(found, min=0.9).outcome is PASS
    assert one(found, max=0.9).outcome is PASS
    below = one(found, min=0.9000001)
    assert (below.outcome, below.is_test, below.bound) == (FAIL, False, None)
    assert "no test" in below.reason
    assert "0.9000001" in below.reason


def test_bounds_of_a_value_against_the_t_distribution(tmp_path: Path) -> None:
    """``on: bound`` holds the one-sided bound of the mean against the threshold (t of scipy)."""
    rng = np.random.default_rng(6)
    values = rng.normal(0.5, 0.1, 400)
    half = float(stats.t.ppf(0.95, 399) * values.std(ddof=1) / np.sqrt(400))
    mean = float(values.mean())
    found = material(tmp_path, values, values + 0.0)
    assert one(found, min=mean - half * 1.1, on="bound").outcome is PASS
    assert one(found, min=mean, on="bound").outcome is OPEN
    assert one(found, min=mean + half * 1.1, on="bound").outcome is FAIL
    assert one(found, max=mean + half * 1.1, on="bound").outcome is PASS
    assert one(found, max=mean - half * 1.1, on="bound").outcome is FAIL


def test_identical_items(tmp_path: Path) -> None:
    """Equal weights in two runs are a normal verdict: no loss above what 60 items can hide, and no improvement shown.

    What they can hide is Clopper and Pearson's bound, and a margin m takes about -ln(0.05) / m items.
    """
    values = np.linspace(0.2, 0.8, 60)
    found = material(tmp_path, values, values)
    assert one(found, no_regression=unseen(60) * 1.05).outcome is PASS
    unclear = one(found, no_regression=0.01)
    assert unclear.outcome is OPEN
    assert unclear.needs_items == pytest.approx(-np.log(0.05) / 0.01, rel=0.02)
    assert one(found, improve=True).outcome is OPEN
    assert one(found, improve=unseen(60) * 1.05).outcome is FAIL


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"metric": "docs/ndcg_at_5", "min": 0.1}, "ndcg_at_5"),
        ({"metric": "other/ndcg_at_10", "min": 0.1}, "no result"),
        ({"metric": "docs[slice=kind:x]/ndcg_at_10", "min": 0.1}, "slice"),
        ({"metric": "docs/dimensions", "max": 1}, "dimensions"),
        ({"metric": METRIC, "min": 0.1, "by": "kind"}, "slice"),
    ],
)
def test_what_is_missing_is_an_error(tmp_path: Path, keys: Any, words: str) -> None:
    """Never a pass, and the reason names it."""
    found = one(material(tmp_path, [0.9] * 60, [0.9] * 60), **keys)
    assert found.outcome is ERROR
    assert words in found.reason


@pytest.mark.parametrize("kind", ["min", "no_regression", "improve"])
def test_f20_c_items_without_a_value_are_an_error(tmp_path: Path, kind: str) -> None:
    """Half of the candidate's queries failed, and the mean over the rest would be fine (fault F20, c)."""
    found = material(tmp_path, [0.9] * 10, [0.9] * 5 + [float("nan")] * 5)
    verdict = one(found, **{kind: 0.5})
    assert verdict.outcome is ERROR
    assert "5 of 10 items" in verdict.reason


def test_one_item_gives_no_bound(tmp_path: Path) -> None:
    """An error, not a pass: nothing can be resampled."""
    found = material(tmp_path, [0.5], [0.9])
    assert one(found, improve=True).outcome is ERROR
    assert one(found, min=0.5, on="bound").outcome is ERROR
    assert one(found, min=0.5).outcome is PASS


def test_few_items_are_called_approximate(tmp_path: Path) -> None:
    """Below 50."""
    rng = np.random.default_rng(7)
    for n, told in ((49, True), (50, False)):
        old = rng.uniform(0.4, 0.6, n)
        found = material(tmp_path / str(n), old, old + rng.normal(0, 0.01, n))
        assert ("approximate" in one(found, no_regression=0.1).reason) is told


def test_slices_one_by_one(tmp_path: Path) -> None:
    """``by`` holds for each label with enough items; one label down is a failure though the mean is up."""
    rng = np.random.default_rng(8)
    old = rng.uniform(0.4, 0.6, 203)
    kinds = ["easy"] * 150 + ["hard"] * 50 + ["rare"] * 3
    new = old + np.where(np.array(kinds) == "hard", -0.2, 0.2) + rng.normal(0, 0.001, 203)
    found = material(tmp_path, old, new, slices={"kind": kinds})
    assert one(found, no_regression=0.01).outcome is PASS
    by = one(found, no_regression=0.01, by="kind")
    assert [(each.slice, each.outcome) for each in by.rules] == [("kind:easy", PASS), ("kind:hard", FAIL)]
    assert by.outcome is FAIL
    assert "1 label left out: fewer than 20 items." in by.reason
    assert one(found, metric="docs[slice=kind:easy]/ndcg_at_10", no_regression=0.01).outcome is PASS
    small = one(found, metric="docs[slice=kind:rare]/ndcg_at_10", no_regression=0.01)
    assert (small.outcome, "too few" in small.reason) == (ERROR, True)
    assert one(found, no_regression=0.01, by="kind", min_items=190).outcome is ERROR


def waived(rule: str, until: str) -> Waiver:
    """A waiver."""
    return Waiver(rule=rule, until=until, reason="agreed")


def test_waivers_count_until_their_last_day(tmp_path: Path) -> None:
    """In force they let a failure through and are shown; one day later they don't. An end in 14 days is told."""
    found = material(tmp_path, [0.5] * 60, [0.5] * 60)
    rule = Rule(metric=METRIC, min=0.9, name="floor")
    for until, outcome, word in (
        ("2026-12-31", PASS, None),
        ("2026-06-15", PASS, "ends on"),
        ("2026-06-16", PASS, None),
        ("2026-06-01", PASS, "ends on"),
        ("2026-05-31", FAIL, "no longer counts"),
    ):
        verdict = judged(found, rule, waivers=(waived("floor", until),))
        assert verdict.outcome is outcome, until
        assert verdict.rules[0].outcome is FAIL
        assert (verdict.rules[0].waiver is not None) is (outcome is PASS)
        assert [(word or "?") in text for text in verdict.warnings] == ([True] if word else []), verdict.warnings


def test_broken_evidence_can_not_be_waived(tmp_path: Path) -> None:
    """The outcome stays an error."""
    found = material(tmp_path, [0.5] * 60, [float("nan")] + [0.5] * 59)
    assert judged(found, Rule(metric=METRIC, min=0.1), waivers=(waived(METRIC, "2026-12-31"),)).outcome is ERROR


def test_a_waiver_within_a_group_of_all(tmp_path: Path) -> None:
    """The member doesn't block the group."""
    found = material(tmp_path, [0.5] * 60, [0.5] * 60)
    group = Rule(all=(Rule(metric=METRIC, min=0.9, name="floor"), Rule(metric=METRIC, max=0.9)))
    assert judged(found, group).outcome is FAIL
    assert judged(found, group, waivers=(waived("floor", "2026-12-31"),)).outcome is PASS


def test_too_little_evidence_blocks_unless_the_policy_says_otherwise(noisy: tuple[Material, float, float]) -> None:
    """And then a warning says so; a failure beside it still fails."""
    found, _, _ = noisy
    open_, fails = Rule(metric=METRIC, improve=True), Rule(metric=METRIC, min=0.99)
    assert judged(found, open_).outcome is OPEN
    passed = judged(found, open_, on_inconclusive="pass")
    assert passed.outcome is PASS
    assert any("on_inconclusive: pass" in text for text in passed.warnings)
    assert judged(found, open_, fails, on_inconclusive="pass").outcome is FAIL


def test_several_candidates_share_the_error_rate(noisy: tuple[Material, float, float]) -> None:
    """Each of four is tested at a quarter of it: a margin just enough for one is too little for four."""
    found, _, _ = noisy
    bound = one(found, no_regression=0.5).bound
    assert bound is not None
    rule = Rule(metric=METRIC, no_regression=-bound + 0.0003)
    assert judged(found, rule).outcome is PASS
    quarter = judged(found, rule, n_candidates=4)
    assert quarter.outcome is OPEN
    assert quarter.rules[0].alpha == pytest.approx(0.0125)
    assert any("One of 4 candidates" in text for text in quarter.warnings)


def test_too_few_resamples_for_the_error_rate(noisy: tuple[Material, float, float]) -> None:
    """2,000 resamples can't show a bound at 0.1 %: an error that says how many it takes."""
    found, _, _ = noisy
    verdict = judged(found, Rule(metric=METRIC, no_regression=0.1), alpha=0.001)
    assert verdict.outcome is ERROR
    assert "10000" in verdict.rules[0].reason


def test_claims_of_improvement_are_corrected_together(tmp_path: Path) -> None:
    """Two claims with the same p: Holm doubles it."""
    rng = np.random.default_rng(9)
    old = rng.uniform(0.4, 0.6, 100)
    found = material(tmp_path, old, old + rng.normal(0.004, 0.02, 100), slices={"kind": ["a"] * 100})
    rules = (
        Rule(metric=METRIC, improve=True),
        Rule(metric="docs[slice=kind:a]/ndcg_at_10", improve=True),
        Rule(metric=METRIC, no_regression=0.1),
    )
    first, second, third = (each.comparison for each in judged(found, *rules).rules)
    assert first is not None
    assert second is not None
    assert third is not None
    assert first.p is not None
    assert second.p is not None
    low, high = sorted([first.p, second.p])
    adjusted = sorted([first.p_adjusted or 0.0, second.p_adjusted or 0.0])
    assert adjusted == pytest.approx([min(1.0, 2 * low), max(min(1.0, 2 * low), high)])
    assert third.p_adjusted is None


def test_claims_of_improvement_are_corrected_over_candidates(tmp_path: Path) -> None:
    """One claim of one of three candidates: Bonferroni triples its p, up to 1."""
    rng = np.random.default_rng(9)
    old = rng.uniform(0.4, 0.6, 100)
    found = material(tmp_path, old, old + rng.normal(0.004, 0.02, 100))
    claim = judged(found, Rule(metric=METRIC, improve=True), n_candidates=3).rules[0].comparison
    assert claim is not None
    assert claim.p is not None
    assert 0.0 < claim.p < 1.0
    assert claim.p_adjusted == pytest.approx(min(1.0, 3 * claim.p))


def test_no_difference_at_all_is_no_improvement(tmp_path: Path) -> None:
    """Where nothing unseen is allowed for, both bounds are exactly 0: not above it, and known not to be."""
    found = material(tmp_path, [0.25, 0.5, 0.75] * 20, [0.25, 0.5, 0.75] * 20)
    verdict = judged(found, Rule(metric=METRIC, improve=True), unseen="as_seen").rules[0]
    assert (verdict.low, verdict.high) == (0.0, 0.0)
    assert verdict.outcome is FAIL


def test_several_verdicts_together() -> None:
    """Any error is one of the whole; else a pass passes, and the best of the rest is the outcome."""

    def overall(*outcomes: Outcome) -> Outcome:
        return decide.overall([Verdict(outcome=each, candidate="x") for each in outcomes])

    assert overall(PASS, FAIL) is PASS
    assert overall(PASS, ERROR) is ERROR
    assert overall(FAIL, OPEN) is OPEN
    assert overall(FAIL, FAIL) is FAIL
    assert overall() is ERROR
