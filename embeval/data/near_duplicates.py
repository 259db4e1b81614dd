"""Texts that are the same but for case, marks and spaces, or nearly the same: shingles and their Jaccard index.

``similar_pairs`` is exact: it finds every pair, and estimates none. Source: Bayardo, Ma & Srikant, Scaling Up All
Pairs Similarity Search, WWW 2007 (prefix filter).
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from embeval.data.lexical import words

SHINGLE = 3
"""Words of a shingle."""


def normalized(text: str) -> str:
    """The words of a text with single spaces, in NFKC, case folded; a text without words stays but for its spaces."""
    composed = unicodedata.normalize("NFKC", text)
    return " ".join(words(composed)) or " ".join(composed.split())


def grams(found: Sequence[str], n: int) -> list[str]:
    """Every ``n`` words in a row, in their order; nothing for fewer words."""
    return [" ".join(found[start : start + n]) for start in range(len(found) - n + 1)]


def shingles(text: str, n: int = SHINGLE) -> frozenset[str]:
    """The distinct rows of ``n`` words of the normalised text; the whole text where it has fewer, nothing for none."""
    plain = normalized(text)
    return frozenset(grams(plain.split(), n) or ([plain] if plain else []))


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
