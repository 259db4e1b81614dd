"""Words of texts as terms of a lexical index: Unicode words of any script, without stop words, stemmed.

Texts are NFKC-normalised and case folded. A word is a run of letters, digits and underscores with their combining
marks, so that the vowel signs of Hindi or Tamil don't cut words up; an apostrophe ends one. Scripts written without
spaces (Han, Kana, Thai, Lao, Khmer, Burmese), and Hangul with its endings, give each run of two or more characters
as its overlapping pairs, as Lucene's CJKBigramFilter does: a query of a single such character finds only documents
where it stands alone.

Stems are those of Snowball (PyStemmer), stop words those that bm25s carries: for English Lucene's 33, else nltk's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any

STOP_LISTS = {
    "danish": "DANISH",
    "dutch": "DUTCH",
    "english": "EN",
    "french": "FRENCH",
    "german": "GERMAN",
    "italian": "ITALIAN",
    "norwegian": "NORWEGIAN",
    "portuguese": "PORTUGUESE",
    "russian": "RUSSIAN",
    "spanish": "SPANISH",
    "swedish": "SWEDISH",
    "turkish": "TURKISH",
}
"""Language -> end of the name of its list in ``bm25s.stopwords``."""
AFTER_APOSTROPHE = ("s", "t", "d", "m", "ll", "re", "ve")
"""What is left of English contractions and possessives once words end at an apostrophe."""
NONE = "none"
"""No stemmer, or no stop words."""

_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+)"
)


def words(text: str) -> list[str]:
    """The words of a text in their order, normalised, not stemmed."""
    if text.isascii():
        return _words().findall(text.lower())
    found = []
    for word in _words().findall(unicodedata.normalize("NFKC", text).casefold()):
        if word.isascii():
            found.append(word)
            continue
        for place, piece in enumerate(_UNSPACED.split(word)):
            if place % 2 and len(piece) > 1:
                found.extend(piece[start : start + 2] for start in range(len(piece) - 1))
            elif piece:
                found.append(piece)
    return found


@cache
def _words() -> re.Pattern[str]:
    r"""Words with combining marks, which ``\w`` leaves out."""
    marks = [chr(code) for code in range(0x300, 0x1F000) if unicodedata.category(chr(code)).startswith("M")]
    return re.compile(rf"\w[\w{''.join(marks)}]*")


def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language, cut into words as texts are; none for a language without a list, or ``none``."""
    if language not in STOP_LISTS:
        return frozenset()
    listed: tuple[str, ...] = getattr(bm25s().stopwords, f"STOPWORDS_{STOP_LISTS[language]}")
    extra = AFTER_APOSTROPHE if language == "english" else ()
    return frozenset(word for entry in (*listed, *extra) for word in words(entry))


def stemmer(language: str) -> Callable[[str], str]:
    """The stem of a word; the word itself for ``none``."""
    if language == NONE:
        return str
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer(language, 0).stemWord  # each word is stemmed once, so no cache
    return stem


@cache
def languages() -> tuple[str, ...]:
    """The languages that have a stemmer."""
    import Stemmer

    return tuple(Stemmer.algorithms())


class Terms:
    """Numbers of the terms that were seen, by the words that stand for them."""

    def __init__(self, *, language: str, stopwords: str) -> None:
        self._stem, self._stop = stemmer(language), stop_words(stopwords)
        self._of_word: dict[str, int | None] = dict.fromkeys(self._stop)
        self.numbers: dict[str, int] = {}
        """Term -> number, from 0 in the order of their appearance."""

    def add(self, text: str) -> list[int]:
        """The terms of a document, in their order; new ones get the next numbers."""
        known, found = self._of_word, []
        for word in words(text):
            if word not in known:
                known[word] = self.numbers.setdefault(self._stem(word), len(self.numbers))
            if (number := known[word]) is not None:
                found.append(number)
        return found

    def find(self, text: str) -> list[int]:
        """The terms of a query that documents have, in their order and as often as they come."""
        stems = (self._stem(word) for word in words(text) if word not in self._stop)
        return [self.numbers[stem] for stem in stems if stem in self.numbers]


@cache
def bm25s() -> Any:
    """The library, imported without the accelerators that it would pick up by itself.

    On import it runs JAX once where that is installed, and JAX then takes most of a GPU's memory from the models
    beside it; numba takes a second to start and isn't used.
    """
    import sys

    optional = [name for name in ("jax", "numba") if name not in sys.modules]
    for name in optional:
        sys.modules[name] = None  # type: ignore[assignment]  # the documented way to make an import fail
    try:
        import bm25s
        import bm25s.stopwords
    finally:
        for name in optional:
            del sys.modules[name]
    return bm25s
