"""Metrics of reranking in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest

from embeval import metrics
from embeval.core import ir
from embeval.core.ir import JudgedRuns, Qrels, Run, TieRule
from embeval.metrics import ranking, rerank
from embeval.metrics.ranking import Options

QRELS = Qrels({"q1": {"c": 2, "b": 1, "x": 1}, "q2": {"a": 1}, "q3": {"z": 1}})
BEFORE = {"q1": {"a": 4, "b": 3, "c": 2, "d": 1}, "q2": {"a": 4, "b": 3}, "q3": {"a": 1}}
AFTER = {"q1": {"c": 4, "a": 3, "b": 2, "d": 1}, "q2": {"b": 4, "a": 3}, "q3": {"a": 1}}


def judged(run: Mapping[str, Mapping[str, float]], ties: TieRule = TieRule.DOC_ID_DESC) -> JudgedRuns:
    """A run seen through the judgments."""
    return ir.judge(Run.from_dict(run, ties), QRELS)


def values(name: str, depth: int = 3) -> list[float]:
    """Per query."""
    found: list[float] = rerank.columns(judged(BEFORE), judged(AFTER), [name], depth=depth)[name].tolist()
    return found


def test_before_after_and_lift() -> None:
    """The first relevant document of q1 moves from rank 2 to 1, that of q2 from 1 to 2, and q3 has none."""
    assert values("first_stage_mrr_at_10") == [0.5, 1.0, 0.0]
    assert values("lift_mrr_at_10") == [0.5, -0.5, 0.0]
    assert values("oracle_mrr_at_10") == [1.0, 1.0, 0.0]


def test_the_best_order_within_the_depth() -> None:
    """q1 has grades 0 1 2 0 and one more relevant document: at best 2 1 0 0 of its 3 candidates, 1 0 of 2."""
    ideal = 2 + 1 / math.log2(3) + 1 / 2
    assert values("oracle_ndcg_at_10")[0] == pytest.approx((2 + 1 / math.log2(3)) / ideal)
    assert values("oracle_ndcg_at_10", depth=2)[0] == pytest.approx((1 + 2 / 2) / ideal)  # c stays at rank 3
    assert values("oracle_map_at_10")[0] == pytest.approx((1 + 1) / 3)
    assert values("oracle_recall_at_1")[0] == pytest.approx(1 / 3)


def test_the_recall_of_the_candidates_is_the_ceiling() -> None:
    """Of three relevant documents of q1, one is among the first 2 candidates; x and z are never found."""
    assert values("candidate_recall_at_2", depth=2) == pytest.approx([1 / 3, 1.0, 0.0])
    assert values("candidate_recall_at_3") == pytest.approx([2 / 3, 1.0, 0.0])
    assert rerank.positives_never_candidates(judged(BEFORE), 2) == 3
    assert rerank.positives_never_candidates(judged(BEFORE), 3) == 2


@pytest.mark.parametrize("metric", ["ndcg_at_2", "ndcg_at_10", "map_at_3", "mrr_at_2", "recall_at_2", "precision_at_1"])
def test_no_order_of_the_candidates_beats_the_oracle(metric: str) -> None:
    """Brute force over all orders of the first 3 of 5 documents with random grades."""
    random = np.random.default_rng(0)
    for _ in range(10):
        grades = {doc: int(random.integers(0, 3)) for doc in "abcde"}
        qrels = Qrels({"q": grades})
        before = ir.judge(Run.from_dict({"q": dict(zip("abcde", [5, 4, 3, 2, 1], strict=True))}), qrels)
        best = max(
            ranking.measure(
                ir.judge(Run.from_dict({"q": dict(zip([*order, "d", "e"], [5, 4, 3, 2, 1], strict=True))}), qrels),
                [metric],
            )[metric][0]
            for order in itertools.permutations("abc")
        )
        oracle = rerank.columns(before, before, [f"oracle_{metric}"], depth=3)[f"oracle_{metric}"][0]
        assert oracle == pytest.approx(best, abs=1e-12)


def test_ties_are_averaged_before_and_not_at_best() -> None:
    """Two documents that tie, one relevant: 0.75 on average before, 1 at best."""
    run = judged({"q1": {}, "q2": {"a": 1, "b": 1}, "q3": {}}, TieRule.AVERAGE)
    names = ["first_stage_mrr_at_10", "oracle_mrr_at_10", "lift_mrr_at_10"]
    found = rerank.columns(run, run, names, depth=10)
    assert [found[name][1] for name in names] == [0.75, 1.0, 0.0]


@pytest.mark.parametrize("ties", list(TieRule))
def test_ties_across_the_last_candidate_are_no_half_candidates(ties: TieRule) -> None:
    """a, b and c tie, and one of them is a candidate: the recall is that of the one, 0 or 1/3, and no mean of both."""
    runs = judged({"q1": {"a": 1, "b": 1, "c": 1}}, ties)
    found = rerank.columns(runs, runs, ["candidate_recall_at_1", "oracle_recall_at_1"], depth=1)
    assert found["candidate_recall_at_1"][0] == found["oracle_recall_at_1"][0] == (runs.grades[0, 0] > 0) / 3


def test_options_reach_the_metrics() -> None:
    """2^grade - 1 as gains gives another nDCG before, after and at best."""
    options = Options(gains=ranking.Gains.EXP2)
    found = rerank.columns(judged(BEFORE), judged(AFTER), ["oracle_ndcg_at_10"], depth=3, options=options)
    ideal = 3 + 1 / math.log2(3) + 1 / 2
    assert found["oracle_ndcg_at_10"][0] == pytest.approx((3 + 1 / math.log2(3)) / ideal)


def test_names() -> None:
    """Those of a task lead to metrics; others of the kind don't."""
    names = rerank.names(["ndcg_at_10", "mrr_at_5"], depth=50)
    assert names == (
        "first_stage_ndcg_at_10",
        "lift_ndcg_at_10",
        "oracle_ndcg_at_10",
        "first_stage_mrr_at_5",
        "lift_mrr_at_5",
        "oracle_mrr_at_5",
        "candidate_recall_at_50",
    )
    for name in names:
        assert metrics.get(name).name == name
        assert metrics.get(name).higher_is_better
    for wrong in ("lift_ndcg", "lift_lift_ndcg_at_10", "candidate_recall_at_0", "oracle_candidate_recall_at_5"):
        assert rerank.FAMILY.make(wrong) is None


def test_runs_of_other_queries_are_refused() -> None:
    """A difference of two means over other queries is no lift."""
    with pytest.raises(ValueError, match="not of the same queries"):
        rerank.columns(judged(BEFORE), ir.judge(Run.from_dict({}), Qrels({"q9": {"a": 1}})), [], depth=3)


def test_no_queries_have_no_lift() -> None:
    """Empty columns, and a mean that is undefined."""
    nothing = ir.judge(Run.from_dict({}), Qrels({}))
    found = rerank.columns(nothing, nothing, rerank.names(["ndcg_at_10"], depth=3), depth=3)
    assert all(column.shape == (0,) for column in found.values())
