"""``results why``, ``results show --by all`` and ``search`` as processes of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import Done, command, embeval, environment
from tests.support.data import write_beir, write_jsonl

EVIL = "red \x1b[31mfox\x07 \u202e[bold]evil[/bold]"
CORPUS = {
    "good": "the quick red fox runs",
    "evil\x1b[2J": EVIL,
    "kiln": "lime kilns of the northern valley",
    "dog": "one lazy dog sleeps",
}
QUERIES = {"q1": "quick red fox", "q2": "lazy dog", "q3\x1b[1m": "lime \x1b[5mkilns"}
QRELS = {"q1": {"good": 1}, "q2": {"kiln": 2, "dog": 0}, "q3\x1b[1m": {"dog": 1}}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A golden set with texts and ids that would steer a terminal, and the result of the baseline on it."""
    folder = tmp_path_factory.mktemp("project")
    write_beir(folder / "golden", corpus=CORPUS, queries=QUERIES, qrels=QRELS)
    done = embeval("run", "-m", "hashing", "-t", "golden", "--resamples", "100", "-q", cwd=folder)
    assert done.code == 0
    return folder


def refuse_controls(done: Done) -> None:
    """Nothing but letters and line ends on either stream."""
    for character in done.out + done.err:
        assert character == "\n" or character.isprintable(), repr(character)


def test_summary_and_queries(project: Path) -> None:
    """Counts, classes with their meaning, then each query with ranks, hits and what was missed."""
    done = embeval("results", "why", "golden", "--hits", "1", cwd=project)
    assert (done.code, done.err) == (0, "")
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert lines[0] == "hashing on golden (test)"
    assert lines[1].startswith("ndcg_at_10 0.")
    assert lines[1].endswith("2 of 3 queries could have better hits in the first 10.")
    assert any(line.startswith(" lexical_gap ") and line.endswith("only meaning could find it.") for line in lines)
    assert "Not looked at: truncated_positive (add --limits MODEL) · bm25_finds_it (add --bm25)" in lines
    assert "q1" not in done.out
    at = next(place for place, line in enumerate(lines) if line.startswith("q2 "))
    assert "lexical_gap" in lines[at]
    assert lines[at + 1] == "  lazy dog"
    assert lines[at + 2].startswith("  1 positive: kiln at ")
    assert lines[at + 3].split()[:3] == ["1", "judged", "0"]
    assert lines[at + 4].split()[1:] == ["missed", "kiln", *CORPUS["kiln"].split()]


def test_nothing_in_a_text_or_an_id_reaches_the_terminal(project: Path) -> None:
    """Escape sequences and marks that turn the direction are made visible; markup is shown as it is."""
    done = embeval("results", "why", "golden", "--hits", "4", cwd=project)
    refuse_controls(done)
    assert "q3␛[1m" in done.out
    assert "lime ␛[5mkilns" in done.out
    assert "evil␛[2J" in done.out
    assert "red ␛[31mfox␇ \ufffd[bold]evil[/bold]" in done.out
    shown = embeval("search", "red \x1b[31m fox", "-c", "golden", "-m", "hashing", "-q", cwd=project)
    refuse_controls(shown)
    assert "red ␛[31mfox␇ \ufffd[bold]evil[/bold]" in shown.out


def test_json_holds_the_same(project: Path) -> None:
    """Counts per class, null with a remedy where one was not looked at, and the queries that are shown."""
    done = embeval("results", "why", "golden", "--worst", "1", "--json", cwd=project)
    found = done.json
    assert (found["task"], found["metric"], found["k"]) == ("golden", "ndcg_at_10", 10)
    assert (found["queries"], found["failing"]) == (3, 2)
    classes = {each["class"]: each for each in found["classes"]}
    assert classes["lexical_gap"]["queries"] == 2
    assert (classes["bm25_finds_it"]["queries"], classes["bm25_finds_it"]["needs"]) == (None, "--bm25")
    (query,) = found["worst"]
    assert query["value"] < 1.0
    assert query["hits"][0]["rank"] == 1
    assert query["positives"][0]["rank"] > 1
    assert len(query["hits"]) == 3


def test_one_query_and_one_class(project: Path) -> None:
    """A query that doesn't fail is shown when it is asked for; unknown names exit with 2."""
    one = embeval("results", "why", "golden", "--query", "q1", cwd=project)
    assert one.out.splitlines()[1].split() == ["q1", "ndcg_at_10", "1.0000", "does", "not", "fail"]
    few = embeval("results", "why", "golden", "--class", "wrong_order", "--worst", "0", cwd=project)
    assert (few.code, few.err) == (0, "")
    for words in (["--query", "q9"], ["--class", "nope"], ["--class", "bm25_finds_it"], ["--metric", "nope"]):
        assert embeval("results", "why", "golden", *words, cwd=project).code == 2
    assert embeval("results", "why", "golden", "--limits", "hashing:x", cwd=project).code == 2
    known = embeval("results", "why", "golden", "--limits", "hashing", "--json", cwd=project).json
    assert next(each for each in known["classes"] if each["class"] == "truncated_positive")["queries"] == 0


