"""Item records: what is refused, and rows taken and grouped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core.records import ItemRecords

RECORDS = ItemRecords(
    unit="query",
    ids=("a", "b", "c", "d"),
    columns={"x": np.array([1.0, np.nan, 3.0, 4.0]), "y": np.array([0.0, 0.5, -1.0, np.inf])},
    slices={"kind": ("new", "old", "new", ""), "language": ("de", "de", "en", "de")},
    clusters=("k", "k", "l", "l"),
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": ("a", "b", "a", "d")}, "item ids must be unique"),
        ({"columns": {"x": np.zeros(3)}}, r"column 'x' must be float64 \[4\], not float64 \[3\]"),
        ({"columns": {"x": np.zeros((4, 1))}}, r"column 'x' must be float64 \[4\], not float64 \[4, 1\]"),
        ({"columns": {"x": np.zeros(4, dtype=np.float32)}}, r"column 'x' must be float64 \[4\], not float32 \[4\]"),
        ({"columns": {"x": np.zeros(4, dtype=np.int64)}}, r"column 'x' must be float64 \[4\], not int64 \[4\]"),
        ({"slices": {"kind": ("a", "b")}}, "slice 'kind' must have 4 labels, not 2"),
        ({"clusters": ("a",)}, "clusters must have 4 labels, not 1"),
        ({"clusters": ()}, "clusters must have 4 labels, not 0"),
    ],
)
def test_records_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    """Everything has one value per item, of the one type, and every item its own id."""
    fields: dict[str, Any] = {"unit": "pair", "ids": ("a", "b", "c", "d"), "columns": {"x": np.zeros(4)}}
    ItemRecords(**fields)
    with pytest.raises(ValueError, match=f"^{message}$"):
        ItemRecords(**{**fields, **change})


def test_length_is_the_number_of_items() -> None:
    """Four here; none is allowed."""
    assert len(RECORDS) == 4
    assert len(ItemRecords(unit="pair", ids=(), columns={"x": np.zeros(0)})) == 0


def test_rows_are_taken_in_the_order_asked_for() -> None:
    """Ids, columns, slices and clusters together, by hand."""
    taken = RECORDS.take([3, 1])
    assert (taken.unit, taken.ids, taken.clusters) == ("query", ("d", "b"), ("l", "k"))
    assert taken.slices == {"kind": ("", "old"), "language": ("de", "de")}
    np.testing.assert_array_equal(taken.columns["x"], [4.0, np.nan])
    np.testing.assert_array_equal(taken.columns["y"], [np.inf, 0.5])


def test_no_rows_can_be_taken() -> None:
    """Nothing of everything, with the columns still there."""
    taken = RECORDS.take([])
    assert (taken.ids, taken.clusters, taken.slices) == ((), (), {"kind": (), "language": ()})
    assert {name: column.shape for name, column in taken.columns.items()} == {"x": (0,), "y": (0,)}


def test_without_clusters_there_are_none_afterwards() -> None:
    """Null stays null."""
    assert ItemRecords(unit="pair", ids=("a",), columns={}).take([0]).clusters is None


def test_what_is_taken_is_a_copy() -> None:
    """Changing the part leaves the whole alone."""
    taken = RECORDS.take([0, 1, 2, 3])
    taken.columns["x"][0] = 99.0
    assert RECORDS.columns["x"][0] == 1.0


def test_rows_by_label() -> None:
    """Row numbers of each label, labels as they first appear; an empty label is one too."""
    by_kind = {label: rows.tolist() for label, rows in RECORDS.rows_by("kind").items()}
    assert by_kind == {"new": [0, 2], "old": [1], "": [3]}
    assert list(by_kind) == ["new", "old", ""]
    with pytest.raises(KeyError):
        RECORDS.rows_by("subset")


@settings(deadline=None)
@given(labels=st.lists(st.text(max_size=2) | st.sampled_from(["a", "a\0", "A", "ａ"]), max_size=20))
def test_labels_divide_the_rows(labels: list[str]) -> None:
    """Each row is under its own label and no other, whatever the labels look like."""
    records = ItemRecords(
        unit="pair", ids=tuple(map(str, range(len(labels)))), columns={}, slices={"subset": tuple(labels)}
    )
    grouped = records.rows_by("subset")
    assert list(grouped) == list(dict.fromkeys(labels))
    assert sorted(row for rows in grouped.values() for row in rows.tolist()) == list(range(len(labels)))
    assert all(labels[row] == label for label, rows in grouped.items() for row in rows)
