"""What each model of a board keeps of the reference: quality, size, bytes of a vector, speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from embeval.leaderboard import ranking
from embeval.leaderboard.definition import RankBy
from embeval.leaderboard.snapshot import Column, Model, Retention


def beside(
    models: Sequence[Model], reference: int | None, columns: Sequence[Column], rank_by: RankBy
) -> tuple[Model, ...]:
    """The models as fractions of the one at the place ``reference``; that one itself has none."""
    if reference is None:
        return tuple(models)
    whole = models[reference]
    falling = not any(columns[place].higher_is_better for place in ranking.ranked(columns))
    return tuple(
        each if place == reference else replace(each, retention=_of(each, whole, rank_by, falling=falling))
        for place, each in enumerate(models)
    )


def _of(model: Model, whole: Model, rank_by: RankBy, *, falling: bool) -> Retention:
    own, other = model.measures, whole.measures
    quality = [
        each.standing.mean_type if rank_by == "mean_type" else each.standing.mean_task for each in (model, whole)
    ]
    return Retention(
        quality=_ratio(*(reversed(quality) if falling else quality)),
        size=_ratio(model.facts.weight_bytes, whole.facts.weight_bytes),
        vectors=_ratio(own.vector_bytes, other.vector_bytes),
        speed=_ratio(own.tokens_per_s, other.tokens_per_s) if own.machine == other.machine else None,
    )


def _ratio(part: float | None, whole: float | None) -> float | None:
    """None where either isn't known, and where the whole is nothing or below: there is no share of that."""
    return None if part is None or whole is None or whole <= 0 else part / whole
