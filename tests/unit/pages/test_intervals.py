"""Drawings of intervals: places in proportion to numbers, one scale for one unit, and the same in words."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.pages.intervals import HEIGHT, MARGIN, WIDTH, Interval, around_zero, svg
from embeval.pages.looks import LOOKS, outline
from tests.support.gates import comparison

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def lines(drawing: str, name: str) -> list[tuple[float, float]]:
    """Left and right end of the lines of a class."""
    found = ET.fromstring(drawing).iter("line")  # noqa: S314  # our own text
    return [(float(each.attrib["x1"]), float(each.attrib["x2"])) for each in found if each.attrib["class"] == name]


def point(drawing: str) -> float:
    """Where the point lies: the middle of its corners."""
    paths = list(ET.fromstring(drawing).iter("path"))  # noqa: S314
    assert len(paths) == 1
    corners = paths[0].attrib["d"].strip("Mz").split("L")
    across = [float(corner.split()[0]) for corner in corners]
    return (min(across) + max(across)) / 2


def test_places_are_in_proportion() -> None:
    """From -0.04 at the left margin to 0 at the right one, by hand."""
    drawn = Interval(
        value=-0.02,
        low=-0.04,
        high=-0.01,
        bound=-0.03,
        threshold=-0.01,
        has_zero=True,
        state="inconclusive",
        level=0.95,
    )
    (made,) = svg([drawn])
    width = WIDTH - 2 * MARGIN
    assert point(made) == pytest.approx(MARGIN + width / 2, abs=0.01)
    assert lines(made, "bar")[0] == pytest.approx((MARGIN, MARGIN + 0.75 * width), abs=0.01)
    assert lines(made, "bound") == [pytest.approx((MARGIN + width / 4,) * 2, abs=0.01)]
    assert lines(made, "threshold") == [pytest.approx((MARGIN + 0.75 * width,) * 2, abs=0.01)]
    assert lines(made, "zero") == [pytest.approx((MARGIN + width,) * 2, abs=0.01)]
    words = "inconclusive: value -0.0200, 95 % interval from -0.0400 to -0.0100, deciding bound -0.0300, "
    root = ET.fromstring(made)  # noqa: S314
    assert root.attrib["aria-label"] == root.findtext("title") == words + "threshold: above -0.0100"
    assert [each.text for each in root.iter("text")] == ["> -0.0100", "0"]


@pytest.mark.parametrize(("higher", "sign"), [(True, "≥"), (False, "≤")])
def test_the_passing_side_is_shaded(higher: bool, sign: str) -> None:
    """Right of the threshold where higher is better, left of it where lower is."""
    (made,) = svg([Interval(value=1.0, low=0.0, high=2.0, threshold=1.5, higher_is_better=higher)])
    root = ET.fromstring(made)  # noqa: S314
    (shade,) = root.iter("rect")
    at = lines(made, "threshold")[0][0]
    left, width = float(shade.attrib["x"]), float(shade.attrib["width"])
    assert (left, left + width) == pytest.approx((at, WIDTH) if higher else (0.0, at), abs=0.02)
    assert [each.text for each in root.iter("text")] == [f"{sign} 1.5000"]
    assert f"at {'least' if higher else 'most'} 1.5000" in root.attrib["aria-label"]


def test_one_unit_has_one_scale() -> None:
    """The same threshold is at the same place for one unit, and each unit fills its own drawings."""
    rows = ((0.01, 0.0, "a"), (0.04, 0.0, "a"), (30.0, 20.0, "b"))
    drawn = [Interval(value=value, threshold=threshold, unit=unit, state="fail") for value, threshold, unit in rows]
    first, second, third = svg(drawn)
    assert lines(first, "threshold") == lines(second, "threshold")
    width = WIDTH - 2 * MARGIN
    assert point(second) - MARGIN == pytest.approx(width, abs=0.01)
    assert point(first) - MARGIN == pytest.approx(width / 4, abs=0.01)
    assert point(third) - MARGIN == pytest.approx(width, abs=0.01)


def test_units() -> None:
    """Scores share a scale; milliseconds and what exceeds 1 have their own; differences never share with values."""
    units = [
        Interval(value=0.5).of_unit("ndcg_at_10").unit,
        Interval(value=0.9).of_unit("recall_at_100").unit,
        Interval(value=0.5, has_zero=True).of_unit("ndcg_at_10").unit,
        Interval(value=0.5).of_unit("latency_p95_ms").unit,
        Interval(value=384.0).of_unit("dimensions").unit,
    ]
    assert units[0] == units[1]
    assert len(set(units[1:])) == 4


def test_shapes_tell_outcomes_apart() -> None:
    """Colour is not the only difference between two outcomes of a gate, nor between two findings."""
    gate = ("pass", "fail", "inconclusive", "error", "waived")
    assert len({outline(LOOKS[name].shape, 0, 0, 1) + str(LOOKS[name].shape == "ring") for name in gate}) == len(gate)
    findings = ("better", "worse", "not told apart", "same on every item")
    assert len({LOOKS[name].shape for name in findings}) == len(findings)
    hollow, filled = svg([Interval(value=1.0, state="waived"), Interval(value=1.0, state="pass")])
    assert "hollow" in hollow
    assert "hollow" not in filled


def test_a_comparison() -> None:
    """Its difference, interval and finding."""
    shown = around_zero(comparison(-0.0911, 0.0702, p=0.001))
    assert (shown.value, shown.low, shown.high) == pytest.approx((-0.0911, -0.1613, -0.0209))
    assert (shown.state, shown.threshold, shown.has_zero, shown.level) == ("worse", None, True, 0.95)


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_nothing_is_drawn_of_no_value(value: float | None) -> None:
    """A place would be invented."""
    assert svg([Interval(value=value, threshold=1.0)]) == [""]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(FINITE, FINITE, FINITE, FINITE, st.booleans()), min_size=1, max_size=4))
def test_everything_lies_in_the_drawing(rows: list[tuple[float, float, float, float, bool]]) -> None:
    """For any numbers, the largest included: well-formed, no coordinate outside, low left of high."""
    drawn = [
        Interval(value=value, low=min(a, b), high=max(a, b), threshold=threshold, has_zero=zero, state="fail")
        for value, a, b, threshold, zero in rows
    ]
    for made in svg(drawn):
        for each in ET.fromstring(made).iter():  # noqa: S314
            for name in ("x", "x1", "x2"):
                assert 0 <= float(each.attrib.get(name, 0)) <= WIDTH
            for name in ("y", "y1", "y2"):
                assert 0 <= float(each.attrib.get(name, 0)) <= HEIGHT
        left, right = lines(made, "bar")[0]
        assert left <= right
        assert 0 < point(made) < WIDTH
