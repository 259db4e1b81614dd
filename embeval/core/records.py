"""Item records: the rows behind every number, from which every number can be computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]
ANSWERABLE = "answerable"
"""Column with 1 for items that have an answer and 0 for those that have none."""
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
