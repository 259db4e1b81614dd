"""A ranking before and after a reranker whose scores are known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from embeval.core.ir import Run, TieRule
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import PairScores
from embeval.errors import ConfigError, DataError, InvalidEmbeddingsError
from embeval.rerankers import rerank as reranking
from embeval.rerankers.rerank import Reranked, rerank
from tests.support.doubles import TableReranker

RUN = Run.from_dict({"q1": {"a": 9, "b": 8, "c": 7, "d": 6, "e": 6, "f": 5}, "q2": {"c": 3, "a": 2}, "q3": {}})
QUERIES = {"q1": "first", "q2": "second", "q3": "third"}
DOCS = {doc: f"text {doc}" for doc in "abcdef"}


def table(**scores: float) -> TableReranker:
    """A reranker for any of the queries: document -> score."""
    return TableReranker({(query, DOCS[doc]): score for query in QUERIES.values() for doc, score in scores.items()})


def ids(run: Run, query: str) -> str:
    """The ranking in one word."""
    return "".join(doc for doc, _ in run.hits(query))


def done(reranker: TableReranker, depth: int, ties: TieRule | None = None) -> Reranked:
    """The ranking above, reranked."""
    return rerank(RUN, depth, reranker, QUERIES, DOCS, ties=ties)


def test_only_the_first_are_reordered_and_scored() -> None:
    """Of q1 the first 3, of q2 both; what stands below keeps its order, and what tied there ties again."""
    reranker = table(a=-1.5, b=2.0, c=0.25)
    found = done(reranker, 3)
    of_first = [("first", "text a"), ("first", "text b"), ("first", "text c")]
    assert reranker.asked == [[*of_first, ("second", "text c"), ("second", "text a")]]
    assert ids(found.run, "q1") == "bcaedf"  # d and e tie, and the greater id goes first, as before
    assert ids(RUN, "q1") == "abcedf"
    assert found.run.hits("q1") == [("b", 2.0), ("c", 0.25), ("a", -1.5), ("e", -2.5), ("d", -2.5), ("f", -3.5)]
    assert found.run.hits("q2") == [("c", 0.25), ("a", -1.5)]
    assert found.run.hits("q3") == []
    assert found.n_pairs == 5
    assert found.scored.scores.tolist() == [-1.5, 2.0, 0.25, 0.25, -1.5]
    assert found.scored.work.n_texts == 5


@pytest.mark.parametrize("size", [1.0, -1e8, 3e37])
def test_scores_of_any_size_stay_apart(size: float) -> None:
    """Below scores so large that 1 is nothing to them, the order is still told by the scores alone."""
    found = done(table(a=size, b=2 * size, c=1.5 * size), 3)
    scores = [score for _, score in found.run.hits("q1")]
    assert scores[3] == scores[4]  # d and e
    assert all(left > right for left, right in pairwise(scores[:4]))
    assert scores[4] > scores[5]


def test_a_depth_beyond_the_candidates() -> None:
    """All of them, and no other document."""
    found = done(table(a=1, b=2, c=3, d=4, e=5, f=6), 100)
    assert ids(found.run, "q1") == "fedcba"
    assert ids(found.run, "q2") == "ca"


def test_equal_scores_by_the_rule() -> None:
    """The tie rule of the run, or the one that is asked for."""
    same = table(a=0, b=0, c=0)
    assert ids(done(same, 3).run, "q1") == "cbaedf"
    assert ids(done(same, 3, ties=TieRule.DOC_ID_ASC).run, "q1") == "abcdef"
    assert done(same, 3, ties=TieRule.AVERAGE).run.ties == TieRule.AVERAGE


def test_chunks_of_whole_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query is never divided, and the counts are those of all chunks."""
    monkeypatch.setattr(reranking, "CHUNK", 2)
    reranker = table(a=1, b=2, c=3)
    found = done(reranker, 3)
    assert [len(asked) for asked in reranker.asked] == [3, 2]
    assert (found.scored.n_truncated, found.scored.tokens_kept, found.scored.tokens_lost) == (2, 15, 2)
    assert found.run.scores.tobytes() == done(table(a=1, b=2, c=3), 3).run.scores.tobytes()


def test_a_score_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Query and document are named, also in a later chunk."""
    monkeypatch.setattr(reranking, "CHUNK", 1)
    reranker = TableReranker(
        {("first", DOCS[doc]): 1.0 for doc in "abc"} | {("second", DOCS["c"]): 1.0, ("second", DOCS["a"]): np.nan}
    )
    with pytest.raises(InvalidEmbeddingsError, match="such as for query 'q2' with document 'a'") as caught:
        done(reranker, 3)
    assert caught.value.ids == ("a",)
    assert "such as for query 'q2' with document 'a'.\nNothing was ranked." in str(caught.value)


def test_texts_that_are_missing() -> None:
    """A ranking from elsewhere may name what is not there."""
    with pytest.raises(DataError, match="the document 'b' of the ranking has no text"):
        rerank(RUN, 3, table(a=1, c=1), QUERIES, {doc: text for doc, text in DOCS.items() if doc != "b"})
    with pytest.raises(DataError, match="the query 'q1' of the ranking has no text"):
        rerank(RUN, 3, table(a=1, b=1, c=1), {}, DOCS)


def test_a_depth_of_nothing() -> None:
    """Is a mistake."""
    with pytest.raises(ConfigError, match="rerank: depth must be at least 1, not 0"):
        done(table(), 0)


def test_a_run_of_nothing() -> None:
    """Stays one; no model is asked."""
    reranker = table()
    found = rerank(Run.from_dict({"q1": {}}), 10, reranker, QUERIES, DOCS)
    assert (found.n_pairs, reranker.asked, found.warnings) == (0, [], ())
    assert found.scored.scores.shape == (0,)


def test_warnings() -> None:
    """What was cut, and scores that say nothing, in words."""
    from dataclasses import replace

    found = done(table(a=1, b=2, c=3), 3)
    assert found.warnings == (
        "1 of 5 reranked pairs were truncated (6.2% of all tokens lost), the longer text of each first.",
    )
    lost = replace(found, scored=replace(found.scored, n_document_lost=2))
    assert lost.warnings[1].startswith("2 reranked pairs had no token of a document that is not empty")


def test_progress_is_passed_on() -> None:
    """To the reranker, which counts pairs."""

    class Watched(TableReranker):
        def score(self, pairs: Sequence[tuple[str, str]], *, progress: Progress | None = None) -> PairScores:
            assert progress is not None
            progress.advance(len(pairs))
            return super().score(pairs)

    class Count(Silent):
        n = 0

        def advance(self, n: int) -> None:
            self.n += n

    count = Count()
    rerank(RUN, 3, Watched(table(a=1, b=2, c=3).scores), QUERIES, DOCS, progress=count)
    assert count.n == 5
