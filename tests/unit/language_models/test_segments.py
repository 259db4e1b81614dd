"""Words that no tokenizer has a say in, and the tokens over them: by hand, by brute force, and with real tokenizers."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from embeval.language_models.segments import Cover, Words, cover, words
from embeval.language_models.tokenization import Text


def spans(text: str) -> list[tuple[int, int]]:
    """(first character, behind the last) of each word."""
    found = words(text)
    return list(zip(found.begins.tolist(), found.ends.tolist(), strict=True))


def spelled(text: str) -> list[str]:
    """The words."""
    return [text[begin:end] for begin, end in spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The traveler lost the souvenir.", ["The", "traveler", "lost", "the", "souvenir", "."]),
        ('"Well" ... (he) said,', ['"', "Well", '"', ".", ".", ".", "(", "he", ")", "said", ","]),
        (
            "don't o\u2019clock dogs' 'tis rock'n'roll",
            ["don't", "o\u2019clock", "dogs", "'", "'", "tis", "rock'n'roll"],
        ),
        ("1,000 3.14 1, 2. 1914,1918", ["1,000", "3.14", "1", ",", "2", ".", "1914,1918"]),
        ("B-52 x_y 4th a.b 5'6", ["B", "-", "52", "x", "_", "y", "4th", "a", ".", "b", "5", "'", "6"]),
        ("東京タワー and 서울 시", ["東", "京", "タ", "ワ", "ー", "and", "서울", "시"]),
        ("ひらがな、々〇", ["ひ", "ら", "が", "な", "、", "々", "〇"]),
        ("\U00020000\u3400\uff76", ["\U00020000", "\u3400", "\uff76"]),
        ("ㄅㄩㆠㆿㇰㇿ", ["ㄅ", "ㄩ", "ㆠ", "ㆿ", "ㇰ", "ㇿ"]),
        ("cafe\u0301 e\u0301\u0301t", ["cafe\u0301", "e\u0301\u0301t"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("می\u200cخواهم co\u00adop", ["می\u200cخواهم", "co\u00adop"]),
        ("🙂🙃 👩\u200d🚀 ❤\ufe0f €5", ["🙂", "🙃", "👩\u200d", "🚀", "❤\ufe0f", "€", "5"]),
        ("a\u200bb \u0301 \ufffd \ue000 \x07 \u200d \t\n", ["a", "b"]),
        ("x² ½ Ⅳ", ["x²", "½", "Ⅳ"]),
        ("", []),
    ],
)
def test_words_by_hand(text: str, expected: list[str]) -> None:
    """Marks and joiners stay with what they follow; scripts without spaces are cut character by character."""
    assert spelled(text) == expected


@given(st.text(st.characters(), max_size=30))
@example("a\u0301'b")
def test_every_letter_digit_and_mark_of_punctuation_is_in_one_word(text: str) -> None:
    """Words are in order and never meet; outside them is nothing but white space, controls and marks that are loose."""
    found = spans(text)
    assert all(begin < end for begin, end in found)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(found))
    outside = set(range(len(text))) - {place for begin, end in found for place in range(begin, end)}
    for place in outside:
        assert unicodedata.category(text[place])[0] not in "LNP", text[place]
    for word in spelled(text):
        assert not any(character.isspace() for character in word)


def test_what_stands_apart_by_spaces_is_found_alone_or_together() -> None:
    """The words of a text are those of its parts."""
    parts = ["don't", "東京", "1,000", "...", "e\u0301"]
    assert spelled("  ".join(parts)) == [word for part in parts for word in spelled(part)]


def text_of(offsets: Sequence[tuple[int, int]], *, special: Sequence[int] = ()) -> Text:
    """Tokens at these places; some of them special."""
    n = len(offsets)
    places = np.array(offsets, dtype=np.int32).reshape(-1, 2)
    scored = ~np.isin(np.arange(n), special)
    numbers = np.arange(n, dtype=np.int32)
    return Text(ids=numbers, words=numbers, begins=places[:, 0], ends=places[:, 1], scored=scored, n_unknown=0)


def covered(found: Cover) -> tuple[list[int], list[int], list[bool]]:
    """As lists."""
    return found.of_token.tolist(), found.first.tolist(), found.covered.tolist()


def test_pieces_of_a_word_are_of_that_word() -> None:
    """``souve ##nir .``: offsets of a WordPiece."""
    assert covered(cover(words("souvenir."), text_of([(0, 5), (5, 8), (8, 9)]))) == ([0, 0, 1], [0, 1], [True, True])


