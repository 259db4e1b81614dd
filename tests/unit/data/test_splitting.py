"""Splits: which queries are nearly the same, and how the groups are shared out."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.data.splitting import NEAR, assign, groups, query_words

WORDS = [f"w{number}" for number in range(12)]
QUERIES = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=30)


def brute_force(queries: dict[str, str]) -> list[tuple[str, ...]]:
    """The groups by comparing every pair."""
    group = {query: {query} for query in queries}
    for a, b in combinations(queries, 2):
        one, other = query_words(queries[a]), query_words(queries[b])
        if len(one & other) >= NEAR * len(one | other) and group[a] is not group[b]:
            group[a] |= group[b]
            for each in group[b]:
                group[each] = group[a]
    return sorted({tuple(sorted(each)) for each in group.values()})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("How do I?  how DO", {"how", "do", "i"}),
        ("Straße ﬁt", {"strasse", "fit"}),
        ("今日abc", {"今", "日", "abc"}),
        ("?! ?", {"?! ?"}),
    ],
)
def test_words_of_a_query(text: str, words: set[str]) -> None:
    """Case, punctuation, order and compatibility forms don't count."""
    assert query_words(text) == words


def test_near_duplicates() -> None:
    """Four of five words in common is near: 4/5 is 0.8 exactly, in floats and in fractions; 3/4 is not."""
    found = groups({"a": "one two three four", "b": "Four, three two ONE five?", "c": "one two three", "d": "x"})
    assert found == [("a", "b"), ("c",), ("d",)]
    assert groups({"a": "1 2 3 4", "b": "1 2 3 4 5", "c": "1 2 3 4 5 6"}) == [("a", "b", "c")]  # by a chain


@settings(max_examples=150, deadline=None)
@given(QUERIES)
def test_groups_are_those_of_all_pairs(texts: list[str]) -> None:
    """The prefix filter misses none."""
    queries = {f"q{number}": text for number, text in enumerate(texts)}
    assert groups(queries) == brute_force(queries)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=40),
    st.lists(st.integers(1, 9), min_size=2, max_size=4),
    st.integers(0, 3),
    st.data(),
)
def test_shares_are_met(sizes: list[int], weights: list[int], seed: int, data: st.DataObject) -> None:
    """Each part has its share but for the largest group at most; every query is in one part, with its group."""
    whole = [tuple(f"{group}.{row}" for row in range(size)) for group, size in enumerate(sizes)]
    labels = data.draw(st.lists(st.sampled_from("xy"), min_size=len(whole), max_size=len(whole)))
    strata = {query: label for group, label in zip(whole, labels, strict=True) for query in group}
    shares = {f"p{number}": weight / sum(weights) for number, weight in enumerate(weights)}
    found = assign(whole, shares, strata, seed)
    assert set(found) == set(strata)
    assert all(len({found[query] for query in group}) == 1 for group in whole)
    for part, share in shares.items():
        assert abs(sum(each == part for each in found.values()) - share * sum(sizes)) <= max(sizes) + 1e-9


def test_strata_are_shared_out() -> None:
    """Of each label, half: of 10 queries 5, of 6 queries 3, whatever the seed."""
    strata = {f"a{number}": "a" for number in range(10)} | {f"b{number}": "b" for number in range(6)}
    for seed in range(5):
        found = assign([(query,) for query in strata], {"dev": 0.5, "test": 0.5}, strata, seed)
        assert sum(found[query] == "dev" for query in strata if query[0] == "a") == 5
        assert sum(found[query] == "dev" for query in strata if query[0] == "b") == 3


def test_the_seed_decides_and_the_order_does_not() -> None:
    """The same seed gives the same parts, another seed others."""
    queries = {f"q{number}": f"text {number} of its own" for number in range(40)}
    shuffled = list(np.random.default_rng(1).permutation(list(queries)))
    strata = dict.fromkeys(queries, "")
    shares = {"dev": 0.25, "test": 0.75}

    def parts(order: list[str], seed: int) -> dict[str, str]:
        return assign(groups({query: queries[query] for query in order}), shares, strata, seed)

    assert parts(list(queries), 0) == parts(shuffled, 0)
    assert parts(list(queries), 0) != parts(list(queries), 1)
    assert sum(part == "dev" for part in parts(shuffled, 3).values()) == 10
