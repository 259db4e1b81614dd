"""Queries asked by hand: hits in their order, what is kept between queries, and what comes after a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embeval.core.progress import Progress
from embeval.core.protocols import Encoder, EncoderInfo, PairScores
from embeval.core.specs import ModelSpec, RerankerSpec, Role, RuntimeOptions
from embeval.data.corpus import Corpus
from embeval.errors import ConfigError, StoreError, UnknownNameError, UsageError
from embeval.workflows import searching
from embeval.workflows.searching import Searcher, parse_reranker, searchers
from tests.support.doubles import TableEncoder

CORPUS = Corpus(ids=("a", "b", "c"), titles=("Fox", "", ""), bodies=("red", "fox", "lime"))
TABLE = {
    "Fox red": (1.0, 0.0),
    "fox": (0.8, 0.6),
    "lime": (0.0, 1.0),
    "red query": (1.0, 0.0),
    "lime query": (0.0, 1.0),
}


def test_hits_are_the_nearest_documents() -> None:
    """Cosines 1, 0.8 and 0 by hand; titles apart from the texts; no more than k."""
    answer = Searcher(TableEncoder(TABLE), CORPUS).ask("red query", 2)
    assert (answer.system, answer.query) == ("table", "red query")
    assert [(hit.rank, hit.id, hit.title, hit.text) for hit in answer.hits] == [
        (1, "a", "Fox", "red"),
        (2, "b", "", "fox"),
    ]
    assert [hit.score for hit in answer.hits] == pytest.approx([1.0, 0.8])
    assert len(Searcher(TableEncoder(TABLE), CORPUS).ask("red query", 10).hits) == 3


def test_an_empty_query_is_refused() -> None:
    """It would be as near to everything."""
    with pytest.raises(UsageError, match="empty"):
        Searcher(TableEncoder(TABLE), CORPUS).ask(" \t", 2)


@pytest.mark.parametrize("keep", [True, False])
def test_documents_are_encoded_once_where_they_are_kept(keep: bool) -> None:
    """Answers are the same; queries are encoded each time."""
    encoder = TableEncoder(TABLE)
    searcher = Searcher(encoder, CORPUS, keep=keep)
    assert [hit.id for hit in searcher.ask("red query", 3).hits] == ["a", "b", "c"]
    assert [hit.id for hit in searcher.ask("lime query", 3).hits] == ["c", "b", "a"]
    roles = [role for role, _ in encoder.calls]
    assert roles.count(Role.QUERY) == 2
    assert roles.count(Role.DOCUMENT) == (1 if keep else 2)


def test_what_is_kept_is_an_encoder_like_any() -> None:
    """With the spec, the info and the prompt of the one that it stands for."""
    encoder = TableEncoder(TABLE)
    kept = searching._keeping(encoder)
    assert isinstance(kept, Encoder)
    assert (kept.spec, kept.info, kept.prompt(Role.QUERY)) == (encoder.spec, encoder.info, "")


class ByLength:
    """Scores a pair by the length of its document, and remembers the pairs."""

    spec = RerankerSpec(name="by-length", revision="builtin:1")

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    @property
    def info(self) -> EncoderInfo:
        """Nothing that matters."""
        return TableEncoder(TABLE).info

    def score(self, pairs: Sequence[tuple[str, str]], *, progress: Progress | None = None) -> PairScores:
        """Characters."""
        self.pairs += pairs
        return PairScores(scores=np.array([len(document) for _, document in pairs], dtype=np.float32))


def test_a_reranker_orders_the_candidates() -> None:
    """Two candidates of which one is shown: the longer one, though it is the second; the third is never seen."""
    reranker = ByLength()
    answer = Searcher(TableEncoder(TABLE), CORPUS, reranker=reranker, candidates=2).ask("lime query", 1)
    assert answer.system == "table + by-length"
    assert [(hit.id, hit.score) for hit in answer.hits] == [("c", 4.0)]
    assert sorted(reranker.pairs) == [("lime query", "fox"), ("lime query", "lime")]
    # As many candidates as hits are wanted, at least; title and text are read together.
    (first, *_) = Searcher(TableEncoder(TABLE), CORPUS, reranker=reranker, candidates=1).ask("lime query", 3).hits
    assert (first.id, first.score) == ("a", 7.0)


def test_searchers_of_several_models() -> None:
    """Each by its name; the same twice is refused; a kind of index that there is not, when it is asked."""
    models = [ModelSpec(name="x", backend="hashing"), ModelSpec(name="y", backend="hashing", args={"dim": 512})]
    found = searchers(models, CORPUS)
    answers = [each.ask("red fox", 2) for each in found]
    assert [each.system for each in answers] == ["x", "y (dim=512)"]
    assert all(answer.hits[0].id == "a" for answer in answers)
    with pytest.raises(ConfigError, match="named twice"):
        searchers([models[0], models[0]], CORPUS)
    (odd,) = searchers(models[:1], CORPUS, index="nope")
    with pytest.raises(UnknownNameError, match="nope"):
        odd.ask("red", 1)


def test_ranks_below_the_hits() -> None:
    """Of as many as were looked at; without a word on it, of the hits."""
    searcher = Searcher(TableEncoder(TABLE), CORPUS)
    answer = searcher.ask("red query", 1, looked_at=2)
    assert ([hit.id for hit in answer.hits], answer.ranks) == (["a"], {"a": 1, "b": 2})
    assert searcher.ask("red query", 2).ranks == {"a": 1, "b": 2}


def test_an_index_that_is_saved_and_opened_gives_the_same_hits(tmp_path: Path) -> None:
    """To the bit; and it is refused for another model and for another corpus."""
    model = ModelSpec(name="x", backend="hashing")
    options = RuntimeOptions(cache=False)
    (fresh,) = searchers([model], CORPUS, runtime=options)
    (saved,) = searchers([model], CORPUS, runtime=options, save_to=tmp_path / "index")
    (opened,) = searchers([model], CORPUS, runtime=options, open_from=tmp_path / "index", keep=True)
    for query in ("red fox", "lime"):
        assert fresh.ask(query, 3).hits == saved.ask(query, 3).hits == opened.ask(query, 3).hits
    other = ModelSpec(name="x", backend="hashing", args={"dim": 64})
    with pytest.raises(StoreError, match="another model"):
        searchers([other], CORPUS, runtime=options, open_from=tmp_path / "index")
    changed = replace(CORPUS, bodies=("red", "fox", "limes"))
    with pytest.raises(StoreError, match="another corpus"):
        searchers([model], changed, runtime=options, open_from=tmp_path / "index")
    with pytest.raises(StoreError, match="holds an index already"):
        searchers([model], CORPUS, runtime=options, save_to=tmp_path / "index")


def test_what_can_t_be_saved(tmp_path: Path) -> None:
    """Several models, quantised vectors, a system without vectors; and no index is both saved and opened."""
    x, y = (ModelSpec(name=name, backend="hashing") for name in "xy")
    for models in ([x, y], [replace(x, quantize="int8")]):
        with pytest.raises(UsageError, match="of one model"):
            searchers(models, CORPUS, save_to=tmp_path / "index")
    with pytest.raises(UsageError, match="gives no vectors"):
        searchers([ModelSpec(name="bm25", backend="bm25")], CORPUS, save_to=tmp_path / "index")
    with pytest.raises(UsageError, match="saved or opened"):
        searchers([x], CORPUS, save_to=tmp_path / "index", open_from=tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_a_reranker_in_words() -> None:
    """Name and settings; an unknown one is told."""
    assert parse_reranker("org/cross,max_seq_length=256,dtype=int8") == RerankerSpec(
        name="org/cross", max_seq_length=256, dtype="int8"
    )
    with pytest.raises(ConfigError, match="reranker 'org/cross,depht=3'"):
        parse_reranker("org/cross,depht=3")
    with pytest.raises(ConfigError, match="name: must not be empty"):
        parse_reranker(",dtype=int8")
