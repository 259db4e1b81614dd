"""Texts from data inside GitHub's and GitLab's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from embeval.core.characters import visible

_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
_LIVE = re.compile(r"[\\`*|~$]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])")
_BLOCK = re.compile(r"^(?:\[|#(?=[#\s]|$)|[+-](?=[\s-]|$)|\d+(?=[.)](?:\s|$)))")  # a heading, a list, a box to tick
_REFERENCES = re.compile(r"@(?=\w)|[#!](?=\d)|(?<=\b[Gg][Hh])-(?=\d)|:(?=//)|(?<=\b[Ww]{3})\.|(?<=\bmailto):")
_APART = "&#8203;"
"""Zero width: GitHub looks for references in the finished text, where a backslash or an entity is no longer seen."""


def escape(text: str) -> str:
    """Text that Markdown, and the HTML inside it, show as it is, in one line.

    Nobody is notified and nothing linked by it: a zero-width space parts ``@name``, ``#12``, ``!12``, ``GH-12`` and
    addresses. Control characters, and those that turn the direction of the text after them, become U+FFFD.
    """
    text = visible(" ".join(text.split()))
    for character, safe in _ENTITIES:
        text = text.replace(character, safe)
    text = _LIVE.sub(r"\\\g<0>", text)
    text = _REFERENCES.sub(rf"\g<0>{_APART}", text)
    return _BLOCK.sub(_opened, text)


def _opened(found: re.Match[str]) -> str:
    return f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}"


def code(text: str) -> str:
    """The text, escaped, set as code by HTML: backticks of its own can't end it."""
    return f"<code>{escape(text)}</code>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> list[str]:
    """The lines of a table; cells are Markdown already, and the columns in ``right`` hold numbers."""
    rule = ["---:" if heading in right else "---" for heading in headings]
    return [_row(headings), "|" + "|".join(rule) + "|", *map(_row, rows)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
