"""What an outcome looks like: a shape and a colour of its own, so that neither alone carries the meaning."""

from __future__ import annotations

from typing import NamedTuple


class Look(NamedTuple):
    """How an outcome is marked."""

    shape: str
    """``circle``, ``square``, ``diamond``, ``triangle``, ``drop`` (a triangle on its tip) or ``ring``."""
    tone: str
    """Name of the colours in the style sheet."""


NEUTRAL = Look("ring", "quiet")
LOOKS = {
    "pass": Look("circle", "good"),
    "fail": Look("square", "bad"),
    "inconclusive": Look("diamond", "unsure"),
    "error": Look("triangle", "broken"),
    "waived": Look("ring", "waived"),
    "better": Look("triangle", "good"),
    "worse": Look("drop", "bad"),
    "not told apart": Look("diamond", "unsure"),
    "same on every item": NEUTRAL,
    "undefined": NEUTRAL,
}
"""Outcomes of gates and findings of comparisons."""


def look(name: str) -> Look:
    """The look of an outcome or a finding by its name; that of nothing special for another name."""
    return LOOKS.get(name, NEUTRAL)


def outline(shape: str, x: float, y: float, radius: float) -> str:
    """The shape around a point, as the ``d`` of an SVG path."""
    r = radius
    if shape in ("circle", "ring"):
        return f"M{x - r:.2f} {y:.2f}a{r:.2f} {r:.2f} 0 1 0 {2 * r:.2f} 0a{r:.2f} {r:.2f} 0 1 0 {-2 * r:.2f} 0z"
    corners = {
        "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
        "diamond": ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
        "triangle": ((0, -1.15), (1.15, 0.95), (-1.15, 0.95)),
        "drop": ((0, 1.15), (1.15, -0.95), (-1.15, -0.95)),
    }[shape]
    return "M" + "L".join(f"{x + r * across:.2f} {y + r * down:.2f}" for across, down in corners) + "z"
