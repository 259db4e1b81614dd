"""Retrieval data in a BEIR folder: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv``.

Queries marked unanswerable have no judgments, so a split can't be told from its qrels: they belong to every split,
unless ``qrels/<split>.unanswerable.txt`` lists its own, an id a line. Corpus, queries and qrels may be gzipped.
Source: Thakur et al., BEIR, NeurIPS 2021, and its data loader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from embeval.core.ir import MAX_GRADE, Qrels
from embeval.core.signature import RESERVED_SUBSETS
from embeval.core.words import plural
from embeval.data import files
from embeval.data.row_parts import digest_of
from embeval.errors import DataError

QRELS_HEADER = ("query-id", "corpus-id", "score")
CORPUS_FIELDS = ("_id", "title", "text", "document", "start", "end")
"""Fields of the corpus file that mean something; others are labels of documents."""
TOKEN = re.compile(r"\w+|[^\w\s]")
"""What counts as a token of a prompt."""
SHOWN = 5
"""Ids listed in a message."""
MAX_LABELS = 50
MAX_LABEL = 40
"""A field of the queries is a label if it has at most so many values, each used twice on average, and each of at
most so many characters. Labels are stored with the results; texts are not."""


class Unreachable(StrEnum):
    """What becomes of judgments whose document is not in the corpus."""

    ERROR = "error"
    """The data is refused."""
    KEEP = "keep"
    """They stay and count as never found; the result says what ceiling that sets."""


class Source(NamedTuple):
    """The place of a passage: fields ``document``, ``start`` and ``end`` of the corpus file."""

    document: str
    """Id of the document that it is a passage of."""
    start: int | None
    """Its first character in the text of that document; None where not known."""
    end: int | None
    """The character after its last one."""


@dataclass(frozen=True)
class RetrievalData:
    """A corpus, queries and judgments that fit each other."""

    doc_ids: tuple[str, ...]
    """N unique ids."""
    doc_texts: tuple[str, ...]
    """Title and text of each document, joined by a space and stripped, as mteb 2.26 joins them."""
    queries: Mapping[str, str]
    """Query id -> text."""
    qrels: Qrels
    """Judgments of the split."""
    unanswerable: frozenset[str] = frozenset()
    """Queries marked ``answerable: false`` that belong to the split."""
    query_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Field -> query id -> value, for slices: the fields of the queries file that are labels and not texts."""
    unreachable: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Query id -> judged documents (grade above 0) that are not in the corpus."""
    excluded: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Query id -> documents that are no hits for that query: the field ``exclude`` of the queries file."""
    doc_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Field -> doc id -> value: the fields of the corpus file that are labels and not texts."""
    sources: Mapping[str, Source] = field(default_factory=dict)
    """Doc id -> where it was cut from, for passages of longer documents."""

    @cached_property
    def doc_id_set(self) -> frozenset[str]:
        """The doc ids, for look-ups."""
        return frozenset(self.doc_ids)

    @cached_property
    def doc_lengths(self) -> dict[str, int]:
        """Doc id -> words and punctuation marks of its text: about its tokens, whatever the tokenizer."""
        return {doc: len(TOKEN.findall(text)) for doc, text in zip(self.doc_ids, self.doc_texts, strict=True)}

    @cached_property
    def data_hash(self) -> str:
        """sha256 over documents, queries and judgments by id, whatever their order in the files."""
        return digest_of(self._parts())

    def _parts(self) -> Iterator[str]:
        for row in sorted(range(len(self.doc_ids)), key=self.doc_ids.__getitem__):
            yield from ("document", self.doc_ids[row], self.doc_texts[row])
        for query in sorted(self.queries):
            yield from ("query", query, self.queries[query], str(query not in self.unanswerable))
            for doc in sorted(self.excluded.get(query, ())):
                yield from ("excluded", query, doc)
        for query in sorted(self.qrels.judgments):
            for doc, grade in sorted(self.qrels.judgments[query].items()):
                yield from ("judgment", query, doc, str(grade))


def load_beir(folder: Path, split: str = "test", *, unreachable: Unreachable = Unreachable.ERROR) -> RetrievalData:
    """The data of a folder. Raises ``DataError`` for duplicate ids, dangling judgments and broken lines."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. A BEIR folder holds corpus.jsonl, queries.jsonl and qrels/.")
    qrels_file = _qrels_file(folder, split)
    documents: dict[str, str] = {}
    sources: dict[str, Source] = {}
    doc_fields: dict[str, dict[str, str]] = {}
    corpus_file = one_of(folder, "corpus")
    for row in files.rows(corpus_file):
        doc = _new_id(row, corpus_file, documents)
        title = files.text(row, corpus_file, "title") if row.values.get("title") is not None else ""
        documents[doc] = f"{title} {files.text(row, corpus_file, 'text')}".strip()
        if row.values.get("document") is not None:
            sources[doc] = _source(row, corpus_file)
        for name, value in row.values.items():
            if name not in CORPUS_FIELDS and isinstance(value, str):
                doc_fields.setdefault(name, {})[doc] = files.whole_characters(value, row, corpus_file, name)
    queries, unanswerable, excluded, fields = _queries(one_of(folder, "queries"))
    qrels, lines = _qrels(qrels_file)

    if dangling := [query for query in qrels.judgments if query not in queries]:
        raise DataError(
            f"{qrels_file}, line {lines[dangling[0]]}: {plural(len(dangling), 'judged query', 'judged queries')} "
            f"not in the queries file: {_listed(dangling)}."
        )
    ghosts = {
        query: missing
        for query, grades in qrels.judgments.items()
        if (missing := tuple(doc for doc, grade in grades.items() if grade > 0 and doc not in documents))
    }
    if ghosts and unreachable == Unreachable.ERROR:
        query, docs = next(iter(ghosts.items()))
        line = next(row.line for row in files.rows(qrels_file) if _judges(row, query, docs[0]))
        n_docs = len({doc for of_query in ghosts.values() for doc in of_query})
        raise DataError(
            f"{qrels_file}, line {line}: {plural(n_docs, 'relevant document')} not in the corpus, which no model "
            f"can find: {_listed(docs)} of query {query!r}"
            + (f", and others of {plural(len(ghosts) - 1, 'more query', 'more queries')}" if len(ghosts) > 1 else "")
            + ".\nMend the data, or set 'unreachable: keep' to evaluate under the ceiling that this sets."
        )
    if not qrels.judgments:
        raise DataError(f"{qrels_file}: there are no judgments.")
    return RetrievalData(
        doc_ids=tuple(documents),
        doc_texts=tuple(documents.values()),
        queries=queries,
        qrels=qrels,
        unanswerable=_of_split(unanswerable, unanswerable_file(folder, split), qrels),
        query_labels=labels(fields, one_of(folder, "queries"), qrels.judgments),
        unreachable=ghosts,
        excluded=excluded,
        doc_labels={name: values for name, values in doc_fields.items() if are_labels(list(values.values()))},
        sources=sources,
    )


