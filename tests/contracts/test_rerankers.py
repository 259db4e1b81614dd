"""What every reranker backend must do, compared by value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embeval.core.protocols import Reranker
from embeval.core.specs import RerankerSpec, RuntimeOptions
from embeval.encoders.cache import VectorCache
from embeval.rerankers import loading
from embeval.rerankers.loading import RERANKERS
from tests.contracts.examples import RERANKER_MODELS

PAIRS = [
    ("restore a backup", "the old server is restored from a backup of the day"),
    ("token", ""),
    ("", "token"),
    ("one two three " * 40, "yes"),
    ("token", "é ü ß 東京タワー שלום 🙂🙃"),
    ("restore a backup", "backup " * 5_000),
    ("token", ""),
    ("a", "b c"),
    ("a b", "c"),
]


@pytest.fixture(scope="module", params=RERANKERS.names())
def spec(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RerankerSpec:
    """A model of every backend."""
    return RERANKER_MODELS[request.param](tmp_path_factory.mktemp("model"))


def load(spec: RerankerSpec, cache: VectorCache | None = None, **runtime: int) -> Reranker:
    """The model, loaded on the CPU."""
    return loading.load(loading.resolve(spec), RuntimeOptions(device="cpu", **runtime), cache)  # type: ignore[arg-type]


def test_every_backend_has_an_example() -> None:
    """A new backend joins this suite by an entry in examples.RERANKER_MODELS."""
    assert set(RERANKER_MODELS) == set(RERANKERS.names())


def test_order_repetition_and_batches_do_not_matter(spec: RerankerSpec) -> None:
    """All together, backwards, each alone: the same scores to 5e-6; equal pairs to the bit."""
    together = load(spec).score(PAIRS).scores
    assert together.dtype == np.float32
    assert together[1] == together[6]
    assert together[7] != together[8]
    small = load(spec, batch_tokens=1)
    np.testing.assert_allclose(small.score(PAIRS[::-1]).scores[::-1], together, atol=5e-6)
    for row, pair in enumerate(PAIRS):
        np.testing.assert_allclose(small.score([pair]).scores, together[row : row + 1], atol=5e-6)
    np.testing.assert_array_equal(load(spec).score(PAIRS).scores, together)


def test_no_pairs(spec: RerankerSpec) -> None:
    """No scores, not an error."""
    assert load(spec).score([]).scores.shape == (0,)


def test_revision_is_resolved_and_pins(spec: RerankerSpec) -> None:
    """The loaded spec has a revision and no local path; what is not that revision is refused."""
    found = load(spec).spec
    assert found.revision
    assert not Path(found.name).is_absolute()
    again = loading.resolve(replace(spec, revision=found.revision)).spec
    assert again.digest == found.digest
    from embeval.errors import ModelError

    with pytest.raises(ModelError, match="not the revision that was asked for"):
        loading.resolve(replace(spec, revision="sha256:0"))


def test_scores_from_the_cache(spec: RerankerSpec, tmp_path: Path) -> None:
    """Equal to the bit, counts included, and nothing goes through the model, which is not even loaded."""
    first = load(spec, VectorCache(tmp_path)).score(PAIRS)
    assert first.work.n_texts == len(set(PAIRS))
    warm = load(spec, VectorCache(tmp_path))
    second = warm.score(PAIRS[::-1])
    assert second.scores[::-1].tobytes() == first.scores.tobytes()
    assert second.work.n_texts == 0
    assert warm.late_load_s == 0.0  # type: ignore[attr-defined]
    for name in ("n_truncated", "n_document_lost", "tokens_kept", "tokens_lost"):
        assert getattr(second, name) == getattr(first, name)
    third = warm.score([*PAIRS, ("a new", "pair")])
    assert third.work.n_texts == 1
    assert third.scores[:-1].tobytes() == first.scores.tobytes()


def test_what_may_change_a_score_is_not_taken_from_the_cache(spec: RerankerSpec, tmp_path: Path) -> None:
    """Another limit, another batch budget, a number format: nothing is found."""
    pairs = PAIRS[:2]
    load(spec, VectorCache(tmp_path)).score(pairs)
    assert load(replace(spec, max_seq_length=12), VectorCache(tmp_path)).score(pairs).work.n_texts == 2
    assert load(spec, VectorCache(tmp_path), batch_tokens=7).score(pairs).work.n_texts == 2
