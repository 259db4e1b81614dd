"""Words of a text by a rule that knows no tokenizer, and which tokens lie over them.

So the same words can be masked for models that cut text differently. Letters and digits that stand together are one
word, also letters around an apostrophe (``don't``) and digits around a point or a comma (``1,000``). Every other
character that is no space is a word by itself: punctuation marks, symbols, and what is written without spaces between
words, which are Chinese characters, kana and bopomofo. Accents, other marks and joiners belong to what they follow.
Spaces, control characters, characters for private use or unknown to Python's Unicode tables, U+FFFD, and marks that
follow nothing are no words: many tokenizers drop them.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.language_models.tokenization import Text
from embeval.language_models.variants import Ids

LETTER, DIGIT, APOSTROPHE, POINT, OTHER, MARK, SPACE = "ldapom "
"""Kinds of characters, as texts of kinds write them."""
WORD = re.compile("(?:lm*(?:a?lm*)*|dm*(?:p?dm*)*)+|[aop]m*")
"""A word in a text of kinds."""
KINDS_BY_CATEGORY = {"L": LETTER, "N": DIGIT, "M": MARK, "P": OTHER, "S": OTHER, "Cf": MARK}
"""Of categories of Unicode; all others are space."""
KINDS_BY_CHARACTER = {"'": APOSTROPHE, "\u2019": APOSTROPHE, ".": POINT, ",": POINT, "\u200b": SPACE, "\ufffd": SPACE}
WITHOUT_SPACES = (
    (0x3005, 0x3007),  # the repetition mark, and zero
    (0x3041, 0x30FF),  # hiragana, katakana
    (0x3105, 0x312F),  # bopomofo
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),  # small katakana
    (0x3400, 0x4DBF),  # Chinese characters
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),  # katakana of half width
    (0x1AFF0, 0x1B16F),  # historic kana
    (0x20000, 0x3FFFF),
)
"""First and last code points of letters that are a word each."""


class _Kinds(dict[int, str]):
    """Code point to kind, found when it is asked for."""

    def __missing__(self, code: int) -> str:
        self[code] = kind = _kind(code)
        return kind


def _kind(code: int) -> str:
    character = chr(code)
    if character in KINDS_BY_CHARACTER:
        return KINDS_BY_CHARACTER[character]
    category = unicodedata.category(character)
    if category in KINDS_BY_CATEGORY:
        return KINDS_BY_CATEGORY[category]
    if category[0] in "LN" and any(first <= code <= last for first, last in WITHOUT_SPACES):
        return OTHER
    return KINDS_BY_CATEGORY.get(category[0], SPACE)


_KINDS = _Kinds()


@dataclass(frozen=True)
class Words:
    """The words of one text, in their order."""

    begins: Ids
    """int32 [w]: place of the first character of each."""
    ends: Ids
    """int32 [w]: place behind its last character."""

    def __len__(self) -> int:
        return len(self.begins)


def words(text: str) -> Words:
    """The words of a text by the rule above."""
    found = [match.span() for match in WORD.finditer(text.translate(_KINDS))]
    spans = np.array(found, dtype=np.int32).reshape(-1, 2)
    return Words(spans[:, 0], spans[:, 1])


@dataclass(frozen=True)
class Cover:
    """Which tokens lie over which words of a text."""

    of_token: Ids
    """int32 [n]: number of the word that a token lies over, of the first of them where it lies over several; -1 where
    it lies over none or is no content."""
    first: Ids
    """int32 [w]: the word itself, or the first of those that tokens tie it to: where one token lies over several words,
    they can be masked together only."""
    covered: npt.NDArray[np.bool_]
    """bool [w]: whether any token of content lies over the word. A tokenizer may drop characters."""


def cover(found: Words, text: Text) -> Cover:
    """How a tokenizer's tokens lie over the words of a text, by the places of their characters."""
    n = len(found)
    low = np.searchsorted(found.ends, text.begins, side="right").astype(np.int32)
    high = np.searchsorted(found.begins, text.ends, side="left").astype(np.int32) - 1
    lies = text.scored & (low <= high)
    covered, tied = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    for start, last in zip(low[lies].tolist(), high[lies].tolist(), strict=True):
        covered[start : last + 1] = True
        tied[start + 1 : last + 1] = True
    first = np.maximum.accumulate(np.where(tied, 0, np.arange(n, dtype=np.int32)))
    of_token = np.full(len(text), -1, dtype=np.int32)
    of_token[lies] = first[low[lies]]
    return Cover(of_token, first.astype(np.int32), covered)