def test_data_that_changed_is_refused(project: Path, tmp_path: Path) -> None:
    """With exit code 3, and what to do."""
    write_beir(tmp_path / "other", corpus={**CORPUS, "dog": "another"}, queries=QUERIES, qrels=QRELS)
    done = embeval("results", "why", "golden", "--golden", str(tmp_path / "other"), cwd=project)
    assert (done.code, done.out) == (3, "")
    assert "not the data that the result" in done.err


def test_every_slice(tmp_path: Path) -> None:
    """--by all: slice and label, worst first; --json holds them too."""
    embeval("run", "-m", "hashing", "-t", "demo-docs", "--resamples", "100", "-q", cwd=tmp_path)
    done = embeval("results", "show", "demo-docs", "--by", "all", cwd=tmp_path)
    rows = [line.split() for line in done.out.splitlines() if line.split()]
    assert rows[1][:4] == ["Slice", "Label", "Items", "ndcg_at_10"]
    assert ["kind", "paraphrase", "17", "0.1253"] in [row[:4] for row in rows]
    values = embeval("results", "show", "demo-docs", "--by", "all", "--json", cwd=tmp_path).json["by"]
    large = [each["value"] for each in values if each["n_items"] >= 5]
    assert large == sorted(large)
    assert [each["n_items"] >= 5 for each in values] == [True] * len(large) + [False] * (len(values) - len(large))
    assert {"slice": "kind", "label": "paraphrase"}.items() <= values[0].items()


# --- search -----------------------------------------------------------------------------------------------------------


def test_search_of_several_models(project: Path) -> None:
    """A table each; beside each hit its rank in the other."""
    done = embeval(
        *("search", "quick red fox", "-c", "golden", "-m", "hashing", "-m", "hashing:b,dim=64", "-k", "2", "-q"),
        cwd=project,
    )
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines() if line.split()]
    assert lines[0][:3] == ["hashing:", "2", "hits"]
    assert lines[1] == ["Rank", "in", "b", "(dim=64)", "Score", "Document", "Text"]
    assert lines[3][:2] == ["1", "1"]
    assert lines[3][3:] == ["good", *CORPUS["good"].split()]


def test_search_as_json(project: Path) -> None:
    """One value: a list with an answer per model."""
    done = embeval("search", "quick red fox", "-c", "golden/corpus.jsonl", "-m", "hashing", "--json", "-q", cwd=project)
    (answer,) = done.json
    assert (answer["system"], answer["query"]) == ("hashing", "quick red fox")
    assert [hit["rank"] for hit in answer["hits"]] == [1, 2, 3, 4]
    assert answer["hits"][0]["id"] == "good"
    assert answer["hits"][0]["text"] == CORPUS["good"]


def test_search_reads_queries_to_the_end(project: Path) -> None:
    """One a line, blank ones left out; the time of each on stderr, and with --json one list."""
    words = ("search", "-i", "-c", "golden", "-m", "hashing", "-k", "1")
    lines = "quick red fox\n\n  lime kilns\nlast"
    run = subprocess.run(
        command(*words), input=lines, cwd=project, env=environment(), capture_output=True, text=True, check=True
    )
    assert run.stdout.count("hashing: 1 hit in ") == 3
    assert run.stderr.count("hashing: ") == 3
    assert run.stderr.count(" ms\n") == 3
    as_json = subprocess.run(
        command(*words, "--json", "-q"),
        input=lines,
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(as_json.stdout)
    assert [each["query"] for each in answers] == ["quick red fox", "lime kilns", "last"]
    assert [each["hits"][0]["id"] for each in answers[:2]] == ["good", "kiln"]
    assert as_json.stderr == ""


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["fox"], 2, "--corpus"),
        (["-c", "golden"], 2, "Give one query, or --interactive"),
        (["fox", "-i", "-c", "golden"], 2, "Give one query, or --interactive"),
        (["fox", "-c", "none"], 3, "no such file"),
        ([" ", "-c", "golden", "-m", "hashing"], 2, "The query is empty"),
        (["fox", "-c", "golden", "-m", "hashing", "--index", "nope"], 2, "nope"),
        (["fox", "-c", "golden", "-m", "hashing", "--rerank", "x,nope=1"], 2, "nope"),
    ],
)
def test_search_says_what_is_wrong(project: Path, words: list[str], code: int, message: str) -> None:
    """A line on stderr, nothing on stdout."""
    done = embeval("search", *words, cwd=project)
    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_search_of_a_file_of_other_documents(tmp_path: Path) -> None:
    """Titles stand on a line of their own."""
    write_jsonl(tmp_path / "docs.jsonl", [{"id": 7, "title": "On foxes", "text": "They run."}])
    done = embeval("search", "foxes", "-c", "docs.jsonl", "-m", "hashing", "-q", cwd=tmp_path)
    lines = [line.split() for line in done.out.splitlines() if line.split()]
    assert lines[-2][2:] == ["7", "On", "foxes"]
    assert lines[-1] == ["They", "run."]


def test_search_reads_on_after_a_line_that_is_no_text(project: Path) -> None:
    """Bytes that are not UTF-8 become U+FFFD, under a locale that is strict with them too."""
    words = ("search", "-i", "-c", "golden", "-m", "hashing", "-k", "1", "-q")
    strict = {**environment(), "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(command(*words), input=b"\xff\xfe\nfox\n", cwd=project, env=strict, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"fault" not in done.stderr
