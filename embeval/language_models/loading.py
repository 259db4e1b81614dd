"""From a located model to a language model."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Protocol

from embeval.core import strict_json
from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.encoders import modules
from embeval.encoders.locate import Located
from embeval.errors import EvaluationError
from embeval.language_models import kinds, tokenization
from embeval.language_models.model import LanguageModel, VariantBackend, as_model
from embeval.language_models.tokenization import Frame
from embeval.registry import Registry

if TYPE_CHECKING:
    from embeval.encoders.cache import VectorCache


class BackendType(Protocol):
    """What a module of ``embeval/language_models/backends`` holds under the name ``BACKEND``."""

    runs: tuple[str, ...]
    """Encoder backends whose models it can run with their head."""

    def kind(self, located: Located) -> str:
        """``masked``, ``causal``, ``replaced``, or the key of ``kinds.WHY_NOT``; loads nothing."""

    def load(self, located: Located, kind: Kind, runtime: RuntimeOptions, *, pad_id: int) -> VariantBackend:
        """The model, ready to score. Raises ``ModelError``."""


LANGUAGE_MODELS: Registry[BackendType] = Registry(
    kind="language model backend",
    package="embeval.language_models.backends",
    attribute="BACKEND",
    group="embeval.language_models",
)


def backend_of(spec: ModelSpec) -> BackendType | None:
    """What runs models of that encoder backend with their head; None where nothing does."""
    for name in LANGUAGE_MODELS.names():
        if spec.backend in (backend := LANGUAGE_MODELS.get(name)).runs:
            return backend
    return None


def known_of(located: Located) -> tuple[str, str | None]:
    """(kind, digest of its tokenizer) of a model, without loading it.

    The kind is ``masked``, ``causal``, ``replaced``, or the key of ``kinds.WHY_NOT`` that says why it is none of them.
    """
    backend = backend_of(located.spec)
    if backend is None:
        return kinds.of_backend(located.spec.backend), None
    if located.folder is None:
        return "none", None
    return backend.kind(located), tokenization.digest(modules.transformer_folder(located.folder, located.spec))


def load(
    located: Located, kind: Kind, runtime: RuntimeOptions | None = None, cache: VectorCache | None = None
) -> LanguageModel:
    """The language model of a located model. Raises ``ModelError``, also for a head that was never trained.

    With a cache, a model whose scores are there is not even loaded: its tokenizer alone is.
    """
    from embeval.encoders import shelves
    from embeval.encoders.encoder import BatchedEncoder

    backend, options = backend_of(located.spec), runtime or RuntimeOptions()
    if backend is None:
        raise EvaluationError(f"Models of the backend {located.spec.backend!r} have no language-model head.")
    if located.spec.args.get("trust_remote_code") and located.folder and shelves.code_elsewhere(located.folder):
        cache = None  # that code may change, and the same key would find what the old one computed
    tokenizer, limit = tokenization.located_tokenizer(located)
    frame = Frame.of(tokenizer, located.spec.name)
    kinds.refuse_no_mask(kind, frame.mask_id, located.spec.name)
    model = as_model(located.spec, kind)
    key = shelves.note_key(model, options) if cache is not None else ""

    def load_now() -> VariantBackend:
        return backend.load(located, kind, options, pad_id=frame.pad_id)

    def remember(known: shelves.Known) -> None:
        if cache is not None:
            cache.put_note(key, strict_json.dumps(shelves.known_of(known)).encode())

    encoder: BatchedEncoder[Any] | None = None
    if cache is not None and (note := cache.note(key)) is not None:
        with contextlib.suppress(ValueError, KeyError, TypeError):  # damaged on disk: loaded, and noted again
            lazy = shelves.LazyBackend(strict_json.loads(note), load_now, remember)
            encoder = BatchedEncoder(model, lazy, shelves=shelves.Shelves(cache, options))
    if encoder is None:
        encoder = BatchedEncoder(model, load_now())
        if cache is not None:
            remember(encoder)
            encoder = encoder.with_cache(shelves.Shelves(cache, options))
    return LanguageModel(located.spec, kind, tokenizer, frame, limit=limit, encoder=encoder)
