"""Queries with candidates that are to be ranked: the payload of reranking.

Three forms: a row per query with ``query``, ``positive`` and ``negative`` (lists of texts); a row per candidate with
``query``, ``document`` and ``score``; or a BEIR folder with ``top_ranked.jsonl`` (``query-id``, ``corpus-ids``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embeval.core.border import BORDER
from embeval.core.ir import MAX_GRADE
from embeval.data import beir, files
from embeval.data.beir import load_beir, one_of
from embeval.errors import DataError

CANDIDATES_FILE = "top_ranked"
"""The file of a folder that lists the candidates, as mteb's data sets call it."""


@dataclass(frozen=True, kw_only=True)
class RerankingColumns:
    """Where the parts of a row stand in the file."""

    __pydantic_config__ = BORDER

    query: str = "query"
    """Column of the query's text."""
    positive: str = "positive"
    """Column of the relevant candidates, a list of texts."""
    negative: str = "negative"
    """Column of the other candidates, a list of texts."""
    document: str = "document"
    """Column of the candidate's text, in files with a row per candidate."""
    score: str = "score"
    """Column of its grade, in files with a row per candidate; above 0: relevant."""
    query_id: str = "query_id"
    """Column of the query's id; where the file has none, queries are numbered from 1."""


@dataclass(frozen=True)
class Candidates:
    """Queries, and for each of them documents with grades."""

    queries: Mapping[str, str]
    """Query id -> text."""
    documents: Mapping[str, str]
    """Document id -> text."""
    grades: Mapping[str, Mapping[str, int]]
    """Query id -> document id -> grade; above 0: relevant."""
    given: Mapping[str, Sequence[str]]
    """Query id -> ids of the documents to be ranked."""
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Field -> query id -> value, for slices: the other columns that are labels and not texts."""
    contradictions: tuple[int, ...] = ()
    """Line of each candidate that has several grades for one query; the greatest counts."""


def load(path: Path, split: str, columns: RerankingColumns = RerankingColumns()) -> Candidates:
    """The queries of a file, or of a folder's split. Raises ``DataError`` with file and line."""
    if path.is_dir():
        return _folder(path, split)
    builder = _Builder(path, columns)
    for row in files.rows(path):
        builder.add(row)
    return builder.whole()


