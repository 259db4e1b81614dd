"""A golden set from a TREC collection: documents, topics and qrels."""

from __future__ import annotations

import gzip
import html
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embeval.core.ir import MAX_GRADE
from embeval.core.words import plural
from embeval.data import columns, files
from embeval.data.beir import Unreachable
from embeval.data.columns import Part
from embeval.data.from_beir import unreachable_note
from embeval.data.from_pairs import refuse_id
from embeval.data.golden import GoldenSet, listed, read_input
from embeval.errors import DataError

DOCUMENT_PARTS: Mapping[str, Part] = {
    "id": Part(("_id", "id", "docno", "doc_id", "document_id", "docid", "pid"), needed=True),
    "document": Part(("text", "contents", "content", "body", "document", "passage"), needed=True),
    "title": Part(("title",)),
}
TOPIC_PARTS: Mapping[str, Part] = {
    "question_id": Part(("_id", "id", "num", "qid", "query_id", "topic_id", "query-id"), needed=True),
    "question": Part(("text", "title", "query", "question"), needed=True),
}
PARTS: Mapping[str, Part] = {**DOCUMENT_PARTS, **TOPIC_PARTS}
"""Parts that columns of documents and of topics play, where these are tables."""
TOPIC_FIELDS = ("title", "desc", "narr")

