"""A gate's report as Markdown, for a pull request or the summary of a job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from embeval.core.characters import cut
from embeval.core.figures import figure, interval, percent, rank, signed
from embeval.core.markdown import code, escape, table
from embeval.core.words import plural
from embeval.gates.render._words import (
    allowed,
    blocks,
    flat,
    headline,
    is_difference,
    provenance,
    sentence,
    state,
    waiver_text,
)

if TYPE_CHECKING:
    from embeval.core.comparison import ItemChange, RankedPositive
    from embeval.core.verdict import GateReport, Lost, RuleVerdict, Verdict

LENGTH = 60_000
"""Characters of a report; GitHub refuses comments of 65,536 and more."""
QUERY, DOCUMENT = 160, 80
"""Characters shown of a query, and of a document."""
POSITIVES = 4
"""Relevant documents shown of an item."""
SIGNS = {"pass": "✅", "fail": "❌", "inconclusive": "❔", "error": "⚠️", "waived": "☑️"}
"""Beside the word, never instead of it."""
SPARE = ("items lost", "worst slices", "rules")
"""What is left out of a report that would be too long, in this order."""
LEFT_OUT = "Left out, since the report would be too long: {}. The HTML and JSON reports have it all."

Section = tuple[str, list[str]]


def markdown(report: GateReport, *, length: int = LENGTH) -> str:
    """Markdown in GitHub's form, of at most about ``length`` characters: the verdict is its first line.

    All that comes from data is escaped, and notifies and links nobody. Where it would be too long, the items lost are
    left out first, then the worst slices, then the table of rules; the report says so.
    """
    outcome = report.outcome.value
    lines = [f"## {SIGNS[outcome]} Release gate: {outcome.upper()}", "", escape(headline(report))]
    if report.error is not None:
        lines += ["", escape(report.error)]
    lines += _list("Warnings", report.warnings)
    sections: list[Section] = []
    for number, verdict in enumerate(report.verdicts, 1):
        several = len(report.verdicts) > 1
        sections += _candidate(verdict, number if several else None)
    origin = [f"{name}: {escape(text)}" for name, text in provenance(report)]
    end = ["", "<details><summary>Where this comes from</summary>", "", *(f"- {each}" for each in origin), ""]
    end.append("</details>")
    fixed = _size(lines) + _size(end) + len(LEFT_OUT) + 100
    return "\n".join([*lines, *_fitting(sections, length - fixed), *end]) + "\n"


def said(outcome: str) -> str:
    """The outcome in words, after its sign."""
    return f"{SIGNS[outcome]} {outcome}"


def _candidate(verdict: Verdict, number: int | None) -> list[Section]:
    heading: list[str] = []
    if number is not None:
        heading = ["", f"### {number}. {said(verdict.outcome.value)}", "", escape(sentence(verdict))]
    blocking = [f"{code(rule.rule)}: {escape(rule.reason)}" for rule in verdict.rules if blocks(verdict, rule)]
    return [
        ("what blocks", [*heading, *_bullets("What blocks", blocking)]),
        ("rules", _rules(verdict)),
        ("warnings", _list("Warnings", verdict.warnings)),
        ("worst slices", _slices(verdict)),
        *(("items lost", _lost(lost)) for lost in verdict.lost),
    ]


def _rules(verdict: Verdict) -> list[str]:
    if not verdict.rules:
        return []
    headings = ("Outcome", "Rule", "Value", "Interval", "Threshold")
    rows = [_rule(verdict, rule, depth) for rule, depth in flat(verdict.rules)]
    waivers = [f"{code(rule.rule)}: {escape(text)}" for rule, _ in flat(verdict.rules) if (text := waiver_text(rule))]
    return ["", *table(headings, rows, right=("Value", "Threshold")), *_bullets("Waivers", waivers)]


def _rule(verdict: Verdict, rule: RuleVerdict, depth: int) -> list[str]:
    outcome = said(state(rule)) + (" (allowed)" if not depth and allowed(verdict, rule) else "")
    above, below = (">", "<") if is_difference(rule) else ("≥", "≤")
    sign = above if rule.higher_is_better else below
    level = "" if rule.level is None else f" {percent(rule.level)}"
    shown = interval(rule.low, rule.high)
    return [
        outcome,
        "↳ " * depth + code(rule.rule),
        (signed if is_difference(rule) else figure)(rule.value),
        shown + level if shown else "—",
        "—" if rule.threshold is None else f"{sign} {figure(rule.threshold)}",
    ]


def _slices(verdict: Verdict) -> list[str]:
    if not verdict.slices:
        return []
    headings = ("Task", "Metric", "Slice", "Items", "Baseline", "Candidate", "Difference", "Interval", "Finding")
    rows = [
        [
            escape(each.task),
            escape(each.metric),
            escape(f"{each.slice}: {each.label or '(none)'}"),
            str(each.n_items),
            figure(each.baseline),
            figure(each.candidate),
            signed(each.delta),
            interval(each.ci_low, each.ci_high) or "—",
            each.finding.value,
        ]
        for each in (change.comparison for change in verdict.slices)
    ]
    numbers = ("Items", "Baseline", "Candidate", "Difference")
    return ["", "**Worst slices**", "", *table(headings, rows, right=numbers)]


def _lost(lost: Lost) -> list[str]:
    counts = f"worse on {lost.n_lost}, better on {lost.n_gained}"
    summary = f"Lost on {escape(lost.task)}: {counts} by {escape(lost.metric)}"
    shown = len(lost.items)
    more = (
        ["", f"The {plural(shown, 'largest loss', 'largest losses')} of {lost.n_lost}."] if shown < lost.n_lost else []
    )
    rows = [_item(item) for item in lost.items]
    headings = ("Item", "Before", "Now", "Relevant documents, rank before → now")
    made = table(headings, rows, right=("Before", "Now"))
    return ["", f"<details><summary>{summary}</summary>", *more, "", *made, "", "</details>"]


def _item(item: ItemChange) -> list[str]:
    name = code(item.id) if item.text is None else f"{escape(cut(item.text, QUERY))} ({code(item.id)})"
    ranks = [_positive(each) for each in item.positives[:POSITIVES]]
    if more := len(item.positives) - len(ranks):
        ranks.append(f"and {more} more")
    return [name, figure(item.baseline), figure(item.candidate), "<br>".join(ranks) or "—"]


def _positive(positive: RankedPositive) -> str:
    text = "" if positive.text is None else f" {escape(cut(positive.text, DOCUMENT))}"
    return f"{code(positive.doc)}: {rank(positive.baseline_rank)} → {rank(positive.candidate_rank)}{text}"


def _list(title: str, texts: Iterable[str]) -> list[str]:
    return _bullets(title, [escape(text) for text in texts])


def _bullets(title: str, texts: list[str]) -> list[str]:
    return ["", f"**{title}**", "", *(f"- {text}" for text in texts)] if texts else []


def _fitting(sections: list[Section], room: int) -> list[str]:
    """The lines of all sections; those that the room doesn't suffice for are named in a line instead."""
    kept = list(range(len(sections)))
    left_out: list[str] = []
    for kind in SPARE:
        for place in reversed([each for each in kept if sections[each][0] == kind]):
            if sum(_size(sections[each][1]) for each in kept) <= room:
                break
            kept.remove(place)
            left_out.append(kind)
    lines = [line for place in kept for line in sections[place][1]]
    named = ", ".join(dict.fromkeys(left_out))
    return [*lines, "", LEFT_OUT.format(named)] if left_out else lines


def _size(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)
