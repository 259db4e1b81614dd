"""How often intervals hold the truth, how often a gate passes wrongly, and how often rightly: a simulation.

Populations whose truth is known are drawn from again and again, with the bounds of ``embeval.stats.intervals``.
Within a repetition there are fewer resamples than in an evaluation (10,000), and 500 repetitions share their counts,
as all tasks of one size and seed do; both are stated in the report. Accuracy needs no simulation: its coverage is a
sum over binomial probabilities.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one thread for each of the processes
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from scipy import stats  # noqa: E402

from benchmarks import study_report  # noqa: E402
from benchmarks.harness import RESULTS, write  # noqa: E402
from embeval import metrics  # noqa: E402
from embeval.core import strict_json  # noqa: E402
from embeval.core.protocols import Resampler, Undefined  # noqa: E402
from embeval.core.records import Column  # noqa: E402
from embeval.stats import bootstrap, intervals  # noqa: E402
from embeval.stats.paired import Contrast, Unseen  # noqa: E402
from embeval.stats.rng import seed_sequence  # noqa: E402

REPETITIONS = 10_000
TOGETHER = 500
"""Repetitions that share their resamples."""
SIZES = (50, 200, 1000)
SMALL_SIZES = (20, 30, 40)
LEVEL, ALPHA = 0.95, 0.05
LEFT_OUT = 100
"""Most sets of items left out in turn for a correlation."""

Rows = npt.NDArray[np.float64]
Narrow = npt.NDArray[np.float32]
Tally = dict[str, list[float]]
"""Method -> per cent of repetitions in which the bound was wrong."""


def generator(*purpose: object) -> np.random.Generator:
    """A generator for one part of the study."""
    return np.random.default_rng(seed_sequence(0, "study", *map(str, purpose)))


# Populations


@dataclass(frozen=True)
class Discrete:
    """Values with probabilities."""

    name: str
    values: Column
    shares: Column

    @property
    def mean(self) -> float:
        """Its expectation."""
        return float(self.values @ self.shares)

    @property
    def spread(self) -> float:
        """Its standard deviation."""
        return float(np.sqrt(self.values**2 @ self.shares - self.mean**2))

    def draw(self, rng: np.random.Generator, *shape: int) -> Rows:
        """Independent values of that shape."""
        places = np.searchsorted(np.cumsum(self.shares)[:-1], rng.random(shape), side="right")
        return np.asarray(self.values[places])

    def with_mean(self, mean: float) -> Discrete:
        """The same values, with shares tilted exponentially so that their mean is the given one."""
        low, high = -200.0, 200.0
        for _ in range(100):
            tilt = (low + high) / 2.0
            weights = self.shares * np.exp(tilt * self.values)
            found = float(self.values @ weights / weights.sum())
            low, high = (tilt, high) if found < mean else (low, tilt)
        return Discrete(self.name, self.values, weights / weights.sum())


def ndcg(name: str, zero: float, one: float) -> Discrete:
    """nDCG@10 of queries with one relevant document: 0, 1, or 1 / log2(rank + 1)."""
    between = 1.0 / np.log2(np.arange(2, 11) + 1.0)
    shares = np.array([zero, one, *([(1.0 - zero - one) / 9.0] * 9)])
    return Discrete(name, np.array([0.0, 1.0, *between]), shares)


def many_relevant() -> Discrete:
    """nDCG@10 of queries with several relevant documents: spread over [0, 1], with a few at the ends."""
    grid = (np.arange(200) + 0.5) / 200.0
    inner = stats.beta(1.6, 1.4).pdf(grid)
    return Discrete(
        "several relevant documents", np.array([0.0, 1.0, *grid]), np.array([0.07, 0.03, *(0.9 * inner / inner.sum())])
    )


SCORES = (
    ndcg("one relevant document", 0.21, 0.47),
    many_relevant(),
    ndcg("easy: 86 % perfect", 0.06, 0.86),
    ndcg("hard: 72 % missed", 0.72, 0.10),
)


def _signed(name: str, changed: float, sizes: Mapping[float, float]) -> Discrete:
    """Differences: ``changed`` of the queries by one of the sizes, up or down alike."""
    steps = np.array(list(sizes), dtype=np.float64)
    shares = np.array(list(sizes.values()))
    shares = changed / 2.0 * shares / shares.sum()
    return Discrete(
        name, np.array([0.0, *steps, *-steps]), np.array([1.0 - changed, *shares, *shares], dtype=np.float64)
    )


GAPS = {1.0: 0.1, 0.63: 0.2, 0.37: 0.25, 0.13: 0.25, 0.07: 0.2}
"""Changes of nDCG between places near the top, and into and out of the ranking, with how often they come."""
DIFFERENCES = (
    (_signed("nDCG, 10 % of queries changed", 0.10, GAPS), 0.02),
    (_signed("nDCG, 30 % of queries changed", 0.30, GAPS), 0.02),
    (_signed("nDCG, 80 % changed, most a little", 0.80, {0.5: 0.03, 0.2: 0.27, 0.05: 0.7}), 0.01),
    (
        Discrete(
            "nDCG, jitter and 1 % lost",
            np.array([-1, -0.05, -0.02, 0, 0.02, 0.05]),
            np.array([0.01, 0.1, 0.1, 0.59, 0.1, 0.1]),
        ),
        0.01,
    ),
    (_signed("accuracy, 4 % changed", 0.04, {1.0: 1.0}), 0.02),
    (_signed("accuracy, 10 % changed", 0.10, {1.0: 1.0}), 0.02),
    (_signed("accuracy, 30 % changed", 0.30, {1.0: 1.0}), 0.02),
)
"""Populations of paired differences, with the margin."""


# Means


def batches(population: Discrete, n: int, resamples: int, *purpose: object) -> Iterator[tuple[Rows, Rows, Rows]]:
    """([500, n] items, [500, R] their resampled means and [500, R] mean squares), until all repetitions are done."""
    rng = generator(population.name, n, *purpose)
    for _ in range(REPETITIONS // TOGETHER):
        items = population.draw(rng, TOGETHER, n)
        counts = bootstrap.draw_counts(n, resamples, rng).astype(np.float64)
        yield items, items @ counts / n, items**2 @ counts / n


def without_each(items: Rows) -> Rows:
    """The mean without each item, in closed form."""
    return np.asarray((items.sum(axis=1, keepdims=True) - items) / (items.shape[1] - 1))


def both(bound: Callable[[float, intervals.Side], float]) -> tuple[float, float]:
    """The ends of a 95 % interval."""
    return bound((1.0 - LEVEL) / 2.0, "lower"), bound((1.0 - LEVEL) / 2.0, "upper")


class Misses:
    """How often the truth lay below and above intervals, by method."""

    def __init__(self, truth: float) -> None:
        self.truth = truth
        self.counts: dict[str, list[int]] = {}

    def add(self, method: str, low: Any, high: Any) -> None:
        """One interval, or many."""
        found = self.counts.setdefault(method, [0, 0])
        slack = 1e-9
        found[0] += int(np.sum(np.asarray(low) > self.truth + slack))
        found[1] += int(np.sum(np.asarray(high) < self.truth - slack))

    def per_cent(self) -> Tally:
        """Method -> per cent below the interval, above it, and within."""
        shares = {name: [100.0 * each / REPETITIONS for each in pair] for name, pair in self.counts.items()}
        return {name: [round(v, 2) for v in (*pair, 100.0 - sum(pair))] for name, pair in shares.items()}


def mean_coverage(population: Discrete, n: int) -> Tally:
    """Coverage for the mean of n values."""
    misses = Misses(population.mean)
    t = float(stats.t.ppf((1 + LEVEL) / 2, n - 1))
    for items, means, squares in batches(population, n, 1000, "coverage"):
        misses.add("percentile", *np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1))
        estimates, errors = items.mean(axis=1), items.std(axis=1, ddof=1) / np.sqrt(n)
        misses.add("t", estimates - t * errors, estimates + t * errors)
        spreads = np.sqrt(np.maximum(squares - means**2, 0.0) / (n - 1))
        for row, left_out in enumerate(without_each(items)):
            estimate, drawn = float(estimates[row]), means[row]
            if set(np.unique(items[row])) <= {0.0, 1.0}:  # as scoring does with a column of 0 and 1
                misses.add("bca", *intervals.wilson(float(items[row].sum()), n, LEVEL))
            else:
                misses.add("bca", *both(partial(intervals.bca_bound, estimate, drawn, left_out)))
            misses.add(
                "studentised",
                *both(partial(intervals.studentised_bound, estimate, float(errors[row]), drawn, spreads[row])),
            )
    return misses.per_cent()


def accuracy_coverage(n: int) -> dict[str, list[float]]:
    """Method -> mean, lowest and highest coverage over accuracies of 50 to 95 % in steps of 0.1 %, exactly."""
    right = np.arange(n + 1)
    ends = {
        "wilson": np.array([intervals.wilson(float(k), n, LEVEL) for k in right]).T,
        "percentile": np.stack([stats.binom.ppf(q, n, right / n) / n for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]),
    }
    found = {}
    for method, (low, high) in ends.items():
        coverage = [
            float(stats.binom.pmf(right, n, p)[(low <= p + 1e-12) & (p - 1e-12 <= high)].sum())
            for p in np.linspace(0.5, 0.95, 451)
        ]
        found[method] = [round(100.0 * float(each), 2) for each in (np.mean(coverage), min(coverage), max(coverage))]
    return found


# F1


@dataclass(frozen=True)
class F1:
    """F1 of items with the columns ``gold`` and ``found``, 1 or 0: a metric that is no mean of items."""

    name: str = "f1"
    version: int = 1
    higher_is_better: bool = True
    columns: tuple[str, ...] = ("gold", "found")

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """2 tp / (2 tp + fp + fn)."""
        value = float(self.resampler([self], columns)(np.ones((len(columns["gold"]), 1), dtype=np.int64))[0, 0])
        return Undefined("no_positives") if np.isnan(value) else value

    @staticmethod
    def resampler(metrics: Sequence[F1], columns: Mapping[str, Column]) -> Resampler:
        """F1 under resampling."""
        terms = np.stack([columns["gold"] * columns["found"], columns["gold"] + columns["found"]])

        def resample(counts: npt.NDArray[np.int64]) -> Rows:
            both_yes, either = terms @ counts
            value = np.divide(2.0 * both_yes, either, out=np.full(len(either), np.nan), where=either > 0)
            return np.repeat(value[None, :], len(metrics), axis=0)

        return resample


F1_SHARES = {
    "balanced, F1 80 %": (0.40, 0.10, 0.10, 0.40),
    "rare positives, F1 60 %": (0.09, 0.05, 0.07, 0.79),
    "balanced, F1 95 %": (0.475, 0.025, 0.025, 0.475),
    "weak, F1 40 %": (0.10, 0.15, 0.15, 0.60),
}
"""Shares of true positives, false positives, false negatives and true negatives."""


def f1_coverage(name: str, n: int) -> Tally:
    """Coverage for F1 of n items. Items are of four kinds, so their numbers are what is resampled."""
    shares = np.array(F1_SHARES[name])
    kinds = {"gold": np.array([1.0, 0.0, 1.0, 0.0]), "found": np.array([1.0, 1.0, 0.0, 0.0])}
    f1 = F1.resampler([F1()], kinds)
    misses = Misses(float(2 * shares[0] / (2 * shares[0] + shares[1] + shares[2])))
    rng = generator("f1", name, n)
    for tallies in rng.multinomial(n, shares, size=REPETITIONS):
        estimate, drawn = float(f1(tallies[:, None])[0, 0]), f1(rng.multinomial(n, tallies / n, size=1000).T)[0]
        left_out = np.repeat(f1(np.maximum(tallies[:, None] - np.eye(4, dtype=np.int64), 0))[0], tallies)
        misses.add("percentile", *both(partial(intervals.percentile_bound, drawn)))
        misses.add("bca", *both(partial(intervals.bca_bound, estimate, drawn, left_out)))
        found, wrong, missed = map(float, tallies[:3])
        misses.add("wilson of tp / (tp + fp + fn)", *intervals.f1(found, wrong, missed, LEVEL))
    return misses.per_cent()


# Spearman


def normal_pairs(correlation: float) -> Callable[[np.random.Generator, int], tuple[Column, Column]]:
    """Pairs from a bivariate normal distribution."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Column, Column]:
        x, noise = rng.standard_normal((2, n))
        return x, correlation * x + np.sqrt(1.0 - correlation**2) * noise

    return draw


