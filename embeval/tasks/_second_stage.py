"""The cross-encoder of a task that orders the first candidates anew: the option ``rerank``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from embeval.core.specs import TaskSpec
from embeval.errors import ConfigError, ModelError
from embeval.rerankers import loading as rerankers
from embeval.tasks import _options
from embeval.tasks._retrieval_options import RerankOptions


@dataclass(frozen=True)
class SecondStage:
    """A cross-encoder that was found."""

    options: RerankOptions
    """Its settings, with its folder where it is one."""
    located: rerankers.Located
    """The model with its revision, not yet loaded."""


def find(given: RerankOptions | str | None, spec: TaskSpec, *, root: Path) -> SecondStage | None:
    """What the option asks for; a folder is looked up under ``root``.

    Raises ``ConfigError`` or ``ModelError``, before anything runs, where there is no such model.
    """
    if given is None:
        return None
    options = RerankOptions(model=given) if isinstance(given, str) else given
    options = replace(options, model=_options.model_name(options.model, root))
    try:
        return SecondStage(options, rerankers.resolve(options.spec))
    except ConfigError as error:
        raise ConfigError(f"Task {spec.name!r}: {error}", key=("rerank", *error.key)) from None
    except ModelError as error:
        raise ModelError(f"Task {spec.name!r}, rerank: {error}") from None
