"""Context metrics by hand, and against the formulas that their definitions name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core.ir import NOTHING, JudgedRuns, Qrels, Run, SelfMatch, judge
from embeval.metrics import context, ranking

# Ranking a, b, c, d; b and d are relevant, and so is e, which is not found.
RUN = Run.from_dict({"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}})
QRELS = Qrels({"q": {"a": 0, "b": 2, "d": 1, "e": 3}})
TOKENS = {"a": 100, "b": 300, "c": 500, "d": 50}


def tokens_of(run: Run) -> np.ndarray:
    """int64 [N]: the tokens of the example, in the order of the run's documents."""
    return np.array([TOKENS[doc] for doc in run.doc_ids], dtype=np.int64)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("context_precision_at_1", 0.0),
        ("context_precision_at_2", 1 / 2),
        ("context_precision_at_10", 2 / 4),  # of the four there are, not of ten places
        ("context_recall_at_2", 1 / 3),
        ("context_recall_at_10", 2 / 3),
        ("context_ap_at_1", 0.0),
        ("context_ap_at_2", 1 / 2),
        ("context_ap_at_4", (1 / 2 + 2 / 4) / 2),
        ("context_precision_at_99_tokens", 0.0),
        ("context_recall_at_100_tokens", 0.0),
        ("context_precision_at_100_tokens", 0.0),
        ("context_recall_at_399_tokens", 0.0),
        ("context_recall_at_400_tokens", 1 / 3),
        ("context_precision_at_400_tokens", 1 / 2),
        ("context_recall_at_899_tokens", 1 / 3),  # c doesn't fit and ends the prompt, though d would fit
        ("context_precision_at_899_tokens", 1 / 2),
        ("context_precision_at_900_tokens", 1 / 3),
        ("context_recall_at_950_tokens", 2 / 3),
        ("context_precision_at_2000_tokens", 2 / 4),
        ("context_ap_at_2000_tokens", (1 / 2 + 2 / 4) / 2),
    ],
)
def test_by_hand(name: str, expected: float) -> None:
    """Each measure of the example, written out."""
    judged = judge(RUN, QRELS)
    docs = context.docs_of(RUN, judged.query_ids)
    value = context.measure(judged, [name], docs=docs, tokens=tokens_of(RUN))[name]
    assert value.dtype == np.float64
    assert value.tolist() == [pytest.approx(expected, abs=1e-15)]


def test_the_example_of_a_book_on_ragas() -> None:
    """Verdicts 0, 0, 1, 1, 0 give (1/3 + 2/4) / 2. Source: "LLM Evaluation and Alignment", Manning, section 6.3.4."""
    run = Run.from_dict({"q": {f"d{rank}": -float(rank) for rank in range(5)}})
    judged = judge(run, Qrels({"q": {"d2": 1, "d3": 1, "not found": 1}}))
    assert context.measure(judged, ["context_ap_at_5"])["context_ap_at_5"][0] == pytest.approx(5 / 12, abs=1e-15)


def test_queries_without_passages_or_relevant_ones() -> None:
    """All 0: a query without hits, one that the run doesn't know, and one with nothing relevant."""
    run = Run.from_dict({"no hits": {}, "nothing relevant": {"a": 1.0}})
    judged = judge(run, Qrels({"no hits": {"a": 1}, "unknown": {"a": 1}, "nothing relevant": {"a": 0}}))
    docs = context.docs_of(run, judged.query_ids)
    assert docs.tolist() == [[NOTHING], [NOTHING], [0]]
    names = [f"context_{kind}_at_{size}" for kind in context.MEASURES for size in ("3", "10_tokens")]
    for values in context.measure(judged, names, docs=docs, tokens=np.array([5])).values():
        assert values.tolist() == [0.0, 0.0, 0.0]
    empty = judge(run, Qrels({}))
    for values in context.measure(empty, names, docs=context.docs_of(run, ()), tokens=np.array([5])).values():
        assert len(values) == 0


def test_passages_without_tokens_always_fit() -> None:
    """An empty passage takes no room: with the budget spent to the last token it still goes in."""
    run = Run.from_dict({"q": {"a": 2.0, "b": 1.0}})
    judged = judge(run, Qrels({"q": {"b": 1}}))
    docs = context.docs_of(run, judged.query_ids)
    name = "context_recall_at_10_tokens"
    assert context.measure(judged, [name], docs=docs, tokens=np.array([10, 0]))[name][0] == 1.0
    assert context.measure(judged, [name], docs=docs, tokens=np.array([11, 0]))[name][0] == 0.0


