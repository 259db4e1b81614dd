"""Runs and judgments: order, ties, and who counts, against brute force and against trec_eval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core.ir import (
    NOTHING,
    JudgedRuns,
    MissingQueries,
    NoRelevant,
    Qrels,
    QueryCounts,
    Run,
    SelfMatch,
    TieRule,
    judge,
    rank,
    tie_keys,
)
from embeval.errors import DataError

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ORDERED = (TieRule.DOC_ID_DESC, TieRule.DOC_ID_ASC)

Rows = list[tuple[str, str, float]]
QUERIES = st.sampled_from(["q1", "q2", "q10", "é"])
DOCS = st.sampled_from(["d1", "d10", "d2", "D1", "ö", "東", "\uffff", "\U0001f642", "", " "])
# 0.1 and the next two doubles are one float32; 1e-60 and -0.0 are zero there.
SCORES = st.sampled_from([0.0, -0.0, 1e-60, 0.1, 0.1 + 2e-17, 0.1 - 2e-17, 1.0, 1.0 + 1e-12, -3.5]) | st.floats(
    -1e30, 1e30, allow_nan=False
)
ROWS = st.lists(st.tuples(QUERIES, DOCS, SCORES), max_size=25)


def rows_to_best(rows: Rows) -> dict[str, dict[str, float]]:
    """Query -> document -> its best score as float32."""
    best: dict[str, dict[str, float]] = {}
    for query, doc, score in rows:
        of_query = best.setdefault(query, {})
        of_query[doc] = max(float(np.float32(score)), of_query.get(doc, -np.inf))
    return best


def brute_force(rows: Rows, ties: TieRule) -> dict[str, list[tuple[str, float]]]:
    """Every ranking by two stable sorts of Python: by the bytes of the id, then by score."""
    ranked = {}
    for query, hits in rows_to_best(rows).items():
        by_id = sorted(hits.items(), key=lambda hit: hit[0].encode(), reverse=ties is TieRule.DOC_ID_DESC)
        ranked[query] = sorted(by_id, key=lambda hit: -hit[1])
    return ranked


def all_hits(run: Run) -> dict[str, list[tuple[str, float]]]:
    """The ranking of every query."""
    return {query: run.hits(query) for query in run.query_ids}


@relaxed
@given(rows=ROWS, ties=st.sampled_from(ORDERED))
def test_order_equals_a_brute_force_sort(rows: Rows, ties: TieRule) -> None:
    """Score in float32, then doc id as UTF-8 bytes; a repeated document once, at its best."""
    run = Run.from_rows(rows, ties=ties)
    assert all_hits(run) == brute_force(rows, ties)
    assert run.n_duplicates == len(rows) - len({(query, doc) for query, doc, _ in rows})
    assert run.ties is ties


@relaxed
@given(data=st.data(), rows=ROWS, ties=st.sampled_from(ORDERED))
def test_the_order_of_rows_does_not_matter(data: st.DataObject, rows: Rows, ties: TieRule) -> None:
    """Any shuffle of the rows gives the same rankings and the same number of duplicates."""
    shuffled = data.draw(st.permutations(rows))
    one, other = Run.from_rows(rows, ties=ties), Run.from_rows(shuffled, ties=ties)
    assert all_hits(one) == all_hits(other)
    assert one.n_duplicates == other.n_duplicates


@relaxed
@given(
    scores=st.dictionaries(
        st.sampled_from(["d1", "d10", "d2", "D1", "ö", "東", "\U0001f642"]), SCORES, min_size=1, max_size=7
    )
)
def test_ranks_equal_those_of_trec_eval(scores: dict[str, float]) -> None:
    """pytrec_eval gives 1/rank of the one relevant document; asked for each, that is the whole order."""
    run = Run.from_dict(dict.fromkeys(scores, scores))  # one query per document, all with the same ranking
    evaluator = pytrec_eval.RelevanceEvaluator({doc: {doc: 1} for doc in scores}, {"recip_rank"})
    theirs = evaluator.evaluate(dict.fromkeys(scores, scores))
    for doc in scores:
        place = [hit for hit, _ in run.hits(doc)].index(doc) + 1
        assert theirs[doc]["recip_rank"] == pytest.approx(1 / place)


def test_ties_by_hand() -> None:
    """Three documents at 1.0 around one at 2.0: the greater id first, the smaller id first by option."""
    scores = {"q": {"b": 1.0, "a": 1.0, "z": 2.0, "c": 1.0}}
    assert Run.from_dict(scores).hits("q") == [("z", 2.0), ("c", 1.0), ("b", 1.0), ("a", 1.0)]
    ascending = Run.from_dict(scores, ties=TieRule.DOC_ID_ASC)
    assert ascending.hits("q") == [("z", 2.0), ("a", 1.0), ("b", 1.0), ("c", 1.0)]


def test_ids_are_compared_as_bytes() -> None:
    """A character beyond 16 bits stands above U+FFFF, as in UTF-8 and unlike in UTF-16; 10 below 2."""
    ids = ["10", "2", "Z", "a", "é", "東", "\uffff", "\U0001f642"]
    assert ids == sorted(ids, key=str.encode)
    run = Run.from_dict({"q": dict.fromkeys(ids, 0.5)})
    assert [doc for doc, _ in run.hits("q")] == ids[::-1]


def test_doubles_that_are_one_float_tie() -> None:
    """0.3 and 0.1 + 0.2 differ as doubles and tie here, as they do in trec_eval."""
    assert Run.from_dict({"q": {"a": 0.1 + 0.2, "b": 0.3}}).hits("q") == [
        ("b", float(np.float32(0.3))),
        ("a", float(np.float32(0.3))),
    ]


@relaxed
@given(rows=ROWS, ties=st.sampled_from(ORDERED), depth=st.integers(0, 8))
def test_depth_cuts_after_ties_are_broken(rows: Rows, ties: TieRule, depth: int) -> None:
    """The first ``depth`` of the whole ranking, however many share the score at the cut."""
    whole = Run.from_rows(rows)
    cut = Run.ranked(
        query_ids=whole.query_ids, doc_ids=whole.doc_ids, docs=whole.docs, scores=whole.scores, ties=ties, depth=depth
    )
    assert all_hits(cut) == {query: hits[:depth] for query, hits in brute_force(rows, ties).items()}
    assert cut.docs.shape[1] <= depth


def test_candidates_may_have_holes() -> None:
    """``NOTHING`` anywhere in a row goes to its end, whatever score stands beside it; the input is not changed."""
    docs = np.array([[NOTHING, 0, 1], [1, NOTHING, 2], [NOTHING, NOTHING, NOTHING]], dtype=np.int32)
    scores = np.array([[9.0, 1.0, 2.0], [1.0, np.nan, 1.0], [np.nan, np.inf, 5.0]], dtype=np.float32)
    docs_before, scores_before = docs.copy(), scores.copy()
    run = Run.ranked(query_ids=["a", "b", "c"], doc_ids=["x", "y", "z"], docs=docs, scores=scores)
    assert run.docs.tolist() == [[1, 0, NOTHING], [2, 1, NOTHING], [NOTHING] * 3]
    assert run.scores.tolist() == [[2.0, 1.0, -np.inf], [1.0, 1.0, -np.inf], [-np.inf] * 3]
    assert np.array_equal(docs, docs_before)
    assert np.array_equal(scores, scores_before, equal_nan=True)


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf, 1e39, -1e39, 3.5e38])
def test_a_score_that_is_not_finite_is_refused(score: float) -> None:
    """NaN, infinities, and doubles that are infinite as float32: query and document are named."""
    for rows in ([("q1", "d1", 1.0), ("q2", "d7", score)], [("q2", "d7", score), ("q2", "d8", 0.0)]):
        with pytest.raises(DataError, match=r"^run: the score of query 'q2', document 'd7' is -?(nan|inf)") as caught:
            Run.from_rows(rows)
        assert len(str(caught.value).splitlines()) <= 3


def test_nan_is_refused_also_where_the_document_came_before() -> None:
    """A repeated document with NaN must not vanish behind its better score."""
    for rows in ([("q", "d", 1.0), ("q", "d", np.nan)], [("q", "d", np.nan), ("q", "d", 1.0)]):
        with pytest.raises(DataError, match="document 'd' is nan"):
            Run.from_rows(rows)


def test_bad_scores_are_counted() -> None:
    """From arrays: the first is named, and how many there are."""
    with pytest.raises(DataError, match=r"query 'b', document 'x' is nan \(2 such scores\)"):
        Run.ranked(
            query_ids=["a", "b"],
            doc_ids=["x", "y"],
            docs=np.array([[0, 1], [0, 1]], dtype=np.int32),
            scores=np.array([[1.0, 2.0], [np.nan, np.inf]], dtype=np.float32),
        )


def test_queries_without_rows_are_kept() -> None:
    """They are listed, in the order given, with no hits; so is a query with an empty ranking."""
    run = Run.from_rows([("b", "d", 1.0)], query_ids=["c", "b", "a"])
    assert run.query_ids == ("c", "b", "a")
    assert all_hits(run) == {"c": [], "b": [("d", 1.0)], "a": []}
    assert all_hits(Run.from_dict({"q": {}, "p": {"d": 0.0}})) == {"q": [], "p": [("d", 0.0)]}
    assert all_hits(Run.from_rows([])) == {}
    assert run.hits("unknown") == []


def test_self_matches_are_taken_out() -> None:
    """Only the hit of the query's own id; what stood below moves up, and other queries are left alone."""
    run = Run.from_dict(
        {"a": {"a": 3.0, "b": 2.0, "c": 1.0}, "b": {"a": 5.0, "c": 4.0}, "x": {"b": 2.0}, "c": {"c": 1.0}}
    )
    assert all_hits(run.without_self_matches()) == {
        "a": [("b", 2.0), ("c", 1.0)],
        "b": [("a", 5.0), ("c", 4.0)],
        "x": [("b", 2.0)],
        "c": [],
    }


