"""Ranking metrics on random graded runs against pytrec_eval (trec_eval 9.0.8, pytrec-eval-terrier 0.5.11)."""

from __future__ import annotations

import numpy as np
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core.ir import Qrels, Run, judge
from embeval.metrics import ranking

DOCS = [f"d{number}" for number in range(8)] + ["D1", "é", "z", "10", "9"]
TREC_NAMES = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P", "success": "success"}
CUTOFFS = (1, 2, 3, 5, 10, 100)

# Few distinct scores, so that ties are common; and neighbours in float64 that float32 can't tell apart.
SCORES = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.0, -3.25]),
    st.sampled_from([1.0 + 2.0**-40, 1.0 - 2.0**-40]),
    st.floats(-10.0, 10.0, allow_nan=False),
)
RUNS = st.dictionaries(
    st.sampled_from([f"q{number}" for number in range(6)]),
    st.dictionaries(st.sampled_from(DOCS), SCORES, min_size=1, max_size=12),
    min_size=1,
    max_size=6,
)


def judgments(lowest: int) -> st.SearchStrategy[dict[str, dict[str, int]]]:
    """Graded judgments of a few queries."""
    return st.dictionaries(
        st.sampled_from([f"q{number}" for number in range(6)]),
        st.dictionaries(st.sampled_from([*DOCS, "never-found"]), st.integers(lowest, 3), min_size=1, max_size=8),
        min_size=1,
        max_size=6,
    )


QRELS = judgments(0)


@settings(max_examples=400, deadline=None)
@given(run=RUNS, qrels=QRELS)
def test_every_value_of_every_query_equals_trec_eval(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]
) -> None:
    """nDCG, MAP, MRR, recall, precision and success per query, to 1e-9, ties included.

    Grades start at 0: pytrec-eval-terrier 0.5.11 reads past its memory for negative ones, now and then.
    """
    measures = {f"{trec}.{','.join(map(str, CUTOFFS))}" for trec in TREC_NAMES.values()} | {"recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    runs = judge(Run.from_dict(run), Qrels(qrels))
    names = [f"{ours}_at_{k}" for ours in TREC_NAMES for k in CUTOFFS]
    ours = ranking.measure(runs, [*names, "mrr_at_1000"])
    for place, query in enumerate(runs.query_ids):
        if query not in run:
            assert all(ours[name][place] == 0.0 for name in ours), "a query without a ranking counts 0"
            continue
        for name in names:
            measure, k = name.split("_at_")
            expected = theirs[query][f"{TREC_NAMES[measure]}_{k}"]
            assert abs(ours[name][place] - expected) <= 1e-9, (query, name)
        assert abs(ours["mrr_at_1000"][place] - theirs[query]["recip_rank"]) <= 1e-9


@settings(max_examples=200, deadline=None)
@given(run=RUNS, qrels=QRELS, seed=st.integers(0, 2**32 - 1))
def test_order_of_the_input_does_not_matter(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], seed: int
) -> None:
    """Rows, queries and judgments shuffled: the same value for every query, to the bit."""
    rng = np.random.default_rng(seed)

    def shuffled(table: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        keys = list(table)
        rng.shuffle(keys)
        inner = {key: list(table[key].items()) for key in keys}
        for rows in inner.values():
            rng.shuffle(rows)
        return {key: dict(rows) for key, rows in inner.items()}

    names = ranking.names((1, 3, 10))
    values = []
    for each_run, each_qrels in ((run, qrels), (shuffled(run), shuffled(qrels))):  # type: ignore[arg-type]
        runs = judge(
            Run.from_dict(each_run), Qrels({q: {d: int(g) for d, g in e.items()} for q, e in each_qrels.items()})
        )
        measured = ranking.measure(runs, names)
        values.append({query: [measured[name][row] for name in names] for row, query in enumerate(runs.query_ids)})
    assert values[0] == values[1]


@settings(max_examples=200, deadline=None)
@given(run=RUNS, qrels=judgments(-2))
def test_negative_grades_count_as_not_relevant(
    run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]
) -> None:
    """A grade below 0 gives the same values as 0. Source: trec_eval 9.0.8, where their gain is 0."""
    names = ranking.names((1, 3, 10))
    raised = {query: {doc: max(grade, 0) for doc, grade in grades.items()} for query, grades in qrels.items()}
    ours = ranking.measure(judge(Run.from_dict(run), Qrels(qrels)), names)
    expected = ranking.measure(judge(Run.from_dict(run), Qrels(raised)), names)
    assert {name: values.tolist() for name, values in ours.items()} == {
        name: values.tolist() for name, values in expected.items()
    }


@settings(max_examples=200, deadline=None)
@given(run=RUNS, qrels=judgments(-2))
def test_values_lie_between_0_and_1(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]]) -> None:
    """Whatever the run, no measure leaves [0, 1] and none is NaN."""
    measured = ranking.measure(judge(Run.from_dict(run), Qrels(qrels)), ranking.names((1, 2, 10)))
    for name, values in measured.items():
        assert np.all((values >= 0.0) & (values <= 1.0 + 1e-12)), name
