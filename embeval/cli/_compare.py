"""A comparison on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.padding import Padding
from rich.text import Text

from embeval.cli import _state, _tables
from embeval.cli._texts import about, plain
from embeval.compare import words
from embeval.compare.report import CompareReport, TaskChanges
from embeval.core.comparison import Comparison, Finding, ItemChange
from embeval.core.figures import figure, interval, percent, probability, signed
from embeval.core.words import plural

POSITIVES = 5
"""Ranks listed of a query's positives."""
WIDEST = 140
"""Columns beyond which lines of text are hard to read."""
STYLES = {Finding.BETTER: "green", Finding.WORSE: "red"}


def show(report: CompareReport) -> None:
    """Prints the report: a table per candidate, the worst slices, labels, items lost and gained, remarks."""
    for candidate in report.candidates:
        if shown := report.of(candidate):
            _title(f"{candidate} against {report.baseline}")
            _table(report, shown)
        _state.out(Text(plain(report.sentence(candidate)), style=_style(report.of(candidate))))
        _state.out("")
    if report.worst_slices:
        _title(words.worst_title(report))
        _table(report, report.worst_slices, p="p")
    if report.slices:
        _title("By label")
        _table(report, report.slices)
    if (few := words.few(report)) is not None:
        _state.out(Text(plain(few)))
    for changes in report.changes:
        _changes(report, changes)
    for remark in words.remarks(report):
        _state.out(Text("\n".join(map(plain, remark.splitlines()))))


def _title(text: str) -> None:
    _state.out(Text(plain(text), style="bold"))


def _style(shown: Sequence[Comparison]) -> str:
    findings = {each.finding for each in shown}
    return "red" if Finding.WORSE in findings else "green" if Finding.BETTER in findings else ""


def _table(report: CompareReport, shown: Sequence[Comparison], *, p: str | None = None) -> None:
    """As many columns as there is room for; else two lines a row."""
    p = p or words.p_heading(report)
    cells = [_Cells(report, each, p) for each in shown]
    headings = _headings(report, shown, p)
    for left_out in ((), ("Won/tied/lost",), ("Won/tied/lost", "Items")):
        kept = [name for name in headings if name not in left_out]
        made = _tables.table(kept, right=[at for at, name in enumerate(kept) if name in (*RIGHT, p)])
        for each in cells:
            _tables.add(made, [each.wide[name] for name in kept])
        if _tables.fits(made, _state.console()):
            _state.out(made)
            return
    middle = f"Baseline → candidate\nDifference, {percent(report.level)} interval\n{p}, items"
    rows = [each.narrow for each in cells]
    _state.out(_tables.fitting(["Task, metric", middle, "Verdict"], rows, _state.console(), whole=(middle,)))


RIGHT = ("Baseline", "Candidate", "Difference", "Items", "Won/tied/lost")
"""Columns that hold numbers."""


def _headings(report: CompareReport, shown: Sequence[Comparison], p: str) -> list[str]:
    by_label = any(each.slice is not None for each in shown)
    several = by_label and len(report.candidates) > 1
    return [
        "Task",
        *(["Label"] if by_label else []),
        *(["Model"] if several else []),
        "Metric",
        "Baseline",
        "Candidate",
        "Difference",
        f"{percent(report.level)} interval",
        p,
        "Items",
        "Won/tied/lost",
        "Verdict",
    ]


class _Cells:
    """The texts of a row in both layouts."""

    def __init__(self, report: CompareReport, shown: Comparison, p: str) -> None:
        label = "" if shown.slice is None else plain(f"{shown.slice} = {shown.label or '(none)'}")
        between = interval(shown.ci_low, shown.ci_high)
        task = plain(words.heading(shown))
        self.wide = {
            "Task": task,
            "Label": label,
            "Model": plain(shown.candidate_model),
            "Metric": shown.metric,
            "Baseline": figure(shown.baseline),
            "Candidate": figure(shown.candidate),
            "Difference": signed(shown.delta),
            f"{percent(report.level)} interval": between,
            p: probability(words.shown_p(shown)),
            "Items": str(shown.n_items),
            "Won/tied/lost": "" if shown.wins is None else f"{shown.wins}/{shown.ties}/{shown.losses}",
            "Verdict": words.verdict(shown),
        }
        several = shown.slice is not None and len(report.candidates) > 1
        parts = [task, *([label] if label else []), *([plain(shown.candidate_model)] if several else []), shown.metric]
        numbers = [
            f"{figure(shown.baseline)} → {figure(shown.candidate)}",
            f"{signed(shown.delta)} {between}",
            f"p {probability(words.shown_p(shown))}, {plural(shown.n_items, 'item')}",
        ]
        self.narrow = ["\n".join(parts), "\n".join(numbers), self.wide["Verdict"]]


def _changes(report: CompareReport, changes: TaskChanges) -> None:
    whose = f"{plain(changes.candidate)} on " if len(report.candidates) > 1 else ""
    counts = f"{changes.n_lost} lost, {changes.n_gained} gained, {changes.n_same} unchanged"
    line = Text(f"{whose}{plain(changes.task)}", style="bold")
    _state.out(line.append(f" by {changes.metric}: {counts}", style="not bold"))
    for title, items, style in (("lost", changes.lost, "red"), ("gained", changes.gained, "green")):
        for item in items:
            _item(title, item, style)
    if changes.lost or changes.gained:
        _state.out("")


def _item(title: str, item: ItemChange, style: str) -> None:
    line = Text(title, style=style, overflow="fold")
    line.append(f"  {plain(item.id)}  {figure(item.baseline)} → {figure(item.candidate)}", style="default")
    _state.out(Padding(line, (0, 0, 0, 2)))
    if item.text is None:
        return
    width = min(_state.console().width, WIDEST) - 4
    query = plain(item.text)
    _below(Text(query if len(query) <= 2 * width else f"{query[: 2 * width - 1]}…", style="italic", overflow="fold"))
    if item.positives:
        places = ", ".join(plain(words.place(each)) for each in item.positives[:POSITIVES])
        more = len(item.positives) - POSITIVES
        _below(Text(f"relevant  {places}{f' and {more} more' if more > 0 else ''}", overflow="fold"))
    if item.candidate_first is not None:
        first = Text(f"first hit  {plain(item.baseline_first or 'none')} → {plain(item.candidate_first)}  ")
        _below(first.append_text(about(item.candidate_first_text or "", item.text, width, style="dim")))


def _below(text: Text) -> None:
    _state.out(Padding(text, (0, 0, 0, 4)))
