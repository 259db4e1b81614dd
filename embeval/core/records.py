"""Item records: the rows behind every number, from which every number can be computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]
ANSWERABLE = "answerable"
"""Column with 1 for items that have an answer and 0 for those that have none."""
Int32 = npt.NDArray[np.int32]
RESERVED = ("id", "cluster")
"""Names that no metric column may have; nor may one start with ``slice.``."""


@dataclass(frozen=True)
class ItemRecords:
    """One row per item of a task, column by column.

    Metrics read ``columns``. NaN in a column means "this item has no value" (unscored) and never enters a metric.
    """

    unit: str
    """What one item is: ``pair``, ``query``, ``sentence``, ``example``."""
    ids: tuple[str, ...]
    """Unique ids of the n items."""
    columns: Mapping[str, Column]
    """float64 [n] each, by name."""
    slices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Labels [n] by which items can be grouped, such as ``subset`` or ``kind``."""
    clusters: tuple[str, ...] | None = None
    """Label [n] of the cluster that each item belongs to, where items are not independent; null: they are."""

    def __post_init__(self) -> None:
        n = len(self.ids)
        if len(set(self.ids)) != n:
            raise ValueError("item ids must be unique")
        for name, column in self.columns.items():
            if name in RESERVED or name.startswith("slice."):
                raise ValueError(f"a column can't be called {name!r}: files of items use that name")
            if column.shape != (n,) or column.dtype != np.float64:
                raise ValueError(f"column {name!r} must be float64 [{n}], not {column.dtype} {list(column.shape)}")
        for name, labels in self.slices.items():
            if len(labels) != n:
                raise ValueError(f"slice {name!r} must have {n} labels, not {len(labels)}")
        if self.clusters is not None and len(self.clusters) != n:
            raise ValueError(f"clusters must have {n} labels, not {len(self.clusters)}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def outside(self) -> npt.NDArray[np.bool_]:
        """bool [n]: items that only metrics with the column ``answerable`` speak of: queries without an answer."""
        if ANSWERABLE not in self.columns:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(self.columns[ANSWERABLE] == 0.0)

    def take(self, rows: Sequence[int] | npt.NDArray[np.intp]) -> ItemRecords:
        """The records of the given rows, in that order."""
        chosen = np.asarray(rows, dtype=np.intp)
        return ItemRecords(
            unit=self.unit,
            ids=tuple(self.ids[row] for row in chosen),
            columns={name: column[chosen] for name, column in self.columns.items()},
            slices={name: tuple(labels[row] for row in chosen) for name, labels in self.slices.items()},
            clusters=None if self.clusters is None else tuple(self.clusters[row] for row in chosen),
        )

    def rows_by(self, slice_name: str) -> dict[str, npt.NDArray[np.intp]]:
        """Row numbers of each label of a slice, labels in order of first appearance."""
        rows: dict[str, list[int]] = {}
        for row, label in enumerate(self.slices[slice_name]):
            rows.setdefault(label, []).append(row)
        return {label: np.array(of_label, dtype=np.intp) for label, of_label in rows.items()}


@dataclass(frozen=True)
class TokenRecords:
    """One row per token of the texts of a task, column by column, item after item."""

    items: tuple[str, ...]
    """Ids of the items that have rows."""
    item: Int32
    """int32 [n]: which of ``items`` each token is of."""
    place: Int32
    """int32 [n]: its place among the tokens of the text, from 0."""
    id: Int32
    """int32 [n]: its number in the vocabulary."""
    begin: Int32
    """int32 [n]: place of its first character in the text."""
    end: Int32
    """int32 [n]: place behind its last one."""
    word: Int32
    """int32 [n]: number of the word it is a part of, as the tokenizer cuts words."""
    vocabulary: Mapping[int, str]
    """Number -> token as the vocabulary writes it, of all in ``id``."""
    log_probs: Mapping[str, npt.NDArray[np.float32]]
    """Mode -> float32 [n]: natural log of the probability of the token."""

    def __len__(self) -> int:
        return len(self.item)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Each token as the vocabulary writes it."""
        return tuple(self.vocabulary[each] for each in self.id.tolist())

    def of(self, item: str) -> TokenRecords:
        """The rows of one item; none where it has none."""
        if item not in self.items:
            return self._take(np.zeros(0, dtype=np.intp))
        return self._take(np.flatnonzero(self.item == self.items.index(item)))

    def _take(self, rows: npt.NDArray[np.intp]) -> TokenRecords:
        columns = {name: getattr(self, name)[rows] for name in TOKEN_COLUMNS}
        log_probs = {mode: values[rows] for mode, values in self.log_probs.items()}
        return replace(self, item=self.item[rows], **columns, log_probs=log_probs)


TOKEN_COLUMNS = ("place", "id", "begin", "end", "word")
"""Columns of ``TokenRecords`` that are whole numbers."""
