"""Which results share a row and a column, and what a table says where they don't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from embeval.core import strict_json
from embeval.core.provenance import Provenance
from embeval.core.result import Failure, MetricValue, Result, Timings
from embeval.core.signature import Signature
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.leaderboard.board import Board, build
from embeval.leaderboard.render.markdown import markdown

MINI = ModelSpec(name="org/mini", revision="a" * 40)
MAXI = ModelSpec(name="org/maxi", revision="b" * 40)


def made(
    model: ModelSpec,
    task: str,
    value: float | Mapping[str, float | None] | None,
    *,
    split: str = "test",
    subset: str = "all",
    data: str = "v1",
    metric_version: int = 1,
    day: int = 1,
    interval: tuple[float, float] | None = None,
    n_items: int = 100,
    level: float = 0.95,
) -> Result:
    """A finished result; a single value is that of the main score, ``ndcg_at_10``."""
    low, high = interval or (None, None)
    values = value if isinstance(value, Mapping) else {"ndcg_at_10": value}
    return Result(
        status="ok",
        task=TaskSpec(name=task, type="retrieval", dataset=DatasetRef(path=task, split=split)),
        model=model,
        split=split,
        subset=subset,
        scores={
            name: MetricValue(
                value=each,
                ci_low=low,
                ci_high=high,
                n_items=n_items,
                reason=None if each is not None else "constant_input",
            )
            for name, each in values.items()
        },
        main_score=next(iter(values)),
        signature=Signature(
            protocol={"task": task, "split": split, "subset": subset, "data": data},
            metrics=dict.fromkeys(values, metric_version),
            model_digest=model.digest,
        ),
        provenance=Provenance(python="3", packages={}, os="os", cpu="cpu", n_cpus=1),
        statistics=StatisticsOptions(level=level),
        timings=Timings(started_at=f"2026-01-{day:02}T00:00:00Z", wall_s=1.0, cpu_s=1.0),
    )


def failed(model: ModelSpec, task: str, message: str) -> Result:
    """The record of a failed run."""
    return replace(
        made(model, task, None),
        status="error",
        scores={},
        main_score=None,
        error=Failure(type="DataError", message=message),
    )


def shown(board: Board) -> dict[str, list[float | str | None]]:
    """Label -> [mean, value or "gap" for each column]."""
    rows: dict[str, list[float | str | None]] = {}
    for row in board.rows:
        cells = [row.cells[key].value if key in row.cells else "gap" for key in board.columns]
        rows[row.label] = [row.mean, *cells]
    return rows


def headings(board: Board) -> list[str]:
    """In the order of the columns."""
    return [board.headings[key] for key in board.columns]


def test_models_by_tasks() -> None:
    """Columns by task name, complete rows by mean with the best first, values and means as they are."""
    board = build([made(MINI, "wiki", 0.5), made(MINI, "faq", 0.7), made(MAXI, "wiki", 0.9), made(MAXI, "faq", 0.4)])
    assert headings(board) == ["faq", "wiki"]
    assert list(shown(board).items()) == [
        ("maxi", [pytest.approx(0.65), 0.4, 0.9]),
        ("mini", [pytest.approx(0.6), 0.7, 0.5]),
    ]


def test_variants_of_one_task_have_no_mean() -> None:
    """Plain and reranked columns count the same queries; the reranker is named, with the start of its digest."""
    plain = made(MINI, "wiki", 0.5)
    protocol = {**plain.signature.protocol, "rerank": {"model": "5" * 64, "depth": 20}}
    task = replace(plain.task, options={"rerank": {"model": "models/our-ce", "depth": 20}})
    reranked = replace(made(MINI, "wiki", 0.7), task=task, signature=replace(plain.signature, protocol=protocol))
    board = build([plain, reranked, made(MINI, "news", 0.6)])
    assert [row.mean for row in board.rows] == [None]
    assert not board.has_means
    assert "No mean: some columns are variants of one task; --task shows some of them." in board.remarks()
    assert sum("rerank=our-ce (55555555), depth 20" in heading for heading in headings(board)) == 1


def test_a_missing_result_is_a_gap_and_the_row_has_no_mean() -> None:
    """Never a zero; rows with gaps stand below the complete ones, by name, however good their values are."""
    other = ModelSpec(name="org/another", revision="c" * 40)
    board = build(
        [
            made(MINI, "wiki", 0.1),
            made(MINI, "faq", 0.2),
            made(MAXI, "wiki", 0.9),
            made(other, "faq", 0.8),
        ]
    )
    assert list(shown(board).items()) == [
        ("mini", [pytest.approx(0.15), 0.2, 0.1]),
        ("another", [None, 0.8, "gap"]),
        ("maxi", [None, "gap", 0.9]),
    ]


def test_an_undefined_value_leaves_no_mean() -> None:
    """A null is kept with its reason, and nothing is averaged around it."""
    board = build([made(MINI, "wiki", None), made(MINI, "faq", 0.2)])
    assert shown(board) == {"mini": [None, 0.2, None]}
    assert [cell.reason for cell in board.rows[0].cells.values()] == [None, "constant_input"]


def test_a_mean_of_zero_is_a_mean() -> None:
    """0.0 is a value, and a complete row with it stands above rows with gaps, below better ones and above negatives."""
    worse = ModelSpec(name="org/worse", revision="c" * 40)
    board = build([made(MAXI, "a", 0.0), made(MINI, "a", 0.3), made(worse, "a", -0.2)])
    assert shown(board) == {"mini": [0.3, 0.3], "maxi": [0.0, 0.0], "worse": [-0.2, -0.2]}
    assert list(shown(board)) == ["mini", "maxi", "worse"]


def test_different_losses_have_no_mean() -> None:
    """Nats and a perplexity have no scale in common; one loss on two tasks does. Arrows tell the direction."""
    loss, other = made(MINI, "a", {"mlm_loss_per_word": 6.0}), made(MINI, "b", {"mlm_loss_per_word": 8.0})
    board = build([loss, made(MINI, "b", {"word_pppl_original": 1900.0})])
    assert [row.mean for row in board.rows] == [None]
    assert {"↓ less is better.", "No mean: the columns have different units; --task shows some of them."} <= set(
        board.remarks()
    )
    assert "| a mlm_loss_per_word ↓ | b word_pppl_original ↓ |" in markdown(board)
    assert "| 6.0000 | 1,900 |" in markdown(board)
    assert [row.mean for row in build([loss, other]).rows] == [7.0]
    assert "↓ less is better." not in build([made(MINI, "wiki", 0.5)]).remarks()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"data": "v2"}, None),
        ({"metric_version": 2}, None),
        ({"split": "dev"}, ["wiki (dev)", "wiki (test)"]),
    ],
)
def test_different_protocols_never_share_a_column(change: dict[str, Any], expected: list[str] | None) -> None:
    """Other data, another split or version of the metric: two columns, told apart by their headings, and no means."""
    board = build([made(MINI, "wiki", 0.5), made(MAXI, "wiki", 0.6, **change)], older=True)
    assert len(board.columns) == 2
    assert [row.mean for row in board.rows] == [None, None]
    assert not board.has_means
    assert any(remark.startswith("No mean: ") for remark in board.remarks())
    assert "Mean" not in markdown(board)
    assert sorted(len(row.cells) for row in board.rows) == [1, 1]
    assert len(set(headings(board))) == 2, headings(board)
    if expected is not None:
        assert headings(board) == expected
    else:
        assert all(heading.startswith("wiki") for heading in headings(board))


def test_headings_show_the_protocol_only_where_it_is_needed() -> None:
    """A task with one protocol is called by its name; two protocols show the digest that names their files."""
    results = [made(MINI, "wiki", 0.5), made(MINI, "wiki", 0.6, data="v2"), made(MINI, "faq", 0.7)]
    board = build(results, older=True)
    digests = sorted(result.signature.protocol_digest[:8] for result in results[:2])
    assert headings(board) == ["faq", *(f"wiki #{digest}" for digest in digests)]


@pytest.mark.parametrize("change", [{"data": "v2"}, {"metric_version": 2}])
def test_only_the_latest_protocol_of_a_task_is_shown(change: dict[str, Any]) -> None:
    """A changed golden set replaces its column; the old one and models that are only there are hidden, and counted.

    What counts is the newest result, not the order in which files are read.
    """
    results = [
        made(MINI, "wiki", 0.5, day=1),
        made(MAXI, "wiki", 0.6, day=2),
        made(MINI, "wiki", 0.4, day=3, **change),
        made(MINI, "faq", 0.7, day=1),
    ]
    for board in (build(results), build(reversed(results))):
        assert headings(board) == ["faq", "wiki"]
        assert shown(board) == {"mini": [pytest.approx(0.55), 0.7, 0.4]}
        assert board.hidden_columns == 1
        assert board.remarks() == ["1 older column is hidden (same task, other data); --all shows everything."]
    everything = build(results, older=True)
    assert (len(everything.columns), everything.hidden_columns) == (3, 0)
    assert shown(everything)["maxi"].count("gap") == 2


def test_older_data_is_hidden_under_any_metric() -> None:
    """Also where the main score changed along with the data; two main scores on one state of the data both stand."""
    old = made(MINI, "wiki", {"ndcg_at_10": 0.5}, day=1)
    board = build([old, made(MINI, "wiki", {"recall_at_5": 0.6}, data="v2", day=2)])
    assert [(key.task, key.metric) for key in board.columns] == [("wiki", "recall_at_5")]
    assert board.hidden_columns == 1
    board = build([old, made(MAXI, "wiki", {"recall_at_5": 0.6}, day=2)])
    assert [key.metric for key in board.columns] == ["ndcg_at_10", "recall_at_5"]


def test_other_options_are_columns_of_their_own() -> None:
    """Whoever runs a variant wants to see both, and what tells them apart; older data of each is hidden."""
    plain = made(MINI, "wiki", 0.5, day=3)

    def variant(result: Result, **options: Any) -> Result:
        signature = replace(result.signature, protocol={**result.signature.protocol, **options})
        return replace(result, signature=signature)

    results = [
        variant(plain, ties="doc_id_desc", depth=1000),
        variant(made(MINI, "wiki", 0.4, day=4), ties="average", depth=1000),
        variant(made(MINI, "wiki", 0.3, data="v0", day=1), ties="average", depth=1000),
    ]
    board = build(results)
    assert sorted(headings(board)) == ["wiki ties=average", "wiki ties=doc_id_desc"]
    assert sorted(shown(board)["mini"][1:]) == [0.4, 0.5]  # type: ignore[type-var]
    assert board.hidden_columns == 1
    both = headings(build(results, older=True))
    assert len(set(both)) == 3
    assert all("#" in heading for heading in both if heading.startswith("wiki ties=average"))


def test_a_split_other_than_test_is_named() -> None:
    """Alone in its table, too: a dev score must not pass for a test score."""
    assert headings(build([made(MINI, "wiki", 0.5, split="dev")])) == ["wiki (dev)"]


def test_many_broken_files_are_summed_up() -> None:
    """Three by name, then how many more."""
    board = replace(build([made(MINI, "wiki", 0.5)]), broken=tuple(f"file {n}: broken.\nMend it." for n in range(5)))
    assert board.remarks() == [
        *(f"Left out: file {n}: broken." for n in range(3)),
        "Left out as well: 2 more files that can't be read.",
    ]


def test_splits_do_not_hide_each_other() -> None:
    """Another split is another task to a reader, however old its results are."""
    board = build([made(MINI, "wiki", 0.5, split="dev", day=1), made(MINI, "wiki", 0.4, day=2)])
    assert headings(board) == ["wiki (dev)", "wiki (test)"]


def test_remarks_tell_how_to_read_the_brackets() -> None:
    """The level or levels of the intervals, and what ``≈`` means where one interval has it: below 50 items."""
    assert build([made(MINI, "wiki", 0.5)]).remarks() == []
    plain = made(MINI, "wiki", 0.5, interval=(0.4, 0.6))
    assert build([plain]).remarks() == ["Brackets hold 95 % intervals."]
    few = made(MINI, "faq", 0.5, interval=(0.4, 0.6), n_items=49, level=0.9)
    board = build([plain, few])
    assert board.levels == (0.9, 0.95)
    assert board.remarks() == [
        "Brackets hold 90 % and 95 % intervals.",
        "≈ marks intervals from fewer than 50 items: approximate.",
    ]
    assert not build([made(MINI, "faq", 0.5, interval=(0.4, 0.6), n_items=50)]).approximate


def test_two_models_with_one_label_are_told_apart() -> None:
    """The same short name from two places: the digest stands behind it, and their values don't mix."""
    theirs = ModelSpec(name="elsewhere/mini", revision="d" * 40)
    board = build([made(MINI, "wiki", 0.5), made(theirs, "wiki", 0.4), made(MAXI, "wiki", 0.3)])
    assert shown(board) == {
        f"mini #{MINI.digest[:8]}": [0.5, 0.5],
        f"mini #{theirs.digest[:8]}": [0.4, 0.4],
        "maxi": [0.3, 0.3],
    }


