"""Reports of gates and comparisons as they come out of real evaluations, for tests of what is made of them."""

from __future__ import annotations

from dataclasses import replace

from embeval.compare.report import CompareReport, FewItems, TaskChanges
from embeval.core.comparison import Comparison, ItemChange, RankedPositive
from embeval.core.verdict import GateReport, Lost, Outcome, RuleVerdict, SliceChange, Verdict, Waiver

BASELINE = "sentence-transformers/all-MiniLM-L6-v2"
CANDIDATE = "sentence-transformers/all-MiniLM-L6-v2 (int8, 192 dimensions)"


def comparison(
    delta: float = -0.0041,
    half: float = 0.0061,
    *,
    metric: str = "ndcg_at_10",
    slice_name: str | None = None,
    label: str | None = None,
    p: float = 0.1872,
    n_items: int = 648,
    candidate: str = CANDIDATE,
) -> Comparison:
    """A difference with an interval of ``half`` to both sides."""
    return Comparison(
        task="support-kb",
        split="test",
        subset="all",
        slice=slice_name,
        label=label,
        metric=metric,
        higher_is_better=True,
        baseline_model=BASELINE,
        candidate_model=candidate,
        baseline=0.8123,
        candidate=0.8123 + delta,
        delta=delta,
        ci_low=delta - half,
        ci_high=delta + half,
        interval="bca",
        p=p,
        p_adjusted=min(1.0, 2 * p),
        test="randomization",
        resamples=10_000,
        seed=42,
        n_items=n_items,
        effect_size=-0.05,
        wins=61,
        ties=n_items - 61 - 84,
        losses=84,
        detectable=0.009,
    )


def items() -> tuple[ItemChange, ...]:
    """Three queries that were lost: with texts and ranks, without ranks, and without a text."""
    return (
        ItemChange(
            id="q-0117",
            baseline=1.0,
            candidate=0.0,
            text="Why is my invoice shown twice after I changed the billing address in the middle of a month?",
            positives=(
                RankedPositive(
                    doc="kb/billing/duplicate-invoices.md#2",
                    grade=2,
                    baseline_rank=1,
                    candidate_rank=None,
                    text="An address that changes within a billing period leads to a second, corrected invoice. The "
                    "first one is void and need not be paid.",
                ),
                RankedPositive(doc="kb/billing/address.md", grade=1, baseline_rank=4, candidate_rank=23),
            ),
        ),
        ItemChange(id="q-0031", baseline=0.6309, candidate=0.2891, text="reset 2fa without phone"),
        ItemChange(id="q-0555-without-its-text", baseline=0.5, candidate=0.0),
    )


def no_regression(delta: float = -0.0041, half: float = 0.0061, margin: float = 0.01) -> RuleVerdict:
    """A rule of non-inferiority that decides as its numbers say."""
    inside, outside = delta - 0.84 * half > -margin, delta + 0.84 * half < -margin
    outcome = Outcome.PASS if inside else Outcome.FAIL if outside else Outcome.INCONCLUSIVE
    bound = delta + 0.84 * half if outside else delta - 0.84 * half
    return RuleVerdict(
        rule=f"support-kb/ndcg_at_10 no_regression {margin}",
        kind="no_regression",
        outcome=outcome,
        reason=f"the difference is {delta:.4f}, and its one-sided 95 % bound {bound:.4f}; the margin is {margin}.",
        task="support-kb",
        metric="ndcg_at_10",
        value=delta,
        low=delta - half,
        high=delta + half,
        level=0.95,
        bound=bound,
        threshold=-margin,
        is_test=True,
        alpha=0.05,
        needs_items=2310 if outcome is Outcome.INCONCLUSIVE else None,
        comparison=comparison(delta, half),
    )


def at_least(value: float = 0.9312, threshold: float = 0.9, metric: str = "recall_at_100") -> RuleVerdict:
    """A point value against a threshold."""
    outcome = Outcome.PASS if value >= threshold else Outcome.FAIL
    return RuleVerdict(
        rule=f"support-kb/{metric} min {threshold}",
        kind="min",
        outcome=outcome,
        reason=f"{value:.4f} is {'at least' if outcome is Outcome.PASS else 'below'} {threshold} (no test).",
        task="support-kb",
        metric=metric,
        value=value,
        low=value - 0.0164,
        high=value + 0.0139,
        level=0.95,
        threshold=threshold,
    )


def at_most(value: float = 41.7, threshold: float = 30.0) -> RuleVerdict:
    """A latency against a limit."""
    outcome = Outcome.PASS if value <= threshold else Outcome.FAIL
    return RuleVerdict(
        rule=f"support-kb/latency_p95_ms max {threshold:g}",
        kind="max",
        outcome=outcome,
        reason=f"{value} ms is {'at most' if outcome is Outcome.PASS else 'above'} {threshold:g} ms.",
        task="support-kb",
        metric="latency_p95_ms",
        value=value,
        threshold=threshold,
        higher_is_better=False,
    )


def broken() -> RuleVerdict:
    """A rule that couldn't be decided."""
    return RuleVerdict(
        rule="faq/map_at_10 no_regression 0.02",
        kind="no_regression",
        outcome=Outcome.ERROR,
        reason="results/faq/test.all.1a2b3c4d.json: ndcg_at_10 is 0.91 on 648 items, but the items give 0.81 on 648.\n"
        "The file was changed after the run. Run the evaluation again.",
        task="faq",
        metric="map_at_10",
    )


def group() -> RuleVerdict:
    """One rule of several suffices."""
    return RuleVerdict(
        rule="any of 2",
        kind="any",
        outcome=Outcome.PASS,
        reason="1 of 2 rules passes, and one is enough.",
        rules=(no_regression(0.0112, 0.0061), at_least(0.88, 0.9, "recall_at_10")),
    )


