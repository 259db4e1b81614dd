"""Normalised texts, shingles, and all pairs of similar sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeval.data.near_duplicates import grams, jaccard, normalized, plain_words, shingles, similar_pairs


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is  a Cat?", "what is a cat"),
        ("caf\u00e9", "cafe\u0301"),  # NFC and NFD
        ("ＡＢＣ １２", "abc 12"),  # full-width forms
        ("Straße", "STRASSE"),
        ("?!  ", "?!"),
    ],
)
def test_texts_that_are_the_same(one: str, other: str) -> None:
    """Case, marks, spaces and forms of a character don't count."""
    assert normalized(one) == normalized(other)


def test_texts_that_are_not_the_same() -> None:
    """Words and numbers count, and marks where there is nothing else."""
    assert len({normalized(text) for text in ("a b", "a c", "1 2", "12", "?", "!")}) == 6


def test_scripts_without_spaces_have_a_word_per_character() -> None:
    """So that long texts in them have n-grams at all."""
    assert plain_words("東京タワー tall塔") == ["東", "京", "タ", "ワ", "ー", "tall", "塔"]


def test_grams_and_shingles() -> None:
    """A short text is one shingle; a text without words none."""
    assert grams(["a", "b", "c"], 2) == ["a b", "b c"]
    assert grams(["a"], 2) == []
    assert shingles("A b. C d!") == {"a b c", "b c d"}
    assert shingles("A b") == {"a b"}
    assert shingles(" … ") == frozenset()


def test_jaccard() -> None:
    """2 of 4; and nothing is not like nothing."""
    assert jaccard(frozenset("abc"), frozenset("bcd")) == 0.5
    assert jaccard(frozenset(), frozenset()) == 0.0


@given(
    st.lists(st.frozensets(st.sampled_from("abcdefghij"), max_size=8), max_size=12),
    st.sampled_from([0.1, 0.25, 0.3, 0.5, 2 / 3, 0.75, 0.8, 1.0]),
)
def test_similar_pairs_are_those_of_brute_force(sets: list[frozenset[str]], threshold: float) -> None:
    """Every pair, with the Jaccard index by its definition, and no other."""
    expected = {
        (i, j): len(sets[i] & sets[j]) / len(sets[i] | sets[j])
        for j in range(len(sets))
        for i in range(j)
        if sets[i] | sets[j] and len(sets[i] & sets[j]) / len(sets[i] | sets[j]) >= threshold
    }
    assert {(i, j): alike for i, j, alike in similar_pairs(sets, threshold)} == expected
