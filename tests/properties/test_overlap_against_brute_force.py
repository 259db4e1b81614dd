"""Contamination against its definition: every evaluation text with every training text."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.data.near_duplicates import shingles
from embeval.workflows.overlap import OverlapOptions, overlap
from tests.support.data import write_beir, write_jsonl

WORDS = st.sampled_from("red blue green one two three".split())
TEXTS = st.lists(WORDS, min_size=1, max_size=14).map(" ".join)
NGRAM = 9


def rows_of_words(text: str, n: int) -> set[tuple[str, ...]]:
    """Every n words in a row."""
    words = text.split()
    return {tuple(words[start : start + n]) for start in range(len(words) - n + 1)}


def contained(text: str, training: list[str]) -> float:
    """The share of its n-grams that stand in a training text; a text of 8 words is one itself."""
    n = min(NGRAM, len(text.split()))
    if n < 8:
        return 0.0
    theirs = set().union(*(rows_of_words(each, n) for each in training))
    mine = rows_of_words(text, n)
    return len(mine & theirs) / len(mine)


def alike(text: str, training: list[str]) -> float:
    """The greatest Jaccard index of the three-word shingles."""
    mine = shingles(text)
    return max(len(mine & shingles(each)) / len(mine | shingles(each)) for each in training)


# Derandomised: MinHash may miss one pair in ten thousand, and that is no fault.
@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    st.lists(TEXTS, min_size=1, max_size=4),
    st.lists(TEXTS, min_size=1, max_size=6),
    st.sampled_from([0.5, 0.6, 0.8, 1.0]),
)
def test_hits_are_those_of_brute_force(texts: list[str], training: list[str], threshold: float) -> None:
    """Kind and value of each, and how many texts are touched at all."""
    expected = {}
    for place, text in enumerate(texts):
        if text in training:
            expected[f"q{place}"] = ("exact", 1.0)
        elif (near := alike(text, training)) >= threshold:
            expected[f"q{place}"] = ("near", near)
        elif (share := contained(text, training)) >= threshold:
            expected[f"q{place}"] = ("contained", share)
    with tempfile.TemporaryDirectory() as name:
        folder = write_beir(
            Path(name) / "set",
            corpus={"d": "a document"},
            queries={f"q{place}": text for place, text in enumerate(texts)},
            qrels={"q0": {"d": 1}},
        )
        corpus = write_jsonl(Path(name) / "training.jsonl", ({"text": text} for text in training))
        found = overlap(folder, [corpus], OverlapOptions(texts=("queries",), ngram=NGRAM, threshold=threshold))
    assert {hit.text.id: (hit.kind, hit.value) for hit in found.hits} == expected
    assert found.shares["queries"].touched == sum(contained(text, training) > 0 for text in texts)
    assert found.shares["queries"].short == sum(len(text.split()) < 8 for text in texts)
    assert found.worst == len(expected) / len(texts)
