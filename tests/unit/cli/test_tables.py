"""Layouts that fit the terminal."""

from __future__ import annotations

import pytest
from rich.console import Console

from embeval.cli import _tables
from embeval.core.result import MetricValue

HEADINGS = ["Model", "Split", "Value", "Items"]
ROWS = [["a-model-of-some-length", "test", "0.8203", "1379"], ["b", "dev", "0.5", "12"]]


def drawn(width: int) -> str:
    """The table on a terminal of that width."""
    console = Console(width=width, force_terminal=False)
    made = _tables.fitting(HEADINGS, ROWS, console, right=("Value", "Items"), spare=("Split", "Items"))
    with console.capture() as captured:
        console.print(made)
    return captured.get()


@pytest.mark.parametrize(("width", "left_out"), [(80, set()), (50, set()), (45, {"Split"}), (35, {"Split", "Items"})])
def test_columns_are_left_out_until_it_fits(width: int, left_out: set[str]) -> None:
    """In the order given, and no more than needed; what stays is whole."""
    table = drawn(width)
    assert {heading for heading in HEADINGS if heading not in table} == left_out
    assert "a-model-of-some-length" in table
    assert "0.8203" in table
    assert max(len(line.rstrip()) for line in table.splitlines()) <= width


def test_a_terminal_too_narrow_for_all_breaks_names_and_never_numbers() -> None:
    """Nothing is cut: the name goes over several lines."""
    table = drawn(20)
    assert "0.8203" in table
    letters = "".join(line.split("0.")[0].strip() for line in table.splitlines()[3:])
    assert letters.startswith("a-model-of-some-length")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MetricValue(value=0.5, ci_low=0.4, ci_high=0.6, n_items=50), "0.4000 – 0.6000"),
        (MetricValue(value=0.5, ci_low=0.4, ci_high=0.6, n_items=49), "≈ 0.4000 – 0.6000"),
        (MetricValue(value=0.5, n_items=1, note="no interval: one item"), "no interval: one item"),
        (MetricValue(value=0.5, n_items=9), "—"),
    ],
)
def test_intervals(value: MetricValue, text: str) -> None:
    """Rough ones are marked, and a missing one says why."""
    assert _tables.interval(value) == text
