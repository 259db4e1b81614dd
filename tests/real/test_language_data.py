"""Texts and minimal pairs of published sets, counted as their README and their files count them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from embeval.data.minimal_pairs import load_minimal_pairs
from embeval.data.texts import load_texts

pytestmark = pytest.mark.real


def test_wikitext_2(real_data: Path) -> None:
    """2,891 lines and 241,211 words between white space, as published: none is lost or cut."""
    texts = load_texts(real_data / "lm" / "wikitext2_raw" / "wiki.test.raw.gz")
    assert (len(texts), texts.n_blank) == (2891, 0)
    assert texts.ids == tuple(map(str, range(1, 2892)))
    assert sum(len(text.split()) for text in texts.texts) == 241_211
    assert texts.texts[0] == "= Robert Boulter ="


def test_inaugural_addresses(real_data: Path) -> None:
    """96,595 words however they are cut; as many paragraphs as there are runs of lines that aren't blank."""
    path = real_data / "lm" / "inaugural" / "1789-1933.txt.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        filled = [bool(line.strip()) for line in file]
    starts = [not before and now for before, now in zip([False, *filled], filled, strict=False)]
    for unit, n in (("line", sum(filled)), ("paragraph", sum(starts)), ("file", 1)):
        texts = load_texts(path, unit=unit)  # type: ignore[arg-type]  # the three words of TextUnit
        assert len(texts) == n
        assert sum(len(text.split()) for text in texts.texts) == 96_595


def test_blimp(real_data: Path) -> None:
    """34 paradigms of 1,000 pairs with the fields of their rows, and two pairs that are none."""
    folder = real_data / "lm" / "blimp"
    pairs = load_minimal_pairs(folder)
    assert Counter(pairs.paradigms) == {file.name.partition(".")[0]: 1000 for file in folder.iterdir()}
    assert len(set(pairs.paradigms)) == 34
    assert pairs.identical == ("passive_1/324", "passive_1/810")
    place = pairs.ids.index("passive_1/2")
    with gzip.open(folder / "passive_1.jsonl.gz", "rt", encoding="utf-8") as file:
        row = next(row for row in map(json.loads, file) if row["pairID"] == "2")
    assert (pairs.good[place], pairs.bad[place]) == (row["sentence_good"], row["sentence_bad"])
    assert (pairs.fields[place], pairs.terms[place]) == (row["field"], row["linguistics_term"])
    assert Counter(pairs.fields) == {
        "syntax": 13_000,
        "morphology": 9_000,
        "syntax_semantics": 8_000,
        "semantics": 4_000,
    }