@relaxed
@given(rows=st.lists(st.tuples(QUERIES, QUERIES, SCORES), max_size=20))
def test_taking_out_self_matches_equals_never_having_them(rows: Rows) -> None:
    """The run of the rows whose two ids differ."""
    queries = sorted({query for query, _, _ in rows})
    without = Run.from_rows([row for row in rows if row[0] != row[1]], query_ids=queries)
    assert all_hits(Run.from_rows(rows, query_ids=queries).without_self_matches()) == all_hits(without)


@pytest.mark.parametrize(
    ("ties", "order"), [(TieRule.DOC_ID_DESC, ["c", "b", "a"]), (TieRule.DOC_ID_ASC, ["a", "b", "c"])]
)
def test_tie_keys_say_who_goes_first(ties: TieRule, order: list[str]) -> None:
    """The document with the greatest key first."""
    ids = ["b", "c", "a"]
    keys = tie_keys(ids, ties)
    assert sorted(keys.tolist()) == [0, 1, 2]
    assert [ids[place] for place in np.argsort(-keys)] == order


def test_rank_orders_by_score_then_key() -> None:
    """By hand: 2.0 first, then the two of 1.0 by the greater key; minus infinity last; rows on their own."""
    scores = np.array([[1.0, 2.0, 1.0, -np.inf], [0.0, -0.0, -1.0, 5.0]], dtype=np.float32)
    keys = np.array([[0, 1, 7, 9], [1, 2, 3, 0]], dtype=np.int64)
    assert rank(scores, keys).tolist() == [[1, 2, 0, 3], [3, 1, 0, 2]]


