"""From records to values: unscored items, groups, intervals."""

from __future__ import annotations

import numpy as np
import pytest

from embeval import metrics
from embeval.core.protocols import Undefined
from embeval.core.records import ItemRecords
from embeval.core.specs import StatisticsOptions
from embeval.metrics import MeanOf
from embeval.stats import scoring

OPTIONS = StatisticsOptions(resamples=400, seed=3)


def records(**columns: list[float]) -> ItemRecords:
    """Records with the given columns."""
    n = len(next(iter(columns.values())))
    return ItemRecords(
        unit="item",
        ids=tuple(str(number) for number in range(n)),
        columns={name: np.array(values, dtype=np.float64) for name, values in columns.items()},
    )


def test_unscored_items_are_left_out_and_counted() -> None:
    """NaN is "no value": the mean is over the others, and both numbers are told."""
    found = scoring.estimate(records(m=[1.0, np.nan, 0.0, np.nan]), [MeanOf("m")], OPTIONS)["m"].to_value(OPTIONS)
    assert (found.value, found.n_items, found.n_unscored) == (0.5, 2, 2)
    assert (found.ci_low, found.ci_high) == (0.0, 1.0)
    assert found.note == "approximate: 2 items"


def test_all_items_unscored_is_undefined() -> None:
    """No value, a reason, no interval."""
    found = scoring.estimate(records(m=[np.nan, np.nan]), [MeanOf("m")], OPTIONS)["m"].to_value(OPTIONS)
    assert (found.value, found.reason, found.ci_low, found.n_unscored) == (None, "too_few_items", None, 2)


def test_metrics_with_different_gaps_keep_their_own_items() -> None:
    """A gap in one column doesn't take an item from a metric that doesn't read it."""
    found = scoring.estimate(records(a=[1.0, np.nan], b=[0.0, 1.0]), [MeanOf("a"), MeanOf("b")], OPTIONS)
    assert (found["a"].n_items, found["b"].n_items) == (1, 2)
    assert list(found) == ["a", "b"]


def test_no_resamples_no_interval() -> None:
    """``resamples: 0`` gives values only."""
    off = StatisticsOptions(resamples=0)
    found = scoring.estimate(records(m=[0.0, 1.0]), [MeanOf("m")], off)["m"].to_value(off)
    assert (found.value, found.ci_low, found.ci_high) == (0.5, None, None)


def test_mean_and_weighted_mean_over_groups() -> None:
    """Means 1 of 1 item and 0.5 of 4: 0.75 and 0.6."""
    groups = {
        "x": scoring.estimate(records(m=[1.0]), [MeanOf("m")], OPTIONS, "x"),
        "y": scoring.estimate(records(m=[0.0, 1.0, 1.0, 0.0]), [MeanOf("m")], OPTIONS, "y"),
    }
    assert scoring.mean_over(groups, "mean")["m"].value == pytest.approx(0.75)
    weighted = scoring.mean_over(groups, "wmean")["m"]
    assert weighted.value == pytest.approx(0.6)
    assert weighted.n_items == 5


def test_interval_of_a_mean_over_groups_resamples_within_groups() -> None:
    """Closed form: variance of the mean of two group means is (s1² / n1 + s2² / n2) / 4."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 1, 80), rng.normal(5, 2, 120)
    options = StatisticsOptions(resamples=6000)
    groups = {
        "x": scoring.estimate(records(m=first.tolist()), [MeanOf("m")], options, "x"),
        "y": scoring.estimate(records(m=second.tolist()), [MeanOf("m")], options, "y"),
    }
    samples = scoring.mean_over(groups, "mean")["m"].samples
    expected = np.sqrt((first.var() / 80 + second.var() / 120) / 4)
    assert samples.std() == pytest.approx(expected, rel=0.04)


def test_undefined_in_a_group_is_undefined_in_the_mean() -> None:
    """The group is named."""
    metric = [metrics.get("cosine_spearman")]
    groups = {
        "fine": scoring.estimate(records(gold=[1.0, 2.0], cosine=[0.1, 0.2]), metric, OPTIONS, "fine"),
        "flat": scoring.estimate(records(gold=[1.0, 1.0], cosine=[0.1, 0.2]), metric, OPTIONS, "flat"),
    }
    assert scoring.mean_over(groups, "mean")["cosine_spearman"].value == Undefined("undefined_in_subset:flat")


@pytest.mark.parametrize("n", [40, 200])
def test_intervals_cover_as_often_as_they_say(n: int) -> None:
    """Nominal 90 % for the mean of n uniform values covers 1/2 in 86 to 94 % of 300 repetitions."""
    options = StatisticsOptions(resamples=300, level=0.9)
    hits = 0
    for repetition in range(300):
        data = np.random.default_rng(repetition).uniform(0, 1, n)
        value = scoring.estimate(records(m=data.tolist()), [MeanOf("m")], options)["m"].to_value(options)
        assert value.ci_low is not None
        assert value.ci_high is not None
        hits += value.ci_low <= 0.5 <= value.ci_high
    assert 0.86 <= hits / 300 <= 0.94
