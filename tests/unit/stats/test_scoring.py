"""From records to values: unscored items, groups, intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from embeval import metrics
from embeval.core.protocols import Undefined
from embeval.core.records import ItemRecords
from embeval.core.specs import StatisticsOptions
from embeval.metrics import MeanOf
from embeval.stats import bootstrap, intervals, scoring

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
    assert (found.ci_low, found.ci_high) == pytest.approx((0.09453, 0.90547), abs=1e-5)  # Wilson, 1 of 2
    assert found.note == "approximate: 2 items"


@pytest.mark.parametrize("column", [[1.0, 0.0, 1.0, 1.0], [1.0, 0.5, 0.0, 1.0], [1.0], [1.0, np.nan, 0.0]])
@pytest.mark.parametrize("resamples", [0, 400])
def test_one_value_is_that_of_the_estimate(column: list[float], resamples: int) -> None:
    """A share, one with halves, one item, one without a value: equal to the last bit."""
    options = StatisticsOptions(resamples=resamples, seed=3)
    items = records(m=column)
    expected = scoring.estimate(items, [MeanOf("m")], options, "x")["m"].to_value(options)
    assert scoring.value(items, MeanOf("m"), options, "x") == expected


def test_a_share_alone_takes_no_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its interval needs none; that of a mean of other values does."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("drawn")

    monkeypatch.setattr(bootstrap, "distribution", refuse)
    assert scoring.value(records(m=[1.0, 0.0]), MeanOf("m"), OPTIONS).interval == "wilson"
    with pytest.raises(AssertionError, match="drawn"):
        scoring.value(records(m=[1.0, 0.5]), MeanOf("m"), OPTIONS)


def test_where_ties_count_half_the_interval_is_that_of_a_share() -> None:
    """Wilson's of 500.5 in 1,000 by its formula; 1,000 ties are no certainty of 0.5."""
    ties = MeanOf("m", ties_half=True)
    (low, high), n = stats.binomtest(500, 1000).proportion_ci(method="wilson"), 1000
    all_tied = scoring.value(records(m=[0.5] * n), ties, OPTIONS)
    assert (all_tied.ci_low, all_tied.ci_high) == pytest.approx((low, high))
    assert all_tied.interval == "wilson"
    some = scoring.value(records(m=[1.0] * 500 + [0.5] + [0.0] * 499), ties, OPTIONS)
    z, p = stats.norm.ppf(0.975), 0.5005
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert some.ci_low == pytest.approx((middle - half) / (1 + z * z / n))
    assert some.ci_high == pytest.approx((middle + half) / (1 + z * z / n))
    assert scoring.value(records(m=[1.0, 0.5, 0.0]), MeanOf("m"), OPTIONS).interval == "bca"
    assert scoring.value(records(m=[1.0, 0.25, 0.0]), ties, OPTIONS).interval == "bca"


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


def test_a_share_has_the_interval_of_wilson_and_everything_else_that_of_bca() -> None:
    """``binomtest(15, 20)`` (scipy 1.17.1) for a column of 0 and 1; with clusters or other values, BCa."""
    hits = [1.0] * 15 + [0.0] * 5
    plain = records(m=hits)
    found = scoring.estimate(plain, [MeanOf("m")], OPTIONS)["m"].to_value(OPTIONS)
    theirs = stats.binomtest(15, 20).proportion_ci(0.95, "wilson")
    assert (found.ci_low, found.ci_high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert found.interval == "wilson"
    assert found.note == "approximate: 20 items"

    pairs = replace(plain, clusters=tuple(str(number // 2) for number in range(20)))
    assert scoring.estimate(pairs, [MeanOf("m")], OPTIONS)["m"].to_value(OPTIONS).interval == "bca"
    graded = scoring.estimate(records(m=[*hits, 0.5]), [MeanOf("m")], OPTIONS)["m"]
    assert graded.to_value(OPTIONS).interval == "bca"
    low, high, _ = bootstrap.bca(15.5 / 21, graded.samples, graded.jackknife, 0.95, n_items=21)
    assert (graded.to_value(OPTIONS).ci_low, graded.to_value(OPTIONS).ci_high) == (low, high)
    without = StatisticsOptions(resamples=0)
    assert scoring.estimate(plain, [MeanOf("m")], without)["m"].to_value(without).interval is None
    assert scoring.estimate(records(m=[1.0]), [MeanOf("m")], OPTIONS)["m"].to_value(OPTIONS).ci_low is None


def test_acceleration_of_a_mean_over_groups() -> None:
    """Davison & Hinkley 1997, section 5.3.2: from distance / size of the group x its weight, of each item."""
    rng = np.random.default_rng(1)
    values = {"x": rng.exponential(size=30), "y": -(rng.exponential(size=90) ** 2)}
    groups = {
        label: scoring.estimate(records(m=column.tolist()), [MeanOf("m")], OPTIONS, label)
        for label, column in values.items()
    }
    for weighting, shares in (("mean", {"x": 0.5, "y": 0.5}), ("wmean", {"x": 0.25, "y": 0.75})):
        mean = scoring.mean_over(groups, weighting)["m"]  # type: ignore[arg-type]
        pulls = np.concatenate(
            [shares[label] * (column - column.mean()) / len(column) for label, column in values.items()]
        )
        expected = (pulls**3).sum() / 6 / (pulls**2).sum() ** 1.5
        assert intervals.acceleration(mean.jackknife) == pytest.approx(expected, rel=1e-9)
        assert mean.to_value(OPTIONS).interval == "bca"
