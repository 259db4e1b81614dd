"""Metrics of fitted regressors against scikit-learn and scipy on the same predictions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import r2_score, root_mean_squared_error

from embeval import metrics
from embeval.core.protocols import Undefined
from embeval.metrics import _kendall
from embeval.stats import bootstrap

Columns = dict[str, np.ndarray]


def predictions(n: int, *, levels: int, rounded: tuple[int, ...] = (), fits: int = 10, seed: int = 0) -> Columns:
    """Gold with ties, predictions that follow it; those of the regressors in ``rounded`` have ties as well."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, levels, n).astype(float)
    columns = {"gold": gold}
    for fit in range(fits):
        found = gold + rng.normal(0, levels / 3, n)
        columns[f"predicted_{fit}"] = np.round(found) if fit in rounded else found
    return columns


@pytest.mark.parametrize("rounded", [(), (1, 4), tuple(range(10))])
@pytest.mark.parametrize("levels", [2, 7, 1000])
def test_equal_to_scipy_and_sklearn(levels: int, rounded: tuple[int, ...]) -> None:
    """tau-b, R² and the root of the mean squared error, with ties on either side and without, to 1e-12."""
    columns = predictions(80, levels=levels, rounded=rounded)
    gold, found = columns["gold"], [columns[f"predicted_{fit}"] for fit in range(10)]
    expected = {
        "kendalltau": np.mean([kendalltau(gold, each).statistic for each in found]),
        "r2": np.mean([r2_score(gold, each) for each in found]),
        "rmse": np.mean([root_mean_squared_error(gold, each) for each in found]),
    }
    for name, value in expected.items():
        assert metrics.get(name).aggregate(columns) == pytest.approx(value, rel=1e-12), name


def test_concordance_is_that_of_all_pairs() -> None:
    """Of each item by brute force, with ties in both."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 9, 60), rng.integers(0, 12, 60)
    expected = np.zeros(60, dtype=int)
    for i, j in combinations(range(60), 2):
        sign = int(np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]))
        expected[[i, j]] += sign
    assert np.array_equal(_kendall.concordance(x, y), expected)


def test_undefined_is_never_a_number() -> None:
    """Constant gold has no R² and no tau, a constant regressor has no tau, and one item has none; errors they have."""
    columns = predictions(20, levels=5)
    constant = columns | {"gold": np.ones(20)}
    assert metrics.get("r2").aggregate(constant) == Undefined("constant_input")
    assert metrics.get("kendalltau").aggregate(constant) == Undefined("constant_input")
    flat = columns | {"predicted_3": np.ones(20)}
    assert metrics.get("kendalltau").aggregate(flat) == Undefined("constant_input")
    one = {name: column[:1] for name, column in columns.items()}
    assert metrics.get("kendalltau").aggregate(one) == Undefined("too_few_items")
    assert metrics.get("rmse").aggregate(one) == pytest.approx(
        np.mean([abs(one[f"predicted_{fit}"][0] - one["gold"][0]) for fit in range(10)])
    )
    counts = np.zeros((20, 1), dtype=np.int64)
    counts[4] = 20
    for name in ("r2", "kendalltau"):
        metric = metrics.get(name)
        assert np.isnan(metric.resampler([metric], columns)(counts)[0, 0])  # type: ignore[attr-defined]


def test_direction_of_improvement() -> None:
    """Errors are better when low."""
    better = {name: metrics.get(name).higher_is_better for name in ("mse", "mae", "rmse", "r2", "kendalltau")}
    assert better == {"mse": False, "mae": False, "rmse": False, "r2": True, "kendalltau": True}


def test_linear_resamples_are_close_to_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many items the interval of tau moves by a fiftieth of its width at most; with none left out it is exact."""
    columns = predictions(1500, levels=9, rounded=(2,))
    metric = metrics.get("kendalltau")
    exact = bootstrap.distribution([metric], columns, resamples=500, seed=0)[0]
    ones = np.ones((1500, 1), dtype=np.int64)
    without_one = ones.copy()
    without_one[17] = 0
    monkeypatch.setattr(_kendall, "PAIRWISE", 0)
    linear = bootstrap.distribution([metric], columns, resamples=500, seed=0)[0]
    width = float(np.ptp(np.percentile(exact, [2.5, 97.5])))
    assert not np.array_equal(exact, linear)
    assert np.percentile(linear, [2.5, 50, 97.5]) == pytest.approx(
        np.percentile(exact, [2.5, 50, 97.5]), abs=width / 50
    )
    resample = metric.resampler([metric], columns)  # type: ignore[attr-defined]
    assert resample(ones)[0, 0] == pytest.approx(metric.aggregate(columns), abs=1e-12)
    rest = {name: np.delete(column, 17) for name, column in columns.items()}
    assert resample(without_one)[0, 0] == pytest.approx(metric.aggregate(rest), abs=1e-12)


def test_swapped_sides_are_computed_anew() -> None:
    """As of classifiers; tau has no swap."""
    baseline, candidate = predictions(30, levels=5, seed=1), predictions(30, levels=5, seed=2)
    candidate["gold"] = baseline["gold"]
    chosen = [metrics.get("rmse"), metrics.get("r2")]
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (30, 1))
    stay = signs[:, 0] > 0
    before = {name: np.where(stay, baseline[name], candidate[name]) for name in baseline}
    after = {name: np.where(stay, candidate[name], baseline[name]) for name in baseline}
    found = type(chosen[0]).swapper(chosen, baseline, candidate)(signs)[:, 0]  # type: ignore[attr-defined]
    expected = [metric.aggregate(after) - metric.aggregate(before) for metric in chosen]  # type: ignore[operator]
    assert found == pytest.approx(expected, abs=1e-12)
    assert not hasattr(metrics.get("kendalltau"), "swapper")
