"""How long does a BCa interval of a 1,379-pair Spearman take, from 10,000 resamples? Bar: a seventh of scipy's time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from benchmarks.harness import best, interleaved, write
from embeval import metrics
from embeval.stats import bootstrap

N, RESAMPLES = 1379, 10_000


def main() -> None:
    """Measures and writes the figures."""
    rng = np.random.default_rng(0)
    gold = np.round(rng.uniform(0, 5, N), 1)  # ties as in STS-B, whose golds are means of five whole numbers
    cosine = gold / 5 + rng.normal(0, 0.25, N)
    columns = {"gold": gold, "cosine": cosine}
    metric = metrics.get("cosine_spearman")

    def ours() -> bootstrap.Interval:
        samples = bootstrap.distribution([metric], columns, resamples=RESAMPLES, seed=0)[0]
        estimate = metric.aggregate(columns)
        assert isinstance(estimate, float)
        return bootstrap.bca(estimate, samples, bootstrap.jackknife([metric], columns)[0], 0.95, n_items=N)

    def scipy_with(statistic: Any, **options: Any) -> Any:
        return stats.bootstrap(
            (gold, cosine), statistic, paired=True, n_resamples=RESAMPLES, method="BCa", rng=0, **options
        )

    def as_written() -> Any:
        return scipy_with(lambda x, y: stats.spearmanr(x, y).statistic, vectorized=False)

    def spearman(x: Any, y: Any, axis: int = -1) -> Any:
        a, b = (stats.rankdata(each, axis=axis) for each in (x, y))
        a, b = (each - each.mean(axis=axis, keepdims=True) for each in (a, b))
        return (a * b).sum(axis) / np.sqrt((a**2).sum(axis) * (b**2).sum(axis))

    def vectorised() -> Any:
        return scipy_with(spearman, vectorized=True, batch=250)

    low, high, _ = ours()
    assert low is not None
    assert high is not None
    reference = vectorised().confidence_interval
    tolerance = 0.05 * (reference.high - reference.low)
    assert abs(low - reference.low) < tolerance
    assert abs(high - reference.high) < tolerance

    seconds = interleaved({"embeval": ours, "scipy": as_written, "scipy vectorised": vectorised}, rounds=3)
    write(
        "bootstrap",
        {
            "pairs": N,
            "resamples": RESAMPLES,
            "interval": [round(float(low), 4), round(float(high), 4)],
            "interval_scipy": [round(float(reference.low), 4), round(float(reference.high), 4)],
            "seconds": {name: [round(each, 3) for each in rounds] for name, rounds in seconds.items()},
            "times_as_fast_as_scipy": round(best(seconds["scipy"]) / best(seconds["embeval"]), 1),
            "times_as_fast_as_scipy_vectorised": round(best(seconds["scipy vectorised"]) / best(seconds["embeval"]), 1),
        },
    )


if __name__ == "__main__":
    main()
