"""The bootstrap against scipy, closed forms, and its own promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from embeval import metrics
from embeval.core.protocols import Metric, Resampler, Undefined
from embeval.metrics import MeanOf
from embeval.stats import bootstrap, intervals
from embeval.stats.rng import seed_sequence

RNG = np.random.default_rng(7)
N = 300
GOLD = np.round(RNG.uniform(0, 5, N), 1)
COLUMNS = {"gold": GOLD, "cosine": GOLD / 5 + RNG.normal(0, 0.3, N), "m": RNG.uniform(0, 1, N)}


def test_counts_are_draws_with_replacement() -> None:
    """Every resample draws n items; each count is Binomial(n, 1/n): mean 1, variance 1 - 1/n."""
    counts = bootstrap.draw_counts(200, 4000, np.random.default_rng(0))
    assert counts.shape == (200, 4000)
    assert np.all(counts.sum(axis=0) == 200)
    assert counts.mean() == 1.0
    assert counts.var() == pytest.approx(1 - 1 / 200, rel=0.01)
    assert np.corrcoef(counts[0], counts[1])[0, 1] == pytest.approx(-1 / 199, abs=0.05)


def test_whole_clusters_are_drawn() -> None:
    """Items of one cluster always have equal counts, and as many clusters are drawn as there are."""
    clusters = np.array([0, 0, 1, 2, 2, 2])
    counts = bootstrap.draw_counts(6, 500, np.random.default_rng(0), clusters)
    assert np.array_equal(counts[0], counts[1])
    assert np.array_equal(counts[3], counts[5])
    assert np.all(counts[0] + counts[2] + counts[3] == 3)


@pytest.mark.parametrize("name", ["cosine_spearman", "cosine_pearson"])
def test_interval_equals_that_of_scipy(name: str) -> None:
    """BCa interval of ``scipy.stats.bootstrap`` (1.17.1) on the same statistic, within Monte Carlo error."""
    metric = metrics.get(name)
    ours = bootstrap.distribution([metric], COLUMNS, resamples=10_000, seed=1)[0]
    estimate = metric.aggregate(COLUMNS)
    assert isinstance(estimate, float)
    reference = stats.spearmanr if name.endswith("spearman") else stats.pearsonr
    theirs = stats.bootstrap(
        (COLUMNS["gold"], COLUMNS["cosine"]),
        lambda x, y: reference(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=3000,
        method="BCa",
        rng=np.random.default_rng(2),
    )
    left_out = bootstrap.jackknife([metric], COLUMNS)[0]
    low, high, _ = bootstrap.bca(estimate, ours, left_out, 0.95, n_items=N)
    # A 2.5 % quantile of B draws has standard error sqrt(.025 * .975 / B) / density; 5 of them here.
    tolerance = 5 * np.sqrt(0.025 * 0.975 / 3000) / stats.norm.pdf(1.96) * np.std(ours)
    assert low == pytest.approx(theirs.confidence_interval.low, abs=tolerance)
    assert high == pytest.approx(theirs.confidence_interval.high, abs=tolerance)
    assert np.std(ours) == pytest.approx(theirs.standard_error, rel=0.06)


def test_standard_error_of_a_mean() -> None:
    """Closed form: the bootstrap standard error of a mean is sigma / sqrt(n) with the population sigma."""
    samples = bootstrap.distribution([MeanOf("m")], COLUMNS, resamples=20_000, seed=3)[0]
    assert samples.std() == pytest.approx(COLUMNS["m"].std() / np.sqrt(N), rel=0.02)
    assert samples.mean() == pytest.approx(COLUMNS["m"].mean(), abs=4 * samples.std() / np.sqrt(20_000))


def test_clusters_widen_the_interval_as_theory_says() -> None:
    """Every item copied 4 times: drawn alone its error is half of what it is when copies are drawn together."""
    base = RNG.uniform(0, 1, 100)
    copied = {"m": np.repeat(base, 4)}
    labels = [str(number) for number in range(100) for _ in range(4)]
    alone = bootstrap.distribution([MeanOf("m")], copied, resamples=8000, seed=1)[0]
    together = bootstrap.distribution([MeanOf("m")], copied, resamples=8000, seed=1, clusters=labels)[0]
    assert together.std() / alone.std() == pytest.approx(2.0, rel=0.05)
    assert together.std() == pytest.approx(base.std() / 10, rel=0.05)


def test_same_seed_same_numbers_and_other_seed_others() -> None:
    """Equal to the bit for (seed, purpose); independent for another seed or purpose."""
    metric = [metrics.get("cosine_spearman")]
    first = bootstrap.distribution(metric, COLUMNS, resamples=200, seed=1, purpose=("a",))
    assert np.array_equal(first, bootstrap.distribution(metric, COLUMNS, resamples=200, seed=1, purpose=("a",)))
    for seed, purpose in ((2, "a"), (1, "b")):
        other = bootstrap.distribution(metric, COLUMNS, resamples=200, seed=seed, purpose=(purpose,))
        assert not np.any(first == other)


def test_fewer_resamples_are_the_first_of_more() -> None:
    """Blocks have a stream each, so a longer run only adds to a shorter one."""
    metric = [MeanOf("m")]
    long = bootstrap.distribution(metric, COLUMNS, resamples=500, seed=1)
    assert np.array_equal(bootstrap.distribution(metric, COLUMNS, resamples=130, seed=1), long[:, :130])


def test_metrics_share_resamples_whatever_their_company() -> None:
    """A metric's samples don't change when others are computed beside it."""
    names = ["cosine_spearman", "cosine_pearson"]
    together = bootstrap.distribution(
        [*(metrics.get(name) for name in names), MeanOf("m")], COLUMNS, resamples=300, seed=1
    )
    for row, metric in enumerate([*(metrics.get(name) for name in names), MeanOf("m")]):
        alone = bootstrap.distribution([metric], COLUMNS, resamples=300, seed=1)[0]
        np.testing.assert_allclose(alone, together[row], atol=1e-12)


@dataclass(frozen=True)
class _Median:
    """A metric that knows nothing of resampling."""

    name: str = "median"
    version: int = 1
    higher_is_better: bool = True
    columns: tuple[str, ...] = ("m",)

    def aggregate(self, columns: Mapping[str, npt.NDArray[np.float64]]) -> float | Undefined:
        return float(np.median(columns["m"]))


def test_a_metric_without_resampler_is_computed_resample_by_resample() -> None:
    """The median of the drawn items, on the same draws as every other metric."""
    values = bootstrap.distribution([_Median(), MeanOf("m")], COLUMNS, resamples=40, seed=1)
    stream = np.random.default_rng(seed_sequence(1, "bootstrap").spawn(2)[0])
    counts = bootstrap.draw_counts(N, bootstrap.BLOCK, stream)
    drawn = np.repeat(COLUMNS["m"], counts[:, 5])
    assert values[0, 5] == np.median(drawn)
    assert values[1, 5] == pytest.approx(drawn.mean())


def test_blocks_of_few_items_come_together_and_draw_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step has a price of its own: two blocks at a time make half the steps, and not another number."""
    steps = []
    original = MeanOf.resampler

    def counting(metrics: Sequence[MeanOf], columns: Mapping[str, npt.NDArray[np.float64]]) -> Resampler:
        resample = original(metrics, columns)

        def counted(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            steps.append(counts.shape[1])
            return resample(counts)

        return counted

    monkeypatch.setattr(MeanOf, "resampler", staticmethod(counting))
    found = []
    for at_a_time in (1, 2 * bootstrap.BLOCK * N):
        monkeypatch.setattr(bootstrap, "AT_A_TIME", at_a_time)
        found.append(bootstrap.distribution([MeanOf("m")], COLUMNS, resamples=100, seed=3))
    assert steps == [32, 32, 32, 32, 64, 64]
    assert np.allclose(found[0], found[1], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["cosine_spearman", "cosine_pearson", "m", "median"])
def test_leave_one_out_values_are_those_of_the_items_that_stay(name: str) -> None:
    """Brute force: the metric on the columns without the item."""
    own: dict[str, Metric] = {"m": MeanOf("m"), "median": _Median()}
    metric = own.get(name) or metrics.get(name)
    few = {column: values[:60] for column, values in COLUMNS.items()}
    found = bootstrap.jackknife([metric, MeanOf("m")], few)
    assert found.shape == (2, 60)
    for item in range(60):
        expected = metric.aggregate({column: np.delete(values, item) for column, values in few.items()})
        assert found[0, item] == pytest.approx(expected, abs=1e-12)


def test_whole_clusters_are_left_out() -> None:
    """Clusters a (items 0 and 2) and b (item 1): means without them."""
    found = bootstrap.jackknife([MeanOf("m")], {"m": np.array([1.0, 2.0, 5.0])}, ["a", "b", "a"])
    assert found.tolist() == [[2.0, 3.0]]


def test_many_items_are_left_out_in_groups_of_one_size() -> None:
    """2,500 items: 834 groups of 3 or 2, with the skewness of the mean kept: a sixth of that of the items over √n."""
    values = np.random.default_rng(0).exponential(size=2500)
    found = bootstrap.jackknife([MeanOf("m")], {"m": values})[0]
    assert found.shape == (834,)
    third = np.delete(values, [0, 834, 1668])
    assert found[0] == pytest.approx(third.mean(), abs=1e-12)
    expected = stats.skew(values) / 6 / np.sqrt(2500)
    assert intervals.acceleration(found) == pytest.approx(expected, rel=0.2)


def test_notes_of_intervals() -> None:
    """A note below 50 items; no interval where it would mean nothing."""
    samples, flat = np.arange(1001.0), np.zeros(3)
    assert bootstrap.bca(500.0, samples, flat, 0.9, n_items=100) == pytest.approx((50.0, 950.0, None))
    assert bootstrap.bca(500.0, samples, flat, 0.9, n_items=50).note is None
    assert bootstrap.bca(500.0, samples, flat, 0.9, n_items=49).note == "approximate: 49 items"
    assert bootstrap.bca(500.0, samples, flat, 0.9, n_items=1) == (None, None, "no interval: fewer than 2 items")
    assert bootstrap.bca(500.0, np.empty(0), flat, 0.9, n_items=100) == (None, None, None)
    gaps = samples.copy()
    gaps[:100] = np.nan
    assert bootstrap.bca(500.0, gaps, flat, 0.9, n_items=100).note == "no interval: undefined on 10% of the resamples"
    at_the_bound = np.where(np.arange(1000) < 50, np.nan, 1.0)  # defined on 95 %
    assert bootstrap.bca(1.0, at_the_bound, flat, 0.9, n_items=100).low == 1.0
    at_the_bound[50] = np.nan
    assert bootstrap.bca(1.0, at_the_bound, flat, 0.9, n_items=100).low is None


def test_streams_of_different_purposes_differ() -> None:
    """("a", "bc") and ("ab", "c") are different purposes."""
    draws = [np.random.default_rng(seed_sequence(0, *purpose)).integers(0, 2**60) for purpose in PURPOSES]
    assert len(set(draws)) == len(PURPOSES)
    assert draws[0] == np.random.default_rng(seed_sequence(0, *PURPOSES[0])).integers(0, 2**60)


PURPOSES = (("a", "bc"), ("ab", "c"), ("abc",), ())
