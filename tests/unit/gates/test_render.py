"""Reports of a gate: the same outcomes, numbers and texts in every form, and texts that stay texts."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from embeval.core import border, strict_json
from embeval.core.characters import legal, visible
from embeval.core.verdict import GateReport, Outcome, RuleVerdict, Verdict
from embeval.gates.render.html import html
from embeval.gates.render.json import json_text
from embeval.gates.render.junit import junit
from embeval.gates.render.markdown import LENGTH, markdown
from tests.support import gates
from tests.support.hostile import hostile
from tests.support.pages import fetched, read, with_texts

REPORTS = gates.gate_reports()
READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OUTCOMES = st.sampled_from(Outcome)


def suites(report: GateReport) -> list[ET.Element]:
    """The suites of a JUnit report, after its counts were checked against its cases."""
    root = ET.fromstring(junit(report).encode())  # noqa: S314  # our own text
    assert root.tag == "testsuites"
    for each in (root, *root):
        assert int(each.attrib["tests"]) == len(list(each.iter("testcase")))
        assert int(each.attrib["failures"]) == len(list(each.iter("failure")))
        assert int(each.attrib["errors"]) == len(list(each.iter("error")))
    return list(root)


def cells(line: str) -> list[str]:
    """The cells of a table row as a Markdown reader splits them: at pipes that no backslash stands before."""
    found = re.split(r"(?<!\\)(?:\\\\)*\|", line)
    assert (found[0], found[-1]) == ("", "")
    return [cell.strip() for cell in found[1:-1]]


@st.composite
def reports(draw: st.DrawFn) -> GateReport:
    """Reports in which the verdict follows from the rules, as a gate makes them."""
    verdicts = []
    for number in range(draw(st.integers(1, 3))):
        rules = []
        for place, outcome in enumerate(draw(st.lists(OUTCOMES, min_size=1, max_size=5))):
            rule = RuleVerdict(rule=f"task/metric-{place} min 0.5", kind="min", outcome=outcome, reason="as drawn")
            rules.append(gates.waived(rule) if draw(st.booleans()) else rule)
        found = {rule.outcome for rule in rules if rule.blocks}
        lenient = draw(st.booleans())
        worst_first = (Outcome.ERROR, Outcome.FAIL, Outcome.INCONCLUSIVE)
        outcome = next((each for each in worst_first if each in found), Outcome.PASS)
        if lenient and outcome is Outcome.INCONCLUSIVE:
            outcome = Outcome.PASS
        verdicts.append(Verdict(outcome=outcome, candidate=f"model-{number}", rules=tuple(rules)))
    return gates.gate_report(draw(OUTCOMES), *verdicts)


@pytest.mark.parametrize("name", REPORTS)
def test_json_is_the_report(name: str) -> None:
    """It reads back as the very same report, by a parser that knows no NaN."""
    text = json_text(REPORTS[name])
    assert text.endswith("}\n")
    assert border.load(GateReport, strict_json.loads(text)) == REPORTS[name]


def test_json_without_numbers_that_are_none() -> None:
    """NaN is refused, and a text that UTF-8 can't hold becomes one that it can."""
    broken = replace(gates.at_least(), value=math.nan)
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text(gates.gate_report(Outcome.FAIL, gates.verdict(Outcome.FAIL, broken)))
    report = replace(REPORTS["nothing"], policy="a\ud800b")
    assert json.loads(json_text(report).encode())["policy"] == "a\N{REPLACEMENT CHARACTER}b"


