"""How long does it take to compare two models, with intervals, p-values and adjusted p-values?

Bars: 5 s for 10,000 resamples x 20 metrics x 2,000 queries; a Spearman pair on 1,379 pairs 7 times as fast as scipy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from benchmarks.harness import best, interleaved, write
from embeval import metrics
from embeval.core.protocols import Metric
from embeval.core.records import Column, ItemRecords
from embeval.core.specs import StatisticsOptions
from embeval.metrics import MeanOf
from embeval.stats import corrections, paired
from embeval.stats.paired import Paired

OPTIONS = StatisticsOptions(resamples=10_000, seed=0)
QUERIES, METRICS, PAIRS = 2000, 20, 1379
LEVEL = 0.95


def records(columns: dict[str, Column]) -> ItemRecords:
    """Items with the given columns."""
    ids = tuple(str(number) for number in range(len(next(iter(columns.values())))))
    return ItemRecords(unit="item", ids=ids, columns=columns)


def retrieval(rng: np.random.Generator) -> tuple[ItemRecords, ItemRecords]:
    """Two systems, 20 metrics of 2,000 queries: a third of them changed."""
    one = {f"m{number}": np.round(rng.beta(2, 1, QUERIES), 2) for number in range(METRICS)}
    other = {
        name: np.where(rng.random(QUERIES) < 1 / 3, np.clip(values + rng.normal(0.02, 0.3, QUERIES), 0, 1), values)
        for name, values in one.items()
    }
    return records(one), records(other)


def similarity(rng: np.random.Generator) -> tuple[ItemRecords, ItemRecords]:
    """Two systems on 1,379 pairs with golds in steps of 0.1, as STS-B has them in steps of 0.2."""
    gold = np.round(rng.uniform(0, 5, PAIRS), 1)
    common = rng.normal(0, 0.2, PAIRS)
    return tuple(  # type: ignore[return-value]
        records({"gold": gold, "cosine": gold / 5 + common + rng.normal(0, noise, PAIRS)}) for noise in (0.16, 0.14)
    )


def told(found: dict[str, Paired]) -> dict[str, Any]:
    """Everything that a report says of each metric."""
    p_values = {name: each.p_value() for name, each in found.items()}
    adjusted = corrections.holm([None if p is None else p[0] for p in p_values.values()])
    return {
        name: (each.contrast().interval(LEVEL), each.contrast().lower(0.05), p_values[name], fixed, each.effect_size)
        for (name, each), fixed in zip(found.items(), adjusted, strict=True)
    }


def ours(sides: tuple[ItemRecords, ItemRecords], wanted: list[Metric]) -> dict[str, Any]:
    """The whole comparison."""
    return told(paired.compare(*sides, wanted, OPTIONS, "bench"))


def scipy_mean(sides: tuple[ItemRecords, ItemRecords]) -> tuple[Any, Any]:
    """One metric: BCa interval and p, in the vectorised form of scipy."""
    one, other = (side.columns["m0"] for side in sides)

    def difference(x: Any, y: Any, axis: int = -1) -> Any:
        return y.mean(axis=axis) - x.mean(axis=axis)

    return scipy_both((one, other), (one, other), difference, difference)


def scipy_spearman(sides: tuple[ItemRecords, ItemRecords]) -> tuple[Any, Any]:
    """The difference of two correlations: BCa interval over items, p by swapped mid-ranks; vectorised."""
    gold, one, other = sides[0].columns["gold"], sides[0].columns["cosine"], sides[1].columns["cosine"]

    def correlation(x: Any, y: Any, axis: int) -> Any:
        a, b = (each - each.mean(axis=axis, keepdims=True) for each in (x, y))
        return (a * b).sum(axis) / np.sqrt((a**2).sum(axis) * (b**2).sum(axis))

    def resampled(g: Any, x: Any, y: Any, axis: int = -1) -> Any:
        g, x, y = (stats.rankdata(each, axis=axis) for each in (g, x, y))
        return correlation(g, y, axis) - correlation(g, x, axis)

    ranks = stats.rankdata(gold)

    def swapped(x: Any, y: Any, axis: int = -1) -> Any:
        return correlation(ranks, y, axis) - correlation(ranks, x, axis)

    return scipy_both((gold, one, other), (stats.rankdata(one), stats.rankdata(other)), resampled, swapped)


def scipy_both(data: tuple[Any, ...], swapped: tuple[Any, ...], statistic: Any, null: Any) -> tuple[Any, Any]:
    """Interval and p-value."""
    interval = stats.bootstrap(
        data, statistic, paired=True, vectorized=True, n_resamples=OPTIONS.resamples, method="BCa", batch=250, rng=0
    ).confidence_interval
    p = stats.permutation_test(
        swapped, null, permutation_type="samples", vectorized=True, n_resamples=OPTIONS.resamples, batch=250, rng=0
    ).pvalue
    return interval, p


def checked(name: str, mine: dict[str, Any], theirs: tuple[Any, Any]) -> dict[str, Any]:
    """Figures of one metric on both sides, which agree within Monte Carlo error."""
    interval, _, p, _, _ = mine[name]
    width = theirs[0].high - theirs[0].low
    assert abs(interval.low - theirs[0].low) < 0.05 * width
    assert abs(interval.high - theirs[0].high) < 0.05 * width
    assert abs(p[0] - theirs[1]) < 0.03
    return {
        "interval": [round(float(each), 5) for each in interval[:2]],
        "interval_scipy": [round(float(each), 5) for each in theirs[0]],
        "p": round(float(p[0]), 4),
        "p_scipy": round(float(theirs[1]), 4),
    }


def main() -> None:
    """Measures and writes the figures."""
    rng = np.random.default_rng(0)
    queries, pairs = retrieval(rng), similarity(rng)
    every: list[Metric] = [MeanOf(name) for name in queries[0].columns]
    spearman: list[Metric] = [metrics.get("cosine_spearman")]
    figures = {
        "one mean": checked("m0", ours(queries, every[:1]), scipy_mean(queries)),
        "spearman": checked("cosine_spearman", ours(pairs, spearman), scipy_spearman(pairs)),
    }
    seconds = interleaved(
        {
            "20 metrics": lambda: ours(queries, every),
            "one mean": lambda: ours(queries, every[:1]),
            "one mean, scipy": lambda: scipy_mean(queries),
            "spearman": lambda: ours(pairs, spearman),
            "spearman, scipy": lambda: scipy_spearman(pairs),
        },
        rounds=3,
    )
    write(
        "compare",
        {
            "resamples": OPTIONS.resamples,
            "queries": QUERIES,
            "metrics": METRICS,
            "pairs": PAIRS,
            "agreement": figures,
            "seconds": {name: [round(each, 3) for each in rounds] for name, rounds in seconds.items()},
            "times_as_fast_as_scipy": {
                name: round(best(seconds[f"{name}, scipy"]) / best(seconds[name]), 1) for name in figures
            },
        },
    )


if __name__ == "__main__":
    main()
