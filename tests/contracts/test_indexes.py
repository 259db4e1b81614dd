"""What every kind of index must do, compared by value with a full sort. Sizes and seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest

from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.errors import ConfigError, InvalidEmbeddingsError
from embeval.retrieval import approximate
from embeval.retrieval.kinds import INDEXES, ApproximateType, ExactType
from embeval.retrieval.recall import ann_recall
from embeval.retrieval.search import TopK

RNG = np.random.default_rng(11)
DOCS = RNG.normal(size=(200, 16)).astype(np.float32)
QUERIES = RNG.normal(size=(9, 16)).astype(np.float32)
EXACT = {name: kind for name in INDEXES.names() if isinstance(kind := INDEXES.get(name), ExactType)}
APPROXIMATE = {name: kind for name in INDEXES.names() if isinstance(kind := INDEXES.get(name), ApproximateType)}
KINDS = [(name, similarity) for name in EXACT for similarity in SIMILARITIES]
ABOUT = [(name, similarity) for name, kind in APPROXIMATE.items() for similarity in kind.similarities]
TOPICS = RNG.normal(size=(40, 32))


def clustered(n: int) -> np.ndarray:
    """float32 [n, 32] around 40 topics, of different lengths."""
    lengths = RNG.uniform(0.5, 2.0, size=(n, 1))
    return ((TOPICS[RNG.integers(0, 40, n)] + 0.6 * RNG.normal(size=(n, 32))) * lengths).astype(np.float32)


CORPUS, ASKED = clustered(3000), clustered(50)
FLOORS = {"hnsw": 0.99, "ivf": 0.75, "ivf_pq": 0.70, "sq8": 0.999, "binary": 0.60}
"""Recall at 10 that a kind must reach with its defaults on these 3,000 vectors; dot is hardest for all but sq8."""


def test_every_kind_is_exact_or_approximate() -> None:
    """No kind is both or neither, and ``exact`` says which."""
    assert set(EXACT) | set(APPROXIMATE) == set(INDEXES.names())
    assert not set(EXACT) & set(APPROXIMATE)
    assert all(kind.exact for kind in EXACT.values())
    assert not any(kind.exact for kind in APPROXIMATE.values())
    assert set(APPROXIMATE) == set(FLOORS)


@pytest.mark.parametrize(("name", "similarity"), KINDS)
def test_neighbours_and_scores_are_the_true_ones(name: str, similarity: SimilarityName) -> None:
    """An exact index finds the 10 best of a full sort, with scores right to 1e-4 and higher always better."""
    index = EXACT[name].create(16, similarity)
    index.add(DOCS[:70])
    index.add(DOCS[70:])
    assert len(index) == 200
    found = index.search(QUERIES, 10)
    for row, query in enumerate(QUERIES):
        truth = SIMILARITIES[similarity](np.broadcast_to(query, DOCS.shape), DOCS)
        np.testing.assert_allclose(found.scores[row], truth[found.positions[row]], atol=1e-4)
        assert np.all(np.diff(found.scores[row]) <= 1e-6)
        assert found.positions[row].tolist() == np.argsort(-truth, kind="stable")[:10].tolist()


@pytest.mark.parametrize(("name", "similarity"), KINDS)
def test_fewer_vectors_than_wanted(name: str, similarity: SimilarityName) -> None:
    """3 vectors, 5 wanted: 3 found, then -1 and -inf; an empty index gives nothing but these."""
    index = EXACT[name].create(16, similarity)
    empty = index.search(QUERIES, 5)
    assert np.all(empty.positions == -1)
    assert np.all(np.isneginf(empty.scores))
    index.add(DOCS[:3])
    found = index.search(QUERIES, 5)
    assert np.sort(found.positions[:, :3], axis=1).tolist() == [[0, 1, 2]] * len(QUERIES)
    assert np.all(found.positions[:, 3:] == -1)
    assert np.all(np.isneginf(found.scores[:, 3:]))
    assert index.search(QUERIES[:0], 5).positions.shape == (0, 5)


@pytest.mark.parametrize(("name", "similarity"), KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_vectors_are_refused(name: str, similarity: SimilarityName, bad: float) -> None:
    """NaN and Inf never get into an index or a query (F11)."""
    index = EXACT[name].create(16, similarity)
    index.add(DOCS)
    broken = DOCS[:2].copy()
    broken[1, 3] = bad
    with pytest.raises(InvalidEmbeddingsError, match=r"1 of 2 texts: 'row 1'"):
        index.add(broken)
    with pytest.raises(InvalidEmbeddingsError, match=r"1 of 2 texts: 'row 1'"):
        index.search(broken, 3)
    assert len(index) == 200


@pytest.mark.parametrize("name", EXACT)
def test_zero_vectors_have_cosine_0(name: str) -> None:
    """A zero document stands between the positive and the negative cosines."""
    index = EXACT[name].create(2, "cosine")
    index.add(np.array([[-1, 0], [0, 0], [1, 0]], dtype=np.float32))
    found = index.search(np.array([[2, 0]], dtype=np.float32), 3)
    assert found.positions.tolist() == [[2, 1, 0]]
    assert found.scores.tolist() == [[1.0, 0.0, -1.0]]


@pytest.mark.parametrize(("name", "similarity"), ABOUT)
def test_approximate_hits_have_true_scores_and_are_most_of_the_best(name: str, similarity: SimilarityName) -> None:
    """Scores equal those of the two vectors to the bit, best first; recall at 10 reaches the floor of the kind."""
    keys = np.arange(len(CORPUS))
    found, facts = approximate.search_corpus(
        [CORPUS[:1000], CORPUS[1000:]], ASKED, k=10, kind=name, similarity=similarity, tie_keys=keys
    )
    for row, query in enumerate(ASKED):
        hits = found.positions[row]
        assert len(set(hits.tolist())) == 10
        truth = SIMILARITIES[similarity](np.broadcast_to(query, (10, 32)), CORPUS[hits])
        assert found.scores[row].tolist() == truth.tolist()
        assert found.scores[row].tolist() == sorted(truth.tolist(), reverse=True)
    top = TopK(ASKED, k=10, similarity=similarity, tie_keys=keys)
    top.add(CORPUS)
    exact = top.result()
    recall = ann_recall(found.positions, exact.positions, exact.scores, found.scores, 10).mean()
    assert recall >= FLOORS[name]
    assert facts.n_bytes > 0


@pytest.mark.parametrize("name", APPROXIMATE)
def test_an_approximate_index_is_the_same_every_time(name: str) -> None:
    """Built twice, from other chunks: the same hits, HNSW too."""
    keys = np.arange(1500)
    found = [
        approximate.search_corpus(chunks, ASKED, k=10, kind=name, similarity="cosine", tie_keys=keys)[0]
        for chunks in ([CORPUS[:1500]], [CORPUS[:1], CORPUS[1:900], CORPUS[900:1500]])
    ]
    assert np.array_equal(found[0].positions, found[1].positions)
    assert np.array_equal(found[0].scores, found[1].scores)


@pytest.mark.parametrize("name", APPROXIMATE)
@pytest.mark.parametrize("n", [0, 1, 3, 45])
def test_tiny_corpora_and_fewer_vectors_than_wanted(name: str, n: int) -> None:
    """Fewer vectors than centres, codes or hits wanted: all of them are found, then -1 and -inf (G14)."""
    found, _ = approximate.search_corpus(
        [CORPUS[:n]], ASKED, k=50, kind=name, similarity="cosine", tie_keys=np.arange(n)
    )
    assert found.positions.shape == (50, 50)
    assert np.sort(found.positions[:, :n], axis=1).tolist() == [list(range(n))] * 50
    assert np.all(found.positions[:, n:] == -1)
    assert np.all(np.isneginf(found.scores[:, n:]))
    assert np.isfinite(found.scores[:, :n]).all()


@pytest.mark.parametrize("name", APPROXIMATE)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_approximate_kinds_refuse_what_is_not_finite(name: str, bad: float) -> None:
    """In training, adding, queries and the corpus (F11)."""
    index = approximate.build(CORPUS[:100], kind=name, similarity="cosine", options={})
    broken = CORPUS[:2].copy()
    broken[1, 3] = bad
    with pytest.raises(InvalidEmbeddingsError, match=r"The vectors to index gave .* 1 of 2 texts: 'row 1'"):
        index.add(broken)
    with pytest.raises(InvalidEmbeddingsError, match=r"The queries gave .* 1 of 2 texts: 'row 1'"):
        index.search(broken, 3)
    assert len(index) == 100
    with pytest.raises(InvalidEmbeddingsError, match="The vectors to store"):
        approximate.search_corpus([broken], ASKED, k=1, kind=name, similarity="dot", tie_keys=np.arange(2))


@pytest.mark.parametrize("name", APPROXIMATE)
def test_zero_vectors_have_cosine_0_in_approximate_kinds_too(name: str) -> None:
    """A zero document among others scores exactly 0."""
    docs = np.concatenate([np.zeros((1, 32), dtype=np.float32), CORPUS[:9]])
    found, _ = approximate.search_corpus(
        [docs], ASKED[:1], k=10, kind=name, similarity="cosine", tie_keys=np.arange(10)
    )
    assert found.scores[0][found.positions[0] == 0].tolist() == [0.0]


@pytest.mark.parametrize("name", APPROXIMATE)
def test_manhattan_is_refused_by_kinds_that_lack_it(name: str) -> None:
    """The message names what the kind can do."""
    with pytest.raises(ConfigError, match=f"'{name}' can't compare by manhattan, only by cosine, dot, euclidean"):
        approximate.check(name, "manhattan", 32, {})