def test_two_revisions_of_one_model_are_two_rows() -> None:
    """The name and label are equal, the revision and digest are not."""
    newer = replace(MINI, revision="e" * 40)
    board = build([made(MINI, "wiki", 0.5), made(newer, "wiki", 0.6)])
    assert [(row.key.revision, row.mean) for row in board.rows] == [("e" * 40, 0.6), ("a" * 40, 0.5)]
    assert len(set(shown(board))) == 2


def test_settings_are_part_of_the_label() -> None:
    """A model truncated to 128 dimensions is another row under a name of its own."""
    board = build([made(MINI, "wiki", 0.5), made(replace(MINI, truncate_dim=128), "wiki", 0.4)])
    assert list(shown(board)) == ["mini", "mini (128d)"]


def test_another_metric_instead_of_the_main_score() -> None:
    """Results without it leave no column; the others show it."""
    board = build(
        [made(MINI, "wiki", {"ndcg_at_10": 0.5, "recall_at_100": 0.9}), made(MINI, "pairs", {"cosine_spearman": 0.7})],
        metric="recall_at_100",
    )
    assert [(key.task, key.metric) for key in board.columns] == [("wiki", "recall_at_100")]
    assert shown(board) == {"mini": [0.9, 0.9]}


def test_only_one_sub_set_is_shown() -> None:
    """``all``, or the mean where the protocol says that it stands; sub-sets are no further columns."""
    results = [
        made(MINI, "wiki", 0.5),
        made(MINI, "wiki", 0.6, subset="mean"),
        made(MINI, "wiki", 0.7, subset="news"),
    ]
    assert shown(build(results)) == {"mini": [0.5, 0.5]}
    standing = [
        replace(each, signature=replace(each.signature, protocol={**each.signature.protocol, "stands": "mean"}))
        for each in results
    ]
    assert shown(build(standing)) == {"mini": [0.6, 0.6]}