def unanswerable_file(folder: Path, split: str) -> Path:
    """Where a split lists its unanswerable queries, if it does."""
    return folder / "qrels" / f"{split}.unanswerable.txt"


def is_beir(folder: Path) -> bool:
    """Whether a folder looks like retrieval data."""
    return folder.is_dir() and any((folder / f"corpus.jsonl{end}").exists() for end in ("", ".gz"))


def one_of(folder: Path, stem: str) -> Path:
    """The jsonl file of that name, plain or gzipped. Raises ``DataError`` where there is none, and where both are."""
    if found := _plain_or_gzipped(folder / f"{stem}.jsonl"):
        return found
    raise DataError(f"{folder}: there is no {stem}.jsonl or {stem}.jsonl.gz in this folder.")


def _plain_or_gzipped(file: Path) -> Path | None:
    there = [path for path in (file, file.with_name(f"{file.name}.gz")) if path.exists()]
    if len(there) > 1:
        raise DataError(f"{there[0]} and {there[1].name} are both there, and may differ. Remove one.")
    return there[0] if there else None


def are_labels(values: list[str]) -> bool:
    """Whether the values of a field group queries. A text of each query's own doesn't, and it may be private."""
    distinct = set(values)
    return len(distinct) <= min(MAX_LABELS, len(values) / 2) and all(len(value) <= MAX_LABEL for value in distinct)


def labels(fields: Mapping[str, Mapping[str, str]], path: Path, queries: Iterable[str]) -> dict[str, Mapping[str, str]]:
    """Those fields (field -> query id -> value) that group queries.

    Raises ``DataError`` for a sub-set of a taken name, and where only some of ``queries`` are in a sub-set.
    """
    found = {name: values for name, values in fields.items() if are_labels(list(values.values()))}
    if "subset" in found and (without := [query for query in queries if not found["subset"].get(query)]):
        raise DataError(f"{path}: some queries have a 'subset', but not {_listed(without)}.")
    if taken := set(found.get("subset", {}).values()) & set(RESERVED_SUBSETS):
        raise DataError(f"{path}: a sub-set may not be called {min(taken)!r}, which names a pooled result.")
    return found


