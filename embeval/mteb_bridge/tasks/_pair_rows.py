"""Rows of one file as columns, checked: what the types over pairs of texts and over summaries read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core.signature import RESERVED_SUBSETS
from embeval.core.words import plural
from embeval.data import files
from embeval.data.beir import are_labels
from embeval.errors import DataError

Reader = Callable[[files.Row, Path, str], Any]
"""The value of a column in a row, checked: row, file, name of the column."""
SUBSET = "subset"
"""Slice by which a result is told for each of its parts too."""


@dataclass(frozen=True)
class Table:
    """Rows of a file."""

    ids: tuple[str, ...]
    """Unique ids; where the file has none, rows are numbered from 1."""
    lines: tuple[int, ...]
    """Line of each."""
    columns: Mapping[str, list[Any]]
    """Part -> values."""
    slices: Mapping[str, tuple[str, ...]]
    """Other columns that group the rows -> label of each."""


def read(path: Path, names: Any, readers: Mapping[str, Reader]) -> Table:
    """The rows of a file. ``names`` has the name of each part's column, and of the id's, as attributes.

    Raises ``DataError`` with file and line.
    """
    ids: dict[str, int] = {}
    columns: dict[str, list[Any]] = {part: [] for part in readers}
    others: dict[str, list[Any]] = {}
    has_ids: bool | None = None
    for row in files.rows(path):
        for part in readers:
            if getattr(names, part) not in row.values:
                raise files.no_column(path, row, part, getattr(names, part))
        has_ids = names.id in row.values if has_ids is None else has_ids
        if has_ids != (names.id in row.values):
            raise DataError(f"{path}, line {row.line}: some rows have an {names.id!r} and this one differs.")
        if not has_ids and names.id != type(names).id:  # a name that was asked for
            raise files.no_column(path, row, "id", names.id)
        own = files.identifier(row, path, names.id) if has_ids else str(len(ids) + 1)
        if own in ids:
            raise DataError(f"{path}, line {row.line}: the id {own!r} stands already in line {ids[own]}.")
        for name in row.values.keys() - {getattr(names, field.name) for field in dataclasses.fields(names)}:
            others.setdefault(name, [None] * len(ids))
        ids[own] = row.line
        for part, reader in readers.items():
            columns[part].append(reader(row, path, getattr(names, part)))
        for name, values in others.items():
            values.append(row.values.get(name))
    return Table(tuple(ids), tuple(ids.values()), columns, dict(_slices(path, others)))


def _slices(path: Path, others: Mapping[str, list[Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Columns with few short values, each used twice on average, as for retrieval data."""
    for name in sorted(others):
        values = others[name]
        if not all(isinstance(value, (str, int)) for value in values):
            continue
        labels = [str(value) for value in values]
        if not are_labels(labels):
            continue
        if name == SUBSET and (empty := labels.count("")):
            raise DataError(f"{path}: {plural(empty, 'row has', 'rows have')} no {SUBSET!r}, and others have one.")
        if name == SUBSET and (taken := set(labels) & set(RESERVED_SUBSETS)):
            raise DataError(f"{path}: a sub-set may not be called {min(taken)!r}, which names a pooled result.")
        yield name, tuple(labels)
