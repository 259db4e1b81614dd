"""The CSV of a board: read back by Python's csv and polars 2.1, and nothing in it that a spreadsheet runs."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.leaderboard.render.flat import flat, harmless
from embeval.leaderboard.snapshot import Cell
from tests.support import boards, shown
from tests.support.hostile import hostile


def rows(text: str) -> list[dict[str, str]]:
    """Rows by heading."""
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_for_each_model() -> None:
    """Ranks, means, values with their intervals, what models take and are; nothing where nothing is known."""
    big, mid, _, far = rows(flat(shown.small()))
    assert [big[name] for name in ("rank", "model", "rank_low", "rank_high", "letters")] == ["1", "big", "1", "2", "a"]
    assert big["mean_task"] == "0.75"
    assert (big["docs ndcg_at_10"], big["docs ndcg_at_10 low"], big["docs ndcg_at_10 high"]) == (
        "0.8",
        "0.75",
        "0.8500000000000001",
    )
    assert big["texts perplexity"] == ""
    assert (big["latency_p95_ms"], big["parameters"], big["license"]) == ("31.25", "110000000", "mit")
    assert (mid["quality_kept"], mid["vectors_kept"], mid["speed_kept"]) == ("0.98", "0.5", "")
    assert (mid["gate"], mid["prompts"], mid["report"]) == ("fail", "query “query: ”", "reports/mid-12345678.html")
    assert (far["rank"], far["gaps"], far["mean_task"], far["mean of STS"]) == ("", "1", "", "")
    assert (far["imported"], far["untested"]) == ("far.json", "imported: no items")
    assert (big["trained_on"], far["trained_on"]) == ("pairs", "")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4))
def test_numbers_come_back_as_they_were(values: list[float]) -> None:
    """To the last bit, by Python's own reader."""
    made = shown.small()
    models = [replace(model, cells=(Cell(value=value), *model.cells[1:]))
              for model, value in zip(made.models, values, strict=True)]  # fmt: skip
    back = [float(row["docs ndcg_at_10"]) for row in rows(flat(replace(made, models=tuple(models))))]
    assert back == values


def test_another_reader_reads_the_same() -> None:
    """polars, on a board of made-up values."""
    import polars as pl

    made = boards.synthetic(20, 6, seed=3)
    text = flat(made)
    expected = [[cell.value for cell in model.cells if cell is not None] for model in made.models]
    names = [f"{column.task} {column.metric}" for column in made.columns]
    assert [list(row) for row in pl.read_csv(io.StringIO(text))[names].rows()] == expected


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("+SUM(A1)", "'+SUM(A1)"),
        ("-2+3", "'-2+3"),
        ("@cmd", "'@cmd"),
        ("\t=1+1", "'=1+1"),
        ("\r\n=1+1", "'=1+1"),
        (" =1+1", "'=1+1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("a;=1+1", "a;'=1+1"),
        ("a, =1+1", "a, '=1+1"),
        ("MiniLM-L6 a=b", "MiniLM-L6 a=b"),
        ("minilm (dim=64)", "minilm (dim=64)"),
        ("\x00=1", "\ufffd=1"),
    ],
)
def test_no_text_begins_a_formula(text: str, safe: str) -> None:
    """Source: OWASP, CSV Injection. An apostrophe before it; texts that only hold such characters stay as they are."""
    assert harmless(text) == safe


@settings(max_examples=60, deadline=None)
@given(hostile())
def test_no_cell_of_a_board_begins_one(text: str) -> None:
    """As it is read with commas and, as in other languages, with semicolons; in headings too."""
    made = shown.small()
    wild = f"={text};=1,@x"
    models = (replace(made.models[0], label=wild, prompts={"query": wild}, date=wild), *made.models[1:])
    columns = (replace(made.columns[0], heading=wild, group=wild), *made.columns[1:])
    written = flat(replace(made, models=models, columns=columns))
    assert len(list(csv.reader(io.StringIO(written)))) == 5
    for delimiter in ",;":
        cells = [cell for row in csv.reader(io.StringIO(written), delimiter=delimiter) for cell in row]
        assert not [cell for cell in cells if cell.strip().startswith(("=", "+", "@"))]


def test_two_columns_of_one_name_are_told_apart() -> None:
    """By split, sub-set and protocol."""
    made = shown.small()
    twice = replace(made, columns=(made.columns[0], replace(made.columns[0], protocol="f" * 8), made.columns[2]))
    names = next(csv.reader(io.StringIO(flat(twice))))
    assert len(set(names)) == len(names)
    assert "docs ndcg_at_10 test all #ffffffff" in names
