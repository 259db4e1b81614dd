"""What a policy blocks and what it lets pass, for the terminal and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embeval.cli import _state
from embeval.core import border
from embeval.core.words import plural
from embeval.errors import ExitCode
from embeval.workflows import gating

if TYPE_CHECKING:
    from embeval.gates.self_test import SelfTest, Trial


def shown(request: gating.Request) -> ExitCode:
    """Tries a policy out and prints what came of it: 0 where everything was blocked, else 1."""
    found = gating.try_out(request)
    if _state.settings.json:
        _state.out_json({"passed": found.passed, "exit_code": int(found.exit_code), **border.dump(found)})
        return found.exit_code
    for rule in dict.fromkeys(trial.rule for trial in found.trials):
        _rule(rule, [trial for trial in found.trials if trial.rule == rule])
    for text in found.not_tried:
        _state.out_text(f"Not tried: {text}\n")
    for text in found.unwatched:
        _state.out_text(f"Not watched: {text}\n")
    _state.out_text(f"{_verdict(found)}\n")
    return found.exit_code


def _rule(rule: str, trials: list[Trial]) -> None:
    """One rule: how much it blocked, and each harm that it let pass."""
    passed = [trial for trial in trials if not trial.blocked]
    _state.out_text(f"{'✗' if passed else '✓'} {rule}: {len(trials) - len(passed)} of {len(trials)} blocked\n")
    for trial in passed:
        _state.out_text(f"    Passes: {trial.harm}\n      {trial.reason}\n      {trial.weakness}\n")


def _verdict(found: SelfTest) -> str:
    if found.passed:
        return f"The policy blocks everything that was tried: {plural(len(found.trials), 'harm')}."
    if not found.trials:
        return "The policy failed its self-test: nothing could be tried on it."
    n = sum(not trial.blocked for trial in found.trials)
    return f"The policy failed its self-test: it lets {n} of {plural(len(found.trials), 'harm')} pass."
