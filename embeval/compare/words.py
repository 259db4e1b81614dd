"""A comparison in words, the same in a terminal, in Markdown and on a page."""

from __future__ import annotations

from embeval.compare.report import CompareReport
from embeval.core.comparison import Comparison, Finding, RankedPositive
from embeval.core.figures import percent, rank
from embeval.core.words import plural

CORRECTED = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "uncorrected"}
"""How p-values are corrected, for headings and sentences."""

WHERE = "Say where the data is with --golden FOLDER, or --data DIR for tasks of the catalogue."
"""What to do about missing texts."""


def verdict(shown: Comparison) -> str:
    """``better``, ``worse``, ``same on every item``, or why neither is said."""
    finding = shown.finding
    if finding is Finding.UNDEFINED:
        return f"no difference: {shown.reason or 'undefined'}"
    if finding is Finding.NOT_TOLD_APART:
        if shown.p is None and shown.ci_low is None:
            return f"{finding.value}: there is no interval"
        if shown.detectable is not None:
            return f"{finding.value}: a difference of {significant(shown.detectable)} would have been seen"
    return finding.value


def significant(value: float) -> str:
    """Two significant digits: ``0.021``, ``12``, for sizes that are estimates themselves."""
    return f"{value:.2g}" if value < 1000 else f"{value:.0f}"


def heading(shown: Comparison) -> str:
    """Task, and sub-set where it is a part of one."""
    return shown.task if shown.subset == "all" else f"{shown.task} ({shown.subset})"


def p_heading(report: CompareReport) -> str:
    """``p (Holm)``."""
    return "p" if report.correction == "none" else f"p ({CORRECTED[report.correction]})"


def shown_p(shown: Comparison) -> float | None:
    """The p-value that the finding rests on."""
    return shown.p if shown.p_adjusted is None else shown.p_adjusted


def place(positive: RankedPositive) -> str:
    """``doc-7: 2 → 14``, ranks of baseline and candidate."""
    return f"{positive.doc}: {rank(positive.baseline_rank)} → {rank(positive.candidate_rank)}"


def remarks(report: CompareReport) -> list[str]:
    """What a reader of the tables should know, as sentences."""
    found = []
    n = len([each for each in report.comparisons if each.p is not None])
    if n:
        how = f"p from {' and '.join(sorted({each.test for each in report.comparisons if each.test}))} tests"
        if report.correction != "none" and n > 1:
            how += f", corrected for {plural(n, 'comparison')} ({CORRECTED[report.correction]})"
            how += f"; {percent(report.level)} intervals are not corrected"
        found.append(f"{how}.")
    if any(each.finding is Finding.NOT_TOLD_APART and each.detectable for each in report.comparisons):
        found.append(
            "Not told apart is not equal: a true difference of the size named would be seen four times in five."
        )
    if any(each.p is not None for each in report.worst_slices):
        stricter = ", which is stricter than the correction of all labels, so that a verdict may differ"
        found.append(
            "Labels with the largest drops were picked: their p is multiplied by the number of labels"
            f"{stricter if report.slices else ''}."
        )
    notes: dict[str, list[str]] = {}
    for each in report.comparisons:
        if each.note:
            notes.setdefault(each.note, []).append(heading(each))
    found += [f"{', '.join(dict.fromkeys(tasks))}: {note}." for note, tasks in notes.items()]
    if untold := [each for each in report.changes if each.note]:
        tasks = ", ".join(dict.fromkeys(each.task for each in untold))
        found.append(f"No texts of {tasks}: {untold[0].note}\n{WHERE}")
    found += [f"Not compared: {reason}" for reason in report.not_comparable]
    return [*found, *report.notes]


def few(report: CompareReport) -> str | None:
    """The labels that were left out, in one sentence."""
    if not report.few:
        return None
    labels = [f"{each.task} {each.slice} = {each.label or '(none)'} ({each.n_items})" for each in report.few]
    return f"Fewer than {report.min_items} items, not compared: {', '.join(labels)}."


def worst_title(report: CompareReport) -> str:
    """What stands above the worst slices."""
    return f"Largest drops by label ({report.min_items} items or more)"
