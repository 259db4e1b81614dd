"""Resampling of items and runs at once, against brute force and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from embeval.core.protocols import Undefined
from embeval.core.specs import StatisticsOptions
from embeval.stats import two_way
from embeval.stats.two_way import TwoWay

Rows = npt.NDArray[np.float64]
OPTIONS = StatisticsOptions(resamples=4000, seed=1)


def compared(baseline: Rows, candidate: Rows, statistics: StatisticsOptions = OPTIONS) -> TwoWay:
    """The comparison, which has to be defined."""
    found = two_way.compare(baseline, candidate, statistics)
    assert not isinstance(found, Undefined)
    return found


def simulated(rng: np.random.Generator, runs: int, items: int) -> Rows:
    """Runs of a system whose mean varies from run to run by 0.15 and from item to item by 0.3."""
    return np.asarray(rng.normal(0, 0.3, items) + rng.normal(0, 0.15, (runs, 1)) + rng.normal(0, 0.5, (runs, items)))


def test_distribution_equals_brute_force_over_all_draws() -> None:
    """2 and 2 runs, 3 items: all 4 x 4 x 27 draws are alike, and the samples have their mean and variance."""
    rng = np.random.default_rng(2)
    one, other = rng.normal(0, 1, (2, 3)), rng.normal(1, 1, (2, 3))
    pairs, triples = list(itertools.product(range(2), repeat=2)), list(itertools.product(range(3), repeat=3))
    every = np.array(
        [
            other[np.ix_(runs, items)].mean() - one[np.ix_(others, items)].mean()
            for runs in pairs
            for others in pairs
            for items in triples
        ]
    )
    samples = compared(one, other, StatisticsOptions(resamples=40_000, seed=3)).contrast.samples
    assert samples.mean() == pytest.approx(every.mean(), abs=5 * every.std() / 200)
    assert samples.var() == pytest.approx(every.var(), rel=0.04)
    assert np.isin(np.round(samples, 9), np.round(every, 9)).all()


def test_standard_error_of_the_textbook() -> None:
    """Variance components of a crossed layout: the mean of 1000 estimated variances is the true one, within 5 %."""
    rng = np.random.default_rng(4)
    squares = []
    for _ in range(1000):
        found = compared(simulated(rng, 4, 20), simulated(rng, 6, 20), StatisticsOptions(resamples=100))
        assert found.contrast.error is not None
        squares.append(found.contrast.error**2)
    truth = sum(0.15**2 / runs + 0.3**2 / 20 + 0.5**2 / (runs * 20) for runs in (4, 6))
    assert np.mean(squares) == pytest.approx(truth, rel=0.05)


def test_coverage_where_items_alone_are_not_enough() -> None:
    """Nominal 95 %: with 5 runs it covers 92 to 98 %, an interval over the items of the mean run fewer than 80 %."""
    rng = np.random.default_rng(5)
    two = one = claimed = 0
    for repetition in range(300):
        baseline, candidate = simulated(rng, 5, 100), simulated(rng, 5, 100)
        found = compared(baseline, candidate, StatisticsOptions(resamples=300, seed=repetition))
        low, high, _ = found.contrast.interval(0.95)
        assert low is not None
        assert high is not None
        assert found.p is not None
        two += low <= 0.0 <= high
        claimed += found.p <= 0.05
        differences = candidate.mean(axis=0) - baseline.mean(axis=0)
        one += abs(differences.mean()) <= 1.96 * differences.std(ddof=1) / 10
    assert 0.92 <= two / 300 <= 0.98
    assert claimed / 300 <= 0.08
    assert one / 300 < 0.8


def test_swapped_sides_negate() -> None:
    """Difference and interval; p stays."""
    rng = np.random.default_rng(6)
    one, other = simulated(rng, 4, 30), simulated(rng, 4, 30) + 0.1
    forth, back = compared(one, other), compared(other, one)
    assert forth.contrast.estimate == pytest.approx(-back.contrast.estimate)
    assert forth.p == pytest.approx(back.p, abs=0.03)


def test_items_without_a_value_in_any_run_are_left_out() -> None:
    """The same as if they had never been there, and never NaN."""
    rng = np.random.default_rng(7)
    one, other = rng.normal(0, 1, (3, 20)), rng.normal(0, 1, (4, 20))
    one[1, 4] = other[0, 9] = np.nan
    whole = np.delete(np.arange(20), [4, 9])
    found, expected = compared(one, other), compared(one[:, whole], other[:, whole])
    assert found.contrast.n_items == 18
    assert found.contrast.estimate == expected.contrast.estimate
    assert found.contrast.interval(0.9) == expected.contrast.interval(0.9)


def test_a_single_run_has_no_bounds() -> None:
    """It says nothing of other runs; nor does a single item."""
    for shape in ((1, 20), (3, 1)):
        found = compared(np.zeros(shape), np.ones(shape))
        assert found.contrast.estimate == 1.0
        assert found.contrast.interval(0.95).low is None
        assert found.contrast.lower(0.05) is None
        assert found.p is None


def test_runs_that_agree_on_everything() -> None:
    """No spread: the interval is the difference; p is 1 for none."""
    found = compared(np.zeros((3, 20)), np.zeros((3, 20)))
    assert found.contrast.interval(0.95)[:2] == (0.0, 0.0)
    assert found.p == 1.0
    apart = compared(np.full((3, 20), 0.1), np.full((3, 20), 0.3))
    assert apart.contrast.interval(0.95)[:2] == pytest.approx((0.2, 0.2))
    assert apart.p is None


def test_nothing_to_compare() -> None:
    """Undefined with a reason; tables of different items are refused."""
    assert two_way.compare(np.full((2, 3), np.nan), np.zeros((2, 3)), OPTIONS) == Undefined("too_few_items")
    with pytest.raises(ValueError, match="same items"):
        two_way.compare(np.zeros((2, 3)), np.zeros((2, 4)), OPTIONS)


def test_p_is_studentised() -> None:
    """The share of resamples that are as many of their own errors away as the estimate is of its own; by hand."""
    rng = np.random.default_rng(8)
    found = compared(simulated(rng, 3, 20), simulated(rng, 4, 20) + 0.2)
    contrast = found.contrast
    assert contrast.error is not None
    assert contrast.errors is not None
    spread = contrast.errors > 0.0
    steps = np.abs(contrast.samples - contrast.estimate)[spread] / contrast.errors[spread]
    expected = (1 + int((steps >= abs(contrast.estimate) / contrast.error).sum())) / (1 + int(spread.sum()))
    assert found.p == pytest.approx(expected, abs=2 / 4000)
    assert 0.01 < expected < 0.9
