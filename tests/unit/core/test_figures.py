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
    assert figures.interval(-130.474, -97.8037) == "[-130.47, -97.80]"  # not one end finer than the other
    assert figures.ends(966.4483, 1096.9007) == ("966.45", "1,096.90")
    assert figures.interval(None, 0.002) == figures.interval(0.002, None) == ""
    assert (figures.percent(0.95), figures.percent(0.975)) == ("95 %", "97.5 %")
    assert (figures.rank(3), figures.rank(None)) == ("3", "not ranked")


def test_sizes_and_durations() -> None:
    """One decimal, in the largest unit that there is one of; by hand."""
    sizes = {
        0: "0 B",
        999: "999 B",
        1_536: "1.5 kB",
        90_900_000: "90.9 MB",
        3_100_000_000: "3.1 GB",
        2 * 10**12: "2.0 TB",
    }
    assert {n: figures.size(n) for n in sizes} == sizes
    times = {0.2: "less than a second", 40.0: "40.0 seconds", 90.0: "1.5 minutes", 27_000.0: "7.5 hours"}
    assert {seconds: figures.duration(seconds) for seconds in times} == times
