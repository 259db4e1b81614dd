"""Numbers as reports show them."""

from __future__ import annotations

import pytest

from embeval.core import figures


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "—"),
        (float("nan"), "—"),
        (float("inf"), "—"),
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (0.82035, "0.8204"),
        (-0.25, "-0.2500"),
        (41.7, "41.7000"),
        (384.0, "384"),
        (123.456, "123.46"),
        (1234567.0, "1,234,567"),
        (0.00002, "2.0e-05"),
        (-0.00002, "-2.0e-05"),
        (0.00005, "0.0001"),
        (2.5e12, "2.5000e+12"),
    ],
)
def test_figure(value: float | None, expected: str) -> None:
    """Four decimals where that says something; what isn't zero never looks like it."""
    assert figures.figure(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.01, "+0.0100"), (-0.01, "-0.0100"), (0.0, "0.0000"), (None, "—"), (float("inf"), "—")]
)
def test_signed(value: float | None, expected: str) -> None:
    """A gain has its plus."""
    assert figures.signed(value) == expected


@pytest.mark.parametrize(
    ("p", "expected"), [(None, "—"), (0.03125, "0.0312"), (1.0, "1.0000"), (0.00009, "< 0.0001"), (0.0001, "0.0001")]
)
def test_probability(p: float | None, expected: str) -> None:
    """No p-value is shown as zero."""
    assert figures.probability(p) == expected


def test_the_rest() -> None:
    """Intervals, shares and ranks."""
    assert figures.interval(-0.0102, 0.002) == "[-0.0102, 0.0020]"
    assert figures.interval(None, 0.002) == figures.interval(0.002, None) == ""
    assert (figures.percent(0.95), figures.percent(0.975)) == ("95 %", "97.5 %")
    assert (figures.rank(3), figures.rank(None)) == ("3", "not ranked")
