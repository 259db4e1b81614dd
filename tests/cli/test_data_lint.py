"""``embeval data lint`` and ``overlap`` as users meet them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import embeval
from tests.support.golden import Golden


def faulty(folder: Path) -> Path:
    """One error, one warning, one note."""
    golden = Golden()
    golden.corpus.append({"_id": "d5", "text": ""})
    golden.queries.append({"_id": "q4", "text": "Who judges this one, and when?"})
    golden.qrels.append("q1\td1\t1")
    return golden.write(folder)


def test_for_people(tmp_path: Path) -> None:
    """Each finding with severity, code, number, place and advice; the counts last. Exit code 3."""
    done = embeval("data", "lint", str(faulty(tmp_path / "set")), "--quiet", cwd=tmp_path)
    assert (done.code, done.err) == (3, "")
    assert done.out.splitlines() == [
        "error  judged-twice  1",
        "  A pair is judged twice, with the same grade.",
        "    qrels/test.tsv:6  query 'q1', document 'd1', in line 2 too.",
        "  → --fix drops the second.",
        "",
        "warning  empty-document  1",
        "  A document has no text: it gets a zero vector and is never found.",
        "    corpus.jsonl:5  document 'd5'.",
        "  → Write or remove it.",
        "",
        "note  unjudged-query  1",
        "  Queries without any judgment are left out of every mean.",
        "    queries.jsonl:4  query 'q4'.",
        "  → Judge them, or mark those that the corpus has no answer to with 'answerable: false'.",
        "",
        "1 error, 1 warning, 1 note; in 5 documents, 4 queries, 5 judgments of test.",
    ]


def test_as_json(tmp_path: Path) -> None:
    """The same every time."""
    folder = faulty(tmp_path / "set")
    done = embeval("data", "lint", str(folder), "--json", "--quiet", cwd=tmp_path)
    assert done.code == 3
    assert [each["code"] for each in done.json["findings"]] == ["judged-twice", "empty-document", "unjudged-query"]
    assert done.json["summary"]["passes"] is False
    assert done.out == embeval("data", "lint", str(folder), "--json", cwd=tmp_path).out


def test_fix_and_strict(tmp_path: Path) -> None:
    """Mended, only a warning is left, which --strict doesn't take."""
    folder = faulty(tmp_path / "set")
    done = embeval("data", "lint", str(folder), "--fix", cwd=tmp_path)
    assert done.code == 0, done.out
    first = done.out.splitlines()[0]
    assert first == "qrels/test.tsv:6: second judgment of query 'q1', document 'd1' dropped"
    assert (folder / "qrels" / "test.tsv.orig").is_file()
    done = embeval("data", "lint", str(folder), "--fix", "--json", "--strict", cwd=tmp_path)
    assert (done.code, done.json["changes"], done.json["summary"]["passes"]) == (3, [], False)


def test_what_is_missing_from_a_published_set(tmp_path: Path) -> None:
    """The ceiling is told; with --public it is not a stop."""
    golden = Golden()
    golden.qrels += [f"q1\tghost{n}\t1" for n in range(7)]
    folder = golden.write(tmp_path / "set")
    done = embeval("data", "lint", str(folder), cwd=tmp_path)
    assert done.code == 3
    assert "and 2 more (--max-shown, --json)" in done.out
    done = embeval("data", "lint", str(folder), "--public", "--max-shown", "1", cwd=tmp_path)
    assert done.code == 0
    assert "and 6 more (--max-shown, --json)" in done.out
    # One query of three finds 1 of 8: recall 1/8, nDCG 1/3.9535, the sum of 1/log2 of 2 to 9.
    assert "ndcg_at_10 0.7510 (complete: 1.0000), recall_at_10 0.7083 (complete: 1.0000)" in done.out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["lint", "nowhere"], 3, "no such folder"),
        (["lint", "set", "--merge-duplicates"], 2, "needs --fix"),
        (["lint", "set", "--split", "dev"], 3, "Splits there: test."),
        (["overlap", "set", "--training", "nowhere"], 3, "nowhere"),
        (["overlap", "set", "--training", "set", "--texts", "answers"], 2, "queries, positives, documents or all"),
    ],
)
def test_mistakes(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    """Told without a traceback."""
    Golden().write(tmp_path / "set")
    done = embeval("data", *words, cwd=tmp_path)
    assert done.code == code
    assert message in done.err
    assert "Traceback" not in done.err


def test_overlap(tmp_path: Path) -> None:
    """A table, both places, and exit code 1 over the bound."""
    folder = Golden().write(tmp_path / "set")
    (tmp_path / "training.txt").write_text("Nothing.\nwhen does the backup run\n", encoding="utf-8")
    words = ("data", "overlap", str(folder), "--training", "training.txt")
    done = embeval(*words, cwd=tmp_path)
    assert done.code == 0, done.err
    assert "exact  queries 'q1'" in done.out
    assert "queries.jsonl:1  When does the backup run?" in done.out
    assert "training.txt:2  when does the backup run" in done.out
    assert "Compared with 2 texts in 1 file." in done.err
    done = embeval(*words, "--json", "--fail-over", "0.3", cwd=tmp_path)
    assert done.code == 1
    assert done.json["shares"]["queries"] == {"n": 3, "contaminated": 1, "touched": 0, "short": 2, "share": 1 / 3}
    assert [(hit["id"], hit["training_line"]) for hit in done.json["hits"]] == [("q1", 2)]
    assert embeval(*words, "--fail-over", "0.34", cwd=tmp_path).code == 0
