"""Paired comparisons against scipy, brute force, closed forms, and their own promises.

What holds under another order of the items: values, standard errors, effect sizes, outcomes and enumerated p-values are
equal; bounds and drawn p-values agree within Monte Carlo error, since resamples are draws of places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from threadpoolctl import threadpool_limits

from embeval import metrics
from embeval.core.protocols import Metric, Undefined
from embeval.core.records import ItemRecords
from embeval.core.specs import StatisticsOptions
from embeval.metrics import MeanOf
from embeval.stats import bootstrap, intervals, paired, power
from embeval.stats.paired import Outcomes, Paired
from embeval.stats.rng import seed_sequence
from embeval.stats.score import score_bound

Column = npt.NDArray[np.float64]
N = 80
RNG = np.random.default_rng(11)
GOLD = np.round(RNG.uniform(0, 5, N), 1)
BASELINE = {"m": RNG.beta(2, 2, N), "gold": GOLD, "cosine": GOLD / 5 + RNG.normal(0, 0.5, N)}
CANDIDATE = {
    "m": np.clip(BASELINE["m"] + RNG.normal(0.05, 0.2, N), 0, 1),
    "gold": GOLD,
    "cosine": GOLD / 5 + RNG.normal(0, 0.4, N),
}
LARGE = StatisticsOptions(resamples=10_000, seed=1)
SMALL = StatisticsOptions(resamples=500, seed=1)


def records(
    columns: Mapping[str, Sequence[float] | Column],
    *,
    clusters: Sequence[str] | None = None,
    subset: Sequence[str] | None = None,
) -> ItemRecords:
    """Records with the given columns."""
    n = len(next(iter(columns.values())))
    return ItemRecords(
        unit="item",
        ids=tuple(str(number) for number in range(n)),
        columns={name: np.array(values, dtype=np.float64) for name, values in columns.items()},
        slices={} if subset is None else {"subset": tuple(subset)},
        clusters=None if clusters is None else tuple(clusters),
    )


def named(name: str) -> Metric:
    """A metric."""
    return MeanOf(name) if name == "m" else metrics.get(name)


def compared(
    name: str, one: ItemRecords, other: ItemRecords, options: StatisticsOptions = SMALL, **weighting: Any
) -> Paired:
    """One metric of both."""
    return paired.compare(one, other, [named(name)], options, "test", **weighting)[name]


def of_means(one: Sequence[float] | Column, other: Sequence[float] | Column, **options: Any) -> Paired:
    """The mean of both."""
    return compared("m", records({"m": one}), records({"m": other}), **options)


def reference(name: str, method: str, level: float) -> Any:
    """Interval of the difference by ``scipy.stats.bootstrap`` with paired=True."""
    if name == "m":
        data: tuple[Column, ...] = (BASELINE["m"], CANDIDATE["m"])

        def statistic(*sides: Column, axis: int = -1) -> Any:
            return sides[1].mean(axis=axis) - sides[0].mean(axis=axis)
    else:
        data = (GOLD, BASELINE["cosine"], CANDIDATE["cosine"])

        def statistic(*sides: Column, axis: int = -1) -> Any:
            ranks = [stats.rankdata(side, axis=axis) for side in sides]
            gold, one, other = (each - each.mean(axis=axis, keepdims=True) for each in ranks)

            def correlation(x: Column) -> Any:
                return (x * gold).sum(axis) / np.sqrt((x**2).sum(axis) * (gold**2).sum(axis))

            return correlation(other) - correlation(one)

    return stats.bootstrap(
        data, statistic, paired=True, vectorized=True, n_resamples=10_000, method=method, confidence_level=level, rng=2
    )


@pytest.mark.parametrize("method", ["percentile", "BCa"])
@pytest.mark.parametrize("name", ["m", "cosine_spearman"])
def test_bounds_equal_scipy(name: str, method: str) -> None:
    """``scipy.stats.bootstrap`` (paired) on the same statistic, within Monte Carlo error."""
    contrast = compared(name, records(BASELINE), records(CANDIDATE), LARGE).contrast()
    theirs = reference(name, method, 0.9)
    ends = theirs.confidence_interval
    # Five standard errors of a difference of two 5 % quantiles of 10,000 draws.
    tolerance = 5 * np.sqrt(2 * 0.05 * 0.95 / 10_000) / stats.norm.pdf(stats.norm.ppf(0.05)) * theirs.standard_error
    for side, expected in (("lower", ends.low), ("upper", ends.high)):
        if method == "percentile":
            found = intervals.percentile_bound(contrast.samples, 0.05, side)  # type: ignore[arg-type]
        else:
            found = intervals.bca_bound(contrast.estimate, contrast.samples, contrast.jackknife, 0.05, side)  # type: ignore[arg-type]
        assert found == pytest.approx(expected, abs=tolerance)
    if name != "m" and method == "BCa":
        assert contrast.interval(0.9)[:2] == pytest.approx((ends.low, ends.high), abs=tolerance)
        assert contrast.method == "bca"


def drawn_rows(options: StatisticsOptions, n: int, purpose: str) -> list[npt.NDArray[np.intp]]:
    """The first resamples, item by item, as ``bootstrap.distribution`` draws them."""
    stream = seed_sequence(options.seed, "bootstrap", purpose).spawn(1)[0]
    counts = bootstrap.draw_counts(n, bootstrap.BLOCK, np.random.default_rng(stream))
    return [np.repeat(np.arange(n), column) for column in counts.T]


@pytest.mark.parametrize("scale", [1.0, 0.95])
def test_studentised_from_moments_equals_brute_force(scale: float) -> None:
    """Mean and standard error of every resample, drawn item by item; also of candidate - 0.95 x baseline."""
    contrast = compared("m", records(BASELINE), records(CANDIDATE)).contrast(scale)
    values = CANDIDATE["m"] - scale * BASELINE["m"]
    assert contrast.errors is not None
    assert contrast.estimate == pytest.approx(values.mean(), abs=1e-14)
    assert contrast.error == pytest.approx(values.std(ddof=1) / np.sqrt(N), rel=1e-12)
    for place, rows in enumerate(drawn_rows(SMALL, N, "test")):
        assert contrast.samples[place] == pytest.approx(values[rows].mean(), abs=1e-13)
        # The spread of a resample underestimates by (n - 1) / n, on all items as on each resample.
        expected = values[rows].std() / np.sqrt(N - 1)
        assert contrast.errors[place] == pytest.approx(expected, rel=1e-9)
    steps = (contrast.samples - contrast.estimate) / contrast.errors
    low = contrast.estimate - values.std(ddof=1) / np.sqrt(N) * np.quantile(steps, 0.975)
    assert contrast.interval(0.95).low == pytest.approx(low, rel=1e-9)
    assert contrast.method == "studentised"


@dataclass(frozen=True)
class _Median:
    """A metric that knows nothing of resampling or swapping."""

    name: str = "median"
    version: int = 1
    higher_is_better: bool = False
    columns: tuple[str, ...] = ("m",)

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        return float(np.median(columns["m"]))


def test_any_metric_can_be_compared() -> None:
    """BCa bounds and a bootstrap p, with each resample as brute force has it."""
    found = paired.compare(records(BASELINE), records(CANDIDATE), [_Median()], SMALL, "test")["median"]
    for place, rows in enumerate(drawn_rows(SMALL, N, "test")[:5]):
        assert found.samples[0, place] == np.median(BASELINE["m"][rows])
        assert found.samples[1, place] == np.median(CANDIDATE["m"][rows])
    p = found.p_value()
    assert p is not None
    differences = found.samples[1] - found.samples[0]
    tail = min((differences <= 0).sum(), (differences >= 0).sum())
    assert p[0] == pytest.approx(min(1.0, 2 * (tail + 1) / 501))
    assert p[1] == "bootstrap"
    assert (found.differences, found.effect_size, found.outcomes) == (None, None, None)
    assert found.error == pytest.approx(differences.std(ddof=1))


def test_both_sides_and_all_metrics_see_the_same_resamples() -> None:
    """Those of ``bootstrap.distribution``, in whatever company."""
    names = ["cosine_spearman", "m", "cosine_pearson"]
    together = paired.compare(records(BASELINE), records(CANDIDATE), [named(each) for each in names], SMALL, "test")
    assert list(together) == names
    for name in names:
        alone = compared(name, records(BASELINE), records(CANDIDATE))
        np.testing.assert_allclose(alone.samples, together[name].samples, atol=1e-12)
        assert alone.p_value() == together[name].p_value()
        for side, columns in enumerate((BASELINE, CANDIDATE)):
            expected = bootstrap.distribution([named(name)], columns, resamples=500, seed=1, purpose=("test",))[0]
            np.testing.assert_allclose(alone.samples[side], expected, atol=1e-12)


def test_clusters_by_the_formula_for_ratios() -> None:
    """Cochran 1977, 9A: error of a mean over clusters; the spread of the resamples is the same within 3 %."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 40, 200).astype(str)
    shift = dict(zip(np.unique(labels), rng.normal(0, 0.2, 40), strict=False))
    one = rng.uniform(0, 1, 200)
    other = one + np.array([shift[label] for label in labels]) + rng.normal(0, 0.1, 200)
    sides = [records({"m": side}, clusters=list(labels)) for side in (one, other)]
    contrast = compared("m", sides[0], sides[1], LARGE).contrast()
    d = other - one
    residuals = np.array([(d[labels == label] - d.mean()).sum() for label in np.unique(labels)])
    k = len(residuals)
    expected = np.sqrt(k / (k - 1) * (residuals**2).sum()) / 200
    assert contrast.error == pytest.approx(expected, rel=1e-12)
    assert contrast.samples.std() == pytest.approx(expected, rel=0.05)
    assert len(contrast.jackknife) == k
    alone = of_means(one, other).contrast()
    assert alone.error is not None
    assert contrast.error is not None
    assert contrast.error > 1.5 * alone.error


