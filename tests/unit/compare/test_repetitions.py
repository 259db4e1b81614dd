"""What repetitions of a system have no difference of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval import api
from embeval.core.specs import StatisticsOptions
from embeval.store.results import ResultStore
from tests.support.stored import put

VALUES = np.random.default_rng(3).uniform(0.2, 0.8, 40)


@pytest.mark.parametrize(
    ("metric", "stored", "options", "said"),
    [
        ("ndcg_at_10", {"slices": {"subset": ["a"] * 10 + ["b"] * 30}}, {"subset": "mean"}, "a mean over sub-sets"),
        ("ndcg_at_10", {"slices": {"subset": ["a"] * 10 + ["b"] * 30}}, {"subset": "wmean"}, "a mean over sub-sets"),
        ("ndcg_at_10", {"clusters": ["a", "b", "c", "d"] * 10}, {}, "its items come in clusters"),
        ("cold_latency_ms", {}, {}, "cold_latency_ms can't be compared"),
    ],
)
def test_no_difference_where_items_do_not_weigh_the_same(
    tmp_path: Path, metric: str, stored: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    """A reason, and no interval that takes items for independent."""
    for number in range(2):
        for side, gain in (("one", 0.0), ("other", 0.1)):
            values = (VALUES + number / 100 + gain).tolist()
            put(ResultStore(tmp_path), {metric: values}, model=f"org/{side}-{number}", **stored)
    statistics = StatisticsOptions(resamples=100)
    (found,) = api.compare("one-*", "other-*", results=tmp_path, statistics=statistics, **options).comparisons
    assert found.reason is not None
    assert found.reason.startswith(said)
    assert (found.delta, found.ci_low, found.p) == (None, None, None)
