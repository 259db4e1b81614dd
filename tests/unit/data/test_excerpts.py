"""Excerpts: where they begin, how long they are, and which words of them are the query's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from embeval.data.excerpts import excerpt, shared_words


def test_a_short_text_is_itself_on_one_line() -> None:
    """White space becomes single spaces."""
    assert excerpt(" two\n\nlines\tand  more ", "query", 18) == "two lines and more"


def test_a_text_without_the_words_of_the_query_begins_at_its_beginning() -> None:
    """One character stands for the rest."""
    assert excerpt("alpha beta gamma delta", "omega", 11) == "alpha beta…"


def test_an_excerpt_is_where_most_distinct_words_stand_together() -> None:
    """Not where one comes often, nor where the first one is; ``the`` doesn't count."""
    text = "fox fox fox the fox " + "filler " * 20 + "a quick red fox runs " + "filler " * 20 + "red fox"
    found = excerpt(text, "the quick red fox", 30)
    assert "quick red fox" in found
    assert found.startswith("…")
    assert found.endswith("…")
    assert len(found) <= 30


def test_an_excerpt_at_the_end_begins_with_a_whole_word() -> None:
    """And has nothing left out after it."""
    assert excerpt("filler " * 20 + "longish words then fox", "fox", 20) == "…words then fox"


def test_an_excerpt_begins_with_a_whole_word() -> None:
    """A quarter of the room goes to what stands before the first word of the query."""
    assert excerpt("filler " * 20 + "before it fox" + " after" * 20, "fox", 22) == "…it fox after after a…"


def test_shared_words_are_whole_content_words() -> None:
    """Upper and lower case alike, no parts of words, no stop words; places are those of the original text."""
    text = "The FOX, foxes; Straße and the fox"
    assert [text[start:end] for start, end in shared_words(text, "the fox strasse")] == ["FOX", "Straße", "fox"]


@given(st.text(), st.text(max_size=20), st.integers(min_value=4, max_value=40))
def test_an_excerpt_is_never_too_long_and_holds_only_the_text(text: str, query: str, width: int) -> None:
    """Whatever the text: what it shows stands there like that."""
    found = excerpt(text, query, width)
    assert len(found) <= width
    line = " ".join(text.split())
    assert found == line or found.removeprefix("…").removesuffix("…") in line
