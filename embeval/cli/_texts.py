"""Texts of a corpus on a terminal: whatever is in them, only letters reach it."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from rich.text import Text

from embeval.data.excerpts import excerpt, shared_words

if TYPE_CHECKING:
    from rich.style import Style

SHARED = "bold"
"""Style of words that a text shares with the query."""
_PICTURES = 0x2400
"""First of the characters that stand for control characters: ␀, ␁, …"""
_DELETE = 0x7F


def plain(text: str) -> str:
    """The text with each character that could steer a terminal, or turn the reading direction, made visible."""
    return "".join(map(_visible, text))


def about(text: str, query: str, width: int, *, style: str | Style = "") -> Text:
    """The part of a text that has to do with a query, at most ``width`` characters, the query's words emphasised."""
    shown = Text(excerpt(plain(text), query, width), style=style, overflow="fold")
    for start, end in shared_words(shown.plain, query):
        shown.stylize(SHARED, start, end)
    return shown


def _visible(character: str) -> str:
    if character in "\n\r\t\f\v":
        return " "
    kind = unicodedata.category(character)
    if kind == "Cc":
        code = ord(character)
        return chr(_PICTURES + code) if code < 0x20 else "␡" if code == _DELETE else "\N{REPLACEMENT CHARACTER}"
    # Zl, Zp: line ends of their own. Cs: half a character. Cf: marks that reorder what follows; joiners of emoji stay.
    if kind in ("Zl", "Zp"):
        return " "
    if kind == "Cs" or (kind == "Cf" and unicodedata.bidirectional(character) != "BN"):
        return "\N{REPLACEMENT CHARACTER}"
    return character