def _qrels_file(folder: Path, split: str) -> Path:
    file = folder / "qrels" / f"{split}.tsv"
    if found := _plain_or_gzipped(file):
        return found
    there = sorted(path.name.removesuffix(".gz").removesuffix(".tsv") for path in (folder / "qrels").glob("*.tsv*"))
    advice = f"Splits there: {', '.join(there)}." if there else "There are no .tsv files in its qrels folder."
    raise DataError(f"{file}: no such file, so there is no split {split!r}. {advice}")


def _of_split(unanswerable: list[str], file: Path, qrels: Qrels) -> frozenset[str]:
    """The unanswerable queries of a split: those that its file lists or its qrels judge; all where it has no file."""
    marked = frozenset(unanswerable)
    if not file.exists():
        return marked
    own = set()
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: can't be read ({getattr(error, 'strerror', None) or error}).") from None
    for number, line in enumerate(lines, start=1):
        query = line.removesuffix("\r")
        if not query:
            continue
        if query not in marked:
            raise DataError(f"{file}, line {number}: the queries file marks no query {query!r} as unanswerable.")
        own.add(query)
    return marked & (own | set(qrels.judgments))


def _new_id(row: files.Row, path: Path, known: Mapping[str, object]) -> str:
    name = files.identifier(row, path, "_id")
    if name in known:
        raise DataError(f"{path}, line {row.line}: the id {name!r} appears twice.")
    return name


def _source(row: files.Row, path: Path) -> Source:
    offsets = []
    for name in ("start", "end"):
        value = row.values.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise DataError(f"{path}, line {row.line}: {name!r} must be a number of characters, not {value!r}.")
        offsets.append(value)
    return Source(files.identifier(row, path, "document"), *offsets)


def _excluded(row: files.Row, path: Path) -> frozenset[str]:
    value = row.values.get("exclude")
    if value is None:
        return frozenset()
    if not isinstance(value, list) or not all(isinstance(doc, str) and doc for doc in value):
        raise DataError(f"{path}, line {row.line}: 'exclude' must be a list of document ids, not {value!r:.60}.")
    return frozenset(value)


def _queries(
    path: Path,
) -> tuple[dict[str, str], list[str], dict[str, frozenset[str]], dict[str, dict[str, str]]]:
    queries: dict[str, str] = {}
    unanswerable: list[str] = []
    excluded: dict[str, frozenset[str]] = {}
    fields: dict[str, dict[str, str]] = {}
    for row in files.rows(path):
        query = _new_id(row, path, queries)
        queries[query] = files.text(row, path, "text")
        answerable = row.values.get("answerable", True)
        if not isinstance(answerable, bool):
            raise DataError(f"{path}, line {row.line}: 'answerable' must be true or false, not {answerable!r}.")
        if not answerable:
            unanswerable.append(query)
        if documents := _excluded(row, path):
            excluded[query] = documents
        for name, value in row.values.items():
            if name not in ("_id", "text") and isinstance(value, str):
                fields.setdefault(name, {})[query] = files.whole_characters(value, row, path, name)
    return queries, unanswerable, excluded, fields


def _qrels(path: Path) -> tuple[Qrels, dict[str, int]]:
    judgments: dict[str, dict[str, int]] = {}
    lines: dict[str, int] = {}
    for row in files.rows(path):
        if missing := [name for name in QRELS_HEADER if name not in row.values]:
            raise DataError(
                f"{path}, line 1: there is no column {missing[0]!r}. The first line of a qrels file is "
                f"{', '.join(QRELS_HEADER)}, separated by tabs."
            )
        query = files.identifier(row, path, "query-id")
        doc = files.identifier(row, path, "corpus-id")
        grade = files.number(row, path, "score")
        if grade != int(grade) or abs(grade) > MAX_GRADE:
            shown = row.values["score"]
            raise DataError(
                f"{path}, line {row.line}: relevance must be a whole number up to {MAX_GRADE}, not {shown!r}."
            )
        of_query = judgments.setdefault(query, {})
        if doc in of_query:
            raise DataError(f"{path}, line {row.line}: query {query!r}, document {doc!r} is judged twice.")
        of_query[doc] = int(grade)
        lines.setdefault(query, row.line)
    return Qrels(judgments), lines


def _judges(row: files.Row, query: str, doc: str) -> bool:
    return str(row.values["query-id"]) == query and str(row.values["corpus-id"]) == doc


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
