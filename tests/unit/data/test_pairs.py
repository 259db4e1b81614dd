"""Sentence pairs: the same pairs from every kind of file, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core.signature import RESERVED_SUBSETS
from embeval.data.pairs import MAX_SCORE, PairColumns, Pairs, load_pairs
from embeval.errors import DataError
from tests.support.data import write_jsonl, write_pairs
from tests.support.row_kinds import KINDS, as_csv, as_parquet

RawRow = dict[str, Any]


def content(pairs: Pairs) -> tuple[Any, ...]:
    """All that a payload holds, to the bit."""
    return pairs.ids, pairs.left, pairs.right, pairs.gold.tobytes(), pairs.gold.dtype, pairs.subsets, pairs.data_hash


SCORES = st.floats(-MAX_SCORE, MAX_SCORE) | st.integers(-5, 5).map(float)


def tables(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[RawRow]]:
    """Rows of pairs, with ids and sub-sets or without."""
    names = texts.filter(bool)
    subsets = names.filter(lambda name: name not in RESERVED_SUBSETS)
    pair = {"sentence1": texts, "sentence2": texts, "score": SCORES}

    def rows(extra: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[list[RawRow]]:
        unique = (lambda row: row["id"]) if "id" in extra else None
        return st.lists(st.fixed_dictionaries({**extra, **pair}), min_size=1, max_size=6, unique_by=unique)

    return st.one_of(
        [rows(extra) for extra in ({}, {"id": names}, {"subset": subsets}, {"id": names, "subset": subsets})]
    )


def check_kinds(rows: list[RawRow], kinds: list[str]) -> None:
    """Each kind, plain and gzipped, gives the pairs of the rows and one hash."""
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            data = KINDS[kind](rows)
            for name, written in ((f"a.{kind}", data), (f"a.{kind}.gz", gzip.compress(data))):
                path = Path(folder) / name
                path.write_bytes(written)
                contents.append(content(load_pairs(path)))
    assert len(set(contents)) == 1
    ids, left, right, gold, _, subsets, _ = contents[0]
    assert ids == tuple(row.get("id", str(number)) for number, row in enumerate(rows, start=1))
    assert left == tuple(row["sentence1"] for row in rows)
    assert right == tuple(row["sentence2"] for row in rows)
    assert gold == np.array([row["score"] for row in rows]).tobytes()
    assert subsets == tuple(row["subset"] for row in rows if "subset" in row)


relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)


@relaxed
@given(rows=tables(st.text(max_size=8)))
def test_the_kind_of_file_does_not_matter(rows: list[RawRow]) -> None:
    """Any text and any score: jsonl, csv and parquet, plain and gzipped, give equal pairs and one hash."""
    check_kinds(rows, ["jsonl", "csv", "parquet"])


@relaxed
@given(rows=tables(st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n"), max_size=8)))
def test_tsv_is_no_exception(rows: list[RawRow]) -> None:
    """Where no text holds a tab or a line end, tsv gives the same too, quotes and all."""
    check_kinds(rows, ["jsonl", "tsv"])


def test_the_hash_by_hand(tmp_path: Path) -> None:
    """sha256 over length and bytes of id, texts, score and sub-set of each pair."""
    rows = [
        {"id": "p1", "sentence1": "é", "sentence2": "", "score": 5, "subset": "s"},
        {"id": "p2", "sentence1": "a b", "sentence2": "c", "score": 0.1, "subset": "t"},
    ]
    parts = ["p1", "é", "", "5.0", "s", "p2", "a b", "c", "0.1", "t"]
    encoded = b"".join(len(part.encode()).to_bytes(8, "little") + part.encode() for part in parts)
    assert load_pairs(write_jsonl(tmp_path / "a.jsonl", rows)).data_hash == hashlib.sha256(encoded).hexdigest()


def hash_of(**changes: Any) -> str:
    """The hash of two pairs, some of it changed."""
    fields: dict[str, Any] = {
        "ids": ("1", "2"),
        "left": ("ab", "cd"),
        "right": ("ef", "gh"),
        "gold": np.array([1.0, 2.0]),
        "subsets": ("s", "t"),
    }
    return Pairs(**{**fields, **changes}).data_hash


def test_every_change_changes_the_hash() -> None:
    """Ids, texts, sides, scores to the last bit, sub-sets, order, and where one text ends and the next begins."""
    hashes = [
        hash_of(),
        hash_of(ids=("1", "3")),
        hash_of(left=("ab", "cD")),
        hash_of(left=("ef", "gh"), right=("ab", "cd")),
        hash_of(left=("abe", "cd"), right=("f", "gh")),
        hash_of(left=("ab ", "cd")),
        hash_of(gold=np.array([1.0, np.nextafter(2.0, 3.0)])),
        hash_of(subsets=("s", "s")),
        hash_of(subsets=()),
        hash_of(ids=("2", "1"), left=("cd", "ab"), right=("gh", "ef"), gold=np.array([2.0, 1.0]), subsets=("t", "s")),
        Pairs(("1",), ("ab",), ("ef",), np.array([1.0]), ("s",)).data_hash,
    ]
    assert len(set(hashes)) == len(hashes)


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    """Mapped ones are read in place of the usual ones, others are left alone, and the hash is the same."""
    usual = [{"id": "x", "sentence1": "a", "sentence2": "b", "score": 1, "subset": "s"}]
    other = [{"nr": "x", "left": "a", "right": "b", "gold": 1, "genre": "s", "id": None, "subset": 7, "score": "?"}]
    columns = PairColumns(sentence1="left", sentence2="right", score="gold", id="nr", subset="genre")
    one = load_pairs(write_jsonl(tmp_path / "one.jsonl", usual))
    two = load_pairs(write_jsonl(tmp_path / "two.jsonl", other), columns)
    assert content(one) == content(two)


def test_pairs_are_numbered_where_there_are_no_ids(tmp_path: Path) -> None:
    """From 1, and there are as many as rows."""
    pairs = load_pairs(write_pairs(tmp_path / "a.jsonl", [("a", "b", 1.0), ("c", "d", 2), ("a", "b", 1.0)]))
    assert (pairs.ids, len(pairs), pairs.subsets) == (("1", "2", "3"), 3, ())
    assert pairs.gold.tolist() == [1.0, 2.0, 1.0]


def test_whole_numbers_as_ids_and_subsets(tmp_path: Path) -> None:
    """``7`` in jsonl is the ``7`` of csv."""
    rows = [{"id": 7, "sentence1": "a", "sentence2": "b", "score": 1, "subset": 2012}]
    pairs = load_pairs(write_jsonl(tmp_path / "a.jsonl", rows))
    (tmp_path / "a.csv").write_bytes(as_csv(rows))
    assert (pairs.ids, pairs.subsets) == (("7",), ("2012",))
    assert content(pairs) == content(load_pairs(tmp_path / "a.csv"))


GOOD: RawRow = {"id": "p", "sentence1": "a", "sentence2": "b", "score": 1.0, "subset": "s"}


def row(**changes: Any) -> RawRow:
    """A good row with changes; ``None`` stands for null."""
    return {**GOOD, **changes}


def without(name: str) -> RawRow:
    """A good row that lacks a column, with an id of its own."""
    return {key: value for key, value in row(id="other").items() if key != name}


BAD: dict[str, tuple[list[RawRow], int, str]] = {
    "no first text": ([row(), without("sentence1")], 2, "there is no column 'sentence1'. Columns: 'id', 'sentence2'"),
    "no second text": ([without("sentence2")], 1, "there is no column 'sentence2'"),
    "no score": ([row(), without("score")], 2, "there is no column 'score'"),
    "text is null": ([row(sentence1=None)], 1, "'sentence1' must be text, not None"),
    "text is a number": ([row(sentence2=5)], 1, "'sentence2' must be text, not 5"),
    "score is null": ([row(score=None)], 1, "'score' must be a number, not None"),
    "score is true": ([row(), row(id="q", score=True)], 2, "'score' must be a number, not True"),
    "score is a word": ([row(score="high")], 1, "'score' must be a number, not 'high'"),
    "score is empty": ([row(score="")], 1, "'score' must be a number, not ''"),
    "score is a list": ([row(score=[1])], 1, "'score' must be a number, not [1]"),
    "score is nan in text": ([row(score="nan")], 1, "'score' must be a finite number, not 'nan'"),
    "score is inf in text": ([row(score="-inf")], 1, "'score' must be a finite number, not '-inf'"),
    "id twice": ([row(), row(id="q"), row()], 3, "the id 'p' stands already in line 1"),
    "id twice, as number and text": ([row(id=1), row(id="1")], 2, "the id '1' stands already in line 1"),
    "id empty": ([row(), row(id="")], 2, "'id' must be an id"),
    "id null": ([row(id=None)], 1, "'id' must be an id"),
    "id true": ([row(id=True)], 1, "'id' must be an id"),
    "id broken number": ([row(id=1.5)], 1, "'id' must be an id"),
    "id with half a character": ([row(), row(id="q\ud800")], 2, "'id'"),
    "sub-set with half a character": ([row(subset="s\udc00")], 1, "'subset'"),
    "sub-set called all": ([row(), row(id="q", subset="all")], 2, "may not be called 'all'"),
    "sub-set called mean": ([row(subset="mean")], 1, "may not be called 'mean'"),
    "sub-set called wmean": ([row(subset="wmean")], 1, "may not be called 'wmean'"),
    "sub-set missing later": ([row(), row(id="q"), without("subset")], 3, "'subset'"),
    "sub-set missing first": ([without("subset"), row()], 2, "'subset'"),
    "sub-set null": ([row(), row(id="q", subset=None)], 2, "'subset' must be an id"),
    "sub-set empty": ([row(subset="")], 1, "'subset' must be an id"),
}


def check_refused(path: Path, line: int, words: str) -> None:
    """Refused with file, line and words, in at most three lines."""
    with pytest.raises(DataError) as caught:
        load_pairs(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: ")
    assert words in message
    assert len(message.splitlines()) <= 3


@pytest.mark.parametrize("case", list(BAD))
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, case: str) -> None:
    """Each fault of a row, in jsonl; half a character is a lone surrogate, which no item file can hold."""
    rows, line, words = BAD[case]
    check_refused(write_jsonl(tmp_path / "pairs.jsonl", rows), line, words)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": "high"}, "'score' must be a number, not 'high'"),
        ({"score": "nan"}, "'score' must be a finite number, not 'nan'"),
        ({"score": ""}, "'score' must be a number, not ''"),
        ({"id": ""}, "'id' must be an id"),
        ({"id": "p"}, "the id 'p' stands already in line"),
        ({"subset": ""}, "'subset' must be an id"),
        ({"subset": "wmean"}, "may not be called 'wmean'"),
    ],
)
def test_faults_in_other_kinds(tmp_path: Path, kind: str, change: RawRow, words: str) -> None:
    """The second row is wrong: line 3 where there is a header, row 2 in parquet."""
    path = tmp_path / f"pairs.{kind}"
    path.write_bytes(KINDS[kind]([row(score="1.0"), {**row(id="q", score="2"), **change}]))
    check_refused(path, 2 if kind == "parquet" else 3, words)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, None, True])
def test_scores_of_parquet_that_are_none(tmp_path: Path, score: Any) -> None:
    """NaN, infinities, null and truth values, which jsonl can't hold or csv has no word for."""
    path = tmp_path / "pairs.parquet"
    rows = [row(score=True) if score is True else row(), row(id="q", score=score)]
    path.write_bytes(as_parquet(rows))
    check_refused(path, 1 if score is True else 2, f"number, not {score!r}")


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_a_header_without_the_columns(tmp_path: Path, kind: str) -> None:
    """Told at line 1, where the names stand: which one is missing, which ones there are, and how to say which it is."""
    path = tmp_path / f"pairs.{kind}"
    path.write_bytes(KINDS[kind]([{"text1": "a", "text2": "b", "score": "1"}]))
    check_refused(path, 1, "there is no column 'sentence1'. Columns: 'text1', 'text2', 'score'.")
    check_refused(path, 1, "columns: {sentence1: …} in embeval.yaml, or ,columns.sentence1=… behind the file.")


