"""From a ``ModelSpec`` to a running encoder."""

from __future__ import annotations

from typing import Protocol

from embeval.core.protocols import Encoder
from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.encoders.locate import Located
from embeval.errors import ConfigError
from embeval.registry import Registry


class BackendType(Protocol):
    """What a module of ``embeval/encoders/backends`` holds under the name ``BACKEND``."""

    summary: str
    """One line for listings."""
    options: tuple[str, ...]
    """Names that ``ModelSpec.args`` may have."""

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        """The model with its revision, without loading it or importing anything heavy."""

    def load(self, located: Located, runtime: RuntimeOptions) -> Encoder:
        """The model, ready to encode. Raises ``ModelError``."""


BACKENDS: Registry[BackendType] = Registry(
    kind="encoder backend",
    package="embeval.encoders.backends",
    attribute="BACKEND",
    group="embeval.backends",
)


def resolve(spec: ModelSpec, *, verify: bool = False) -> Located:
    """The model with its revision resolved; loads nothing. ``verify`` hashes its files again."""
    for name in ("max_seq_length", "truncate_dim"):
        value = getattr(spec, name)
        if value is not None and value < 1:
            raise ConfigError(f"Model {spec.name!r}: {name} must be at least 1, not {value}.")
    return BACKENDS.get(spec.backend).resolve(spec, verify=verify)


def load(located: Located, runtime: RuntimeOptions | None = None) -> Encoder:
    """The encoder of a resolved model."""
    return BACKENDS.get(located.spec.backend).load(located, runtime or RuntimeOptions())
