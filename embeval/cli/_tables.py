"""Tables for the terminal. Names and texts are shown as they are: no markup is read out of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Group
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from embeval import metrics
from embeval.core import figures
from embeval.core.characters import steady
from embeval.core.result import MetricValue
from embeval.leaderboard.board import APPROXIMATE, DOWN, LESS, RowKey, higher_is_better, unique_labels
from embeval.leaderboard.render.cells import cell_text, number

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType

    from embeval.core.result import Result
    from embeval.leaderboard.board import Board, ColumnKey, Row
    from embeval.runner.local import Outcome
    from embeval.store.results import Stored
    from embeval.workflows.report import FieldValue

UNBOUNDED = 100_000
"""Columns of a terminal in which any table fits: what a layout would like to have."""
READABLE = 10
"""Characters that a column of names needs; in a narrower one a name falls apart."""


def table(headings: Iterable[str], *, right: Sequence[int] = (), whole: Sequence[int] = ()) -> Table:
    """An empty table; ``right`` are the columns that hold numbers, ``whole`` those whose texts are never folded."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        number = place in right  # a number is never broken
        unbroken = number or place in whole
        made.add_column(Text(heading), justify="right" if number else "left", overflow="fold", no_wrap=unbroken)
    return made


def add(to: Table, cells: Iterable[str]) -> None:
    """A row of plain texts; what would steer the terminal in them is replaced."""
    to.add_row(*(Text(steady(cell)) for cell in cells))


def directed(metric: str) -> str:
    """A metric with an arrow if less of it is better."""
    return metric if not metric or higher_is_better(metric) else f"{metric} {DOWN}"


def legend(metrics: Iterable[str], values: Iterable[MetricValue | None]) -> list[str]:
    """What the signs in a table of these metrics and values mean, as sentences."""
    falling = any(not higher_is_better(name) for name in metrics if name)
    rough = any(value is not None and value.approximate for value in values)
    return [LESS] * falling + [APPROXIMATE] * rough


def interval(value: MetricValue) -> str:
    """``0.7976 – 0.8405``, with ``≈`` where it is rough, or why there is none."""
    if value.ci_low is None or value.ci_high is None:
        return value.note or "—"
    return "≈ " * value.approximate + " – ".join(figures.ends(value.ci_low, value.ci_high))


def value_text(value: MetricValue) -> str:
    """The value, or why there is none."""
    return number(value.value) if value.value is not None else f"n/a ({value.reason})"


STATUS = {
    "done": "",
    "skipped": "finished before",
    "rescored": "from stored items",
    "timed": "timed in turns",
}
"""How a step came to its result, for a table."""


def outcomes(done: Sequence[Outcome], console: Console) -> RenderableType:
    """What a run came to; columns that the terminal has no room for are left out, the least telling first."""
    results = [outcome.result for outcome in done if outcome.result is not None]
    labels = unique_labels({RowKey.of(result) for result in results})
    levels = sorted({result.statistics.level for result in results})
    heading = f"{levels[0] * 100:g} % interval" if len(levels) == 1 else "Interval"
    rows = []
    for outcome in done:
        result = outcome.result
        if result is None:
            name, split = _task_and_split(outcome)
            rows.append([outcome.step.model.label, name, split, "", "failed", "", "", ""])
            continue
        value = result.main_value
        assert value is not None
        rows.append(
            [
                labels[RowKey.of(result)],
                result.task.name,
                result.split,
                directed(result.main_score or ""),
                value_text(value),
                interval(value),
                str(value.n_items),
                STATUS[outcome.status],
            ]
        )
    columns = ["Model", "Task", "Split", "Metric", "Value", heading, "Items", ""]
    several = _split_in_several(map(_task_and_split, done))
    spare = (*_unless(several, "Split"), "", "Items", "Metric")
    return fitting(columns, rows, console, right=("Value", "Items"), whole=("Split",), spare=spare)


def _task_and_split(outcome: Outcome) -> tuple[str, str]:
    return outcome.step.task.name, outcome.step.task.dataset.split


def _split_in_several(tasks_and_splits: Iterable[tuple[str, str]]) -> bool:
    """Whether rows of one task differ in their split, so that without it they would look alike."""
    there = set(tasks_and_splits)
    return len({task for task, _ in there}) < len(there)


def _unless(needed: bool, heading: str) -> tuple[str, ...]:
    return () if needed else (heading,)


