"""What the reports for people and for CI say alike: which rules stand in the way, and sentences about a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from embeval.core.figures import percent
from embeval.core.verdict import Outcome
from embeval.core.words import plural

if TYPE_CHECKING:
    from embeval.core.comparison import Comparison
    from embeval.core.verdict import GateReport, RuleVerdict, Verdict

WAIVED = "waived"
"""What is said of a rule that would block and doesn't."""
DIFFERENCES = frozenset({"no_regression", "improve"})
"""Kinds of rules whose value is a difference to the baseline."""


def state(rule: RuleVerdict) -> str:
    """``pass``, ``fail``, ``inconclusive``, ``error``, or ``waived`` for a rule that a waiver keeps from blocking."""
    return WAIVED if rule.outcome is not Outcome.PASS and not rule.blocks else rule.outcome.value


def allowed(verdict: Verdict, rule: RuleVerdict) -> bool:
    """Whether a rule is inconclusive, and the policy lets that pass."""
    return rule.blocks and rule.outcome is Outcome.INCONCLUSIVE and verdict.outcome is Outcome.PASS


def blocks(verdict: Verdict, rule: RuleVerdict) -> bool:
    """Whether a rule stands in this candidate's way."""
    return rule.blocks and not allowed(verdict, rule)


def is_difference(rule: RuleVerdict) -> bool:
    """Whether a rule's value is a difference to the baseline."""
    return rule.kind in DIFFERENCES


def flat(rules: Iterable[RuleVerdict], depth: int = 0) -> Iterator[tuple[RuleVerdict, int]]:
    """Each rule with its depth, those of a group after it."""
    for rule in rules:
        yield rule, depth
        yield from flat(rule.rules, depth + 1)


def headline(report: GateReport) -> str:
    """The whole in one sentence."""
    if not report.verdicts:
        return "Nothing could be decided."
    if len(report.verdicts) == 1:
        return sentence(report.verdicts[0])
    passing = [verdict.candidate for verdict in report.verdicts if verdict.outcome is Outcome.PASS]
    names = f": {', '.join(passing)}" if passing else ""
    return f"{len(passing)} of {plural(len(report.verdicts), 'candidate')} {_verb(len(passing))}{names}."


def sentence(verdict: Verdict) -> str:
    """One candidate's verdict in one sentence."""
    against = "" if verdict.baseline is None else f" against {verdict.baseline}"
    return f"{verdict.candidate}{against}: {tally(verdict)}."


def tally(verdict: Verdict) -> str:
    """``3 of 5 rules pass, 1 fails, 1 is waived``."""
    found = [state(rule) for rule in verdict.rules]
    passed = found.count(Outcome.PASS.value)
    parts = [f"{passed} of {plural(len(found), 'rule')} {_verb(passed)}"]
    for name, one, several in (
        (Outcome.FAIL.value, "fails", "fail"),
        (Outcome.INCONCLUSIVE.value, "is inconclusive", "are inconclusive"),
        (Outcome.ERROR.value, "can't be decided", "can't be decided"),
        (WAIVED, "is waived", "are waived"),
    ):
        if n := found.count(name):
            parts.append(f"{n} {one if n == 1 else several}")
    return ", ".join(parts)


def _verb(n: int) -> str:
    return "passes" if n == 1 else "pass"


def waiver_text(rule: RuleVerdict) -> str | None:
    """``Waived until 2026-12-31 by Kim: too late for this release``; None without a waiver."""
    if rule.waiver is None:
        return None
    by = "" if rule.waiver.approved_by is None else f" by {rule.waiver.approved_by}"
    idle = " (not needed now: it passes)" if rule.outcome is Outcome.PASS else ""
    return f"Waived until {rule.waiver.until}{by}: {rule.waiver.reason}{idle}"


def provenance(report: GateReport) -> list[tuple[str, str]]:
    """Name and text of all that says where a report comes from."""
    found = [
        ("Policy", report.policy),
        ("Policy digest", report.policy_digest),
        ("Made at", report.made_at),
        ("embeval", report.embeval),
        ("Exit code", str(report.exit_code)),
    ]
    several = len(report.verdicts) > 1
    for number, verdict in enumerate(report.verdicts, 1):
        found += _models(verdict, f" {number}" if several else "")
    statistics = {_statistics(each) for verdict in report.verdicts for each in _comparisons(verdict)}
    return found + [("Uncertainty", text) for text in sorted(statistics)]


def _models(verdict: Verdict, number: str) -> list[tuple[str, str]]:
    sides = (
        (f"Candidate{number}", verdict.candidate, verdict.candidate_digest),
        (f"Baseline{number}", verdict.baseline, verdict.baseline_digest),
    )
    return [
        (name, label if digest is None else f"{label} ({digest})") for name, label, digest in sides if label is not None
    ]


def _comparisons(verdict: Verdict) -> Iterator[Comparison]:
    for rule, _ in flat(verdict.rules):
        if rule.comparison is not None and rule.comparison.resamples:
            yield rule.comparison


def _statistics(comparison: Comparison) -> str:
    method = "" if comparison.interval is None else f"{comparison.interval} "
    level = percent(comparison.level)
    return f"{level} {method}intervals from {comparison.resamples:,} resamples, seed {comparison.seed}"
