"""Whatever is done to a candidate's evidence, a gate doesn't pass what it can't know to be sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.compare import evidence, pairs
from embeval.compare.evidence import Evidence
from embeval.core.records import ItemRecords
from embeval.core.result import Result
from embeval.core.verdict import Outcome, Verdict
from embeval.errors import EvaluationError
from embeval.gates import decide
from embeval.gates.decide import Case, Material
from embeval.gates.policy import Place, Policy, Resampling, Rule
from embeval.store.results import ResultStore
from tests.support import stored

TODAY = date(2026, 6, 1)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
PLACE = Place("docs")
METRICS = ("ndcg_at_10", "mrr_at_10")
N = 30

PROFILE = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rule(metric: str, kind: str, amount: float) -> Rule:
    """A rule that sound evidence of the sides below would pass, however it is put."""
    name = f"docs/{metric}"
    return {
        "min": Rule(metric=name, min=0.01 * amount),
        "max": Rule(metric=name, max=1.0),
        "bound": Rule(metric=name, min=0.01 * amount, on="bound"),
        "no_regression": Rule(metric=name, no_regression=0.2 + 0.7 * amount),
        "relative": Rule(metric=name, no_regression=f"{50 + 40 * amount:.0f}%"),
        "improve": Rule(metric=name, improve=True),
        "by": Rule(metric=name, no_regression=0.2 + 0.7 * amount, by="kind", min_items=5),
    }[kind]


KINDS = ("min", "max", "bound", "no_regression", "relative", "improve", "by")
singles = st.builds(rule, st.sampled_from(METRICS), st.sampled_from(KINDS), st.floats(0.01, 1.0))


def grouped(members: list[Rule], how: str) -> Rule:
    """A group of rules that all speak of the spoiled result."""
    if how == "all":
        return Rule(all=tuple(members))
    return Rule(any=tuple(members)) if how == "any" else Rule(at_least=1, of=tuple(members))


groups = st.builds(grouped, st.lists(singles, min_size=1, max_size=3), st.sampled_from(["all", "any", "at_least"]))
policies = st.builds(
    lambda rules, lax: Policy(
        rules=tuple(rules), on_inconclusive="pass" if lax else "fail", statistics=Resampling(resamples=1000)
    ),
    st.lists(st.one_of(singles, groups), min_size=1, max_size=3),
    st.booleans(),
)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evidence, Evidence]:
    """A baseline and a candidate that is clearly better."""
    rng = np.random.default_rng(0)
    store = ResultStore(tmp_path_factory.mktemp("sides"))
    kinds = ["a"] * (N // 2) + ["b"] * (N - N // 2)
    found = []
    old = {name: rng.uniform(0.3, 0.5, N) for name in METRICS}
    for model, gain in (("old", 0.0), ("new", 0.2)):
        columns = {name: list(values + gain + rng.normal(0, 0.01, N)) for name, values in old.items()}
        put = stored.put(store, columns, model=f"org/{model}", slices={"kind": kinds})[-1]
        found.append(evidence.gather(store, put, now=NOW))
    return found[0], found[1]


def material(baseline: Evidence, candidate: Evidence, policy: Policy) -> Material:
    """What the workflow would make of the two: checked, and an error where a check refuses."""
    try:
        return Material(
            evidence.checked(candidate), pairs.pair(evidence.checked(baseline), candidate, policy.resampling)
        )
    except EvaluationError as error:
        return Material(problem=str(error))


def verdict(policy: Policy, found: Material) -> Verdict:
    """What the policy says of it."""
    return decide.judge(policy, Case("new", {PLACE: found}, baseline="old"), today=TODAY)


@PROFILE
@given(policies)
def test_sound_evidence_passes(sides: tuple[Evidence, Evidence], policy: Policy) -> None:
    """The control: without it the tests below would show nothing."""
    assert verdict(policy, material(*sides, policy)).outcome is Outcome.PASS


def without_rows(found: Evidence, n: int) -> Evidence:
    """The last n items are gone, and the scores are those of the rest."""
    kept = found.records.take(range(N - n))
    scores = {
        name: replace(value, value=float(kept.columns[name].mean()), n_items=N - n)
        for name, value in found.result.scores.items()
    }
    return replace(found, records=kept, result=replace(found.result, scores=scores), digest="x")


def with_columns(found: Evidence, change: Callable[[Any], Any]) -> ItemRecords:
    """Items with every column changed."""
    return replace(found.records, columns={name: change(column) for name, column in found.records.columns.items()})


def with_nan(found: Evidence, n: int) -> Evidence:
    """The first n items have no value, and the scores are those of the others, as a run would store them."""

    def gaps(column: Any) -> Any:
        return np.where(np.arange(N) < n, np.nan, column)

    records = with_columns(found, gaps)
    scores = {
        name: replace(
            value,
            value=float(np.nanmean(records.columns[name])) if n < N else None,
            reason=None if n < N else "too_few_items",
            n_items=N - n,
            n_unscored=n,
        )
        for name, value in found.result.scores.items()
    }
    return replace(found, records=records, result=replace(found.result, scores=scores), digest="x")


def with_result(found: Evidence, change: Callable[[Result], Result]) -> Evidence:
    """Another result on the same items."""
    return replace(found, result=change(found.result), digest="x")


def other_protocol(result: Result) -> Result:
    """Measured on other data."""
    return replace(
        result, signature=replace(result.signature, protocol={**result.signature.protocol, "data": "another"})
    )


def other_versions(result: Result) -> Result:
    """Computed by other versions of the metrics."""
    return replace(result, signature=replace(result.signature, metrics=dict.fromkeys(result.signature.metrics, 99)))


def better_scores(result: Result) -> Result:
    """Edited by hand."""
    scores = {name: replace(value, value=(value.value or 0.0) + 1e-3) for name, value in result.scores.items()}
    return replace(result, scores=scores)


def no_scores(result: Result) -> Result:
    """Nothing in it."""
    return replace(result, scores={})


SPOILED: dict[str, Callable[[Evidence, int], Evidence]] = {
    "dropped items": without_rows,
    "items without a value": with_nan,
    "other data": lambda found, _: with_result(found, other_protocol),
    "other versions": lambda found, _: with_result(found, other_versions),
    "edited scores": lambda found, _: with_result(found, better_scores),
    "no scores": lambda found, _: with_result(found, no_scores),
    "infinite values": lambda found, _: replace(
        found, records=with_columns(found, lambda column: np.where(np.arange(N) == 0, np.inf, column)), digest="x"
    ),
    "missing columns": lambda found, _: replace(found, records=replace(found.records, columns={}), digest="x"),
    "other items": lambda found, _: replace(
        found, records=replace(found.records, ids=tuple(f"x{row}" for row in range(N))), digest="x"
    ),
}
"""What is done to a candidate; the number says to how many items."""


@pytest.mark.parametrize("how", sorted(SPOILED))
@PROFILE
@given(policies, st.integers(1, N - 2))
def test_spoiled_evidence_is_an_error(sides: tuple[Evidence, Evidence], how: str, policy: Policy, n: int) -> None:
    """No policy passes it, in whatever group the rules stand and however lax it is with what is inconclusive."""
    found = verdict(policy, material(sides[0], SPOILED[how](sides[1], n), policy))
    assert found.outcome is Outcome.ERROR, how


@PROFILE
@given(policies)
def test_a_result_against_itself_is_an_error(sides: tuple[Evidence, Evidence], policy: Policy) -> None:
    """Also where the rules ask for thresholds only."""
    assert verdict(policy, material(sides[1], sides[1], policy)).outcome is Outcome.ERROR


@PROFILE
@given(policies)
def test_a_place_without_a_result_is_an_error(policy: Policy) -> None:
    """Nothing there, nothing passes."""
    found = decide.judge(policy, Case("new", {}), today=TODAY)
    assert found.outcome is Outcome.ERROR
    assert decide.broken("new", "why", policy).outcome is Outcome.ERROR


@PROFILE
@given(policies, st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=4))
def test_a_report_agrees_with_its_exit_code(policy: Policy, outcomes: list[Outcome]) -> None:
    """0 only where a candidate passes and none is broken."""
    verdicts = [Verdict(outcome=each, candidate="x") for each in outcomes]
    report = decide.report(policy, verdicts, source="x", made_at="now", version="1")
    assert report.exit_code == report.outcome.exit_code
    assert (report.exit_code == 0) is (Outcome.PASS in outcomes and Outcome.ERROR not in outcomes)