def fitting(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    console: Console,
    *,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> RenderableType:
    """A table that fits the terminal: columns in ``spare`` are left out, the first first, until it does.

    What then is still too wide has its texts folded, but for those of ``whole``; or where no room is left for that, a
    line for each cell.
    """
    left_out: list[str] = []
    while True:
        kept = [place for place, heading in enumerate(headings) if heading not in left_out]
        numbers = [at for at, place in enumerate(kept) if headings[place] in right]
        unbroken = [at for at, place in enumerate(kept) if headings[place] in whole]
        made = table([headings[place] for place in kept], right=numbers, whole=unbroken)
        for row in rows:
            add(made, [row[place] for place in kept])
        too_wide = _width(made, console) - console.width
        if too_wide <= 0:
            return made
        if len(left_out) == len(spare):
            break
        left_out.append(spare[len(left_out)])
    texts = [
        [headings[place], *(row[place] for row in rows)] for place in kept if headings[place] not in (*right, *whole)
    ]
    foldable = sum(max(0, max(map(cell_len, column)) - READABLE) for column in texts)
    return made if too_wide <= foldable else _cells_down(headings, rows, console)


def fits(made: Table, console: Console) -> bool:
    """Whether a table has room on the terminal with nothing folded."""
    return _width(made, console) <= console.width


def _cells_down(headings: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> RenderableType:
    """A paragraph for each row: its first cell, and below it the others, each after its heading."""
    lines = []
    for row in rows:
        lines.append(_line(row[0], 0))
        for heading, cell in zip(headings[1:], row[1:], strict=True):
            if not cell:
                continue
            together = f"{heading}: {cell}" if heading else cell
            if not heading or 2 + cell_len(together) <= console.width:
                lines.append(_line(together, 2))
            else:
                lines += [_line(f"{heading}:", 2), _line(cell, 4)]
        lines.append(_line("", 0))
    return Group(*lines[:-1])


def _line(text: str, indent: int) -> Padding:
    return Padding(Text(steady(text), overflow="fold"), (0, 0, 0, indent))


def _width(made: Table, console: Console) -> int:
    """Columns of a terminal that a table would like to have."""
    return Measurement.get(console, console.options.update(max_width=UNBOUNDED), made).maximum


def scores(values: Iterable[tuple[str, MetricValue]], level: float, console: Console) -> RenderableType:
    """Every metric of a result, its name in one piece: ``ndcg_at_1`` above a ``0`` would read as another metric."""
    heading = f"{level * 100:g} % interval"
    rows, unscored = [], 0
    for name, value in values:
        shown = ("n/a", value.reason or "") if value.value is None else (number(value.value), interval(value))
        rows.append([directed(name), *shown, str(value.n_items), str(value.n_unscored)])
        unscored += value.n_unscored
    headings = ["Metric", "Value", heading, "Items", "Unscored"]
    spare = () if unscored else ("Unscored",)
    return fitting(headings, rows, console, right=("Value", "Items", "Unscored"), whole=("Metric",), spare=spare)


CHANCE = {-1: "below chance", 0: "at chance", 1: ""}
"""Where a value stands to what guessing gets, in words."""


def chance(metric: str, value: MetricValue) -> str:
    """Whether a value is no better than guessing, by its interval; nothing where that is not known."""
    level = getattr(metrics.get(metric), "chance", None)
    if level is None or value.ci_low is None or value.ci_high is None:
        return ""
    return CHANCE[(value.ci_low > level) - (value.ci_high < level)]


def by_field(metric: str, values: Iterable[FieldValue], level: float, console: Console) -> RenderableType:
    """A metric by field, each with its sub-sets below it."""
    heading = f"{level * 100:g} % interval"

    def row(name: str, value: MetricValue) -> list[str]:
        return [name, str(value.n_items), value_text(value), interval(value), chance(metric, value)]

    rows = []
    for field in values:
        rows.append(row(field.label, field.value))
        rows += [row(f"  {part.label}", part.value) for part in field.parts]
    headings = ["Field, sub-set", "Items", metric, heading, ""]
    return fitting(headings, rows, console, right=("Items", metric), whole=(heading,), spare=("Items", ""))


def fields(found: Iterable[tuple[Result, Sequence[FieldValue]]], console: Console) -> RenderableType:
    """Main metrics by field, a line for each field of each result."""
    shown = [(result, values) for result, values in found if values]
    labels = unique_labels({RowKey.of(result) for result, _ in shown})
    rows = [
        [
            labels[RowKey.of(result)],
            result.task.name,
            each.label,
            result.main_score or "",
            value_text(each.value),
            interval(each.value),
            str(each.value.n_items),
            chance(result.main_score or "", each.value),
        ]
        for result, values in shown
        for each in values
    ]
    headings = ["Model", "Task", "Field", "Metric", "Value", "Interval", "Items", ""]
    return fitting(headings, rows, console, right=("Value", "Items"), spare=("Items", "Metric", ""))


def board(shown: Board, console: Console) -> RenderableType:
    """A leaderboard, laid out so that it fits: tasks as columns, models as columns, one value a line, or no columns."""
    for layout in (_models_down, _tasks_down, _one_value_a_line):
        made = layout(shown)
        if _width(made, console) <= console.width:
            return made
    return _values_below_names(shown)


def _models_down(shown: Board) -> Table:
    headings = [f"{shown.headings[key]}\n{directed(key.metric)}" for key in shown.columns]
    mean = ["Mean"] if shown.has_means else []
    made = table(["Model", *mean, *headings], right=range(1, len(headings) + 1 + len(mean)))
    for row in shown.rows:
        cells = [_two_lines(row, key) for key in shown.columns]
        add(made, [row.label, *([number(row.mean)] if mean else []), *cells])
    return made


def _tasks_down(shown: Board) -> Table:
    made = table(["Task", "Metric", *(row.label for row in shown.rows)], right=range(2, len(shown.rows) + 2))
    for key in shown.columns:
        cells = [_two_lines(row, key) for row in shown.rows]
        add(made, [shown.headings[key], directed(key.metric), *cells])
    if shown.has_means:
        made.add_section()
        add(made, ["Mean", "", *(number(row.mean) for row in shown.rows)])
    return made


def _one_value_a_line(shown: Board) -> Table:
    made = table(["Task", "Model", "Metric", "Value"], right=(3,))
    for key in shown.columns:
        for place, row in enumerate(_best_first(shown, key)):
            heading = shown.headings[key] if place == 0 else ""
            add(made, [heading, row.label, directed(key.metric), cell_text(row.cells[key], row.mark(key))])
        made.add_section()
    for row in shown.rows if shown.has_means else ():
        add(made, ["Mean" if row is shown.rows[0] else "", row.label, "", number(row.mean)])
    return made


def _values_below_names(shown: Board) -> RenderableType:
    lines = []
    for key in shown.columns:
        lines.append(_line(f"{shown.headings[key]} · {directed(key.metric)}", 0))
        for row in _best_first(shown, key):
            lines += [_line(row.label, 2), _line(cell_text(row.cells[key], row.mark(key)), 4)]
        lines.append(_line("", 0))
    if shown.has_means:
        lines.append(_line("Mean", 0))
        for row in shown.rows:
            lines += [_line(row.label, 2), _line(number(row.mean), 4)]
        lines.append(_line("", 0))
    return Group(*lines)


def _best_first(shown: Board, key: ColumnKey) -> list[Row]:
    """The models that have a value in a column."""
    sign = -1.0 if higher_is_better(key.metric) else 1.0

    def place(row: Row) -> float:
        value = row.cells[key].value
        return math.inf if value is None else sign * value

    return sorted((row for row in shown.rows if key in row.cells), key=place)


def _two_lines(row: Row, key: ColumnKey) -> str:
    return cell_text(row.cells.get(key), row.mark(key)).replace(" [", "\n[").replace(" ≈[", "\n≈[")


def stored(
    found: Iterable[Stored], console: Console, tags: Mapping[Path, Sequence[str]] | None = None
) -> RenderableType:
    """Stored results, one line each, with their tags where there are any."""
    rows = []
    for each in found:
        result = each.result
        value = result.main_value
        rows.append(
            [
                each.id,
                result.label,
                result.task.name,
                result.split,
                result.subset,
                directed(result.main_score or ""),
                "failed" if value is None else value_text(value),
                "" if value is None else interval(value),
                "" if value is None or result.imported is not None else str(value.n_items),
                result.timings.started_at[:16].replace("T", " ") if result.timings else "",
                *([", ".join(tags.get(each.path, ()))] if tags else []),
            ]
        )
    headings = ["Id", "Model", "Task", "Split", "Sub-set", "Metric", "Value", "Interval", "Items", "When (UTC)"]
    headings += ["Tags"] if tags else []
    several = _split_in_several((each.result.task.name, each.result.split) for each in found)
    spare = ("Interval", *_unless(several, "Split"), "Items", "When (UTC)", "Metric")
    return fitting(headings, rows, console, right=("Value", "Items"), whole=("Split",), spare=spare)
