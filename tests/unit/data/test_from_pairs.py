"""Golden sets from question-document pairs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embeval.data import columns, files
from embeval.data.from_pairs import PARTS, read
from embeval.data.golden import GoldenSet
from embeval.errors import ConfigError, DataError
from tests.support.data import write_jsonl


def made(path: Path, **given: Any) -> GoldenSet:
    """The set of a file."""
    words = [f"{part}={name}" for part, names in given.items() for name in names.split("+")]
    return read(list(files.rows(path)), path, given=columns.parse(words, PARTS), split="test")


def by_text(golden: GoldenSet) -> dict[str, dict[str, int]]:
    """Question -> text of the document -> grade."""
    documents = {row["_id"]: row["text"] for row in golden.documents}
    assert golden.queries is not None
    questions = {row["_id"]: row["text"] for row in golden.queries}
    return {
        questions[query]: {documents[doc]: grade for doc, grade in grades.items()}
        for query, grades in golden.qrels["test"].items()
    }


def test_rows_become_documents_and_questions(tmp_path: Path) -> None:
    """With a byte-order mark, CRLF, quotes and umlauts; an equal document and an equal question are one."""
    path = tmp_path / "a.csv"
    path.write_bytes(
        (
            '\ufeffquestion,answer,label\r\n"How, so?","Line\r\nbreak",x\r\n'
            "Über?,Same,y\r\nWhy?,Same,x\r\nWhy?,Other,x\r\n"
        ).encode()
    )
    golden = made(path)
    assert by_text(golden) == {
        "How, so?": {"Line\r\nbreak": 1},
        "Über?": {"Same": 1},
        "Why?": {"Same": 1, "Other": 1},
    }
    assert golden.queries is not None
    assert [row["label"] for row in golden.queries] == ["x", "y", "x"]
    assert golden.counts == {"documents": 3, "queries": 3, "unanswerable": 0, "judgments": 4, "relevant": 4}
    assert golden.notes == []


def test_ids_are_made_of_the_texts(tmp_path: Path) -> None:
    """sha256 over each text after its length in 8 bytes: d with title and text, q with the question."""
    (tmp_path / "a.tsv").write_text("question\ttitle\tdocument\nq?\tT\tdé\n", encoding="utf-8")
    golden = made(tmp_path / "a.tsv")

    def digest(*texts: str) -> str:
        parts = [len(text.encode()).to_bytes(8, "little") + text.encode() for text in texts]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:20]

    assert golden.documents == [{"_id": "d" + digest("T", "dé"), "title": "T", "text": "dé"}]
    assert golden.queries == [{"_id": "q" + digest("q?"), "text": "q?"}]


def test_given_ids_and_other_names(tmp_path: Path) -> None:
    """By --columns; a second id with the same text stands for the first."""
    path = write_jsonl(
        tmp_path / "a.jsonl",
        [
            {"frage": "a?", "antwort": "A", "nr": 1, "qid": "x", "art": "k"},
            {"frage": "b?", "antwort": "A", "nr": 2, "qid": "y", "art": "k", "extra": None},
        ],
    )
    golden = made(path, question="frage", document="antwort", id="nr", question_id="qid", label="art")
    assert golden.documents == [{"_id": "1", "title": "", "text": "A"}]
    assert golden.qrels == {"test": {"x": {"1": 1}, "y": {"1": 1}}}
    assert golden.queries == [{"_id": "x", "text": "a?", "art": "k"}, {"_id": "y", "text": "b?", "art": "k"}]
    assert golden.notes == [
        "1 document ids whose text another id has, which stands for both.",
        "1 column not used: extra.",
    ]


def test_hard_negatives(tmp_path: Path) -> None:
    """Graded 0; several columns and lists; one that is relevant to the question stays so, and takes no new document."""
    path = write_jsonl(
        tmp_path / "a.jsonl",
        [
            {"query": "a?", "negative": ["N", "B"], "positive": "A", "title": "T"},
            {"query": "b?", "negative": "A", "positive": "B", "title": "U"},
            {"query": "b?", "negative": None, "positive": "A", "title": "T"},
        ],
    )
    golden = made(path)
    assert by_text(golden) == {"a?": {"A": 1, "N": 0, "B": 0}, "b?": {"B": 1, "A": 1}}
    assert [row["title"] for row in golden.documents] == ["T", "U", ""]
    assert golden.notes == ["1 negatives that a row has as relevant to the same question, which they stay."]


def test_a_label_of_whole_numbers_is_the_grade(tmp_path: Path) -> None:
    """As data sets of pairs have it: 0 is not relevant. One that is not a number throughout is refused."""
    (tmp_path / "a.csv").write_text("question,context,label\na,A,2\na,B,0\nb,B,1\n", encoding="utf-8")
    assert by_text(made(tmp_path / "a.csv")) == {"a": {"A": 2, "B": 0}, "b": {"B": 1}}
    (tmp_path / "b.csv").write_text("question,context,label\na,A,1\na,B,0\nb,B,\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"b\.csv, line 4: 'label' is '', and a whole number in most rows"):
        made(tmp_path / "b.csv")
    (tmp_path / "c.csv").write_text("question,context,grade\na,A,0.5\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"c\.csv, line 2: 'grade' must be a whole number up to 1000, not '0\.5'"):
        made(tmp_path / "c.csv")


def test_unanswerable_questions(tmp_path: Path) -> None:
    """They have no document; with a relevant one they are refused."""
    (tmp_path / "a.csv").write_text("question,answer,answerable\na,A,true\nb,,False\nc,A,\n", encoding="utf-8")
    golden = made(tmp_path / "a.csv")
    assert golden.queries is not None
    assert [row.get("answerable") for row in golden.queries] == [None, False, None]
    assert by_text(golden) == {"a": {"A": 1}, "c": {"A": 1}}
    assert golden.counts["unanswerable"] == 1
    (tmp_path / "b.csv").write_text("question,answer,answerable\na,A,false\n", encoding="utf-8")
    with pytest.raises(DataError, match="marked unanswerable and has a relevant document"):
        made(tmp_path / "b.csv")


def test_parquet(tmp_path: Path) -> None:
    """The same values as in the other kinds."""
    pq.write_table(pa.table({"question": ["a", "b"], "document": ["A", "B"]}), tmp_path / "a.parquet")
    assert by_text(made(tmp_path / "a.parquet")) == {"a": {"A": 1}, "b": {"B": 1}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("questoin,answer\na,A\n", r"Did you mean 'questoin'\?\nSay .*: --columns question=NAME"),
        ("question,answer,context\na,A,B\n", r"could each be the document\.\nSay .*: --columns document=answer"),
        ("question,answer\na,A\n ,B\n", "line 3: 'question' is empty"),
        ("question,answer\na,\n", "line 2: 'answer' is empty"),
        ("question,answer,grade\na,A,1\na,A,2\n", "line 3: this question and document came before with the grade 1"),
        ("question,answer,question_id\na,A,1\nb,B,1\n", "line 3: the question id '1' came before with another"),
        ("question,answer,doc_id\na,A,1\nb,B,1\n", "line 3: the document id '1' came before with another text"),
        ("question,answer,answerable\na,A,maybe\n", "line 2: 'answerable' must be true or false, not 'maybe'"),
        ("question,answer,answerable\na,A,true\na,,false\n", "line 3: this question came before, and was answerable"),
        ('question,answer,doc_id\na,A,"x\ty"\n', r"line 2: the id 'x\\ty' holds a tab"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """With file and line."""
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        made(tmp_path / "a.csv")


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    """The nearest is named, and what there is."""
    (tmp_path / "a.csv").write_text("Frage,answer\na,A\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"no column 'frage'. Columns: 'Frage', 'answer'. Did you mean 'Frage'"):
        made(tmp_path / "a.csv", question="frage")


def test_parts_by_yaml(tmp_path: Path) -> None:
    """Columns and lists of them; words of the command line win; faults name the file."""
    path = tmp_path / "mapping.yaml"
    path.write_text("question: frage\nnegative: [n1, n2]\n", encoding="utf-8")
    assert columns.parse(["question=q"], PARTS, path) == {"question": ("q",), "negative": ("n1", "n2")}
    for text, said in [
        ("- a", "lines like 'question: frage' are needed"),
        ("question: 3", "'question' must name a column, or be a list of columns, not 3"),
        ("question: [", "not valid YAML"),
        ("question: [a, b]", "'question' takes one column, not 'a', 'b'"),
        ("questoin: a", "'questoin' is no part that a column can play here. Did you mean 'question'?"),
    ]:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=said):
            columns.parse([], PARTS, path)
    with pytest.raises(ConfigError, match="--columns takes part=column"):
        columns.parse(["frage"], PARTS)


def test_documents_that_a_question_excludes(tmp_path: Path) -> None:
    """By the ids of the file, as a list or with semicolons; what isn't there, or is relevant, is told with the line."""
    rows: list[dict[str, Any]] = [
        {"question": "how?", "document": "first", "doc_id": "a", "exclude": ["b", "c"]},
        {"question": "why?", "document": "second", "doc_id": "b", "exclude": " c ; a;"},
        {"question": "who?", "document": "third", "doc_id": "c"},
    ]
    golden = made(write_jsonl(tmp_path / "a.jsonl", rows))
    assert golden.queries is not None
    assert [row.get("exclude") for row in golden.queries] == [["b", "c"], ["c", "a"], None]
    assert not any("exclude_label" in row for row in golden.queries)
    for exclude, said in (("nobody", "the excluded document 'nobody' is not there"), ("c", "is relevant to the same")):
        wrong = write_jsonl(tmp_path / "b.jsonl", [*rows[:2], {**rows[2], "exclude": exclude}])
        with pytest.raises(DataError, match=f"b.jsonl, line 3: .*{said}"):
            made(wrong)
