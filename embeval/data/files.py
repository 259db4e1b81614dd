"""Rows from local files: jsonl, csv, tsv, parquet, each plain or gzipped. Every complaint names file and line."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from embeval.core import strict_json
from embeval.errors import DataError, did_you_mean

MAX_FIELD = 16 * 1024 * 1024
"""Largest field of a csv file, in characters; the csv module's own limit of 131,072 is shorter than real documents."""

SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "bars"}
"""What spreadsheets and databases put between columns."""
SPLIT_NAMES = ("train", "dev", "validation", "val", "test")
"""Names of files that hold one part of a data set."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)


class Row(NamedTuple):
    """One record of a file."""

    line: int
    """Line it ends on, counted from 1; in parquet the row number."""
    values: Mapping[str, Any]
    """Column name -> value: text in csv and tsv, JSON values in jsonl, Python values in parquet."""


def rows(path: Path) -> Iterator[Row]:
    """The records of a file, by its ending. Raises ``DataError`` for what can't be read, and for an empty file."""
    check_file(path)
    reader = {"jsonl": _jsonl, "csv": _csv, "tsv": _csv, "parquet": _parquet}[kind(path)]
    found = False
    for row in reader(path):
        found = True
        yield row
    if not found:
        raise DataError(f"{path}: the file holds no rows.")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line without its end) of a text file, plain or gzipped: LF, CR LF or CR ends a line, no other.

    Raises ``DataError`` for what can't be read, NUL characters, and lines of more than ``MAX_FIELD`` characters.
    """
    check_file(path)
    number = 0
    with _open(path) as file:
        # Bounded, so that a file of one endless line is refused before it has filled the memory.
        while line := file.readline(MAX_FIELD + len("\r\n")):
            number += 1
            line = line.removesuffix("\n").removesuffix("\r")
            if len(line) > MAX_FIELD:
                raise DataError(f"{path}, line {number}: a line of more than {MAX_FIELD:,} characters. Cut it up.")
            if "\0" in line:
                raise DataError(f"{path}, line {number}: holds a NUL character, so it is no text.")
            yield number, line


def check_file(path: Path) -> None:
    """Raises ``DataError`` where a path is not that of a regular file."""
    try:
        path.stat()
    except OSError as error:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        raise DataError(f"{path}: {'no such file' if missing else error.strerror}.") from None
    if path.is_dir():
        raise DataError(f"{path}: is a folder; a file is needed here.")
    if not path.is_file():  # a pipe would be waited for without end
        raise DataError(f"{path}: is not a regular file. Write its content to one first.")


def kind(path: Path) -> str:
    """``jsonl``, ``csv``, ``tsv`` or ``parquet``. Raises ``DataError`` for another ending."""
    if (found := kind_or_none(path)) is not None:
        return found
    raise DataError(f"{path}: unknown kind of file. Use .jsonl, .csv, .tsv or .parquet, each also with .gz.")


def kind_or_none(path: Path) -> str | None:
    """The same, and None for another ending."""
    name = path.name.removesuffix(".gz").lower()
    return next((each for each in ("jsonl", "csv", "tsv", "parquet") if name.endswith(f".{each}")), None)


def names_split(path: Path) -> bool:
    """Whether a file is called by its split, with files of other splits beside it: ``test.jsonl.gz``."""
    return path.name.partition(".")[0] in SPLIT_NAMES


def of_split(path: Path, split: str) -> Path:
    """The file of a split: for ``dev``, ``test.jsonl.gz`` becomes ``dev.jsonl.gz``; a file of another name stays."""
    _, dot, ending = path.name.partition(".")
    return path.parent / f"{split}{dot}{ending}" if names_split(path) else path


@contextmanager
def _open(path: Path) -> Iterator[io.TextIOBase]:
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        # utf-8-sig drops the byte-order mark that spreadsheets write; newline="" leaves line ends to the readers.
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(
            f"{path}, line {_broken_line(path)}: not UTF-8 text (byte {byte:#04x}: {error.reason})."
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: not a whole gzip file ({error}).") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error}).") from None


def _broken_line(path: Path) -> int:
    """The first line that is not UTF-8. Text is decoded in blocks, so the decoder itself doesn't know."""
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _jsonl(path: Path) -> Iterator[Row]:
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                values = strict_json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}, line {number}: not valid JSON ({_short(error)}).") from None
            if not isinstance(values, dict):
                raise DataError(f"{path}, line {number}: a JSON object is needed, not {type(values).__name__}.")
            if "\\u" in line and (broken := half_name(values)) is not None:
                raise DataError(f"{path}, line {number}: the name {broken!r:.60} holds half of a character.")
            yield Row(number, values)


