"""From a ``RerankerSpec`` to a running reranker."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from embeval.core import strict_json
from embeval.core.protocols import Reranker
from embeval.core.specs import Dtype, RerankerSpec, RuntimeOptions
from embeval.encoders import locate
from embeval.errors import ConfigError
from embeval.registry import Registry

if TYPE_CHECKING:
    from embeval.encoders.cache import VectorCache


@dataclass(frozen=True)
class Located:
    """A reranker found, not yet loaded."""

    spec: RerankerSpec
    """The spec with its revision resolved and its name free of local paths."""
    folder: Path | None
    """Folder to load from; None for a reranker that needs no files."""


class BackendType(Protocol):
    """What a module of ``embeval/rerankers/backends`` holds under the name ``BACKEND``."""

    summary: str
    """One line for listings."""
    options: tuple[str, ...]
    """Names that ``RerankerSpec.args`` may have."""
    dtypes: tuple[Dtype, ...]
    """Number formats that it runs models in, float32 first."""

    def resolve(self, spec: RerankerSpec, *, verify: bool) -> Located:
        """The reranker with its revision, without loading it or importing anything heavy."""

    def load(self, located: Located, runtime: RuntimeOptions) -> Reranker:
        """The reranker, ready to score. Raises ``ModelError``."""


RERANKERS: Registry[BackendType] = Registry(
    kind="reranker backend",
    package="embeval.rerankers.backends",
    attribute="BACKEND",
    group="embeval.rerankers",
)


def resolve(spec: RerankerSpec, verify: bool = False) -> Located:
    """The reranker with its revision resolved; loads nothing. ``verify`` hashes its files again."""
    backend = RERANKERS.get(spec.backend)
    if unknown := sorted(set(spec.args) - set(backend.options)):
        raise ConfigError(
            f"Reranker backend {spec.backend!r} has no option {unknown[0]!r}; it takes {', '.join(backend.options)}.",
            key=("args", unknown[0]),
        )
    if spec.dtype not in backend.dtypes:
        raise ConfigError(
            f"Reranker {spec.name!r}: the backend {spec.backend!r} has {', '.join(backend.dtypes)}, "
            f"but no dtype {spec.dtype!r}.",
            key=("dtype",),
        )
    if spec.max_seq_length is not None and spec.max_seq_length < 1:
        raise ConfigError(
            f"Reranker {spec.name!r}: max_seq_length must be at least 1, not {spec.max_seq_length}.",
            key=("max_seq_length",),
        )
    return backend.resolve(spec, verify=verify)


def find(spec: RerankerSpec, *, verify: bool, graphs: Sequence[str] = ()) -> Located:
    """The files of a reranker given by hub name or folder; ``graphs`` as in ``encoders.locate.locate``."""
    from embeval.rerankers.cross_encoder import as_model

    found = locate.locate(as_model(spec), verify=verify, graphs=graphs)
    return Located(replace(spec, name=found.spec.name, revision=found.spec.revision), found.folder)


def load(located: Located, runtime: RuntimeOptions | None = None, cache: VectorCache | None = None) -> Reranker:
    """The reranker of a resolved spec.

    With a cache, a model whose scores are there is not even loaded: it is loaded when a pair is missing.
    """
    from embeval.encoders import shelves
    from embeval.encoders.encoder import BatchedEncoder
    from embeval.rerankers.cross_encoder import CrossEncoder, as_model

    backend, options = RERANKERS.get(located.spec.backend), runtime or RuntimeOptions()
    remote = located.spec.args.get("trust_remote_code") and located.folder is not None
    if remote and located.folder is not None and shelves.code_elsewhere(located.folder):
        cache = None  # that code may change, and the same key would find what the old one computed
    model = as_model(located.spec)
    key = shelves.note_key(model, options) if cache is not None else ""

    def load_now() -> shelves.Loaded:
        reranker = backend.load(located, options)
        assert isinstance(reranker, CrossEncoder)
        return reranker.encoder.backend

    def remember(known: shelves.Known) -> None:
        if cache is not None:
            cache.put_note(key, strict_json.dumps(shelves.known_of(known)).encode())

    if cache is not None and (note := cache.note(key)) is not None:
        with contextlib.suppress(ValueError, KeyError, TypeError):  # damaged on disk: loaded, and noted again
            lazy = shelves.LazyBackend(strict_json.loads(note), load_now, remember)
            encoder = BatchedEncoder(model, lazy, shelves=shelves.Shelves(cache, options))
            return CrossEncoder(located.spec, encoder)
    reranker = backend.load(located, options)
    if not isinstance(reranker, CrossEncoder):
        return reranker  # a plug-in with ways of its own
    if options.batch_tokens == "auto" or (options.batch_tokens is None and reranker.info.device.startswith("cuda")):
        reranker = reranker.with_measured_budget()
    if cache is None:
        return reranker
    remember(reranker.encoder)
    return reranker.with_cache(shelves.Shelves(cache, options))
