"""What the models of a board take, and how they stand beside the reference and the one in use."""

from __future__ import annotations

from collections.abc import Sequence

from embeval.core.facts import ModelFacts
from embeval.core.result import Result
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Measures, Model
from embeval.workflows.boards.gathering import Gathered


def facts(results: Sequence[Result]) -> ModelFacts:
    """What is known of a model by its results."""
    return next((each.facts for each in results if each.facts is not None), ModelFacts())


def measures(results: Sequence[Result], definition: Definition) -> Measures:
    """What a model takes, by its results."""
    return Measures()


def beside(models: Sequence[Model], definition: Definition, gathered: Gathered) -> tuple[Model, ...]:
    """The models with what they keep of the reference, and with the verdict of the gate."""
    return tuple(models)
