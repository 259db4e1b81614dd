"""A golden set from a folder of documents, cut into passages, and a file of questions."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from embeval.core.progress import Progress
from embeval.core.words import are, plural
from embeval.data import chunking, columns, files, readers
from embeval.data.chunking import Chunker, Units
from embeval.data.columns import Part
from embeval.data.from_pairs import (
    RELEVANT,
    answerable,
    filled,
    label,
    label_name,
    listed_names,
    refuse_id,
    texts,
    whole_grade,
)
from embeval.data.golden import GoldenSet, content_id, listed, read_input
from embeval.data.quotes import Text
from embeval.errors import DataError, did_you_mean

Judge = Literal["auto", "document", "chunk", "quote"]
JUDGES: tuple[Judge, ...] = ("auto", "document", "chunk", "quote")
PARTS: Mapping[str, Part] = {
    "question": Part(("question", "query"), needed=True),
    "document": Part(("document", "file")),
    "quote": Part(("quote",)),
    "chunk": Part(("chunk",)),
    "grade": Part(("grade", "relevance")),
    "answerable": Part(("answerable",)),
    "exclude": Part(("exclude",)),
    "question_id": Part(("_id", "question_id", "query_id", "id")),
}
"""Parts that columns of the questions play; other columns are labels."""


@dataclass(frozen=True)
class Cutting:
    """How documents are cut into passages."""

    chunker: Chunker = "none"
    size: int = 200
    """Words, or tokens, of a passage."""
    overlap: int = 0
    units: Units = chunking.words
    tokenizer: str | None = None
    """Name and revision of the model whose tokens are counted."""


@dataclass
class Passages:
    """The passages of a folder's documents."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the corpus."""
    of_document: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    """Document -> (passage, its first character, the one after its last)."""
    read: dict[str, readers.Document] = field(default_factory=dict)
    """Document -> its text."""

    @cached_property
    def documents_by_name(self) -> dict[str, list[str]]:
        """Composed path, and composed file name -> documents so called."""
        found: dict[str, list[str]] = defaultdict(list)
        for document in self.of_document:
            path = unicodedata.normalize("NFC", document)
            for name in dict.fromkeys((path, PurePosixPath(path).name)):
                found[name].append(document)
        return found

    @cached_property
    def document_of(self) -> dict[str, str]:
        """Passage -> document."""
        return {name: document for document, each in self.of_document.items() for name, _, _ in each}

    @cached_property
    def searchable(self) -> dict[str, Text]:
        """Document -> its text, to be searched."""
        return {document: Text(each.text) for document, each in self.read.items()}


def find(folder: Path) -> tuple[list[str], list[str]]:
    """(paths of the documents within a folder, sorted; what was left out, in sentences).

    Hidden files and folders are left out, and so are folders that are links, since these may lead back.
    """
    found: list[str] = []
    others: Counter[str] = Counter()
    links: list[str] = []

    def refuse(error: OSError) -> None:
        raise DataError(f"{error.filename}: can't be read ({error.strerror}).")

    for here, folders, names in os.walk(folder, onerror=refuse):
        base = Path(here).relative_to(folder)
        links += [(base / name).as_posix() for name in folders if (Path(here) / name).is_symlink()]
        folders[:] = [name for name in folders if not name.startswith(".") and not (Path(here) / name).is_symlink()]
        for name in names:
            if name.startswith((".", "~$")):  # what Word keeps beside a document that is open
                continue
            ending = Path(name).suffix.lower()
            if ending in readers.READERS:
                found.append((base / name).as_posix())
            else:
                others[ending or "no ending"] += 1
    notes = []
    if others:
        kinds = listed([f"{n} × {ending}" for ending, n in sorted(others.items())])
        notes.append(f"{plural(others.total(), 'file')} of other kinds left out: {kinds}.")
    if links:
        notes.append(f"Links to folders are not followed: {listed(sorted(links))}.")
    return sorted(found), notes


