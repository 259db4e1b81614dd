"""Golden sets from folders of documents."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from embeval.core.progress import Silent
from embeval.data import columns
from embeval.data.from_documents import PARTS, Cutting, find, read
from embeval.data.golden import GoldenSet
from embeval.errors import DataError
from tests.support.data import write_jsonl
from tests.support.documents import docx, pdf

GUIDE = "# Backup\r\nStop the server. Copy the folder.\r\n\r\n# Restore\r\nCopy it back. Start the server again.\r\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four documents, one below, and what is none."""
    docs = tmp_path / "docs"
    docx(docs / "sub" / "word.docx")
    (docs / "guide.md").write_bytes(GUIDE.encode())
    (docs / "b.pdf").write_bytes(pdf("A page of words"))
    (docs / "sub" / "über.txt").write_text("umlauts", encoding="utf-8")
    (docs / ".hidden.md").write_text("no", encoding="utf-8")
    (docs / "~$word.docx").write_text("no", encoding="utf-8")
    (docs / "picture.png").write_bytes(b"no")
    (docs / ".git").mkdir()
    (docs / ".git" / "x.txt").write_text("no", encoding="utf-8")
    (docs / "sub" / "loop").symlink_to(docs)
    return docs


WHOLE = Cutting()


def made(
    folder: Path, questions: list[dict[str, Any]] | None = None, cutting: Cutting = WHOLE, **more: Any
) -> GoldenSet:
    """The set of a folder."""
    path = write_jsonl(folder.parent / "q.jsonl", questions) if questions is not None else None
    options = {"given": {}, "split": "test", "progress": Silent(), **more}
    return read(folder, path, cutting=cutting, **options)


def test_what_is_found(folder: Path) -> None:
    """Sorted paths; hidden files, links to folders and other kinds are left out, the latter two told."""
    assert find(folder) == (
        ["b.pdf", "guide.md", "sub/word.docx", "sub/über.txt"],
        ["1 file of other kinds left out: 1 × .png.", "Links to folders are not followed: sub/loop."],
    )


def test_whole_documents(folder: Path) -> None:
    """Ids are paths; no questions, no qrels."""
    golden = made(folder)
    assert [(row["_id"], row["text"]) for row in golden.documents][:2] == [
        ("b.pdf", "A page of words"),
        ("guide.md", GUIDE.replace("\r\n", "\n")),
    ]
    assert all(set(row) == {"_id", "title", "text"} for row in golden.documents)
    assert (golden.queries, golden.qrels) == (None, {})
    assert [each.name for each in golden.inputs] == ["b.pdf", "guide.md", "sub/word.docx", "sub/über.txt"]


HEADING = Cutting("heading", 50)


def test_passages_are_parts_of_their_documents(folder: Path) -> None:
    """By heading: two of the guide; text[start:end] is the passage."""
    golden = made(folder, cutting=HEADING)
    guide = [row for row in golden.documents if row["document"] == "guide.md"]
    assert [(row["_id"], row["text"].split("\n")[0], row["start"]) for row in guide] == [
        ("guide.md#1", "# Backup", 0),
        ("guide.md#2", "# Restore", 44),
    ]
    whole = GUIDE.replace("\r\n", "\n")
    assert all(whole[row["start"] : row["end"]] == row["text"] for row in guide)


@pytest.mark.parametrize(
    ("question", "judge", "relevant"),
    [
        ({"document": "guide.md"}, "auto", ["guide.md#1", "guide.md#2"]),
        ({"document": "über.txt"}, "auto", ["sub/über.txt#1"]),
        ({"document": unicodedata.normalize("NFD", "./sub/über.txt")}, "auto", ["sub/über.txt#1"]),
        ({"document": ["b.pdf", "über.txt"]}, "auto", ["b.pdf#1", "sub/über.txt#1"]),
        ({"chunk": "guide.md#2"}, "auto", ["guide.md#2"]),
        ({"chunk": "guide.md#2"}, "document", ["guide.md#1", "guide.md#2"]),
        ({"quote": "Copy the\n  folder."}, "auto", ["guide.md#1"]),
        ({"quote": "folder. # Restore"}, "auto", ["guide.md#1", "guide.md#2"]),
        ({"quote": "Copy it back", "document": "guide.md"}, "quote", ["guide.md#2"]),
        ({"quote": "Copy it back"}, "document", ["guide.md#1", "guide.md#2"]),
    ],
)
def test_what_is_relevant(folder: Path, question: dict[str, Any], judge: str, relevant: list[str]) -> None:
    """All passages of a document, a passage, or those that a quote runs through."""
    golden = made(folder, [{"question": "q?", "id": "x", **question}], HEADING, judge=judge)
    assert golden.qrels == {"test": {"x": dict.fromkeys(relevant, 1)}}
    assert golden.options["judge"] == judge


