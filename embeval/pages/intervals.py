"""Intervals drawn as inline SVG: a value and how sure it is, against a threshold and against zero."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from embeval.core.figures import figure, percent
from embeval.pages.looks import look, outline

if TYPE_CHECKING:
    from markupsafe import Markup

    from embeval.core.comparison import Comparison

WIDTH, HEIGHT = 280.0, 46.0
MARGIN = 22.0
"""Room at both edges, so that what lies at the end of a scale is whole."""
DIGIT = 6.0
"""Width of a character of a label."""
MIDDLE = 24.0
"""Height at which the interval lies: the threshold's label is above it, the label of zero below it."""


_OWN_UNIT = re.compile(r"_(ms|s|mib|bytes|usd)(_|$)|latency|cost")
"""Metrics that are no scores, however small their numbers are."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """One drawing: numbers of one unit."""

    value: float | None
    """The point."""
    low: float | None = None
    """Lower end of its interval."""
    high: float | None = None
    """Upper end."""
    level: float | None = None
    """Coverage of the interval."""
    bound: float | None = None
    """The one-sided bound that decided."""
    threshold: float | None = None
    """What it is held against."""
    higher_is_better: bool = True
    """Whether it has to lie above the threshold."""
    has_zero: bool = False
    """Whether zero means something, so that its line has to be in the drawing: of differences."""
    state: str = "undefined"
    """Outcome or finding, in words."""
    unit: str = ""
    """Drawings of one unit share one scale."""

    def of_unit(self, metric: str) -> Interval:
        """The same, to share a scale with what can be read on one with it: scores, or numbers of the same metric."""
        shared = max(map(abs, self.numbers), default=0.0) <= 1.0 and not _OWN_UNIT.search(metric)
        kind = "difference" if self.has_zero else "value"
        return replace(self, unit=f"{kind} of {'scores' if shared else metric}")

    @property
    def numbers(self) -> tuple[float, ...]:
        """All that has to fit into the drawing."""
        found = (self.value, self.low, self.high, self.bound, self.threshold, 0.0 if self.has_zero else None)
        return tuple(each for each in found if each is not None and math.isfinite(each))

    @property
    def has_threshold(self) -> bool:
        """Whether there is one to draw."""
        return self.threshold is not None and math.isfinite(self.threshold)

    @property
    def words(self) -> str:
        """The drawing for those who don't see it."""
        parts = [f"value {figure(self.value)}"]
        if self.low is not None and self.high is not None:
            level = "" if self.level is None else f"{percent(self.level)} "
            parts.append(f"{level}interval from {figure(self.low)} to {figure(self.high)}")
        if self.bound is not None:
            parts.append(f"deciding bound {figure(self.bound)}")
        if self.threshold is not None:
            parts.append(f"threshold: {self.side}")
        return f"{self.state}: {', '.join(parts)}"

    @property
    def side(self) -> str:
        """``at least 0.9000`` or ``at most 30.0000``; of a difference ``above -0.0100`` or ``below 0.0100``."""
        above, below = ("above", "below") if self.has_zero else ("at least", "at most")
        return f"{above if self.higher_is_better else below} {figure(self.threshold)}"


def around_zero(comparison: Comparison) -> Interval:
    """The difference of a comparison, to be drawn around zero."""
    made = Interval(
        value=comparison.delta,
        low=comparison.ci_low,
        high=comparison.ci_high,
        level=comparison.level,
        higher_is_better=comparison.higher_is_better,
        has_zero=True,
        state=comparison.finding.value,
    )
    return made.of_unit(comparison.metric)


@dataclass(frozen=True)
class Scale:
    """From numbers to places in a drawing."""

    start: float
    end: float

    def x(self, value: float) -> float:
        """Distance of a value from the left edge, within the drawing."""
        # Halves, since the distance of two floats may be none.
        share = (value / 2 - self.start / 2) / (self.end / 2 - self.start / 2)
        return MARGIN + min(max(share, 0.0), 1.0) * (WIDTH - 2 * MARGIN)


