"""From a policy and evidence to a verdict. Nothing is read here; whatever is missing or broken is an error, no pass.

- ``no_regression`` m: pass if the one-sided lower bound of the gain (the difference, positive where the candidate is
  better) lies above -m, fail if the upper one lies below -m, else inconclusive. Of ``"2%"`` the same of
  candidate - 0.98 x baseline and 0 (1.02 where lower is better).
- ``improve`` g: pass if the lower bound of the gain lies above g, fail if the upper one does not, else inconclusive.
- ``min`` and ``max`` on the point value: a threshold and no test; exactly at it passes. On the bound: pass if the bound
  is beyond it or at it, fail if the opposite bound is on the wrong side, else inconclusive.
- A fact such as ``dimensions`` has no bounds: each rule on one is a threshold.
- Several candidates: each is tested at α divided by their number, so that picking the best is part of the correction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from embeval.compare import differences, reindex
from embeval.compare.differences import Names
from embeval.compare.evidence import Evidence
from embeval.compare.pairs import Pair
from embeval.core.comparison import Comparison
from embeval.core.figures import figure
from embeval.core.result import APPROXIMATE_BELOW
from embeval.core.verdict import GateReport, Outcome, RuleVerdict, Verdict, Waiver
from embeval.core.words import plural
from embeval.errors import EvaluationError, EvidenceError, UnknownNameError
from embeval.gates import measure
from embeval.gates.logic import all_of, step_down
from embeval.gates.measure import TAIL, Quantity
from embeval.gates.policy import GROUPS, MetricRef, Place, Policy, Rule, last_day
from embeval.stats import power
from embeval.stats.corrections import holm

SOON = timedelta(days=14)
"""A waiver that ends within this time is warned of."""
MOST_ITEMS = 10_000_000
"""A number of items above this is no advice."""


@dataclass(frozen=True)
class Material:
    """What is at hand on one place of a policy."""

    candidate: Evidence | None = None
    """The candidate's result."""
    pair: Pair | None = None
    """Both sides."""
    problem: str = "There is no result."
    """Why one of them is missing, where one is."""


@dataclass(frozen=True)
class Case:
    """A candidate with everything at hand on it."""

    candidate: str
    """Its label."""
    materials: Mapping[Place, Material]
    """By place; what is not in it is missing."""
    candidate_digest: str | None = None
    """Its model digest."""
    baseline: str | None = None
    """Label of the baseline."""
    baseline_digest: str | None = None
    """Its model digest."""
    warnings: tuple[str, ...] = field(default=())
    """What was noticed on the way."""