def test_junit_of_each_outcome() -> None:
    """Fail and inconclusive are failures, an error is an error, and what is waived or allowed passes and says so."""
    rules = [gates.no_regression(), gates.at_least(0.8), gates.no_regression(-0.0072, 0.0091), gates.broken()]
    verdict = gates.verdict(Outcome.ERROR, *rules, gates.waived(gates.at_most()))
    (suite,) = suites(gates.gate_report(Outcome.ERROR, verdict))
    assert suite.attrib["name"] == gates.CANDIDATE
    kinds = [[(part.tag, part.attrib.get("type")) for part in case] for case in suite.iter("testcase")]
    assert kinds == [
        [("system-out", None)],
        [("failure", "fail")],
        [("failure", "inconclusive")],
        [("error", "error")],
        [("system-out", None)],
    ]
    cases = list(suite.iter("testcase"))
    assert [case.attrib["name"] for case in cases] == [*(rule.rule for rule in rules), gates.at_most().rule]
    assert "items give 0.81" in str(cases[3][0].attrib["message"])
    said = str(cases[4].findtext("system-out"))
    assert said.startswith("waived: 41.7 ms is above 30 ms.\nWaived until 2026-12-31 by Kim Doe: New hardware")
    lenient = gates.gate_report(Outcome.PASS, gates.verdict(Outcome.PASS, gates.no_regression(-0.0072, 0.0091)))
    (case,) = suites(lenient)[0].iter("testcase")
    assert [part.tag for part in case] == ["system-out"]
    assert "The policy lets an inconclusive rule pass." in str(case.findtext("system-out"))


@settings(max_examples=60, deadline=None)
@given(reports())
def test_junit_agrees_with_the_verdicts(report: GateReport) -> None:
    """A suite per candidate, a case per rule; green exactly where the candidate passes; counted independently."""
    found = suites(report)
    assert [suite.attrib["name"] for suite in found] == [verdict.candidate for verdict in report.verdicts]
    for suite, verdict in zip(found, report.verdicts, strict=True):
        assert len(list(suite.iter("testcase"))) == len(verdict.rules)
        red = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
        assert (red == 0) is (verdict.outcome is Outcome.PASS)
        standing = Counter(rule.outcome for rule in verdict.rules if rule.waiver is None)
        broken = sum(rule.outcome is Outcome.ERROR for rule in verdict.rules)
        unsure = 0 if verdict.outcome is Outcome.PASS else standing[Outcome.INCONCLUSIVE]
        assert int(suite.attrib["errors"]) == broken
        assert int(suite.attrib["failures"]) == standing[Outcome.FAIL] + unsure


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.PASS])
def test_no_suite_is_green_by_mistake(outcome: Outcome) -> None:
    """Without rules, and with rules that all pass, a verdict that is no pass is red; so is a report of nothing."""
    for rules in ((), (gates.at_least(),)):
        (suite,) = suites(gates.gate_report(outcome, gates.verdict(outcome, *rules)))
        assert int(suite.attrib["failures"]) + int(suite.attrib["errors"]) == 1
    for report in (REPORTS["nothing"], replace(REPORTS["pass"], verdicts=())):
        (suite,) = suites(report)
        assert suite.attrib["errors"] == "1"


def test_markdown() -> None:
    """The verdict is its first line; then why, and each rule with its numbers."""
    lines = markdown(REPORTS["fail"]).splitlines()
    assert lines[0] == "## ❌ Release gate: FAIL"
    assert lines[2].endswith("against sentence-transformers/all-MiniLM-L6-v2: 1 of 4 rules passes, 3 fail.")
    assert "- <code>support-kb/latency_p95_ms max 30</code>: 41.7 ms is above 30 ms." in lines
    rules = [cells(line) for line in lines if line.startswith(("| ❌", "| ✅"))]
    no_regression, recall = "<code>support-kb/ndcg_at_10 no_regression 0.01</code>", "<code>support-kb/recall_at_10"
    assert rules == [
        ["❌ fail", no_regression, "-0.0312", "[-0.0393, -0.0231] 95 %", "> -0.0100"],
        ["❌ fail", f"{recall}0 min 0.9</code>", "0.8712", "[0.8548, 0.8851] 95 %", "≥ 0.9000"],
        ["❌ fail", "<code>support-kb/latency_p95_ms max 30</code>", "41.7000", "—", "≤ 30.0000"],
        ["✅ pass", "<code>any of 2</code>", "—", "—", "—"],
        ["✅ pass", f"↳ {no_regression}", "+0.0112", "[0.0051, 0.0173] 95 %", "> -0.0100"],
        ["❌ fail", f"↳ {recall} min 0.9</code>", "0.8800", "[0.8636, 0.8939] 95 %", "≥ 0.9000"],
    ]
    (lost,) = [cells(line) for line in lines if "q-0117" in line]
    assert lost[1:3] == ["1.0000", "0.0000"]
    assert lost[3].startswith("<code>kb/billing/duplicate-invoices.md#&#8203;2</code>: 1 → not ranked An address")
    assert lost[3].endswith("<br><code>kb/billing/address.md</code>: 4 → 23")


