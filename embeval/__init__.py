"""embeval: embedding-quality evaluation that a release decision can rest on.

Importing this package loads none of the heavy libraries; each name below is imported when it is first used. More is
in ``embeval.api``, whose functions carry the names of the folders that do the work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embeval.api import evaluate as evaluate
    from embeval.api import gate as gate
    from embeval.api import load_encoder as load_encoder
    from embeval.core.result import MetricValue as MetricValue
    from embeval.core.result import Result as Result
    from embeval.core.specs import ModelSpec as ModelSpec
    from embeval.core.specs import Role as Role
    from embeval.core.specs import RuntimeOptions as RuntimeOptions
    from embeval.core.specs import StatisticsOptions as StatisticsOptions
    from embeval.core.specs import TaskSpec as TaskSpec
    from embeval.errors import EmbevalError as EmbevalError

_HOME = {
    "evaluate": "embeval.api",
    "gate": "embeval.api",
    "load_encoder": "embeval.api",
    "MetricValue": "embeval.core.result",
    "Result": "embeval.core.result",
    "ModelSpec": "embeval.core.specs",
    "Role": "embeval.core.specs",
    "RuntimeOptions": "embeval.core.specs",
    "StatisticsOptions": "embeval.core.specs",
    "TaskSpec": "embeval.core.specs",
    "EmbevalError": "embeval.errors",
}

__all__ = [*_HOME, "__version__"]  # all of them text


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("embeval-toolkit")
    if name == "api":
        return import_module("embeval.api")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'embeval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
