"""A comparison as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embeval.core.comparison import Finding
from embeval.core.words import plural
from embeval.pages import intervals, page

if TYPE_CHECKING:
    from markupsafe import Markup

    from embeval.compare.report import CompareReport, TaskChanges
    from embeval.core.comparison import Comparison

Drawn = tuple[tuple["Comparison", "Markup"], ...]


@dataclass(frozen=True)
class View:
    """A candidate with all that its section shows."""

    candidate: str
    sentence: str
    findings: tuple[tuple[str, int], ...]
    comparisons: Drawn
    worst: Drawn
    slices: Drawn
    changes: tuple[TaskChanges, ...]


def html(report: CompareReport) -> str:
    """One self-contained HTML page: for each candidate its differences around zero, slices, and items lost and gained.

    Nothing is fetched and nothing runs; names and texts are escaped.
    """
    several = len(report.candidates) != 1
    of = plural(len(report.candidates), "candidate") if several else report.candidates[0]
    return page.render(
        "embeval.compare",
        "compare.html",
        report=report,
        heading=f"{of} against {report.baseline}",
        views=[_view(report, candidate) for candidate in report.candidates],
        correction=CORRECTIONS.get(report.correction, report.correction),
    )


CORRECTIONS = {
    "holm": "corrected for all comparisons of this page by Holm",
    "bh": "corrected for all comparisons of this page by Benjamini–Hochberg",
    "none": "not corrected for how many there are",
}


def _view(report: CompareReport, candidate: str) -> View:
    found = [each.finding for each in report.of(candidate)]
    return View(
        candidate=candidate,
        sentence=report.sentence(candidate),
        findings=tuple((finding.value, n) for finding in Finding if (n := found.count(finding))),
        comparisons=_drawn(report.of(candidate)),
        worst=_drawn([each for each in report.worst_slices if each.candidate_model == candidate]),
        slices=_drawn([each for each in report.slices if each.candidate_model == candidate]),
        changes=tuple(each for each in report.changes if each.candidate == candidate),
    )


def _drawn(comparisons: Sequence[Comparison]) -> Drawn:
    drawings = intervals.svg([intervals.around_zero(each) for each in comparisons])
    return tuple(zip(comparisons, drawings, strict=True))
