"""A built board as Parquet, in long form: one row for each value."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from embeval.leaderboard.snapshot import Cell, Column, Model, Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

TEXT, WHOLE, NUMBER, TRUTH = "string", "int64", "float64", "bool"
SCHEMA: dict[str, tuple[str, str]] = {
    "model": (TEXT, "Label of the model, unlike any other of the board."),
    "name": (TEXT, "Its name."),
    "revision": (TEXT, "Its revision."),
    "digest": (TEXT, "First eight digits of the hash of its settings."),
    "task": (TEXT, "Name of the task."),
    "heading": (TEXT, "What its column is called."),
    "group": (TEXT, "The group it is shown in."),
    "type": (TEXT, "Kind of task, in mteb's words."),
    "split": (TEXT, "Split of the data."),
    "subset": (TEXT, "Sub-set: all, mean, or one by name."),
    "metric": (TEXT, "The metric."),
    "metric_version": (WHOLE, "Its version; 0: imported."),
    "protocol": (TEXT, "First eight digits of the protocol's hash: values of others can't be compared."),
    "higher_is_better": (TRUTH, "Direction of the metric."),
    "counts": (TRUTH, "Whether the column takes part in ranks."),
    "value": (NUMBER, "The value; null where undefined."),
    "low": (NUMBER, "Lower end of its confidence interval; null: there is none."),
    "high": (NUMBER, "Upper end of it."),
    "n_items": (WHOLE, "Items behind it; 0: imported."),
    "rough": (TRUTH, "Whether the interval is of too few items to be trusted to the digit."),
    "reason": (TEXT, "Why there is no value."),
    "trained_on": (TEXT, "Whether the model was trained on the data: declared, not_declared, unknown."),
    "imported": (TRUTH, "Whether the value was published elsewhere."),
    "result": (TEXT, "Id of the result."),
    "rank": (WHOLE, "Rank of the model on the board; null: not ranked."),
    "rank_low": (WHOLE, "The best rank that the data leaves open; null: no test."),
    "rank_high": (WHOLE, "The worst."),
    "letters": (TEXT, "Models that share one can't be told apart; null: no test."),
}
"""Column -> (type, what it holds)."""


def parquet(made: Snapshot) -> bytes:
    """Parquet with the columns of ``SCHEMA``, models in the board's order and tasks in theirs. A gap has no row.

    Equal boards give equal bytes with one version of pyarrow, which writes its own into the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        _row(model, column, cell)
        for model in made.models
        for column, cell in zip(made.columns, model.cells, strict=True)
        if cell is not None
    ]
    schema = _schema()
    columns = [pa.array([row[place] for row in rows], each.type) for place, each in enumerate(schema)]
    table = pa.Table.from_arrays(columns, schema=schema)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def same(one: bytes, other: bytes) -> bool:
    """Whether two files hold the same values, whichever version of pyarrow wrote them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if one == other:
        return True
    try:
        tables = [pq.read_table(io.BytesIO(each)) for each in (one, other)]
    except (pa.ArrowException, OSError):
        return False
    return bool(tables[0].equals(tables[1], check_metadata=True))


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(name, pa.type_for_alias(kind), metadata={"description": told})
            for name, (kind, told) in SCHEMA.items()
        ]
    )


def _row(model: Model, column: Column, cell: Cell) -> tuple[Any, ...]:
    standing = model.standing
    return (
        model.label,
        model.spec.name,
        model.spec.revision,
        model.digest,
        column.task,
        column.heading,
        column.group,
        column.type,
        column.split,
        column.subset,
        column.metric,
        column.metric_version,
        column.protocol,
        column.higher_is_better,
        column.refused is None,
        cell.value,
        cell.low,
        cell.high,
        cell.n_items,
        cell.rough,
        cell.reason,
        cell.trained_on,
        cell.imported,
        cell.result,
        standing.rank,
        standing.rank_low,
        standing.rank_high,
        standing.letters,
    )