@pytest.mark.parametrize("grade", [True, False, 1.0, 1.5, "1", None, np.float64(1.0), np.bool_(True)])
def test_a_relevance_that_is_no_whole_number_is_refused(grade: Any) -> None:
    """Query, document and what was found are named."""
    with pytest.raises(
        DataError, match=r"relevance of query 'q', document 'd' must be a whole number up to 1000, not"
    ) as caught:
        Qrels({"p": {"d": 1}, "q": {"d": grade}})
    assert repr(grade) in str(caught.value)


def test_whole_numbers_of_any_kind_are_relevances() -> None:
    """numpy's integers too, and negative ones; queries are told apart by having any judgment."""
    number: Any = np.int64(2)
    qrels = Qrels({"a": {"d": number, "e": -2}, "b": {}, "c": {"d": 0}})
    assert qrels.judged == ("a", "c")
    assert qrels.unjudged == ("b",)


@pytest.mark.parametrize("grade", [2**63, -(2**63) - 1, 10**300], ids=["2^63", "-2^63 - 1", "10^300"])
def test_a_relevance_beyond_64_bits_is_data_that_is_wrong(grade: int) -> None:
    """It doesn't fit the arrays of grades, so it is refused as data instead of overflowing in them."""
    with pytest.raises(DataError):
        judge(Run.from_dict({"q": {"d": 1.0}}), Qrels({"q": {"d": grade}}))


