"""Whether a policy would block what it is there to block: evidence is spoiled in known ways, and each must not pass.

Two kinds of harm. Broken evidence (queries left out, values missing, scores edited, other data, the same result twice)
must end in an error, wherever a rule speaks of it. Worse results must be blocked by the rule that watches them: the
baseline's items, worsened by twice the margin of a ``no_regression``; a candidate no better than its baseline for an
``improve``; values just beyond a ``min`` or ``max``. Nothing is written, and every draw has the policy's seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial

import numpy as np

from embeval import metrics
from embeval.compare import evidence as proof
from embeval.compare import facts, pairs
from embeval.compare.evidence import Evidence
from embeval.core.border import BORDER
from embeval.core.records import Column, ItemRecords
from embeval.core.result import Result
from embeval.core.verdict import Outcome, RuleVerdict
from embeval.errors import EvaluationError, EvidenceError, ExitCode
from embeval.gates import decide, harms, measure, worsening
from embeval.gates.decide import Case, Material
from embeval.gates.harms import Spoil
from embeval.gates.policy import MetricRef, Place, Policy, Rule
from embeval.stats.rng import seed_sequence

NOISE = "self-test"
"""Names the random draws of this module."""


@dataclass(frozen=True)
class Sides:
    """What is at hand on one place of a policy."""

    candidate: Evidence
    """The candidate's result."""
    baseline: Evidence | None = None
    """The baseline's; None where no rule compares."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One harm and what became of it."""

    __pydantic_config__ = BORDER

    harm: str
    """What was done, in words."""
    rule: str
    """The rule that has to block it."""
    outcome: Outcome
    """What the policy made of it."""
    reason: str
    """The rule's reason."""
    blocked: bool
    """Whether it would have been stopped."""
    weakness: str | None = None
    """Where it was not: why, and what to change."""


@dataclass(frozen=True, kw_only=True)
class SelfTest:
    """Everything that was tried on a policy."""

    __pydantic_config__ = BORDER

    trials: tuple[Trial, ...]
    """Every harm, by rule."""
    unwatched: tuple[str, ...] = ()
    """Tasks and main metrics of the candidate that no rule speaks of, as sentences."""
    not_tried: tuple[str, ...] = ()
    """What could not be tried, and why."""

    @property
    def passed(self) -> bool:
        """Whether something was tried and all of it was blocked."""
        return bool(self.trials) and all(trial.blocked for trial in self.trials)

    @property
    def exit_code(self) -> ExitCode:
        """What ``embeval gate --self-test`` ends with."""
        return ExitCode.OK if self.passed else ExitCode.OVER_BOUND


def run(
    policy: Policy,
    sides: Mapping[Place, Sides],
    *,
    today: date,
    results: Sequence[Result] = (),
    n_candidates: int = 1,
) -> SelfTest:
    """What the policy makes of each harm. ``results`` are all of the candidate, to tell which no rule watches.

    Raises ``EvidenceError`` where a place of the policy has no evidence to spoil, or where a rule can't be decided on
    the evidence as it is: then nothing that is made of it would show anything.
    """
    for place in policy.places:
        if place not in sides:
            raise EvidenceError(f"There is no result on {place} to try the policy on. Run the evaluation first.")
        if _compared(policy, place) and sides[place].baseline is None:
            raise EvidenceError(f"There is no baseline on {place} to try the policy with.")
    bench = _Bench(policy, {place: _two(side) for place, side in sides.items()}, today, n_candidates)
    for rule in policy.rules:
        if (as_it_is := bench.judged(rule, {})).outcome is Outcome.ERROR:
            raise EvidenceError(f"{rule.text}: it can't be decided even on what is stored. {_why(as_it_is)}")
    trials: list[Trial] = []
    not_tried: list[str] = []
    for rule in policy.rules:
        for found in (*_broken(bench, rule), *_worse(bench, rule)):
            if isinstance(found, Trial):
                trials.append(found)
            elif found not in not_tried:
                not_tried.append(found)
    return SelfTest(trials=tuple(trials), unwatched=tuple(_unwatched(policy, results)), not_tried=tuple(not_tried))


