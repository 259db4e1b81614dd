"""Texts in Markdown: shown as they are by another reader of it (markdown-it-py), and noticed by nobody."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from embeval.core.characters import visible
from embeval.core.markdown import code, escape, table
from tests.support.hostile import hostile
from tests.support.pages import read

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
ZERO_WIDTH = "\u200b"


def shown(markdown: str) -> str:
    """The text that a reader of Markdown shows."""
    return " ".join(read(READER.render(markdown)).text.replace(ZERO_WIDTH, "").split())


def as_is(text: str) -> str:
    """What a text has to look like: in one line, without what no one can see."""
    return " ".join(visible(" ".join(text.split())).replace(ZERO_WIDTH, "").split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, 100 %: -0.01", "plain text, 100 %: -0.01"),
        ("-0.0041", "-0.0041"),
        ("0.8712 is below 0.9.", "0.8712 is below 0.9."),
        ("0.1.0", "0.1.0"),
        ("ndcg_at_10", "ndcg_at_10"),
        ("_a_", r"\_a\_"),
        ("a|b", r"a\|b"),
        ("a\nb\r\n c", "a b c"),
        ("R&D <b>", "R&amp;D &lt;b&gt;"),
        ("1. one", r"1\. one"),
        ("# one", r"\# one"),
        ("- one", r"\- one"),
        ("[ ] one", r"\[ ] one"),
        ("cc @team", "cc @&#8203;team"),
        ("fixes #12, !3, GH-4", "fixes #&#8203;12, !&#8203;3, GH-&#8203;4"),
        ("https://a.example", "https:&#8203;//a.example"),
        ("www.a.example", "www.&#8203;a.example"),
        ("a@b.example", "a@&#8203;b.example"),
        ("\u202egnp.exe", "\N{REPLACEMENT CHARACTER}gnp.exe"),
    ],
)
def test_escape(text: str, expected: str) -> None:
    """What Markdown, HTML, GitHub or GitLab would read as their own is parted or escaped; nothing else is."""
    assert escape(text) == expected


@settings(max_examples=60, deadline=None)
@given(hostile())
def test_another_reader_shows_the_text_as_it_is(text: str) -> None:
    """In a paragraph, in a list and as code: no element, no entity and no reference comes out of a text."""
    for markdown, tags in (
        (f"Text: {escape(text)}", ["p", "/p"]),
        (f"- {escape(text) or 'x'}", ["ul", "li", "/li", "/ul"]),
        (f"It is {code(text)}.", ["p", "code", "/code", "/p"]),
    ):
        assert read(READER.render(markdown)).tags == tags
    assert shown(f"Text: {escape(text)}") == f"Text: {as_is(text)}".strip()
    assert not re.search(r"@\w|#\d|!\d|\bGH-\d|://", READER.render(f"Text: {escape(text)}").replace("&#", ""))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(hostile(), hostile()), min_size=1, max_size=4))
def test_a_table_keeps_its_cells(rows: list[tuple[str, str]]) -> None:
    """Two columns stay two, whatever stands in them."""
    made = table(("One", "Two"), [[escape(cell) for cell in row] for row in rows], right=("Two",))
    tags = read(READER.render("\n".join(made))).tags
    assert tags.count("tr") == len(rows) + 1
    assert tags.count("td") == 2 * len(rows)
    assert set(tags) <= {each + name for each in ("", "/") for name in ("table", "thead", "tbody", "tr", "th", "td")}


def test_table() -> None:
    """Numbers to the right."""
    assert table(("Name", "n"), [["a", "1"]], right=("n",)) == ["| Name | n |", "|---|---:|", "| a | 1 |"]