QRELS = Qrels(
    {
        "q4": {"d1": 2},  # judged, not in the run
        "q1": {"d3": 1, "d1": 2, "d9": 3, "d2": -1, "d8": 0},  # d8 and d9 are not in the run
        "q2": {"d1": 0, "d2": -2},  # nothing relevant
        "q3": {},  # listed, not judged
        "q5": {"d1": 1},  # in the run with no hit
        "q6": {"d1": 1, "d2": 1},  # excluded below
    }
)
RUN = Run.from_rows(
    [
        ("q1", "d1", 3.0),
        ("q1", "d2", 2.0),
        ("q1", "d3", 2.0),
        ("q1", "d4", 1.0),
        ("q2", "d1", 1.0),
        ("q3", "d1", 1.0),
        ("q6", "d1", 1.0),
        ("q7", "d1", 1.0),  # not in the qrels
    ],
    query_ids=["q1", "q2", "q3", "q5", "q6", "q7"],
)


def test_judging_by_hand() -> None:
    """Every array and every count, with a query of each sort; rows in the order of the qrels."""
    judged = judge(RUN, QRELS, exclude=frozenset({"q6"}))
    low = -np.inf
    assert judged.query_ids == ("q4", "q1", "q2", "q5")
    assert judged.grades.tolist() == [[0] * 4, [2, 1, -1, 0], [0] * 4, [0] * 4]
    assert judged.judged.tolist() == [[False] * 4, [True, True, True, False], [True, False, False, False], [False] * 4]
    assert judged.retrieved.tolist() == [[False] * 4, [True] * 4, [True, False, False, False], [False] * 4]
    assert judged.scores.tolist() == [[low] * 4, [3.0, 2.0, 2.0, 1.0], [1.0, low, low, low], [low] * 4]
    assert judged.ideal.tolist() == [[2, 0, 0, 0, 0], [3, 2, 1, 0, 0], [0] * 5, [1, 0, 0, 0, 0]]
    assert judged.n_relevant.tolist() == [1, 3, 0, 1]
    assert judged.counts == QueryCounts(scored=4, missing=2, unjudged=2, no_relevant=1)
    assert judged.ties is TieRule.DOC_ID_DESC


