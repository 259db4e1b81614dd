"""A golden set from question-document pairs: one row per pair, as support tools and spreadsheets export them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embeval.core.ir import MAX_GRADE
from embeval.core.words import plural
from embeval.data import columns, files
from embeval.data.columns import Part
from embeval.data.golden import GoldenSet, content_id, refuse_separators
from embeval.errors import DataError, did_you_mean

PARTS: Mapping[str, Part] = {
    "question": Part(("question", "query"), needed=True),
    "document": Part(("document", "answer", "context", "passage", "positive"), needed=True),
    "title": Part(("title",)),
    "label": Part(("label",), several=True),
    "grade": Part(("grade", "relevance")),
    "negative": Part(("negative", "negatives", "hard_negative", "hard_negatives"), several=True),
    "answerable": Part(("answerable",)),
    "exclude": Part(("exclude",)),
    "question_id": Part(("question_id", "query_id")),
    "id": Part(("document_id", "doc_id")),
}
"""Parts that columns play. ``id`` is the document's."""
RELEVANT = 1
_WHOLE = re.compile(r"[+-]?\d+(\.0*)?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


@dataclass
class _Building:
    """What was read so far."""

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_content: dict[tuple[str, str], str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    """Id in the file -> id of the document that it became."""
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    judgments: dict[str, dict[str, int]] = field(default_factory=dict)
    by_text: dict[str, str] = field(default_factory=dict)
    """Text -> the first document that has it, under whatever title."""
    negatives: list[tuple[str, str]] = field(default_factory=list)
    """(query, text) of the hard negatives."""
    excluded: list[tuple[str, str, int]] = field(default_factory=list)
    """(query, document id, line) of documents that are no hits for a question."""
    happened: Counter[str] = field(default_factory=Counter)


def read(rows: Sequence[files.Row], path: Path, *, given: columns.Given, split: str, kind: str = "pairs") -> GoldenSet:
    """The golden set of the rows; ``path`` stands in messages.

    Equal documents become one, and so do equal questions. Ids are those of the columns ``question_id`` and ``id``,
    else made of the texts. A ``label`` that is a whole number in every row is the grade of the pair; other labels
    stay with the question. Documents of ``negative`` columns are judged 0, unless another row says otherwise.
    Raises ``DataError`` with file and line.
    """
    found = columns.assign(PARTS, given, rows, path)
    labels, grade = _labels_and_grade(rows, path, found)
    building = _Building()
    for row in rows:
        _add(building, row, path, found, labels, grade)
    _add_negatives(building)
    _add_excluded(building, path)
    for query in building.judgments:
        if building.queries[query].get("answerable") is False and any(building.judgments[query].values()):
            raise DataError(f"{path}: the question {query!r} is marked unanswerable and has a relevant document.")
    used = {name for names in found.values() for name in names}
    unused = [name for name in dict.fromkeys(name for row in rows for name in row.values) if name not in used]
    return GoldenSet(
        kind=kind,
        source=path.name,
        documents=list(building.documents.values()),
        queries=list(building.queries.values()),
        qrels={split: {query: grades for query, grades in building.judgments.items() if grades}},
        options={"columns": {part: list(names) for part, names in sorted(found.items())}, "split": split},
        notes=[
            *(f"{n} {what}." for what, n in sorted(building.happened.items()) if n),
            *([f"{plural(len(unused), 'column')} not used: {', '.join(unused)}."] if unused else []),
        ],
    )


def _labels_and_grade(
    rows: Sequence[files.Row], path: Path, found: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], str | None]:
    """(columns that are labels, the column that is the grade)."""
    labels = found.get("label", ())
    grade = found["grade"][0] if "grade" in found else None
    numeric = tuple(name for name in labels if all(_is_whole(row.values.get(name)) for row in rows))
    if grade is None and numeric:
        if len(numeric) > 1:
            raise DataError(
                f"{path}: {' and '.join(map(repr, numeric))} could each be the grade. Say --columns grade={numeric[0]}"
            )
        grade = numeric[0]
    for name in labels:  # half numbers: a grade that is missing in places would pass for a label
        n_numbers = sum(_is_whole(row.values.get(name)) for row in rows)
        if grade is None and n_numbers > len(rows) / 2:
            row = next(row for row in rows if not _is_whole(row.values.get(name)))
            raise DataError(
                f"{path}, line {row.line}: {name!r} is {row.values.get(name)!r}, and a whole number in most rows.\n"
                f"Grades must be whole numbers throughout. If these are labels, name another column as the grade."
            )
    return tuple(name for name in labels if name != grade), grade


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return _WHOLE.fullmatch(value.strip()) is not None
    return isinstance(value, int | float) and float(value).is_integer()


def _add(
    building: _Building,
    row: files.Row,
    path: Path,
    found: Mapping[str, tuple[str, ...]],
    labels: Sequence[str],
    grade: str | None,
) -> None:
    def column(part: str) -> str | None:
        return found[part][0] if part in found else None

    question = filled(row, path, found["question"][0])
    query_id = column("question_id")
    query = files.identifier(row, path, query_id) if query_id else content_id("q", question)
    refuse_id(query, row, path)
    can_be_answered = answerable(row, path, column("answerable"))
    _add_query(building, row, path, query, question, can_be_answered, labels)
    document = found["document"][0]
    if not (not can_be_answered and not row.values.get(document)):
        title_column = column("title")
        title = files.text(row, path, title_column) if title_column and row.values.get(title_column) else ""
        doc_id = column("id")
        given_id = files.identifier(row, path, doc_id) if doc_id else None
        doc = _add_document(building, row, path, title, filled(row, path, document), given_id)
        value = whole_grade(row, path, grade) if grade else RELEVANT
        _judge(building, row, path, query, doc, value)
    if excluded := column("exclude"):
        building.excluded += [(query, name, row.line) for name in listed_names(row, path, excluded)]
    building.negatives += [(query, text) for name in found.get("negative", ()) for text in texts(row, path, name)]


def _add_query(
    building: _Building,
    row: files.Row,
    path: Path,
    query: str,
    question: str,
    can_be_answered: bool,
    labels: Sequence[str],
) -> None:
    fields: dict[str, Any] = {"_id": query, "text": question}
    if not can_be_answered:
        fields["answerable"] = False
    for name in labels:
        if row.values.get(name) not in (None, ""):
            fields[label_name(name)] = label(row, path, name)
    known = building.queries.setdefault(query, fields)
    if known["text"] != question:
        raise DataError(f"{path}, line {row.line}: the question id {query!r} came before with another question.")
    if known.get("answerable", True) != can_be_answered:
        raise DataError(f"{path}, line {row.line}: this question came before, and was {_marked(not can_be_answered)}.")
    building.happened["rows whose question has another label before, which was kept"] += any(
        known.get(name, value) != value for name, value in fields.items()
    )
    for name, value in fields.items():
        known.setdefault(name, value)


def _marked(can_be_answered: bool) -> str:
    return "answerable" if can_be_answered else "marked unanswerable"


def _add_document(building: _Building, row: files.Row, path: Path, title: str, text: str, given_id: str | None) -> str:
    if given_id is not None and given_id in building.aliases:
        known = building.documents[building.aliases[given_id]]
        if (known["title"], known["text"]) != (title, text):
            raise DataError(f"{path}, line {row.line}: the document id {given_id!r} came before with another text.")
        return building.aliases[given_id]
    content = (title, text)
    if content not in building.by_content:
        doc = given_id if given_id is not None else content_id("d", title, text)
        refuse_id(doc, row, path)
        if doc in building.documents:
            raise DataError(f"{path}, line {row.line}: the document id {doc!r} is already that of another document.")
        building.by_content[content] = doc
        building.by_text.setdefault(text, doc)
        building.documents[doc] = {"_id": doc, "title": title, "text": text}
    doc = building.by_content[content]
    if given_id is not None and given_id != doc:
        building.happened["document ids whose text another id has, which stands for both"] += 1
    if given_id is not None:
        building.aliases[given_id] = doc
    return doc


def _add_negatives(building: _Building) -> None:
    """Judges them 0, last: they have no titles, and only now every document is known that may be one of them."""
    for query, text in building.negatives:
        doc = building.by_text.get(text)
        if doc is None:
            doc = building.by_text[text] = content_id("d", "", text)
            building.documents[doc] = {"_id": doc, "title": "", "text": text}
        grades = building.judgments.setdefault(query, {})
        building.happened["negatives that a row has as relevant to the same question, which they stay"] += (
            grades.setdefault(doc, 0) > 0
        )


def _add_excluded(building: _Building, path: Path) -> None:
    """Documents that are no hits for a question, once every document is known by its id."""
    for query, name, line in building.excluded:
        doc = building.aliases.get(name, name)
        if doc not in building.documents:
            raise DataError(
                f"{path}, line {line}: the excluded document {name!r} is not there. "
                f"{did_you_mean(name, building.aliases)}\nDocuments are excluded by their ids, which a column of the "
                "file has to give (--columns id=NAME)."
            )
        if building.judgments.get(query, {}).get(doc, 0) > 0:
            raise DataError(f"{path}, line {line}: the excluded document {name!r} is relevant to the same question.")
        excluded = building.queries[query].setdefault("exclude", [])
        if doc not in excluded:
            excluded.append(doc)


def _judge(building: _Building, row: files.Row, path: Path, query: str, doc: str, grade: int) -> None:
    grades = building.judgments.setdefault(query, {})
    if doc in grades and grades[doc] != grade:
        raise DataError(
            f"{path}, line {row.line}: this question and document came before with the grade {grades[doc]}, "
            f"not {grade}."
        )
    building.happened["rows that repeat a pair"] += doc in grades
    grades[doc] = grade


def filled(row: files.Row, path: Path, name: str) -> str:
    """A column that must be text with more than spaces in it."""
    value = files.text(row, path, name)
    if not value.strip():
        raise DataError(f"{path}, line {row.line}: {name!r} is empty.")
    return value


def texts(row: files.Row, path: Path, name: str) -> list[str]:
    """The texts of a column that holds one, a list of them, or none."""
    value = row.values.get(name)
    if value is None or value == "":
        return []
    found = value if isinstance(value, list) else [value]
    return [filled(files.Row(row.line, {name: each}), path, name) for each in found]


def listed_names(row: files.Row, path: Path, column: str) -> list[str]:
    """The names of a column that holds a list of them, or a text with semicolons between them."""
    listed_ = row.values.get(column)
    found = texts(row, path, column)
    if not isinstance(listed_, list):
        found = [name.strip() for text in found for name in text.split(";")]
    return [name for name in found if name]


def whole_grade(row: files.Row, path: Path, name: str) -> int:
    """A column that must be a grade."""
    value = files.number(row, path, name)
    if value != int(value) or abs(value) > MAX_GRADE:
        raise DataError(
            f"{path}, line {row.line}: {name!r} must be a whole number up to {MAX_GRADE}, not {row.values[name]!r}."
        )
    return int(value)


def answerable(row: files.Row, path: Path, name: str | None) -> bool:
    """Whether a question can be answered: ``true``, ``false``, or nothing, which is true."""
    value = row.values.get(name) if name is not None else None
    if value is None or value == "":
        return True
    if isinstance(value, str):
        value = _BOOLEANS.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise DataError(f"{path}, line {row.line}: {name!r} must be true or false, not {value!r:.60}.")
    return value


def label(row: files.Row, path: Path, name: str) -> str:
    """A column that is a label, as text."""
    value = row.values[name]
    if isinstance(value, bool | int):
        return str(value).lower()
    return files.text(row, path, name)


def label_name(column: str) -> str:
    """The field of the queries file that a label goes to."""
    return f"{column}_label" if column in ("_id", "text", "exclude", "answerable") else column


def refuse_id(name: str, row: files.Row, path: Path) -> None:
    """Raises ``DataError`` for an id that a qrels file can't hold, with the line."""
    try:
        refuse_separators(name, "")
    except DataError:
        raise DataError(
            f"{path}, line {row.line}: the id {name!r} holds a tab or a line end, which a qrels file can't."
        ) from None