def judge(policy: Policy, case: Case, *, today: date, n_candidates: int = 1) -> Verdict:
    """What a policy says of one of ``n_candidates`` candidates on the day ``today``."""
    alpha = policy.alpha / n_candidates
    rules = tuple(_judged(rule, policy, case, alpha, today) for rule in policy.rules)
    outcome = all_of([_effective(rule) for rule in rules])
    rules = _with_adjusted_claims(rules, n_candidates)
    warnings = [*case.warnings, *_waiver_warnings(policy, today), *_reindex(policy, case)]
    if outcome is Outcome.INCONCLUSIVE and policy.on_inconclusive == "pass":
        outcome = Outcome.PASS
        warnings.append(
            "The evidence is too little for a decision, and the policy lets that pass (on_inconclusive: pass)."
        )
    if n_candidates > 1:
        warnings.append(
            f"One of {n_candidates} candidates: each is tested at an error rate of {alpha:.3g}, "
            f"{policy.alpha:g} divided by {n_candidates}."
        )
    return Verdict(
        outcome=outcome,
        candidate=case.candidate,
        candidate_digest=case.candidate_digest,
        baseline=case.baseline,
        baseline_digest=case.baseline_digest,
        rules=rules,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def broken(candidate: str, problem: str, policy: Policy, baseline: str | None = None) -> Verdict:
    """The verdict on a candidate of which there is no evidence at all."""
    rules = tuple(_error(rule, problem) for rule in policy.rules)
    return Verdict(outcome=Outcome.ERROR, candidate=candidate, baseline=baseline, rules=rules)


def overall(verdicts: Sequence[Verdict]) -> Outcome:
    """Of several candidates: error where any is broken, else pass where one passes, else the best of the rest.

    A broken candidate is not left out: it may be the one that would be released.
    """
    outcomes = [verdict.outcome for verdict in verdicts]
    if not outcomes or Outcome.ERROR in outcomes:
        return Outcome.ERROR
    return next(each for each in (Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL) if each in outcomes)


def report(
    policy: Policy,
    verdicts: Sequence[Verdict],
    *,
    source: str,
    made_at: str,
    version: str,
    warnings: Sequence[str] = (),
    error: str | None = None,
) -> GateReport:
    """Everything together; with ``error`` nothing could be decided, and the outcome is that."""
    outcome = Outcome.ERROR if error is not None else overall(verdicts)
    return GateReport(
        outcome=outcome,
        exit_code=int(outcome.exit_code),
        policy=source,
        policy_digest=policy.digest,
        made_at=made_at,
        embeval=version,
        verdicts=tuple(verdicts),
        warnings=tuple(warnings),
        error=error,
    )


def waiver_of(rule: Rule, policy: Policy, today: date) -> Waiver | None:
    """The waiver of a rule that is in force."""
    for waiver in policy.waivers:
        if waiver.rule in (rule.name, rule.metric) and today <= last_day(waiver):
            return waiver
    return None


def _judged(rule: Rule, policy: Policy, case: Case, alpha: float, today: date) -> RuleVerdict:
    found = _group(rule, policy, case, alpha, today) if rule.kind in GROUPS else _on_metric(rule, policy, case, alpha)
    return replace(found, waiver=waiver_of(rule, policy, today))


def _effective(verdict: RuleVerdict) -> Outcome:
    """The outcome once waivers count: broken evidence can't be waived."""
    return verdict.outcome if verdict.blocks else Outcome.PASS


def _group(rule: Rule, policy: Policy, case: Case, alpha: float, today: date) -> RuleVerdict:
    def members(at: float) -> tuple[RuleVerdict, ...]:
        return tuple(_judged(member, policy, case, at, today) for member in rule.members)

    if rule.kind == "all":
        rules = members(alpha)
        outcome, used = all_of([_effective(each) for each in rules]), alpha
    else:
        outcome, found, used = step_down(members, rule.needed, alpha)
        rules = tuple(found)
    passed = sum(_effective(each) is Outcome.PASS for each in rules)
    reason = f"{passed} of {plural(len(rules), 'rule')} passed, {rule.needed} needed."
    if Outcome.ERROR in [each.outcome for each in rules]:
        reason += " One that can't be decided makes the whole group so."
    if rule.kind != "all":
        reason += f" Tested at an error rate of {used:.3g} (Holm)."
    return RuleVerdict(
        rule=_named(rule), kind=rule.kind, outcome=outcome, reason=reason, alpha=used, rules=rules, is_test=False
    )


def _on_metric(rule: Rule, policy: Policy, case: Case, alpha: float) -> RuleVerdict:
    try:
        material = _material(rule, case)
        if rule.by is not None:
            return _by_label(rule, policy, case, material, alpha)
        _refuse_small(rule.ref, policy, material)
        return _single(rule, rule.ref, policy, case, material, alpha)
    except (EvaluationError, UnknownNameError) as error:
        return _error(rule, str(error))


def _material(rule: Rule, case: Case) -> Material:
    """Raises ``EvidenceError`` where it isn't enough for the rule."""
    material = case.materials.get(rule.ref.place, Material())
    if material.candidate is None or (rule.compares and material.pair is None):
        raise EvidenceError(material.problem)
    return material


def _refuse_small(ref: MetricRef, policy: Policy, material: Material) -> None:
    if ref.slice is None:
        return
    assert material.candidate is not None
    n = measure.labels(material.candidate, ref.slice).get(ref.label or "")
    if n is not None and n < policy.min_slice_items:
        raise EvidenceError(
            f"The slice {ref.slice}:{ref.label} has {plural(n, 'item')}, fewer than min_slice_items "
            f"({policy.min_slice_items}): too few to decide anything."
        )


def _by_label(rule: Rule, policy: Policy, case: Case, material: Material, alpha: float) -> RuleVerdict:
    """The rule on each label of a slice that has enough items, all of which have to pass."""
    assert material.candidate is not None
    assert rule.by is not None
    least = rule.min_items or policy.min_slice_items
    sizes = measure.labels(material.candidate, rule.by)
    enough = [label for label, n in sizes.items() if n >= least]
    if not enough:
        raise EvidenceError(f"No label of the slice {rule.by!r} has {least} items or more.")
    rules = []
    for label in enough:
        ref = replace(rule.ref, slice=rule.by, label=label)
        try:
            rules.append(_single(rule, ref, policy, case, material, alpha))
        except (EvaluationError, UnknownNameError) as error:
            rules.append(_error(rule, str(error), ref))
    passed = sum(each.outcome is Outcome.PASS for each in rules)
    reason = f"{passed} of {plural(len(rules), 'label')} of {rule.by} passed, all are needed."
    if left_out := len(sizes) - len(enough):
        reason += f" {plural(left_out, 'label')} left out: fewer than {least} items."
    return RuleVerdict(
        rule=_named(rule),
        kind="all",
        outcome=all_of([each.outcome for each in rules]),
        reason=reason,
        task=rule.ref.place.task,
        metric=rule.ref.metric,
        slice=rule.by,
        alpha=alpha,
        rules=tuple(rules),
    )


@dataclass(frozen=True)
class _Question:
    """A value that has to lie on one side of a threshold."""

    quantity: Quantity
    threshold: float
    above: bool
    """Whether it has to lie above."""
    what: str
    """The value in words."""
    at_passes: bool
    """Whether a bound exactly at the threshold is enough."""
    at_fails: bool = False
    """Whether the opposite bound exactly at the threshold is a failure."""
    is_test: bool = True


def _single(rule: Rule, ref: MetricRef, policy: Policy, case: Case, material: Material, alpha: float) -> RuleVerdict:
    """One rule on one metric. Raises ``EvidenceError`` and ``UnknownNameError`` where the evidence is not enough."""
    question = _question(rule, ref, policy, material)
    found = _threshold(question) if not question.is_test else _test(question, policy, alpha)
    return replace(
        found,
        rule=_named(rule, ref),
        kind=rule.kind,
        task=ref.place.task,
        metric=ref.metric,
        slice=_slice_text(ref),
        comparison=_comparison(rule, ref, case, material) if rule.compares and question.is_test else None,
    )


def _comparison(rule: Rule, ref: MetricRef, case: Case, material: Material) -> Comparison:
    """The comparison behind a rule; where it claims an improvement with a p-value, not yet corrected."""
    assert material.pair is not None
    names = Names(case.baseline or "", case.candidate)
    (found,) = differences.compared(
        material.pair,
        [ref.metric],
        names,
        slice_name=ref.slice,
        label=ref.label,
        with_p=rule.kind == "improve",  # no_regression asks another question than whether there is a difference
    )
    return found


def _with_adjusted_claims(rules: tuple[RuleVerdict, ...], n_candidates: int) -> tuple[RuleVerdict, ...]:
    """The same, p-values of all claims of improvement corrected together by Holm, over candidates by Bonferroni."""
    claims = [each for each in _walk(rules) if each.kind == "improve" and each.comparison is not None]
    adjusted = holm([each.comparison.p if each.comparison is not None else None for each in claims])
    by_claim = {
        id(claim): None if p is None else min(1.0, p * n_candidates) for claim, p in zip(claims, adjusted, strict=True)
    }

    def told(rule: RuleVerdict) -> RuleVerdict:
        comparison = rule.comparison
        if id(rule) in by_claim and comparison is not None:
            comparison = replace(comparison, p_adjusted=by_claim[id(rule)])
        return replace(rule, comparison=comparison, rules=tuple(map(told, rule.rules)))

    return tuple(map(told, rules))


def _walk(rules: Sequence[RuleVerdict]) -> Iterator[RuleVerdict]:
    for rule in rules:
        yield rule
        yield from _walk(rule.rules)


def _question(rule: Rule, ref: MetricRef, policy: Policy, material: Material) -> _Question:
    if not rule.compares:
        assert material.candidate is not None
        above, limit = rule.kind == "min", rule.min if rule.kind == "min" else rule.max
        assert limit is not None
        if rule.on != "bound":
            quantity = measure.alone(material.candidate, ref, replace(policy.resampling, resamples=0))
            return _Question(quantity, limit, above, "The value", at_passes=True, is_test=False)
        quantity = measure.alone(material.candidate, ref, policy.resampling)
        return _Question(quantity, limit, above, "The value", at_passes=True)
    assert material.pair is not None
    up = measure.higher_is_better(ref.metric)
    scale, allowed, what = 1.0, 0.0, "The difference"
    if rule.kind == "no_regression" and rule.margin.relative:
        _refuse_relative(rule, ref, material.pair)
        scale = 1.0 - rule.margin.value if up else 1.0 + rule.margin.value
        what = f"The candidate less {scale * 100:g} % of the baseline"
    else:
        allowed = -rule.margin.value if rule.kind == "no_regression" else rule.gain
    quantity = measure.difference(material.pair, ref, scale, as_seen=policy.unseen == "as_seen")
    strict = rule.kind == "improve"
    return _Question(
        quantity,
        allowed if up else -allowed,
        up,
        what,
        at_passes=quantity.lower is None and not strict,
        at_fails=strict,
        is_test=quantity.lower is not None,
    )


def _refuse_relative(rule: Rule, ref: MetricRef, pair: Pair) -> None:
    baseline = measure.baseline_value(pair, ref)
    if baseline <= 0.0:
        raise EvidenceError(
            f"The baseline's {ref.metric} is {figure(baseline)}, so a margin of {rule.margin} of it allows nothing.\n"
            "Give the margin as a number."
        )


def _threshold(question: _Question) -> RuleVerdict:
    """A plain value against a threshold: at it up to rounding passes, where ``at_passes``."""
    value, threshold = question.quantity.value, question.threshold
    at = math.isclose(value, threshold, rel_tol=1e-12, abs_tol=1e-12)
    beyond = value > threshold if question.above else value < threshold
    passed = question.at_passes if at else beyond
    shown, limit = _apart(value, threshold)
    if question.what == "The value":
        allowed = f"{limit} or {'more' if question.above else 'less'} is asked for"
    else:
        allowed = f"it has to be {'above' if question.above else 'below'} {limit}"
        allowed += " or exactly that" if question.at_passes else ""
    return RuleVerdict(
        rule="",
        kind="",
        outcome=Outcome.PASS if passed else Outcome.FAIL,
        reason=f"{question.what} is {shown}; {allowed}. A threshold, and no test.",
        value=value,
        threshold=threshold,
        higher_is_better=question.above,
    )


def _test(question: _Question, policy: Policy, alpha: float) -> RuleVerdict:
    """A value against a threshold by its one-sided bounds at ``alpha``."""
    resamples = policy.statistics.resamples
    if resamples * alpha < TAIL:
        raise EvidenceError(
            f"{resamples} resamples are too few for an error rate of {alpha:.3g} after corrections.\n"
            f"Set statistics.resamples to at least {math.ceil(TAIL / alpha)}."
        )
    quantity, threshold = question.quantity, question.threshold
    low, high = quantity.bounds(alpha)
    near, far = (low, high) if question.above else (high, low)
    sign = 1.0 if question.above else -1.0
    clear, short = sign * (near - threshold), sign * (far - threshold)
    if clear > 0 or (clear == 0 and question.at_passes):
        outcome = Outcome.PASS
    elif short < 0 or (short == 0 and question.at_fails):
        outcome = Outcome.FAIL
    else:
        outcome = Outcome.INCONCLUSIVE
    needed = _items(quantity, low, high, threshold, alpha) if outcome is Outcome.INCONCLUSIVE else None
    bound = far if outcome is Outcome.FAIL else near
    return RuleVerdict(
        rule="",
        kind="",
        outcome=outcome,
        reason=_sentence(question, outcome, (low, high), alpha, needed),
        value=quantity.value,
        low=low,
        high=high,
        level=1.0 - 2.0 * alpha,
        bound=bound,
        threshold=threshold,
        higher_is_better=question.above,
        is_test=True,
        alpha=alpha,
        needs_items=needed,
    )


def _sentence(
    question: _Question, outcome: Outcome, bounds: tuple[float, float], alpha: float, needed: int | None
) -> str:
    side = "above" if question.above else "below"
    low, high = bounds
    near, far = (low, high) if question.above else (high, low)
    bound, limit = _apart(far if outcome is Outcome.FAIL else near, question.threshold)
    value, confidence = figure(question.quantity.value), f"{100 * (1 - alpha):.4g} % confidence"
    if outcome is Outcome.INCONCLUSIVE:
        text = (
            f"{question.what} is {value}, its bounds are {figure(low)} and {figure(high)} (each with {confidence}): "
            f"that does not tell whether it is {side} {limit}."
        )
        enough = f" About {_rounded_up(needed):,} items would tell it" if needed else ""
        text += f"{enough}, {question.quantity.n_items:,} were there." if enough else ""
        if question.quantity.narrow is not None:
            narrow = question.quantity.narrow(alpha)[0 if question.above else 1]
            bound_name = "lower" if question.above else "upper"
            text += (
                " These bounds allow for items that lose or gain all there is. If none changes by more than the "
                f"largest change seen (unseen: as_seen), the {bound_name} bound is {figure(narrow)}."
            )
    else:
        wrong = "below" if question.above else "above"
        is_so = f"{'not ' + side if question.at_fails else wrong}" if outcome is Outcome.FAIL else side
        text = f"{question.what} is {value}, and with {confidence} it is {is_so} {limit} (bound {bound})."
    if question.quantity.n_items < APPROXIMATE_BELOW:
        text += f" With {plural(question.quantity.n_items, 'item')} the bound is approximate."
    return text


def _items(quantity: Quantity, low: float, high: float, threshold: float, alpha: float) -> int | None:
    """Items that would decide four times in five if the value were the true one; None where no number would.

    The bound lies ``reach x spread / √n`` from the value, and where it allows for items that were not seen another
    ``-ln(alpha) / n`` of the way to the worst one (Clopper and Pearson for none of n).
    """
    distance = abs(quantity.value - threshold)
    if distance == 0.0:
        return None
    z = power.NORMAL.inv_cdf(1.0 - alpha)
    spread = quantity.spread
    if spread is None:
        spread = (high - low) / (2.0 * z) * math.sqrt(quantity.n_items)
    sampling = (z + power.NORMAL.inv_cdf(power.USUAL_POWER)) * spread
    unseen = 0.0
    if quantity.limits is not None:
        worst = quantity.limits[0] if quantity.value > threshold else quantity.limits[1]
        unseen = -math.log(alpha) * abs(quantity.value - worst)
    root = (sampling + math.sqrt(sampling**2 + 4.0 * unseen * distance)) / (2.0 * distance)
    needed = math.ceil(min(root**2, 2.0 * MOST_ITEMS))
    return needed if quantity.n_items < needed <= MOST_ITEMS else None


def _rounded_up(needed: int) -> int:
    """To two digits: it is an estimate."""
    step: int = 10 ** max(0, len(str(needed)) - 2)
    return -(-needed // step) * step


def _error(rule: Rule, problem: str, ref: MetricRef | None = None) -> RuleVerdict:
    """Broken evidence: an error for the rule, and for each rule of a group."""
    if rule.kind in GROUPS:
        members = tuple(_error(member, problem) for member in rule.members)
        return RuleVerdict(rule=_named(rule), kind=rule.kind, outcome=Outcome.ERROR, reason=problem, rules=members)
    ref = ref or rule.ref
    return RuleVerdict(
        rule=_named(rule, ref),
        kind=rule.kind,
        outcome=Outcome.ERROR,
        reason=problem,
        task=ref.place.task,
        metric=ref.metric,
        slice=rule.by or _slice_text(ref) if ref.label is None else _slice_text(ref),
    )


def _waiver_warnings(policy: Policy, today: date) -> list[str]:
    found = []
    for waiver in policy.waivers:
        end = last_day(waiver)
        if end < today:
            found.append(f"The waiver for {waiver.rule} ended on {waiver.until} and no longer counts.")
        elif end - today <= SOON:
            found.append(f"The waiver for {waiver.rule} ends on {waiver.until}.")
    return found


def _reindex(policy: Policy, case: Case) -> list[str]:
    for material in case.materials.values():
        if material.pair is None or "documents" not in material.pair.candidate.result.counts:
            continue
        text = reindex.warning(material.pair.baseline.result, material.pair.candidate.result, policy.documents)
        return [text] if text is not None else []
    return []


def _named(rule: Rule, ref: MetricRef | None = None) -> str:
    """The rule in one line; of one label of ``by`` with that label, after its name if it has one."""
    text = rule.text
    if rule.by is not None and ref is not None and ref.label is not None:
        text = text.replace(f" by {rule.by}", f" [{ref.slice}:{ref.label}]")
    return f"{rule.name}: {text}" if rule.name else text


def _slice_text(ref: MetricRef) -> str | None:
    return f"{ref.slice}:{ref.label}" if ref.slice is not None else None


def _apart(one: float, other: float) -> tuple[str, str]:
    """Both numbers, with more digits where they would look alike and aren't."""
    shown = figure(one), figure(other)
    return shown if shown[0] != shown[1] or one == other else (f"{one:.10g}", f"{other:.10g}")