def test_questions(folder: Path) -> None:
    """Labels pass through, equal questions are one, grades are taken, unanswerable ones have no judgment."""
    golden = made(
        folder,
        [
            {"question": "a?", "document": "guide.md", "grade": 2, "kind": "x", "_id": "a"},
            {"question": "b?", "answerable": False, "_id": "b"},
            {"question": "a?", "document": "b.pdf", "grade": 1, "kind": "x", "hard": True, "note": None, "_id": "a"},
        ],
    )
    assert golden.queries == [
        {"_id": "a", "text": "a?", "kind": "x", "hard": "true"},
        {"_id": "b", "text": "b?", "answerable": False},
    ]
    assert golden.qrels == {"test": {"a": {"guide.md": 2, "b.pdf": 1}}}


def test_a_quote_in_several_places(folder: Path) -> None:
    """All are relevant, and the line is told."""
    (folder / "copy.txt").write_text("Stop the server, then wait.", encoding="utf-8")
    golden = made(folder, [{"question": "q?", "quote": "Stop the server", "_id": "x"}])
    assert golden.qrels == {"test": {"x": {"copy.txt": 1, "guide.md": 1, "sub/word.docx": 1}}}
    assert golden.notes[-1] == (
        "q.jsonl, line 1: the quote 'Stop the server' stands in 3 places, all of which are judged relevant: "
        "copy.txt, guide.md, sub/word.docx."
    )


@pytest.mark.parametrize(
    ("question", "judge", "said"),
    [
        ({}, "auto", "line 1: a question needs its document, quote or chunk"),
        ({"document": "guide.md"}, "quote", "line 1: a question needs its quote"),
        ({"document": "guide.mb"}, "auto", "no document 'guide.mb' in the folder. Did you mean 'guide.md'?"),
        ({"chunk": "guide.md#3"}, "auto", "no passage 'guide.md#3'. Did you mean 'guide.md#[12]'"),
        ({"quote": "stop the server."}, "auto", "is not found in any document. But for upper and lower case"),
        ({"quote": "no such", "document": "b.pdf"}, "auto", "is not found in b.pdf"),
        ({"document": "b.pdf", "answerable": False}, "auto", "line 1: this question is marked unanswerable"),
        ({"document": "same.txt"}, "auto", "2 documents are called 'same.txt': sub/same.txt, x/same.txt. Give"),
    ],
)  # fmt: skip
def test_what_is_refused(folder: Path, question: dict[str, Any], judge: str, said: str) -> None:
    """With file and line."""
    for name in ("sub", "x"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "same.txt").write_text(name, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        made(folder, [{"question": "q?", **question}], HEADING, judge=judge)


def test_documents_that_cannot_be_read(folder: Path) -> None:
    """All are listed; skipped only when asked, and then told without the folder."""
    (folder / "bad.txt").write_bytes(b"\xff")
    (folder / "empty.md").write_bytes(b"")
    (folder / "tab\tname.txt").write_text("x", encoding="utf-8")
    (folder / os.fsdecode(b"\xff.txt")).write_text("x", encoding="utf-8")
    (folder / "dangling.txt").symlink_to("nowhere")
    with pytest.raises(DataError) as caught:
        made(folder)
    lines = str(caught.value).splitlines()
    assert lines[0] == "5 documents can't be read:"
    assert lines[-1] == "Mend them, or leave them out with --skip-unreadable."
    assert f"{folder}/bad.txt: not UTF-8 text (byte 0xff at 0). Say what it is with --encoding." in lines
    golden = made(folder, skip_unreadable=True)
    assert len(golden.documents) == 4
    assert golden.notes[-1].startswith("5 documents skipped: bad.txt: not UTF-8 text")
    assert str(folder) not in golden.notes[-1]


def test_a_folder_without_documents(tmp_path: Path) -> None:
    """Says which files are looked for."""
    with pytest.raises(DataError, match=r"there are no \.txt, \.md, \.html, \.htm, \.pdf, \.docx files in it"):
        made(tmp_path)


def test_columns_of_questions(folder: Path) -> None:
    """Of a csv file, called otherwise."""
    path = folder.parent / "fragen.csv"
    path.write_text("Frage,Datei\nwas?,b.pdf\n", encoding="utf-8")
    given = columns.parse(["question=Frage,document=Datei"], PARTS)
    golden = read(folder, path, cutting=Cutting(), given=given, split="dev", progress=Silent())
    assert [list(grades) for grades in golden.qrels["dev"].values()] == [["b.pdf"]]


def test_passages_that_a_question_excludes(folder: Path) -> None:
    """One by its id, or all of a document; never one that answers the question."""
    cutting = Cutting(chunker="heading", size=50)
    question = {"question": "how do I go back?", "chunk": "guide.md#2", "exclude": ["guide.md#1", "sub/über.txt"]}
    golden = made(folder, [question], cutting)
    assert golden.queries is not None
    assert golden.queries[0]["exclude"] == ["guide.md#1", "sub/über.txt#1"]
    with pytest.raises(DataError, match=r"line 1: 'guide\.md#2' is excluded and relevant to the same question"):
        made(folder, [{**question, "exclude": "guide.md"}], cutting)
    with pytest.raises(DataError, match=r"line 1: there is no document 'guide\.mdx'"):
        made(folder, [{**question, "exclude": "guide.mdx"}], cutting)
