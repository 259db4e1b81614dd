"""Ranking metrics by hand; random runs are compared with trec_eval in tests/properties."""

from __future__ import annotations

import math

import pytest

from embeval.core.ir import MissingQueries, NoRelevant, Qrels, Run, SelfMatch, judge
from embeval.metrics import ranking
from embeval.metrics.ranking import Gains, MapDenominator, Options

# Ranking a, b, c, d; grades a 0, b 2, c not judged, d 1; e (grade 3) is not found.
RUN = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
GRADES = {"q": {"a": 0, "b": 2, "d": 1, "e": 3}}


DEFAULTS = Options()


def value(name: str, options: Options = DEFAULTS) -> float:
    """The metric of the example."""
    return float(ranking.measure(judge(Run.from_dict(RUN), Qrels(GRADES)), [name], options)[name][0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ndcg_at_1", 0.0),
        ("ndcg_at_2", (2 / math.log2(3)) / (3 + 2 / math.log2(3))),
        ("ndcg_at_10", (2 / math.log2(3) + 1 / math.log2(5)) / (3 + 2 / math.log2(3) + 1 / 2)),
        ("map_at_10", (1 / 2 + 2 / 4) / 3),
        ("map_at_2", (1 / 2) / 3),
        ("mrr_at_1", 0.0),
        ("mrr_at_10", 1 / 2),
        ("recall_at_2", 1 / 3),
        ("recall_at_10", 2 / 3),
        ("precision_at_2", 1 / 2),
        ("precision_at_10", 2 / 10),
        ("success_at_1", 0.0),
        ("success_at_2", 1.0),
        ("judged_at_4", 3 / 4),
        ("judged_at_10", 3 / 10),
    ],
)
def test_by_hand(name: str, expected: float) -> None:
    """Each measure of the example, written out."""
    assert value(name) == pytest.approx(expected, abs=1e-12)


def test_exponential_gains() -> None:
    """2^grade - 1: 3 at rank 2 and 1 at rank 4, over 7, 3, 1 in the best order. Source: Burges et al., 2005."""
    ideal = 7 + 3 / math.log2(3) + 1 / 2
    expected = (3 / math.log2(3) + 1 / math.log2(5)) / ideal
    assert value("ndcg_at_10", Options(gains=Gains.EXP2)) == pytest.approx(expected, abs=1e-12)


def test_graded_example_of_the_conventions() -> None:
    """Grades 3, 2, 1 ranked in reverse: 0.78999 with linear gains, 0.68061 with exponential ones (ranx 0.3.21)."""
    runs = judge(Run.from_dict({"q": {"a": 1.0, "b": 2.0, "c": 3.0}}), Qrels({"q": {"a": 3, "b": 2, "c": 1}}))
    linear = ranking.measure(runs, ["ndcg_at_10"])["ndcg_at_10"][0]
    exponential = ranking.measure(runs, ["ndcg_at_10"], Options(gains=Gains.EXP2))["ndcg_at_10"][0]
    assert linear == pytest.approx(0.78999, abs=1e-5)
    assert exponential == pytest.approx(0.68061, abs=1e-5)


def test_map_denominator_that_k_can_reach() -> None:
    """At k = 2 of 3 relevant, divided by 2 instead of 3."""
    options = Options(map_denominator=MapDenominator.REACHABLE)
    assert value("map_at_2", options) == pytest.approx((1 / 2) / 2)


def test_the_matrix_of_missing_and_empty_queries() -> None:
    """Every combination of found / judged / relevant, and what each choice makes of it."""
    run = Run.from_dict({"both": {"d": 1.0}, "unjudged": {"d": 1.0}, "nothing relevant": {"d": 1.0}, "no hits": {}})
    qrels = Qrels(
        {"both": {"d": 1}, "nothing relevant": {"d": 0}, "no hits": {"d": 1}, "not run": {"d": 1}, "blank": {}}
    )
    by_default = judge(run, qrels)
    assert by_default.query_ids == ("both", "nothing relevant", "no hits", "not run")
    assert by_default.counts == (4, 2, 2, 1)
    assert ranking.measure(by_default, ["recall_at_1"])["recall_at_1"].tolist() == [1.0, 0.0, 0.0, 0.0]
    skipping = judge(run, qrels, missing=MissingQueries.SKIP, no_relevant=NoRelevant.SKIP)
    assert skipping.query_ids == ("both",)
    excluded = judge(run, qrels, exclude=frozenset({"both", "unjudged"}))
    assert excluded.query_ids == ("nothing relevant", "no hits", "not run")
    assert excluded.counts.unjudged == 1


def test_nothing_at_all() -> None:
    """An empty run on empty judgments has no values, and no error."""
    runs = judge(Run.from_dict({}), Qrels({}))
    assert all(len(values) == 0 for values in ranking.measure(runs, ranking.names()).values())


def test_self_match_moves_the_others_up() -> None:
    """Without the hit that has the query's own id, b stands first."""
    run, qrels = Run.from_dict({"a": {"a": 2.0, "b": 1.0}}), Qrels({"a": {"b": 1}})
    assert ranking.measure(judge(run, qrels), ["mrr_at_10"])["mrr_at_10"][0] == 0.5
    dropped = judge(run, qrels, self_match=SelfMatch.DROP)
    assert ranking.measure(dropped, ["mrr_at_10"])["mrr_at_10"][0] == 1.0


def test_ties_across_a_cut_off() -> None:
    """Ranks 2 and 3 tie: reported at 2, not at 1 or 3."""
    runs = judge(Run.from_dict({"q": {"a": 3.0, "b": 2.0, "c": 2.0}}), Qrels({"q": {"a": 1}}))
    assert [bool(runs.tied_at(k)[0]) for k in (1, 2, 3, 10)] == [False, True, False, False]


@pytest.mark.parametrize("name", ["ndcg", "ndcg_at_0", "ndcg_at_-1", "ndcg_at_1.5", "err_at_10", "ndcg_at_10 "])
def test_names_that_are_none(name: str) -> None:
    """Only ``<measure>_at_<k>`` with a whole k from 1 is a name."""
    assert ranking.FAMILY.make(name) is None
