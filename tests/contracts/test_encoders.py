"""What every encoder backend must do, compared by value."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.protocols import Encoder
from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading
from embeval.encoders.loading import BACKENDS
from embeval.errors import ModelError
from tests.contracts.examples import HYBRIDS, MODELS, NEED_A_SERVER, RANKERS, TEXTS, WITHOUT_A_LIMIT, WITHOUT_PROMPTS


def backends(without: Collection[str] = ()) -> list[Any]:
    """The backends to be tested, of all that give vectors; those with a local server allowed to reach it."""
    return [
        pytest.param(name, marks=pytest.mark.enable_socket if name in NEED_A_SERVER else ())
        for name in BACKENDS.names()
        if name not in {*without, *RANKERS, *HYBRIDS}
    ]


@pytest.fixture(scope="module", params=backends())
def spec(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelSpec:
    """A model of every backend."""
    return MODELS[request.param](tmp_path_factory.mktemp("model"))


def load(spec: ModelSpec, **runtime: int) -> Encoder:
    """The model, loaded."""
    return loading.load(loading.resolve(spec), RuntimeOptions(**runtime))  # type: ignore[arg-type]


def test_every_backend_has_an_example() -> None:
    """A new backend joins this suite by an entry in examples.MODELS, or that of rankers by one in RANKERS."""
    assert {*MODELS, *RANKERS, *HYBRIDS} == set(BACKENDS.names())


def test_order_repetition_and_batches_do_not_matter(spec: ModelSpec) -> None:
    """Each text alone, all together, backwards, in small batches: the same vectors to 1e-6."""
    together = load(spec, batch_tokens=100_000).encode(TEXTS, role=Role.TEXT).vectors
    small = load(spec, batch_tokens=1)
    np.testing.assert_allclose(small.encode(TEXTS, role=Role.TEXT).vectors, together, atol=1e-6)
    backwards = small.encode(TEXTS[::-1], role=Role.TEXT).vectors[::-1]
    np.testing.assert_allclose(backwards, together, atol=1e-6)
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(small.encode([text], role=Role.TEXT).vectors[0], together[row], atol=1e-6)


def test_equal_calls_give_equal_bits(spec: ModelSpec) -> None:
    """The same texts in the same batches, and a repeated text within them, are equal to the bit."""
    encoder = load(spec)
    first = encoder.encode(TEXTS, role=Role.TEXT).vectors
    assert np.array_equal(first, encoder.encode(TEXTS, role=Role.TEXT).vectors)
    assert np.array_equal(first, load(spec).encode(TEXTS, role=Role.TEXT).vectors)
    assert np.array_equal(first[1], first[8])


def test_vectors_are_float32_of_the_stated_length(spec: ModelSpec) -> None:
    """Type, shape, digest and role are what the embeddings say."""
    encoder = load(spec)
    embeddings = encoder.encode(TEXTS, role=Role.DOCUMENT)
    assert embeddings.vectors.dtype == np.float32
    assert embeddings.vectors.shape == (len(TEXTS), encoder.info.dim)
    assert embeddings.role == Role.DOCUMENT
    assert embeddings.spec_digest == encoder.spec.digest
    assert embeddings.counts.n_texts == len(TEXTS)
    assert embeddings.counts.n_empty == 2


def test_no_texts_give_no_vectors(spec: ModelSpec) -> None:
    """An empty list is [0, d], not an error."""
    encoder = load(spec)
    assert encoder.encode([], role=Role.TEXT).vectors.shape == (0, encoder.info.dim)


@pytest.mark.parametrize("spec", backends(without=WITHOUT_PROMPTS), indirect=True)
def test_own_prompts_change_the_vector_of_their_role_only(spec: ModelSpec) -> None:
    """A prompt for queries: the query's vector is that of prompt and text, the document's is the bare one."""
    with_prompt = load(replace(spec, prompts={"query": "the query "}))
    bare = load(spec)
    query = with_prompt.encode(["backup"], role=Role.QUERY).vectors
    np.testing.assert_allclose(query, bare.encode(["the query backup"], role=Role.TEXT).vectors, atol=1e-6)
    document = with_prompt.encode(["backup"], role=Role.DOCUMENT).vectors
    np.testing.assert_allclose(document, bare.encode(["backup"], role=Role.DOCUMENT).vectors, atol=1e-6)
    assert with_prompt.prompt(Role.QUERY) == "the query "


def test_truncated_dimensions(spec: ModelSpec) -> None:
    """The first 4 dimensions, scaled to unit length as the full vectors are; more than there are is refused."""
    full = load(spec).encode(TEXTS[:2], role=Role.TEXT)
    cut = load(replace(spec, truncate_dim=4)).encode(TEXTS[:2], role=Role.TEXT)
    expected = full.vectors[:, :4].astype(np.float64)
    if full.normalized:
        norms = np.linalg.norm(expected, axis=1, keepdims=True)
        expected = np.divide(expected, norms, out=np.zeros_like(expected), where=norms > 0)
    np.testing.assert_allclose(cut.vectors, expected, atol=1e-6)
    with pytest.raises(ModelError, match="dimensions, so truncate_dim can't be"):
        load(replace(spec, truncate_dim=100_000))


def test_revision_is_resolved_and_pins(spec: ModelSpec) -> None:
    """The loaded spec has a revision and no local path, and asking for that revision again gives the same digest."""
    resolved = loading.resolve(spec).spec
    assert resolved.revision
    assert not Path(resolved.name).is_absolute()
    assert len(Path(resolved.name).parts) <= 2
    again = loading.resolve(replace(spec, revision=resolved.revision)).spec
    assert again.digest == resolved.digest


def test_each_setting_changes_the_digest(spec: ModelSpec) -> None:
    """Everything that may change a score is part of the digest."""
    base = loading.resolve(spec).spec
    changes = {
        "prompts": {"query": "q: "},
        "truncate_dim": 4,
        "max_seq_length": 7,
        "normalize": True,
        "similarity": "dot",
        "dtype": "bfloat16",
        "pooling": "cls",
        "args": {"dim": 64},
        "revision": "sha256:other",
        "backend": "other",
    }
    digests = {replace(base, **{name: value}).digest for name, value in changes.items()}  # type: ignore[arg-type]
    assert len(digests | {base.digest}) == len(changes) + 1


@pytest.mark.parametrize("spec", backends(without=WITHOUT_A_LIMIT), indirect=True)
def test_limit_of_the_spec_is_kept_and_counted(spec: ModelSpec) -> None:
    """With 8 tokens at most, long texts lose tokens, short ones don't, and kept + lost is the whole."""
    encoder = load(replace(spec, max_seq_length=8))
    embeddings = encoder.encode(["token", "one two three four five six seven eight nine ten"], role=Role.TEXT)
    assert embeddings.truncated is not None
    assert set(embeddings.truncated) == {1}
    counts = embeddings.counts
    assert counts.n_truncated == 1
    whole = (
        load(replace(spec, max_seq_length=16))
        .encode(["token", "one two three four five six seven eight nine ten"], role=Role.TEXT)
        .counts
    )
    assert counts.tokens_kept is not None
    assert counts.tokens_lost is not None
    assert whole.tokens_lost is not None
    assert whole.tokens_kept is not None
    assert counts.tokens_kept + counts.tokens_lost == whole.tokens_kept + whole.tokens_lost


def test_a_setting_below_1_is_refused(spec: ModelSpec, tmp_path: Path) -> None:
    """A limit of 0 tokens or dimensions is a mistake, not "none"."""
    from embeval.errors import ConfigError

    for name in ("max_seq_length", "truncate_dim"):
        with pytest.raises(ConfigError, match=f"{name} must be at least 1, not 0"):
            loading.resolve(replace(spec, **{name: 0}))  # type: ignore[arg-type]