def read(
    folder: Path,
    questions: Path | None,
    *,
    cutting: Cutting,
    judge: Judge = "auto",
    given: columns.Given,
    split: str,
    encoding: str | None = None,
    skip_unreadable: bool = False,
    progress: Progress,
) -> GoldenSet:
    """The golden set of a folder; without questions, its corpus alone.

    Raises ``DataError`` for documents that can't be read, unless they are to be skipped, and for questions with
    file and line.
    """
    names, notes = find(folder)
    if not names:
        raise DataError(f"{folder}: there are no {', '.join(readers.READERS)} files in it.")
    passages, unreadable = _passages(folder, names, cutting, encoding, progress)
    if unreadable and not skip_unreadable:
        raise DataError(
            f"{plural(len(unreadable), 'document')} can't be read:\n"
            + "\n".join(unreadable[:20])
            + (f"\nand {len(unreadable) - 20} more" if len(unreadable) > 20 else "")
            + "\nMend them, or leave them out with --skip-unreadable."
        )
    if unreadable:
        told = " ".join(message.removeprefix(f"{folder}{os.sep}") for message in unreadable)
        notes.append(f"{plural(len(unreadable), 'document')} skipped: {told}")
    if not passages.rows:
        raise DataError(f"{folder}: none of its documents can be read.")
    kept = list(passages.of_document)
    golden = GoldenSet(
        kind="documents",
        source=folder.resolve().name,
        documents=passages.rows,
        inputs=[read_input(folder / name, name) for name in kept],
        options={
            "chunker": cutting.chunker,
            **({} if cutting.chunker == "none" else {"chunk_size": cutting.size, "overlap": cutting.overlap}),
            **({"tokenizer": cutting.tokenizer} if cutting.tokenizer else {}),
            **({"encoding": encoding} if encoding else {}),
        },
        notes=notes,
    )
    if questions is not None:
        _add_questions(golden, passages, questions, judge, given, split)
        golden.inputs.append(read_input(questions, f"questions: {questions.name}"))
        golden.options |= {"judge": judge, "split": split}
    return golden


def _passages(
    folder: Path, names: Sequence[str], cutting: Cutting, encoding: str | None, progress: Progress
) -> tuple[Passages, list[str]]:
    passages = Passages()
    unreadable = []
    progress.start("Reading documents", len(names), "files")
    try:
        for name in names:
            try:
                refuse_name(name)
                document = readers.read(folder / name, encoding)
            except DataError as error:
                unreadable.append(str(error))
            else:
                _cut(passages, name, document, cutting)
            progress.advance(1)
    finally:
        progress.finish()
    return passages, unreadable


def refuse_name(name: str) -> None:
    """Raises ``DataError`` for a path that can't be an id."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{name!r}: its name is not UTF-8, so it can't be an id. Rename it.") from None
    if any(character in name for character in "\t\r\n"):
        raise DataError(f"{name!r}: its name holds a tab or a line end, so it can't be an id. Rename it.")


def _cut(passages: Passages, name: str, document: readers.Document, cutting: Cutting) -> None:
    passages.read[name] = document
    if cutting.chunker == "none":
        passages.rows.append({"_id": name, "title": document.title, "text": document.text})
        passages.of_document[name] = [(name, 0, len(document.text))]
        return
    spans = chunking.chunks(
        document.text,
        cutting.chunker,
        size=cutting.size,
        overlap=cutting.overlap,
        headings=document.headings,
        units=cutting.units,
    )
    passages.of_document[name] = [(f"{name}#{number}", *span) for number, span in enumerate(spans, start=1)]
    passages.rows += [
        {
            "_id": passage,
            "title": document.title,
            "text": document.text[start:end],
            "document": name,
            "start": start,
            "end": end,
        }
        for passage, start, end in passages.of_document[name]
    ]


def _add_questions(
    golden: GoldenSet, passages: Passages, path: Path, judge: Judge, given: columns.Given, split: str
) -> None:
    rows = list(files.rows(path))
    found = columns.assign(PARTS, given, rows, path)
    used = {name for names in found.values() for name in names}
    queries: dict[str, dict[str, Any]] = {}
    judgments: dict[str, dict[str, int]] = {}
    for row in rows:
        query = _add_question(queries, row, path, found, used)
        relevant = _relevant(passages, row, path, found, judge, golden.notes)
        _exclude(queries[query], _excluded(passages, row, path, found), relevant, row, path)
        if not queries[query].get("answerable", True):
            if relevant:
                raise DataError(f"{path}, line {row.line}: this question is marked unanswerable and has a passage.")
            continue
        if not relevant:
            needed = "document, quote or chunk" if judge == "auto" else judge
            raise DataError(
                f"{path}, line {row.line}: a question needs its {needed}.\n"
                "Where no document answers it, say so: answerable: false."
            )
        grade = whole_grade(row, path, found["grade"][0]) if "grade" in found else RELEVANT
        grades = judgments.setdefault(query, {})
        for passage in relevant:
            grades[passage] = max(grade, grades.get(passage, grade))
    golden.queries = list(queries.values())
    golden.qrels = {split: judgments}


def _add_question(
    queries: dict[str, dict[str, Any]],
    row: files.Row,
    path: Path,
    found: Mapping[str, tuple[str, ...]],
    used: set[str],
) -> str:
    text = filled(row, path, found["question"][0])
    own_id = found["question_id"][0] if "question_id" in found else None
    query = files.identifier(row, path, own_id) if own_id else content_id("q", text)
    refuse_id(query, row, path)
    fields: dict[str, Any] = {"_id": query, "text": text}
    if not answerable(row, path, found["answerable"][0] if "answerable" in found else None):
        fields["answerable"] = False
    for name, value in row.values.items():
        if name not in used and isinstance(value, str | int) and value != "":
            fields[label_name(name)] = label(row, path, name)
    known = queries.setdefault(query, fields)
    for name in ("text", "answerable"):
        if known.get(name) != fields.get(name):
            raise DataError(f"{path}, line {row.line}: the question {query!r} came before, and its {name} was another.")
    for name, value in fields.items():
        known.setdefault(name, value)
    return query


def _excluded(passages: Passages, row: files.Row, path: Path, found: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The passages that are no hits for a question: passages by their ids, or all of a document."""
    excluded: list[str] = []
    for name in listed_names(row, path, found["exclude"][0]) if "exclude" in found else ():
        if name in passages.document_of:
            excluded.append(name)
        else:
            excluded += [passage for passage, _, _ in passages.of_document[_document(passages, name, row, path)]]
    return list(dict.fromkeys(excluded))


