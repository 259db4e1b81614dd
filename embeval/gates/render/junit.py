"""A gate's report as JUnit XML, in the form that GitLab and Jenkins read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from embeval.core.characters import legal
from embeval.core.verdict import Outcome
from embeval.gates.render._words import allowed, blocks, flat, sentence, state, waiver_text

if TYPE_CHECKING:
    from embeval.core.verdict import GateReport, RuleVerdict, Verdict

TAGS = {Outcome.FAIL: "failure", Outcome.INCONCLUSIVE: "failure", Outcome.ERROR: "error"}
"""JUnit knows failures and errors; which of the outcomes it was stands in ``type``."""
Element = ET.Element


def junit(report: GateReport) -> str:
    """JUnit XML: a suite per candidate, a case per rule.

    A rule that fails or is inconclusive is a ``failure``, one that couldn't be decided an ``error``, with the outcome
    as ``type``. A waived rule, and an inconclusive one that the policy lets pass, is a passed case whose
    ``system-out`` says so. A suite is free of failures and errors only where its candidate passes. Characters that
    XML can't hold become U+FFFD.
    """
    root = Element("testsuites", {"name": "embeval gate"})
    for verdict in report.verdicts:
        _suite(root, report, verdict.candidate, _cases(verdict))
    if report.error is not None or not report.verdicts:
        nothing = report.error or "The report holds no candidate."
        _suite(root, report, "gate", [_case("gate", report.policy, Outcome.ERROR, nothing)])
    _add_counts(root, root)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _cases(verdict: Verdict) -> list[Element]:
    cases = [_rule_case(verdict, rule) for rule in verdict.rules]
    explained = any(case.find(tag) is not None for case in cases for tag in set(TAGS.values()))
    if verdict.outcome is not Outcome.PASS and not explained:  # no suite may look green where its candidate isn't
        cases.append(_case(verdict.candidate, "verdict", verdict.outcome, sentence(verdict)))
    return cases


def _rule_case(verdict: Verdict, rule: RuleVerdict) -> Element:
    if blocks(verdict, rule):
        case = _case(verdict.candidate, rule.rule, rule.outcome, rule.reason)
    else:
        case = _case(verdict.candidate, rule.rule, Outcome.PASS, "")
    if lines := _output(verdict, rule):
        ET.SubElement(case, "system-out").text = legal("\n".join(lines))
    return case


def _case(suite: str, name: str, outcome: Outcome, reason: str) -> Element:
    case = Element("testcase", {"classname": legal(suite), "name": legal(name), "time": "0"})
    if outcome in TAGS:
        found = {"type": outcome.value, "message": legal(reason)}
        ET.SubElement(case, TAGS[outcome], found).text = legal(reason)
    return case


def _output(verdict: Verdict, rule: RuleVerdict) -> list[str]:
    lines = [] if blocks(verdict, rule) else [f"{state(rule)}: {rule.reason}"]
    if (waived := waiver_text(rule)) is not None:
        lines.append(waived)
    if allowed(verdict, rule):
        lines.append("The policy lets an inconclusive rule pass.")
    lines += [f"{state(part)}: {part.rule}: {part.reason}" for part, _ in flat(rule.rules)]
    return lines


def _suite(root: Element, report: GateReport, name: str, cases: list[Element]) -> None:
    suite = ET.SubElement(root, "testsuite", {"name": legal(name), "timestamp": legal(report.made_at)})
    suite.extend(cases)
    _add_counts(suite, suite)
    suite.set("skipped", "0")


def _add_counts(element: Element, below: Element) -> None:
    element.set("tests", str(len(list(below.iter("testcase")))))
    element.set("failures", str(len(list(below.iter("failure")))))
    element.set("errors", str(len(list(below.iter("error")))))
    element.set("time", "0")