def _csv(path: Path) -> Iterator[Row]:
    previous = csv.field_size_limit(MAX_FIELD)
    try:
        with _open(path) as file:
            # Tab-separated data sets are not quoted: a lone " is a character of the text there.
            dialect: dict[str, Any] = {}
            if kind(path) == "tsv":
                dialect = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
            reader = csv.reader(file, strict=True, **dialect)
            try:
                header = next(reader, None)
                if header is None:
                    return
                needed = dialect.get("delimiter", ",")
                if len(header) == 1 and (other := next((each for each in SEPARATORS if each in header[0]), None)):
                    raise DataError(
                        f"{path}, line 1: the columns are separated by {SEPARATORS[other]}; a .{kind(path)} file needs "
                        f"{SEPARATORS[needed]}.\nSave it with {SEPARATORS[needed]}, and numbers with a decimal point."
                    )
                if len(set(header)) != len(header):
                    twice = next(name for name in header if header.count(name) > 1)
                    raise DataError(f"{path}, line 1: the column {twice!r} appears twice.")
                for fields in reader:
                    if not fields:
                        continue
                    if len(fields) != len(header):
                        raise DataError(
                            f"{path}, line {reader.line_num}: {len(fields)} fields, but the header has {len(header)}."
                        )
                    yield Row(reader.line_num, dict(zip(header, fields, strict=True)))
            except csv.Error as error:
                raise DataError(f"{path}, line {reader.line_num}: not valid {kind(path)} ({error}).") from None
    finally:
        csv.field_size_limit(previous)


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.name.endswith(".gz"):
            with gzip.open(path, "rb") as file:
                source: Any = io.BytesIO(file.read())
        else:
            source = path
        number = 0
        with pq.ParquetFile(source) as parquet:
            names = parquet.schema_arrow.names
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise DataError(f"{path}: the column {twice[0]!r} appears twice.")
            for batch in parquet.iter_batches(batch_size=4096):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(number, values)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: a column of this parquet file is not UTF-8 text ({error.reason}).") from None
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a readable parquet file ({_short(error)}).") from None


def _short(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text if len(text) <= 160 else text[:159] + "…"


def column(row: Row, path: Path, name: str) -> Any:
    """The value of a column. Raises ``DataError`` naming the columns that are there."""
    try:
        return row.values[name]
    except KeyError:
        there = ", ".join(repr(key) for key in row.values)
        raise DataError(f"{path}, line {row.line}: there is no column {name!r}. Columns: {there}.") from None


def unfolded(row: Row, path: Path, name: str) -> Any:
    """The value of a column; in csv and tsv, whose cells hold text alone, a list that is written as JSON is a list."""
    value = column(row, path, name)
    if isinstance(value, str) and value.lstrip().startswith("[") and kind(path) in ("csv", "tsv"):
        with suppress(ValueError):
            return strict_json.loads(value)
    return value


def no_column(path: Path, row: Row, part: str, name: str) -> DataError:
    """The error of a row without the column ``name`` that the task's option ``columns.<part>`` asks for."""
    line = 1 if kind(path) in ("csv", "tsv") else row.line  # where the names of the columns stand
    there = ", ".join(repr(key) for key in row.values)
    close = did_you_mean(name, row.values)
    return DataError(
        f"{path}, line {line}: there is no column {name!r}. Columns: {there}. {close}".rstrip()
        + f"\nSay which one it is: columns: {{{part}: …}} in embeval.yaml, or ,columns.{part}=… behind the file."
    )


def text(row: Row, path: Path, name: str) -> str:
    """A column that must be text."""
    value = column(row, path, name)
    if not isinstance(value, str):
        raise DataError(f"{path}, line {row.line}: {name!r} must be text, not {_shown(value)}.")
    return whole_characters(value, row, path, name)


def whole_characters(value: str, row: Row, path: Path, name: str) -> str:
    """The text, if it is one: JSON can spell half of a character, which no tokenizer and no file takes."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{path}, line {row.line}: {name!r} holds half of a character: {_shown(value)}.") from None
    return value


def half_name(values: Mapping[str, Any]) -> str | None:
    """The first name of a column that holds half of a character, which only an escape can spell; else None."""
    return next((name for name in values if any("\ud800" <= each <= "\udfff" for each in name)), None)


def number(row: Row, path: Path, name: str) -> float:
    """A column that must be a finite number, or text that spells one."""
    value = column(row, path, name)
    try:
        # float() takes more than people mean by a number: True, "1_000", digits of other scripts.
        if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value.strip())):
            raise ValueError
        as_float = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{path}, line {row.line}: {name!r} must be a number, not {_shown(value)}.") from None
    if not -float("inf") < as_float < float("inf"):
        raise DataError(f"{path}, line {row.line}: {name!r} must be a finite number, not {_shown(value)}.")
    return as_float


def identifier(row: Row, path: Path, name: str) -> str:
    """A column that must be an id: text, or a whole number, which becomes text."""
    value = column(row, path, name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise DataError(
            f"{path}, line {row.line}: {name!r} must be an id (text or a whole number), not {_shown(value)}."
        )
    return whole_characters(value, row, path, name)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"
