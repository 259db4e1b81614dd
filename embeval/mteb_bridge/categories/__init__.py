"""One file per category of mteb's tasks. Each holds ``CATEGORY``, an object that fits ``_category.Category``."""

from __future__ import annotations

from typing import Any

from embeval.errors import EvaluationError
from embeval.mteb_bridge.categories._category import (
    ONE_SUBSET,
    PARITY_PREFIX,
    SEARCHED,
    Category,
    Gathered,
    Outcome,
    Parity,
    Setting,
    splits_of,
)
from embeval.registry import Registry

__all__ = [
    "CATEGORIES",
    "ONE_SUBSET",
    "PARITY_PREFIX",
    "SEARCHED",
    "Category",
    "Gathered",
    "Outcome",
    "Parity",
    "Setting",
    "of",
    "splits_of",
]

CATEGORIES: Registry[Category] = Registry(
    kind="category of mteb tasks",
    package="embeval.mteb_bridge.categories",
    attribute="CATEGORY",
    group="embeval.mteb_categories",
)


def of(task: Any) -> Category:
    """The category of a task of mteb. Raises ``EvaluationError`` for one that is not for texts."""
    modalities = [each for each in task.metadata.modalities if each != "text"]
    if modalities:
        raise EvaluationError(
            f"mteb:{task.metadata.name} needs {' and '.join(modalities)}, and embeval evaluates models of texts."
        )
    known = {CATEGORIES.get(name).task_class: CATEGORIES.get(name) for name in CATEGORIES.names()}
    for parent in type(task).__mro__:
        if parent.__name__ in known:
            return known[parent.__name__]
    raise EvaluationError(
        f"mteb:{task.metadata.name} is of the type {task.metadata.type}, which embeval doesn't know. "
        f"It knows {', '.join(CATEGORIES.names())}."
    )
