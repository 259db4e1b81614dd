"""Candidates from files: the three forms say the same, and what is wrong is told with file and line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from embeval.data import reranking
from embeval.data.reranking import Candidates, RerankingColumns
from embeval.errors import DataError
from tests.support.data import write_beir, write_jsonl

ROWS: list[dict[str, Any]] = [
    {"query_id": "q1", "query": "colour?", "positive": ["red"], "negative": ["one", "two"], "kind": "a"},
    {"query_id": "q2", "query": "number?", "positive": ["one", "two"], "negative": ["red"], "kind": "a"},
    {"query_id": "q3", "query": "none?", "positive": [], "negative": ["one"], "kind": "b"},
    {"query_id": "q4", "query": "any?", "positive": ["two"], "negative": [], "kind": "b"},
]


def told(found: Candidates) -> dict[str, dict[str, int]]:
    """Query text -> candidate text -> grade."""
    return {
        found.queries[query]: {found.documents[doc]: found.grades[query].get(doc, 0) for doc in docs}
        for query, docs in found.given.items()
    }


EXPECTED = {
    "colour?": {"red": 1, "one": 0, "two": 0},
    "number?": {"one": 1, "two": 1, "red": 0},
    "none?": {"one": 0},
    "any?": {"two": 1},
}


def test_a_row_per_query(tmp_path: Path) -> None:
    """Lists of texts; a text that several queries have is one document; labels are kept."""
    write_jsonl(tmp_path / "test.jsonl", ROWS)
    found = reranking.load(tmp_path / "test.jsonl", "test")
    assert told(found) == EXPECTED
    assert sorted(found.documents.values()) == ["one", "red", "two"]
    assert list(found.queries) == ["q1", "q2", "q3", "q4"]
    assert found.labels == {"kind": {"q1": "a", "q2": "a", "q3": "b", "q4": "b"}}


def test_ids_don_t_follow_the_order_of_the_file(tmp_path: Path) -> None:
    """Ties are broken by the id, and in files the relevant texts come first."""
    write_jsonl(tmp_path / "one.jsonl", ROWS)
    write_jsonl(tmp_path / "two.jsonl", [dict(row, negative=row["negative"][::-1]) for row in ROWS[::-1]])
    one, two = (reranking.load(tmp_path / name, "test") for name in ("one.jsonl", "two.jsonl"))
    assert {text: doc for doc, text in one.documents.items()} == {text: doc for doc, text in two.documents.items()}


@pytest.mark.parametrize("ids", [True, False])
def test_a_row_per_candidate(tmp_path: Path, ids: bool) -> None:
    """For csv; without ids, rows of the same text belong together."""
    lines = ["query_id,query,document,score"] if ids else ["query,document,score"]
    for row in ROWS:
        for document, grade in [*((each, 1) for each in row["positive"]), *((each, 0) for each in row["negative"])]:
            lines.append(",".join([row["query_id"]] * ids + [row["query"], document, str(grade)]))
    (tmp_path / "test.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert told(reranking.load(tmp_path / "test.csv", "test")) == EXPECTED


def test_a_folder_with_candidates(tmp_path: Path) -> None:
    """Corpus, queries and qrels as BEIR has them, and ``top_ranked.jsonl`` as mteb's data sets have it."""
    write_beir(
        tmp_path,
        corpus={"d1": "red", "d2": "one", "d3": "two"},
        queries={"q1": "colour?", "q2": "number?"},
        qrels={"q1": {"d1": 1}, "q2": {"d2": 1, "d3": 1}},
    )
    with pytest.raises(DataError, match=r"there is no top_ranked\.jsonl"):
        reranking.load(tmp_path, "test")
    rows = [{"query-id": "q1", "corpus-ids": ["d1", "d2", "d3"]}, {"query-id": "q2", "corpus-ids": ["d2", "d3", "d1"]}]
    write_jsonl(tmp_path / "top_ranked.jsonl", rows)
    assert told(reranking.load(tmp_path, "test")) == {name: EXPECTED[name] for name in ("colour?", "number?")}
    write_jsonl(tmp_path / "top_ranked.jsonl", rows[:1])
    with pytest.raises(DataError, match="no candidates for 1 judged queries, such as 'q2'"):
        reranking.load(tmp_path, "test")
    write_jsonl(tmp_path / "top_ranked.jsonl", [{"query-id": "q1", "corpus-ids": ["d9"]}])
    with pytest.raises(DataError, match=r"top_ranked\.jsonl, line 1: the candidate 'd9' is not in the corpus"):
        reranking.load(tmp_path, "test")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": "  "}, "line 2: 'query' is empty"),
        ({"query": None}, "line 2: 'query' must be text"),
        ({"positive": "one"}, "line 2: 'positive' must be a list of texts"),
        ({"positive": [1]}, "line 2: 'positive' must be a list of texts"),
        ({"positive": [], "negative": []}, "line 2: the query 'q2' has no candidates"),
        ({"query_id": "q1"}, "line 2: the query 'q1' stands already in line 1"),
    ],
)
def test_bad_rows_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """With file and line."""
    write_jsonl(tmp_path / "test.jsonl", [ROWS[0], {**ROWS[1], **change}])
    with pytest.raises(DataError, match=f"test.jsonl, {message}"):
        reranking.load(tmp_path / "test.jsonl", "test")


