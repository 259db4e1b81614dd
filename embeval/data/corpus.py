"""A corpus alone: documents to be searched, without queries and judgments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from embeval.data import files
from embeval.data.row_parts import digest_of
from embeval.errors import DataError

NAMES = ("corpus.jsonl", "corpus.jsonl.gz")
"""What the corpus of a BEIR folder is called."""
ID_FIELDS = ("_id", "id")
"""Fields that may hold the id of a document."""


@dataclass(frozen=True)
class Corpus:
    """Documents in the order of their file."""

    ids: tuple[str, ...]
    """N unique ids."""
    titles: tuple[str, ...]
    """N titles, empty where a document has none."""
    bodies: tuple[str, ...]
    """N texts without their titles."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """What is encoded of each document: title and text, joined as ``beir.load_beir`` joins them."""
        return tuple(f"{title} {body}".strip() for title, body in zip(self.titles, self.bodies, strict=True))

    @cached_property
    def digest(self) -> str:
        """sha256 over ids and texts in their order."""
        return digest_of(part for row in zip(self.ids, self.texts, strict=True) for part in row)


def read(path: Path) -> Corpus:
    """The documents of a file (jsonl, csv, tsv, parquet), or of the corpus file in a BEIR folder.

    Rows hold ``_id`` or ``id``, ``text`` and perhaps ``title``. Raises ``DataError`` with file and line.
    """
    file = _file(path)
    documents: dict[str, tuple[str, str]] = {}
    for row in files.rows(file):
        name = next((field for field in ID_FIELDS if field in row.values), ID_FIELDS[0])
        doc = files.identifier(row, file, name)
        if doc in documents:
            raise DataError(f"{file}, line {row.line}: the id {doc!r} appears twice.")
        title = files.text(row, file, "title") if row.values.get("title") is not None else ""
        documents[doc] = (title, files.text(row, file, "text"))
    titles, bodies = zip(*documents.values(), strict=True)
    return Corpus(tuple(documents), titles, bodies)


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    there = [path / name for name in NAMES if (path / name).exists()]
    if len(there) > 1:
        raise DataError(f"{there[0]} and {there[1].name} are both there, and may differ. Name one of them.")
    if not there:
        raise DataError(f"{path}: there is no {' or '.join(NAMES)} in this folder.")
    return there[0]
