"""Why queries fail, for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from embeval.cli import _show, _state, _tables
from embeval.cli._texts import about, plain
from embeval.core.words import plural
from embeval.data.excerpts import excerpt
from embeval.leaderboard.render.cells import number
from embeval.store.results import Stored
from embeval.workflows import failures
from embeval.workflows.failures import Hit, Positive
from embeval.workflows.why import Diagnosis, Query

EXCERPT = 200
"""Characters of a text in JSON."""
WIDEST = 140
"""Columns beyond which lines of text are hard to read."""
LINES = 2
"""Lines that an excerpt fills."""
POSITIVES = 6
"""Ranks listed of a query's positives."""
MISSED = 2
"""Missed positives whose text is shown below the hits."""
INDENT = 2
STYLES = {"relevant": "green", "unjudged": "yellow", "judged": "dim", "missed": "red"}
"""By the first word of a mark."""


def to_json(
    stored: Stored, diagnosis: Diagnosis, shown: Sequence[Query], texts: Mapping[str, str], n_hits: int
) -> dict[str, Any]:
    """Plain values: the counts, then the queries that are shown."""
    counts = diagnosis.by_class
    skipped = {each.name: each.needs for each in diagnosis.not_checked}
    return {
        "id": stored.id,
        "file": str(stored.path),
        "model": stored.result.model.label,
        "task": stored.result.task.name,
        "metric": diagnosis.metric,
        "k": diagnosis.k,
        "queries": len(diagnosis.queries),
        "failing": len(diagnosis.failing),
        "classes": [
            {"class": each.name, "queries": counts.get(each.name), "meaning": each.meaning}
            | ({"needs": skipped[each.name]} if each.name in skipped else {})
            for each in (*failures.CLASSES, failures.OTHER)
        ],
        "worst_slices": [
            {"slice": each.slice, "label": each.label, "value": each.value.value, "items": each.value.n_items}
            for each in diagnosis.worst_slices
        ],
        "worst": [
            {
                "id": query.id,
                "text": query.text,
                "value": query.value,
                "classes": list(query.classes),
                "labels": dict(query.labels),
                "positives": [
                    {**each._asdict(), "text": excerpt(texts.get(each.doc, ""), query.text, EXCERPT)}
                    for each in query.positives
                ],
                "hits": [
                    {**each._asdict(), "text": excerpt(texts[each.doc], query.text, EXCERPT)}
                    for each in query.hits[:n_hits]
                ],
            }
            for query in shown
        ],
    }


def summary(stored: Stored, diagnosis: Diagnosis) -> None:
    """Prints how many queries fail, by class, and the slices with the lowest values."""
    _show.title(stored.result)
    whole = stored.result.scores[diagnosis.metric]
    n_failing = len(diagnosis.failing)
    _state.out(
        f"{diagnosis.metric} {_tables.value_text(whole)}: {n_failing} of "
        f"{plural(len(diagnosis.queries), 'query', 'queries')} could have better hits in the first {diagnosis.k}."
    )
    rows = [
        [each.name, str(n), f"{n / max(n_failing, 1):.0%}", each.meaning]
        for each in (*failures.CLASSES, failures.OTHER)
        if (n := diagnosis.by_class.get(each.name))
    ]
    if rows:
        made = _tables.table(["What went wrong", "Queries", "Share", "Meaning"], right=(1, 2))
        made.columns[0].no_wrap = True
        for row in rows:
            _tables.add(made, row)
        _state.out(made)
    if diagnosis.worst_slices:
        labels = [
            f"{plain(name)} = {plain(label) or '(none)'} {_tables.value_text(value)} ({value.n_items})"
            for name, label, value in diagnosis.worst_slices
        ]
        _state.out(f"Worst slices: {' · '.join(labels)}")
    if diagnosis.not_checked:
        left = " · ".join(f"{each.name} (add {each.needs})" for each in diagnosis.not_checked)
        _state.out(f"Not looked at: {left}")


def queries(diagnosis: Diagnosis, shown: Sequence[Query], texts: Mapping[str, str], n_hits: int) -> None:
    """Prints queries with their hits and the positives that these stand in front of."""
    for query in shown:
        _state.out("")
        _query(diagnosis, query, texts, n_hits)


def _query(diagnosis: Diagnosis, query: Query, texts: Mapping[str, str], n_hits: int) -> None:
    heading = Text(plain(query.id), style="bold", overflow="fold")
    heading.append(f"  {diagnosis.metric} {number(query.value)}", style="not bold")
    heading.append(f"  {', '.join(query.classes) or 'does not fail'}", style="not bold cyan")
    _state.out(heading)
    _state.out(Padding(Text(plain(query.text), style="italic", overflow="fold"), (0, 0, 0, INDENT)))
    _state.out(Padding(Text(_ranks(query.positives), overflow="fold"), (0, 0, 0, INDENT)))
    shown = query.hits[:n_hits]
    rows = [(str(hit.rank), _mark(hit), hit.doc) for hit in shown]
    there = {hit.doc for hit in shown}
    missed = [each for each in query.positives if each.doc not in there and each.doc in texts] if query.classes else []
    rows += [(str(each.rank or "–"), "missed", each.doc) for each in missed[:MISSED]]
    width = min(_state.console().width, WIDEST)
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(justify="right", no_wrap=True)
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold", max_width=max(width // 5, 8))
    made.add_column(overflow="fold")
    names = max((len(plain(doc)) for _, _, doc in rows), default=0)
    room = width - INDENT - 6 - 12 - min(names, width // 5) - 2
    for rank, mark, doc in rows:
        style = STYLES[mark.split()[0]]
        made.add_row(
            Text(rank), Text(mark, style=style), Text(plain(doc)), about(texts[doc], query.text, max(room, 10) * LINES)
        )
    if rows:
        made.width = width - INDENT
        _state.out(Padding(made, (0, 0, 0, INDENT)))


def _mark(hit: Hit) -> str:
    if hit.grade is None:
        return "unjudged"
    return f"relevant {hit.grade}" if hit.grade > 0 else f"judged {hit.grade}"


def _ranks(positives: Sequence[Positive]) -> str:
    if not positives:
        return "No document is judged relevant."
    listed = ", ".join(f"{plain(each.doc)} {_place(each)}" for each in positives[:POSITIVES])
    more = f" and {len(positives) - POSITIVES} more" if len(positives) > POSITIVES else ""
    return f"{plural(len(positives), 'positive')}: {listed}{more}"


def _place(positive: Positive) -> str:
    if not positive.reachable:
        return "out of reach"
    return f"at {positive.rank}" if positive.rank is not None else "not in the ranking"
