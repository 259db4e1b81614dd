"""From a ``RerankerSpec`` to a running reranker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embeval.core.protocols import Reranker
from embeval.core.specs import RerankerSpec, RuntimeOptions
from embeval.errors import ModelError

if TYPE_CHECKING:
    from embeval.encoders.cache import VectorCache


def resolve(spec: RerankerSpec, verify: bool = False) -> RerankerSpec:
    """The spec."""
    return spec


def load(located: RerankerSpec, runtime: RuntimeOptions | None = None, cache: VectorCache | None = None) -> Reranker:
    """None here."""
    raise ModelError(f"Reranker {located.name!r} can't be loaded.")