def sts_pairs(rng: np.random.Generator, n: int, noises: Sequence[float] = (0.17,)) -> tuple[Column, ...]:
    """Golds in steps of 0.2 from 0 to 5, skewed, and a cosine for each noise: curved, surer near the top."""
    truth = rng.beta(1.2, 1.6, n)
    bend = 1.0 - 0.8 * (1.0 - truth) ** 2
    common = rng.standard_normal(n)
    cosines = (
        bend + (0.05 + (noise - 0.05) * (1.0 - truth)) * (0.8 * common + 0.6 * rng.standard_normal(n))
        for noise in noises
    )
    return np.round(truth * 25) / 5, *cosines


PAIRS: dict[str, Callable[[np.random.Generator, int], tuple[Column, ...]]] = {
    "normal, r 0.8": normal_pairs(0.8),
    "normal, r 0.4": normal_pairs(0.4),
    "STS-like, ties and skew": sts_pairs,
}


class SharedRanks:
    """Spearman on resamples for many sets of n pairs, one side of which has no ties, with the same counts for all.

    Items stand in the order of that side, so that its ranks are worked out once. Equal to the resampler of
    ``embeval.metrics.correlation``, which ``check`` proves on some sets; up to seven times as fast.
    """

    def __init__(self, n: int, resamples: int, rng: np.random.Generator) -> None:
        groups = np.arange(n) % -(-n // -(-n // LEFT_OUT))
        left_out = (groups[:, None] != np.arange(groups.max() + 1)).astype(np.int64)
        self.counts = np.hstack([bootstrap.draw_counts(n, resamples, rng), left_out, np.ones((n, 1), dtype=np.int64)])
        self.resamples = resamples
        self.narrow: Narrow = self.counts.astype(np.float32)
        self.drawn = self.narrow.sum(axis=0)
        self.ranks = self.narrow * self._centred(self.narrow)
        self.spread = np.einsum("ij,ij->j", self.ranks, self._centred(self.narrow), dtype=np.float64)
        self.overlap = np.einsum("ij,ij->j", self.ranks, self.narrow, dtype=np.float64)
        self.stacked: Narrow = np.hstack([self.narrow, self.ranks])

    def _centred(self, drawn: Narrow) -> Narrow:
        return np.asarray(2.0 * np.cumsum(drawn, axis=0, dtype=np.float32) - drawn - self.drawn)

    def values(self, x: Column, y: Column) -> tuple[float, Column, Column]:
        """(on all items, [R] on resamples, [J] with some left out). ``y`` has no ties."""
        x = x[np.argsort(y)]
        levels, codes = np.unique(x, return_inverse=True)
        if len(levels) == len(x):
            order = np.argsort(codes)
            drawn = np.cumsum(self.narrow[order], axis=0, dtype=np.float32)
            covariance = 2.0 * np.einsum("ij,ij->j", self.ranks[order], drawn, dtype=np.float64) - self.overlap
            found = covariance / self.spread
        else:
            member = (codes == np.arange(len(levels))[:, None]).astype(np.float32)
            drawn, ranks = np.split(member @ self.stacked, 2, axis=1)
            centred = self._centred(drawn)
            covariance = np.einsum("ij,ij->j", centred, ranks, dtype=np.float64)
            spread = np.einsum("ij,ij,ij->j", drawn, centred, centred, dtype=np.float64)
            found = covariance / np.sqrt(spread * self.spread)
        return float(found[-1]), found[: self.resamples], found[self.resamples : -1]

    def check(self, x: Column, y: Column) -> None:
        """Compares with the product's resampler."""
        order = np.argsort(y)
        metric = metrics.get("cosine_spearman")
        columns = {"gold": x[order], "cosine": y[order]}
        theirs = type(metric).resampler([metric], columns)(self.counts)[0]  # type: ignore[attr-defined]
        estimate, drawn, left_out = self.values(x, y)
        np.testing.assert_allclose([*drawn, *left_out, estimate], theirs, atol=1e-4)


def spearman_truth(draw: Callable[[np.random.Generator, int], tuple[Column, ...]], side: int = 1) -> float:
    """The population's coefficient, from three million pairs; standard error below 0.0005."""
    drawn = draw(np.random.default_rng(seed_sequence(0, "study", "truth")), 3_000_000)
    return float(stats.spearmanr(drawn[0], drawn[side]).statistic)


def resamples_for(n: int) -> int:
    """Resamples within a repetition of correlations."""
    return 1000 if n <= 200 else 500


def spearman_coverage(name: str, n: int) -> Tally:
    """Coverage for Spearman's coefficient of n pairs."""
    draw = PAIRS[name]
    misses = Misses(6 / np.pi * np.arcsin(float(name[-3:]) / 2) if name.startswith("normal") else spearman_truth(draw))
    rng = generator("spearman", name, n)
    for _ in range(REPETITIONS // TOGETHER):
        shared = SharedRanks(n, resamples_for(n), rng)
        shared.check(*draw(rng, n))
        for _ in range(TOGETHER):
            estimate, drawn, left_out = shared.values(*draw(rng, n))
            misses.add("percentile", *both(partial(intervals.percentile_bound, drawn)))
            misses.add("bca", *both(partial(intervals.bca_bound, estimate, drawn, left_out)))
            error = np.sqrt((1.0 + estimate**2 / 2.0) / (n - 3)) * stats.norm.ppf((1 + LEVEL) / 2)  # Bonett & Wright
            misses.add("fisher z", np.tanh(np.arctanh(estimate) - error), np.tanh(np.arctanh(estimate) + error))
    return misses.per_cent()


# Gates


def contrasts(items: Rows, means: Rows) -> Iterator[Contrast]:
    """The product's contrast of each row of paired differences of values in [0, 1]."""
    n = items.shape[1]
    for row, left_out in enumerate(without_each(items)):
        yield Contrast(
            float(items[row].mean()),
            means[row],
            n,
            jackknife=left_out,
            unseen=Unseen(lowest=-1.0, highest=1.0, n_units=n),
        )


def lower_bounds(items: Rows, means: Rows) -> dict[str, Column]:
    """Method -> one-sided lower 95 % bounds of the means of paired differences of values in [0, 1]."""
    plain: list[float | None] = []
    decisive: list[float | None] = []
    as_seen: list[float | None] = []
    for row, contrast in enumerate(contrasts(items, means)):
        plain.append(intervals.bca_bound(contrast.estimate, contrast.samples, contrast.jackknife, ALPHA, "lower"))
        decisive.append(contrast.lower(ALPHA))
        largest = float(np.abs(items[row]).max())
        as_seen.append(replace(contrast, unseen=Unseen(-largest, largest, items.shape[1])).lower(ALPHA))
    n = items.shape[1]
    t = items.mean(axis=1) - stats.t.ppf(1 - ALPHA, n - 1) * items.std(axis=1, ddof=1) / np.sqrt(n)
    percentile = np.quantile(means, ALPHA, axis=1)
    return {
        "percentile": percentile,
        "t": t,
        "bca": np.array(plain, dtype=np.float64),
        "as_seen": np.array(as_seen, dtype=np.float64),
        "decisive": np.array(decisive, dtype=np.float64),
    }


def false_passes(place: int, n: int) -> Tally:
    """Per cent of candidates that pass ``no_regression`` though they lose exactly the margin."""
    population, margin = DIFFERENCES[place]
    at_margin = population.with_mean(-margin)
    passed: dict[str, int] = {}
    for items, means, _ in batches(at_margin, n, 1000, "gate"):
        for method, bounds in lower_bounds(items, means).items():
            passed[method] = passed.get(method, 0) + int((bounds > -margin + 1e-9).sum())
    return {method: [round(100.0 * each / REPETITIONS, 2)] for method, each in passed.items()}


SPEARMAN_NOISES = (0.15, 0.19)


def spearman_false_passes(n: int) -> Tally:
    """The same for two models on one STS set; the margin is what the second one truly loses."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Column, ...]:
        return sts_pairs(rng, n, SPEARMAN_NOISES)

    margin = spearman_truth(draw, 1) - spearman_truth(draw, 2)
    rng = generator("paired spearman", n)
    passed = {"percentile": 0, "bca": 0}
    for _ in range(REPETITIONS // TOGETHER):
        shared = PairedRanks(n, resamples_for(n), rng)
        shared.check(draw(rng, n))
        for _ in range(TOGETHER):
            estimate, drawn, left_out = shared.differences(draw(rng, n))
            passed["percentile"] += intervals.percentile_bound(drawn, ALPHA, "lower") > -margin
            passed["bca"] += intervals.bca_bound(estimate, drawn, left_out, ALPHA, "lower") > -margin
    return {method: [round(100.0 * each / REPETITIONS, 2)] for method, each in passed.items()}


class PairedRanks(SharedRanks):
    """Differences of two coefficients with the same golds on the same resamples."""

    def differences(self, drawn: tuple[Column, ...]) -> tuple[float, Column, Column]:
        """(on all items, [R], [J]) of the second minus the first."""
        gold, *systems = drawn
        order = np.argsort(systems[0])  # the shared counts belong to items in this order
        gold, second = gold[order], systems[1][order]
        first = self.values(gold, np.arange(len(gold), dtype=np.float64))
        other = self._values_of(gold, second)
        return other[0] - first[0], other[1] - first[1], other[2] - first[2]

    def _values_of(self, gold: Column, second: Column) -> tuple[float, Column, Column]:
        order = np.argsort(second)
        counts = self.narrow[order]
        weighted = counts * self._centred(counts)
        levels, codes = np.unique(gold[order], return_inverse=True)
        member = (codes == np.arange(len(levels))[:, None]).astype(np.float32)
        drawn, ranks = member @ counts, member @ weighted
        centred = self._centred(drawn)
        covariance = np.einsum("ij,ij->j", centred, ranks, dtype=np.float64)
        spread = np.einsum("ij,ij,ij->j", drawn, centred, centred, dtype=np.float64)
        found = covariance / np.sqrt(spread * self.spread)
        return float(found[-1]), found[: self.resamples], found[self.resamples : -1]

    def check(self, drawn: tuple[Column, ...]) -> None:  # type: ignore[override]
        """Compares with the product's resampler."""
        order = np.argsort(drawn[1])
        metric = metrics.get("cosine_spearman")
        first, second = (
            type(metric).resampler([metric], {"gold": drawn[0][order], "cosine": side[order]})(self.counts)[0]  # type: ignore[attr-defined]
            for side in drawn[1:]
        )
        estimate, differences, left_out = self.differences(drawn)
        np.testing.assert_allclose([*differences, *left_out, estimate], second - first, atol=2e-4)


POWER_SIZES = (50, 100, 200, 300, 500, 1000, 2000)
TRUE_GAINS = (-0.01, 0.0, 0.01, 0.02)
POWER_MARGIN = 0.02
POWER_OF = (0, 1)
"""Populations of ``DIFFERENCES`` whose power is shown."""


def power(place: int, n: int) -> dict[str, list[float]]:
    """True gain -> per cent that pass ``no_regression`` with margin 0.02, by BCa and by the bound that decides."""
    population, _ = DIFFERENCES[place]
    found = {}
    for gain in TRUE_GAINS:
        passed = np.zeros(2)
        for items, means, _ in batches(population.with_mean(gain), n, 500, "power", gain):
            bounds = lower_bounds(items, means)
            passed += [(bounds[method] > -POWER_MARGIN).sum() for method in ("bca", "decisive")]
        found[f"{gain:+.2f}"] = [round(float(each), 1) for each in 100.0 * passed / REPETITIONS]
    return found


def difference_coverage(place: int, n: int) -> Tally:
    """Coverage of the two-sided interval of a comparison, where the true difference is half the margin."""
    population, margin = DIFFERENCES[place]
    population = population.with_mean(-margin / 2.0)
    shares = set(population.values) == {-1.0, 0.0, 1.0}
    misses = Misses(population.mean)
    for items, means, squares in batches(population, n, 1000, "comparison"):
        errors = items.std(axis=1, ddof=1) / np.sqrt(n)
        spreads = np.sqrt(np.maximum(squares - means**2, 0.0) / (n - 1))
        spreads[spreads < 1e-9] = 0.0
        misses.add("percentile", *np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1))
        for row, contrast in enumerate(contrasts(items, means)):
            studentised = replace(contrast, error=float(errors[row]), errors=spreads[row])
            misses.add("studentised", *studentised.interval(LEVEL)[:2])
            misses.add("bca", *contrast.interval(LEVEL)[:2])
            if shares:
                changed = int((items[row] > 0).sum()), int((items[row] < 0).sum())
                misses.add("score", *replace(studentised, changed=changed).interval(LEVEL)[:2])
    return misses.per_cent()


# The study


def parts() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Name -> function and arguments; those that take longest first."""
    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
    for n in sorted(SIZES, reverse=True):
        for name in PAIRS:
            found[f"Spearman / {name} / {n}"] = spearman_coverage, (name, n)
        found[f"pass Spearman / two models, STS-like / {n}"] = spearman_false_passes, (n,)
    for place, (population, margin) in enumerate(DIFFERENCES):
        for n in SIZES:
            found[f"pass / {population.name}, margin {margin} / {n}"] = false_passes, (place, n)
            found[f"difference / {population.name} / {n}"] = difference_coverage, (place, n)
    for scores in SCORES:
        for n in (*SMALL_SIZES, *SIZES):
            found[f"nDCG / {scores.name} / {n}"] = mean_coverage, (scores, n)
    for name in F1_SHARES:
        for n in SIZES:
            found[f"F1 / {name} / {n}"] = f1_coverage, (name, n)
    for place in POWER_OF:
        for n in POWER_SIZES:
            found[f"power / {DIFFERENCES[place][0].name} / {n}"] = power, (place, n)
    for n in (*SMALL_SIZES, *SIZES):
        found[f"accuracy / 50 to 95 % / {n}"] = accuracy_coverage, (n,)
    return found


def main() -> None:
    """Runs all parts, or those whose names begin with an argument, and writes figures and report."""
    began = time.perf_counter()
    path = RESULTS / "intervals.json"
    topics = tuple(f"{topic} / " for topic in sys.argv[1:])
    wanted = {name: each for name, each in parts().items() if not topics or name.startswith(topics)}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        waiting = {name: pool.submit(function, *arguments) for name, (function, arguments) in wanted.items()}
        found = {name: each.result() for name, each in waiting.items()}
    seconds = round(time.perf_counter() - began)
    if topics:
        before = strict_json.loads(path.read_bytes())["figures"]
        seconds, found = before["seconds"], {name: (before["parts"] | found)[name] for name in parts()}
    write("intervals", {"repetitions": REPETITIONS, "seconds": seconds, "parts": found})
    (RESULTS / "intervals.md").write_text(study_report.text(dict(sorted(found.items())), REPETITIONS), encoding="utf-8")


if __name__ == "__main__":
    main()
