"""Values as texts, in the terminal and in Markdown."""

from __future__ import annotations

from embeval.core import figures
from embeval.core.result import MetricValue


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
    return f"{number(cell.value)}{mark} {rough}{figures.interval(cell.ci_low, cell.ci_high)}"


def number(value: float | None) -> str:
    """Four decimals, two from 100 on, or ``—``; what is smaller than they show is a zero, as scores next to it are."""
    return "—" if value is None else figures.figure(value) if abs(value) >= figures.LARGE else f"{value:.4f}"
