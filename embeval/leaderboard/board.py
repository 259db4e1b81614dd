"""Stored results as a table: a row for each model, a column for each task.

Results share a column only if they measured the same thing: same task, split, sub-set and protocol signature. A
model without a result has a gap there, never a zero, and no mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from embeval.core import strict_json
from embeval.core.result import MetricValue, Result


class ColumnKey(NamedTuple):
    """What results of one column have in common."""

    task: str
    split: str
    subset: str
    metric: str
    metric_version: int
    protocol: str


class RowKey(NamedTuple):
    """What results of one row have in common."""

    label: str
    name: str
    revision: str
    digest: str


@dataclass(frozen=True)
class Row:
    """A model with its values."""

    key: RowKey
    """The model."""
    label: str
    """Its name in the table, made unique where two models share one."""
    cells: Mapping[ColumnKey, MetricValue]
    """Its values; a missing key is a gap."""
    mean: float | None
    """Mean over all columns; None where a value is missing or undefined."""


@dataclass(frozen=True)
class Board:
    """A table of models by tasks."""

    columns: tuple[ColumnKey, ...]
    """Columns, by task name."""
    headings: Mapping[ColumnKey, str]
    """Heading of each column."""
    rows: tuple[Row, ...]
    """Rows: complete ones by mean, best first, then the others by name."""
    failures: tuple[str, ...] = field(default=())
    """One sentence for each failed run."""

    def to_json(self) -> strict_json.Json:
        """The table as plain values."""
        return {
            "columns": [{**key._asdict(), "heading": self.headings[key]} for key in self.columns],
            "rows": [
                {
                    "model": row.label,
                    "name": row.key.name,
                    "revision": row.key.revision,
                    "digest": row.key.digest,
                    "mean": row.mean,
                    "values": [_cell_json(row.cells.get(key)) for key in self.columns],
                }
                for row in self.rows
            ],
            "failures": list(self.failures),
        }


def _cell_json(cell: MetricValue | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    return {
        "value": cell.value,
        "ci_low": cell.ci_low,
        "ci_high": cell.ci_high,
        "n_items": cell.n_items,
        "reason": cell.reason,
    }


def build(results: Iterable[Result], *, metric: str | None = None, subset: str = "all") -> Board:
    """The table of the results of one sub-set; ``metric`` instead of each task's main score."""
    cells: dict[RowKey, dict[ColumnKey, MetricValue]] = {}
    failures = []
    for result in results:
        if result.status == "error":
            assert result.error is not None
            reason = next(iter(result.error.message.splitlines()), "") or result.error.type
            failures.append(f"{result.model.label} on {result.task.name}: {reason}")
            continue
        name = metric or result.main_score
        if result.subset != subset or name is None or name not in result.scores:
            continue
        column = ColumnKey(
            result.task.name,
            result.split,
            result.subset,
            name,
            result.signature.metrics.get(name, 0),
            result.signature.protocol_digest[:8],
        )
        row = RowKey(
            result.model.label, result.model.name, result.model.revision or "", result.signature.model_digest[:8]
        )
        cells.setdefault(row, {})[column] = result.scores[name]
    columns = tuple(sorted({column for of_row in cells.values() for column in of_row}))
    shared = Counter(row.label for row in cells)
    rows = [
        Row(key, key.label if shared[key.label] == 1 else f"{key.label} #{key.digest}", of_row, _mean(of_row, columns))
        for key, of_row in cells.items()
    ]
    rows.sort(key=lambda row: (row.mean is None, -(row.mean or 0.0), row.label))
    return Board(columns, _headings(columns), tuple(rows), tuple(failures))


def _mean(cells: Mapping[ColumnKey, MetricValue], columns: tuple[ColumnKey, ...]) -> float | None:
    values = [cells[key].value for key in columns if key in cells]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if columns and len(known) == len(columns) else None


def _headings(columns: tuple[ColumnKey, ...]) -> dict[ColumnKey, str]:
    """Task names, with split, metric and protocol added where names alone would be ambiguous."""
    headings = {}
    for key in columns:
        same_task = [other for other in columns if other.task == key.task and other != key]
        parts = [key.task]
        if any(other.split != key.split for other in same_task):
            parts.append(f"({key.split})")
        alike = [other for other in same_task if (other.split, other.metric) == (key.split, key.metric)]
        if any(other.protocol != key.protocol for other in alike):
            parts.append(f"#{key.protocol}")
        if any(other.metric_version != key.metric_version for other in alike):
            parts.append(f"v{key.metric_version}")
        headings[key] = " ".join(parts)
    return headings
