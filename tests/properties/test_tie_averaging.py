"""``ties: average`` against the definition: the mean over every order of the tied documents."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core.ir import Qrels, Run, TieRule, judge
from embeval.metrics import ranking

DOCS = ["a", "b", "c", "d", "e"]
NAMES = ranking.names((1, 2, 3, 4, 10))


def enumerated(scores: dict[str, float], grades: dict[str, int]) -> dict[str, float]:
    """The mean of every measure over all orders that the scores allow, each order made strict by new scores."""
    orders = [
        order
        for order in itertools.permutations(scores)
        if all(scores[first] >= scores[second] for first, second in itertools.pairwise(order))
    ]
    values: dict[str, list[float]] = {name: [] for name in NAMES}
    for order in orders:
        strict = {doc: float(len(order) - place) for place, doc in enumerate(order)}
        measured = ranking.measure(judge(Run.from_dict({"q": strict}), Qrels({"q": grades})), NAMES)
        for name in NAMES:
            values[name].append(float(measured[name][0]))
    return {name: float(np.mean(each)) for name, each in values.items()}


@settings(max_examples=150, deadline=None)
@given(
    scores=st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 1.0, 2.0]), min_size=1),
    grades=st.dictionaries(st.sampled_from([*DOCS, "elsewhere"]), st.integers(0, 3), min_size=1),
)
def test_closed_forms_equal_the_mean_over_all_orders(scores: dict[str, float], grades: dict[str, int]) -> None:
    """Every measure at every cut-off, to 1e-12."""
    runs = judge(Run.from_dict({"q": scores}, ties=TieRule.AVERAGE), Qrels({"q": grades}))
    measured = ranking.measure(runs, NAMES)
    expected = enumerated(scores, grades)
    for name in NAMES:
        assert abs(measured[name][0] - expected[name]) < 1e-12, name
