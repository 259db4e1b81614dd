"""Stored results as a table in Markdown."""

from __future__ import annotations

from embeval.core.markdown import escape
from embeval.leaderboard.board import DOWN, Board, higher_is_better
from embeval.leaderboard.render.cells import cell_text, number


def markdown(board: Board) -> str:
    """A Markdown table: value and interval per cell, ``—`` for a gap."""
    headings = [
        f"{board.headings[key]} {key.metric}{'' if higher_is_better(key.metric) else f' {DOWN}'}"
        for key in board.columns
    ]
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