@pytest.mark.parametrize(
    ("options", "kept", "counts"),
    [
        ({}, ("q4", "q1", "q2", "q5", "q6"), QueryCounts(5, 2, 2, 1)),
        ({"missing": MissingQueries.SKIP}, ("q1", "q2", "q6"), QueryCounts(3, 2, 2, 1)),
        ({"no_relevant": NoRelevant.SKIP}, ("q4", "q1", "q5", "q6"), QueryCounts(4, 2, 2, 1)),
        ({"missing": MissingQueries.SKIP, "no_relevant": NoRelevant.SKIP}, ("q1", "q6"), QueryCounts(2, 2, 2, 1)),
        ({"exclude": frozenset({"q6", "q7", "q3"})}, ("q4", "q1", "q2", "q5"), QueryCounts(4, 2, 0, 1)),
        ({"exclude": frozenset({"q2", "q4"})}, ("q1", "q5", "q6"), QueryCounts(3, 1, 2, 0)),
    ],
)
def test_who_counts(options: dict[str, Any], kept: tuple[str, ...], counts: QueryCounts) -> None:
    """Each option by hand: who is in the mean, who is missing, unjudged or without relevant documents."""
    judged = judge(RUN, QRELS, **options)
    assert judged.query_ids == kept
    assert judged.counts == counts


def test_missing_queries_are_those_of_trec_eval() -> None:
    """With ``skip`` the scored queries are exactly those that pytrec_eval reports."""
    run = {query: dict(hits) for query, hits in all_hits(RUN).items() if hits}
    evaluator = pytrec_eval.RelevanceEvaluator({q: dict(QRELS.judgments[q]) for q in QRELS.judged}, {"map"})
    assert set(judge(RUN, QRELS, missing=MissingQueries.SKIP).query_ids) == set(evaluator.evaluate(run))


def test_self_matches_are_dropped_before_judging() -> None:
    """A query whose only hit is itself has no ranking then; by default hits are kept."""
    run, qrels = Run.from_dict({"a": {"a": 2.0, "b": 1.0}, "b": {"b": 1.0}}), Qrels({"a": {"b": 1}, "b": {"a": 1}})
    kept = judge(run, qrels)
    assert kept.grades.tolist() == [[0, 1], [0, 0]]
    dropped = judge(run, qrels, self_match=SelfMatch.DROP)
    assert dropped.grades.tolist() == [[1, 0], [0, 0]]
    assert dropped.retrieved.tolist() == [[True, False], [False, False]]
    assert (kept.counts.missing, dropped.counts.missing) == (0, 1)


def test_judging_nothing() -> None:
    """No query in common, and no query at all."""
    judged = judge(Run.from_rows([]), Qrels({"q": {"d": 1}}))
    assert (judged.query_ids, judged.n_relevant.tolist(), judged.counts) == (("q",), [1], QueryCounts(1, 1, 0, 0))
    nothing = judge(Run.from_dict({"p": {"d": 1.0}}), Qrels({}))
    assert (nothing.query_ids, nothing.counts) == ((), QueryCounts(0, 0, 1, 0))


