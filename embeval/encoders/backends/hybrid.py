"""``hybrid``: several systems whose rankings become one, such as ``-m hybrid:demo+bm25``.

The name lists the parts, ``[backend:]name`` each, with ``+`` between them. ``args``: ``method``, ``rrf`` (default) or
``weighted``; ``rrf_k`` (default 60); ``weights``, one per part as in ``0.7,0.3``, or the first of two, whose other is
what is left to 1. Other options go to those parts whose backend has them: ``language=german`` to ``bm25``. Settings of
vectors (``pooling``, ``prompts``, ``truncate_dim``, …) go to the parts that have vectors.

The revision is a hash of the parts with theirs, and names the hybrid together with its options.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from embeval.core.protocols import Encoder, Fusion, Hybrid, System
from embeval.core.specs import Dtype, ModelSpec, RuntimeOptions, Scalar
from embeval.encoders import loading, rankers
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, ModelError

NAME = "hybrid"
OWN_OPTIONS = ("method", "rrf_k", "weights")
MAX_RRF_K = 1_000_000


@dataclass(frozen=True)
class _LocatedHybrid(Located):
    """A hybrid whose parts were found."""

    parts: tuple[ModelSpec, ...]
    """The parts by the names that they were asked for by, with the revisions that were found: loading them finds the
    same ones, or fails."""


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """What ``args`` say of the fusion, checked."""

    method: Fusion
    rrf_k: int
    weights: tuple[float, ...]


class _Backend:
    summary = "several systems fused into one ranking, as in hybrid:demo+bm25"
    dtypes: tuple[Dtype, ...] = ("float32",)

    @property
    def options(self) -> tuple[str, ...]:
        """Its own, and those of every backend that may be a part."""
        others = (loading.BACKENDS.get(name).options for name in loading.BACKENDS.names() if name != NAME)
        return tuple(dict.fromkeys([*OWN_OPTIONS, *(option for options in others for option in options)]))

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        parts = _parts(spec)
        _settings(spec, len(parts))
        located = [loading.resolve(part, verify=verify) for part in parts]
        whole = hashlib.sha256("\n".join(each.spec.digest for each in located).encode())
        revision = f"sha256:{whole.hexdigest()}"
        if spec.revision not in (None, revision):
            raise ModelError(
                f"Hybrid {spec.name!r} is not the revision that was asked for: a part is another one.\n"
                f"Asked: {spec.revision}\nFound: {revision}"
            )
        # Short names: a result is named by them, and the revision tells which parts these were.
        name = "+".join(each.spec.name.rpartition("/")[2] or each.spec.name for each in located)
        pinned = tuple(replace(part, revision=each.spec.revision) for part, each in zip(parts, located, strict=True))
        return _LocatedHybrid(replace(spec, name=name, revision=revision), None, pinned)

    def load(self, located: Located, runtime: RuntimeOptions) -> System:
        return self.compose(located, lambda part: loading.load_system(loading.resolve(part), runtime))

    def compose(self, located: Located, load: Callable[[ModelSpec], System]) -> Hybrid:
        """The hybrid with its parts loaded."""
        assert isinstance(located, _LocatedHybrid)
        settings = _settings(located.spec, len(located.parts))
        parts = []
        for spec in located.parts:
            part = load(spec)
            assert not isinstance(part, Hybrid)
            parts.append(part)
        first = next((part for part in parts if isinstance(part, Encoder)), parts[0])
        extra: dict[str, str] = {}
        for number, part in enumerate(parts, start=1):
            extra |= {**part.info.extra, f"part {number}": f"{part.spec.label}, {part.spec.revision}"}
        return Hybrid(
            spec=located.spec,
            info=replace(first.info, extra=extra),
            parts=tuple(parts),
            method=settings.method,
            rrf_k=settings.rrf_k,
            weights=settings.weights,
        )


def _parts(spec: ModelSpec) -> list[ModelSpec]:
    """The specs of the parts. Raises ``ConfigError`` for names, settings and options that fit none."""
    named = [loading.named(text.strip()) for text in spec.name.split("+")]
    if len(named) < 2:
        raise ConfigError(f"Hybrid {spec.name!r}: at least two parts are needed, as in hybrid:demo+bm25.")
    if not all(name for _, name in named):
        raise ConfigError(f"Hybrid {spec.name!r}: a part has no name. Put + between the parts only.")
    if any(backend == NAME for backend, _ in named):
        raise ConfigError(f"Hybrid {spec.name!r}: a hybrid can't be a part of another. Name its parts instead.")
    if twice := [name for (_, name), n in Counter(named).items() if n > 1]:
        raise ConfigError(f"Hybrid {spec.name!r}: the part {twice[0]!r} is named twice. Give it a weight instead.")
    parts = [_part(spec, backend or ModelSpec(name=name).backend, name) for backend, name in named]
    for option in sorted(set(spec.args) - set(OWN_OPTIONS)):
        if not any(option in part.args for part in parts):
            raise ConfigError(f"Hybrid {spec.name!r}: neither it nor a part of it has the option {option!r}.")
    if all(_ranks(part) for part in parts):
        rankers.refuse_settings(spec)
    return parts


def _part(spec: ModelSpec, backend: str, name: str) -> ModelSpec:
    part = ModelSpec(name=name, backend=backend)
    theirs = set(loading.BACKENDS.get(backend).options) - set(OWN_OPTIONS)
    args = {option: value for option, value in spec.args.items() if option in theirs}
    settings: Mapping[str, Any] = {} if _ranks(part) else rankers.settings_of_vectors(spec)
    return replace(part, args=args, **settings)


def _ranks(part: ModelSpec) -> bool:
    return isinstance(loading.BACKENDS.get(part.backend), rankers.RankingBackend)


def _settings(spec: ModelSpec, n_parts: int) -> _Settings:
    method, rrf_k = spec.args.get("method", "rrf"), spec.args.get("rrf_k", 60)
    if method not in get_args(Fusion):
        raise ConfigError(f"Backend 'hybrid': method must be {' or '.join(get_args(Fusion))}, not {method!r}.")
    if "rrf_k" in spec.args and method != "rrf":
        raise ConfigError("Backend 'hybrid': rrf_k is part of the method rrf. Leave it out.")
    if isinstance(rrf_k, bool) or not isinstance(rrf_k, int) or not 0 <= rrf_k <= MAX_RRF_K:
        raise ConfigError(f"Backend 'hybrid': rrf_k must be a whole number from 0 to {MAX_RRF_K}, not {rrf_k!r}.")
    weights = _weights(spec.args["weights"], n_parts) if "weights" in spec.args else ()
    return _Settings(method="rrf" if method == "rrf" else "weighted", rrf_k=rrf_k, weights=weights)


def _weights(value: Scalar, n_parts: int) -> tuple[float, ...]:
    """One per part."""
    try:
        given = tuple(float(each) for each in str(value).split(",")) if not isinstance(value, bool) else ()
    except ValueError:
        given = ()
    if len(given) == 1 and n_parts == 2 and 0 <= given[0] <= 1:
        given = (given[0], 1.0 - given[0])
    if len(given) != n_parts or not all(math.isfinite(each) and each >= 0 for each in given) or not any(given):
        raise ConfigError(
            f"Backend 'hybrid': weights must be {n_parts} numbers from 0 with commas between them"
            f"{', or one from 0 to 1 for the first part' if n_parts == 2 else ''}, not {value!r}."
        )
    return given


BACKEND = _Backend()