def test_what_does_not_fit_together_is_refused() -> None:
    """A budget without tokens, tokens of other documents, and a ranking that was filtered after it was looked up."""
    run = Run.from_dict({"a": {"a": 2.0, "b": 1.0}})
    judged = judge(run, Qrels({"a": {"b": 1}}), self_match=SelfMatch.DROP)
    name = "context_recall_at_10_tokens"
    with pytest.raises(ValueError, match="needs the document at each rank"):
        context.measure(judged, [name])
    with pytest.raises(ValueError, match="not of the same ranking"):
        context.measure(judged, [name], docs=context.docs_of(run, ["a"]), tokens=np.array([1, 1]))
    docs = context.docs_of(run.without_self_matches(), ["a"])
    for tokens in (np.array([1]), np.array([1, -1])):
        with pytest.raises(ValueError, match="one for each document"):
            context.measure(judged, [name], docs=docs, tokens=tokens)
    assert context.measure(judged, [name], docs=docs, tokens=np.array([11, 10]))[name][0] == 1.0


def test_rankings_that_end_before_the_budget_does() -> None:
    """At full depth with tokens to spare, or not; a query that found less than the depth is not cut short."""
    run = Run.from_dict({"spare": {"a": 2.0, "b": 1.0}, "full": {"c": 2.0, "a": 1.0}, "few": {"a": 1.0}})
    judged = judge(run, Qrels({query: {"a": 1} for query in run.query_ids}))
    docs, tokens = context.docs_of(run, judged.query_ids), tokens_of(run)
    assert context.unfilled(judged, docs, tokens, 400).tolist() == [True, False, False]
    assert context.unfilled(judged, docs, tokens, 399).tolist() == [False, False, False]
    none = judge(Run.from_dict({"q": {}}), Qrels({"q": {"a": 1}}))
    assert context.unfilled(none, np.empty((1, 0), dtype=np.int32), tokens, 10).tolist() == [False]


@settings(max_examples=150, deadline=None)
@given(
    grades=st.lists(st.integers(-1, 2), min_size=1, max_size=12),
    lost=st.integers(0, 2),
    sizes=st.lists(st.integers(0, 9), min_size=12, max_size=12),
    size=st.integers(1, 40),
)
def test_against_a_prompt_filled_by_hand(grades: list[int], lost: int, sizes: list[int], size: int) -> None:
    """Precision, recall and Ragas' formula of a prompt that a loop fills; recall by count is ``recall_at_k``."""
    ids = [f"d{rank:02d}" for rank in range(len(grades))]
    run = Run.from_dict({"q": {doc: -float(rank) for rank, doc in enumerate(ids)}})
    judgments = dict(zip(ids, grades, strict=True)) | {f"lost{number}": 1 for number in range(lost)}
    judged = judge(run, Qrels({"q": judgments}))
    docs, tokens = context.docs_of(run, judged.query_ids), np.array(sizes[: len(ids)], dtype=np.int64)
    prompts = {str(size): [grade > 0 for grade in grades[:size]], f"{size}_tokens": []}
    room = size
    for grade, needed in zip(grades, sizes, strict=False):
        room -= needed
        if room < 0:
            break
        prompts[f"{size}_tokens"].append(grade > 0)
    n_relevant = sum(grade > 0 for grade in grades) + lost
    for suffix, prompt in prompts.items():
        precisions = [sum(prompt[: rank + 1]) / (rank + 1) for rank, relevant in enumerate(prompt) if relevant]
        expected = {
            f"context_precision_at_{suffix}": sum(prompt) / len(prompt) if prompt else 0.0,
            f"context_recall_at_{suffix}": sum(prompt) / n_relevant if n_relevant else 0.0,
            f"context_ap_at_{suffix}": sum(precisions) / len(precisions) if precisions else 0.0,
        }
        values = context.measure(judged, expected, docs=docs, tokens=tokens)
        assert {name: float(column[0]) for name, column in values.items()} == pytest.approx(expected, abs=1e-12)
    ours = context.measure(judged, [f"context_recall_at_{size}"])[f"context_recall_at_{size}"]
    assert ours.tolist() == ranking.measure(judged, [f"recall_at_{size}"])[f"recall_at_{size}"].tolist()


@pytest.mark.parametrize(
    "name",
    [
        "context_precision_at_0",
        "context_recall_at_",
        "context_recall_at_5_words",
        "context_f1_at_5",
        "precision_at_5",
        "context_ap_at_05",
    ],
)
def test_names_that_are_none(name: str) -> None:
    """Only ``context_<measure>_at_<k>`` and ``…_tokens`` with a whole number from 1 are names."""
    assert context.FAMILY.make(name) is None
    empty: JudgedRuns = judge(Run.from_dict({}), Qrels({}))
    with pytest.raises(KeyError):
        context.measure(empty, [name])