@relaxed
@given(
    rows=ROWS,
    qrels=st.dictionaries(QUERIES, st.dictionaries(DOCS, st.integers(-2, 3), max_size=6), max_size=4),
)
def test_judging_equals_looking_every_hit_up(rows: Rows, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Grades, judged flags and ideal order against plain dictionaries and sorts."""
    judged = judge(Run.from_rows(rows), Qrels(qrels))
    hits = brute_force(rows, TieRule.DOC_ID_DESC)
    assert judged.query_ids == tuple(query for query, grades in qrels.items() if grades)
    for place, query in enumerate(judged.query_ids):
        docs = [doc for doc, _ in hits.get(query, [])]
        there = judged.retrieved[place]
        assert there.tolist() == [True] * len(docs) + [False] * (len(there) - len(docs))
        assert judged.grades[place][there].tolist() == [qrels[query].get(doc, 0) for doc in docs]
        assert judged.judged[place][there].tolist() == [doc in qrels[query] for doc in docs]
        assert not judged.grades[place][~there].any()
        assert not judged.judged[place][~there].any()
        positive = sorted((grade for grade in qrels[query].values() if grade > 0), reverse=True)
        ideal = judged.ideal[place].tolist()
        assert ideal == positive + [0] * (len(ideal) - len(positive))
        assert judged.n_relevant[place] == len(positive)


def tied(scores: list[float], k: int) -> bool:
    """Whether a ranking of these scores is cut inside a tie at rank k."""
    run = Run.from_dict({"q": {f"d{place}": score for place, score in enumerate(scores)}})
    judged: JudgedRuns = judge(run, Qrels({"q": {"d0": 1}}))
    (answer,) = judged.tied_at(k).tolist()
    return bool(answer)


def test_ties_at_the_cut_off_are_found() -> None:
    """Ranks k and k + 1 with one score; not above, not below, not where the ranking ends."""
    scores = [5.0, 3.0, 3.0, 1.0]
    assert [tied(scores, k) for k in (1, 2, 3, 4, 10)] == [False, True, False, False, False]


def test_a_tie_of_the_last_two_ranks_is_found() -> None:
    """A list of k + 1 hits has a rank k + 1."""
    assert [tied([2.0, 1.0, 1.0], k) for k in (1, 2, 3)] == [False, True, False]


def test_minus_zero_is_zero() -> None:
    """They are equal as numbers and differ in a bit, which would make equal rankings different files."""
    docs = np.array([[0, 1]], dtype=np.int32)
    rankings = [
        Run.ranked(query_ids=("q",), doc_ids=("a", "b"), docs=docs, scores=np.array([[1.0, zero]], dtype=np.float32))
        for zero in (0.0, -0.0)
    ]
    assert not np.signbit(rankings[1].scores).any()
    assert rankings[0].scores.tobytes() == rankings[1].scores.tobytes()


def test_two_empty_ranks_are_no_tie() -> None:
    """A short ranking beside a long one: its empty ranks have equal scores and no documents."""
    run = Run.from_dict({"long": {f"d{place}": float(-place) for place in range(5)}, "short": {"d0": 1.0}})
    judged = judge(run, Qrels({"long": {"d0": 1}, "short": {"d0": 1}}))
    for k in (1, 2, 3):
        assert judged.tied_at(k).tolist() == [False, False]


@pytest.mark.parametrize("places", [1, 100, 1_000_000])
def test_grades_are_found_however_many_queries_share_the_table(monkeypatch: pytest.MonkeyPatch, places: int) -> None:
    """One query at a time, a few, all: the grades and marks that a look-up per document gives."""
    monkeypatch.setattr("embeval.core.ir.TABLE", places)
    rng = np.random.default_rng(0)
    scores = {
        f"q{row}": {f"d{doc}": float(rng.normal()) for doc in rng.choice(30, rng.integers(0, 20), replace=False)}
        for row in range(25)
    }
    qrels = {
        f"q{row}": {f"d{doc}": int(rng.integers(-1, 4)) for doc in rng.choice(40, 9, replace=False)}
        for row in rng.permutation(30)
    }
    runs = judge(Run.from_dict(scores), Qrels(qrels))
    assert runs.query_ids == tuple(qrels)
    for row, query in enumerate(runs.query_ids):
        found = sorted(scores.get(query, {}).items(), key=lambda hit: -np.float32(hit[1]))
        padding = runs.grades.shape[1] - len(found)
        assert runs.grades[row].tolist() == [qrels[query].get(doc, 0) for doc, _ in found] + [0] * padding
        assert runs.judged[row].tolist() == [doc in qrels[query] for doc, _ in found] + [False] * padding
        assert runs.ideal[row].tolist() == sorted((max(grade, 0) for grade in qrels[query].values()), reverse=True)


def test_hits_in_any_order() -> None:
    """Flat arrays: rows as they come, a query without hits, a document that comes twice."""
    run = Run.from_hits(
        query_ids=("p", "none", "q"),
        doc_ids=("a", "b"),
        rows=np.array([2, 0, 2, 2]),
        docs=np.array([1, 0, 0, 1], dtype=np.int32),
        scores=np.array([0.5, 3.0, 1.0, 2.0]),
    )
    assert all_hits(run) == {"p": [("a", 3.0)], "none": [], "q": [("b", 2.0), ("a", 1.0)]}
    assert (run.n_duplicates, run.docs.shape) == (1, (3, 2))
