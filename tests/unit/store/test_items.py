"""Item records and rankings as Parquet: read back equal, equal bytes, and broken files refused."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core.ir import Run, TieRule
from embeval.core.records import ItemRecords, TokenRecords
from embeval.errors import StoreError
from embeval.store import items

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.text(max_size=6)
COLUMN_NAMES = NAMES.filter(lambda name: name not in ("id", "cluster") and not name.startswith("slice."))


@st.composite
def all_records(draw: st.DrawFn) -> ItemRecords:
    """Item records of any size, with any texts and any finite or missing value."""
    ids = draw(st.lists(NAMES, unique=True, max_size=6))
    n = len(ids)
    values = st.floats(allow_nan=True, allow_infinity=False)
    column = st.lists(values, min_size=n, max_size=n).map(lambda numbers: np.array(numbers, dtype=np.float64))
    labels = st.lists(NAMES, min_size=n, max_size=n).map(tuple)
    return ItemRecords(
        unit=draw(NAMES),
        ids=tuple(ids),
        columns=draw(st.dictionaries(COLUMN_NAMES, column, max_size=3)),
        slices=draw(st.dictionaries(NAMES, labels, max_size=3)),
        clusters=draw(st.none() | labels),
    )


def bits(column: Any) -> list[str]:
    """The numbers of a column to the last bit, all NaN alike."""
    return [number.hex() for number in column.tolist()]


def same(one: ItemRecords, other: ItemRecords) -> bool:
    """Whether two records hold the same, in the same order."""
    return (one.unit, one.ids, one.clusters, list(one.slices.items())) == (
        other.unit,
        other.ids,
        other.clusters,
        list(other.slices.items()),
    ) and [(name, bits(column)) for name, column in one.columns.items()] == [
        (name, bits(column)) for name, column in other.columns.items()
    ]


@relaxed
@given(records=all_records())
def test_records_survive(records: ItemRecords) -> None:
    """Every id, label and number to the bit, in order; written again they are the same bytes."""
    data = items.records_to_bytes(records)
    back = items.records_from_bytes(data)
    assert same(back, records)
    assert all(column.dtype == np.float64 for column in back.columns.values())
    assert items.records_to_bytes(back) == data


RECORDS = ItemRecords(
    unit="query",
    ids=("q1", "q2", "é"),
    columns={"ndcg_at_10": np.array([0.5, np.nan, 1.0]), "mrr_at_10": np.array([0.1, 0.2, 0.3])},
    slices={"kind": ("typo", "", "typo")},
    clusters=("a", "a", "b"),
)


@relaxed
@given(all_records(), st.sets(NAMES, max_size=3))
def test_some_columns_are_read_alone(records: ItemRecords, names: set[str]) -> None:
    """Those that are there, with ids, slices and clusters."""
    wanted = {*names, *list(records.columns)[:1]}
    found = items.records_from_bytes(items.records_to_bytes(records), wanted)
    columns = {name: column for name, column in records.columns.items() if name in wanted}
    assert same(found, replace(records, columns=columns))


def test_another_reader_finds_the_same(tmp_path: Any) -> None:
    """Plain columns by name, text as text, an unscored item as null; a second reader is polars."""
    import polars as pl

    (tmp_path / "items.parquet").write_bytes(items.records_to_bytes(RECORDS))
    table = pl.read_parquet(tmp_path / "items.parquet")
    assert table.to_dict(as_series=False) == {
        "id": ["q1", "q2", "é"],
        "slice.kind": ["typo", "", "typo"],
        "cluster": ["a", "a", "b"],
        "ndcg_at_10": [0.5, None, 1.0],
        "mrr_at_10": [0.1, 0.2, 0.3],
    }


def test_without_slices_and_clusters_there_are_none(tmp_path: Any) -> None:
    """Null stays null, and no items are fine too."""
    for ids in ((), ("a",)):
        records = ItemRecords(unit="pair", ids=ids, columns={"gold": np.zeros(len(ids))})
        back = items.records_from_bytes(items.records_to_bytes(records))
        assert same(back, records)
        assert (back.clusters, back.slices) == (None, {})


@pytest.mark.parametrize("name", ["id", "cluster", "slice.kind"])
def test_a_column_is_never_lost_to_its_name(name: str) -> None:
    """A metric column called like one of the file's own is refused, not dropped or mixed up."""
    with pytest.raises(ValueError, match=f"a column can't be called '{name}'"):
        ItemRecords(unit="pair", ids=("a", "b"), columns={name: np.array([1.0, 2.0])})