def test_a_token_over_several_words_ties_them() -> None:
    """``東京`` in one token, then ``タ`` that overlaps nothing else; a chain of overlaps is one unit."""
    assert covered(cover(words("東京タ"), text_of([(0, 2), (2, 3)]))) == ([0, 2], [0, 0, 2], [True] * 3)
    assert covered(cover(words("a.b.c"), text_of([(0, 2), (1, 4), (3, 5)]))) == ([0, 0, 0], [0] * 5, [True] * 5)


def test_a_token_with_the_space_before_a_word_is_of_that_word_alone() -> None:
    """As sentencepiece has offsets: ``▁a``, a lone ``▁``, ``b``."""
    assert covered(cover(words("x a b"), text_of([(0, 1), (1, 3), (3, 4), (4, 5)]))) == (
        [0, 1, -1, 2],
        [0, 1, 2],
        [True] * 3,
    )


def test_words_that_no_token_of_content_lies_over() -> None:
    """One that the tokenizer dropped, and one that is a special token as written."""
    assert covered(cover(words("a † SEP b"), text_of([(0, 1), (4, 7), (8, 9)], special=[1]))) == (
        [0, -1, 3],
        [0, 1, 2, 3],
        [True, False, False, True],
    )
    assert covered(cover(words("a"), text_of([]))) == ([], [0], [False])
    assert covered(cover(words(""), text_of([(0, 0)]))) == ([-1], [], [])


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=8),
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=8),
)
def test_ties_are_the_connected_parts_of_words_and_tokens(
    gaps: list[tuple[int, int]], tokens: list[tuple[int, int]]
) -> None:
    """By brute force: two words are tied as long as some token lies over both, or over both and a third."""
    begins, ends, at = [], [], 0
    for gap, length in gaps:
        begins.append(at + gap)
        ends.append(at := at + gap + length)
    found = cover(
        Words(np.array(begins, dtype=np.int32), np.array(ends, dtype=np.int32)),
        text_of(sorted((start, start + length) for start, length in tokens)),
    )
    parts = list(range(len(begins)))
    over = []
    for start, length in sorted((start, start + length) for start, length in tokens):
        under = [word for word in range(len(begins)) if begins[word] < length and start < ends[word]]
        over.append(under)
        joined = {parts[word] for word in under}
        parts = [min(joined) if part in joined else part for part in parts]
    assert found.first.tolist() == parts
    assert found.of_token.tolist() == [parts[under[0]] if under else -1 for under in over]
    assert found.covered.tolist() == [any(word in under for under in over) for word in range(len(begins))]


def tokens_of(made: Any, text: str) -> Text:
    """A text in the tokens of a tokenizer of ``tokenizers``."""
    return text_of(made.encode(text).offsets)


def test_bytes_of_a_character_are_of_one_word() -> None:
    """A byte-level tokenizer of tokenizers 0.23 without merges: several tokens for é and the emoji, a space each."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.BPE({each: n for n, each in enumerate(pre_tokenizers.ByteLevel.alphabet())}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    text = "é🙂 a京"
    found = cover(words(text), tokens_of(made, text))
    assert found.first.tolist() == [0, 1, 2, 3]
    assert found.of_token.tolist() == [0, 0, *[1] * 4, -1, 2, *[3] * 3]
