"""Randomisation p-values against scipy, complete enumeration and closed forms."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from embeval import metrics
from embeval.core.records import ItemRecords
from embeval.core.specs import StatisticsOptions
from embeval.metrics import MeanOf
from embeval.stats import paired, randomization

Column = npt.NDArray[np.float64]
N = 60


def records(clusters: list[str] | None = None, **columns: Column) -> ItemRecords:
    """Records with the given columns."""
    ids = tuple(str(number) for number in range(len(next(iter(columns.values())))))
    return ItemRecords(unit="item", ids=ids, columns=columns, clusters=None if clusters is None else tuple(clusters))


def p_of(name: str, one: ItemRecords, other: ItemRecords, resamples: int = 10_000) -> float:
    """The p-value of a metric, which has to come from randomisation."""
    metric = MeanOf(name) if name == "m" else metrics.get(name)
    found = paired.compare(one, other, [metric], StatisticsOptions(resamples=resamples, seed=5))[name].p_value()
    assert found is not None
    assert found[1] == "randomization"
    return found[0]


def monte_carlo(p: float, *resamples: int) -> float:
    """Four standard errors of a difference of two estimated p-values."""
    return 4 * float(np.sqrt(sum(p * (1 - p) / each for each in resamples))) + 2 / min(resamples)


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.06])
def test_mean_equals_scipy(shift: float) -> None:
    """``scipy.stats.permutation_test`` (samples) of the mean difference, within Monte Carlo error."""
    rng = np.random.default_rng(1)
    one = rng.uniform(0, 1, N)
    other = np.clip(one + rng.normal(shift, 0.2, N), 0, 1)
    ours = p_of("m", records(m=one), records(m=other))

    def statistic(x: Column, y: Column, axis: int = -1) -> Any:
        return (y - x).mean(axis=axis)

    theirs = stats.permutation_test(
        (one, other), statistic, permutation_type="samples", vectorized=True, n_resamples=10_000, rng=2
    ).pvalue
    assert ours == pytest.approx(theirs, abs=monte_carlo(theirs, 10_000, 10_000))


@pytest.mark.parametrize("kind", ["spearman", "pearson"])
def test_correlation_equals_scipy(kind: str) -> None:
    """``scipy.stats.permutation_test`` that swaps mid-ranks, or standardised scores, of the two systems."""
    rng = np.random.default_rng(3)
    gold = np.round(rng.uniform(0, 5, N), 0)
    one = np.round(gold / 5 + rng.normal(0, 0.5, N), 1)
    other = 0.9 + 0.01 * (gold / 5 + rng.normal(0, 0.3, N))
    ours = p_of(f"cosine_{kind}", records(gold=gold, cosine=one), records(gold=gold, cosine=other))
    prepare = stats.rankdata if kind == "spearman" else stats.zscore
    target = prepare(gold)

    def statistic(x: Column, y: Column) -> float:
        return float(stats.pearsonr(target, y).statistic - stats.pearsonr(target, x).statistic)

    theirs = stats.permutation_test(
        (prepare(one), prepare(other)), statistic, permutation_type="samples", vectorized=False, n_resamples=1500, rng=4
    ).pvalue
    assert 0.01 < ours < 0.9
    assert ours == pytest.approx(theirs, abs=monte_carlo(theirs, 10_000, 1500))


def test_a_change_of_scale_changes_no_p_of_a_correlation() -> None:
    """Scores between 0.90 and 0.91 are as good as scores between 0 and 1: swapping raw ones would lose that."""
    rng = np.random.default_rng(6)
    gold = rng.uniform(0, 5, N)
    one, other = gold / 5 + rng.normal(0, 0.4, N), gold / 5 + rng.normal(0, 0.2, N)
    for name in ("cosine_spearman", "cosine_pearson"):
        plain, narrow = (
            p_of(name, records(gold=gold, cosine=one), records(gold=gold, cosine=each))
            for each in (other, 0.9 + 0.01 * other)
        )
        assert plain == narrow


def test_few_items_are_enumerated() -> None:
    """Brute force over all 2^n swaps: the exact p, whatever the seed; one of 2^n at least."""
    rng = np.random.default_rng(7)
    one, other = rng.uniform(0, 1, 8), rng.uniform(0.1, 1.1, 8)
    differences = other - one
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product([1, -1], repeat=8)]
    expected = np.mean([each >= abs(differences.sum()) - 1e-12 for each in sums])
    assert p_of("m", records(m=one), records(m=other), resamples=256) == expected
    assert p_of("m", records(m=np.zeros(8)), records(m=np.ones(8)), resamples=1000) == 2 / 256
    # One resample less than there are swaps, and they are drawn.
    assert p_of("m", records(m=np.zeros(8)), records(m=np.ones(8)), resamples=255) != 2 / 256


def test_sign_test() -> None:
    """Closed form: 14 wins, 4 losses and ties besides have the two-sided binomial p of the sign test."""
    one = np.zeros(40)
    other = np.array([1.0] * 14 + [0.0] * 22 + [-1.0] * 4)
    exact = stats.binomtest(14, 18).pvalue
    assert p_of("m", records(m=one), records(m=other)) == pytest.approx(exact, abs=monte_carlo(exact, 10_000))


def test_clusters_swap_as_a_whole() -> None:
    """Items in 6 clusters of 4 alike: 64 swaps, and the p of the 6 items alone."""
    rng = np.random.default_rng(8)
    one, other = rng.uniform(0, 1, 6), rng.uniform(0.2, 1.2, 6)
    labels = [str(number // 4) for number in range(24)]
    alone = p_of("m", records(m=one), records(m=other))
    copies = p_of("m", records(labels, m=np.repeat(one, 4)), records(labels, m=np.repeat(other, 4)))
    assert copies == alone
    assert copies * 64 == int(copies * 64)


def test_p_is_uniform_where_there_is_no_difference() -> None:
    """Of 400 comparisons without a difference about 5 % and 20 % have p up to 0.05 and 0.2."""
    rng = np.random.default_rng(9)
    both = rng.normal(0, 1, (2, 400, 30))

    def differences(signs: Column) -> Column:
        return np.asarray((both[1] - both[0]) @ signs)

    found = randomization.p_values(differences, 30, resamples=500, seed=0)
    for level in (0.05, 0.2):
        assert (found <= level).mean() == pytest.approx(level, abs=4 * np.sqrt(level / 400))


def test_p_is_never_zero_and_one_without_any_difference() -> None:
    """(c + 1) / (R + 1) with c = 0, and with c = R."""
    equal, better = records(m=np.zeros(50)), records(m=np.linspace(0.1, 1, 50))
    assert p_of("m", equal, better, resamples=1000) == 1 / 1001
    assert p_of("m", equal, records(m=np.zeros(50)), resamples=1000) == 1.0


def test_an_undefined_swap_counts_as_far_from_zero() -> None:
    """Against the claim of a difference, never for it."""

    def differences(signs: Column) -> Column:
        found = np.asarray(signs.sum(axis=0, keepdims=True))
        found[np.abs(found) < 10] = np.nan
        return found

    assert randomization.p_values(differences, 40, resamples=2000, seed=0)[0] > 0.5


def test_seed_and_purpose_name_the_swaps() -> None:
    """The same signs for the same, independent ones for another; a longer run begins like a shorter one."""

    def swaps(seed: int, purpose: str, resamples: int = 300) -> Column:
        seen: list[Column] = []

        def differences(signs: Column) -> Column:
            seen.append(signs.copy())
            return np.asarray(signs.sum(axis=0, keepdims=True))

        randomization.p_values(differences, 30, resamples=resamples, seed=seed, purpose=[purpose])
        return np.concatenate(seen[1:], axis=1)

    first = swaps(0, "a")
    assert first.shape == (30, 300)
    assert np.array_equal(first, swaps(0, "a"))
    assert np.array_equal(first, swaps(0, "a", 20_000)[:, :300])
    for other in (swaps(1, "a"), swaps(0, "b")):
        assert abs((first * other).mean()) < 0.05


@pytest.mark.parametrize(("weighting", "weights"), [("mean", (1 / 2, 1 / 2)), ("wmean", (2 / 8, 6 / 8))])
def test_swaps_of_a_mean_over_sub_sets(weighting: Any, weights: tuple[float, float]) -> None:
    """Brute force over all swaps of 2 and 6 items; an item of the small sub-set weighs more in the plain mean."""
    one = np.zeros(8)
    other = np.array([0.3, -0.5, 0.2, 0.1, -0.15, 0.4, 0.25, 0.1])
    subset = {"subset": ("a", "a", *"bbbbbb")}
    sides = [
        ItemRecords(unit="item", ids=tuple("abcdefgh"), columns={"m": each}, slices=subset) for each in (one, other)
    ]
    weight = np.repeat([weights[0] / 2, weights[1] / 6], [2, 6])
    sums = np.array([abs(signs @ (weight * other)) for signs in itertools.product([1, -1], repeat=8)])
    options = StatisticsOptions(resamples=300)
    found = paired.compare(sides[0], sides[1], [MeanOf("m")], options, weighting=weighting)["m"].p_value()
    assert found == ((sums >= sums[0] - 1e-12).mean(), "randomization")


def test_a_swap_that_leaves_equal_scores_counts_as_far_from_zero() -> None:
    """3 items, 8 swaps: two of them give one side equal ranks throughout, and have no correlation."""
    gold = np.array([0.0, 1.0, 2.0])
    one, other = np.array([0.0, 0.0, 0.125]), np.array([0.0, 0.125, 0.0])
    ranks = np.stack([stats.rankdata(one), stats.rankdata(other)])
    far = 0
    for swap in itertools.product([0, 1], repeat=3):
        first, second = ranks[list(swap), range(3)], ranks[[1 - each for each in swap], range(3)]
        if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
            far += 1
            continue
        difference = stats.pearsonr(gold, second).statistic - stats.pearsonr(gold, first).statistic
        far += abs(difference) >= np.sqrt(3) / 2 - 1e-9  # observed: 0 instead of 0.866
    assert p_of("cosine_spearman", records(gold=gold, cosine=one), records(gold=gold, cosine=other)) == far / 8
