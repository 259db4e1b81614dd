"""Golden sets from TREC collections."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from embeval.data import from_trec
from embeval.data.beir import Unreachable
from embeval.data.golden import GoldenSet
from embeval.errors import DataError

DOCUMENTS = """<DOC>
<DOCNO> AP-1 </DOCNO>
<HEAD>A &amp; B</HEAD>
<TEXT>
First   line
second &lt;line&gt;
</TEXT>
<BYLINE>not in the text</BYLINE>
<TEXT>more</TEXT>
</DOC>
<doc><docno>AP-2</docno> bare <b>words</b> here</doc>
"""
TOPICS = """<top>
<num> Number: 301
<title> Topic: International  crime

<desc> Description:
What is it?
<narr> Narrative: long
</top>
<top><num>302</num><title>Über alles</title></top>
"""
QRELS = "301 0 AP-1 1\r\n301 0 AP-2 0\n302\t0\tAP-2\t2\n"


def collection(folder: Path, documents: str = DOCUMENTS, topics: str = TOPICS, qrels: str = QRELS) -> list[Path]:
    """Three files."""
    paths = [folder / name for name in ("docs.sgml", "topics.txt", "qrels.txt")]
    for path, text in zip(paths, (documents, topics, qrels), strict=True):
        path.write_bytes(text.encode("utf-8"))
    return paths


def made(paths: list[Path], **options: Any) -> GoldenSet:
    """The set of three files."""
    documents, topics, qrels = paths
    return from_trec.read(documents, topics, qrels, **{"given": {}, "split": "test", **options})


def test_a_collection(tmp_path: Path) -> None:
    """Marks and entities are resolved; the text is that of <TEXT>, else all there is."""
    golden = made(collection(tmp_path))
    assert golden.documents == [
        {"_id": "AP-1", "title": "A & B", "text": "First line\nsecond <line>\nmore"},
        {"_id": "AP-2", "title": "", "text": "bare words here"},
    ]
    assert golden.queries == [{"_id": "301", "text": "International crime"}, {"_id": "302", "text": "Über alles"}]
    assert golden.qrels == {"test": {"301": {"AP-1": 1, "AP-2": 0}, "302": {"AP-2": 2}}}
    assert [(each.name, each.n_bytes) for each in golden.inputs] == [
        ("docs.sgml", len(DOCUMENTS)),
        ("topics.txt", len(TOPICS.encode())),
        ("qrels.txt", len(QRELS)),
    ]


def test_fields_of_topics(tmp_path: Path) -> None:
    """Joined in the order asked for, where a topic has them."""
    golden = made(collection(tmp_path), topic_fields=("title", "desc"))
    assert golden.queries is not None
    assert [row["text"] for row in golden.queries] == ["International crime What is it?", "Über alles"]
    with pytest.raises(DataError, match=r"topics\.txt, line 9: topic '302' has no desc\."):
        made(collection(tmp_path), topic_fields=("desc",))


def test_tables_and_lines(tmp_path: Path) -> None:
    """Documents as gzipped jsonl with columns of other names, topics as lines, with and without a heading."""
    paths = collection(tmp_path, topics="301\tone?\r\n302\tzwei?\n")
    paths[0] = tmp_path / "docs.jsonl.gz"
    paths[0].write_bytes(gzip.compress(b'{"docno": "AP-1", "inhalt": "x"}\n{"docno": "AP-2", "inhalt": "y"}\n'))
    golden = made(paths, given={"document": ("inhalt",)})
    assert [(row["_id"], row["text"]) for row in golden.documents] == [("AP-1", "x"), ("AP-2", "y")]
    assert golden.queries == [{"_id": "301", "text": "one?"}, {"_id": "302", "text": "zwei?"}]
    paths[1].write_text("qid\ttext\n301\tone?\n302\tzwei?\n", encoding="utf-8")
    assert made(paths, given={"document": ("inhalt",)}).queries == golden.queries
    paths[1] = tmp_path / "topics.csv"
    paths[1].write_text("qid,query\n301,one?\n302,zwei?\n", encoding="utf-8")
    assert made(paths, given={"document": ("inhalt",)}).queries == golden.queries


def test_documents_that_are_missing(tmp_path: Path) -> None:
    """Refused, or kept and told."""
    paths = collection(tmp_path, qrels=QRELS + "302 0 AP-9 1\n")
    with pytest.raises(DataError, match=r"1 relevant document not in .*docs\.sgml, which no model can find: 'AP-9'"):
        made(paths)
    golden = made(paths, unreachable=Unreachable.KEEP)
    assert golden.qrels["test"]["302"] == {"AP-2": 2, "AP-9": 1}
    assert golden.notes[0].startswith("1 relevant document not in the corpus")


@pytest.mark.parametrize(
    ("which", "text", "said"),
    [
        ("documents", "<DOC>\n</DOC>", r"docs\.sgml, line 1: this <DOC> has no <DOCNO>"),
        ("documents", DOCUMENTS + "<DOC><DOCNO>AP-1</DOCNO></DOC>", r"line 12: the id 'AP-1' appears twice"),
        ("documents", "nothing", "there is no <DOC> in it"),
        ("topics", "<top><title>x</top>", "line 1: this <top> has no <num>"),
        ("topics", "301 one", "line 1: a topic is an id, a tab and a text"),
        ("topics", "301\ta\n301\tb\n", "line 2: the id '301' appears twice"),
        ("topics", "301\ta\n", r"qrels\.txt, line 3: 1 judged topic not in .*topics\.txt: '302'"),
        ("qrels", "301 AP-1 1\n", "line 1: a qrels line has topic, iteration, document and grade, not 3 words"),
        ("qrels", "301 0 AP-1 high\n", "line 1: relevance must be a whole number up to 1000, not 'high'"),
        ("qrels", "301 0 AP-1 1\n301 0 AP-1 1\n", "line 2: topic '301', document 'AP-1' is judged twice"),
        ("qrels", "\n", "there are no judgments"),
    ],
)
def test_what_is_refused(tmp_path: Path, which: str, text: str, said: str) -> None:
    """With file and line."""
    with pytest.raises(DataError, match=said):
        made(collection(tmp_path, **{which: text}))


def test_encoding(tmp_path: Path) -> None:
    """Old collections are latin-1; that must be said."""
    paths = collection(tmp_path)
    paths[0].write_bytes(DOCUMENTS.replace("more", "für").encode("latin-1"))
    with pytest.raises(DataError, match=r"docs\.sgml, line 9: not UTF-8 text \(byte 0xfc at \d+\)"):
        made(paths)
    assert made(paths, encoding="latin-1").documents[0]["text"].endswith("für")
