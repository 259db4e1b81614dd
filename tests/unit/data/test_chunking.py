"""Passages: where they are cut, and that nothing of a text is lost or changed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.data import chunking
from embeval.data.chunking import CHUNKERS, Chunker, chunks, sections, sentences, words
from embeval.data.readers import markdown_headings

TEXTS = st.text(alphabet=st.sampled_from("aB é中。. !?\n\t#=- \u00a0\u2003\U0001f600"), max_size=120) | st.text(
    max_size=60
)


def cut(text: str, chunker: Chunker, size: int, overlap: int = 0, headings: tuple[int, ...] = ()) -> list[str]:
    """The passages themselves."""
    spans = chunks(text, chunker, size=size, overlap=overlap, headings=headings)
    return [text[start:end] for start, end in spans]


def test_windows_of_words() -> None:
    """Counted by hand: three words each, the last of them again in the next passage; white space stays as it is."""
    text = "a b  c\nd e f g"
    assert cut(text, "tokens", 3) == ["a b  c", "d e f", "g"]
    assert cut(text, "tokens", 3, 1) == ["a b  c", "c\nd e", "e f g"]
    assert cut(text, "tokens", 7) == [text]
    assert cut(text, "none", 1) == [text]
    assert cut("  x  ", "none", 1) == ["x"]


def test_windows_of_tokens_keep_what_no_token_covers() -> None:
    """A tokenizer that drops a character, or has two tokens for one, as those of bytes do."""
    drops = chunks("ab\x01cd", "tokens", size=1, units=lambda _: [(0, 2), (3, 5)])
    assert drops == [(0, 3), (3, 5)]
    assert chunks("é!", "tokens", size=1, units=lambda _: [(0, 1), (0, 1), (1, 2)]) == [(0, 1), (0, 1), (1, 2)]
    assert chunks("\x01\x02", "tokens", size=1, units=lambda _: []) == [(0, 2)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three?  Four", ["One. ", "Two! ", "Three?  ", "Four"]),
        ('He said "No." Then left.', ['He said "No." ', "Then left."]),
        ("Dr. Who met J. Smith. Then e.g. this", ["Dr. Who met J. Smith. ", "Then e.g. this"]),
        ("Version 1.5 is out. It works", ["Version 1.5 is out. ", "It works"]),
        ("approx. five. Six", ["approx. five. ", "Six"]),
        ("a\n\nb\nc", ["a\n\n", "b\nc"]),
        ("今日は。明日は！", ["今日は。", "明日は！"]),
        ("", []),
    ],
)
def test_sentences(text: str, parts: list[str]) -> None:
    """Where one ends, and where a full stop ends none."""
    assert [text[start:end] for start, end in sentences(text)] == parts


def test_sentences_are_packed() -> None:
    """As many as fit; with overlap, the last ones again if they fit; a long one is cut."""
    text = "A b. C d. E f. G."
    assert cut(text, "sentence", 4) == ["A b. C d.", "E f. G."]
    assert cut(text, "sentence", 4, 2) == ["A b. C d.", "C d. E f.", "E f. G."]
    assert cut(text, "sentence", 4, 1) == ["A b. C d.", "E f. G."]
    assert cut("A b. C d e f g. H.", "sentence", 3) == ["A b.", "C d e", "f g.", "H."]
    assert cut("A b. C d e f g. H.", "sentence", 3, 1) == ["A b.", "C d e", "e f g.", "H."]


def test_sections_begin_at_headings() -> None:
    """A heading without a text goes with the next one; what stands before the first is a section too."""
    text = "intro\n# A\n# B\n## C\nbody c\nD\n===\nbody d\n# E"
    headings = markdown_headings(text)
    assert [text[at:].split("\n")[0] for at in headings] == ["# A", "# B", "## C", "D", "# E"]
    parts = [text[start:end] for start, end in sections(text, headings)]
    assert parts == ["intro\n", "# A\n# B\n## C\nbody c\n", "D\n===\nbody d\n", "# E"]
    assert cut("# A\none two. three four\n# B\nx", "heading", 4, 0, (0, 24)) == [
        "# A\none two.",
        "three four",
        "# B\nx",
    ]


def test_headings_of_markdown() -> None:
    """Not in fenced code, not more than six marks, and a line under a list or a table is none."""
    text = "# a\n```\n# no\n```\n####### no\n#no\n   ## b ##\n- item\n---\n\nc\n---\n~~~~\n# no\n~~~\n# no\n~~~~\n# d"
    assert [text[at:].split("\n")[0].strip() for at in markdown_headings(text)] == ["# a", "## b ##", "c", "# d"]


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from(CHUNKERS), st.integers(1, 9), st.data())
def test_nothing_is_lost(text: str, chunker: Chunker, size: int, data: st.DataObject) -> None:
    """Every character that isn't white space is in a passage; passages rise, and none is larger than it may be."""
    overlap = data.draw(st.integers(0, size - 1))
    spans = chunks(text, chunker, size=size, overlap=overlap, headings=markdown_headings(text))
    covered = {place for start, end in spans for place in range(start, end)}
    assert {place for place, character in enumerate(text) if not character.isspace()} <= covered
    assert spans == sorted(spans)
    for start, end in spans:
        assert 0 <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        assert chunker == "none" or len(words(text[start:end])) <= size
    if overlap == 0:
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_sentences_and_sections_are_the_whole_text(text: str) -> None:
    """Put together again, they give it."""
    assert "".join(text[start:end] for start, end in sentences(text)) == text
    assert "".join(text[start:end] for start, end in sections(text, markdown_headings(text))) == text


@pytest.mark.parametrize(("size", "overlap"), [(3, 3), (3, -1)])
def test_overlap_must_leave_room(size: int, overlap: int) -> None:
    """Else the next passage would never come."""
    with pytest.raises(ValueError, match="overlap must be"):
        chunking.chunks("a", "tokens", size=size, overlap=overlap)
