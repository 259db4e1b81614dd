"""A board as Markdown: numbers as they are rounded, texts as they are written."""

from __future__ import annotations

import html
import re

import pytest

from embeval.core.markdown import escape
from embeval.core.result import MetricValue
from embeval.leaderboard.board import Board, ColumnKey, Row, RowKey
from embeval.leaderboard.render.cells import cell_text, number
from embeval.leaderboard.render.markdown import markdown

FAQ = ColumnKey("faq", "test", "all", "ndcg_at_10", 1, "0" * 8)
PAIRS = ColumnKey("pairs", "test", "all", "cosine_spearman", 1, "1" * 8)
FULL = MetricValue(value=0.82034, ci_low=0.79755, ci_high=0.84051, n_items=100)


def board(*rows: tuple[str, float | None, list[MetricValue | None]], failures: tuple[str, ...] = ()) -> Board:
    """A table of two columns."""
    keys = (FAQ, PAIRS)
    return Board(
        columns=keys,
        headings={FAQ: "faq", PAIRS: "pairs"},
        rows=tuple(
            Row(
                RowKey(label, label, "r", "d"),
                label,
                {key: cell for key, cell in zip(keys, cells, strict=True) if cell is not None},
                mean,
            )
            for label, mean, cells in rows
        ),
        failures=failures,
    )


def cells(line: str) -> list[str]:
    """The cells of a table row as a Markdown reader splits them: at pipes that no backslash stands before."""
    found = re.split(r"(?<!\\)(?:\\\\)*\|", line)
    assert (found[0], found[-1]) == ("", "")
    return [cell.strip() for cell in found[1:-1]]


def test_a_table() -> None:
    """Value and interval per cell, a dash for a gap and for a missing mean, the reason for an undefined value."""
    undefined = MetricValue(value=None, n_items=3, reason="constant_input")
    text = markdown(
        board(
            ("mini", 0.5, [FULL, MetricValue(value=0.1, n_items=2)]),
            ("maxi", None, [None, undefined]),
            failures=("maxi on faq: no such file.",),
        )
    )
    assert text == (
        "| Model | Mean | faq ndcg_at_10 | pairs cosine_spearman |\n"
        "|---|---:|---:|---:|\n"
        "| mini | 0.5000 | 0.8203 [0.7975, 0.8405] | 0.1000 |\n"
        "| maxi | — | — | n/a (constant_input) |\n"
        "\n"
        "Failed: maxi on faq: no such file.\n"
    )


def test_cells() -> None:
    """A gap, an undefined value, a value without and with an interval are four different things."""
    assert cell_text(None) == "—"
    assert cell_text(MetricValue(value=None, n_items=0, reason="too_few_items")) == "n/a (too_few_items)"
    assert cell_text(MetricValue(value=0.5, n_items=1)) == "0.5000"
    assert cell_text(FULL) == "0.8203 [0.7975, 0.8405]"
    assert cell_text(MetricValue(value=0.0, ci_low=0.0, ci_high=0.0, n_items=50)) == "0.0000 [0.0000, 0.0000]"
    assert cell_text(MetricValue(value=0.0, ci_low=-0.1, ci_high=0.2, n_items=49)) == "0.0000 ≈[-0.1000, 0.2000]"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "—"), (0.0, "0.0000"), (1.0, "1.0000"), (0.82035, "0.8204"), (-0.25, "-0.2500"), (12.5, "12.5000")],
)
def test_numbers_have_four_decimals(value: float | None, expected: str) -> None:
    """A missing number is a dash, never a zero."""
    assert number(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a|b", "a\\|b"),
        ("a\nb", "a b"),
        ("R&D", "R&amp;D"),
        ("&lt;", "&amp;lt;"),
        ("plain text, 100 %", "plain text, 100 %"),
    ],
)
def test_escape(text: str, expected: str) -> None:
    """What Markdown and HTML would read as their own is shown as it was written."""
    assert escape(text) == expected


@pytest.mark.parametrize("text", ["<script>x</script>", "a|b", "a\nb", "a\r\nb", "a\rb", "a\\|b", "end\\", "<b>|\n&"])
def test_no_text_breaks_the_table(text: str) -> None:
    """Whatever a model, a task or an error is called: four cells per row, one line each, no live HTML."""
    whole = board((text, 0.5, [FULL, FULL]), failures=(f"{text} on faq: {text}",))
    hostile = ColumnKey(text, "test", "all", "ndcg_at_10", 1, "0" * 8)
    whole = Board(
        columns=(hostile, PAIRS),
        headings={hostile: text, PAIRS: "pairs"},
        rows=tuple(Row(row.key, row.label, {hostile: FULL, PAIRS: FULL}, row.mean) for row in whole.rows),
        failures=whole.failures,
    )
    lines = re.split(r"\r\n|\r|\n", markdown(whole))
    assert len(lines) == 6
    assert [len(cells(line)) for line in lines[:3]] == [4, 4, 4]
    assert not re.search(r"<\w", markdown(whole))
    # Read back, white space aside, each text is what it was.
    shown = re.sub(r"\\([|\\])", r"\1", html.unescape(cells(lines[2])[0]))
    assert shown.split() == text.split()


@pytest.mark.parametrize("label", ["a|b", "<script>", "two\nlines"])
def test_reasons_are_escaped_like_everything_else(label: str) -> None:
    """The reason of an undefined mean carries the name of a sub-set, which comes from a data file."""
    undefined = MetricValue(value=None, n_items=3, reason=f"undefined_in_subset:{label}")
    lines = markdown(board(("mini", None, [undefined, FULL]), ("maxi", 0.5, [FULL, FULL]))).splitlines()
    assert len(lines) == 4
    assert cells(lines[2])[2] == f"n/a (undefined_in_subset:{escape(label)})"


@pytest.mark.parametrize("text", ["*best*", "`code`", "[click](https://example.org)"])
def test_markdown_in_a_name_is_no_markdown(text: str) -> None:
    """A name is neither emphasis, code nor a link: each mark is escaped, or written as an entity."""
    marks = re.compile(r"(?<!\\)[*`]|(?<!\\)\](?=[(\[:])")  # a bracket alone, as around an interval, is no link
    assert not marks.search(escape(text)), escape(text)
    assert re.sub(r"\\([^\w\s])", r"\1", html.unescape(escape(text))).replace("\u200b", "") == text
