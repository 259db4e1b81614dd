"""Texts of training corpora."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embeval.data.training import TrainingText, corpus_files, texts_of
from embeval.errors import DataError
from tests.support.data import write_jsonl


def test_lines_of_a_text_file_go_on(tmp_path: Path) -> None:
    """With a byte that is no UTF-8 in them, and gzipped."""
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfone\ntwo \xff three\n"))
    assert list(texts_of(path)) == [
        TrainingText(path, 1, "one\n", True),
        TrainingText(path, 2, "two \ufffd three\n", True),
    ]


def test_records_give_every_text_or_the_columns_named(tmp_path: Path) -> None:
    """Lists and objects are looked into; what is no text is passed over."""
    path = write_jsonl(tmp_path / "a.jsonl", [{"q": "one", "n": 1, "pos": ["two", {"text": "three"}]}])
    assert [(each.text, each.goes_on) for each in texts_of(path)] == [("one", False), ("two", True), ("three", True)]
    assert [each.text for each in texts_of(path, ["q"])] == ["one"]
    with pytest.raises(DataError, match="line 1: there is no column 'body'"):
        list(texts_of(path, ["body"]))


def test_parquet_and_tsv(tmp_path: Path) -> None:
    """Rows of both."""
    pq.write_table(pa.table({"text": ["one", "two"]}), tmp_path / "a.parquet")
    (tmp_path / "b.tsv").write_text("text\tother\nthree\tfour\n", encoding="utf-8")
    assert [each.text for each in texts_of(tmp_path / "a.parquet")] == ["one", "two"]
    assert [(each.line, each.text) for each in texts_of(tmp_path / "b.tsv", ["other"])] == [(2, "four")]


def test_files_of_a_folder(tmp_path: Path) -> None:
    """Those of a known kind, sorted, each once."""
    (tmp_path / "in").mkdir()
    for name in ("b.txt", "in/a.jsonl.gz", "c.bin"):
        (tmp_path / name).touch()
    assert corpus_files([tmp_path, tmp_path / "b.txt"]) == [tmp_path / "b.txt", tmp_path / "in/a.jsonl.gz"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no file in this folder ends with \.txt"):
        corpus_files([tmp_path / "empty"])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """An unknown kind, none at all, and half a gzip file."""
    (tmp_path / "c.bin").touch()
    with pytest.raises(DataError, match=r"unknown kind of file. Use \.txt, \.jsonl"):
        list(texts_of(tmp_path / "c.bin"))
    with pytest.raises(DataError, match="can't be read"):
        list(texts_of(tmp_path / "d.txt"))
    (tmp_path / "e.txt.gz").write_bytes(gzip.compress(b"one\n" * 1000)[:-9])
    with pytest.raises(DataError, match="not a whole gzip file"):
        list(texts_of(tmp_path / "e.txt.gz"))
