"""What language models are trained on and what never: whole documents, by a rule that nobody can bend."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks import corpora
from benchmarks.corpora import Document

WIKI = (
    " = Copper = \n Copper is a metal . It is red .\n = = Uses = = \n = = = Wire = = = \n Its frequency is f \n"
    " = 1 rad / s and an impedance k = \n 2 Ω . Wires are long .\n\n = 1933 Storms = \n N / A = \n There were two .\n"
)


def test_articles_begin_at_titles_alone() -> None:
    """Headings aren't text, and a formula torn over lines is no title."""
    copper = ("Copper is a metal . It is red .", "Its frequency is f", "2 Ω . Wires are long .")
    storms = ("N / A =", "There were two .")
    assert corpora.articles(WIKI) == [Document("Copper", copper), Document("1933 Storms", storms)]


def test_every_tenth_article_is_held_out() -> None:
    """The tenth and the twentieth of 25, counted from one."""
    documents = [Document(str(number), ()) for number in range(1, 26)]
    assert [each.name for each in corpora.held_out_articles(documents)] == ["10", "20"]


ADDRESSES = "Friends: one.\n\nTwo.\n\nCountrymen: three.\nFour.\n\n\nCitizens: five.\n\nSix.\n\nPeople: seven."
OPENINGS = {"second": ("Countrymen:", "Citizens:")}


def test_an_address_ends_where_the_next_one_begins() -> None:
    """Each paragraph is in one document."""
    between, held_out = corpora.addresses(ADDRESSES, OPENINGS)
    assert held_out == [Document("second", ("Countrymen: three.", "Four."))]
    assert [each.lines for each in between] == [
        ("Friends: one.", "Two."),
        ("Citizens: five.", "Six.", "People: seven."),
    ]


@pytest.mark.parametrize(("text", "times"), [(ADDRESSES.replace("Citizens", "X"), 0), (ADDRESSES + ADDRESSES, 2)])
def test_other_addresses_are_refused(text: str, times: int) -> None:
    """An opening that is not there once would move the border."""
    with pytest.raises(ValueError, match=f"^{times} paragraphs begin with 'C"):
        corpora.addresses(text, OPENINGS)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Twenty articles of three sentences, and addresses with the openings of the real ones."""
    articles = [
        f" = Article {n} = \n Sentence {n} has five words . Too short . {'Long ' * 61}. Its other sentence is {n} .\n"
        for n in range(1, 21)
    ]
    openings = [opening for pair in corpora.HELD_OUT_ADDRESSES.values() for opening in pair]
    addresses = ["Friends!", *(f"{opening} and no more, number {n}." for n, opening in enumerate(openings))]
    for path, text in (
        ("wikitext2_raw/wiki.test.raw.gz", "".join(articles)),
        ("inaugural/1789-1933.txt.gz", "\n\n".join(addresses)),
    ):
        (tmp_path / "lm" / path).parent.mkdir(parents=True)
        (tmp_path / "lm" / path).write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_no_line_is_on_both_sides(data: Path) -> None:
    """The two sides share nothing, and together they are everything."""
    split = corpora.split(data)
    learned, held_out = ([line for each in side for line in each.lines] for side in (split.learned, split.held_out))
    assert [each.name for each in split.held_out] == [
        "Article 10",
        "Article 20",
        "Adams 1825",
        "Lincoln 1865",
        "Roosevelt 1905",
    ]
    assert not set(learned) & set(held_out)
    assert (len(learned), len(held_out)) == (18 + 4, 2 + 3)


def test_sentences_end_at_full_stops() -> None:
    """One that stands alone, or ends a word before a capital; initials and numbers don't."""
    line = "It was U.S. soil . Then J. Smith paid 3.5 dollars. He left.  Nobody knew"
    assert corpora.sentences_of(line) == [
        "It was U.S. soil .",
        "Then J. Smith paid 3.5 dollars.",
        "He left.",
        "Nobody knew",
    ]


def test_sentences_are_drawn_once(data: Path) -> None:
    """Those of 5 to 60 words, fewer among more, and never fewer than asked for."""
    everything = corpora.sentences(data, 40)
    assert set(everything) == {
        *(f"Sentence {n} has five words ." for n in range(1, 21)),
        *(f"Its other sentence is {n} ." for n in range(1, 21)),
    }
    assert corpora.sentences(data, 7) == everything[:7] != sorted(everything)[:7]
    with pytest.raises(ValueError, match="has 40 sentences of 5 to 60 words, not 41"):
        corpora.sentences(data, 41)
