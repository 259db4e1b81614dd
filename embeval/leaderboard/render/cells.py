"""A board as Markdown."""

from __future__ import annotations

from embeval.core.markdown import escape
from embeval.core.result import MetricValue
from embeval.leaderboard.board import Board


def markdown(board: Board) -> str:
    """A Markdown table: value and interval per cell, ``—`` for a gap."""
    headings = [f"{board.headings[key]} {key.metric}" for key in board.columns]
    with_mean = board.has_means
    lines = [
        "| " + " | ".join(["Model", *["Mean"] * with_mean, *map(escape, headings)]) + " |",
        "|" + "|".join(["---", *["---:"] * (len(headings) + with_mean)]) + "|",
    ]
    for row in board.rows:
        cells = [escape(cell_text(row.cells.get(key), row.mark(key))) for key in board.columns]
        lines.append("| " + " | ".join([escape(row.label), *[number(row.mean)] * with_mean, *cells]) + " |")
    for remark in board.remarks():
        lines += ["", escape(remark)]
    for failure in board.failures:
        lines += ["", f"Failed: {escape(failure)}"]
    return "\n".join(lines) + "\n"


def cell_text(cell: MetricValue | None, mark: str = "") -> str:
    """``0.8203 [0.7976, 0.8405]``, ``≈[`` for a rough interval; ``—`` for a gap, the reason for an undefined value.

    ``mark`` is put after the value.
    """
    if cell is None:
        return "—"
    if cell.value is None:
        return f"n/a ({cell.reason})"
    if cell.ci_low is None or cell.ci_high is None:
        return f"{number(cell.value)}{mark}"
    rough = "≈" if cell.approximate else ""
    return f"{number(cell.value)}{mark} {rough}[{number(cell.ci_low)}, {number(cell.ci_high)}]"


def number(value: float | None) -> str:
    """Four decimals, or ``—``."""
    return "—" if value is None else f"{value:.4f}"
