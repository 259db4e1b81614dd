"""Sentence pairs with a gold score: the payload of STS."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from embeval.core.border import BORDER
from embeval.core.records import Column
from embeval.data import files
from embeval.data.row_parts import OptionalColumn, digest_of
from embeval.errors import DataError

MAX_SCORE = 1e12
"""Beyond it the sums and squares behind a correlation lose the digits that tell scores apart."""


@dataclass(frozen=True, kw_only=True)
class PairColumns:
    """Where the parts of a pair stand in the file."""

    __pydantic_config__ = BORDER

    sentence1: str = "sentence1"
    """Column of the first text."""
    sentence2: str = "sentence2"
    """Column of the second text."""
    score: str = "score"
    """Column of the gold score; any scale, higher means more alike."""
    id: str = "id"
    """Column of the id; where the file has none, pairs are numbered from 1."""
    subset: str = "subset"
    """Column of the sub-set; where the file has none, there are none."""


@dataclass(frozen=True)
class Pairs:
    """n pairs of texts."""

    ids: tuple[str, ...]
    """Unique ids."""
    left: tuple[str, ...]
    """First texts."""
    right: tuple[str, ...]
    """Second texts."""
    gold: Column
    """float64 [n]: gold scores as they stand in the file."""
    subsets: tuple[str, ...] = field(default=())
    """Label per pair; empty where the file has no such column."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def data_hash(self) -> str:
        """sha256 over ids, texts, scores and sub-sets in order, whatever kind of file they came from."""
        subsets = self.subsets or ("",) * len(self)
        scores = (repr(float(score)) for score in self.gold)
        rows = zip(self.ids, self.left, self.right, scores, subsets, strict=True)
        return digest_of(part for row in rows for part in row)


def load_pairs(path: Path, columns: PairColumns = PairColumns()) -> Pairs:
    """The pairs of a jsonl, csv, tsv or parquet file. Raises ``DataError`` with file and line."""
    own_ids, labels = (OptionalColumn(columns, option, "pairs") for option in ("id", "subset"))
    ids: dict[str, int] = {}
    left: list[str] = []
    right: list[str] = []
    gold: list[float] = []
    subsets: list[str] = []
    for row in files.rows(path):
        for option in ("sentence1", "sentence2", "score"):
            if (name := getattr(columns, option)) not in row.values:
                raise files.no_column(path, row, option, name)
        own = own_ids.value(row, path)
        subset = labels.label(row, path)
        pair = str(len(ids) + 1) if own is None else own
        if pair in ids:
            raise DataError(f"{path}, line {row.line}: the id {pair!r} stands already in line {ids[pair]}.")
        ids[pair] = row.line
        left.append(files.text(row, path, columns.sentence1))
        right.append(files.text(row, path, columns.sentence2))
        gold.append(score(row, path, columns.score))
        if subset is not None:
            subsets.append(subset)
    return Pairs(tuple(ids), tuple(left), tuple(right), np.array(gold, dtype=np.float64), tuple(subsets))


def score(row: files.Row, path: Path, name: str) -> float:
    """A column that must be a score, of which correlations can be taken."""
    value = files.number(row, path, name)
    if abs(value) > MAX_SCORE:
        raise DataError(f"{path}, line {row.line}: {name!r} is {value:g}, which is no score: at most ±{MAX_SCORE:g}.")
    return value
