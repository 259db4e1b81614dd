"""Fusion by its closed forms."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from embeval.core.ir import Run, TieRule
from embeval.retrieval.fusion import fuse, part_depth

DENSE = {"q1": {"a": 0.9, "b": 0.7, "c": 0.5}, "q2": {"a": 1.0}}
LEXICAL = {"q1": {"c": 12.0, "d": 4.0}, "q3": {"b": 3.0, "a": 3.0}}


def fused(*runs: Mapping[str, Mapping[str, float]], **options: object) -> dict[str, list[tuple[str, float]]]:
    """All hits of the whole."""
    run = fuse([Run.from_dict(each) for each in runs], **options)  # type: ignore[arg-type]
    return {query: run.hits(query) for query in run.query_ids}


def rounded(**scores: float) -> list[tuple[str, object]]:
    """Hits as a test states them."""
    return [(doc, pytest.approx(score, rel=1e-6)) for doc, score in scores.items()]


def test_reciprocal_ranks() -> None:
    """1 / (60 + rank), added up; queries and documents of one ranking alone stay."""
    found = fused(DENSE, LEXICAL)
    assert list(found) == ["q1", "q2", "q3"]
    assert found["q1"] == rounded(c=1 / 63 + 1 / 61, a=1 / 61, d=1 / 62, b=1 / 62)
    assert found["q2"] == rounded(a=1 / 61)
    assert found["q3"] == rounded(b=1 / 61, a=1 / 62)  # equal scores: ranks by the tie rule, the greater id first


def test_weighted_reciprocal_ranks_with_another_constant() -> None:
    """Weights multiply."""
    found = fused(DENSE, LEXICAL, weights=(0.25, 0.75), rrf_k=1)
    assert found["q1"] == rounded(c=0.25 / 4 + 0.75 / 2, d=0.75 / 3, a=0.25 / 2, b=0.25 / 3)


def test_weighted_scores() -> None:
    """Scaled from the least hit to the best of a query; equal ones are all 1; what is missing is 0."""
    found = fused(DENSE, LEXICAL, method="weighted", weights=(0.6, 0.4))
    assert found["q1"] == rounded(a=0.6, c=0.4, b=0.6 * 0.5, d=0.0)
    assert found["q2"] == rounded(a=0.6)
    assert found["q3"] == rounded(b=0.4, a=0.4)


def test_no_weights_are_ones() -> None:
    """For both methods."""
    for method in ("rrf", "weighted"):
        assert fused(DENSE, LEXICAL, method=method) == fused(DENSE, LEXICAL, method=method, weights=(1.0, 1.0))


def test_ties_and_depth() -> None:
    """Equal sums are cut by the tie rule that is asked for."""
    one, other = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 2.0, "a": 1.0}}
    assert [doc for doc, _ in fused(one, other)["q"]] == ["b", "a"]
    assert [doc for doc, _ in fused(one, other, depth=1)["q"]] == ["b"]
    assert [doc for doc, _ in fused(one, other, depth=1, ties=TieRule.DOC_ID_ASC)["q"]] == ["a"]


def test_one_ranking_and_empty_ones() -> None:
    """A ranking alone keeps its order; nothing and nothing is nothing."""
    assert [doc for doc, _ in fused(LEXICAL)["q1"]] == ["c", "d"]
    assert fused({"q": {}}, {"q": {}}) == {"q": []}
    assert fused({"q": {}}, {"q": {}}, method="weighted") == {"q": []}
    assert fused({}, {}) == {}
    assert fused({"q": {}}, {"q": {"a": 1.0}}, method="weighted") == {"q": [("a", 1.0)]}


def test_documents_and_queries_in_other_orders() -> None:
    """Runs over differently ordered corpora meet by id."""
    backwards = {query: dict(reversed(hits.items())) for query, hits in reversed(LEXICAL.items())}
    assert fused(DENSE, backwards) == dict(fused(DENSE, LEXICAL))


def test_wrong_number_of_weights() -> None:
    """One per ranking; and at least one ranking."""
    with pytest.raises(ValueError, match="one weight per ranking is needed, not 1 for 2"):
        fused(DENSE, LEXICAL, weights=(1.0,))
    with pytest.raises(ValueError, match="one weight per ranking"):
        fuse([])


def test_duplicates_are_counted_on() -> None:
    """Those of all parts."""
    run = Run.from_rows([("q", "a", 1.0), ("q", "a", 2.0)])
    assert fuse([run, run]).n_duplicates == 2


def test_depth_of_parts() -> None:
    """1000, or more where more are wanted."""
    assert (part_depth(10), part_depth(1000), part_depth(1001)) == (1000, 1000, 1001)