@dataclass(frozen=True)
class _Bench:
    """The policy with everything that it is tried on."""

    policy: Policy
    sides: Mapping[Place, Sides]
    today: date
    n_candidates: int

    def value(self, evidence: Evidence, ref: MetricRef) -> float:
        """A metric of some evidence. Raises ``EvidenceError`` where it is undefined."""
        return measure.alone(evidence, ref, replace(self.policy.resampling, resamples=0)).value

    def judged(self, rule: Rule, spoiled: Mapping[Place, Sequence[Spoil]]) -> RuleVerdict:
        """What the policy makes of one of its rules once some places are spoiled."""
        places = dict.fromkeys(single.ref.place for single in _singles(rule))
        materials = {place: self._material(place, spoiled.get(place, ())) for place in places}
        alone = replace(self.policy, rules=(rule,))
        case = Case(candidate="spoiled", materials=materials, baseline="baseline")
        return decide.judge(alone, case, today=self.today, n_candidates=self.n_candidates).rules[0]

    def _material(self, place: Place, spoils: Sequence[Spoil]) -> Material:
        """What a gate would hold in its hands: spoiled evidence goes through the checks that any goes through."""
        candidate: Evidence | None = self.sides[place].candidate
        baseline = self.sides[place].baseline
        for spoil in spoils:
            if candidate is not None:
                candidate = spoil(candidate)
        if candidate is None:
            return Material()
        try:
            now = datetime.combine(self.today, datetime.max.time(), tzinfo=UTC)
            proof.refuse_future(candidate.result, candidate.source, now=now)
            candidate = proof.checked(candidate)
            if baseline is None or not _compared(self.policy, place):
                return Material(candidate)
            return Material(candidate, pairs.pair(baseline, candidate, self.policy.resampling))
        except EvaluationError as error:
            return Material(problem=str(error))

    def trial(self, rule: Rule, harm: str, spoiled: Mapping[Place, Sequence[Spoil]]) -> Trial:
        """One harm, tried. Raises ``EvidenceError`` where it can't be done to this evidence."""
        verdict = self.judged(rule, spoiled)
        lets_pass = verdict.outcome is Outcome.INCONCLUSIVE and self.policy.on_inconclusive == "pass"
        blocked = verdict.blocks and not lets_pass
        return Trial(
            harm=harm,
            rule=verdict.rule,
            outcome=verdict.outcome,
            reason=verdict.reason,
            blocked=blocked,
            weakness=None if blocked else _weakness(rule, verdict, lets_pass),
        )


def _two(sides: Sides) -> Sides:
    """The same; where one result is both sides, its items are taken for those of another."""
    if sides.baseline is None or sides.baseline.digest != sides.candidate.digest:
        return sides
    return replace(sides, candidate=replace(sides.candidate, digest=f"{sides.candidate.digest} again"))


def _why(verdict: RuleVerdict) -> str:
    """The reason of an error, of a group that of its first broken rule."""
    broken = next((each for each in verdict.rules if each.outcome is Outcome.ERROR), None)
    return verdict.reason if broken is None else _why(broken)


def _weakness(rule: Rule, verdict: RuleVerdict, lets_pass: bool) -> str:
    if lets_pass:
        return "The evidence is too little to show it, and on_inconclusive: pass lets it through. Set it to fail."
    if verdict.waiver is not None:
        return f"A waiver lets it through until {verdict.waiver.until}: {verdict.waiver.reason}"
    if rule.kind == "no_regression":
        return f"The margin {rule.margin} is larger than anything that can be lost here. Give a smaller one."
    return "The rule is too weak to notice it. Give a tighter threshold, or add a no_regression rule."


# Broken evidence


