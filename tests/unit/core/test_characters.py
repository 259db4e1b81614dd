"""What of a text can stand in a document."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from embeval.core.characters import cut, legal, visible

GONE = "\N{REPLACEMENT CHARACTER}"


def test_legal_is_what_xml_reads() -> None:
    """Each character of the first plane, against expat: kept where it parses, U+FFFD where it doesn't."""
    for number in [*range(0x300), *range(0x2000, 0x2100), *range(0xD700, 0xE010), *range(0xFFF0, 0x10010)]:
        character = chr(number)
        try:
            ET.fromstring(f"<a>{character if character not in '<&' else 'x'}</a>".encode())  # noqa: S314
        except (ET.ParseError, UnicodeEncodeError):
            assert legal(character) == GONE, hex(number)
        else:
            assert legal(character) == character, hex(number)


@pytest.mark.parametrize(
    ("text", "expected"), [("a\u202eb", f"a{GONE}b"), ("\x85\x7f", GONE * 2), ("שלום 👩\u200d🚀\t", None)]
)
def test_visible(text: str, expected: str | None) -> None:
    """What turns the direction of its neighbours goes, and the letters of every language stay."""
    assert visible(text) == (text if expected is None else expected)


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [("a  b\nc", 5, "a b c"), ("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("ab def", 4, "ab…")],
)
def test_cut(text: str, length: int, expected: str) -> None:
    """One line, never longer than asked for."""
    assert cut(text, length) == expected
