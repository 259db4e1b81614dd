"""Groups against truth tables by hand, and Holm's steps against his procedure on p-values."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from embeval.core.verdict import Outcome
from embeval.gates.logic import all_of, count, step_down

PASS, FAIL, OPEN, ERROR = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.ERROR


def by_completion(outcomes: tuple[Outcome, ...], needed: int) -> Outcome:
    """What all ways to decide the open rules agree on: three-valued logic by its definition (Kleene)."""
    if ERROR in outcomes:
        return ERROR
    ways = itertools.product(*[(PASS, FAIL) if each is OPEN else (each,) for each in outcomes])
    results = {sum(each is PASS for each in way) >= needed for way in ways}
    return OPEN if len(results) == 2 else PASS if results.pop() else FAIL


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_groups_are_what_every_completion_agrees_on(n: int) -> None:
    """For each combination of outcomes and each number needed; all of them for ``all``."""
    for outcomes in itertools.product(Outcome, repeat=n):
        for needed in range(1, n + 1):
            assert count(outcomes, needed) is by_completion(outcomes, needed)
        assert all_of(outcomes) is next(each for each in (ERROR, FAIL, OPEN, PASS) if each in outcomes)


def test_nothing_is_an_error() -> None:
    """An empty group decides nothing."""
    assert all_of([]) is ERROR
    assert count([], 0) is ERROR


@dataclass(frozen=True)
class Measured:
    """A rule with a p-value: passes at a level of p or more."""

    p: float
    alpha: float

    @property
    def outcome(self) -> Outcome:
        """Fails where the opposite test passes."""
        return PASS if self.p <= self.alpha else FAIL if 1.0 - self.p <= self.alpha else OPEN


def holm_rejects(p: list[float], alpha: float) -> int:
    """Hypotheses that Holm's procedure rejects, as in his paper of 1979."""
    ordered = sorted(p)
    for step, value in enumerate(ordered):
        if value > alpha / (len(p) - step):
            return step
    return len(p)


def test_the_steps_are_those_of_holm() -> None:
    """A group passes exactly where Holm's procedure rejects as many hypotheses as are needed."""
    rng = np.random.default_rng(5)
    passed = 0
    for _ in range(2000):
        m = int(rng.integers(1, 6))
        p = [float(each) for each in rng.choice([0.004, 0.01, 0.0125, 0.0166, 0.02, 0.025, 0.04, 0.05, 0.5, 0.99], m)]
        needed = int(rng.integers(1, m + 1))
        outcome, _, _ = step_down(lambda alpha, p=p: [Measured(each, alpha) for each in p], needed, 0.05)  # type: ignore[misc]
        assert (outcome is PASS) is (holm_rejects(p, 0.05) >= needed), (p, needed)
        passed += outcome is PASS
    assert 200 < passed < 1800


def test_a_group_fails_where_too_few_can_pass() -> None:
    """More than m - k members fail; one that is open keeps it open; an error stands over all."""
    fail, open_ = 0.999, 0.5
    for p, needed, expected in (
        ([fail, fail, open_], 2, FAIL),
        ([fail, open_, open_], 2, OPEN),
        ([fail, fail], 1, FAIL),
        ([0.03, fail], 1, OPEN),
        ([0.02, fail], 1, PASS),
    ):
        outcome, _, alpha = step_down(lambda a, p=p: [Measured(each, a) for each in p], needed, 0.05)  # type: ignore[misc]
        assert outcome is expected, (p, needed)
        assert alpha <= 0.05


@dataclass(frozen=True)
class Fixed:
    """A rule whose outcome is what it is."""

    outcome: Outcome


def test_an_error_beside_a_pass_is_an_error() -> None:
    """Also in ``any``: fail closed."""
    assert step_down(lambda _: [Fixed(PASS), Fixed(ERROR)], 1, 0.05)[0] is ERROR