def test_bad_grades_are_refused(tmp_path: Path) -> None:
    """A half, a text, and two texts of one id."""
    for rows, message in (
        ([{"query": "a", "document": "b", "score": 0.5}], "'score' must be a whole number up to 1000, not 0.5"),
        ([{"query": "a", "document": "b", "score": "x"}], "'score' must be a number"),
        (
            [{"query_id": 1, "query": text, "document": "b", "score": 1} for text in "ac"],
            "line 2: the query '1' stands already in line 1 with another text",
        ),
    ):
        (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
        with pytest.raises(DataError, match=message):
            reranking.load(tmp_path / "test.jsonl", "test")


def test_a_candidate_that_comes_twice_counts_once(tmp_path: Path) -> None:
    """At its best grade, with the line of a contradiction; as in SelQA, where a sentence can stand twice on a page."""
    rows = [ROWS[0], {"query": "b", "positive": ["x", "x"], "negative": ["x", "y", "y"]}]
    write_jsonl(tmp_path / "test.jsonl", [{**row, "query_id": str(place)} for place, row in enumerate(rows)])
    found = reranking.load(tmp_path / "test.jsonl", "test")
    assert told(found)["b"] == {"x": 1, "y": 0}
    assert found.contradictions == (2,)


def test_other_names_of_columns(tmp_path: Path) -> None:
    """As the options say."""
    write_jsonl(tmp_path / "test.jsonl", [{"q": "colour?", "good": ["red"], "bad": ["one", "two"]}])
    columns = RerankingColumns(query="q", positive="good", negative="bad")
    assert told(reranking.load(tmp_path / "test.jsonl", "test", columns)) == {"colour?": EXPECTED["colour?"]}


def test_lists_in_a_csv_file_are_json(tmp_path: Path) -> None:
    """The same candidates as those of jsonl; a cell that only looks like a list is told."""
    cells = [[row["query"], json.dumps(row["positive"]), json.dumps(row["negative"])] for row in ROWS]
    with (tmp_path / "test.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["query", "positive", "negative"], *cells])
    assert told(reranking.load(tmp_path / "test.csv", "test")) == EXPECTED
    (tmp_path / "test.csv").write_text("query,positive,negative\nq,[red,[]\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2: 'positive' must be a list of texts"):
        reranking.load(tmp_path / "test.csv", "test")


def test_a_column_that_differs_between_candidates_is_no_label_of_queries(tmp_path: Path) -> None:
    """``source`` is one of the candidates', ``kind`` one of the queries'."""
    write_jsonl(
        tmp_path / "test.jsonl",
        [
            {"query": query, "document": doc, "score": 1, "source": doc, "kind": "k"}
            for query in ("a", "b")
            for doc in ("x", "y")
        ],
    )
    assert reranking.load(tmp_path / "test.jsonl", "test").labels == {"kind": {"1": "k", "2": "k"}}


def test_a_sub_set_may_not_take_the_name_of_a_pooled_result(tmp_path: Path) -> None:
    """Its result would be written over, or over another one; nor may some queries be in no sub-set at all."""
    write_jsonl(tmp_path / "test.jsonl", [{**row, **({"subset": "a"} if n else {})} for n, row in enumerate(ROWS)])
    with pytest.raises(DataError, match=r"test.jsonl: some queries have a 'subset', but not 'q1'"):
        reranking.load(tmp_path / "test.jsonl", "test")
    write_jsonl(tmp_path / "test.jsonl", [{**row, "subset": "mean"} for row in ROWS])
    with pytest.raises(DataError, match=r"test.jsonl: a sub-set may not be called 'mean'"):
        reranking.load(tmp_path / "test.jsonl", "test")
