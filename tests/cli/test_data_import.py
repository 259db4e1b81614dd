"""``embeval data import`` and ``embeval data split`` as users meet them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from embeval.cli import data as verb
from embeval.errors import EmbevalError
from tests.support.commands import Done, embeval
from tests.support.data import write_beir, write_jsonl
from tests.support.documents import docx, pdf

PAIRS = "\ufefffrage,antwort,art\r\nWie?,So.,a\r\nÜber was?,Über alles.,b\r\nWarum?,So.,a\r\n"
COLUMNS = ("--columns", "question=frage,document=antwort", "--columns", "label=art")


def refused(words: list[str], code: int, said: str) -> None:
    """What a command raises, in this process; ``main`` turns it into a message and this exit code."""
    done = CliRunner().invoke(verb.app, words)
    assert isinstance(done.exception, EmbevalError), done.output
    assert done.exception.exit_code == code
    assert str(done.exception).startswith(said)


def digests(folder: Path) -> dict[str, str]:
    """Path -> sha256 of every file."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A folder with a csv file of pairs, as a spreadsheet saves it."""
    (tmp_path / "faq.csv").write_bytes(PAIRS.encode("utf-8"))
    return tmp_path


def test_pairs_are_imported_and_evaluated(pairs: Path) -> None:
    """What is said, what is written, and a run on it: each question finds its answer by its words."""
    done = embeval("data", "import", "faq.csv", "--to", "golden/faq", *COLUMNS, cwd=pairs)
    assert (done.code, done.out) == (
        0,
        "golden/faq: 2 documents, 3 queries, 3 judgments (3 relevant) in test.\n",
    )
    assert done.err == "Evaluate on it: embeval run -m MODEL -t retrieval:golden/faq\n"
    run = embeval("run", "-m", "hashing", "-t", "retrieval:golden/faq", "--resamples", "100", "--json", cwd=pairs)
    assert run.code == 0, run.err
    (result,) = [each for each in run.json["results"] if each["subset"] == "all"]
    assert result["scores"]["recall_at_10"]["value"] == 1.0


def test_two_imports_give_equal_bytes(pairs: Path) -> None:
    """Of pairs by words and by a mapping file, and with --overwrite in the same place."""
    (pairs / "mapping.yaml").write_text("question: frage\ndocument: antwort\nlabel: [art]\n", encoding="utf-8")
    assert embeval("data", "import", "faq.csv", "--to", "one", *COLUMNS, cwd=pairs).code == 0
    assert embeval("data", "import", "faq.csv", "--to", "two", "--mapping", "mapping.yaml", cwd=pairs).code == 0
    first = digests(pairs / "one")
    assert first == digests(pairs / "two")
    again = embeval("data", "import", "faq.csv", "--to", "one", *COLUMNS, cwd=pairs)
    assert again.code == 2
    assert again.err.startswith("Error: one exists and is not empty. Choose another folder, or give --overwrite")
    assert embeval("data", "import", "faq.csv", "--to", "one", *COLUMNS, "--overwrite", cwd=pairs).code == 0
    assert digests(pairs / "one") == first