@pytest.mark.parametrize("name", REPORTS)
def test_markdown_names_the_outcome_and_the_waivers(name: str) -> None:
    """First line, number of candidates, waivers with date and reason, why nothing could be decided."""
    report = REPORTS[name]
    text = markdown(report)
    assert text.splitlines()[0].endswith(f"Release gate: {report.outcome.value.upper()}")
    assert text.count("\n### ") == (len(report.verdicts) if len(report.verdicts) > 1 else 0)
    assert ("Waived until 2026-12-31 by Kim Doe" in text) is (name == "waived")
    assert ("☑️ waived" in text) is (name == "waived")
    assert ("line 12: the policy has no rules." in text) is (name == "nothing")


def test_markdown_of_a_policy_that_lets_inconclusive_pass() -> None:
    """The rule says that it was allowed."""
    report = gates.gate_report(Outcome.PASS, gates.verdict(Outcome.PASS, gates.no_regression(-0.0072, 0.0091)))
    text = markdown(report)
    assert "| ❔ inconclusive (allowed) |" in text
    assert "What blocks" not in text


def test_markdown_that_would_be_too_long() -> None:
    """Items lost go first, the rules stay, and what was left out is named."""
    item = replace(gates.items()[0], text="long " * 100)
    made = REPORTS["fail"].verdicts[0]
    lost = tuple(replace(made.lost[0], task=f"task-{n}", items=(item,) * 20) for n in range(20))
    report = replace(REPORTS["fail"], verdicts=(replace(made, lost=lost),))
    text = markdown(report)
    assert len(text) <= LENGTH
    assert len(text) > LENGTH / 2
    assert "Lost on task-0" in text
    assert "Lost on task-19" not in text
    assert "Left out, since the report would be too long: items lost." in text
    short = markdown(report, length=2_200)
    assert len(short) <= 2_200
    assert "Left out, since the report would be too long: items lost, worst slices." in short
    assert short.count("| ❌ fail |") == 4
    shortest = markdown(report, length=1_000)
    assert "too long: items lost, worst slices, rules." in shortest
    assert "- <code>support-kb/latency_p95_ms max 30</code>: 41.7 ms is above 30 ms." in shortest
    assert "full re-index" in shortest
    assert "Left out" not in markdown(REPORTS["fail"])


def test_an_item_with_many_relevant_documents() -> None:
    """The first are shown and the others counted, so that one query doesn't fill the page."""
    item = gates.items()[0]
    many = tuple(replace(item.positives[1], doc=f"doc-{n}") for n in range(30))
    made = REPORTS["fail"].verdicts[0]
    lost = (replace(made.lost[0], items=(replace(item, positives=many),)),)
    report = replace(REPORTS["fail"], verdicts=(replace(made, lost=lost),))
    text = read(html(report)).text
    assert ("doc-7" in text, "doc-8" in text, "and 22 relevant documents more" in text) == (True, False, True)
    text = markdown(report)
    assert ("doc-3" in text, "doc-4" in text, "<br>and 26 more |" in text) == (True, False, True)


