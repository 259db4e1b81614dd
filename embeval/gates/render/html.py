"""A gate's report as one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from embeval.core.figures import figure, signed
from embeval.gates.render._words import (
    allowed,
    blocks,
    flat,
    headline,
    is_difference,
    provenance,
    state,
    tally,
    waiver_text,
)
from embeval.pages import intervals, page
from embeval.pages.intervals import Interval

if TYPE_CHECKING:
    from markupsafe import Markup

    from embeval.core.comparison import Comparison
    from embeval.core.verdict import GateReport, RuleVerdict, Verdict


@dataclass(frozen=True)
class Row:
    """A rule in the table of rules."""

    rule: RuleVerdict
    depth: int
    state: str
    value: str
    drawing: Markup
    sides: str | None
    waiver: str | None
    allowed: bool


@dataclass(frozen=True)
class View:
    """A candidate with all that its section shows."""

    verdict: Verdict
    tally: str
    blocking: tuple[RuleVerdict, ...]
    rules: tuple[Row, ...]
    slices: tuple[tuple[Comparison, Markup], ...]


def html(report: GateReport) -> str:
    """One self-contained HTML page: the verdict, each rule's interval against its threshold, slices and items lost.

    Nothing is fetched and nothing runs; names and texts are escaped.
    """
    return page.render(
        "embeval.gates.render",
        "gate.html",
        report=report,
        headline=headline(report),
        views=[_view(verdict) for verdict in report.verdicts],
        provenance=provenance(report),
    )


def _view(verdict: Verdict) -> View:
    rules = list(flat(verdict.rules))
    drawings = intervals.svg([_interval(rule) for rule, _ in rules])
    slices = [each.comparison for each in verdict.slices]
    return View(
        verdict=verdict,
        tally=tally(verdict),
        blocking=tuple(rule for rule in verdict.rules if blocks(verdict, rule)),
        rules=tuple(
            _row(verdict, rule, depth, drawing) for (rule, depth), drawing in zip(rules, drawings, strict=True)
        ),
        slices=tuple(zip(slices, intervals.svg([intervals.around_zero(each) for each in slices]), strict=True)),
    )


def _row(verdict: Verdict, rule: RuleVerdict, depth: int, drawing: Markup) -> Row:
    return Row(
        rule=rule,
        depth=depth,
        state=state(rule),
        value=(signed if is_difference(rule) else figure)(rule.value),
        drawing=drawing,
        sides=_sides(rule),
        waiver=waiver_text(rule),
        allowed=allowed(verdict, rule),
    )


def _sides(rule: RuleVerdict) -> str | None:
    """The two values that a difference is made of."""
    made = rule.comparison
    if made is None or made.baseline is None or made.candidate is None:
        return None
    return f"baseline {figure(made.baseline)}, candidate {figure(made.candidate)}"


def _interval(rule: RuleVerdict) -> Interval:
    made = Interval(
        value=rule.value,
        low=rule.low,
        high=rule.high,
        level=rule.level,
        bound=rule.bound,
        threshold=rule.threshold,
        higher_is_better=rule.higher_is_better,
        has_zero=is_difference(rule),
        state=state(rule),
    )
    return made.of_unit(rule.metric or rule.rule)
