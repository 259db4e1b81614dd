"""Bounds against scipy 1.17.1 and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from embeval.stats import intervals

SKEWED = np.random.default_rng(3).exponential(size=80)


def left_out(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The mean without each value."""
    return np.array([np.delete(values, place).mean() for place in range(len(values))])


@pytest.mark.parametrize("alpha", [0.025, 0.05, 0.2])
def test_bca_and_percentile_equal_scipy_on_the_same_resamples(alpha: float) -> None:
    """``scipy.stats.bootstrap`` tells its resampled values: from these come the same ends, to 1e-9."""
    for method in ("BCa", "percentile"):
        theirs = stats.bootstrap(
            (SKEWED,), np.mean, method=method, confidence_level=1 - 2 * alpha, rng=np.random.default_rng(0)
        )
        samples = np.asarray(theirs.bootstrap_distribution)
        estimate, jackknife = float(SKEWED.mean()), left_out(SKEWED)
        for side, expected in (("lower", theirs.confidence_interval.low), ("upper", theirs.confidence_interval.high)):
            found = (
                intervals.bca_bound(estimate, samples, jackknife, alpha, side)  # type: ignore[arg-type]
                if method == "BCa"
                else intervals.percentile_bound(samples, alpha, side)  # type: ignore[arg-type]
            )
            assert found == pytest.approx(expected, rel=1e-9)


def test_acceleration_of_a_mean() -> None:
    """Closed form: the skewness of the values over 6 √n; 0 where nothing differs or nothing is defined."""
    assert intervals.acceleration(left_out(SKEWED)) == pytest.approx(stats.skew(SKEWED) / 6 / np.sqrt(80), rel=1e-9)
    assert intervals.acceleration(np.ones(5)) == 0.0
    assert intervals.acceleration(np.full(5, np.nan)) == 0.0
    assert intervals.acceleration(np.append(left_out(SKEWED), np.nan)) == intervals.acceleration(left_out(SKEWED))


def test_undefined_resamples_are_left_out() -> None:
    """NaN changes no bound."""
    samples = np.random.default_rng(1).normal(size=500)
    gaps = np.append(samples, [np.nan] * 20)
    assert intervals.percentile_bound(gaps, 0.05, "lower") == intervals.percentile_bound(samples, 0.05, "lower")
    assert intervals.bca_bound(0.1, gaps, SKEWED, 0.05, "upper") == intervals.bca_bound(
        0.1, samples, SKEWED, 0.05, "upper"
    )
    errors = np.abs(samples) + 1.0
    assert intervals.studentised_bound(0.1, 1.0, gaps, np.append(errors, [1.0] * 20), 0.05, "lower") == (
        intervals.studentised_bound(0.1, 1.0, samples, errors, 0.05, "lower")
    )


def test_all_resamples_on_one_side_are_read_as_they_are() -> None:
    """Nothing to correct with: the percentile bound."""
    samples = np.linspace(1.0, 2.0, 101)
    assert intervals.bca_bound(3.0, samples, SKEWED, 0.05, "lower") == pytest.approx(1.05)


def test_studentised_bound_is_a_t_interval_for_normal_values() -> None:
    """Student's t with 11 degrees of freedom, where resamples are drawn from the normal itself."""
    rng = np.random.default_rng(5)
    drawn = rng.normal(size=(200_000, 12))
    means, errors = drawn.mean(axis=1), drawn.std(axis=1, ddof=1) / np.sqrt(12)
    found = intervals.studentised_bound(0.0, 2.0, means, errors, 0.05, "lower")
    assert found == pytest.approx(-2.0 * stats.t.ppf(0.95, 11), rel=0.01)
    # Turned about: a long tail to the right is a long way down.
    assert intervals.studentised_bound(0.0, 1.0, np.array([0.0, 0.0, 9.0]), np.ones(3), 0.01, "lower") < -8.0
    assert intervals.studentised_bound(0.5, 0.0, means, errors, 0.05, "lower") == 0.5
    assert intervals.studentised_bound(0.5, 1.0, means, np.zeros(200_000), 0.05, "lower") == 0.5


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (3, 10), (10, 10), (190, 200), (1, 2)])
def test_wilson_equals_scipy(successes: int, n: int) -> None:
    """``binomtest(...).proportion_ci(method="wilson")``, to 1e-9, with exact ends at 0 and 1."""
    theirs = stats.binomtest(successes, n).proportion_ci(0.95, "wilson")
    low, high = intervals.wilson(successes, n, 0.95)
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert (low == 0.0) == (successes == 0)
    assert (high == 1.0) == (successes == n)


@pytest.mark.parametrize("n", [20, 50, 300])
def test_where_nothing_changed_the_bound_is_that_of_clopper_and_pearson(n: int) -> None:
    """n queries without a loss: up to 1 - 0.05^(1/n) may still be lost (``binomtest(0, n)``, exact, one-sided)."""
    none = np.zeros(10_000)
    guarded = intervals.with_unseen(none, n, -1.0)
    found = intervals.bca_bound(0.0, none, none, 0.05, "lower", guarded=guarded)
    expected = stats.binomtest(0, n, alternative="less").proportion_ci(0.95, "exact").high
    assert found == pytest.approx(-expected, rel=0.01)
    assert intervals.with_unseen(none, n, 1.0) == pytest.approx(-guarded)


def test_with_one_more_item_the_bound_comes_close_to_that_of_gaffke() -> None:
    """Dirichlet weights over the sorted values and the worst one (Gaffke 2005), by brute force."""
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(90), [-1.0, -0.6, -0.4, 0.5, 0.3, -0.2, 0.1, 0.4, -0.5, 0.2]])
    weights = rng.dirichlet(np.ones(101), size=40_000)
    expected = np.quantile(weights @ np.append(values, -1.0), 0.05)
    samples = rng.choice(values, size=(40_000, 100)).mean(axis=1)
    found = np.quantile(intervals.with_unseen(samples, 100, -1.0), 0.05)
    assert found == pytest.approx(expected, rel=0.05)
    assert found < np.quantile(samples, 0.05) - 0.005


def test_limits_are_known_for_values_up_to_1() -> None:
    """Of both sides."""
    assert intervals.limits(np.array([0.0, 0.4]), np.array([1.0])) == (0.0, 1.0)
    assert intervals.limits(np.array([0.0, 0.4]), np.array([1.0 + 4.5e-16])) == (0.0, 1.0)
    assert intervals.limits(np.array([0.0, 0.4]), np.array([1.1])) is None
    assert intervals.limits(np.array([-0.1]), np.array([1.0])) == (-1.0, 1.0)  # lift_ndcg_at_10 and the like
    assert intervals.limits(np.array([-1.1]), np.array([1.0])) is None
    assert intervals.limits(np.empty(0)) is None


def test_f1_has_the_interval_of_the_share_that_it_hangs_on() -> None:
    """By hand from scipy's Wilson interval of 30 of 50; nothing found and nothing wrong are at the ends."""
    share = stats.binomtest(30, 50).proportion_ci(method="wilson")
    expected = [2 * share.low / (1 + share.low), 2 * share.high / (1 + share.high)]
    assert intervals.f1(30, 12, 8, 0.95) == pytest.approx(expected)
    assert intervals.f1(0, 3, 4, 0.95)[0] == 0.0
    assert intervals.f1(5, 0, 0, 0.95)[1] == 1.0
