"""Golden sets: a BEIR folder with a datasheet that says what it was made from.

``corpus.jsonl`` (``_id``, ``title``, ``text``, and ``document``, ``start``, ``end`` for passages), ``queries.jsonl``
(``_id``, ``text``, ``answerable: false``, labels), ``qrels/<split>.tsv`` and ``datasheet.json``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embeval.core import strict_json
from embeval.data.beir import QRELS_HEADER, unanswerable_file
from embeval.data.row_parts import digest_of
from embeval.errors import DataError

DATASHEET = "datasheet.json"
ID_LENGTH = 20
"""Hexadecimal digits of an id that is made of a text: 80 bits, so that no two texts of a corpus share one."""
READ_AT_ONCE = 1024 * 1024

Judgments = Mapping[str, Mapping[str, int]]
"""Query id -> doc id -> grade."""


@dataclass(frozen=True)
class Input:
    """A file that a golden set was made from."""

    name: str
    """Its name, or its path within the folder that was read."""
    n_bytes: int
    sha256: str


@dataclass
class GoldenSet:
    """A golden set in memory, and where it came from."""

    kind: str
    """What it was made from: beir, trec, pairs, hub or documents."""
    source: str
    """Name of the source."""
    documents: list[dict[str, Any]]
    """Rows of the corpus, in their order."""
    queries: list[dict[str, Any]] | None = None
    """Rows of the queries; None for a corpus alone."""
    qrels: dict[str, Judgments] = field(default_factory=dict)
    """Split -> judgments."""
    unanswerable: dict[str, list[str] | None] = field(default_factory=dict)
    """Split -> its unanswerable queries; None, or no entry, where all of them belong to it."""
    inputs: list[Input] = field(default_factory=list)
    """The files read, sorted by name."""
    options: dict[str, Any] = field(default_factory=dict)
    """Settings that shaped it."""
    notes: list[str] = field(default_factory=list)
    """What was merged, left out or kept although it is doubtful, in sentences."""

    @property
    def counts(self) -> dict[str, int]:
        """How much of everything there is, over all splits."""
        queries = self.queries or []
        grades = [grade for each in self.qrels.values() for of_query in each.values() for grade in of_query.values()]
        return {
            "documents": len(self.documents),
            "queries": len(queries),
            "unanswerable": sum(row.get("answerable") is False for row in queries),
            "judgments": len(grades),
            "relevant": sum(grade > 0 for grade in grades),
        }

    def datasheet(self) -> dict[str, Any]:
        """What ``datasheet.json`` holds. It has no date and no path, so that the same input gives the same bytes."""
        return {
            "source": {"kind": self.kind, "name": self.source},
            "options": self.options,
            "inputs": [
                {"name": each.name, "bytes": each.n_bytes, "sha256": each.sha256}
                for each in sorted(self.inputs, key=lambda each: each.name)
            ],
            "counts": self.counts,
            "splits": {
                split: {"queries": len(each), "judgments": sum(map(len, each.values()))}
                for split, each in sorted(self.qrels.items())
            },
            "notes": self.notes,
        }


def write(golden: GoldenSet, folder: Path) -> None:
    """Writes the files into an empty folder, each on disk when this returns. Raises ``DataError`` for ids with tabs."""
    write_lines(folder / "corpus.jsonl", map(json_line, golden.documents))
    if golden.queries is not None:
        write_lines(folder / "queries.jsonl", map(json_line, golden.queries))
    for split, judgments in golden.qrels.items():
        (folder / "qrels").mkdir(exist_ok=True)
        write_lines(folder / "qrels" / f"{split}.tsv", qrels_lines(judgments))
        if (unanswerable := golden.unanswerable.get(split)) is not None:
            write_lines(unanswerable_file(folder, split), (f"{query}\n" for query in unanswerable))
    write_lines(folder / DATASHEET, [strict_json.dumps(golden.datasheet())])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes lines that bring their line ends, and waits until they are on disk."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def json_line(row: Mapping[str, Any]) -> str:
    """One row of a jsonl file."""
    line = json.dumps(row, ensure_ascii=False, allow_nan=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # half of a character in a field that means nothing here: as it came in
        line = json.dumps(row, allow_nan=False)
    return line + "\n"


def qrels_lines(judgments: Judgments) -> list[str]:
    """The lines of a qrels file, in the order of the judgments."""
    lines = ["\t".join(QRELS_HEADER) + "\n"]
    for query, grades in judgments.items():
        refuse_separators(query, "query")
        for doc, grade in grades.items():
            refuse_separators(doc, "document")
            lines.append(f"{query}\t{doc}\t{grade}\n")
    return lines


def refuse_separators(name: str, of_what: str) -> None:
    """Raises ``DataError`` for an id that a file of lines and tabs can't hold."""
    if any(character in name for character in "\t\n\r"):
        raise DataError(f"The {of_what} id {name!r} holds a tab or a line end, which a qrels file can't. Change it.")


def content_id(prefix: str, *texts: str) -> str:
    """An id made of texts: equal texts have equal ones, whatever else a set holds."""
    return prefix + digest_of(texts)[:ID_LENGTH]


def read_input(path: Path, name: str | None = None) -> Input:
    """Size and sha256 of a file. Raises ``DataError``."""
    whole, n_bytes = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while block := file.read(READ_AT_ONCE):
                whole.update(block)
                n_bytes += len(block)
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error}).") from None
    return Input(name or path.name, n_bytes, whole.hexdigest())


def limited(golden: GoldenSet, n_queries: int | None) -> GoldenSet:
    """The set with its first ``n_queries`` queries and their judgments; all documents stay."""
    if n_queries is None or golden.queries is None:
        return golden
    golden.queries = golden.queries[:n_queries]
    kept = {row["_id"] for row in golden.queries}
    golden.unanswerable = {
        split: None if names is None else [name for name in names if name in kept]
        for split, names in golden.unanswerable.items()
    }
    golden.qrels = {
        split: {query: grades for query, grades in judgments.items() if query in kept}
        for split, judgments in golden.qrels.items()
    }
    golden.options["limit"] = n_queries
    return golden


def listed(names: Sequence[str], n_shown: int = 5) -> str:
    """The first of some names, and how many more there are."""
    shown = ", ".join(names[:n_shown])
    return shown + (f" and {len(names) - n_shown} more" if len(names) > n_shown else "")
