"""Quotes: found whatever the white space, with the places in the text as it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from embeval.data.quotes import Text


def test_places() -> None:
    """Counted by hand; several places, overlapping ones too, and none for nothing."""
    text = "  one\n two   three one two"
    assert list(Text(text).find("one two")) == [(2, 10), (19, 26)]
    assert list(Text(text).find("\tTwo")) == []
    assert list(Text("aaa").find("aa")) == [(0, 2), (1, 3)]
    assert list(Text("a").find(" ")) == []
    assert Text(text).has_folded("TWO  Three")


@given(st.text(alphabet="ab \n\té", max_size=30), st.data())
def test_every_part_of_a_text_is_found(text: str, data: st.DataObject) -> None:
    """Where it was cut from, and each place found reads like the quote."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    quote = text[start:end]
    found = list(Text(text).find(quote))
    for first, last in found:
        assert text[first:last].split() == quote.split()
    shown = quote.strip()
    if shown:
        begin = start + quote.index(shown)
        assert (begin, begin + len(shown)) in found
