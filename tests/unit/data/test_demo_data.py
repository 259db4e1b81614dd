"""The demo set that ships: sound, large enough, and as its datasheet describes it."""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import embeval
from embeval.data.beir import load_beir
from embeval.data.pairs import load_pairs

FOLDER = Path(embeval.__file__).parent / "data" / "demo"
KINDS = {"keyword", "paraphrase", "question", "typo", "negation", "multi_document"}


def read_jsonl(name: str) -> list[dict[str, Any]]:
    """The rows by the standard library alone."""
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def corpus() -> list[dict[str, Any]]:
    """The documents."""
    return read_jsonl("corpus.jsonl")


@pytest.fixture(scope="module")
def queries() -> list[dict[str, Any]]:
    """The queries."""
    return read_jsonl("queries.jsonl")


@pytest.fixture(scope="module")
def answerable(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The queries that have an answer."""
    return [query for query in queries if query.get("answerable", True)]


@pytest.fixture(scope="module")
def judgments() -> list[tuple[str, str, int]]:
    """Query, document, grade."""
    with (FOLDER / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [(row["query-id"], row["corpus-id"], int(row["score"])) for row in rows]


@pytest.fixture(scope="module")
def grades(judgments: list[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    """Query -> document -> grade."""
    table: dict[str, dict[str, int]] = {}
    for query, doc, grade in judgments:
        table.setdefault(query, {})[doc] = grade
    return table


@pytest.fixture(scope="module")
def pairs() -> list[dict[str, Any]]:
    """The sentence pairs."""
    return read_jsonl("sts.jsonl")


@pytest.fixture(scope="module")
def datasheet() -> str:
    """Its words, on one line."""
    return " ".join((FOLDER / "DATASHEET.md").read_text(encoding="utf-8").split())


def test_ids_are_unique_and_plain(
    corpus: list[dict[str, Any]], queries: list[dict[str, Any]], pairs: list[dict[str, Any]]
) -> None:
    """Lower-case ASCII letters, digits and hyphens, each id once, and no query id that is a document id."""
    for rows, key in ((corpus, "_id"), (queries, "_id"), (pairs, "id")):
        ids = [row[key] for row in rows]
        assert len(set(ids)) == len(ids)
        assert [name for name in ids if not re.fullmatch(r"[a-z0-9-]+", name)] == []
    assert not {row["_id"] for row in corpus} & {row["_id"] for row in queries}


def test_judgments_speak_of_what_is_there(
    corpus: list[dict[str, Any]], queries: list[dict[str, Any]], judgments: list[tuple[str, str, int]]
) -> None:
    """Every query and document judged exists, and no two judge the same."""
    assert {query for query, _, _ in judgments} <= {row["_id"] for row in queries}
    assert {doc for _, doc, _ in judgments} <= {row["_id"] for row in corpus}
    assert len({(query, doc) for query, doc, _ in judgments}) == len(judgments)


def test_every_answerable_query_has_its_answer(
    queries: list[dict[str, Any]], answerable: list[dict[str, Any]], grades: dict[str, dict[str, int]]
) -> None:
    """At least one document of grade 2; a query marked unanswerable has no relevant document."""
    assert [query["_id"] for query in answerable if 2 not in grades.get(query["_id"], {}).values()] == []
    marked = [query["_id"] for query in queries if query.get("answerable") is False]
    assert len(marked) + len(answerable) == len(queries)
    assert [query for query in marked if any(grade > 0 for grade in grades.get(query, {}).values())] == []


def test_it_is_large_enough(
    corpus: list[dict[str, Any]], answerable: list[dict[str, Any]], pairs: list[dict[str, Any]]
) -> None:
    """150 documents in 8 sections, 80 answerable queries with 10 of each of the six kinds, 60 pairs."""
    assert len(corpus) >= 150
    assert len({row["section"] for row in corpus}) >= 8
    assert len(answerable) >= 80
    kinds = Counter(query["kind"] for query in answerable)
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 10
    assert len(pairs) >= 60


def test_grades_are_graded(judgments: list[tuple[str, str, int]]) -> None:
    """0, 1 and 2 are all in use, and nothing else is."""
    assert {grade for _, _, grade in judgments} == {0, 1, 2}


def test_pairs_cover_the_scale(pairs: list[dict[str, Any]]) -> None:
    """Numbers from 0 to 5 with something near each end and each step between; five sub-sets."""
    scores = [pair["score"] for pair in pairs]
    assert all(type(score) in (int, float) for score in scores)
    assert (min(scores) >= 0, max(scores) <= 5) == (True, True)
    assert {round(score) for score in scores} == {0, 1, 2, 3, 4, 5}
    assert {pair["subset"] for pair in pairs} == {"paraphrase", "negation", "numbers", "unrelated", "detail"}


def normalized(text: str) -> str:
    """A text without what a careless copy would change."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def test_no_text_comes_twice(
    corpus: list[dict[str, Any]], queries: list[dict[str, Any]], pairs: list[dict[str, Any]]
) -> None:
    """Documents, titles, queries and pairs are all different, also without case and punctuation; none is empty."""
    for texts in (
        [normalized(row["text"]) for row in corpus],
        [normalized(row["title"]) for row in corpus],
        [normalized(row["text"]) for row in queries],
        [" = ".join(sorted(normalized(row[side]) for side in ("sentence1", "sentence2"))) for row in pairs],
    ):
        assert [text for text, count in Counter(texts).items() if count > 1] == []
        assert all(texts)
    assert all(row[side].strip() for row in pairs for side in ("sentence1", "sentence2"))


