"""Texts that are the same but for case, marks and spaces, or nearly the same: shingles and their Jaccard index.

``similar_pairs`` is exact: it finds every pair, and estimates none. Source: Bayardo, Ma & Srikant, Scaling Up All
Pairs Similarity Search, WWW 2007 (prefix filter).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

SHINGLE = 3
"""Words of a shingle."""
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
"""Thai, Lao, Burmese, Khmer, kana, Han: scripts without spaces between words. Each character counts as a word."""
_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")


def plain_words(text: str) -> list[str]:
    """The words of a text in NFKC, case folded, in their order."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def normalized(text: str) -> str:
    """The words of a text with single spaces; a text without words stays as it is but for its spaces."""
    return " ".join(plain_words(text)) or " ".join(text.split())


def grams(words: Sequence[str], n: int) -> list[str]:
    """Every ``n`` words in a row, in their order; none for fewer words."""
    return [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]


def shingles(text: str, n: int = SHINGLE) -> frozenset[str]:
    """The distinct ``n`` words in a row; the whole text where it has fewer, nothing for a text without words."""
    words = plain_words(text)
    return frozenset(grams(words, n) or ([" ".join(words)] if words else []))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Shared elements over all elements, in [0, 1]; 0 for two empty sets."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if shared else 0.0


def similar_pairs(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[tuple[int, int, float]]:
    """(i, j, Jaccard index) of all pairs i < j that reach the threshold, which is above 0.

    Two sets that reach it share an element among the rarest few of each, so only those are looked up.
    """
    frequency = Counter(element for each in sets for element in each)
    holders: dict[str, list[int]] = defaultdict(list)
    for j, later in enumerate(sets):
        if not later:
            continue
        rarest = sorted(later, key=lambda element: (frequency[element], element))
        prefix = rarest[: len(rarest) - math.ceil(threshold * len(rarest) - 1e-9) + 1]
        for i in sorted({i for element in prefix for i in holders[element]}):
            if (alike := jaccard(sets[i], later)) >= threshold:
                yield i, j, alike
        for element in prefix:
            holders[element].append(j)
