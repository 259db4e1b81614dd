"""Three-valued logic of groups, in which broken evidence wins over everything, and Holm's steps within them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from embeval.core.verdict import Outcome

WORST_FIRST = (Outcome.ERROR, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
"""The order in which outcomes win where all have to pass."""


class Judged(Protocol):
    """Something with an outcome."""

    @property
    def outcome(self) -> Outcome:
        """What became of it."""


J = TypeVar("J", bound=Judged)


def all_of(outcomes: Sequence[Outcome]) -> Outcome:
    """The worst; tests at α each need no correction for it (intersection-union). Nothing at all is an error."""
    return next((outcome for outcome in WORST_FIRST if outcome in outcomes), Outcome.ERROR)


def count(outcomes: Sequence[Outcome], needed: int) -> Outcome:
    """Of rules of which ``needed`` have to pass: pass, fail where too few can, error where any is in error."""
    if not outcomes or Outcome.ERROR in outcomes:
        return Outcome.ERROR
    if sum(outcome is Outcome.PASS for outcome in outcomes) >= needed:
        return Outcome.PASS
    return Outcome.FAIL if outcomes.count(Outcome.FAIL) > len(outcomes) - needed else Outcome.INCONCLUSIVE


def step_down(judge: Callable[[float], Sequence[J]], needed: int, alpha: float) -> tuple[Outcome, Sequence[J], float]:
    """(outcome, members as they were last judged, α of that) of a group of which ``needed`` members have to pass.

    The i-th of m members has to pass at α / (m - i + 1), for i up to ``needed``; so the probability that one member
    or more is wrongly counted is at most α. Source: Holm, Scandinavian Journal of Statistics 1979.
    """
    members = judge(alpha)
    m, step_alpha = len(members), alpha
    for step in range(needed):
        step_alpha = alpha / (m - step)
        members = judge(step_alpha)
        if Outcome.ERROR in [member.outcome for member in members]:
            return Outcome.ERROR, members, step_alpha
        if sum(member.outcome is Outcome.PASS for member in members) <= step:
            # Here the steps stop: what would pass only at a larger level is not counted.
            failed = sum(member.outcome is Outcome.FAIL for member in members)
            return (Outcome.FAIL if failed > m - needed else Outcome.INCONCLUSIVE), members, step_alpha
    return count([member.outcome for member in members], needed), members, step_alpha
