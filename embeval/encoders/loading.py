"""From a ``ModelSpec`` to a running encoder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from embeval.core import strict_json
from embeval.core.protocols import Encoder, Hybrid, System
from embeval.core.specs import Dtype, ModelSpec, RuntimeOptions
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, ModelError
from embeval.registry import Registry

if TYPE_CHECKING:
    from embeval.encoders.cache import VectorCache


FREE_OF_FILES = ("bm25", "hashing")
"""Backends whose name alone is a model."""
ENDPOINT = "endpoint"
"""The device of a model that runs elsewhere: nothing is tried out there, since each token may cost money."""


class BackendType(Protocol):
    """What a module of ``embeval/encoders/backends`` holds under the name ``BACKEND``."""

    summary: str
    """One line for listings."""
    options: tuple[str, ...]
    """Names that ``ModelSpec.args`` may have."""
    dtypes: tuple[Dtype, ...]
    """Number formats that it runs models in, float32 first; one alone is no choice."""

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        """The model with its revision, without loading it or importing anything heavy."""

    def load(self, located: Located, runtime: RuntimeOptions) -> System:
        """The model, ready to encode or to rank. Raises ``ModelError``."""


@runtime_checkable
class Composite(Protocol):
    """A backend whose models are made of other models, each with a cache of its own."""

    def compose(self, located: Located, load: Callable[[ModelSpec], System]) -> Hybrid:
        """The whole; ``load`` gives a part."""


BACKENDS: Registry[BackendType] = Registry(
    kind="encoder backend",
    package="embeval.encoders.backends",
    attribute="BACKEND",
    group="embeval.backends",
)


def named(text: str) -> tuple[str | None, str]:
    """(backend, name) of a model given as ``[BACKEND:]NAME``; None where the text doesn't say which backend."""
    head, colon, name = text.partition(":")
    backend = head.replace("-", "_")
    if colon and backend in BACKENDS.names():
        return backend, name or head
    return (text, text) if text in FREE_OF_FILES else (None, text)


def resolve(spec: ModelSpec, *, verify: bool = False) -> Located:
    """The model with its revision resolved; loads nothing. ``verify`` hashes its files again."""
    for name in ("max_seq_length", "truncate_dim"):
        value = getattr(spec, name)
        if value is not None and value < 1:
            raise ConfigError(f"Model {spec.name!r}: {name} must be at least 1, not {value}.")
    return BACKENDS.get(spec.backend).resolve(spec, verify=verify)


def load(located: Located, runtime: RuntimeOptions | None = None, cache: VectorCache | None = None) -> Encoder:
    """The encoder of a resolved model. Raises ``ModelError`` for a system that gives no vectors."""
    system = load_system(located, runtime, cache)
    if not isinstance(system, Encoder):
        raise ModelError(f"{located.spec.label} ranks documents and gives no vectors. Give an embedding model.")
    return system


def load_system(located: Located, runtime: RuntimeOptions | None = None, cache: VectorCache | None = None) -> System:
    """The encoder of a resolved model, or what ranks documents without one.

    With a cache, a model whose vectors are there is not even loaded: the encoder loads it when a text is missing.
    """
    from embeval.encoders import shelves
    from embeval.encoders.encoder import BatchedEncoder

    backend, options = BACKENDS.get(located.spec.backend), runtime or RuntimeOptions()
    if isinstance(backend, Composite):
        return backend.compose(located, lambda spec: load_system(resolve(spec), options, cache))
    remote = located.spec.args.get("trust_remote_code") and located.folder is not None
    if remote and located.folder is not None and shelves.code_elsewhere(located.folder):
        cache = None  # that code may change, and the same key would find what the old one computed
    key = shelves.note_key(located.spec, options) if cache is not None else ""

    def load_now() -> shelves.Loaded:
        encoder = backend.load(located, options)
        assert isinstance(encoder, BatchedEncoder)
        return encoder.backend

    def remember(known: shelves.Known) -> None:
        if cache is not None:
            cache.put_note(key, strict_json.dumps(shelves.known_of(known)).encode())

    if cache is not None and (note := cache.note(key)) is not None:
        with contextlib.suppress(ValueError, KeyError, TypeError):  # damaged on disk: loaded, and noted again
            lazy = shelves.LazyBackend(strict_json.loads(note), load_now, remember)
            return BatchedEncoder(located.spec, lazy, shelves=shelves.Shelves(cache, options))
    encoder = backend.load(located, options)
    if not isinstance(encoder, BatchedEncoder):
        return encoder  # one that computes nothing
    device = encoder.info.device
    if (options.batch_tokens == "auto" and device != ENDPOINT) or (
        options.batch_tokens is None and device.startswith("cuda")
    ):
        encoder = encoder.with_measured_budget()
    if cache is None:
        return encoder
    remember(encoder)
    return encoder.with_cache(shelves.Shelves(cache, options))