def test_every_item_twice_in_clusters_says_no_more_than_once() -> None:
    """Copies that are drawn and swapped together leave bounds as they were."""
    one, other = (
        records({"m": np.repeat(side["m"], 2)}, clusters=[str(n // 2) for n in range(2 * N)])
        for side in (BASELINE, CANDIDATE)
    )
    once = compared("m", records(BASELINE), records(CANDIDATE))
    copied = compared("m", one, other)
    assert copied.contrast().error == pytest.approx(once.contrast().error)
    # Clusters are numbered by their labels, so the draws are other ones.
    assert copied.contrast().interval(0.9)[:2] == pytest.approx(once.contrast().interval(0.9)[:2], abs=0.01)


@pytest.mark.parametrize("weighting", ["mean", "wmean"])
@pytest.mark.parametrize("name", ["m", "cosine_spearman"])
def test_means_over_sub_sets(name: str, weighting: str) -> None:
    """Value and samples are averages of those of each sub-set alone, and the variance adds up."""
    subset = ["a"] * 20 + ["b"] * 60
    one, other = records(BASELINE, subset=subset), records(CANDIDATE, subset=subset)
    found = compared(name, one, other, weighting=weighting)
    shares = [0.5, 0.5] if weighting == "mean" else [0.25, 0.75]
    rows = {"a": np.arange(20), "b": np.arange(20, N)}
    parts = [
        paired.compare(one.take(rows[label]), other.take(rows[label]), [named(name)], SMALL, "test", label)[name]
        for label in rows
    ]
    np.testing.assert_allclose(
        found.samples, sum(s * p.samples for s, p in zip(shares, parts, strict=True)), atol=1e-12
    )
    expected = sum(share * part.contrast().estimate for share, part in zip(shares, parts, strict=True))
    assert found.contrast().estimate == pytest.approx(expected, abs=1e-12)
    assert found.n_items == N
    if name == "m":
        errors = [share * (part.contrast().error or 0.0) for share, part in zip(shares, parts, strict=True)]
        assert found.contrast().error == pytest.approx(np.sqrt(sum(each**2 for each in errors)))
        squares = [
            (share * part.contrast().errors) ** 2  # type: ignore[operator]
            for share, part in zip(shares, parts, strict=True)
        ]
        np.testing.assert_allclose(found.contrast().errors, np.sqrt(sum(squares)), rtol=1e-9)  # type: ignore[arg-type]
    else:
        # Influence of each item on the whole: Davison & Hinkley 1997, section 3.2.
        assert np.sqrt((found.contrast().jackknife ** 2).sum()) == pytest.approx(found.error, rel=0.3)
    p = found.p_value()
    assert p is not None
    assert p[1] == "randomization"


def test_undefined_in_a_sub_set_is_undefined() -> None:
    """With its name; and a sub-set in which no item has a value on both sides is one."""
    subset = ["a", "a", "b", "b"]
    one = records({"m": [0.1, 0.2, np.nan, 0.4]}, subset=subset)
    other = records({"m": [0.1, 0.2, 0.3, np.nan]}, subset=subset)
    for weighting in ("mean", "wmean"):
        found = compared("m", one, other, weighting=weighting)
        assert found.undefined == "undefined_in_subset:b"
        assert found.p_value() is None


def test_only_items_with_a_value_on_both_sides_count() -> None:
    """And what each side lacks is told; the queries without an answer lack nothing."""
    one = records({"m": [0.1, np.nan, 0.3, 0.4, np.nan], "answerable": [1, 1, 1, 1, 0]})
    other = records({"m": [0.2, 0.2, np.nan, 0.6, np.nan], "answerable": [1, 1, 1, 1, 0]})
    found = compared("m", one, other)
    assert (found.n_items, found.unscored) == (2, (1, 1))
    assert (found.baseline, found.candidate) == (0.25, 0.4)
    partly = paired.compare(one, other, [MeanOf("m", of_some_items=True)], SMALL)["m"]
    assert partly.unscored == (0, 0)


def test_all_items_alike() -> None:
    """The interval is the difference, p is 1 for none; differences that are equal but for rounding have no spread."""
    same = of_means(BASELINE["m"], BASELINE["m"])
    assert same.contrast().interval(0.95)[:2] == (0.0, 0.0)
    assert (same.p_value(), same.effect_size, same.outcomes) == ((1.0, "randomization"), None, Outcomes(0, N, 0))
    shifted = of_means(BASELINE["m"], BASELINE["m"] + 0.1)
    assert shifted.contrast().error == 0.0
    assert shifted.contrast().interval(0.95)[:2] == pytest.approx((0.1, 0.1), abs=1e-12)
    assert shifted.effect_size is None
    two = of_means([0.5, 0.5], [0.5, 0.5])
    assert two.contrast().interval(0.95) == (0.0, 0.0, "approximate: 2 items")


def test_a_bound_that_decides_allows_for_what_was_not_seen() -> None:
    """Closed form: if none of n items changed, Clopper & Pearson bound the share that is lost by 1 - alpha^(1/n)."""
    for n in (20, 300):
        contrast = of_means(np.ones(n), np.ones(n), options=LARGE).contrast()
        expected = 1 - 0.05 ** (1 / n)
        assert contrast.lower(0.05) == pytest.approx(-expected, rel=0.02)
        assert contrast.upper(0.05) == pytest.approx(expected, rel=0.02)
    halves = records({"m": np.ones(40)}, subset=["a"] * 20 + ["b"] * 20)
    over = compared("m", halves, halves, LARGE, weighting="mean").contrast()
    assert over.lower(0.05) == pytest.approx(-(1 - 0.05 ** (1 / 40)), rel=0.02)
    # Values without known limits: milliseconds.
    times = of_means(np.full(20, 3.0), np.full(20, 3.0)).contrast()
    assert times.lower(0.05) == 0.0


def test_false_passes_at_the_margin() -> None:
    """400 candidates that lose 2 % of 60 queries altogether pass "no loss of 2 %" in 5 % of the cases at most.

    An interval that knows only what was seen would pass a third of them: those that happen to show no loss.
    """
    rng = np.random.default_rng(4)
    decided = shown = 0
    for _ in range(400):
        lost = (rng.random(60) < 0.02).astype(float)
        contrast = of_means(np.ones(60), 1 - lost, options=StatisticsOptions(resamples=200)).contrast()
        bound, low = contrast.lower(0.05), contrast.interval(0.9).low
        assert bound is not None
        assert low is not None
        decided += bound > -0.02
        shown += low > -0.02
    assert decided <= 20 + 4 * np.sqrt(19)
    assert shown > 80


@pytest.mark.parametrize("name", ["m", "cosine_spearman"])
def test_one_item_and_no_item(name: str) -> None:
    """A value where there is one, and nothing that would need more; never NaN."""
    one, other = records(BASELINE).take([0]), records(CANDIDATE).take([0])
    found = compared(name, one, other)
    assert (found.p_value(), found.error, found.spread, found.effect_size) == (None, None, None, None)
    if name == "m":
        contrast = found.contrast()
        assert contrast.interval(0.95) == (None, None, "no interval: fewer than 2 items")
        assert (contrast.lower(0.05), contrast.upper(0.05)) == (None, None)
    else:
        assert found.undefined == "too_few_items"
    nothing = records({"m": [np.nan, 1.0], "gold": [np.nan, 1.0], "cosine": [np.nan, 1.0]})
    empty = compared(name, nothing, records({"m": [1.0, np.nan], "gold": [1.0, np.nan], "cosine": [1.0, np.nan]}))
    assert (empty.undefined, empty.n_items, empty.p_value()) == ("too_few_items", 0, None)


def test_constant_scores_are_undefined() -> None:
    """With the reason, on whichever side."""
    constant = records(CANDIDATE | {"cosine": np.full(N, 0.5)})
    for sides in ((records(BASELINE), constant), (constant, records(BASELINE))):
        found = compared("cosine_spearman", *sides)
        assert found.undefined == "constant_input"
        assert found.p_value() is None
        assert found.error is None


def test_too_often_undefined_has_no_bounds() -> None:
    """Two of 30 scores differ: an eighth of the resamples are constant."""
    gold, few = np.arange(30.0), np.zeros(30)
    few[[3, 20]] = [1.0, 2.0]
    found = compared("cosine_spearman", records({"gold": gold, "cosine": few}), records({"gold": gold, "cosine": gold}))
    low, high, note = found.contrast().interval(0.95)
    assert (low, high, found.contrast().lower(0.05), found.error) == (None, None, None, None)
    assert note is not None
    assert note.startswith("no interval: undefined on 1")


def test_nothing_drawn_where_nothing_is_asked_for() -> None:
    """``resamples: 0``: values only."""
    found = of_means(BASELINE["m"], CANDIDATE["m"], options=StatisticsOptions(resamples=0))
    assert found.contrast().interval(0.95)[:2] == (None, None)
    assert (found.p_value(), found.error) == (None, None)
    assert found.effect_size is not None


def test_effect_size_and_outcomes() -> None:
    """Closed form: differences 1, 2, 3 have mean 2 and standard deviation 1. Wins go by the metric's direction."""
    found = of_means([0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 2.0])
    assert found.effect_size == pytest.approx(2 / np.sqrt(2 / 3))
    one, other = records({"m": [1.0, 1.0, 1.0, 1.0]}), records({"m": [2.0, 1.0, 0.0, 3.0]})
    assert paired.compare(one, other, [MeanOf("m")], SMALL)["m"].outcomes == Outcomes(2, 1, 1)
    assert paired.compare(one, other, [MeanOf("m", higher_is_better=False)], SMALL)["m"].outcomes == Outcomes(1, 1, 2)


def test_spread_is_what_power_asks_for() -> None:
    """Standard deviation of the differences; for other metrics the error times √n."""
    found = compared("m", records(BASELINE), records(CANDIDATE))
    assert found.spread == pytest.approx((CANDIDATE["m"] - BASELINE["m"]).std(ddof=1))
    assert found.spread is not None
    assert found.error is not None
    assert power.detectable_gain(found.spread, N) == pytest.approx(2.8016 * found.error, rel=1e-4)
    other = compared("cosine_spearman", records(BASELINE), records(CANDIDATE))
    assert other.error is not None
    assert other.spread == pytest.approx(other.error * np.sqrt(N))


def test_many_items_are_left_out_in_groups() -> None:
    """2500 items, 3 at a time: as many values as groups, and the same skewness as one at a time, about."""
    rng = np.random.default_rng(5)
    one, other = rng.exponential(1, 2500), rng.exponential(1.3, 2500)
    contrast = of_means(one, other, options=StatisticsOptions(resamples=100)).contrast()
    assert len(contrast.jackknife) == 834
    d = other - one
    single = (d.sum() - d) / 2499
    # Sums of three have a third of the skewness of one, times the root of three in the count of them.
    assert intervals.acceleration(contrast.jackknife) == pytest.approx(intervals.acceleration(single), abs=0.01)


def test_order_of_items() -> None:
    """See the head of this file for what holds."""
    order = np.random.default_rng(6).permutation(N)
    for name in ("m", "cosine_spearman"):
        found = compared(name, records(BASELINE), records(CANDIDATE), LARGE)
        shuffled = compared(name, records(BASELINE).take(order), records(CANDIDATE).take(order), LARGE)
        assert found.contrast().estimate == pytest.approx(shuffled.contrast().estimate, abs=1e-12)
        assert found.error == pytest.approx(shuffled.error, rel=1e-12 if name == "m" else 0.05)
        assert (found.outcomes, found.n_items) == (shuffled.outcomes, shuffled.n_items)
        assert found.error is not None
        for one, other in zip(found.contrast().interval(0.9)[:2], shuffled.contrast().interval(0.9)[:2], strict=True):
            assert one == pytest.approx(other, abs=0.15 * found.error)


def test_threads_change_nothing() -> None:
    """One thread of the matrix library or two: equal to 1e-12, and p-values to the bit."""
    rng = np.random.default_rng(7)
    one, other = ({f"m{number}": rng.uniform(0, 1, 2000) for number in range(6)} for _ in range(2))
    wanted = [MeanOf(name) for name in one]
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            each = paired.compare(records(one), records(other), wanted, SMALL)
            found.append(
                {name: (value.samples, value.contrast().errors, value.p_value()) for name, value in each.items()}
            )
    for name in one:
        np.testing.assert_allclose(found[0][name][0], found[1][name][0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[0][name][1], found[1][name][1], rtol=0, atol=1e-12)  # type: ignore[arg-type]
        assert found[0][name][2] == found[1][name][2]


VALUES = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda pair: (pair[0] / 8, pair[1] / 8)),
    min_size=3,  # two have no interval
    max_size=25,
)
QUICK = StatisticsOptions(resamples=100, seed=2)


@given(VALUES)
@settings(deadline=None, max_examples=60)
def test_swapped_sides_negate(values: list[tuple[float, float]]) -> None:
    """Difference, interval, bounds and effect size; wins are losses; p stays."""
    one, other = [each for each, _ in values], [each for _, each in values]
    forth, back = of_means(one, other, options=QUICK), of_means(other, one, options=QUICK)
    there, again = forth.contrast(), back.contrast()
    low, high, _ = there.interval(0.9)
    assert low is not None
    assert high is not None
    assert low <= high
    assert again.estimate == pytest.approx(-there.estimate, abs=1e-12)
    assert again.interval(0.9)[:2] == pytest.approx((-high, -low), abs=1e-9)
    assert again.lower(0.05) == pytest.approx(-(there.upper(0.05) or 0.0), abs=1e-9)
    assert back.p_value() == forth.p_value()
    assert forth.outcomes is not None
    assert back.outcomes == tuple(reversed(forth.outcomes))
    assert (forth.effect_size is None) == (back.effect_size is None)
    assert (forth.effect_size or 0.0) == pytest.approx(-(back.effect_size or 0.0))


@given(VALUES, st.sampled_from([1.0, 2.0, 16.0]))
@settings(deadline=None, max_examples=40)
def test_what_both_sides_gain_changes_nothing(values: list[tuple[float, float]], gain: float) -> None:
    """Differences, their error, interval and p."""
    one, other = 0.25 + np.array(values).T / 2.0  # never right or wrong, which have an interval of their own
    plain, raised = of_means(one, other, options=QUICK), of_means(one + gain, other + gain, options=QUICK)
    assert raised.contrast().estimate == pytest.approx(plain.contrast().estimate, abs=1e-12)
    assert raised.contrast().error == pytest.approx(plain.contrast().error, abs=1e-12)
    assert raised.contrast().interval(0.9)[:2] == pytest.approx(plain.contrast().interval(0.9)[:2], abs=1e-9)
    assert raised.p_value() == plain.p_value()
    assert raised.outcomes == plain.outcomes


@given(VALUES, st.sampled_from(["m", "cosine_spearman", "cosine_pearson"]), st.sampled_from([1.0, 0.99, 0.5]))
@settings(deadline=None, max_examples=60)
def test_never_nan(values: list[tuple[float, float]], name: str, scale: float) -> None:
    """Whatever the items are: a finite number or none."""
    one, other = np.array(values, dtype=np.float64).T
    gold = np.arange(len(values), dtype=np.float64) % 3
    found = compared(
        name,
        records({"m": one, "gold": gold, "cosine": one}),
        records({"m": other, "gold": gold, "cosine": other}),
        QUICK,
    )
    numbers: list[float | None] = [found.error, found.spread, found.effect_size]
    if found.undefined is None:
        contrast = found.contrast(scale)
        numbers += [contrast.estimate, contrast.lower(0.05), contrast.upper(0.05), *contrast.interval(0.95)[:2]]
    p = found.p_value()
    assert p is None or 0.0 < p[0] <= 1.0
    assert all(each is None or np.isfinite(each) for each in numbers)


def test_shares_have_the_interval_of_the_score_test() -> None:
    """Where both columns are right or wrong of independent items; scaled or clustered ones don't."""
    one, other = np.zeros(40), np.zeros(40)
    one[:4], other[2:12] = 1.0, 1.0
    contrast = of_means(one, other).contrast()
    assert contrast.method == "score"
    expected = tuple(score_bound(8, 2, 40, 0.05, side) for side in ("lower", "upper"))
    assert contrast.interval(0.9)[:2] == expected
    assert of_means(one, other).contrast(0.9).method == "studentised"
    labels = [str(number // 2) for number in range(40)]
    clustered = compared("m", records({"m": one}, clusters=labels), records({"m": other}, clusters=labels))
    assert clustered.contrast().method == "studentised"


@pytest.mark.parametrize("scale", [1.0, 0.9, 1.1])
def test_unseen_items_lose_all_there_is_on_any_scale(scale: float) -> None:
    """All items alike: Clopper and Pearson's share of none of n, at 0 - scale below and at 1 above."""
    contrast = of_means(np.full(30, 0.5), np.full(30, 0.5), options=LARGE).contrast(scale)
    share = 1.0 - 0.05 ** (1.0 / 30)
    estimate = 0.5 * (1.0 - scale)
    assert contrast.lower(0.05) == pytest.approx(estimate + share * (-scale - estimate), abs=1e-3)
    assert contrast.upper(0.05) == pytest.approx(estimate + share * (1.0 - estimate), abs=1e-3)


def test_unseen_items_count_by_the_heaviest_sub_set() -> None:
    """10 and 40 items, half of the mean each: an item of the first weighs as much as one of twenty."""
    side = records({"m": np.full(50, 0.5)}, subset=["a"] * 10 + ["b"] * 40)
    lower = compared("m", side, side, LARGE, weighting="mean").contrast().lower(0.05)
    assert lower == pytest.approx(-(1.0 - 0.05 ** (1.0 / 20)), abs=1e-3)


def test_leave_one_out_values_are_of_the_scaled_difference() -> None:
    """Against numpy's correlations without each item."""
    found = compared("cosine_pearson", records(BASELINE), records(CANDIDATE))
    sides = [
        np.array([np.corrcoef(np.delete(GOLD, row), np.delete(side["cosine"], row))[0, 1] for row in range(N)])
        for side in (BASELINE, CANDIDATE)
    ]
    expected = sides[1] - 0.5 * sides[0]
    assert intervals.acceleration(found.contrast(0.5).jackknife) == pytest.approx(intervals.acceleration(expected))


@pytest.mark.parametrize("clusters", [None, ["a", "b"] * 20], ids=["items", "clusters"])
def test_two_units_have_no_interval(clusters: list[str] | None) -> None:
    """By hand: a resample of two units is one of them twice, without a spread, or the sample, at no distance."""
    n = 2 if clusters is None else len(clusters)
    one, other = records({"m": [0.5] * n}, clusters=clusters), records({"m": [0.6, 0.9] * (n // 2)}, clusters=clusters)
    found = compared("m", one, other).contrast()
    interval = found.interval(0.95)
    assert (interval.low, interval.high) == (None, None)
    what = "too few items or clusters to tell their spread" if clusters is None else "2 clusters are too few"
    assert interval.note is not None
    assert interval.note.startswith(f"no interval: {what}")
    assert replace(found, unseen=None).lower(0.05) is None
    assert of_means([0.5, 0.5], [0.7, 0.7]).contrast().interval(0.95).low == pytest.approx(0.2)  # no spread at all


def test_few_clusters_are_told() -> None:
    """Sixty items in six clusters are six draws, four are too few; of independent ones there is nothing to say."""
    one, other = RNG.uniform(0, 1, 60), RNG.uniform(0, 1, 60)
    sides = [records({"m": side}, clusters=list("abcdef") * 10) for side in (one, other)]
    assert compared("m", sides[0], sides[1]).contrast().interval(0.95).note == "approximate: 60 items in 6 clusters"
    sides = [records({"m": side}, clusters=list("abcd") * 15) for side in (one, other)]
    few = compared("m", sides[0], sides[1]).contrast()
    assert few.interval(0.95)[:2] == (None, None)
    assert (few.lower(0.05), few.upper(0.05)) == (None, None)
    assert of_means(one, other).contrast().interval(0.95).note is None
