"""Whether each model of a board may replace the one in use, by the policy that the board names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from embeval.compare import evidence
from embeval.core.paths import readable
from embeval.core.verdict import Outcome, RuleVerdict, Verdict
from embeval.core.words import plural
from embeval.errors import EmbevalError
from embeval.gates import policy as policies
from embeval.leaderboard.board import RowKey
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import GateOutcome, Model
from embeval.store.pins import Tag
from embeval.store.results import Stored
from embeval.store.tags import Tags
from embeval.workflows import gating
from embeval.workflows.boards.gathering import Gathered
from embeval.workflows.gating import Request
from embeval.workflows.sides import TAG, Side

OUTCOMES: dict[Outcome, Literal["pass", "fail", "inconclusive", "error"]] = {
    Outcome.PASS: "pass",
    Outcome.FAIL: "fail",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.ERROR: "error",
}
"""What a board calls them."""
_FURTHER = re.compile(r"(?<=\.) (?=[A-Z])")
"""Before the second sentence of a reason."""
IN_USE = GateOutcome(outcome="in_use", sentence="It is the model in use.")


def judged(
    models: Sequence[Model], production: str | None, definition: Definition, gathered: Gathered
) -> tuple[tuple[Model, ...], list[str]]:
    """(the models with the verdict of the gate, what a reader should know of it).

    Every model that was run here is a candidate, so that picking the best is part of the correction; published ones
    have no items and are not judged. Ages and waivers go by the day of the newest result and not by today, so that
    the same results give the same board. Raises ``ConfigError`` for a policy that can't be read.
    """
    tag = _tag(definition, gathered)
    models = tuple(replace(each, gate=IN_USE) if _in_use(each, production, tag) else each for each in models)
    if definition.board.gate is None:
        return models, []
    file = policies.load(definition.folder(definition.board.gate))
    if file.policy.compares and production is None:
        raise definition.wrong(("gate",), "its rules compare with the model in use. Name that under 'production'.")
    sides, at = _sides(models, gathered), _newest(gathered)
    candidates = [sides[each.label] for each in models if each.gate is None and each.label in sides]
    if at is None or not candidates:
        return models, []
    baseline, trouble = None, None
    if file.policy.compares and production is not None:
        try:
            baseline = _tagged(production, definition, gathered) or sides[production]
        except EmbevalError as error:
            trouble = f"The model in use: {error}"
    request = Request(file.policy, str(file.path), definition.folder(definition.board.results[0]))
    verdicts = gating.verdicts(request, candidates, baseline, trouble, now=at.astimezone(UTC))
    outcomes = {side.label: _outcome(verdict, definition) for side, verdict in zip(candidates, verdicts, strict=True)}
    told = f"The gate judges as of {at.date().isoformat()}, the day of the newest result."
    return tuple(replace(each, gate=each.gate or outcomes.get(each.label)) for each in models), [told]


def _tag(definition: Definition, gathered: Gathered) -> Tag | None:
    """The tag that the model in use is named by; None where it isn't named by one."""
    given = definition.board.production
    return None if given is None else gathered.tags.get(given.removeprefix(TAG))


def _in_use(model: Model, production: str | None, tag: Tag | None) -> bool:
    if model.imported is not None:
        return False
    return model.label == production if tag is None else tag.model_digest.startswith(model.digest)


def _newest(gathered: Gathered) -> datetime | None:
    """When the newest result that was made here was begun."""
    own = [each for each in gathered.everything if each.imported is None]
    return max((at for each in own if (at := evidence.started(each)) is not None), default=None)


def _sides(models: Sequence[Model], gathered: Gathered) -> dict[str, Side]:
    """Label -> the model with all its results, those of tasks that aren't shown too."""
    stored: dict[tuple[str, str], list[Stored]] = {}
    for _, each in gathered.places.values():
        stored.setdefault(_key(RowKey.of(each.result)), []).append(each)
    own = [each for each in models if each.imported is None]
    return {each.label: Side(each.label, tuple(stored.get((each.spec.name, each.digest), ()))) for each in own}


def _key(row: RowKey) -> tuple[str, str]:
    return row.name, row.digest


def _tagged(production: str, definition: Definition, gathered: Gathered) -> Side | None:
    """What a tag pins; None where the model in use isn't named by one.

    Raises ``StoreError`` where a pinned result has changed or gone.
    """
    name = (definition.board.production or "").removeprefix(TAG)
    if name not in gathered.tags:
        return None
    folders = [Tags(definition.folder(given)) for given in definition.board.results]
    tags = next(each for each in folders if name in each.all())
    return Side(production, tags.get(name), tag=name)


def _outcome(verdict: Verdict, definition: Definition) -> GateOutcome:
    n = len(verdict.rules)
    if verdict.outcome is Outcome.PASS:
        held = sum(rule.outcome is Outcome.PASS for rule in verdict.rules)
        sentence = f"{'The rule holds' if n == 1 else f'All {n} rules hold'}." if held == n else _let_pass(held, n)
        return GateOutcome(outcome="pass", sentence=sentence)
    first, *others = [rule for rule in verdict.rules if rule.blocks]
    more = f" {plural(len(others), 'more rule blocks', 'more rules block')}." if others else ""
    told = tuple(_told(each, definition) for rule in (first, *others) for each in (rule, *_within(rule)))
    further = _FURTHER.search(told[0], len(first.rule))
    sentence = told[0] if further is None else told[0][: further.start()]
    return GateOutcome(outcome=OUTCOMES[verdict.outcome], sentence=sentence + more, rules=told)


def _let_pass(held: int, n: int) -> str:
    return f"{held} of {n} rules hold; the policy lets the others pass."


def _within(group: RuleVerdict) -> list[RuleVerdict]:
    """The rules of a group that don't hold."""
    return [each for rule in group.rules if rule.blocks for each in (rule, *_within(rule))]


def _told(rule: RuleVerdict, definition: Definition) -> str:
    """A rule with its reason, in one line and without a path of this machine."""
    reason = " ".join(rule.reason.split())
    for given in definition.board.results:
        reason = reason.replace(str(definition.folder(given)), given)
    return readable(f"{rule.rule}: {reason}")