def test_failures_are_listed() -> None:
    """One sentence each: which model, which task, the first line of the reason; they make no row and no column.

    Those of tasks that are no column, such as a mistyped path, are only counted.
    """
    failure = failed(MAXI, "wiki", "wiki.jsonl, line 3: not valid JSON.\nMend it.")
    board = build([made(MINI, "wiki", 0.5), failure, failed(MAXI, "wkii", "wkii: no such file.")])
    assert board.failures == ("maxi on wiki: wiki.jsonl, line 3: not valid JSON.",)
    assert board.hidden_failures == 1
    assert board.remarks() == ["1 failed run of other tasks; see embeval results list."]
    assert headings(board) == ["wiki"]
    assert shown(board) == {"mini": [0.5, 0.5]}
    assert build([failure]).failures == board.failures


def test_a_failure_without_a_message_is_listed_by_its_type() -> None:
    """Errors such as MemoryError come without words."""
    board = build([replace(failed(MINI, "wiki", ""), error=Failure(type="MemoryError", message=""))])
    assert board.failures == ("mini on wiki: MemoryError",)


def test_nothing_stored_is_an_empty_table() -> None:
    """No columns, no rows, no failures."""
    assert build([]) == Board((), {}, (), ())


def test_as_json() -> None:
    """Plain values in the order of the table: columns with their headings, rows with a null for each gap."""
    board = build(
        [
            made(MINI, "wiki", 0.5),
            made(MINI, "faq", 0.25, interval=(0.125, 0.5)),
            made(MAXI, "wiki", 0.75),
            failed(MAXI, "faq", "gone"),
        ]
    )
    value = board.to_json()
    assert strict_json.loads(strict_json.dumps(value)) == value
    assert [(column["heading"], column["metric"], column["subset"]) for column in value["columns"]] == [
        ("faq", "ndcg_at_10", "all"),
        ("wiki", "ndcg_at_10", "all"),
    ]
    mini, maxi = value["rows"]
    assert (mini["model"], mini["name"], mini["mean"]) == ("mini", "org/mini", 0.375)
    assert (mini["revision"], mini["digest"]) == ("a" * 40, MINI.digest[:8])
    assert [cell["value"] for cell in mini["values"]] == [0.25, 0.5]
    assert mini["values"][0]["n_items"] == 100
    assert (maxi["mean"], maxi["values"][0], maxi["values"][1]["value"]) == (None, None, 0.75)
    assert (mini["values"][0]["ci_low"], mini["values"][0]["ci_high"]) == (0.125, 0.5)
    assert value["failures"] == ["maxi on faq: gone"]
    assert (value["levels"], value["hidden_columns"], value["hidden_failures"]) == ([0.95], 0, 0)


def test_the_order_of_results_makes_no_difference() -> None:
    """The same table whichever file was read first."""
    results = [
        made(MINI, "wiki", 0.5),
        made(MAXI, "wiki", 0.5),
        made(MAXI, "faq", 0.5),
        made(MINI, "faq", 0.5),
        made(replace(MINI, dtype="float16"), "faq", 0.5),
    ]
    assert build(results).to_json() == build(reversed(results)).to_json()


def test_a_narrow_terminal_lists_the_lowest_loss_first() -> None:
    """The best one first, whichever way the metric runs; large values without decimals that nobody reads."""
    from io import StringIO

    from rich.console import Console

    from embeval.cli import _tables

    worse, better = made(MINI, "a", {"word_pppl_original": 1234.5678}), made(MAXI, "a", {"word_pppl_original": 900.25})
    console = Console(file=StringIO(), width=24)
    console.print(_tables.board(build([worse, better]), console))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert 0 < shown.index("900.25") < shown.index("1,234.57")
    assert "word_pppl_original ↓" in " ".join(shown.split())
