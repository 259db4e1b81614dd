"""What every system that ranks documents itself must do, compared by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embeval.core.ir import NOTHING, Run, TieRule
from embeval.core.protocols import Encoder, Ranker
from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.encoders import loading
from embeval.encoders.rankers import RankingBackend
from embeval.errors import ConfigError, ModelError
from tests.contracts.examples import MODELS, RANKED, RANKED_QUERIES, RANKERS
from tests.support.doubles import Seen

ALL = len(RANKED)


@pytest.fixture(scope="module", params=list(RANKERS))
def spec(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelSpec:
    """A system of every backend."""
    return RANKERS[request.param](tmp_path_factory.mktemp("ranker"))


def load(spec: ModelSpec) -> Ranker:
    """The system, loaded."""
    ranker = loading.load_system(loading.resolve(spec))
    assert isinstance(ranker, Ranker)
    return ranker


def rank(
    spec: ModelSpec,
    docs: Sequence[str] = tuple(RANKED),
    queries: Sequence[str] = tuple(RANKED_QUERIES),
    depth: int = ALL,
    ties: TieRule = TieRule.DOC_ID_DESC,
) -> Run:
    """The ranking of some of the documents for some of the queries."""
    texts = [RANKED[doc] for doc in docs]
    return load(spec).rank(docs, texts, queries, [RANKED_QUERIES[query] for query in queries], depth=depth, ties=ties)


def hits(run: Run) -> dict[str, list[tuple[str, float]]]:
    """All hits."""
    return {query: run.hits(query) for query in run.query_ids}


def test_it_is_a_ranker_and_no_encoder(spec: ModelSpec) -> None:
    """The types by which tasks tell systems apart, and 0 dimensions."""
    assert isinstance(loading.BACKENDS.get(spec.backend), RankingBackend)
    assert not isinstance(load(spec), Encoder)
    assert load(spec).info.dim == 0
    with pytest.raises(ModelError, match="ranks documents and gives no vectors"):
        loading.load(loading.resolve(spec))


def test_encoders_are_no_ranking_backends() -> None:
    """The mark of a backend says what its systems are."""
    assert not any(isinstance(loading.BACKENDS.get(name), RankingBackend) for name in MODELS)


def test_queries_are_as_asked_and_empty_ones_find_nothing(spec: ModelSpec) -> None:
    """In their order, each once; "q3" and "q5" hold no word."""
    run = rank(spec)
    assert run.query_ids == tuple(RANKED_QUERIES)
    assert run.doc_ids == tuple(RANKED)
    found = hits(run)
    assert all(found[query] for query in ("q1", "q2", "q4"))
    assert found["q3"] == found["q5"] == []
    assert run.scores.dtype == np.float32
    assert np.all(np.isneginf(run.scores) == (run.docs == NOTHING))


@pytest.mark.parametrize("ties", [TieRule.DOC_ID_DESC, TieRule.DOC_ID_ASC])
def test_ties_are_broken_by_the_rule_across_the_last_place(spec: ModelSpec, ties: TieRule) -> None:
    """Every depth is the beginning of the full ranking, which is sorted by score and then by id."""
    whole = hits(rank(spec, ties=ties))
    for found in whole.values():
        by_id = sorted(found, key=lambda hit: hit[0], reverse=ties is TieRule.DOC_ID_DESC)
        assert found == sorted(by_id, key=lambda hit: -hit[1])
    assert len({score for _, score in whole["q1"]}) < len(whole["q1"])  # there are ties
    for depth in (1, 2, 3, 5):
        assert hits(rank(spec, depth=depth, ties=ties)) == {query: found[:depth] for query, found in whole.items()}


def test_order_of_documents_and_queries_does_not_matter(spec: ModelSpec) -> None:
    """Backwards, and each query alone: the same hits with the same bits."""
    forwards = hits(rank(spec))
    assert hits(rank(spec, tuple(RANKED)[::-1], tuple(RANKED_QUERIES)[::-1])) == forwards
    assert hits(rank(spec, queries=("q4",))) == {"q4": forwards["q4"]}
    assert hits(rank(spec)) == forwards


def test_no_documents_and_no_queries(spec: ModelSpec) -> None:
    """An empty corpus has no hits; no queries are no ranking."""
    assert not any(hits(rank(spec, docs=())).values())
    assert rank(spec, queries=()).query_ids == ()


def test_progress_ends_at_the_total(spec: ModelSpec) -> None:
    """Everything that was announced is done."""

    class Announced(Seen):
        wanted = 0

        def start(self, label: str, total: int, unit: str) -> None:
            self.wanted += total

    seen = Announced()
    texts = list(RANKED_QUERIES.values())
    load(spec).rank(
        tuple(RANKED),
        list(RANKED.values()),
        tuple(RANKED_QUERIES),
        texts,
        depth=3,
        ties=TieRule.DOC_ID_ASC,
        progress=seen,
    )
    assert seen.total == seen.wanted >= len(texts)


def test_revision_is_resolved_and_pins(spec: ModelSpec) -> None:
    """The loaded spec has a revision and no local path, and asking for another revision is refused."""
    resolved = loading.resolve(spec).spec
    assert resolved.revision
    assert len(Path(resolved.name).parts) == 1
    assert loading.resolve(replace(spec, revision=resolved.revision)).spec.digest == resolved.digest
    with pytest.raises(ModelError, match="revision"):
        loading.resolve(replace(spec, revision="sha256:other"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pooling", "mean"),
        ("normalize", False),
        ("max_seq_length", 8),
        ("prompts", {"query": "q: "}),
        ("truncate_dim", 8),
        ("dtype", "float16"),
        ("similarity", "cosine"),
        ("prompting", "none"),
        ("quantize", "int8"),
    ],
)
def test_settings_of_vectors_are_refused(spec: ModelSpec, name: str, value: object) -> None:
    """None can act, so none is taken in silence; nor is an unknown option."""
    with pytest.raises(ConfigError, match=f"ranks documents without a model, so {name} can't act"):
        loading.resolve(replace(spec, **{name: value}))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"'{spec.backend}' has no option"):
        loading.resolve(replace(spec, args={"dim": 64}))


def test_any_device_is_taken_and_the_cpu_used(spec: ModelSpec) -> None:
    """Beside a model on a GPU, as in a hybrid."""
    assert loading.load_system(loading.resolve(spec), RuntimeOptions(device="cuda")).info.device == "cpu"