def test_a_column_of_nearly_the_right_name(tmp_path: Path) -> None:
    """The likely one is named; in jsonl the line is that of the row."""
    wrong = [row(), {"sentence1": "a", "sentnce2": "b", "score": 1, "id": "q"}]
    check_refused(write_jsonl(tmp_path / "pairs.jsonl", wrong), 2, "Did you mean 'sentnce2'")


def test_names_near_the_reserved_ones_are_fine(tmp_path: Path) -> None:
    """Only the three words themselves name pooled results."""
    names = ["ALL", "all ", "means", "overall"]
    assert RESERVED_SUBSETS == ("all", "mean", "wmean")
    rows = [row(id=name, subset=name) for name in names]
    assert load_pairs(write_jsonl(tmp_path / "a.jsonl", rows)).subsets == tuple(names)


@pytest.mark.parametrize("score", [1.1e12, -1e13, 1e308])
def test_scores_beyond_all_scales_are_refused(tmp_path: Path, score: float) -> None:
    """Their squares overflow, and next to them other scores are all alike."""
    path = write_jsonl(tmp_path / "pairs.jsonl", [row(), row(id="q", score=score)])
    check_refused(path, 2, "which is no score: at most ±1e+12.")


@pytest.mark.parametrize("option", ["id", "subset"])
def test_an_optional_column_that_was_named_must_be_there(tmp_path: Path, option: str) -> None:
    """Whoever names it counts on it; without a name of its own it may be absent."""
    path = tmp_path / "pairs.csv"
    path.write_bytes(KINDS["csv"]([{"sentence1": "a", "sentence2": "b", "score": "1", "Subset": "s", "ID": "x"}]))
    assert load_pairs(path).subsets == ()
    wanted = {"id": "Id", "subset": "SubSet"}[option]
    with pytest.raises(DataError, match=f"line 1: there is no column '{wanted}'.*\n.*columns.{option}=…"):
        load_pairs(path, PairColumns(**{option: wanted}))
    assert load_pairs(path, PairColumns(id="ID", subset="Subset")).subsets == ("s",)
