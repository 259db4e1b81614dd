"""Layouts that fit the terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.console import Console, RenderableType

from embeval.cli import _tables
from embeval.core.result import MetricValue
from embeval.core.specs import DatasetRef, ModelSpec, TaskSpec
from embeval.errors import StoreError
from embeval.leaderboard.board import Board, ColumnKey, Row, RowKey
from embeval.runner.local import Outcome, Step
from embeval.workflows.report import FieldValue, SliceValue

HEADINGS = ["Model", "Split", "Value", "Items"]
ROWS = [["a-model-of-some-length", "test", "0.8203", "1379"], ["b", "dev", "0.5", "12"]]


def printed(make: Callable[[Console], RenderableType], width: int) -> str:
    """What is made for a terminal of that width, as it comes out there."""
    console = Console(width=width, force_terminal=False, highlight=False)
    with console.capture() as captured:
        console.print(make(console))
    return captured.get()


def drawn(width: int) -> str:
    """The table on a terminal of that width."""
    right, spare = ("Value", "Items"), ("Split", "Items")
    return printed(lambda console: _tables.fitting(HEADINGS, ROWS, console, right=right, spare=spare), width)


def leaderboard(width: int) -> str:
    """Two models on two tasks; one value is missing."""
    first, second = (ColumnKey(f"golden-set-{number}", "test", "all", "ndcg_at_10", 1, "p") for number in (1, 2))
    good = MetricValue(value=0.5, ci_low=0.4, ci_high=0.6, n_items=9)
    best = MetricValue(value=0.7, ci_low=0.6, ci_high=0.8, n_items=99)
    long = "organisation/model-of-some-length"
    rows = (
        Row(RowKey("short", "short", "", "1"), "short", {first: good, second: best}, 0.6),
        Row(RowKey(long, long, "", "2"), long, {first: best}, None),
    )
    headings = {key: key.task for key in (first, second)}
    return printed(lambda console: _tables.board(Board((first, second), headings, rows), console), width)


@pytest.mark.parametrize(("width", "left_out"), [(80, set()), (50, set()), (45, {"Split"}), (35, {"Split", "Items"})])
def test_columns_are_left_out_until_it_fits(width: int, left_out: set[str]) -> None:
    """In the order given, and no more than needed; what stays is whole."""
    table = drawn(width)
    assert {heading for heading in HEADINGS if heading not in table} == left_out
    assert "a-model-of-some-length" in table
    assert "0.8203" in table
    assert max(len(line.rstrip()) for line in table.splitlines()) <= width


def by_field(width: int) -> str:
    """A field with two paradigms, one of them no better than a coin."""
    long = "coordinate_structure_constraint_complex_left_branch"
    parts = (
        SliceValue("causative", MetricValue(value=0.31, ci_low=0.28, ci_high=0.34, n_items=1000)),
        SliceValue(long, MetricValue(value=0.51, ci_low=0.48, ci_high=0.54, n_items=1000)),
    )
    field = FieldValue("syntax", MetricValue(value=0.61, ci_low=0.58, ci_high=0.64, n_items=2000), parts)
    return printed(lambda console: _tables.by_field("pll_accuracy", [field], 0.95, console), width)


@pytest.mark.parametrize("width", [50, 60, 80, 120])
def test_values_by_field_keep_their_intervals_on_any_terminal(width: int) -> None:
    """Where there is room each says how many items it is of, and what it is to chance."""
    table = by_field(width)
    assert max(len(line.rstrip()) for line in table.splitlines()) <= width
    for shown in ("0.6100   0.5800 – 0.6400", "0.3100   0.2800 – 0.3400", "0.5100   0.4800 – 0.5400"):
        assert shown in table
    assert ("below chance" in table) == ("at chance" in table) == (width == 120)
    if width == 120:
        lines = [line.split() for line in table.splitlines() if " – " in line]
        assert [line[0] for line in lines] == [
            "syntax",
            "causative",
            "coordinate_structure_constraint_complex_left_branch",
        ]
        assert [line[1] for line in lines] == ["2000", "1000", "1000"]


@pytest.mark.parametrize(
    ("metric", "low", "high", "told"),
    [
        ("ll_accuracy", 0.4, 0.49, "below chance"),
        ("ll_accuracy", 0.4, 0.5, "at chance"),
        ("pll_accuracy", 0.5, 0.6, "at chance"),
        ("pll_accuracy", 0.51, 0.6, ""),
        ("pll_accuracy", None, None, ""),
        ("ndcg_at_10", 0.1, 0.2, ""),
    ],
)
def test_chance_is_named_where_it_is_known(metric: str, low: float | None, high: float | None, told: str) -> None:
    """By the interval; a metric without such a level, and a value without an interval, say nothing."""
    assert _tables.chance(metric, MetricValue(value=0.5, ci_low=low, ci_high=high, n_items=9)) == told


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 120])
def test_a_leaderboard_fits_any_terminal(width: int) -> None:
    """No name falls apart into a column of letters, and no value is cut."""
    lines = leaderboard(width).splitlines()
    assert max(len(line) for line in lines) <= width
    text = " ".join(" ".join(lines).split())
    for part in ("golden-set-1", "golden-set-2", "ndcg_at_10", "short", "0.5000", "0.4000, 0.6000]", "0.6000"):
        assert part in text


@pytest.mark.parametrize(("splits", "told"), [(["test", "dev"], True), (["test"], False)])
def test_splits_of_one_task_are_told_apart(splits: list[str], told: bool) -> None:
    """On a terminal too narrow for all columns the split stays where rows would look alike without it."""
    model = ModelSpec(name="an-organisation/a-model-of-some-length-indeed")
    specs = [TaskSpec(name="mteb:a-task", type="mteb", dataset=DatasetRef(path="x", split=each)) for each in splits]
    done = [
        Outcome(step=Step(number=1, total=1, model=model, task=spec), status="failed", error=StoreError("gone"))
        for spec in specs
    ]
    table = printed(lambda console: _tables.outcomes(done, console), 74)
    assert ("Split" in table) is told
    assert all(split in table for split in splits) is told


def test_a_leaderboard_without_room_for_columns() -> None:
    """Below each task its models, best first, each with its value; what is missing is left out."""
    assert [line.rstrip() for line in leaderboard(36).splitlines()] == [
        "golden-set-1 · ndcg_at_10",
        "  organisation/model-of-some-length",
        "    0.7000 [0.6000, 0.8000]",
        "  short",
        "    0.5000 ≈[0.4000, 0.6000]",
        "",
        "golden-set-2 · ndcg_at_10",
        "  short",
        "    0.7000 [0.6000, 0.8000]",
        "",
        "Mean",
        "  short",
        "    0.6000",
        "  organisation/model-of-some-length",
        "    —",
        "",
    ]


def test_a_table_without_room_for_columns() -> None:
    """A paragraph a row, nothing left out, where columns would be narrower than ten characters."""
    headings = ["Model", "Task", "Value", "95 % interval", ""]
    rows = [
        ["a-model-of-some-length", "golden-set", "0.8203", "0.7976 – 0.8405", "finished before"],
        ["b", "golden-set", "failed", "", ""],
    ]
    out = printed(lambda console: _tables.fitting(headings, rows, console, right=("Value",), spare=("",)), 30)
    assert [line.rstrip() for line in out.splitlines()] == [
        "a-model-of-some-length",
        "  Task: golden-set",
        "  Value: 0.8203",
        "  95 % interval:",
        "    0.7976 – 0.8405",
        "  finished before",
        "",
        "b",
        "  Task: golden-set",
        "  Value: failed",
    ]


def test_a_terminal_too_narrow_for_all_breaks_names_and_never_numbers() -> None:
    """Nothing is cut: the name goes over several lines."""
    table = drawn(21)
    assert "0.8203" in table
    letters = "".join(line.split("0.")[0].strip() for line in table.splitlines()[3:])
    assert letters.startswith("a-model-of-some-length")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MetricValue(value=0.5, ci_low=0.4, ci_high=0.6, n_items=50), "0.4000 – 0.6000"),
        (MetricValue(value=0.5, ci_low=0.4, ci_high=0.6, n_items=49), "≈ 0.4000 – 0.6000"),
        (MetricValue(value=0.5, n_items=1, note="no interval: one item"), "no interval: one item"),
        (MetricValue(value=0.5, n_items=9), "—"),
    ],
)
def test_intervals(value: MetricValue, text: str) -> None:
    """Rough ones are marked, and a missing one says why."""
    assert _tables.interval(value) == text


def results_table(width: int, *, unscored: int = 0) -> str:
    """Metrics with long names, one without a value and one without an interval."""
    note = "no interval: undefined on 12% of the resamples"
    values = [
        ("document_ndcg_at_10", MetricValue(value=1.0, ci_low=0.5, ci_high=1.0, n_items=10)),
        ("context_precision_at_2000_tokens", MetricValue(value=0.5, n_items=12, n_unscored=unscored, note=note)),
        ("usd_per_million_queries", MetricValue(value=None, n_items=0, reason="too_few_items")),
    ]
    return printed(lambda console: _tables.scores(values, 0.95, console), width)


def test_metrics_of_a_result_keep_their_names_and_intervals_on_80_columns() -> None:
    """A name that is folded would read as another metric; only the reason of a missing interval may be."""
    lines = results_table(80).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    cells = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.split()}
    assert cells["document_ndcg_at_10"] == "1.0000 ≈ 0.5000 – 1.0000 10"
    assert cells["usd_per_million_queries"] == "↓ n/a too_few_items 0"  # less of it is better
    assert cells["context_precision_at_2000_tokens"].startswith("0.5000 no interval:")


def test_the_column_of_unscored_items_goes_only_where_it_says_nothing() -> None:
    """Where an item has no value that stays visible, however narrow the terminal; where there is room it is shown."""
    assert "Unscored" not in results_table(80)
    assert "Unscored" in results_table(80, unscored=2)
    assert "Unscored" in results_table(140)


@pytest.mark.parametrize("width", [20, 200])
def test_what_steers_a_terminal_is_replaced(width: int) -> None:
    """Ids and labels come from data: one may hold an escape sequence, or a character that turns the reading around."""
    rows = [["\x1b[31mitem\u202e" + 30 * "x", "\x9bone", "1"]]
    shown = printed(lambda console: _tables.fitting(["Item", "Label", "Value"], rows, console, right=["Value"]), width)
    assert not {"\x1b", "\u202e", "\x9b"} & set(shown)
    assert "\N{REPLACEMENT CHARACTER}[31mitem" in "".join(shown.split())