WRITE = """
import sys
import numpy as np
from embeval.core.ir import Run
from embeval.core.records import ItemRecords, TokenRecords
from embeval.store import items

records = ItemRecords("query", ("q1", "q2"), {"x": np.array([0.5, np.nan])}, {"kind": ("a", "b")}, ("c", "c"))
run = Run.from_dict({"q1": {"d1": 1.0, "d2": 1.0}, "q2": {"d3": 0.25}})
sys.stdout.buffer.write(items.records_to_bytes(records) + items.run_to_bytes(run))
"""


def test_equal_records_give_equal_bytes_in_every_process() -> None:
    """Nothing of the process, its hash seed or the time of day is in the file."""
    written = {
        subprocess.run(
            [sys.executable, "-c", WRITE], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(written) == 1
    assert written.pop().startswith(b"PAR1")


def test_a_change_changes_the_bytes() -> None:
    """Names, labels, one bit of one number, a missing value, and the order of items."""
    changes: list[dict[str, Any]] = [
        {},
        {"unit": "pair"},
        {"ids": ("q1", "q2", "e")},
        {"ids": ("q2", "q1", "é")},
        {"columns": {"ndcg_at_10": np.array([0.5, np.nan, 1.0])}},
        {"columns": {**RECORDS.columns, "mrr_at_10": np.array([0.1, 0.2, np.nextafter(0.3, 1)])}},
        {"columns": {**RECORDS.columns, "mrr_at_10": np.array([0.1, 0.2, np.nan])}},
        {"slices": {"kind": ("typo", "typo", "typo")}},
        {"slices": {"sort": ("typo", "", "typo")}},
        {"clusters": ("a", "b", "b")},
        {"clusters": None},
    ]
    written = {
        items.records_to_bytes(
            ItemRecords(
                **{
                    "unit": RECORDS.unit,
                    "ids": RECORDS.ids,
                    "columns": RECORDS.columns,
                    "slices": RECORDS.slices,
                    "clusters": RECORDS.clusters,
                    **change,
                }
            )
        )
        for change in changes
    }
    assert len(written) == len(changes)


QUERIES = st.sampled_from(["q1", "q2", "é", ""])
DOCS = st.text(max_size=3)
SCORES = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(-(2.0**100), 2.0**100, width=32)
ROWS = st.lists(st.tuples(QUERIES, DOCS, SCORES), max_size=15)


def ranking(run: Run) -> list[tuple[str, list[tuple[str, float]]]]:
    """Every query with its hits, in order."""
    return [(query, run.hits(query)) for query in run.query_ids]


@relaxed
@given(rows=ROWS, ties=st.sampled_from(TieRule), silent=st.lists(QUERIES, unique=True))
def test_rankings_survive(rows: list[tuple[str, str, float]], ties: TieRule, silent: list[str]) -> None:
    """Queries, also those without a hit, documents, scores as float32 and the tie rule, in order."""
    run = Run.from_rows(rows, ties=ties, query_ids=silent)
    back = items.run_from_bytes(items.run_to_bytes(run))
    assert ranking(back) == ranking(run)
    assert back.ties is ties
    assert back.docs.dtype == np.int32
    assert back.scores.dtype == np.float32
    assert np.array_equal(back.scores, run.scores)


@relaxed
@given(data=st.data(), rows=ROWS)
def test_equal_rankings_give_equal_bytes(data: st.DataObject, rows: list[tuple[str, str, float]]) -> None:
    """In whatever order documents were met when the run was built, also when it is read back and written again."""
    queries = sorted({query for query, _, _ in rows})
    one = Run.from_rows(rows, query_ids=queries)
    other = Run.from_rows(data.draw(st.permutations(rows)), query_ids=queries)
    assert ranking(one) == ranking(other)
    written = items.run_to_bytes(one)
    assert items.run_to_bytes(other) == written
    assert items.run_to_bytes(items.run_from_bytes(written)) == written


def test_only_documents_that_were_found_are_written() -> None:
    """The names of a large corpus are not stored with a short ranking."""
    doc_ids = tuple(f"document-{number:06}" for number in range(100_000))
    run = Run.ranked(
        query_ids=["q"],
        doc_ids=doc_ids,
        docs=np.array([[99_999, 5]], dtype=np.int32),
        scores=np.array([[1.0, 2.0]], dtype=np.float32),
    )
    data = items.run_to_bytes(run)
    assert len(data) < 5_000
    assert ranking(items.run_from_bytes(data)) == [("q", [("document-000005", 2.0), ("document-099999", 1.0)])]


def test_another_reader_finds_the_ranking(tmp_path: Any) -> None:
    """Three columns in the order of the ranking; a second reader is polars."""
    import polars as pl

    run = Run.from_dict({"q2": {"a": 0.5, "b": 0.5}, "q1": {"c": 2.0}, "q3": {}})
    (tmp_path / "run.parquet").write_bytes(items.run_to_bytes(run))
    assert pl.read_parquet(tmp_path / "run.parquet").rows() == [("q2", "b", 0.5), ("q2", "a", 0.5), ("q1", "c", 2.0)]


def file_of(columns: dict[str, Any], meta: Any) -> bytes:
    """A parquet file of these columns under our key; ``meta`` None leaves the key out."""
    table = pa.table(columns)
    if meta is not None:
        packed = meta if isinstance(meta, bytes) else json.dumps(meta).encode()
        table = table.replace_schema_metadata({b"embeval": packed})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


ITEMS = {"kind": "items", "unit": "pair"}
RUN = {"kind": "run", "ties": "doc_id_desc", "queries": ["q"]}
GOOD_RUN: dict[str, Any] = {"query": ["q", "q"], "doc": ["a", "b"], "score": [2.0, 1.0]}
WHOLE = items.records_to_bytes(RECORDS)

NO_FILES: dict[str, bytes] = {
    "nothing": b"",
    "text": b"id,x\n1,2\n",
    "cut off": WHOLE[:-30],
    "cut off at the start": WHOLE[30:],
    "without our key": file_of({"id": ["a"], "query": ["q"]}, None),
    "key that is no json": file_of({"id": ["a"]}, b"{items"),
    "key that is no object": file_of({"id": ["a"]}, ["items"]),
    "key without a kind": file_of({"id": ["a"]}, {"unit": "pair"}),
    "another kind": file_of({"id": ["a"]}, {"kind": "vectors"}),
}


@pytest.mark.parametrize("case", list(NO_FILES))
def test_what_is_no_file_of_ours_is_refused(case: str) -> None:
    """Neither as items nor as a ranking, in at most three lines."""
    for read in (items.records_from_bytes, items.run_from_bytes):
        with pytest.raises(StoreError) as caught:
            read(NO_FILES[case])
        assert len(str(caught.value).splitlines()) <= 3


def test_one_kind_is_not_taken_for_the_other() -> None:
    """The message names both."""
    with pytest.raises(StoreError, match=r"^The file holds items, not run\.$"):
        items.run_from_bytes(WHOLE)
    with pytest.raises(StoreError, match=r"^The file holds run, not items\.$"):
        items.records_from_bytes(items.run_to_bytes(Run.from_dict({"q": {"d": 1.0}})))


NO_RECORDS: dict[str, bytes] = {
    "without ids": file_of({"x": [1.0]}, ITEMS),
    "without a unit": file_of({"id": ["a"]}, {"kind": "items"}),
    "an id twice": file_of({"id": ["a", "a"]}, ITEMS),
    "an id missing": file_of({"id": ["a", None]}, ITEMS),
    "ids that are numbers": file_of({"id": [1, 2]}, ITEMS),
    "a column of text": file_of({"id": ["a"], "x": ["y"]}, ITEMS),
    "a column of lists": file_of({"id": ["a", "b"], "x": [[1.0], [2.0, 3.0]]}, ITEMS),
    "a label missing": file_of({"id": ["a"], "slice.kind": pa.array([None], pa.string())}, ITEMS),
    "a cluster missing": file_of({"id": ["a"], "cluster": pa.array([None], pa.string())}, ITEMS),
}


@pytest.mark.parametrize("case", list(NO_RECORDS))
def test_a_file_that_holds_no_records_is_refused(case: str) -> None:
    """Under our key and kind, but with other content than we write."""
    with pytest.raises(StoreError) as caught:
        items.records_from_bytes(NO_RECORDS[case])
    assert len(str(caught.value).splitlines()) <= 3


NO_RUNS: dict[str, bytes] = {
    "without queries": file_of({"doc": ["a"], "score": [1.0]}, RUN),
    "without scores": file_of({"query": ["q"], "doc": ["a"]}, RUN),
    "without a tie rule": file_of(GOOD_RUN, {"kind": "run", "queries": ["q"]}),
    "with an unknown tie rule": file_of(GOOD_RUN, {**RUN, "ties": "random"}),
    "without a list of queries": file_of(GOOD_RUN, {"kind": "run", "ties": "doc_id_desc"}),
    "a score that is text": file_of({**GOOD_RUN, "score": ["x", "y"]}, RUN),
    "a score missing": file_of({**GOOD_RUN, "score": [1.0, None]}, RUN),
    "a score that is NaN": file_of({**GOOD_RUN, "score": [1.0, float("nan")]}, RUN),
    "a document missing": file_of({**GOOD_RUN, "doc": ["a", None]}, RUN),
}


@pytest.mark.parametrize("case", list(NO_RUNS))
def test_a_file_that_holds_no_ranking_is_refused(case: str) -> None:
    """Under our key and kind, but with other content than we write."""
    assert ranking(items.run_from_bytes(file_of(GOOD_RUN, RUN))) == [("q", [("a", 2.0), ("b", 1.0)])]
    with pytest.raises(StoreError) as caught:
        items.run_from_bytes(NO_RUNS[case])
    assert len(str(caught.value).splitlines()) <= 3


@st.composite
def all_tokens(draw: st.DrawFn) -> TokenRecords:
    """Tokens of some items, each with its own number of them."""
    names = tuple(draw(st.lists(NAMES, unique=True, max_size=4)))
    item = sorted(draw(st.lists(st.integers(0, len(names) - 1), max_size=12))) if names else []
    n = len(item)
    numbers = st.lists(st.integers(-(2**31), 2**31 - 1), min_size=n, max_size=n)
    values = st.lists(st.floats(width=32, allow_nan=False), min_size=n, max_size=n)
    written = draw(st.lists(NAMES, unique=True, min_size=3, max_size=3))
    columns = {name: np.array(draw(numbers), dtype=np.int32) for name in ("place", "begin", "end", "word")}
    ids = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    modes = draw(st.lists(NAMES, unique=True, max_size=2))
    return TokenRecords(
        items=names,
        item=np.array(item, dtype=np.int32),
        id=np.array(ids, dtype=np.int32),
        vocabulary=dict(enumerate(written)),
        log_probs={mode: np.array(draw(values), dtype=np.float32) for mode in modes},
        **columns,
    )


@relaxed
@given(all_tokens())
def test_tokens_come_back(tokens: TokenRecords) -> None:
    """Item by item, to the last bit, and equal tokens give equal bytes."""
    data = items.tokens_to_bytes(tokens)
    assert items.tokens_to_bytes(tokens) == data
    found = items.tokens_from_bytes(data)
    assert len(found) == len(tokens)
    assert list(found.log_probs) == list(tokens.log_probs)
    for name in tokens.items:
        one, other = tokens.of(name), found.of(name)
        assert one.tokens == other.tokens
        for column in ("place", "id", "begin", "end", "word"):
            assert getattr(one, column).tolist() == getattr(other, column).tolist()
        for mode, values in one.log_probs.items():
            assert bits(values) == bits(other.log_probs[mode])
    assert len(found.of("no such item" * 2)) == 0


def test_a_file_of_tokens_is_small_and_plain() -> None:
    """Any reader of Parquet gets texts and numbers: int32 and float32, names and tokens kept once."""
    tokens = TokenRecords(
        items=("a", "b"),
        item=np.array([0, 0, 1], dtype=np.int32),
        place=np.array([0, 1, 0], dtype=np.int32),
        id=np.array([9, 4, 9], dtype=np.int32),
        begin=np.array([0, 4, 0], dtype=np.int32),
        end=np.array([4, 6, 4], dtype=np.int32),
        word=np.array([0, 0, 0], dtype=np.int32),
        vocabulary={4: "##en", 9: "unse"},
        log_probs={"original": np.array([-0.5, -0.25, -3.0], dtype=np.float32)},
    )
    table = pq.read_table(io.BytesIO(items.tokens_to_bytes(tokens)))
    assert table["item"].to_pylist() == ["a", "a", "b"]
    assert table["token"].to_pylist() == ["unse", "##en", "unse"]
    assert table["id"].to_pylist() == [9, 4, 9]
    assert table["log_prob_original"].to_pylist() == [-0.5, -0.25, -3.0]
    assert {str(table.schema.field(name).type) for name in ("item", "token")} == {
        "dictionary<values=string, indices=int32, ordered=0>"
    }
    assert str(table.schema.field("log_prob_original").type) == "float"


def test_what_is_no_file_of_tokens_is_refused() -> None:
    """Another kind of file, a missing column, and one of another type."""
    whole = items.tokens_to_bytes(
        TokenRecords(
            items=("a",),
            item=np.zeros(1, dtype=np.int32),
            vocabulary={0: "x"},
            log_probs={},
            **{name: np.zeros(1, dtype=np.int32) for name in ("place", "id", "begin", "end", "word")},
        )
    )
    table = pq.read_table(io.BytesIO(whole))

    def written(changed: Any) -> bytes:
        out = io.BytesIO()
        pq.write_table(changed, out)
        return out.getvalue()

    place = table.column_names.index("place")
    broken = [
        items.records_to_bytes(ItemRecords(unit="text", ids=(), columns={})),
        written(table.drop_columns(["word"])),
        written(table.drop_columns(["token"])),
        written(table.set_column(place, "place", pa.array([1.5]))),
        written(table.set_column(place, "place", pa.array([None], pa.int32()))),
        written(table.set_column(0, "item", pa.array(["a"]))),
        b"",
    ]
    for data in broken:
        with pytest.raises(StoreError):
            items.tokens_from_bytes(data)