def scale(drawn: Iterable[Interval]) -> Scale:
    """The scale on which all the numbers of some drawings fit."""
    numbers = [number for each in drawn for number in each.numbers] or [0.0]
    start, end = min(numbers), max(numbers)
    if end / 2 - start / 2 <= 1e-12 * max(abs(start), abs(end), 1e-12):  # one number: in the middle
        around = max(abs(start) * 0.1, 1e-6)
        start, end = start - around, end + around
    return Scale(start, end)


def svg(drawn: Sequence[Interval]) -> list[Markup]:
    """One inline SVG for each interval, in their order; those of one ``unit`` on one scale.

    A bar from end to end with a point on it, in shape and colour of its state; a dashed line at the threshold with its
    passing side shaded; a line at zero. One without any value is an empty text. Colours are those of the page's style
    sheet.
    """
    scales = {unit: scale(each for each in drawn if each.unit == unit) for unit in {each.unit for each in drawn}}
    return [_drawing(each, scales[each.unit]) for each in drawn]


def _drawing(drawn: Interval, on: Scale) -> Markup:
    from markupsafe import Markup, escape

    if drawn.value is None or not math.isfinite(drawn.value):
        return Markup("")
    words = escape(drawn.words)
    tone = look(drawn.state).tone
    track = _line("track", 0.0, MIDDLE, WIDTH, MIDDLE)
    parts = [
        *_passing(drawn, on),
        track,
        *_threshold(drawn, on),
        *_zero(drawn, on),
        *_bar(drawn, on),
        _point(drawn, on),
    ]
    return Markup(  # noqa: S704  # all texts in it are escaped or our own
        f'<svg class="interval {tone}" role="img" aria-label="{words}" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}">'
        f"<title>{words}</title>{''.join(parts)}</svg>"
    )


def _passing(drawn: Interval, on: Scale) -> list[str]:
    if not drawn.has_threshold:
        return []
    x = on.x(drawn.threshold or 0.0)
    start, end = (x, WIDTH) if drawn.higher_is_better else (0.0, x)
    return [f'<rect class="passing" x="{start:.2f}" y="13" width="{end - start:.2f}" height="22"/>']


def _threshold(drawn: Interval, on: Scale) -> list[str]:
    if not drawn.has_threshold:
        return []
    x = on.x(drawn.threshold or 0.0)
    # A difference has to be beyond its threshold, a value may be at it.
    above, below = (">", "<") if drawn.has_zero else ("≥", "≤")
    sign = above if drawn.higher_is_better else below
    return [_line("threshold", x, 12, x, 36), _label(x, 9, f"{sign} {figure(drawn.threshold)}")]


def _zero(drawn: Interval, on: Scale) -> list[str]:
    if not drawn.has_zero:
        return []
    x = on.x(0.0)
    return [_line("zero", x, 13, x, 35), _label(x, 45, "0")]


def _bar(drawn: Interval, on: Scale) -> list[str]:
    parts = []
    if drawn.low is not None and drawn.high is not None:
        start, end = on.x(drawn.low), on.x(drawn.high)
        parts.append(_line("bar", start, MIDDLE, end, MIDDLE))
        parts += [_line("bar", x, MIDDLE - 4, x, MIDDLE + 4) for x in (start, end)]
    if drawn.bound is not None:
        x = on.x(drawn.bound)
        parts.append(_line("bound", x, MIDDLE - 7, x, MIDDLE + 7))
    return parts


def _point(drawn: Interval, on: Scale) -> str:
    assert drawn.value is not None
    shape = look(drawn.state).shape
    hollow = " hollow" if shape == "ring" else ""
    return f'<path class="point{hollow}" d="{outline(shape, on.x(drawn.value), MIDDLE, 5)}"/>'


def _line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{name}" x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"/>'


def _label(x: float, y: float, text: str) -> str:
    half = len(text) * DIGIT / 2
    return f'<text x="{min(max(x, half), WIDTH - half):.2f}" y="{y:.2f}" text-anchor="middle">{text}</text>'
