"""Values of groups of queries, held against mteb's own functions on the same rankings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from embeval import metrics
from embeval.core import ir
from embeval.core.ir import Qrels, Run
from embeval.errors import UnknownNameError
from embeval.metrics import mteb_ranking
from embeval.mteb_bridge.categories import Setting, _query_groups
from embeval.mteb_bridge.categories._query_groups import Groups

KS = (1, 10, 1000)
Scores = dict[str, dict[str, float]]
Grades = dict[str, dict[str, int]]


def ranking(queries: list[str], n_documents: int = 8) -> tuple[Scores, Grades]:
    """Random scores and grades, with ties."""
    random = np.random.default_rng(5)
    scores = {
        query: {f"d{doc}": float(random.integers(0, 9)) for doc in random.permutation(n_documents)[:6]}
        for query in queries
    }
    grades = {query: {f"d{doc}": int(doc in (1, 5)) for doc in range(n_documents)} for query in queries}
    return scores, grades


def grouped(main: str, scores: Scores, grades: Grades) -> Groups:
    """Ours."""
    task = SimpleNamespace(metadata=SimpleNamespace(main_score=main))
    setting = cast(Setting, SimpleNamespace(task=task))
    found = _query_groups.groups(setting, "default", Run.from_dict(scores), Qrels(grades))
    assert found is not None
    return found


def test_p_mrr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents that move down, up, stay, or aren't found; two topics, one with two documents."""
    from mteb._evaluators.retrieval_metrics import evaluate_p_mrr_change

    scores, grades = ranking(["1-og", "1-changed", "2-og", "2-changed"])
    changed = {"1": ["d1", "d5"], "2": ["d5", "d7"]}
    monkeypatch.setattr(_query_groups, "changed", lambda setting, subset: changed)
    found = grouped("p-MRR", scores, grades)
    theirs = cast(float, evaluate_p_mrr_change(grades, scores, changed, KS)["p-MRR"])
    assert sorted(found.values) == ["1-changed", "2-changed"]
    assert np.mean(list(found.values.values())) == pytest.approx(theirs, abs=1e-12)
    assert np.abs(theirs) > 0.01
    assert found.group_of == {"1-og": "1", "1-changed": "1", "2-og": "2", "2-changed": "2"}


def by_query(scores: Scores, grades: Grades) -> Any:
    """Per query and metric, of pytrec_eval."""
    import pytrec_eval

    return pytrec_eval.RelevanceEvaluator(grades, {"recall.1", "ndcg_cut.10"}).evaluate(scores)


def test_paired_accuracy() -> None:
    """Both queries of a pair right: one pair of three."""
    from mteb._evaluators.retrieval_metrics import paired_accuracy

    queries = [f"{pair}_{side}" for pair in "abc" for side in ("q1", "q2")]
    scores = {query: {"d1": 1.0, "d2": 0.5} for query in queries}
    grades: Grades = {query: {"d1": 1} for query in queries}
    grades["b_q2"], grades["c_q1"], grades["c_q2"] = {"d2": 1}, {"d2": 1}, {"d2": 1}
    found = grouped("paired_accuracy", scores, grades)
    assert found.values == {"a_q1": 1.0, "b_q1": 0.0, "c_q1": 0.0}
    assert np.mean(list(found.values.values())) == paired_accuracy(grades, scores, by_query(scores, grades))


def test_robustness() -> None:
    """The least over the instructions of a query."""
    from mteb._evaluators.retrieval_metrics import robustness_at_10

    scores, grades = ranking(["x_1", "x_2", "x_3", "y_1", "y_2"])
    found = grouped("robustness_at_10", scores, grades)
    theirs = robustness_at_10(grades, scores, by_query(scores, grades))
    assert sorted(found.values) == ["x_1", "y_1"]
    assert np.mean(list(found.values.values())) == pytest.approx(theirs, abs=1e-12)


def test_max_over_subqueries() -> None:
    """One ranking of all that any of the queries found."""
    from mteb._evaluators.retrieval_metrics import max_over_subqueries

    scores, grades = ranking(["u_1_a", "u_1_b", "u_2_a", "u_2_b", "u_2_c"])
    found = grouped("max_over_subqueries_map_at_1000", scores, grades)
    theirs = max_over_subqueries(grades, scores, KS)["max_over_subqueries_map_at_1000"]
    assert sorted(found.values) == ["u_1_a", "u_2_a"]
    assert np.mean(list(found.values.values())) == pytest.approx(theirs, abs=6e-6)


def test_capped_recall() -> None:
    """mteb's, with a query that has no relevant document and more of them than fit."""
    from mteb._evaluators.retrieval_metrics import recall_cap

    scores, grades = ranking(["a", "b", "c"])
    grades["b"] = {"d1": 0}
    theirs = recall_cap(grades, scores, [1, 2, 10])
    ours = mteb_ranking.capped_recall(ir.judge(Run.from_dict(scores), Qrels(grades)), [1, 2, 10])
    for name, values in theirs.items():
        assert ours[name].tolist() == pytest.approx([np.nan if each is None else each for each in values], nan_ok=True)
    assert len(theirs) == 3


def test_labels() -> None:
    """What mteb reports scores of: the two instructions of FollowIR, the levels of IFIR."""

    def labels(name: str, main: str, *queries: str) -> Any:
        task = SimpleNamespace(metadata=SimpleNamespace(main_score=main, name=name))
        return _query_groups.labels(cast(Setting, SimpleNamespace(task=task)), queries)

    assert labels("Core17", "p-MRR", "1-og", "1-changed") == {"instruction": ("original", "changed")}
    assert labels("IFIRAila", "ndcg_at_20", "7_v1", "7_v3", "7") == {"level": ("1", "3", "none")}
    assert labels("SciFact", "ndcg_at_10", "1-og") == {}


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("p-MRR", True),
        ("max_over_subqueries_ndcg_at_5", True),
        ("max_over_subqueries_ndcg", False),
        ("hit_rate_at_5", True),
        ("mteb_hit_rate_at_5", True),
        ("mteb_ndcg_at_10", True),
        ("mteb_ndcg", False),
        ("hit_rate", False),
        ("R_cap_at_5", True),
    ],
)
def test_names(name: str, there: bool) -> None:
    """Each is a mean of the column of its name, over those that have a value where it is of groups."""
    if not there:
        with pytest.raises(UnknownNameError, match="Unknown metric"):
            metrics.get(name)
        return
    metric = metrics.get(name)
    assert metric.columns == (name,)
    assert getattr(metric, "of_some_items", False) == (name != "hit_rate_at_5")
