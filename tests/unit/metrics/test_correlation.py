"""Correlations against scipy."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

import embeval
from embeval.core.protocols import Undefined
from embeval.metrics.correlation import FAMILY, Correlation, Kind

VALUES = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, allow_nan=False))


@settings(max_examples=300, deadline=None)
@given(pairs=st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=60))
def test_equal_to_scipy(pairs: list[tuple[float, float]]) -> None:
    """Spearman and Pearson equal ``scipy.stats.spearmanr`` and ``pearsonr`` (1.17.1) to 1e-12, ties included."""
    x, y = (np.array(column) for column in zip(*pairs, strict=True))
    assume(np.ptp(x) > 1e-3 * np.abs(x).max())
    assume(np.ptp(y) > 1e-3 * np.abs(y).max())
    columns = {"gold": x, "cosine": y}
    for kind, reference in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        metric = FAMILY.make(f"cosine_{kind}")
        assert metric is not None
        assert metric.aggregate(columns) == pytest.approx(reference(x, y).statistic, abs=1e-12)


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


def test_metrics_and_statistics_need_no_scipy() -> None:
    """A gate runs where it isn't installed, and starts before it would be loaded."""
    package = Path(embeval.__file__).parent
    for folder in ("metrics", "stats", "store", "compare"):
        for file in (package / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not [name for name in names if name.split(".")[0] == "scipy"], file


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_values_of_any_size(scale: float) -> None:
    """Squares of 1e300 and of 1e-300 are no numbers; the coefficient is that of the values at 1."""
    x, y = np.array([1.0, 2.0, 4.0, 3.0]), np.array([2.0, 1.0, 5.0, 4.0])
    metric = FAMILY.make("cosine_pearson")
    assert metric is not None
    found = metric.aggregate({"gold": x * scale, "cosine": y})
    assert found == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)


def test_a_resample_of_one_item_has_no_spread_however_large_it_is() -> None:
    """5,000 draws of one item, whose cube float32 does not hold: undefined, and not a number from rounding."""
    rng = np.random.default_rng(0)
    columns = {"gold": np.round(rng.random(5000), 1), "cosine": rng.random(5000)}
    metric = Correlation(kind="spearman", x="gold", y="cosine", name="cosine_spearman")
    counts = np.zeros((5000, 2), dtype=np.int64)
    counts[7, 0] = 4999
    counts[:, 1] = 1
    values = Correlation.resampler([metric], columns)(counts)[0]
    assert np.isnan(values[0])
    assert values[1] == pytest.approx(metric.aggregate(columns), abs=1e-12)
