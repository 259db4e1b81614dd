"""Answerability metrics by hand, against scikit-learn 1.9, and against thresholds tried one by one."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from embeval import metrics
from embeval.core.ir import Run
from embeval.core.protocols import Undefined
from embeval.metrics import answerability
from embeval.metrics.answerability import NO_HIT
from embeval.stats import bootstrap


def value(name: str, answerable: list[float], unanswerable: list[float]) -> float | Undefined:
    """The metric of these top scores."""
    columns = {
        "top_score": np.array([*answerable, *unanswerable], dtype=np.float64),
        "answerable": np.repeat([1.0, 0.0], [len(answerable), len(unanswerable)]),
    }
    return metrics.get(name).aggregate(columns)


def test_auroc_by_hand() -> None:
    """Of 6 pairs 4 in order and 1 tied: 4.5 / 6. All in order: 1. All reversed: 0. All equal: chance."""
    assert value("answerable_auroc", [0.9, 0.5, 0.3], [0.5, 0.1]) == pytest.approx(4.5 / 6)
    assert value("answerable_auroc", [0.9, 0.8], [0.5, 0.1]) == 1.0
    assert value("answerable_auroc", [0.1], [0.5, 0.2]) == 0.0
    assert value("answerable_auroc", [0.5, 0.5], [0.5]) == 0.5


def test_threshold_and_refusal_by_hand() -> None:
    """20 answerable at 1 to 20: 95 % are 19 of them, so the threshold is 2; below it are two of four others."""
    scores, others = [float(score) for score in range(1, 21)], [0.0, 1.5, 2.0, 30.0]
    assert value("threshold_at_recall_95", scores, others) == 2.0
    assert value("refusal_at_recall_95", scores, others) == 0.5
    assert value("threshold_at_recall_96", scores, others) == 1.0
    assert value("threshold_at_recall_100", scores, others) == 1.0
    assert value("refusal_at_recall_100", scores, others) == 0.25
    assert value("threshold_at_recall_50", scores, others) == 11.0
    assert value("threshold_at_recall_1", scores, others) == 20.0


def test_undefined_with_a_reason() -> None:
    """Queries of one kind alone; and where more answerable queries have no hit than may be lost."""
    for name in ("answerable_auroc", "refusal_at_recall_95", "threshold_at_recall_95"):
        assert value(name, [0.5, 0.2], []) == Undefined("one_class")
        assert value(name, [], [0.5]) == Undefined("one_class")
        assert value(name, [], []) == Undefined("too_few_items")
    lost = [NO_HIT, 0.2, 0.3, 0.4]
    assert value("threshold_at_recall_75", lost, [0.1, NO_HIT]) == 0.2
    assert value("refusal_at_recall_75", lost, [0.1, NO_HIT]) == 1.0
    assert value("threshold_at_recall_76", lost, [0.1]) == Undefined("no_threshold")
    assert value("refusal_at_recall_76", lost, [0.1]) == Undefined("no_threshold")
    assert value("answerable_auroc", lost, [0.1, NO_HIT]) == (3 * 2 + 0.5) / 8


def test_records_of_a_run() -> None:
    """Answerable queries first; a query without hits, or unknown to the run, has the lowest score."""
    run = Run.from_dict({"u": {"a": 0.25}, "b": {"a": 0.5, "c": 0.75}, "none": {}})
    records = answerability.records(run, ["b", "none"], ["u", "unknown"])
    assert records.unit == "query"
    assert records.ids == ("b", "none", "u", "unknown")
    assert records.columns["top_score"].tolist() == [0.75, NO_HIT, 0.25, NO_HIT]
    assert records.columns["answerable"].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert math.isfinite(NO_HIT)
    empty = answerability.records(Run.from_dict({"q": {}}), ["q"], [])
    assert empty.columns["top_score"].tolist() == [NO_HIT]


SCORES = st.lists(st.one_of(st.integers(-3, 3).map(float), st.floats(-1.0, 1.0)), min_size=1, max_size=30)


@settings(max_examples=300, deadline=None)
@given(answerable=SCORES, unanswerable=SCORES)
def test_auroc_against_scikit_learn(answerable: list[float], unanswerable: list[float]) -> None:
    """``roc_auc_score`` (scikit-learn 1.9.1), ties included, to 1e-12."""
    labels = [1] * len(answerable) + [0] * len(unanswerable)
    expected = float(roc_auc_score(labels, answerable + unanswerable))
    assert value("answerable_auroc", answerable, unanswerable) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=300, deadline=None)
@given(answerable=SCORES, unanswerable=SCORES, recall=st.integers(1, 100))
def test_thresholds_against_all_of_them(answerable: list[float], unanswerable: list[float], recall: int) -> None:
    """Every score tried as threshold: the highest that keeps enough, and what it refuses."""
    enough = [
        threshold
        for threshold in {*answerable, *unanswerable}
        if sum(score >= threshold for score in answerable) * 100 >= recall * len(answerable)
    ]
    refused = sum(score < max(enough) for score in unanswerable) / len(unanswerable)
    assert value(f"threshold_at_recall_{recall}", answerable, unanswerable) == max(enough)
    assert value(f"refusal_at_recall_{recall}", answerable, unanswerable) == pytest.approx(refused, abs=1e-15)


@settings(max_examples=100, deadline=None)
@given(answerable=SCORES, unanswerable=SCORES, seed=st.integers(0, 100))
def test_resamples_against_scikit_learn(answerable: list[float], unanswerable: list[float], seed: int) -> None:
    """``roc_auc_score`` with the counts as weights; NaN where a resample has queries of one kind."""
    labels = np.repeat([1.0, 0.0], [len(answerable), len(unanswerable)])
    scores = np.array(answerable + unanswerable)
    counts = bootstrap.draw_counts(len(scores), 4, np.random.default_rng(seed))
    metric = metrics.get("answerable_auroc")
    assert isinstance(metric, answerability.Separation)
    values = metric.resampler([metric], {"top_score": scores, "answerable": labels})(counts)[0]
    for resample, weights in enumerate(counts.T):
        if len(set(labels[weights > 0])) < 2:
            assert np.isnan(values[resample])
        else:
            expected = roc_auc_score(labels, scores, sample_weight=weights)
            assert values[resample] == pytest.approx(expected, abs=1e-12)


@pytest.mark.timing
def test_ten_thousand_resamples_take_less_than_a_second() -> None:
    """Of the processor's time, for all three kinds on 1,000 queries."""
    rng = np.random.default_rng(3)
    columns = {"top_score": rng.normal(size=1000), "answerable": (rng.random(1000) < 0.8).astype(np.float64)}
    names = ["answerable_auroc", "refusal_at_recall_95", "threshold_at_recall_95"]
    began = time.process_time()
    samples = bootstrap.distribution([metrics.get(name) for name in names], columns, resamples=10_000, seed=0)
    assert time.process_time() - began < 1.0
    assert np.isfinite(samples).all()


@pytest.mark.parametrize("name", ["refusal_at_recall_0", "refusal_at_recall_101", "threshold_at_recall_", "auroc"])
def test_names_that_are_none(name: str) -> None:
    """Recall is a whole number of per cent from 1 to 100."""
    assert answerability.FAMILY.make(name) is None
