"""Minimal pairs: an acceptable sentence and one that differs from it in a single point and is not.

A file of rows, or a folder of such files, in the form of BLiMP: ``sentence_good``, ``sentence_bad``, and perhaps
``UID`` (the paradigm), ``field``, ``linguistics_term`` and ``pairID``. Sentences are kept as they stand but for white
space at their ends.
Source: Warstadt et al., BLiMP: The Benchmark of Linguistic Minimal Pairs for English, TACL 2020, and its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from embeval.core.border import BORDER
from embeval.data import files
from embeval.data.row_parts import OptionalColumn, check_label, digest_of, text_of
from embeval.errors import DataError


@dataclass(frozen=True, kw_only=True)
class MinimalPairColumns:
    """Where the parts of a minimal pair stand in the file."""

    __pydantic_config__ = BORDER

    sentence_good: str = "sentence_good"
    """Column of the acceptable sentence."""
    sentence_bad: str = "sentence_bad"
    """Column of the other one."""
    paradigm: str = "UID"
    """Column of the paradigm; where a file has none, it is the file's name without its ending."""
    field: str = "field"
    """Column of the field of the paradigm, such as syntax; where no file has one, there are none."""
    term: str = "linguistics_term"
    """Column of the phenomenon, such as binding; where no file has one, there are none."""
    id: str = "pairID"
    """Column of the pair's id within its paradigm; where a file has none, its rows are numbered from 1."""


@dataclass(frozen=True)
class MinimalPairs:
    """n pairs of sentences, by paradigm and by id, whatever the order of files and rows."""

    ids: tuple[str, ...]
    """Unique: ``paradigm/id``."""
    good: tuple[str, ...]
    """Acceptable sentences."""
    bad: tuple[str, ...]
    """The other sentence of each pair."""
    paradigms: tuple[str, ...]
    """Paradigm of each pair."""
    fields: tuple[str, ...] = ()
    """Field of each pair; empty where the data has none."""
    terms: tuple[str, ...] = ()
    """Phenomenon of each pair; empty where the data has none."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def identical(self) -> tuple[str, ...]:
        """Ids of pairs whose two sentences are the same, in which no model can prefer one: BLiMP has some."""
        return tuple(pair for pair, good, bad in zip(self.ids, self.good, self.bad, strict=True) if good == bad)

    @cached_property
    def data_hash(self) -> str:
        """sha256 over ids, sentences, paradigms, fields and terms, whatever files they came from."""
        empty = ("",) * len(self)
        columns = (self.ids, self.good, self.bad, self.paradigms, self.fields or empty, self.terms or empty)
        return digest_of(part for row in zip(*columns, strict=True) for part in row)


class _Pair(NamedTuple):
    paradigm: str
    id: str
    good: str
    bad: str
    field: str | None
    term: str | None
    path: Path
    line: int

    @property
    def name(self) -> str:
        return f"{self.paradigm}/{self.id}"


def load_minimal_pairs(path: Path, columns: MinimalPairColumns = MinimalPairColumns()) -> MinimalPairs:
    """The pairs of a jsonl, csv, tsv or parquet file, or of all such files of a folder.

    Raises ``DataError`` with file and line: for blank sentences, ids that stand twice, a column that only some pairs
    have, names that stand for pooled results, and a file in which both sentences of every pair are the same.
    """
    field, term = (OptionalColumn(columns, option, "pairs") for option in ("field", "term"))
    found: dict[str, _Pair] = {}
    for file in _files(path):
        for pair in _pairs(file, columns, field, term):
            if (first := found.setdefault(pair.name, pair)) is not pair:
                there = f"line {first.line}" if first.path == file else f"{first.path}, line {first.line}"
                raise DataError(f"{file}, line {pair.line}: the pair {pair.name!r} stands already in {there}.")
    # Sorted, as a file's name must not move its pairs; short ids first, which brings 2 before 10.
    pairs = sorted(found.values(), key=lambda pair: (pair.paradigm, len(pair.id), pair.id))
    return MinimalPairs(
        ids=tuple(pair.name for pair in pairs),
        good=tuple(pair.good for pair in pairs),
        bad=tuple(pair.bad for pair in pairs),
        paradigms=tuple(pair.paradigm for pair in pairs),
        fields=tuple(pair.field for pair in pairs if pair.field is not None),
        terms=tuple(pair.term for pair in pairs if pair.term is not None),
    )


def _files(path: Path) -> Sequence[Path]:
    try:
        if not path.is_dir():
            return [path]
        inside = sorted(path.iterdir())
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror or error}).") from None
    # Hidden ones are what editors and archives of other systems leave behind.
    found = [file for file in inside if files.kind_or_none(file) and file.name[0] != "." and not file.is_dir()]
    if not found:
        raise DataError(
            f"{path}: no file of minimal pairs in this folder. Use .jsonl, .csv, .tsv or .parquet, each also with .gz."
        )
    return found


def _pairs(path: Path, columns: MinimalPairColumns, field: OptionalColumn, term: OptionalColumn) -> list[_Pair]:
    paradigms, ids = (OptionalColumn(columns, option, "pairs") for option in ("paradigm", "id"))
    found: list[_Pair] = []
    for row in files.rows(path):
        good = text_of(row, path, columns, "sentence_good")
        bad = text_of(row, path, columns, "sentence_bad")
        paradigm = paradigms.label(row, path)
        if paradigm is None:
            paradigm = Path(path.name.removesuffix(".gz")).stem
            check_label(paradigm, str(path), "paradigm")
        own = ids.value(row, path) or str(len(found) + 1)
        labels = field.label(row, path), term.label(row, path)
        found.append(_Pair(paradigm, own, good, bad, *labels, path, row.line))
    if all(pair.good == pair.bad for pair in found):
        raise DataError(
            f"{path}, line {found[0].line}: both sentences are the same, as in all pairs of this file.\n"
            f"Are {columns.sentence_good!r} and {columns.sentence_bad!r} the right columns?"
        )
    return found
