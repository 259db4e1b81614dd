"""Scores of a model over its revisions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embeval.core.result import Imported, Result
from embeval.leaderboard.board import ColumnKey, build
from embeval.leaderboard.snapshot import Column, Point
from embeval.workflows.boards import history
from tests.support.measured import result


def column(key: ColumnKey, weight: float = 1.0, refused: str | None = None) -> Column:
    """As the board shows it."""
    return Column(
        **key._asdict(),
        heading=key.task,
        type="Retrieval",
        group="Retrieval",
        higher_is_better=True,
        weight=weight,
        refused=refused,
    )


def scored(value: float | None, task: str, revision: str, day: int, model: str = "minilm", **fields: object) -> Result:
    """A result of a revision."""
    return result(model, task, scores={"ndcg_at_10": value}, revision=revision, day=day, **fields)  # type: ignore[arg-type]


NEWEST = [scored(0.6, "a", "v2", 9), scored(0.9, "b", "v2", 8)]
KEYS = build(NEWEST).columns


def test_every_revision_by_its_date() -> None:
    """Weighted 1 to 3: (0.2 + 3 x 0.4) / 4 and (0.6 + 3 x 0.9) / 4; a run dates from its newest result."""
    older = [scored(0.2, "a", "v1", 2), scored(0.4, "b", "v1", 3)]
    found = history.points([*NEWEST, *older], KEYS, [column(KEYS[0]), column(KEYS[1], 3.0)])
    assert [(each.model, each.revision, each.date[:10], each.values) for each in found] == [
        ("minilm", "v1", "2026-01-03", (0.2, 0.4)),
        ("minilm", "v2", "2026-01-09", (0.6, 0.9)),
    ]
    assert [each.mean for each in found] == [pytest.approx(0.35), pytest.approx(0.825)]
    labels = {row.label for row in build([*NEWEST, *older]).rows}
    assert {each.label for each in found} == labels
    assert len(labels) == 2


def test_gaps_and_refused_columns() -> None:
    """A revision without a task, or on other data, has no mean; a column that takes no part is none of its tasks."""
    lacking = [scored(0.2, "a", "v1", 1), scored(0.3, "b", "v1", 1, data="other")]
    columns = [column(KEYS[0]), column(KEYS[1])]
    first, _ = history.points([*NEWEST, *lacking], KEYS, columns)
    assert (first.values, first.mean) == ((0.2, None), None)
    first, last = history.points([*NEWEST, *lacking], KEYS, [columns[0], column(KEYS[1], refused="tokens")])
    assert (first.mean, last.mean) == (0.2, 0.6)
    two_ways = [columns[0], replace(columns[1], higher_is_better=False)]
    assert [each.mean for each in history.points([*NEWEST, scored(0.1, "a", "v1", 1)], KEYS, two_ways)] == [None, None]


def test_one_revision_is_no_history() -> None:
    """Nor are two settings of it, each of which has one."""
    assert history.points([*NEWEST, scored(0.1, "a", "v2", 9, truncate_dim=64)], KEYS, []) == ()


def test_settings_and_models_have_lines_of_their_own() -> None:
    """Two models that are called alike are told apart."""
    results = [
        scored(value, "a", revision, day, model, **fields)
        for model, fields in (("x/minilm", {}), ("y/minilm", {}), ("x/minilm", {"truncate_dim": 64}))
        for value, revision, day in ((0.1, "v1", 1), (0.2, "v2", 2))
    ]
    keys = build(results).columns
    found = history.points(results, keys, [column(keys[0])])
    names = list(dict.fromkeys(each.model for each in found))
    assert len(names) == 3
    assert names[-1] == "minilm (64d)"
    assert all(name.startswith("minilm #") for name in names[:2])
    assert [each.values for each in found] == [(0.1,), (0.2,)] * 3
    assert len({each.label for each in found}) == 6


def test_of_one_measurement_the_newest_counts() -> None:
    """As where two folders hold it; failures and published values are no points."""
    told = Imported(source="x.json", mteb_version="2.0", dataset_revision="1")
    results = [
        scored(0.1, "a", "v1", 5),
        scored(0.3, "a", "v1", 6),
        scored(0.2, "a", "v1", 4),
        scored(0.5, "a", "v2", 7),
        replace(scored(0.9, "a", "v3", 8), imported=told),
        replace(scored(0.9, "a", "v4", 8), timings=None),
        scored(None, "a", "v5", 8),
    ]
    keys = build(results[:1]).columns
    found: tuple[Point, ...] = history.points(results, keys, [column(keys[0])])
    assert [(each.revision, each.mean) for each in found] == [("v1", 0.3), ("v2", 0.5)]
