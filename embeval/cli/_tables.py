"""Tables for the terminal. Names and texts are shown as they are: no markup is read out of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from embeval.core.result import MetricValue
from embeval.leaderboard.render import cell_text, number

if TYPE_CHECKING:
    from rich.console import Console

    from embeval.leaderboard.board import Board
    from embeval.runner.local import Outcome
    from embeval.store.results import Stored

UNBOUNDED = 100_000
"""Columns of a terminal in which any table fits: what a layout would like to have."""


def table(headings: Iterable[str], *, right: Sequence[int] = ()) -> Table:
    """An empty table; ``right`` are the columns that hold numbers."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        made.add_column(Text(heading), justify="right" if place in right else "left", overflow="fold")
    return made


def add(to: Table, cells: Iterable[str]) -> None:
    """A row of plain texts."""
    to.add_row(*(Text(cell) for cell in cells))


def interval(value: MetricValue) -> str:
    """``0.7976 – 0.8405``, or why there is none."""
    if value.ci_low is None or value.ci_high is None:
        return value.note or "—"
    return f"{number(value.ci_low)} – {number(value.ci_high)}"


def outcomes(done: Iterable[Outcome]) -> Table:
    """What a run came to."""
    made = table(["Model", "Task", "Split", "Metric", "Value", "95 % interval", "Items", ""], right=(4, 6))
    level = None
    for outcome in done:
        result = outcome.result
        if result is None:
            add(made, [outcome.step.model.label, outcome.step.task.name, "", "", "failed", "", "", ""])
            continue
        level = level or result.statistics.level
        value = result.main_value
        assert value is not None
        add(
            made,
            [
                result.model.label,
                result.task.name,
                result.split,
                result.main_score or "",
                number(value.value) if value.value is not None else f"n/a ({value.reason})",
                interval(value),
                str(value.n_items),
                {"done": "", "skipped": "finished before", "rescored": "from stored items"}[outcome.status],
            ],
        )
    if level is not None:
        made.columns[5].header = Text(f"{level * 100:g} % interval")
    return made


def scores(values: Iterable[tuple[str, MetricValue]], level: float) -> Table:
    """Every metric of a result."""
    made = table(["Metric", "Value", f"{level * 100:g} % interval", "Items", "Unscored"], right=(1, 3, 4))
    for name, value in values:
        shown = number(value.value) if value.value is not None else f"n/a ({value.reason})"
        add(made, [name, shown, interval(value), str(value.n_items), str(value.n_unscored)])
    return made


def board(shown: Board, console: Console) -> Table:
    """A leaderboard, laid out so that it fits: tasks as columns, else models as columns, else one value a line."""
    for layout in (_models_down, _tasks_down):
        made = layout(shown)
        roomy = console.options.update(max_width=UNBOUNDED)
        if Measurement.get(console, roomy, made).maximum <= console.width:
            return made
    return _one_value_a_line(shown)


def _models_down(shown: Board) -> Table:
    headings = [f"{shown.headings[key]}\n{key.metric}" for key in shown.columns]
    made = table(["Model", "Mean", *headings], right=range(1, len(headings) + 2))
    for row in shown.rows:
        cells = [_two_lines(row.cells.get(key)) for key in shown.columns]
        add(made, [row.label, number(row.mean), *cells])
    return made


def _tasks_down(shown: Board) -> Table:
    made = table(["Task", "Metric", *(row.label for row in shown.rows)], right=range(2, len(shown.rows) + 2))
    for key in shown.columns:
        cells = [_two_lines(row.cells.get(key)) for row in shown.rows]
        add(made, [shown.headings[key], key.metric, *cells])
    made.add_section()
    add(made, ["Mean", "", *(number(row.mean) for row in shown.rows)])
    return made


def _one_value_a_line(shown: Board) -> Table:
    made = table(["Task", "Model", "Metric", "Value"], right=(3,))
    for key in shown.columns:
        ordered = sorted(shown.rows, key=lambda row: -(_value(row.cells.get(key)) or -2.0))
        for place, row in enumerate(ordered):
            if key in row.cells:
                heading = shown.headings[key] if place == 0 else ""
                add(made, [heading, row.label, key.metric, cell_text(row.cells[key])])
        made.add_section()
    for row in shown.rows:
        add(made, ["Mean" if row is shown.rows[0] else "", row.label, "", number(row.mean)])
    return made


def _value(cell: MetricValue | None) -> float | None:
    return None if cell is None else cell.value


def _two_lines(cell: MetricValue | None) -> str:
    return cell_text(cell).replace(" [", "\n[")


def stored(found: Iterable[Stored]) -> Table:
    """Stored results, one line each."""
    made = table(
        ["Model", "Task", "Split", "Sub-set", "Metric", "Value", "Items", "Digest", "When (UTC)"], right=(5, 6)
    )
    for each in found:
        result = each.result
        value = result.main_value
        when = result.timings.started_at[:16].replace("T", " ") if result.timings else ""
        if value is None:
            shown, items = "failed", ""
        else:
            shown, items = (
                (number(value.value) if value.value is not None else f"n/a ({value.reason})"),
                str(value.n_items),
            )
        add(
            made,
            [
                result.model.label,
                result.task.name,
                result.split,
                result.subset,
                result.main_score or "",
                shown,
                items,
                result.signature.protocol_digest[:8] if result.status == "ok" else "",
                when,
            ],
        )
    return made
