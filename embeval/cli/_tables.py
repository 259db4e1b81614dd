"""Tables for the terminal. Names and texts are shown as they are: no markup is read out of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from embeval.core.result import MetricValue
from embeval.leaderboard.render import cell_text, number

if TYPE_CHECKING:
    from embeval.leaderboard.board import Board
    from embeval.runner.local import Outcome
    from embeval.store.results import Stored


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


def board(shown: Board) -> Table:
    """A leaderboard."""
    headings = [f"{shown.headings[key]}\n{key.metric}" for key in shown.columns]
    made = table(["Model", "Mean", *headings], right=range(1, len(headings) + 2))
    for row in shown.rows:
        cells = [cell_text(row.cells.get(key)).replace(" [", "\n[") for key in shown.columns]
        add(made, [row.label, number(row.mean), *cells])
    return made


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
