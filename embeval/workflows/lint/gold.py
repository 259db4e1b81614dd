"""A golden set as its files have it, with whatever is wrong in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

from embeval.workflows.lint.findings import LintOptions


class Document(NamedTuple):
    """A row of the corpus file."""

    id: str
    text: str | None
    """Title and text as a model gets them; None where the row has none."""
    line: int
    numeric: bool
    """Whether the id is a JSON number."""
    content: bytes
    """Digest of the whole row: equal rows have equal ones."""


class Query(NamedTuple):
    """A row of the queries file."""

    id: str
    text: str | None
    line: int
    numeric: bool
    content: bytes
    answerable: bool
    excluded: tuple[str, ...]
    """Documents that are no hits for it."""


class Judgment(NamedTuple):
    """A row of a qrels file."""

    query: str
    document: str
    grade: int
    line: int


R = TypeVar("R", Document, Query)


@dataclass(frozen=True)
class GoldSet:
    """What could be read. Rows with the id of an earlier one are among the rows, not among those by id."""

    options: LintOptions
    """What is looked at."""
    corpus_file: str
    queries_file: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    splits: Mapping[str, tuple[Judgment, ...]]
    """Split -> its judgments, those looked at."""
    qrels_files: Mapping[str, str]
    """Split -> its file."""
    judged_elsewhere: frozenset[str] = frozenset()
    """Queries with judgments in splits that are not looked at."""
    source: str = ""
    """Where the set is from, as its datasheet says."""
    incomplete: frozenset[str] = field(default_factory=frozenset)
    """Files with rows that could not be read, so that "not there" can't be told."""

    @cached_property
    def by_doc(self) -> dict[str, Document]:
        """Doc id -> its first row."""
        return _first(self.documents)

    @cached_property
    def by_query(self) -> dict[str, Query]:
        """Query id -> its first row."""
        return _first(self.queries)

    @cached_property
    def grades(self) -> dict[str, dict[str, dict[str, int]]]:
        """Split -> query -> document -> grade, the first where there are several."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for split, rows in self.splits.items():
            of_split = found.setdefault(split, {})
            for row in rows:
                of_split.setdefault(row.query, {}).setdefault(row.document, row.grade)
        return found

    @cached_property
    def positives(self) -> tuple[tuple[str, Judgment], ...]:
        """(split, judgment) above 0 whose query and document are there, each pair once in a split."""
        found: dict[tuple[str, str, str], Judgment] = {}
        for split, rows in self.splits.items():
            for row in rows:
                if row.grade > 0 and row.query in self.by_query and row.document in self.by_doc:
                    found.setdefault((split, row.query, row.document), row)
        return tuple((split, row) for (split, _, _), row in found.items())

    @cached_property
    def relevant(self) -> dict[str, frozenset[str]]:
        """Query -> documents judged above 0 in any split looked at."""
        found: dict[str, set[str]] = {}
        for rows in self.splits.values():
            for row in rows:
                if row.grade > 0:
                    found.setdefault(row.query, set()).add(row.document)
        return {query: frozenset(documents) for query, documents in found.items()}


def _first(rows: Iterable[R]) -> dict[str, R]:
    found: dict[str, R] = {}
    for row in rows:
        found.setdefault(row.id, row)
    return found
