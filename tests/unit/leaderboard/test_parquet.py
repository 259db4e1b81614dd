"""The Parquet of a board: its schema, its rows as polars 2.1 reads them, and equal bytes for equal boards."""

from __future__ import annotations

import io
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from embeval.leaderboard.render.parquet import SCHEMA, parquet, same
from tests.support import boards, shown


def test_a_row_for_each_value() -> None:
    """In the board's order; a gap has no row, something undefined has one with its reason."""
    table = pl.read_parquet(io.BytesIO(parquet(shown.small())))
    assert table.height == 10
    assert table["model"].to_list() == ["big"] * 3 + ["mid"] * 3 + ["low"] * 3 + ["far (imported)"]
    assert table["task"].to_list() == ["docs", "pairs", "texts"] * 3 + ["docs"]
    first = table.row(0, named=True)
    assert (first["value"], first["low"], first["high"], first["n_items"]) == (0.8, 0.75, 0.8500000000000001, 100)
    assert (first["rank"], first["rank_low"], first["rank_high"], first["letters"]) == (1, 1, 2, "a")
    assert (first["result"], first["imported"], first["counts"], first["metric_version"]) == (
        "0a0a0a0a",
        False,
        True,
        1,
    )
    pair, undefined, far = (table.row(place, named=True) for place in (1, 2, 9))
    assert (pair["rough"], pair["trained_on"], pair["group"]) == (True, "declared", "STS")
    assert (undefined["value"], undefined["reason"]) == (None, "constant_input")
    assert (undefined["counts"], undefined["higher_is_better"]) == (False, False)
    assert (far["value"], far["imported"], far["rank"], far["low"]) == (0.9, True, None, None)


def test_columns_are_as_described() -> None:
    """Names, types and descriptions; the same for a board without values."""
    schema = pq.read_schema(io.BytesIO(parquet(shown.small())))
    assert {each.name: str(each.type) for each in schema} == {
        name: {"float64": "double"}.get(kind, kind) for name, (kind, _) in SCHEMA.items()
    }
    assert (
        schema.field("rank_low").metadata[b"description"] == b"The best rank that the data leaves open; null: no test."
    )
    empty = replace(shown.small(), models=())
    assert pq.read_schema(io.BytesIO(parquet(empty))).equals(schema)


def test_equal_boards_give_equal_bytes() -> None:
    """And another value other ones."""
    assert parquet(boards.synthetic(30, 5)) == parquet(boards.synthetic(30, 5))
    assert parquet(boards.synthetic(30, 5)) != parquet(boards.synthetic(30, 5, seed=1))


def test_files_of_other_versions_are_the_same_where_they_hold_the_same() -> None:
    """Another compression stands in for another version of pyarrow; no Parquet at all is never the same."""
    made = parquet(shown.small())
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(made)), sink, compression="none")
    assert sink.getvalue() != made
    assert same(made, sink.getvalue())
    assert not same(made, parquet(replace(shown.small(), models=shown.small().models[:3])))
    table = pq.read_table(io.BytesIO(made))
    changed = table.set_column(table.schema.get_field_index("value"), table.schema.field("value"),
                               pa.array([0.5] * len(table)))  # fmt: skip
    sink = io.BytesIO()
    pq.write_table(changed, sink)
    assert not same(made, sink.getvalue())
    assert not same(made, b"PAR1")
