"""A corpus alone: its files, and what is wrong with one."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from embeval.data import beir, corpus
from embeval.errors import DataError
from tests.support.data import write_beir, write_jsonl

ROWS: list[dict[str, Any]] = [
    {"_id": "a", "title": "First", "text": "one"},
    {"_id": "b", "text": "two"},
    {"_id": 3, "title": None, "text": ""},
]


def test_a_file_of_documents(tmp_path: Path) -> None:
    """Titles apart and joined to the texts; an id may be a number."""
    found = corpus.read(write_jsonl(tmp_path / "docs.jsonl", ROWS))
    assert found.ids == ("a", "b", "3")
    assert found.titles == ("First", "", "")
    assert found.bodies == ("one", "two", "")
    assert found.texts == ("First one", "two", "")
    assert len(found) == 3


def test_a_beir_folder_gives_the_texts_that_a_task_encodes(tmp_path: Path) -> None:
    """Equal to ``load_beir``, without reading queries and judgments."""
    folder = write_beir(tmp_path, corpus={"a": "one", "b": "two"}, queries={"q": "one"}, qrels={"q": {"a": 1}})
    data = beir.load_beir(folder)
    (folder / "queries.jsonl").unlink()
    found = corpus.read(folder)
    assert (found.ids, found.texts) == (data.doc_ids, data.doc_texts)


def test_a_table_with_the_column_id(tmp_path: Path) -> None:
    """csv, where the id is not called _id."""
    (tmp_path / "docs.csv").write_text("id,text\na,one\nb,two\n", encoding="utf-8")
    assert corpus.read(tmp_path / "docs.csv").ids == ("a", "b")


def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path) -> None:
    """A duplicate, no id, no text, no file, an empty folder, and two files of one name."""
    twice = write_jsonl(tmp_path / "twice.jsonl", [*ROWS, {"_id": "a", "text": "again"}])
    with pytest.raises(DataError, match=r"twice\.jsonl, line 4: the id 'a' appears twice"):
        corpus.read(twice)
    with pytest.raises(DataError, match=r"no\.jsonl, line 1: there is no column '_id'"):
        corpus.read(write_jsonl(tmp_path / "no.jsonl", [{"text": "one"}]))
    with pytest.raises(DataError, match="line 1: there is no column 'text'"):
        corpus.read(write_jsonl(tmp_path / "no.jsonl", [{"_id": "one"}]))
    with pytest.raises(DataError, match="no such file"):
        corpus.read(tmp_path / "none.jsonl")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=r"there is no corpus\.jsonl"):
        corpus.read(tmp_path / "folder")
    plain = write_jsonl(tmp_path / "folder" / "corpus.jsonl", ROWS)
    with gzip.open(tmp_path / "folder" / "corpus.jsonl.gz", "wb") as file:
        file.write(plain.read_bytes())
    with pytest.raises(DataError, match="both there"):
        corpus.read(tmp_path / "folder")
