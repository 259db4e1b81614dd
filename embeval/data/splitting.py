"""The queries of a split in parts, with queries that are nearly the same in one part."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction

NEAR = Fraction(4, 5)
"""Jaccard similarity of their word sets from which two queries are nearly the same."""

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def query_words(text: str) -> frozenset[str]:
    """The distinct words of a query, compatibility forms and case folded; Chinese and Japanese characters one by one.

    A text without words is itself.
    """
    normal = unicodedata.normalize("NFKC", text).casefold()
    return frozenset(_WORD.findall(normal)) or frozenset([" ".join(normal.split())])


def groups(queries: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Ids of queries that must stay together, each group sorted, and the groups by their first id.

    Two queries are in one group if their word sets have a Jaccard similarity of ``NEAR`` or more, or if a chain of such
    pairs leads from one to the other. Exact: all pairs are found. Source: prefix filter of Bayardo, Ma & Srikant,
    Scaling Up All Pairs Similarity Search, WWW 2007.
    """
    by_words: dict[frozenset[str], list[str]] = defaultdict(list)
    for query in sorted(queries):
        by_words[query_words(queries[query])].append(query)
    sets = sorted(by_words, key=lambda each: (len(each), sorted(each)))
    joined = _near_pairs(sets)
    found: dict[int, list[str]] = defaultdict(list)
    for row, each in enumerate(sets):
        found[_root(joined, row)] += by_words[each]
    return sorted(tuple(sorted(each)) for each in found.values())


def assign(
    groups: Sequence[tuple[str, ...]], shares: Mapping[str, float], strata: Mapping[str, Hashable], seed: int
) -> dict[str, str]:
    """Query -> part. Each part has its share of all queries, but for at most the size of the largest group.

    Each stratum is shared out in the same way, as far as that goes; a group belongs to the stratum of its first query.
    Hangs on ids, texts and the seed alone.
    """
    names = sorted(shares)
    total = math.fsum(shares.values())
    by_stratum: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for group in groups:
        by_stratum[repr(strata[group[0]])].append(group)
    counts = dict.fromkeys(names, 0)
    wanted = dict.fromkeys(names, 0.0)
    found: dict[str, str] = {}
    for stratum in sorted(by_stratum):
        size = sum(map(len, by_stratum[stratum]))
        for name in names:
            wanted[name] += shares[name] / total * size
        for group in sorted(by_stratum[stratum], key=lambda group: _drawn(seed, group[0])):
            part = max(names, key=lambda name: (wanted[name] - counts[name], _drawn(seed, f"{group[0]}\t{name}")))
            counts[part] += len(group)
            found |= dict.fromkeys(group, part)
    return found


def _drawn(seed: int, name: str) -> bytes:
    """A place in a random order, the same wherever the name stands."""
    return hashlib.sha256(f"{seed}\t{name}".encode()).digest()


def _near_pairs(sets: Sequence[frozenset[str]]) -> list[int]:
    """Union-find parents over the sets, which are sorted by size; joined are those that are near each other."""
    parents = list(range(len(sets)))
    frequency = Counter(word for each in sets for word in each)
    holders: dict[str, list[int]] = defaultdict(list)
    for row, each in enumerate(sets):
        rare_first = sorted(each, key=lambda word: (frequency[word], word))
        # Two sets that share NEAR of their words share one of these: it is all but NEAR of the words, and one more.
        prefix = rare_first[: len(each) - math.ceil(NEAR * len(each)) + 1]
        for other in _candidates(holders, prefix, sets, len(each)):
            mine, theirs = _root(parents, row), _root(parents, other)
            if mine == theirs:
                continue
            shared = len(each & sets[other])
            if shared >= NEAR * (len(each) + len(sets[other]) - shared):
                parents[mine] = theirs
        for word in prefix:
            holders[word].append(row)
    return parents


def _candidates(
    holders: Mapping[str, list[int]], prefix: Iterable[str], sets: Sequence[frozenset[str]], size: int
) -> Iterable[int]:
    """Earlier sets with a word of the prefix that are long enough to be near one of ``size`` words."""
    shortest = math.ceil(NEAR * size)
    seen: set[int] = set()
    for word in prefix:
        if word in holders:
            for other in reversed(holders[word]):  # sizes fall
                if len(sets[other]) < shortest:
                    break
                seen.add(other)
    return seen


def _root(parents: list[int], row: int) -> int:
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row
