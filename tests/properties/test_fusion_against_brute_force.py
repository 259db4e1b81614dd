"""Fusion against dictionaries and loops, with ties, gaps and empty rankings."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core.ir import Run, TieRule
from embeval.core.protocols import Fusion
from embeval.retrieval.fusion import fuse

QUERIES = ["q1", "q2", "q3"]
DOCS = [f"d{number}" for number in range(6)]
SCORES = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0])
RANKINGS = st.lists(
    st.dictionaries(st.sampled_from(QUERIES), st.dictionaries(st.sampled_from(DOCS), SCORES, max_size=6), max_size=3),
    min_size=1,
    max_size=4,
)
RULES = st.sampled_from([TieRule.DOC_ID_DESC, TieRule.DOC_ID_ASC])


def by_rule(scores: dict[str, float], ties: TieRule) -> list[str]:
    """Documents by score, then by id."""
    by_id = sorted(scores, reverse=ties is TieRule.DOC_ID_DESC)
    return sorted(by_id, key=lambda doc: -scores[doc])


@pytest.mark.parametrize("method", get_args(Fusion))
@settings(max_examples=150, deadline=None)
@given(rankings=RANKINGS, ties=RULES, data=st.data())
def test_equal_to_adding_up_one_by_one(
    method: Fusion, rankings: list[dict[str, dict[str, float]]], ties: TieRule, data: st.DataObject
) -> None:
    """The same documents in the same order with the same scores, to the depth that is asked for."""
    weights = data.draw(
        st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.0]), min_size=len(rankings), max_size=len(rankings))
    )
    rrf_k, depth = data.draw(st.integers(0, 60)), data.draw(st.integers(1, 7))
    runs = [Run.from_dict(ranking, ties) for ranking in rankings]
    found = fuse(runs, method=method, weights=weights, rrf_k=rrf_k, depth=depth, ties=ties)
    assert set(found.query_ids) == {query for ranking in rankings for query in ranking}
    for query in found.query_ids:
        total: dict[str, float] = {}
        for ranking, weight in zip(rankings, weights, strict=True):
            hits = ranking.get(query, {})
            for rank, doc in enumerate(by_rule(hits, ties), start=1):
                low, high = min(hits.values()), max(hits.values())
                scaled = (hits[doc] - low) / (high - low) if high > low else 1.0
                total[doc] = total.get(doc, 0.0) + weight * (scaled if method == "weighted" else 1.0 / (rrf_k + rank))
        kept = {doc: float(np.float32(score)) for doc, score in total.items()}
        assert found.hits(query) == [(doc, kept[doc]) for doc in by_rule(kept, ties)[:depth]]
