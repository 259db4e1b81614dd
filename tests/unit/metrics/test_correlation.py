"""Correlations against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from embeval.core.protocols import Undefined
from embeval.metrics.correlation import FAMILY, Correlation, Kind

VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, allow_nan=False))


@settings(max_examples=300, deadline=None)
@given(pairs=st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=60))
def test_equal_to_scipy(pairs: list[tuple[float, float]]) -> None:
    """Spearman and Pearson equal ``scipy.stats.spearmanr`` and ``pearsonr`` to 1e-9, ties included."""
    x, y = (np.array(column) for column in zip(*pairs, strict=True))
    assume(np.ptp(x) > 1e-3 * np.abs(x).max())
    assume(np.ptp(y) > 1e-3 * np.abs(y).max())
    columns = {"gold": x, "cosine": y}
    for kind, reference in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        metric = FAMILY.make(f"cosine_{kind}")
        assert metric is not None
        assert metric.aggregate(columns) == pytest.approx(reference(x, y).statistic, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 80), digits=st.integers(0, 3))
def test_resampling_equals_scipy_on_the_drawn_items(seed: int, n: int, digits: int) -> None:
    """Under random counts, each coefficient is scipy's on the items drawn, or NaN where scipy's is."""
    rng = np.random.default_rng(seed)
    columns = {"gold": np.round(rng.normal(size=n), digits), "cosine": np.round(rng.normal(size=n), digits)}
    counts = rng.multinomial(n, np.full(n, 1 / n), size=8).T
    spearman, pearson = FAMILY.make("cosine_spearman"), FAMILY.make("cosine_pearson")
    assert spearman is not None
    assert pearson is not None
    values = Correlation.resampler([spearman, pearson], columns)(counts)
    for resample in range(8):
        x, y = (np.repeat(column, counts[:, resample]) for column in columns.values())
        for row, reference in enumerate((stats.spearmanr, stats.pearsonr)):
            if np.ptp(x) == 0 or np.ptp(y) == 0:
                assert np.isnan(values[row, resample])
            else:
                assert values[row, resample] == pytest.approx(reference(x, y).statistic, abs=1e-9)


def test_a_large_offset_does_not_cost_precision() -> None:
    """Values around a million that differ in the third digit after the point: Pearson still scipy's to 1e-6."""
    rng = np.random.default_rng(0)
    x = 1e6 + rng.normal(size=500) * 1e-3
    y = x + rng.normal(size=500) * 1e-3
    metric = FAMILY.make("cosine_pearson")
    assert metric is not None
    values = Correlation.resampler([metric], {"gold": x, "cosine": y})(np.ones((500, 1), dtype=np.int64))
    assert values[0, 0] == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-6)


def test_reversed_ranks_are_minus_one() -> None:
    """Closed form: a strictly decreasing relation has Spearman -1 and, if linear, Pearson -1."""
    columns = {"gold": np.arange(10.0), "cosine": -np.arange(10.0)}
    for name in ("cosine_spearman", "cosine_pearson"):
        metric = FAMILY.make(name)
        assert metric is not None
        assert metric.aggregate(columns) == pytest.approx(-1.0)


def test_undefined_for_constants_that_are_not_exact() -> None:
    """One distinct value is constant, whatever its size."""
    metric = FAMILY.make("dot_pearson")
    assert metric is not None
    assert metric.aggregate({"gold": np.arange(3.0), "dot": np.full(3, 0.1)}) == Undefined("constant_input")


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
def test_a_resample_of_equal_values_is_undefined(kind: Kind) -> None:
    """Whatever the value: rounding leaves a spread of 1e-17, of which a coefficient must not be made."""
    metric = Correlation(kind=kind, x="gold", y="cosine", name=kind)
    counts = np.array([[1], [2], [0]])
    for value in np.linspace(0.01, 1.0, 200):
        columns = {"gold": np.array([value, value, 2.0]), "cosine": np.array([0.1, 0.2, 0.3])}
        (row,) = Correlation.resampler([metric], columns)(counts)
        assert np.isnan(row[0]), value
