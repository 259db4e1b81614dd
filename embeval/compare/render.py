"""A report of a comparison as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from embeval.compare import words
from embeval.compare.report import CompareReport, TaskChanges
from embeval.core import strict_json
from embeval.core.characters import cut
from embeval.core.comparison import Comparison, ItemChange
from embeval.core.figures import figure, interval, percent, probability, signed
from embeval.core.markdown import code, escape, table

POSITIVES = 5
"""Ranks listed of a query's positives."""
LONGEST = 160
"""Characters of a query's text."""


def json_text(report: CompareReport) -> str:
    """The report as strict JSON."""
    return strict_json.dumps(report.to_json())


def markdown(report: CompareReport) -> str:
    """The report as Markdown, names and texts escaped: a table per candidate, slices, items lost and gained."""
    lines = []
    for candidate in report.candidates:
        lines += [f"### {escape(candidate)} against {escape(report.baseline)}", ""]
        lines += [
            *_table(report, report.of(candidate), words.p_heading(report)),
            "",
            escape(report.sentence(candidate)),
            "",
        ]
    for title, shown, p in (
        (words.worst_title(report), report.worst_slices, "p"),
        ("By label", report.slices, words.p_heading(report)),
    ):
        if shown:
            lines += [f"#### {title}", "", *_table(report, shown, p), ""]
    if (few := words.few(report)) is not None:
        lines += [escape(few), ""]
    for changes in report.changes:
        lines += [*_changes(report, changes), ""]
    for remark in words.remarks(report):
        lines += [*(f"{escape(line)}  " for line in remark.splitlines()), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(report: CompareReport, shown: Iterable[Comparison], p: str) -> list[str]:
    rows = list(shown)
    with_labels = any(each.slice is not None for each in rows)
    several = with_labels and len(report.candidates) > 1
    headings = [
        *(["Candidate"] if several else []),
        "Task",
        *(["Label"] if with_labels else []),
        "Metric",
        "Baseline",
        "Candidate value" if several else "Candidate",
        "Difference",
        f"{percent(report.level)} interval",
        p,
        "Items",
        "Verdict",
    ]
    right = [heading for heading in headings[-8:-1] if heading != "Metric" and "interval" not in heading]
    return table(headings, (_row(each, with_labels, several) for each in rows), right=right)


def _row(shown: Comparison, with_labels: bool, several: bool) -> list[str]:
    return [
        *([escape(shown.candidate_model)] if several else []),
        escape(words.heading(shown)),
        *([escape(f"{shown.slice} = {shown.label or '(none)'}")] if with_labels else []),
        escape(shown.metric),
        figure(shown.baseline),
        figure(shown.candidate),
        signed(shown.delta),
        interval(shown.ci_low, shown.ci_high) or "—",
        escape(probability(words.shown_p(shown))),
        str(shown.n_items),
        escape(words.verdict(shown)),
    ]


def _changes(report: CompareReport, changes: TaskChanges) -> Iterator[str]:
    whose = f"{escape(changes.candidate)} on " if len(report.candidates) > 1 else ""
    yield f"#### {whose}{escape(changes.task)}: items by {escape(changes.metric)}"
    yield ""
    yield f"{changes.n_lost} lost, {changes.n_gained} gained, {changes.n_same} unchanged."
    for title, items in (("Lost", changes.lost), ("Gained", changes.gained)):
        if items:
            yield ""
            yield f"{title}:"
            yield ""
        for item in items:
            yield f"- {_item(item)}"


def _item(item: ItemChange) -> str:
    values = f"{code(item.id)} {figure(item.baseline)} → {figure(item.candidate)} ({signed(item.delta)})"
    if item.text is None:
        return values
    said = [f"{values}<br>{escape(cut(item.text, LONGEST))}"]
    if item.positives:
        places = [escape(words.place(each)) for each in item.positives[:POSITIVES]]
        more = len(item.positives) - POSITIVES
        said.append(f"relevant: {', '.join(places)}{f' and {more} more' if more > 0 else ''}")
    if item.candidate_first is not None:
        text = f": {escape(cut(item.candidate_first_text, LONGEST))}" if item.candidate_first_text else ""
        said.append(f"first hit {escape(item.baseline_first or 'none')} → {escape(item.candidate_first)}{text}")
    return "<br>".join(said)