def test_texts_are_clean(
    corpus: list[dict[str, Any]], queries: list[dict[str, Any]], pairs: list[dict[str, Any]]
) -> None:
    """Nothing but printable characters, and no white space to strip."""
    texts = [row[key] for row in corpus for key in ("title", "text", "section")]
    texts += [row["text"] for row in queries]
    texts += [row[side] for row in pairs for side in ("sentence1", "sentence2")]
    assert [text for text in texts if not text.isprintable() or text != text.strip()] == []


def test_the_loaders_take_it(
    corpus: list[dict[str, Any]],
    queries: list[dict[str, Any]],
    grades: dict[str, dict[str, int]],
    pairs: list[dict[str, Any]],
) -> None:
    """Everything arrives: the same ids, judgments, kinds and marks as the standard library reads."""
    data = load_beir(FOLDER)
    assert data.doc_ids == tuple(row["_id"] for row in corpus)
    assert data.doc_texts == tuple(f"{row['title']} {row['text']}" for row in corpus)
    assert data.queries == {row["_id"]: row["text"] for row in queries}
    assert data.qrels.judgments == grades
    assert data.query_labels == {"kind": {row["_id"]: row["kind"] for row in queries}}
    assert data.unanswerable == {row["_id"] for row in queries if row.get("answerable") is False}
    assert data.unreachable == {}
    loaded = load_pairs(FOLDER / "sts.jsonl")
    assert loaded.ids == tuple(pair["id"] for pair in pairs)
    assert loaded.gold.tolist() == [pair["score"] for pair in pairs]
    assert loaded.subsets == tuple(pair["subset"] for pair in pairs)


def told(datasheet: str, pattern: str) -> list[int]:
    """The numbers that the datasheet gives in a phrase; the phrase must be there."""
    found = re.search(pattern, datasheet)
    assert found is not None, pattern
    return [int(number.replace(",", "")) for number in found.groups()]


def test_the_datasheet_counts_documents(corpus: list[dict[str, Any]], datasheet: str) -> None:
    """Documents, sections and their words."""
    assert told(datasheet, r"(\d+) documents in (\d+) sections: `_id`, `title`, `text`, `section` \|") == [
        len(corpus),
        len({row["section"] for row in corpus}),
    ]
    assert all(set(row) == {"_id", "title", "text", "section"} for row in corpus)
    words = [len(row["text"].split()) for row in corpus]
    assert told(datasheet, r"(\d+) to (\d+) words \(median (\d+), total ([\d,]+)\)") == [
        min(words),
        max(words),
        statistics.median(words),
        sum(words),
    ]
    assert "eight are longer than 140 words" in datasheet
    assert sum(count > 140 for count in words) == 8


def test_the_datasheet_counts_queries(
    queries: list[dict[str, Any]], answerable: list[dict[str, Any]], datasheet: str
) -> None:
    """All, unanswerable and answerable ones by kind; their length."""
    assert told(datasheet, r'(\d+) queries: `_id`, `text`, `kind`; (\d+) of them carry `"answerable": false`') == [
        len(queries),
        len(queries) - len(answerable),
    ]
    kinds = Counter(query["kind"] for query in answerable)
    order = ("keyword", "paraphrase", "question", "typo", "negation", "multi_document")
    pattern = r"(\d+) answerable ones: " + ", ".join(rf"(\d+) {kind}" for kind in order)
    assert told(datasheet, pattern) == [len(answerable), *(kinds[kind] for kind in order)]
    assert "Median length nine words" in datasheet
    assert statistics.median(len(query["text"].split()) for query in queries) == 9
    assert "unanswerable ones (four questions, two keyword queries)" in datasheet
    unanswerable = Counter(query["kind"] for query in queries if query.get("answerable") is False)
    assert unanswerable == {"question": 4, "keyword": 2}


def test_the_datasheet_counts_judgments(
    answerable: list[dict[str, Any]],
    judgments: list[tuple[str, str, int]],
    grades: dict[str, dict[str, int]],
    datasheet: str,
) -> None:
    """By grade, positives and zeros per query, and documents that are positive for any query."""
    counts = Counter(grade for _, _, grade in judgments)
    pattern = r"(\d+) judgments: (\d+) with grade 2, (\d+) with grade 1, (\d+) with grade 0"
    assert told(datasheet, pattern) == [len(judgments), counts[2], counts[1], counts[0]]
    assert "one to eight positives (median two) and at least two zeros" in datasheet
    positives = [sum(grade > 0 for grade in grades[query["_id"]].values()) for query in answerable]
    assert (min(positives), max(positives), statistics.median(positives)) == (1, 8, 2)
    assert min(sum(grade == 0 for grade in grades[query["_id"]].values()) for query in answerable) >= 2
    positive = {doc for _, doc, grade in judgments if grade > 0}
    assert told(datasheet, r"(\d+) documents are positive for at least one query") == [len(positive)]


def test_the_datasheet_counts_pairs(pairs: list[dict[str, Any]], datasheet: str) -> None:
    """All of them, and by sub-set."""
    assert told(
        datasheet, r"(\d+) sentence pairs scored 0 to 5: `id`, `sentence1`, `sentence2`, `score`, `subset` \|"
    ) == [len(pairs)]
    assert all(set(pair) == {"id", "sentence1", "sentence2", "score", "subset"} for pair in pairs)
    subsets = Counter(pair["subset"] for pair in pairs)
    order = ("paraphrase", "negation", "numbers", "unrelated", "detail")
    pattern = ", ".join(rf"(\d+) {name}" for name in order)
    assert told(datasheet, rf"Pairs:\*\* {pattern}\.") == [subsets[name] for name in order]