def _broken(bench: _Bench, rule: Rule) -> Iterator[Trial | str]:
    """Harm to the evidence on each place of a rule, one at a time: each must be an error."""
    for place in dict.fromkeys(single.ref.place for single in _singles(rule)):
        watched = [single.ref.metric for single in _singles(rule) if single.ref.place == place]
        sides = bench.sides[place]
        baseline = sides.baseline if _compared(rule, place) else None
        for harm, spoil in harms.broken(str(place), watched, sides.candidate, baseline):
            try:
                trial = bench.trial(rule, harm, {place: [spoil]})
            except EvaluationError as error:
                yield f"{harm}: {error}"
                continue
            if trial.outcome is not Outcome.ERROR and trial.blocked:
                weakness = "It counts as a bad result and not as broken evidence, which a waiver could excuse."
                trial = replace(trial, blocked=False, weakness=weakness)
            yield trial
        if not _compared(rule, place):
            yield (
                f"{place}: items left out, and other data, are noticed only by a rule that compares with a baseline; "
                f"{rule.text} does not."
            )


# Worse results


def _worse(bench: _Bench, rule: Rule) -> Iterator[Trial | str]:
    """Harm to what each part of a rule watches. Of a group of which not all have to pass, to all of it at once."""
    for unit in _units(rule):
        for on_every_item in (False, True):
            spoiled: dict[Place, list[Spoil]] = {}
            told = []
            for single in unit:
                try:
                    found = _spoil(bench, single, on_every_item)
                except EvaluationError as error:
                    yield f"{single.text}: {error}"
                    continue
                if found is not None:
                    told.append(found[0])
                    spoiled.setdefault(single.ref.place, []).append(found[1])
            try:
                if told:
                    yield bench.trial(rule, "; ".join(told), spoiled)
            except EvaluationError as error:
                yield f"{rule.text}: {error}"


def _units(rule: Rule) -> Iterator[tuple[Rule, ...]]:
    """Single rules that are to be hurt together: in ``all`` each alone does, in other groups only all of them."""
    if not rule.members:
        yield (rule,)
    elif rule.kind == "all":
        for member in rule.members:
            yield from _units(member)
    else:
        yield tuple(_singles(rule))


def _spoil(bench: _Bench, rule: Rule, on_every_item: bool) -> tuple[str, Spoil] | None:
    """(in words, what does it) of one rule; None where that is no other harm than on some items.

    Raises ``EvidenceError`` where nothing can be tried.
    """
    ref = _one_label(bench, rule)
    if ref.metric in facts.NAMES:
        raise EvidenceError("a fact of the result, which has no items to make worse.")
    if facts.is_timing(ref.metric) and rule.compares:
        raise EvidenceError("times are compared only where both were measured in turns.")
    where = f"{ref.place}/{ref.metric}" + (f" on {ref.slice}:{ref.label}" if ref.slice is not None else "")
    if not rule.compares:
        return None if on_every_item else _beyond(bench, rule, ref, where)
    baseline = bench.sides[ref.place].baseline
    assert baseline is not None
    if rule.kind == "improve":
        spoil: Spoil = partial(_as_the_baseline, baseline=baseline)
        return None if on_every_item else (f"{where} as the baseline has it", spoil)
    metric, value = metrics.get(ref.metric), bench.value(baseline, ref)
    if on_every_item and len(metric.columns) > 1:
        return None  # it is no mean of values per item
    margin = rule.margin.value * (abs(value) if rule.margin.relative else 1.0)
    target = value - 2.0 * margin * (1.0 if metric.higher_is_better else -1.0)
    how = "by a little on every item" if on_every_item else "on some items"
    words = f"{where} worse than the baseline by 2 x {rule.margin}, {how}"
    noise = margin if on_every_item else None
    return words, partial(_moved, bench=bench, start=baseline, ref=ref, target=target, noise=noise)