@settings(max_examples=25, deadline=None)
@given(hostile().filter(str.split), st.sampled_from(sorted(REPORTS)))
def test_texts_stay_texts(text: str, name: str) -> None:
    """With every text hostile each form has the structure that it has with plain ones, and shows the text."""
    plain, evil = (with_texts(REPORTS[name], lambda old, new=each: new) for each in ("x", text))  # type: ignore[misc]
    page = read(html(evil))
    assert page.tags == read(html(plain)).tags
    assert fetched(page) == []
    assert visible(text) in page.text
    assert visible(page.text) == page.text
    assert [part.tag for part in ET.fromstring(junit(evil).encode()).iter()] == [  # noqa: S314
        part.tag
        for part in ET.fromstring(junit(plain).encode()).iter()  # noqa: S314
    ]
    if evil.verdicts:
        assert ET.fromstring(junit(evil).encode())[0].attrib["name"] == legal(text)  # noqa: S314
    shown = read(READER.render(markdown(evil)))
    assert shown.tags == read(READER.render(markdown(plain))).tags
    assert " ".join(visible(" ".join(text.split())).split()) in " ".join(shown.text.replace("\u200b", "").split()) or (
        "\u200b" in text
    )
    assert border.load(GateReport, strict_json.loads(json_text(evil))) == evil


@pytest.mark.parametrize("name", REPORTS)
def test_html_shows_what_the_report_says(name: str) -> None:
    """The verdict in words, every rule with outcome, reason and numbers, every item lost, and where it comes from."""
    report = REPORTS[name]
    page = read(html(report))
    assert page.tags.index("h1") < page.tags.index("main")
    text = " ".join(page.text.split())
    assert text.startswith(f"{report.outcome.value.upper()}: ")
    for verdict in report.verdicts:
        assert verdict.candidate in text
        for rule in verdict.rules:
            assert " ".join(rule.reason.split()) in text
            assert rule.value is None or f"{rule.value:.4f}" in text
            assert rule.low is None or f"[{rule.low:.4f}, {rule.high:.4f}]" in text
        for change in verdict.slices:
            assert f"{change.comparison.delta:.4f}" in text
        for lost in verdict.lost:
            assert f"worse on {lost.n_lost}, better on {lost.n_gained} by {lost.metric}" in text
            for item in lost.items:
                assert item.id in text
                assert item.text is None or item.text in text
    assert text.count("1 → not ranked") == text.count("4 → 23") == len(report.verdicts)
    for part in (report.policy, report.policy_digest, report.made_at, f"Exit code {report.exit_code}"):
        assert part in text


def test_html_draws_every_rule_with_a_value() -> None:
    """One drawing per value with its outcome in words; those of rules of a group too."""
    labels = [each for each in read(html(REPORTS["fail"])).values("aria-label") if ": value" in each]
    assert [label.split(":")[0] for label in labels] == [
        *("fail", "fail", "fail", "pass", "fail"),
        *("worse", "not told apart", "not told apart"),
    ]
    assert labels[0] == (
        "fail: value -0.0312, 95 % interval from -0.0393 to -0.0231, deciding bound -0.0244, threshold: above -0.0100"
    )


def test_html_of_a_waiver_and_of_an_allowed_rule() -> None:
    """What was excepted is shown with its date, its reason and what the outcome would be; and blocks nothing."""
    text = " ".join(read(html(REPORTS["waived"])).text.split())
    assert "Waived until 2026-12-31 by Kim Doe: New hardware comes in January; agreed with the search team." in text
    assert re.search(r"waived\s*else fail", text)
    assert "What blocks" not in text
    lenient = gates.gate_report(Outcome.PASS, gates.verdict(Outcome.PASS, gates.no_regression(-0.0072, 0.0091)))
    text = read(html(lenient)).text
    assert "The policy lets an inconclusive rule pass." in text
    assert "What blocks" not in text


def test_html_of_several_candidates() -> None:
    """A table of all with links to a section each."""
    page = read(html(REPORTS["several"]))
    assert [link for link in page.values("href") if link.startswith("#")] == [f"#candidate-{n}" for n in (1, 2, 3)]
    assert "1 of 3 candidates passes: " in page.text
    assert page.tags.count("h2") == 3 + 2  # and the gate's own warnings, and where it comes from
