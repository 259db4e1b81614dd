"""Rankings of given candidates, held against a loop over them."""

from __future__ import annotations

import numpy as np
import pytest

from embeval.core.protocols import TaskRef
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.errors import DataError
from embeval.retrieval import candidates
from embeval.retrieval.candidates import rank_candidates
from embeval.retrieval.first_stage import Search, Texts
from tests.support.doubles import TableEncoder

SEARCH = Search(task=TaskRef(name="x", type="Reranking"), depth=4)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_equals_a_loop(similarity: SimilarityName, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty documents in chunks of seven and pairs in blocks of five; a query without candidates has no hit."""
    monkeypatch.setattr(candidates, "CHUNK", 7)
    monkeypatch.setattr(candidates, "PAIRS", 5)
    random = np.random.default_rng(1)
    names = [f"d{row}" for row in range(30)]
    table = {name: random.normal(size=3).tolist() for name in (*names, "q0", "q1", "q2", "q3")}
    encoder = TableEncoder(table, similarity=similarity)
    given = {f"q{row}": [str(doc) for doc in random.choice(names, 6, replace=False)] for row in range(3)}
    queries = ("q0", "q1", "q2", "q3")
    found = rank_candidates(encoder, Texts(tuple(names), tuple(names)), Texts(queries, queries), given, SEARCH).run
    for query in queries:
        vector = np.array(table[query], dtype=np.float32)
        scored = [
            (doc, float(SIMILARITIES[similarity](vector, np.array(table[doc], dtype=np.float32))))
            for doc in given.get(query, ())
        ]
        assert found.hits(query) == sorted(scored, key=lambda pair: -pair[1])[:4]


def test_only_candidates_are_encoded() -> None:
    """Each once, whoever's candidate it is."""
    table = dict.fromkeys(("q", "r", "a", "b", "c"), (1.0, 0.0))
    encoder = TableEncoder(table)
    corpus, queries = Texts(("a", "b", "c"), ("a", "b", "c")), Texts(("q", "r"), ("q", "r"))
    first = rank_candidates(encoder, corpus, queries, {"q": ["c", "a", "c"], "r": ["a"]}, SEARCH)
    assert [texts for _, texts in encoder.calls] == [("q", "r"), ("c", "a")]
    assert first.run.hits("q") == [("c", 1.0), ("a", 1.0)]  # a tie: the greater id first
    assert first.encoded[0].documents.n_texts == 2


def test_a_candidate_that_is_nowhere_is_refused() -> None:
    """By its id and the query's."""
    encoder = TableEncoder({"q": (1.0,), "a": (1.0,)})
    with pytest.raises(DataError, match="candidate 'z' of query 'q' is not in the corpus"):
        rank_candidates(encoder, Texts(("a",), ("a",)), Texts(("q",), ("q",)), {"q": ["z"]}, SEARCH)
