"""What a model keeps of the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from embeval.core.facts import ModelFacts
from embeval.core.specs import ModelSpec
from embeval.leaderboard.snapshot import Column, Measures, Model, Retention, Standing
from embeval.workflows.boards import retention


def model(
    label: str, *, task: float | None = None, kind: float | None = None, weights: int | None = None, **taken: Any
) -> Model:
    """A row with two means, a size, and what it takes."""
    return Model(
        label=label,
        spec=ModelSpec(name=label),
        digest="0" * 8,
        facts=ModelFacts(weight_bytes=weights),
        cells=(),
        standing=Standing(mean_task=task, mean_type=kind),
        measures=Measures(**taken),
    )


def column(*, higher_is_better: bool = True, refused: str | None = None) -> Column:
    """A task."""
    return Column(
        task="docs",
        heading="docs",
        type="Retrieval",
        group="Retrieval",
        split="test",
        subset="all",
        metric="m",
        metric_version=1,
        protocol="0" * 8,
        higher_is_better=higher_is_better,
        refused=refused,
    )


COLUMNS = [column()]
WHOLE = model("fp32", task=0.8, kind=0.5, weights=400, vector_bytes=1536, tokens_per_s=100.0, machine="m")


def test_fractions_of_the_reference() -> None:
    """0.6 of 0.8, 100 of 400 bytes, 192 of 1536, 250 tokens a second to 100; the reference itself has none."""
    small = model("int8", task=0.6, kind=0.45, weights=100, vector_bytes=192, tokens_per_s=250.0, machine="m")
    other, same = retention.beside([small, WHOLE], 1, COLUMNS, "mean_task")
    assert other.retention is not None
    assert other.retention.quality == pytest.approx(0.75)
    kept = replace(other.retention, quality=None)
    assert kept == Retention(size=0.25, vectors=0.125, speed=2.5)
    assert same.retention is None
    by_type, _ = retention.beside([small, WHOLE], 1, COLUMNS, "mean_type")
    assert by_type.retention is not None
    assert by_type.retention.quality == pytest.approx(0.9)


def test_of_values_of_which_less_is_better_half_is_twice_as_good() -> None:
    """A mean of 0.4 beside 0.8; a column that takes no part in ranks has no say in it."""
    columns = [column(higher_is_better=False), column(refused="per token")]
    found, _ = retention.beside([model("low", task=0.4), WHOLE], 1, columns, "mean_task")
    assert found.retention == Retention(quality=2.0)


def test_without_a_reference_nothing_is_kept_of_it() -> None:
    """And models are as they were."""
    assert retention.beside([WHOLE], None, COLUMNS, "borda") == (WHOLE,)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (model("gap"), Retention()),
        (model("words", weights=0, vector_bytes=0), Retention(size=0.0, vectors=0.0)),
        (model("away", tokens_per_s=900.0, machine="other"), Retention()),
        (model("lent", tokens_per_s=100.0, machine="m"), Retention(speed=1.0)),
    ],
)
def test_what_is_not_known(other: Model, expected: Retention) -> None:
    """Null, and so is a speed on another machine."""
    found, _ = retention.beside([other, WHOLE], 1, COLUMNS, "mean_task")
    assert found.retention == expected


@pytest.mark.parametrize("mean", [0.0, -0.1])
def test_nothing_is_no_whole(mean: float) -> None:
    """A share of a mean of 0 or below it says nothing."""
    found, _ = retention.beside([WHOLE, model("bare", task=mean, weights=0)], 1, COLUMNS, "mean_task")
    assert found.retention == Retention()