def test_a_beir_folder_and_its_datasheet(tmp_path: Path) -> None:
    """As JSON on stdout: counts, and the sha256 of what was read."""
    source = write_beir(
        tmp_path / "beir", corpus={"d1": "x", "d2": "y"}, queries={"q1": "x?"}, qrels={"q1": {"d1": 2, "d2": 0}}
    )
    done = embeval("data", "import", "beir", "--to", "copy", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.json["counts"] == {"documents": 2, "queries": 1, "unanswerable": 0, "judgments": 2, "relevant": 1}
    assert done.json["source"] == {"kind": "beir", "name": "beir"}
    assert {each["name"]: each["sha256"] for each in done.json["inputs"]} == digests(source)
    assert digests(tmp_path / "copy")["qrels/test.tsv"] == digests(source)["qrels/test.tsv"]


def test_documents_with_questions(tmp_path: Path) -> None:
    """Word, PDF and text; passages by sentence; then nothing is written where a document is broken."""
    docx(tmp_path / "docs" / "a.docx")
    (tmp_path / "docs" / "b.pdf").write_bytes(pdf("Keys rotate every week. Ask the owner."))
    write_jsonl(
        tmp_path / "q.jsonl",
        [{"question": "When do keys rotate?", "quote": "every week"}, {"question": "Why?", "answerable": False}],
    )
    words = ("data", "import", "docs", "--chunker", "sentence", "--chunk-size", "4")
    corpus = embeval(*words, "--to", "corpus", cwd=tmp_path)
    assert corpus.code == 0, corpus.err
    assert corpus.out == "corpus: 6 documents, no questions.\n"
    assert "Next: write questions" in corpus.err
    assert not (tmp_path / "corpus" / "queries.jsonl").exists()
    done = embeval(*words, "--questions", "q.jsonl", "--to", "set", "--json", cwd=tmp_path)
    assert done.json["counts"] == {"documents": 6, "queries": 2, "unanswerable": 1, "judgments": 1, "relevant": 1}
    assert (tmp_path / "set" / "qrels" / "test.tsv").read_text(encoding="utf-8").endswith("\tb.pdf#1\t1\n")
    (tmp_path / "docs" / "c.pdf").write_bytes(b"broken")
    broken = embeval(*words, "--questions", "q.jsonl", "--to", "other", cwd=tmp_path)
    assert (broken.code, broken.out) == (3, "")
    assert "docs/c.pdf: not a readable PDF file" in broken.err
    assert not (tmp_path / "other").exists()
    skipped = embeval(*words, "--questions", "q.jsonl", "--to", "other", "--skip-unreadable", cwd=tmp_path)
    assert skipped.code == 0
    assert "Note: 1 document skipped: c.pdf: not a readable PDF file" in skipped.err


def test_a_trec_collection(tmp_path: Path) -> None:
    """Three files by three options."""
    (tmp_path / "d.sgml").write_text("<DOC><DOCNO>D1</DOCNO>text</DOC>", encoding="utf-8")
    (tmp_path / "t.tsv").write_text("1\tone?\n", encoding="utf-8")
    (tmp_path / "q.txt").write_text("1 0 D1 1\n", encoding="utf-8")
    words = ("data", "import", "--documents", "d.sgml", "--topics", "t.tsv", "--to", "set")
    assert embeval(*words, cwd=tmp_path).err == "Error: A TREC collection also needs --qrels.\n"
    done = embeval(*words, "--qrels", "q.txt", "--split", "dev", cwd=tmp_path)
    assert done.out == "set: 1 documents, 1 queries, 1 judgments (1 relevant) in dev.\n"
    assert done.err == "Evaluate on it: embeval run -m MODEL -t retrieval:set,split=dev\n"


def test_a_data_set_of_the_hub(tmp_path: Path) -> None:
    """A local folder that the library loads."""
    write_jsonl(tmp_path / "pairs" / "test.jsonl", [{"question": "a?", "context": "A"}])
    done = embeval("data", "import", "hf:./pairs", "--to", "set", cwd=tmp_path, env={"HF_HOME": str(tmp_path / "hf")})
    assert done.code == 0, done.err
    assert done.out == "set: 1 documents, 1 queries, 1 judgments (1 relevant) in test.\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("faq.csv", 2, "Say where to write it: --to FOLDER."),
        ("--to x", 2, "Say what to import: a folder, a file or hf:NAME."),
        ("faq.csv --to x", 3, "faq.csv, line 1: there is no column 'question'. Columns: 'frage', 'antwort', 'art'."),
        ("nope.csv --to x", 3, "nope.csv: no such file."),
        ("nope --to x", 3, "nope: no such file."),
        ("faq.csv --to x --chunker tokens", 2, "--chunker goes with a folder of documents, not with a file of pairs."),
        ("faq.csv --to x --qrels q", 2, "A TREC collection also needs --documents."),
        (". --to x --chunk-size 3", 2, "--chunk-size needs a --chunker: tokens, heading or sentence"),
        (". --to x --chunker words", 2, "--chunker must be none, tokens, heading, sentence, not 'words'."),
        (". --to x --chunker tokens --overlap 200", 2, "--overlap must be smaller than --chunk-size, not 200 of 200."),
        (". --to x --judge quote", 2, "--judge needs --questions."),
        (". --to x --encoding nope", 2, "--encoding: there is no encoding 'nope'."),
        ("faq.csv --to x --split a/b", 2, "--split: 'a/b' must be a plain name"),
        ("hf:no/such --to x", 3, "hf:no/such can't be loaded"),
    ],
)
def test_imports_that_are_refused(
    pairs: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: int, said: str
) -> None:
    """One message, no folder."""
    monkeypatch.chdir(pairs)
    refused(["import", *words.split()], code, said)
    assert not (pairs / "x").exists()


def split(folder: Path, *words: str) -> Done:
    """``embeval data split`` of the set in a folder."""
    return embeval("data", "split", "set", *words, cwd=folder)


def test_split(tmp_path: Path) -> None:
    """A table for people, JSON for programs, the same files for both; then refused."""
    queries = {f"q{number}": f"question of its own{number} word{number}" for number in range(10)}
    write_beir(tmp_path / "set", corpus={"d": "x"}, queries=queries, qrels={query: {"d": 1} for query in queries})
    done = split(tmp_path, "--into", "dev=0.3,final=0.7", "--json")
    assert done.code == 0, done.err
    assert [(part["name"], part["queries"]) for part in done.json["parts"]] == [("dev", 3), ("final", 7)]
    first = digests(tmp_path / "set")
    assert split(tmp_path, "--into", "dev=0.3,final=0.7").code == 2
    shown = split(tmp_path, "--into", "dev=0.3,final=0.7", "--overwrite")
    assert [line.split() for line in shown.out.splitlines() if line.split()[:1] in (["dev"], ["final"])] == [
        ["dev", "0.3", "3", "0", "3"],
        ["final", "0.7", "7", "0", "7"],
    ]
    assert digests(tmp_path / "set") == first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "Say which parts: --into dev=0.5,test=0.5."),
        ("--into dev=0.5,dev=0.5", "--into names 'dev' twice."),
        ("--into dev=half,test=0.5", "--into takes part=share with a share between 0 and 1, not 'dev=half'."),
        ("--into ../x=0.5,test=0.5", "--into: '../x' must be a plain name"),
        ("--into dev=0.5,x=0.4", "The shares of --into must add up to 1, not 0.9."),
    ],
)
def test_splits_that_are_refused(tmp_path: Path, words: str, said: str) -> None:
    """As usage errors."""
    write_beir(tmp_path / "set", corpus={"d": "x"}, queries={"q": "x?"}, qrels={"q": {"d": 1}})
    refused(["split", str(tmp_path / "set"), *words.split()], 2, said)
