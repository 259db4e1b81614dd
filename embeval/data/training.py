"""Texts of training corpora, one after another, whatever kind of file they are in."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from embeval.data import files
from embeval.errors import DataError

ENDINGS = (".txt", ".jsonl", ".csv", ".tsv", ".parquet")
"""Kinds of files, each also with .gz."""


class TrainingText(NamedTuple):
    """A text that a model may have been trained on."""

    file: Path
    line: int
    text: str
    goes_on: bool
    """Whether it goes on where the text before it ended: lines of a .txt file do, and texts of one record."""


def corpus_files(paths: Sequence[Path]) -> list[Path]:
    """The files, with those of a known kind in place of a folder, sorted. Raises ``DataError`` where there are none."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(file for file in path.rglob("*") if file.is_file() and _known(file))
        if not inside:
            raise DataError(f"{path}: no file in this folder ends with {', '.join(ENDINGS)}, or that and .gz.")
        found += inside
    return list(dict.fromkeys(found))


def texts_of(path: Path, columns: Sequence[str] = ()) -> Iterator[TrainingText]:
    """The texts of a file, a record at a time: the lines of a .txt, else the columns named, or all texts of a record.

    Raises ``DataError`` for what can't be read.
    """
    if not _known(path) and path.is_file():
        raise DataError(f"{path}: unknown kind of file. Use {', '.join(ENDINGS)}, each also with .gz.")
    if path.name.lower().removesuffix(".gz").endswith(".txt"):
        yield from _lines(path)
        return
    for row in files.rows(path):
        values = [files.column(row, path, name) for name in columns] if columns else list(row.values.values())
        for place, text in enumerate(_texts(values)):
            yield TrainingText(path, row.line, text, place > 0)


def _known(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(ENDINGS)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value: records hold lists of passages, or turns of a conversation."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _lines(path: Path) -> Iterator[TrainingText]:
    opener = gzip.open if path.name.endswith(".gz") else open
    number = 0
    try:
        # A byte that is no UTF-8 ends a word here and nothing else: crawled text has such.
        with opener(path, "rt", encoding="utf-8-sig", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                yield TrainingText(path, number, line, True)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}, after line {number}: not a whole gzip file ({error}).") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error}).") from None
