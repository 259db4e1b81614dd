"""Texts without a label: the payload of masked language modelling and pseudo-likelihood.

A plain text file is cut into lines, paragraphs or nothing; a table has a text in each row. Either way a text is kept
as it stands but for white space at its ends; line ends within it become line feeds in plain text files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from embeval.core.border import BORDER
from embeval.data import files
from embeval.data.row_parts import OptionalColumn, digest_of, text_of
from embeval.errors import ConfigError, DataError

TextUnit = Literal["line", "paragraph", "file"]
"""What is one text of a plain text file: each line, each block between blank lines, or all of it."""

PLAIN_ENDINGS = (".txt", ".text", ".raw")
"""Endings of plain text files, each also with .gz."""


@dataclass(frozen=True, kw_only=True)
class TextColumns:
    """Where the parts of a text stand in a table."""

    __pydantic_config__ = BORDER

    text: str = "text"
    """Column of the text."""
    id: str = "id"
    """Column of the id; where the file has none, texts are numbered from 1."""
    subset: str = "subset"
    """Column of the sub-set; where the file has none, there are none."""


@dataclass(frozen=True)
class Texts:
    """n texts, none of them blank."""

    ids: tuple[str, ...]
    """Unique ids: those of a table, else the number of the line on which a text begins."""
    texts: tuple[str, ...]
    """Without white space at their ends."""
    subsets: tuple[str, ...] = ()
    """Label per text; empty where the file has none."""
    n_blank: int = 0
    """Blank lines left out, where each line is a text; between paragraphs they part texts and are none."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def data_hash(self) -> str:
        """sha256 over ids, texts and sub-sets in order, whatever kind of file they came from."""
        subsets = self.subsets or ("",) * len(self)
        return digest_of(part for row in zip(self.ids, self.texts, subsets, strict=True) for part in row)


def load_texts(path: Path, columns: TextColumns = TextColumns(), unit: TextUnit = "line") -> Texts:
    """The texts of a plain text file by ``unit``, or of a jsonl, csv, tsv or parquet file by its rows.

    Raises ``DataError`` with file and line for what can't be read and where there is no text, and what
    ``check_options`` raises.
    """
    check_options(path, columns, unit)
    if is_plain(path):
        return _from_plain(path, unit)
    files.check_file(path)
    if files.kind_or_none(path) is None:
        raise DataError(
            f"{path}: unknown kind of file. Use {', '.join(PLAIN_ENDINGS)}, .jsonl, .csv, .tsv or .parquet, each also "
            "with .gz."
        )
    return _from_table(path, columns)


def check_options(path: Path, columns: TextColumns, unit: TextUnit) -> None:
    """Raises ``ConfigError`` for columns of plain text and for a unit of a table, by the file's name alone."""
    if is_plain(path) and columns != TextColumns():
        raise ConfigError(f"{path.name} is plain text, which has no columns. Leave 'columns' out.", key=("columns",))
    if files.kind_or_none(path) is not None and unit != "line":
        raise ConfigError(
            f"unit: {unit} is for plain text ({', '.join(PLAIN_ENDINGS)}); in {path.name} each row is a text.",
            key=("unit",),
        )


def is_plain(path: Path) -> bool:
    """Whether a file is plain text by its ending."""
    return path.name.removesuffix(".gz").lower().endswith(PLAIN_ENDINGS)


def _from_plain(path: Path, unit: TextUnit) -> Texts:
    n_blank = 0
    found: dict[str, str] = {}
    if unit == "line":
        for number, line in files.lines(path):
            if text := line.strip():
                found[str(number)] = text
            else:
                n_blank += 1
    else:
        found = dict(_blocks(path, parted=unit == "paragraph"))
    if not found:
        raise DataError(f"{path}: there is no text in it.")
    return Texts(tuple(found), tuple(found.values()), n_blank=n_blank)


def _blocks(path: Path, *, parted: bool) -> Iterator[tuple[str, str]]:
    """(number of its first line, text) of each block, which ends at a blank line where blocks are ``parted``."""
    start = length = 0
    block: list[str] = []

    def whole() -> Iterator[tuple[str, str]]:
        if block:
            yield str(start), "\n".join(block).strip()
            block.clear()

    for number, line in files.lines(path):
        is_blank = not line.strip()
        if is_blank and parted:
            yield from whole()
        elif block or not is_blank:
            start, length = (start, length) if block else (number, 0)
            length += len(line) + 1
            if length > files.MAX_FIELD:
                raise DataError(
                    f"{path}, line {start}: a text of more than {files.MAX_FIELD:,} characters. "
                    "Cut it up, or let each line be a text (unit: line)."
                )
            block.append(line)
    yield from whole()


def _from_table(path: Path, columns: TextColumns) -> Texts:
    ids, subsets = (OptionalColumn(columns, option, "texts") for option in ("id", "subset"))
    lines: dict[str, int] = {}
    texts: list[str] = []
    labels: list[str] = []
    for row in files.rows(path):
        text = text_of(row, path, columns, "text")
        own = ids.value(row, path)
        name = str(len(lines) + 1) if own is None else own
        if name in lines:
            raise DataError(f"{path}, line {row.line}: the id {name!r} stands already in line {lines[name]}.")
        if (label := subsets.label(row, path)) is not None:
            labels.append(label)
        lines[name] = row.line
        texts.append(text)
    return Texts(tuple(lines), tuple(texts), tuple(labels))
