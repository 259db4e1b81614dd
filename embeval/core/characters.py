"""Texts from data, made safe to stand in a document of any form."""

from __future__ import annotations

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What stands for a character that is left out."""

# What XML 1.0 (section 2.2) and strict JSON can't hold: control characters but tab and line ends, lone surrogates,
# and the two non-characters of the first plane.
_ILLEGAL = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
# Legal, and of no use in a report: the second set of controls, and what turns the direction of the text that follows.
_MISLEADING = "\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_illegal = re.compile(f"[{_ILLEGAL}]")
_misleading = re.compile(f"[{_ILLEGAL}{_MISLEADING}]")
_steering = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f{_MISLEADING}]")


def legal(text: str) -> str:
    """The text with U+FFFD for each character that XML 1.0 can't hold, lone surrogates among them."""
    return _illegal.sub(REPLACEMENT, text)


def visible(text: str) -> str:
    """The text with U+FFFD also for control characters and for those that turn the direction of what follows them."""
    return _misleading.sub(REPLACEMENT, text)


def steady(text: str) -> str:
    """The text with U+FFFD for what steers a terminal; a path that is no text keeps its bytes (lone surrogates)."""
    return _steering.sub(REPLACEMENT, text)


def cut(text: str, length: int) -> str:
    """The text in one line of at most ``length`` characters, with an ellipsis where it was longer."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1].rstrip()}…"