class _Builder:
    """Puts rows together. A document's id is the hash of its text, so that no tie follows the order of a file."""

    def __init__(self, path: Path, columns: RerankingColumns) -> None:
        self._path, self._columns = path, columns
        self._queries: dict[str, str] = {}
        self._lines: dict[str, int] = {}
        self._documents: dict[str, str] = {}
        self._grades: dict[str, dict[str, int]] = {}
        self._fields: dict[str, dict[str, str]] = {}
        self._of_candidates: set[str] = set()
        """Fields that have several values within a query, and so are no labels of queries."""
        self._by_text: dict[str, str] = {}
        self._contradictions: dict[tuple[str, str], int] = {}

    def add(self, row: files.Row) -> None:
        columns = self._columns
        text = files.text(row, self._path, columns.query)
        if not text.strip():
            raise DataError(f"{self._path}, line {row.line}: {columns.query!r} is empty.")
        per_candidate = columns.document in row.values and columns.positive not in row.values
        query = self._query(row, text, per_candidate=per_candidate)
        if per_candidate:
            self._judge(row, query, files.text(row, self._path, columns.document), self._grade(row))
        else:
            for name, grade in ((columns.positive, 1), (columns.negative, 0)):
                for document in self._texts(row, name):
                    self._judge(row, query, document, grade)
            if not self._grades[query]:
                raise DataError(f"{self._path}, line {row.line}: the query {query!r} has no candidates.")
        for name, value in row.values.items():
            if name not in vars(columns).values() and isinstance(value, str):
                whole = files.whole_characters(value, row, self._path, name)
                if self._fields.setdefault(name, {}).setdefault(query, whole) != whole:
                    self._of_candidates.add(name)

    def whole(self) -> Candidates:
        fields = {name: values for name, values in self._fields.items() if name not in self._of_candidates}
        labels = {
            name: {query: values.get(query, "") for query in self._queries}
            for name, values in beir.labels(fields, self._path, self._queries).items()
        }
        given = {query: tuple(grades) for query, grades in self._grades.items()}
        lines = tuple(self._contradictions.values())
        return Candidates(self._queries, self._documents, self._grades, given, labels, lines)

    def _query(self, row: files.Row, text: str, *, per_candidate: bool) -> str:
        name = self._columns.query_id
        if name in row.values:
            query = files.identifier(row, self._path, name)
        elif per_candidate:  # rows of the same text are candidates of the same query
            query = self._by_text.setdefault(text, str(len(self._by_text) + 1))
        else:
            query = str(len(self._queries) + 1)
        if query in self._queries and (not per_candidate or self._queries[query] != text):
            there = f"line {self._lines[query]}" + (" with another text" if per_candidate else "")
            raise DataError(f"{self._path}, line {row.line}: the query {query!r} stands already in {there}.")
        self._queries.setdefault(query, text)
        self._lines.setdefault(query, row.line)
        self._grades.setdefault(query, {})
        return query

    def _texts(self, row: files.Row, name: str) -> list[str]:
        value = files.unfolded(row, self._path, name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise DataError(
                f"{self._path}, line {row.line}: {name!r} must be a list of texts, not {value!r:.60}.\n"
                f"A file without lists has a row per candidate: {self._columns.query!r}, {self._columns.document!r}, "
                f"{self._columns.score!r}."
            )
        return [files.whole_characters(each, row, self._path, name) for each in value]

    def _grade(self, row: files.Row) -> int:
        value = files.number(row, self._path, self._columns.score)
        if value != int(value) or abs(value) > MAX_GRADE:
            raise DataError(
                f"{self._path}, line {row.line}: {self._columns.score!r} must be a whole number up to {MAX_GRADE}, "
                f"not {value:g}."
            )
        return int(value)

    def _judge(self, row: files.Row, query: str, text: str, grade: int) -> None:
        """A candidate that comes twice counts once, at its best grade."""
        document = hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]
        self._documents.setdefault(document, text)
        known = self._grades[query].setdefault(document, grade)
        if known != grade:  # in public data too: the one relevant sentence of a page stands there twice
            self._grades[query][document] = max(known, grade)
            self._contradictions.setdefault((query, document), row.line)


def _folder(folder: Path, split: str) -> Candidates:
    data = load_beir(folder, split)
    file = one_of(folder, CANDIDATES_FILE)
    given: dict[str, tuple[str, ...]] = {}
    for row in files.rows(file):
        query = files.identifier(row, file, "query-id")
        docs = files.column(row, file, "corpus-ids")
        if query in given:
            raise DataError(f"{file}, line {row.line}: the query {query!r} stands there twice.")
        given[query] = _known(docs, data.doc_id_set, file, row)
    judged = [query for query in data.qrels.judged if query not in data.unanswerable]
    if missing := [query for query in judged if query not in given]:
        raise DataError(f"{file}: there are no candidates for {len(missing)} judged queries, such as {missing[0]!r}.")
    return Candidates(
        queries={query: data.queries[query] for query in judged},
        documents=dict(zip(data.doc_ids, data.doc_texts, strict=True)),
        grades={query: data.qrels.judgments[query] for query in judged},
        given={query: given[query] for query in judged},
        labels={name: {q: values.get(q, "") for q in judged} for name, values in data.query_labels.items()},
    )


def _known(docs: Any, known: frozenset[str], file: Path, row: files.Row) -> tuple[str, ...]:
    if not isinstance(docs, list) or not docs or not all(isinstance(doc, str) for doc in docs):
        raise DataError(f"{file}, line {row.line}: 'corpus-ids' must be a list of document ids, not {docs!r:.60}.")
    if unknown := [doc for doc in docs if doc not in known]:
        raise DataError(f"{file}, line {row.line}: the candidate {unknown[0]!r} is not in the corpus.")
    return tuple(docs)
