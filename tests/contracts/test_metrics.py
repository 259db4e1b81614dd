"""What every metric must do, compared by value."""

from __future__ import annotations

import numpy as np
import pytest

from embeval import metrics
from embeval.core.protocols import Undefined
from embeval.errors import UnknownNameError
from embeval.metrics import FAMILIES

NAMES = [name for family in FAMILIES.names() for name in FAMILIES.get(family).names()]
N = 40


def columns_of(name: str) -> dict[str, np.ndarray]:
    """Random values in [0, 1], rounded so that some tie."""
    rng = np.random.default_rng(len(name))
    return {column: np.round(rng.uniform(0, 1, N), 1) for column in metrics.get(name).columns}


def test_names_are_unique_and_lead_back() -> None:
    """No two families offer one name, and ``get`` gives the metric of the name."""
    assert len(set(NAMES)) == len(NAMES)
    for name in NAMES:
        assert metrics.get(name).name == name
        claimed = [family for family in FAMILIES.names() if FAMILIES.get(family).make(name) is not None]
        assert len(claimed) == 1


@pytest.mark.parametrize("name", NAMES)
def test_resampled_values_equal_those_of_the_drawn_items(name: str) -> None:
    """Counts as weights give what the metric gives on the items themselves, repeated as often, to 1e-10."""
    metric = metrics.get(name)
    columns = columns_of(name)
    rng = np.random.default_rng(1)
    counts = rng.multinomial(N, np.full(N, 1 / N), size=6).T.astype(np.int64)
    counts[:, 0] = 1
    values = metric.resampler([metric], columns)(counts)  # type: ignore[attr-defined]
    assert values.shape == (1, 6)
    for resample in range(6):
        drawn = {column: np.repeat(data, counts[:, resample]) for column, data in columns.items()}
        expected = metric.aggregate(drawn)
        assert not isinstance(expected, Undefined)
        assert values[0, resample] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_undefined_is_never_a_number(name: str) -> None:
    """No items: undefined with a reason, by ``aggregate``."""
    metric = metrics.get(name)
    assert isinstance(metric.aggregate({column: np.empty(0) for column in metric.columns}), Undefined)


@pytest.mark.parametrize("name", FAMILIES.get("correlation").names())
def test_constant_resamples_are_undefined(name: str) -> None:
    """A resample that draws one item N times has no correlation: NaN there, and only there."""
    metric = metrics.get(name)
    counts = np.zeros((N, 2), dtype=np.int64)
    counts[3, 0] = N
    counts[:, 1] = 1
    values = metric.resampler([metric], columns_of(name))(counts)  # type: ignore[attr-defined]
    assert np.isnan(values[0, 0])
    assert np.isfinite(values[0, 1])


@pytest.mark.parametrize("name", NAMES)
def test_order_of_items_does_not_matter(name: str) -> None:
    """Items shuffled: the same value to 1e-12."""
    metric = metrics.get(name)
    columns = columns_of(name)
    order = np.random.default_rng(2).permutation(N)
    shuffled = {column: data[order] for column, data in columns.items()}
    assert metric.aggregate(shuffled) == pytest.approx(metric.aggregate(columns), abs=1e-12)


def test_an_unknown_metric_names_the_nearest() -> None:
    """A slip of the finger is answered with what was meant."""
    with pytest.raises(UnknownNameError, match="Did you mean 'ndcg_at_10'"):
        metrics.get("ncdg_at_10")
    for wrong in ("ndcg_at_0", "ndcg_at_", "ndcg_at_010", "cosine_kendall"):
        with pytest.raises(UnknownNameError):
            metrics.get(wrong)
    assert metrics.get("recall_at_37").name == "recall_at_37"