_DOC = re.compile(r"<DOC>(.*?)</DOC>", re.DOTALL | re.IGNORECASE)
_DOCNO = re.compile(r"<DOCNO>(.*?)</DOCNO>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<(TITLE|HEADLINE|HEAD|HL|TI)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_TEXT = re.compile(r"<TEXT>(.*?)</TEXT>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>", re.DOTALL)
_TOP = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_FIELD = re.compile(r"<(num|title|desc|narr)>(.*?)(?=</?(?:num|title|desc|narr)>|\Z)", re.DOTALL | re.IGNORECASE)
_FIELD_NAME = re.compile(r"^\s*(Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)


def read(
    documents: Path,
    topics: Path,
    qrels: Path,
    *,
    given: columns.Given,
    topic_fields: tuple[str, ...] = ("title",),
    split: str,
    encoding: str | None = None,
    unreachable: Unreachable = Unreachable.ERROR,
) -> GoldenSet:
    """The golden set of a collection. Documents and topics are tables, or files of ``<DOC>`` and ``<top>``.

    A query is the ``topic_fields`` of its topic, joined by a space. Raises ``DataError`` with file and line.
    """
    corpus = _documents(documents, given, encoding)
    queries = _topics(topics, given, topic_fields, encoding)
    judgments, lines = read_qrels(qrels)
    if strangers := [query for query in judgments if query not in queries]:
        raise DataError(
            f"{qrels}, line {lines[strangers[0]]}: {plural(len(strangers), 'judged topic')} not in {topics}: "
            f"{listed(list(map(repr, strangers)))}."
        )
    missing = [
        (query, doc) for query, grades in judgments.items() for doc, grade in grades.items() if grade > 0
        if doc not in corpus
    ]  # fmt: skip
    if missing and unreachable == Unreachable.ERROR:
        names = list(dict.fromkeys(doc for _, doc in missing))
        raise DataError(
            f"{qrels}: {plural(len(names), 'relevant document')} not in {documents}, which no model can find: "
            f"{listed(list(map(repr, names)))}.\nMend the files, or say --unreachable keep."
        )
    return GoldenSet(
        kind="trec",
        source=documents.name,
        documents=list(corpus.values()),
        queries=[{"_id": query, "text": text} for query, text in queries.items()],
        qrels={split: judgments},
        inputs=[read_input(path) for path in (documents, topics, qrels)],
        options={"split": split, "topic_fields": list(topic_fields), "unreachable": str(unreachable)},
        notes=[unreachable_note(len({doc for _, doc in missing}))] if missing else [],
    )


def read_qrels(path: Path) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """(query -> document -> grade, line of each query) of a file with topic, iteration, document and grade."""
    judgments: dict[str, dict[str, int]] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(_whole_text(path, None).split("\n"), start=1):
        if not (words := line.split()):
            continue
        where = f"{path}, line {number}"
        if len(words) != 4:
            raise DataError(f"{where}: a qrels line has topic, iteration, document and grade, not {len(words)} words.")
        query, _, doc, grade = words
        if not re.fullmatch(r"[+-]?\d{1,9}", grade, re.ASCII) or abs(int(grade)) > MAX_GRADE:
            raise DataError(f"{where}: relevance must be a whole number up to {MAX_GRADE}, not {grade!r}.")
        if doc in judgments.setdefault(query, {}):
            raise DataError(f"{where}: topic {query!r}, document {doc!r} is judged twice.")
        judgments[query][doc] = int(grade)
        lines.setdefault(query, number)
    if not judgments:
        raise DataError(f"{path}: there are no judgments.")
    return judgments, lines


def _documents(path: Path, given: columns.Given, encoding: str | None) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    if files.kind_or_none(path) is not None:
        rows = list(files.rows(path))
        used = columns.assign(DOCUMENT_PARTS, _only(given, DOCUMENT_PARTS), rows, path)
        title = used.get("title", (None,))[0]
        for row in rows:
            doc = files.identifier(row, path, used["id"][0])
            refuse_id(doc, row, path)
            text = files.text(row, path, used["document"][0])
            shown = files.text(row, path, title) if title is not None and row.values.get(title) else ""
            _new(found, doc, path, row.line)
            found[doc] = {"_id": doc, "title": shown, "text": text}
        return found
    whole = _whole_text(path, encoding)
    line, seen = 1, 0
    for match in _DOC.finditer(whole):
        line, seen = line + whole.count("\n", seen, match.start()), match.start()
        body = match[1]
        if (number := _DOCNO.search(body)) is None or not number[1].strip():
            raise DataError(f"{path}, line {line}: this <DOC> has no <DOCNO>.")
        doc = number[1].strip()
        refuse_id(doc, files.Row(line, {}), path)
        _new(found, doc, path, line)
        title_match = _TITLE.search(body)
        sections = _TEXT.findall(body)
        if not sections:
            rest = body.replace(number[0], " ", 1)
            sections = [rest.replace(title_match[0], " ", 1) if title_match else rest]
        found[doc] = {
            "_id": doc,
            "title": _plain(title_match[2]) if title_match else "",
            "text": "\n".join(filter(None, map(_plain_lines, sections))),
        }
    if not found:
        raise DataError(f"{path}: there is no <DOC> in it. Give a TREC file, or .jsonl, .csv, .tsv or .parquet.")
    return found


def _topics(path: Path, given: columns.Given, fields: tuple[str, ...], encoding: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    if files.kind_or_none(path) not in (None, "tsv"):
        rows = list(files.rows(path))
        used = columns.assign(TOPIC_PARTS, _only(given, TOPIC_PARTS), rows, path)
        for row in rows:
            query = files.identifier(row, path, used["question_id"][0])
            refuse_id(query, row, path)
            _new(found, query, path, row.line)
            found[query] = files.text(row, path, used["question"][0])
        return found
    whole = _whole_text(path, encoding)
    if not _TOP.search(whole):
        return _topic_lines(whole, path)
    line, seen = 1, 0
    for match in _TOP.finditer(whole):
        line, seen = line + whole.count("\n", seen, match.start()), match.start()
        parts = {name.lower(): _plain(_FIELD_NAME.sub("", text, count=1)) for name, text in _FIELD.findall(match[1])}
        query = parts.get("num", "")
        if not query:
            raise DataError(f"{path}, line {line}: this <top> has no <num>.")
        refuse_id(query, files.Row(line, {}), path)
        _new(found, query, path, line)
        text = " ".join(parts[name] for name in fields if parts.get(name))
        if not text:
            raise DataError(f"{path}, line {line}: topic {query!r} has no {' or '.join(fields)}.")
        found[query] = text
    return found


def _topic_lines(whole: str, path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(whole.split("\n"), start=1):
        if not line.strip():
            continue
        query, tab, text = line.partition("\t")
        if number == 1 and query.lower() in TOPIC_PARTS["question_id"].usual:
            continue
        if not tab or not query.strip() or not text.strip():
            raise DataError(f"{path}, line {number}: a topic is an id, a tab and a text; or the file has <top>s.")
        _new(found, query.strip(), path, number)
        found[query.strip()] = text.strip()
    return found


def _only(given: columns.Given, parts: Mapping[str, Part]) -> columns.Given:
    return {part: names for part, names in given.items() if part in parts}


def _new(found: Mapping[str, object], name: str, path: Path, line: int) -> None:
    if name in found:
        raise DataError(f"{path}, line {line}: the id {name!r} appears twice.")


def _plain(text: str) -> str:
    """Marked-up text as one line."""
    return " ".join(html.unescape(_TAG.sub(" ", text)).split())


def _plain_lines(text: str) -> str:
    """Marked-up text with its lines."""
    lines = (" ".join(line.split()) for line in html.unescape(_TAG.sub(" ", text)).split("\n"))
    return "\n".join(lines).strip()


def _whole_text(path: Path, encoding: str | None) -> str:
    """The text of a file with line feeds. Raises ``DataError`` naming the byte that is no text."""
    try:
        data = path.read_bytes()
        if path.name.endswith(".gz"):
            data = gzip.decompress(data)
        return data.decode(encoding or "utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError(
            f"{path}, line {line}: not {encoding or 'UTF-8'} text (byte {error.object[error.start]:#04x} at "
            f"{error.start}). Say what it is with --encoding."
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: not a whole gzip file ({error}).") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error}).") from None