def waived(rule: RuleVerdict) -> RuleVerdict:
    """The rule with a waiver in force."""
    reason = "New hardware comes in January; agreed with the search team."
    return replace(rule, waiver=Waiver(rule=rule.rule, until="2026-12-31", reason=reason, approved_by="Kim Doe"))


def verdict(outcome: Outcome, *rules: RuleVerdict, candidate: str = CANDIDATE) -> Verdict:
    """What a policy says of one candidate, with slices and items lost."""
    slices = (
        comparison(-0.0911, 0.0702, slice_name="kind", label="paraphrase", p=0.0088, n_items=74, candidate=candidate),
        comparison(-0.0240, 0.0395, slice_name="language", label="de", p=0.2310, n_items=131, candidate=candidate),
        comparison(-0.0101, 0.0188, slice_name="length", label="", p=0.31, n_items=210, candidate=candidate),
    )
    return Verdict(
        outcome=outcome,
        candidate=candidate,
        candidate_digest="9f2c1d7ab3e4",
        baseline=BASELINE,
        baseline_digest="51b0c6f2d998",
        rules=rules,
        warnings=("A new model needs a full re-index: 1,200,000 documents, about 3.1 h on this machine.",),
        slices=tuple(SliceChange(comparison=each) for each in slices),
        lost=(Lost(task="support-kb", metric="ndcg_at_10", n_lost=84, n_gained=61, items=items()),),
    )


def gate_report(outcome: Outcome, *verdicts: Verdict, error: str | None = None) -> GateReport:
    """A whole report."""
    return GateReport(
        outcome=outcome,
        exit_code=int(outcome.exit_code),
        policy="embeval.yaml",
        policy_digest="3e1f" * 16,
        made_at="2026-11-30T08:12:44+00:00",
        embeval="0.1.0",
        verdicts=verdicts,
        warnings=("EMBEVAL_RESAMPLES=2000 was set in the environment.",) if verdicts else (),
        error=error,
    )


def gate_reports() -> dict[str, GateReport]:
    """One report of each kind, by name."""
    passing = verdict(Outcome.PASS, no_regression(), at_least(), at_most(22.4), group())
    failing = verdict(Outcome.FAIL, no_regression(-0.0312, 0.0081), at_least(0.8712), at_most(), group())
    unsure = verdict(Outcome.INCONCLUSIVE, no_regression(-0.0072, 0.0091), at_least())
    excepted = verdict(Outcome.PASS, no_regression(), waived(at_most()))
    error = verdict(Outcome.ERROR, broken(), no_regression())
    long_name = "./models/" + "a-folder-with-a-long-name/" * 4 + "checkpoint-00012000" + "x" * 60
    many = [
        replace(no_regression(0.001 * i - 0.02, 0.004 + 0.0003 * i), rule=f"task-{i}/ndcg_at_10 no_regression 0.01")
        for i in range(24)
    ]
    second = verdict(Outcome.FAIL, no_regression(-0.0312, 0.0081), at_least(), candidate=long_name)
    return {
        "pass": gate_report(Outcome.PASS, passing),
        "fail": gate_report(Outcome.FAIL, failing),
        "inconclusive": gate_report(Outcome.INCONCLUSIVE, unsure),
        "waived": gate_report(Outcome.PASS, excepted),
        "error": gate_report(Outcome.ERROR, error),
        "nothing": gate_report(Outcome.ERROR, error="embeval.yaml, line 12: the policy has no rules."),
        "many": gate_report(Outcome.FAIL, verdict(Outcome.FAIL, *many)),
        "several": gate_report(Outcome.PASS, passing, second, unsure),
    }


def compare_report() -> CompareReport:
    """Two candidates against one baseline."""
    other = "BAAI/bge-small-en-v1.5"
    mine = [comparison(metric=name) for name in ("ndcg_at_10", "map_at_10", "recall_at_100")]
    theirs = [
        comparison(0.0312, 0.0101, p=0.0001, candidate=other),
        comparison(-0.0441, 0.0091, metric="mrr_at_10", p=0.00001, candidate=other),
        replace(
            comparison(metric="answerability_auc", candidate=other),
            candidate=None,
            delta=None,
            ci_low=None,
            ci_high=None,
            p=None,
            p_adjusted=None,
            wins=None,
            ties=None,
            losses=None,
            reason="too_few_items",
        ),
        replace(comparison(0.0, 0.0, metric="success_at_100", candidate=other), wins=0, losses=0, ties=648),
    ]
    changes = [
        TaskChanges(
            task="support-kb",
            split="test",
            subset="all",
            metric="ndcg_at_10",
            candidate=candidate,
            n_lost=84,
            n_gained=61,
            n_same=503,
            lost=items(),
            gained=(replace(items()[1], baseline=0.2, candidate=1.0, text="Wie ändere ich meine Adresse? שלום 你好"),),
            note=None if candidate == other else "No texts: the data of this task has moved.",
        )
        for candidate in (CANDIDATE, other)
    ]
    return CompareReport(
        baseline=BASELINE,
        candidates=(CANDIDATE, other),
        comparisons=(*mine, *theirs),
        slices=(comparison(-0.02, 0.03, slice_name="kind", label="paraphrase", n_items=74),),
        worst_slices=(comparison(-0.0911, 0.0702, slice_name="kind", label="paraphrase", p=0.0088, n_items=74),),
        few=(FewItems(task="support-kb", slice="language", label="nl", n_items=4),),
        changes=tuple(changes),
        not_comparable=("faq: different data (sha256 1a2b… and 9c8d…).",),
        notes=("Two intervals are approximate: fewer than 50 items.",),
    )
