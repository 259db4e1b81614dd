"""Percentiles against numpy 2.4, the names of stages, and what is measured once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval import metrics
from embeval.core.protocols import EncoderInfo
from embeval.core.records import ItemRecords
from embeval.core.specs import StatisticsOptions
from embeval.metrics import ann_recall, cost, latency
from embeval.stats import bootstrap, scoring


def test_percentiles_by_hand() -> None:
    """Of 10, 20, 30, 40: the median is 25; 95 % lie at place 2.85, so 38.5. One value is every percentile."""
    columns = {"latency_ms": np.array([40.0, 10.0, 30.0, 20.0]), "encode_latency_ms": np.array([7.0])}
    assert metrics.get("latency_p50_ms").aggregate(columns) == 25.0
    assert metrics.get("latency_p95_ms").aggregate(columns) == pytest.approx(38.5)
    assert metrics.get("encode_latency_p99_ms").aggregate(columns) == 7.0


@settings(max_examples=200, deadline=None)
@given(
    values=st.lists(st.one_of(st.integers(0, 3).map(float), st.floats(0.0, 1e4)), min_size=1, max_size=30),
    percent=st.integers(1, 99),
    seed=st.integers(0, 100),
)
def test_resampled_percentiles_against_numpy(values: list[float], percent: int, seed: int) -> None:
    """``numpy.percentile`` of the drawn items themselves, to 1e-9 of the largest, clusters of any size included."""
    column = np.array(values)
    clusters = np.random.default_rng(seed).integers(0, 3, len(values))
    numbers = np.unique(clusters, return_inverse=True)[1].astype(np.intp)
    for of_clusters in (None, numbers):
        counts = bootstrap.draw_counts(len(values), 3, np.random.default_rng(seed), of_clusters)
        metric = metrics.get(f"search_latency_p{percent}_ms")
        assert isinstance(metric, latency.Percentile)
        found = metric.resampler([metric], {"search_latency_ms": column})(counts)[0]
        expected = [np.percentile(np.repeat(column, each), percent) for each in counts.T]
        assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_two_columns_at_once() -> None:
    """Metrics of one class share a call, each with its own column and percentage."""
    columns = {"latency_ms": np.array([3.0, 1.0, 2.0]), "rerank_latency_ms": np.array([10.0, 30.0, 20.0])}
    wanted = [metrics.get("rerank_latency_p50_ms"), metrics.get("latency_p50_ms"), metrics.get("latency_p99_ms")]
    values = latency.Percentile.resampler(wanted, columns)(np.array([[1], [1], [1]]))  # type: ignore[arg-type]
    assert values[:, 0].tolist() == pytest.approx([20.0, 2.0, 2.98])


@pytest.mark.parametrize(
    ("name", "column", "higher_is_better"),
    [
        ("latency_p95_ms", "latency_ms", False),
        ("rerank_latency_p99_ms", "rerank_latency_ms", False),
        ("cold_latency_ms", "cold_latency_ms", False),
        ("encode_cold_latency_ms", "encode_cold_latency_ms", False),
        ("queries_per_s", "queries_per_s", True),
        ("index_mib", "index_mib", False),
        ("peak_rss_mib", "peak_rss_mib", False),
        ("usd_per_million_queries", "usd_per_million_queries", False),
        ("ann_recall_at_10", "ann_recall_at_10", True),
    ],
)
def test_columns_and_directions(name: str, column: str, higher_is_better: bool) -> None:
    """What each metric reads, and whether more of it is better."""
    metric = metrics.get(name)
    assert metric.columns == (column,)
    assert metric.higher_is_better is higher_is_better


def test_what_is_measured_once_has_no_interval() -> None:
    """One value among five queries: itself, from one item, with a note in place of an interval; None is no value."""
    records = ItemRecords(
        unit="query",
        ids=tuple("abcde"),
        columns={
            "latency_ms": np.arange(5.0),
            "index_mib": cost.once(12.5, 5),
            "usd_per_million_queries": cost.once(None, 5),
        },
    )
    wanted = [metrics.get(name) for name in ("latency_p50_ms", "index_mib", "usd_per_million_queries")]
    statistics = StatisticsOptions(resamples=100)
    found = {name: each.to_value(statistics) for name, each in scoring.estimate(records, wanted, statistics).items()}
    assert found["latency_p50_ms"].value == 2.0
    assert found["latency_p50_ms"].ci_low is not None
    assert (found["index_mib"].value, found["index_mib"].n_items, found["index_mib"].ci_low) == (12.5, 1, None)
    assert found["index_mib"].note == "no interval: fewer than 2 items"
    assert found["usd_per_million_queries"].value is None
    assert found["usd_per_million_queries"].reason == "too_few_items"
    assert cost.once(1.0, 0).tolist() == []


def info(**extra: str) -> EncoderInfo:
    """What an encoder tells of itself."""
    return EncoderInfo(
        dim=2,
        max_seq_length=None,
        similarity="cosine",
        prompts={},
        pooling=None,
        n_parameters=None,
        device="endpoint",
        num_threads=None,
        batch_tokens=1,
        extra=extra,
    )


def test_dollars_for_a_million_queries() -> None:
    """At 0.02 per million tokens and 12.5 tokens per query, a million queries cost 0.25; free is 0, unknown None."""
    assert cost.usd_per_million_queries(info(price_per_million_tokens="0.02"), 12.5) == pytest.approx(0.25)
    assert cost.usd_per_million_queries(info(price_per_million_tokens="0.0"), 12.5) == 0.0
    assert cost.usd_per_million_queries(info(price_per_million_tokens="0.02"), None) is None
    assert cost.usd_per_million_queries(info(), 12.5) is None


@pytest.mark.parametrize("name", ["latency_p0_ms", "latency_p100_ms", "chunk_latency_p50_ms", "latency_p95", "cold_ms"])
def test_names_that_are_none(name: str) -> None:
    """Percentages are 1 to 99, and stages are those of a search."""
    assert latency.FAMILY.make(name) is None
    assert cost.FAMILY.make(name) is None
    assert ann_recall.FAMILY.make("ann_recall_at_0") is None
