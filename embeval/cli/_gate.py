"""A gate's report on a terminal: the verdict first, then the rules, then why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from embeval.cli import _state, _tables
from embeval.cli._texts import plain
from embeval.core.characters import cut
from embeval.core.figures import figure, interval, rank, signed
from embeval.core.verdict import Outcome
from embeval.core.words import plural
from embeval.gates.render import _words

if TYPE_CHECKING:
    from embeval.core.comparison import ItemChange, RankedPositive
    from embeval.core.verdict import GateReport, Lost, RuleVerdict, Verdict

STYLES = {"pass": "green", "fail": "red", "inconclusive": "yellow", "error": "red", "waived": "yellow"}
"""Colour of a word, on terminals that have colours."""
SAID = {
    Outcome.PASS: "every rule passes or is waived",
    Outcome.FAIL: "a rule fails",
    Outcome.INCONCLUSIVE: "too little evidence, and on_inconclusive is fail",
    Outcome.ERROR: "evidence is missing or broken, so nothing is decided",
}
"""What an exit code means."""
QUERY = 160
"""Characters shown of a query."""
INDENT = 2
NOT_RANKED = 1_000_000
"""Stands for the rank of a document that a ranking lacks."""


def show(report: GateReport) -> None:
    """The report on stdout."""
    outcome = report.outcome.value
    headline = Text.assemble((outcome.upper(), f"bold {STYLES[outcome]}"), f"  {plain(_words.headline(report))}")
    _state.out(headline)
    if report.error is not None:
        _paragraph(report.error)
    for verdict in report.verdicts:
        if len(report.verdicts) > 1:
            _heading(f"{verdict.outcome.value.upper()}  {_words.sentence(verdict)}")
        _verdict(verdict, skip_reasons=report.error is not None)
    _bullets("Warnings", list(report.warnings))
    code = int(report.outcome.exit_code)
    _state.out(Text(""))
    meaning = SAID[report.outcome]
    if report.outcome is Outcome.PASS and len(report.verdicts) > 1:
        meaning = "a candidate passes, and none is broken"
    elif report.outcome is Outcome.PASS and any(
        _words.allowed(verdict, rule) for verdict in report.verdicts for rule in verdict.rules
    ):
        meaning = "no rule fails, and on_inconclusive is pass"
    _line(f"Exit code {code}: {meaning}.")


def _verdict(verdict: Verdict, *, skip_reasons: bool) -> None:
    console = _state.console()
    rules = list(_words.flat(verdict.rules))
    headings = ["Rule", "Candidate", "Baseline", "Measured", "Threshold", "Outcome"]
    rows = [_row(verdict, rule, depth) for rule, depth in rules]
    numbers = ("Candidate", "Baseline", "Threshold")
    whole = ("Measured", "Outcome")
    spare = ("Baseline", "Candidate", "Threshold")  # the threshold stands in the rule, too
    _state.out(_tables.fitting(headings, rows, console, right=numbers, whole=whole, spare=spare))
    if not skip_reasons:
        blocking = [rule for rule in verdict.rules if _words.blocks(verdict, rule)]
        _bullets("What blocks", list(_reasons(verdict, blocking)))
    passing = [rule for rule in verdict.rules if _words.allowed(verdict, rule)]
    _bullets("Let pass", list(_reasons(verdict, passing)))
    waived = [rule for rule, _ in rules if rule.waiver is not None]
    _bullets("Waivers", [f"{rule.rule}: {_words.waiver_text(rule)}" for rule in waived])
    _bullets("Warnings", list(verdict.warnings))
    _slices(verdict)
    for lost in verdict.lost:
        _lost(lost)


def _row(verdict: Verdict, rule: RuleVerdict, depth: int) -> list[str]:
    comparison, difference = rule.comparison, _words.is_difference(rule)
    candidate = figure(comparison.candidate) if comparison is not None else ""
    baseline = figure(comparison.baseline) if comparison is not None else ""
    if rule.value is not None and not difference:
        candidate = figure(rule.value)
    measured = signed(rule.value) if difference else figure(rule.value)
    told = " ".join(filter(None, (measured, interval(rule.low, rule.high))))
    threshold = "" if rule.threshold is None else f"{'>' if rule.higher_is_better else '<'} {figure(rule.threshold)}"
    if threshold and not difference:
        threshold = threshold.replace("> ", ">= ").replace("< ", "<= ")
    word = _words.state(rule) + (" (let pass)" if _words.allowed(verdict, rule) else "")
    name = f"{'  ' * depth}{_group_name(rule) if rule.rules else rule.rule}"
    return [plain(name), candidate, baseline, told if rule.value is not None else "", threshold, word]


def _group_name(rule: RuleVerdict) -> str:
    """A group without its members, which stand below it."""
    return rule.rule.partition(" (")[0] if rule.rule.endswith(")") else rule.rule


def _reasons(verdict: Verdict, rules: list[RuleVerdict]) -> Iterator[str]:
    """Why each rule blocks, and of a group why its members do not pass."""
    for rule, depth in _words.flat(rules):
        if depth and rule.outcome is Outcome.PASS:
            continue
        yield f"{'  ' * depth}{_group_name(rule) if rule.rules else rule.rule}: {rule.reason}"


def _slices(verdict: Verdict) -> None:
    if not verdict.slices:
        return
    _heading("Worst slices")
    rows = []
    for each in (change.comparison for change in verdict.slices):
        said = f"{signed(each.delta)} {interval(each.ci_low, each.ci_high)}"
        rows.append([plain(f"{each.task} {each.slice}:{each.label}"), each.metric, str(each.n_items), said])
    headings = ["Slice", "Metric", "Items", "Difference"]
    spare = ("Metric", "Items")
    _state.out(
        _tables.fitting(headings, rows, _state.console(), right=("Items",), whole=("Metric", "Difference"), spare=spare)
    )


def _lost(lost: Lost) -> None:
    title = f"{lost.task}: worse on {plural(lost.n_lost, 'item')}, better on {lost.n_gained} ({lost.metric})"
    _heading(title)
    for item in lost.items:
        _line(f"{item.id}  {figure(item.baseline)} to {figure(item.candidate)}  {_text(item)}", INDENT)
        if ranks := _ranks(item):
            _line(ranks, 2 * INDENT)


def _text(item: ItemChange) -> str:
    return "" if item.text is None else cut(item.text, QUERY)


def _ranks(item: ItemChange) -> str:
    """Where the relevant document that fell furthest was and is."""
    if not item.positives:
        return ""
    fell = max(item.positives, key=_fall)
    return f"{fell.doc}: rank {rank(fell.baseline_rank)} before, now {rank(fell.candidate_rank)}"


def _fall(positive: RankedPositive) -> float:
    return (positive.candidate_rank or NOT_RANKED) - (positive.baseline_rank or NOT_RANKED)


def _heading(text: str) -> None:
    _state.out(Text(""))
    _state.out(Text(plain(text), style="bold"))


def _bullets(title: str, texts: list[str]) -> None:
    if not texts:
        return
    _heading(title)
    for text in texts:
        indent = len(text) - len(text.lstrip())
        _state.out(
            Padding(
                Text(plain(f"- {' '.join(text.split())}"), overflow="fold"), (0, 0, 0, INDENT + indent), expand=False
            )
        )


def _paragraph(text: str) -> None:
    for line in text.splitlines():
        _line(line)


def _line(text: str, indent: int = 0) -> None:
    _state.out(Padding(Text(plain(text), overflow="fold"), (0, 0, 0, indent), expand=False))