def _exclude(
    query: dict[str, Any], excluded: Sequence[str], relevant: Sequence[str], row: files.Row, path: Path
) -> None:
    if both := [passage for passage in excluded if passage in set(relevant)]:
        raise DataError(f"{path}, line {row.line}: {both[0]!r} is excluded and relevant to the same question.")
    if excluded:
        query["exclude"] = list(dict.fromkeys([*query.get("exclude", ()), *excluded]))


def _relevant(
    passages: Passages,
    row: files.Row,
    path: Path,
    found: Mapping[str, tuple[str, ...]],
    judge: Judge,
    notes: list[str],
) -> list[str]:
    """The passages that answer a question, in their order in the corpus."""
    told = {part: texts(row, path, found[part][0]) for part in ("document", "quote", "chunk") if part in found}
    documents = [_document(passages, name, row, path) for name in told.get("document", ())]
    relevant: dict[str, None] = {}
    for chunk in told.get("chunk", ()):
        relevant[_chunk(passages, chunk, row, path)] = None
    for quote in told.get("quote", ()):
        relevant |= dict.fromkeys(_quoted(passages, quote, documents, row, path, notes))
    if judge in ("chunk", "quote") and not told.get(judge):
        return []
    if judge == "document":
        documents += [passages.document_of[passage] for passage in relevant]
    elif relevant:
        return list(relevant)
    return list(dict.fromkeys(name for document in documents for name, _, _ in passages.of_document[document]))


def _document(passages: Passages, given: str, row: files.Row, path: Path) -> str:
    name = unicodedata.normalize("NFC", given.strip()).removeprefix("./")
    called = passages.documents_by_name.get(name, [])
    whole = [document for document in called if unicodedata.normalize("NFC", document) == name]
    if len(whole) == 1:
        return whole[0]
    if not called:
        close = did_you_mean(name, passages.of_document)
        raise DataError(f"{path}, line {row.line}: there is no document {given!r} in the folder. {close}".rstrip())
    if len(called) > 1:
        raise DataError(
            f"{path}, line {row.line}: {plural(len(called), 'document')} {are(len(called))} called {given!r}: "
            f"{listed(called)}. Give the path."
        )
    return called[0]


def _chunk(passages: Passages, given: str, row: files.Row, path: Path) -> str:
    if given not in passages.document_of:
        close = did_you_mean(given, passages.document_of)
        raise DataError(f"{path}, line {row.line}: there is no passage {given!r}. {close}".rstrip())
    return given


def _quoted(
    passages: Passages, quote: str, documents: Sequence[str], row: files.Row, path: Path, notes: list[str]
) -> Iterator[str]:
    """The passages that share a character with a quote, wherever it stands."""
    searched = documents or list(passages.searchable)
    places = [
        (document, start, end) for document in searched for start, end in passages.searchable[document].find(quote)
    ]
    shown = repr(quote if len(quote) <= 60 else quote[:59] + "…")
    if not places:
        where = f"in {listed(list(documents))}" if documents else "in any document"
        folded = [document for document in searched if passages.searchable[document].has_folded(quote)]
        hint = f" But for upper and lower case it is in {folded[0]}." if folded else ""
        raise DataError(f"{path}, line {row.line}: the quote {shown} is not found {where}.{hint}")
    if len(places) > 1:
        within = list(dict.fromkeys(document for document, _, _ in places))
        notes.append(
            f"{path.name}, line {row.line}: the quote {shown} stands in {len(places)} places, all of which are judged "
            f"relevant: {listed(within)}."
        )
    for document, start, end in places:
        yield from (name for name, first, last in passages.of_document[document] if first < end and start < last)