def _beyond(bench: _Bench, rule: Rule, ref: MetricRef, where: str) -> tuple[str, Spoil]:
    """The candidate's own items, just beyond a threshold."""
    down = rule.kind == "min"
    limit = rule.min if down else rule.max
    assert limit is not None
    step = abs(limit) * 0.001 + 1e-6
    start, target = bench.sides[ref.place].candidate, limit - step if down else limit + step
    value = bench.value(start, ref)
    words = f"{where} {'below' if down else 'above'} {limit:g}"
    if value < limit if down else value > limit:
        return f"{words}, as it is", _as_it_is
    return words, partial(_moved, bench=bench, start=start, ref=ref, target=target)


def _one_label(bench: _Bench, rule: Rule) -> MetricRef:
    """What a rule speaks of; of one with ``by``, its smallest label that counts. Raises ``EvidenceError``."""
    if rule.by is None:
        return rule.ref
    sizes = measure.labels(bench.sides[rule.ref.place].candidate, rule.by)
    least = rule.min_items or bench.policy.min_slice_items
    enough = {label: n for label, n in sizes.items() if n >= least}
    if not enough:
        raise EvidenceError(f"no label of the slice {rule.by!r} has {least} items or more.")
    return replace(rule.ref, slice=rule.by, label=min(enough, key=lambda label: (enough[label], label)))


def _moved(
    shell: Evidence, *, bench: _Bench, start: Evidence, ref: MetricRef, target: float, noise: float | None = None
) -> Evidence:
    """The items of ``start``, moved until the metric is at the target, as a result of the shell's model."""
    records = start.records
    rows = records.rows_by(ref.slice)[ref.label or ""] if ref.slice is not None else np.arange(len(records))

    def value(columns: Mapping[str, Column]) -> float:
        return bench.value(replace(start, records=replace(records, columns=columns)), ref)

    rng = np.random.default_rng(seed_sequence(bench.policy.statistics.seed, NOISE, ref.metric))
    metric = metrics.get(ref.metric)
    if noise is None:
        columns = worsening.on_some_items(records.columns, metric, rows, target, value=value, rng=rng)
    else:
        columns = worsening.on_every_item(records.columns, metric, rows, target, value=value, rng=rng, noise=noise)
    return _with_items_of(shell, start, replace(records, columns=columns))


def _as_the_baseline(shell: Evidence, *, baseline: Evidence) -> Evidence:
    return _with_items_of(shell, baseline, baseline.records)


def _as_it_is(evidence: Evidence) -> Evidence:
    return evidence


def _with_items_of(shell: Evidence, start: Evidence, records: ItemRecords) -> Evidence:
    """The shell's result with other items: only what these have, and what both have a score of."""
    scores = {name: value for name, value in shell.result.scores.items() if name in start.result.scores}
    main = shell.result.main_score if shell.result.main_score in scores else next(iter(scores))
    return harms.rescored(
        replace(shell, result=replace(shell.result, scores=scores, main_score=main)), records, "worse"
    )


def _singles(rule: Rule) -> tuple[Rule, ...]:
    return tuple(each for member in rule.members for each in _singles(member)) if rule.members else (rule,)


def _compared(of: Policy | Rule, place: Place) -> bool:
    """Whether a rule compares with a baseline on a place."""
    singles = of.singles if isinstance(of, Policy) else _singles(of)
    return any(single.compares and single.ref.place == place for single in singles)


def _unwatched(policy: Policy, results: Sequence[Result]) -> Iterator[str]:
    """Tasks, and main metrics of tasks, that no rule speaks of."""
    watched: dict[str, set[str]] = {}
    for rule in policy.singles:
        watched.setdefault(rule.ref.place.task, set()).add(rule.ref.metric)
    main = {each.task.name: each.main_score for each in results if each.status == "ok"}
    for task, score in sorted(main.items()):
        if task not in watched:
            yield f"No rule speaks of {task}: a drop there goes unnoticed."
        elif score is not None and score not in watched[task]:
            yield f"No rule speaks of {score}, the main metric of {task}."
