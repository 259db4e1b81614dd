"""What rows of several kinds of data have in common: texts that are not blank, and columns that may be absent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from embeval.core.signature import RESERVED_SUBSETS
from embeval.data import files
from embeval.errors import DataError


def text_of(row: files.Row, path: Path, columns: Any, option: str) -> str:
    """The text in the column that ``columns.<option>`` names, without white space at its ends.

    Raises ``DataError`` where there is no such column, and for what is no text or a blank one.
    """
    name = getattr(columns, option)
    if name not in row.values:
        raise files.no_column(path, row, option, name)
    if text := files.text(row, path, name).strip():
        return text
    raise DataError(f"{path}, line {row.line}: {name!r} is blank.")


class OptionalColumn:
    """A column that either all rows have or none; whoever gives it a name of its own counts on it."""

    def __init__(self, columns: Any, option: str, rows: str) -> None:
        self._name: str = getattr(columns, option)
        self._option = option
        self._is_named = self._name != getattr(type(columns), option)
        self._rows = rows
        """What the rows are, for messages: ``texts``."""
        self._is_there: bool | None = None

    def value(self, row: files.Row, path: Path) -> str | None:
        """The id or label of a row; None if rows have none. Raises ``DataError`` where rows differ in this."""
        is_there = self._name in row.values
        if self._is_named and not is_there:
            raise files.no_column(path, row, self._option, self._name)
        if self._is_there is None:
            self._is_there = is_there
        elif self._is_there != is_there:
            article = "an" if self._name[:1] in "aeiou" else "a"
            raise DataError(
                f"{path}, line {row.line}: some {self._rows} have {article} {self._name!r} and this one differs."
            )
        return files.identifier(row, path, self._name) if is_there else None

    def label(self, row: files.Row, path: Path) -> str | None:
        """The same, and ``DataError`` for a label that names a pooled result."""
        if (value := self.value(row, path)) is not None:
            check_label(value, f"{path}, line {row.line}", self._option.replace("subset", "sub-set"))
        return value


def check_label(label: str, place: str, kind: str) -> None:
    """Raises ``DataError`` for a label of a part of the data that names a pooled result."""
    if label in RESERVED_SUBSETS:
        raise DataError(f"{place}: a {kind} may not be called {label!r}, which names a pooled result.")


def digest_of(parts: Iterable[str]) -> str:
    """sha256 over texts in their order, each after its length, so that none can run into the next."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8")
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()
