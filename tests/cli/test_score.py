"""``embeval score`` and ``embeval results export`` as users meet them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.commands import embeval

RUN = "q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\nq1 Q0 c 3 2 t\nq2 Q0 b 1 1 t\nq9 Q0 a 1 1 t\n"
QRELS = "q1 0 b 1\nq2 0 b 1\nq3 0 c 1\n"
FEW = ("--resamples", "100")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run and its judgments."""
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(QRELS)
    return tmp_path


def test_a_table_of_what_was_asked_for(folder: Path) -> None:
    """c ties with b at rank 2 and goes first, so b is third: MRR (1/3 + 1 + 0) / 3 = 0.4444, recall@2 1/3."""
    words = ("score", "a.run", "--qrels", "a.qrels", "--metric", "mrr_at_10", "--metric", "recall_at_2", *FEW)
    done = embeval(*words, cwd=folder)
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "a.run on a (test)" in lines
    assert [line.split()[:2] for line in lines if "_at_" in line][:2] == [
        ["mrr_at_10", "0.4444"],
        ["recall_at_2", "0.3333"],
    ]
    assert "Note: 1 judged query without a ranking counts 0." in lines
    assert "Note: 1 query without judgments is left out." in lines
    assert {"queries_scored 3", "queries_without_ranking 1", "queries_unanswerable not known"} <= set(lines)
    assert not (folder / "results").exists()


def test_options_that_change_the_numbers(folder: Path) -> None:
    """b before c: MRR (1/2 + 1) / 2; one query is left out."""
    words = ("score", "a.run", "--qrels", "a.qrels", "--metric", "mrr_at_10", "--json", *FEW)
    changed = embeval(*words, "--ties", "doc_id_asc", "--missing-queries", "skip", cwd=folder)
    assert changed.json["scores"]["mrr_at_10"]["value"] == 0.75
    assert changed.json["counts"]["queries_scored"] == 2
    assert changed.json["signature"]["protocol"]["ties"] == "doc_id_asc"
    assert (changed.json["id"], changed.json["file"]) == (None, None)
    average = embeval(*words, "--ties", "average", cwd=folder)
    assert average.json["scores"]["mrr_at_10"]["value"] == pytest.approx((5 / 12 + 1) / 3)


def test_stored_exported_and_scored_again(folder: Path) -> None:
    """The same numbers to the digit, in a gzipped file too, and a leaderboard that shows the system by name."""
    words = ("--qrels", "a.qrels", "--cutoffs", "1,3,10", "--json", *FEW)
    first = embeval("score", "a.run", *words, "--name", "mine", cwd=folder)
    assert Path(folder, first.json["file"]).is_file()
    board = embeval("leaderboard", "show", "--json", cwd=folder)
    assert (board.code, '"mine"' in board.out) == (0, True)
    exported = embeval("results", "export", first.json["id"], "--to", "again.run.gz", cwd=folder)
    assert (exported.code, exported.out) == (0, "")
    assert gzip.decompress((folder / "again.run.gz").read_bytes()).startswith(b"q1 Q0 a 1 3 mine\nq1 Q0 c 2 2 mine\n")
    again = embeval("score", "again.run.gz", *words, cwd=folder)
    assert again.json["scores"] == first.json["scores"]
    assert again.json["counts"] == first.json["counts"]


def test_export_to_standard_output(folder: Path) -> None:
    """A run, csv, jsonl: nothing else is there."""
    embeval("score", "a.run", "--qrels", "a.qrels", "--cutoffs", "1,10", "--name", "m", *FEW, cwd=folder)
    run = embeval("results", "export", cwd=folder)
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[0] == "q1 Q0 a 1 3 m"
    table = embeval("results", "export", "--format", "csv", cwd=folder)
    assert table.out.splitlines()[0].startswith("id,ndcg_at_10,ndcg_at_1,")
    objects = embeval("results", "export", "--format", "jsonl", cwd=folder)
    assert embeval("results", "export", "--to", "values.csv", cwd=folder).code == 0
    assert (folder / "values.csv").read_text(encoding="utf-8") == table.out  # the ending says the form
    assert [json.loads(line)["id"] for line in objects.out.splitlines()] == ["q1", "q2", "q3"]


def test_export_does_not_replace_a_file(folder: Path) -> None:
    """Without --force; --json says what was written."""
    embeval("score", "a.run", "--qrels", "a.qrels", "--results", "results", *FEW, cwd=folder)
    refused = embeval("results", "export", "--to", "a.run", cwd=folder)
    assert (refused.code, refused.err) == (
        2,
        "Error: a.run exists. Choose another name, or give --force to replace it.\n",
    )
    assert (folder / "a.run").read_text() == RUN
    done = embeval("results", "export", "--to", "a.run", "--force", "--json", "-q", cwd=folder)
    assert (done.code, done.err) == (0, "")
    assert (done.json["file"], done.json["bytes"]) == ("a.run", (folder / "a.run").stat().st_size)
    both = embeval("results", "export", "--json", cwd=folder)
    assert both.code == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("score a.run", 2, "Say what to score against"),
        ("score none.run --qrels a.qrels", 3, "none.run: no such file."),
        ("score a.run --qrels a.run", 3, "a.run, line 1: 6 columns; this qrels file needs 4"),
        ("score a.qrels --qrels a.qrels", 3, "a.qrels, line 1: 4 columns; this run needs 6"),
        ("score a.run --data none", 3, "none: no such folder."),
        ("score a.run --qrels a.qrels --cutoffs 1,x", 2, "--cutoffs must be whole numbers"),
        ("score a.run --qrels a.qrels --cutoffs 0", 2, "--cutoffs must be whole numbers"),
        ("score a.run --qrels a.qrels --resamples 5", 2, "resamples must be 0 or at least 100"),
        ("score a.run --qrels a.qrels --gains much", 2, "gains"),
        ("score a.run --qrels a.qrels --name x --results a.run", 3, "Can't write a.run"),
        ("results export nope --to x.run", 3, "No stored result fits"),
    ],
)
def test_mistakes(folder: Path, words: str, code: int, message: str) -> None:
    """Their exit code, in one to three lines, and as JSON."""
    done = embeval(*words.split(), cwd=folder)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert len(done.err.splitlines()) <= 3
    as_json = embeval(*words.split(), "--json", cwd=folder)
    assert (as_json.code, as_json.json["error"]["exit_code"]) == (code, code)
