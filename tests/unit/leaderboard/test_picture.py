"""The picture of ranks: where bars and points lie, and that it is a document that only shows texts.

Read with the parser of the standard library.
"""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from embeval.leaderboard.render.picture import svg, words
from embeval.leaderboard.snapshot import Snapshot
from tests.support import boards, shown
from tests.support.hostile import hostile

XML = "{http://www.w3.org/2000/svg}"


def lines(drawn: ET.Element, name: str) -> list[tuple[float, float]]:
    """(left end, right end) of the lines of a kind."""
    return [(float(each.attrib["x1"]), float(each.attrib["x2"]))
            for each in drawn.iter(f"{XML}line") if each.attrib["class"] == name]  # fmt: skip


def texts(drawn: ET.Element) -> list[str]:
    """What is written in it."""
    return ["".join(each.itertext()) for each in drawn.iter(f"{XML}text")]


def test_bars_reach_over_the_ranks_that_are_open() -> None:
    """From the best to the worst rank, on the lines of these ranks; models without a rank are left out."""
    drawn = ET.fromstring(svg(shown.small()))  # noqa: S314
    at = {rank: x for rank, (x, _) in zip((1, 2, 3), lines(drawn, "line"), strict=True)}
    assert at[2] - at[1] == pytest.approx(at[3] - at[2])
    assert lines(drawn, "bar") == [(at[1], at[2]), (at[1], at[3]), (at[2], at[3])]
    written = texts(drawn)
    assert [each for each in written if each in ("big", "mid", "low", "far (imported)")] == ["big", "mid", "low"]
    assert [each for each in written if each in ("a", "ab", "b")] == ["a", "ab", "b"]
    assert [each for each in written if each.startswith("0.")] == ["0.7500", "0.7350", "0.4500"]


def test_a_model_without_an_interval_is_a_ring() -> None:
    """No bar, and a hollow point."""
    drawn = ET.fromstring(svg(boards.synthetic(5, 4, n_tested=2)))  # noqa: S314
    kinds = [each.attrib["class"] for each in drawn.iter(f"{XML}path")]
    assert sorted(kinds) == ["hollow"] * 3 + ["point"] * 2
    assert len(lines(drawn, "bar")) == 2


def test_a_large_board_has_a_scale_that_can_be_read() -> None:
    """Forty models of a thousand, and a dozen lines at round ranks."""
    drawn = ET.fromstring(svg(boards.synthetic(1000, 3, n_tested=50)))  # noqa: S314
    ticks = [int(each) for each in texts(drawn) if each.isdigit()]
    assert ticks[0] == 1
    assert 4 <= len(ticks) <= 12
    assert {tick % 50 for tick in ticks[1:]} == {0}
    assert len([each for each in texts(drawn) if each.startswith("model-")]) == 40


def test_nothing_to_draw_is_said() -> None:
    """A board without ranks."""
    assert "No model is ranked." in texts(ET.fromstring(svg(Snapshot(title="x", columns=(), models=()))))  # noqa: S314


def test_words_for_those_who_do_not_see_it() -> None:
    """Ranks with what they may be."""
    drawn = ET.fromstring(svg(shown.small()))  # noqa: S314
    assert drawn.attrib["aria-label"] == words(shown.small())
    assert words(shown.small()).endswith("1 big (between 1 and 2), 2 mid (between 1 and 3), 3 low (between 2 and 3)")


@settings(max_examples=40, deadline=None)
@given(hostile())
def test_labels_stay_texts(label: str) -> None:
    """Whatever a label holds: the same elements, and no address is asked for."""
    made = shown.small()
    wild = replace(made, title=label, models=(replace(made.models[0], label=label), *made.models[1:]))
    plain, drawn = (ET.fromstring(svg(each)) for each in (made, wild))  # noqa: S314
    assert [each.tag for each in drawn.iter()] == [each.tag for each in plain.iter()]
    assert not [name for each in drawn.iter() for name in each.attrib if "href" in name or name.startswith("on")]
