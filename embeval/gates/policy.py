"""What a release has to hold: rules, groups of them, and agreed exceptions; every complaint with its line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

from embeval import metrics
from embeval.compare import facts
from embeval.core import border, strict_json
from embeval.core.border import BORDER, KeyPath, Problem
from embeval.core.paths import expanded
from embeval.core.specs import MAX_RESAMPLES, StatisticsOptions
from embeval.core.verdict import Waiver
from embeval.core.yaml_files import line_of, read_yaml
from embeval.errors import ConfigError, UnknownNameError, did_you_mean

KEY = "gate"
"""Where a policy stands in embeval.yaml."""
SINGLE = ("min", "max", "no_regression", "improve")
"""What a rule can ask of a metric."""
GROUPS = ("all", "any", "at_least")
"""What a group can ask of its rules."""
MAX_AGE_DAYS = 36_500
"""A hundred years: with more, dates can't be computed."""
MAX_DOCUMENTS = 10**15
"""More than any corpus has."""
UP_TO_ONE = ("ann_recall", "context", "correlation", "documents", "ranking", "rerank")
"""Families whose metrics lie between -1 and 1."""
MIN_RESAMPLES = 1000
"""With fewer the bound that decides is itself chance."""

_METRIC = re.compile(r"(?P<task>[^\[\]]+?)(?:\[(?P<where>.*)\])?/(?P<metric>[^/\[\]]+)", re.DOTALL)
_PLACES = ("split", "subset", "slice")
_NEXT = re.compile(rf",\s*(?=(?:{'|'.join(_PLACES)})\s*=)")
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


@dataclass(frozen=True)
class Place:
    """Which results a rule speaks of. ``None`` leaves it open, where there is only one."""

    task: str
    """Name of the task."""
    split: str | None = None
    """Split of its data."""
    subset: str | None = None
    """Sub-set by name; open: the one that stands for the task, as a rule the whole split."""

    def __str__(self) -> str:
        where = [f"{key}={value}" for key, value in (("split", self.split), ("subset", self.subset)) if value]
        return self.task + (f"[{','.join(where)}]" if where else "")


@dataclass(frozen=True)
class MetricRef:
    """A metric of a task, as ``task/metric`` or ``task[split=test,subset=all,slice=kind:paraphrase]/metric``."""

    place: Place
    """Which results."""
    metric: str
    """Name of the metric, or of a fact such as ``dimensions``."""
    slice: str | None = None
    """Name of a slice, where only the items of one of its labels count."""
    label: str | None = None
    """That label."""


@dataclass(frozen=True)
class Margin:
    """How much a candidate may lose: ``0.01``, or ``2%`` of the baseline."""

    value: float
    """Above 0; of ``2%`` it is 0.02."""
    relative: bool = False
    """Whether it is a share of the baseline."""

    def __str__(self) -> str:
        return f"{self.value * 100:g}%" if self.relative else f"{self.value:g}"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One line of a policy: what a metric has to hold, or a group of rules."""

    __pydantic_config__ = BORDER

    metric: str | None = None
    """``task/metric`` or ``task[split=test,subset=all,slice=kind:paraphrase]/metric``."""
    min: float | None = None
    """The least that is enough; exactly that passes."""
    max: float | None = None
    """The most that is allowed; exactly that passes."""
    on: Literal["point", "bound"] | None = None
    """What min and max are held against: the value itself (``point``, the default: a threshold and no test), or its
    one-sided bound at ``alpha``."""
    no_regression: float | str | None = None
    """Margin above 0 by which the candidate may be worse than the baseline: 0.01, or "2%" of the baseline."""
    improve: bool | float | None = None
    """true: shown to be better than the baseline; a number: by more than that."""
    by: str | None = None
    """Name of a slice: the rule holds for each of its labels with enough items."""
    min_items: int | None = None
    """With ``by``: labels with fewer items are left out; default: the policy's ``min_slice_items``."""
    name: str | None = None
    """A short name, for waivers and reports."""
    all: tuple[Rule, ...] | None = None
    """A group: each of these rules has to pass."""
    any: tuple[Rule, ...] | None = None
    """A group: one of these rules has to pass, corrected by Holm."""
    at_least: int | None = None
    """A group: so many of the rules in ``of`` have to pass, corrected by Holm."""
    of: tuple[Rule, ...] | None = None
    """The rules that ``at_least`` counts."""

    def __post_init__(self) -> None:
        found = [key for key in (*SINGLE, *GROUPS) if getattr(self, key) is not None]
        if len(found) != 1:
            given = " and ".join(found) if found else "none"
            raise ValueError(f"a rule says exactly one of {', '.join((*SINGLE, *GROUPS))}; found {given}")
        if self.name is not None and not self.name.strip():
            raise ValueError("name must not be empty")
        if self.kind in GROUPS:
            self._check_group()
        else:
            self._check_single()

    @property
    def kind(self) -> str:
        """``min``, ``max``, ``no_regression``, ``improve``, ``all``, ``any`` or ``at_least``."""
        return next(key for key in (*SINGLE, *GROUPS) if getattr(self, key) is not None)

    @property
    def members(self) -> tuple[Rule, ...]:
        """The rules of a group; none of a single rule."""
        return self.all or self.any or self.of or ()

    @property
    def needed(self) -> int:
        """How many members of a group have to pass."""
        return {"all": len(self.members), "any": 1}.get(self.kind, self.at_least or 0)

    @property
    def ref(self) -> MetricRef:
        """What a single rule speaks of."""
        assert self.metric is not None
        return parse_metric(self.metric)

    @property
    def compares(self) -> bool:
        """Whether it needs a baseline."""
        return self.kind in ("no_regression", "improve")

    @property
    def margin(self) -> Margin:
        """Of ``no_regression``."""
        assert self.no_regression is not None
        return parse_margin(self.no_regression)

    @property
    def gain(self) -> float:
        """Of ``improve``: by how much the candidate has to be better; 0 for ``true``."""
        return 0.0 if self.improve is True else float(self.improve or 0.0)

    @property
    def text(self) -> str:
        """The rule in one line: ``support-kb/ndcg_at_10 no_regression 0.01``."""
        if self.kind in GROUPS:
            of = "; ".join(member.text for member in self.members)
            head = {"all": "all of", "any": "any of"}.get(self.kind, f"at least {self.at_least} of")
            return f"{head} ({of})"
        words = [self.metric or "", self.kind, *self._asked()]
        return " ".join([*words, *([f"by {self.by}"] if self.by else [])])

    def _asked(self) -> list[str]:
        if self.kind == "no_regression":
            return [str(self.margin)]
        if self.kind == "improve":
            return [] if self.improve is True else [f"{self.gain:g}"]
        return [f"{getattr(self, self.kind):g}", *(["on bound"] if self.on == "bound" else [])]

    def _check_group(self) -> None:
        for key in ("metric", "on", "by", "min_items"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key} belongs to a rule, not to a group")
        if self.kind == "at_least" and self.of is None:
            raise ValueError("at_least needs 'of' with the rules that it counts")
        if self.kind != "at_least" and self.of is not None:
            raise ValueError("of goes with 'at_least'")
        where = "of" if self.kind == "at_least" else self.kind
        if not self.members:
            raise ValueError(f"{where} must hold at least one rule: an empty group decides nothing")
        if self.at_least is not None and not 1 <= self.at_least <= len(self.members):
            raise ValueError(f"at_least must be from 1 to {len(self.members)}, the rules in 'of', not {self.at_least}")

    def _check_single(self) -> None:
        if self.metric is None:
            raise ValueError("the key 'metric' is missing")
        if self.of is not None:
            raise ValueError("of goes with 'at_least'")
        ref = _as_value_error("metric", parse_metric, self.metric)
        if self.on is not None and self.kind not in ("min", "max"):
            raise ValueError("on goes with min and max only: the other rules are tests already")
        for key in ("min", "max"):
            threshold = getattr(self, key)
            if threshold is not None and not math.isfinite(threshold):
                raise ValueError(f"{key} must be a finite number, not {threshold}")
        if self.no_regression is not None:
            _as_value_error("no_regression", parse_margin, self.no_regression)
        if self.improve is False:
            raise ValueError("improve must be true or a number; leave it out where nothing has to improve")
        if self.improve is not None and not (math.isfinite(self.improve) and self.improve >= 0):
            raise ValueError(f"improve must be finite and not negative, not {self.improve}")
        self._refuse_beyond(ref.metric)
        if ref.metric in facts.NAMES and (self.on == "bound" or self.by or ref.slice):
            key = "on" if self.on == "bound" else "by" if self.by else "metric"
            raise ValueError(f"{key} needs a metric that items have; {ref.metric} is one number of the whole result")
        if self.by is not None and ref.slice is not None:
            raise ValueError("by goes without a slice in 'metric': it takes every label of a slice")
        if self.min_items is not None and self.by is None:
            raise ValueError("min_items goes with 'by'")
        if self.min_items is not None and self.min_items < 2:
            raise ValueError(f"min_items must be at least 2, not {self.min_items}")

    def _refuse_beyond(self, metric: str) -> None:
        """Raises where a threshold lies beyond all values of the metric: such a rule says nothing, and looks as if."""
        if not any(metrics.FAMILIES.get(name).make(metric) is not None for name in UP_TO_ONE):
            return
        for key in ("min", "max"):
            threshold = getattr(self, key)
            if threshold is not None and abs(threshold) > 1.0:
                raise ValueError(f"{key} must lie between -1 and 1, as every {metric} does, not {threshold}")
        for key in ("no_regression", "improve"):
            size = getattr(self, key)
            if isinstance(size, int | float) and not isinstance(size, bool) and size >= 1.0:
                share = f'; for {size:g} % of the baseline write "{size:g}%"' if key == "no_regression" else ""
                raise ValueError(f"{key} must be below 1, as every {metric} is{share}, not {size}")


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How the uncertainty behind rules is estimated."""

    __pydantic_config__ = BORDER

    resamples: int = 10_000
    """Resamples behind each bound, at least 1000."""
    seed: int = 0
    """Seed of the resampling."""

    def __post_init__(self) -> None:
        if not MIN_RESAMPLES <= self.resamples <= MAX_RESAMPLES:
            raise ValueError(f"resamples must be from {MIN_RESAMPLES} to {MAX_RESAMPLES}, not {self.resamples}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, but is {self.seed}")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """When a candidate may be released."""

    __pydantic_config__ = BORDER

    rules: tuple[Rule, ...]
    """What has to hold, all of it."""
    baseline: str | None = None
    """What a candidate is held against: a path of results, a model, or ``tag:prod``."""
    candidate: str | tuple[str, ...] | None = None
    """What is to be released, or several of which one is; the command line overrides it."""
    on_inconclusive: Literal["fail", "pass"] = "fail"
    """``pass``: too little evidence doesn't block (it is told in a warning); ``fail``: it does."""
    alpha: float = 0.05
    """Error rate of each rule that is a test."""
    unseen: Literal["any", "as_seen"] = "any"
    """What the items that are not in the golden set may lose. ``any``: all that there is; then rules err as seldom as
    ``alpha`` says whatever these items are, and a margin m takes 3/m items even where none differs. ``as_seen``: no
    more than the largest change among the items at hand."""
    max_baseline_age_days: int | None = None
    """Results of a baseline older than this decide nothing."""
    max_candidate_age_days: int | None = None
    """Results of a candidate older than this decide nothing."""
    allow_unverifiable: bool = False
    """Whether models whose files can't be named by a hash may pass, such as those behind an endpoint."""
    min_slice_items: int = 20
    """Slices of fewer items are neither held against rules nor shown among the worst."""
    waivers: tuple[Waiver, ...] = ()
    """Agreed exceptions, each with a last day and a reason."""
    documents: int | None = None
    """Documents of the production corpus, for the cost of a re-index."""
    statistics: Resampling = field(default_factory=Resampling)
    """How uncertainty is estimated."""
    show_lost: int = 5
    """Lost queries shown of each task."""

    def __post_init__(self) -> None:
        if not self.rules:
            raise ValueError("rules must hold at least one rule: a policy without rules decides nothing")
        if not 0.001 <= self.alpha <= 0.2:
            raise ValueError(f"alpha must lie between 0.001 and 0.2, not {self.alpha}")
        for key, most in (
            ("max_baseline_age_days", MAX_AGE_DAYS),
            ("max_candidate_age_days", MAX_AGE_DAYS),
            ("documents", MAX_DOCUMENTS),
        ):
            number = getattr(self, key)
            if number is not None and not 1 <= number <= most:
                raise ValueError(f"{key} must be from 1 to {most}, not {number}")
        if self.min_slice_items < 2:
            raise ValueError(f"min_slice_items must be at least 2, not {self.min_slice_items}")
        if self.show_lost < 0:
            raise ValueError(f"show_lost must not be negative, but is {self.show_lost}")

    @property
    def candidates(self) -> tuple[str, ...]:
        """``candidate`` as a list."""
        return (self.candidate,) if isinstance(self.candidate, str) else self.candidate or ()

    @property
    def singles(self) -> tuple[Rule, ...]:
        """Every rule on a metric, those in groups too."""
        return tuple(_singles(self.rules))

    @property
    def places(self) -> tuple[Place, ...]:
        """Which results the rules speak of, each once."""
        return tuple(dict.fromkeys(rule.ref.place for rule in self.singles))

    @property
    def compares(self) -> bool:
        """Whether a rule needs a baseline."""
        return any(rule.compares for rule in self.singles)

    @property
    def resampling(self) -> StatisticsOptions:
        """For the functions that compute bounds and intervals."""
        return StatisticsOptions(resamples=self.statistics.resamples, seed=self.statistics.seed, level=1.0 - self.alpha)

    @property
    def digest(self) -> str:
        """sha256 of the content, 64 hexadecimal digits."""
        return strict_json.digest(border.dump(self))


@dataclass(frozen=True)
class PolicyFile:
    """A policy and where it was read."""

    path: Path
    """The file."""
    policy: Policy
    """Its policy."""
    results: Path | None = None
    """Folder of results, where the file is an embeval.yaml that names one."""
    data: Path | None = None
    """Folder of the data of catalogue tasks, likewise."""


def load(path: Path) -> PolicyFile:
    """What a file has under ``gate``, or the file as a whole. Raises ``ConfigError`` with file and line."""
    value, lines = read_yaml(path)
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: the file must hold keys such as 'baseline' and 'rules'.")
    if KEY in value:
        root = path.resolve().parent
        results, data = (
            root / expanded(value[key]) if isinstance(value.get(key), str) else None for key in ("results", "data")
        )
        return PolicyFile(path, from_value(value[KEY], str(path), lines, (KEY,)), results, data)
    if "models" in value or "tasks" in value:
        close = next((key for key in value if did_you_mean(str(key), [KEY])), None)
        meant = f" Is {close!r} meant to be it?" if close is not None else ""
        raise ConfigError(f"{path}: there is no key {KEY!r} with a policy in it.{meant}")
    return PolicyFile(path, from_value(value, str(path), lines))


def from_value(value: Any, source: str, lines: Mapping[KeyPath, int] | None = None, where: KeyPath = ()) -> Policy:
    """The policy that plain values spell; ``source``, ``lines`` and ``where`` (the path of ``value``) are for messages.

    Raises ``ConfigError`` with the first thing that is wrong.
    """

    def fail(problem: Problem) -> ConfigError:
        here = (*where, *problem.path)
        line = f", line {line_of(lines, here)}" if lines is not None else ""
        return ConfigError(f"{source}{line}: {Problem(here, problem.text)}")

    if not isinstance(value, dict):
        raise fail(Problem((), "a policy has keys such as 'baseline' and 'rules'"))
    try:
        policy = border.load(Policy, value)
    except border.BorderError as error:
        # A key that nobody knows tells why another one is missing.
        raise fail(min(error.problems, key=lambda each: "unknown key" not in each.text)) from None
    for problem in problems(policy):
        raise fail(problem)
    return policy


def problems(policy: Policy) -> Iterator[Problem]:
    """What is wrong between the parts of a policy: rules that stand twice, waivers for none, waivers without an end."""
    yield from _double(policy.rules, ("rules",))
    named = [(rule, path) for rule, path in walk(policy.rules) if rule.name is not None]
    seen: set[str] = set()
    for rule, path in named:
        if rule.name in seen:
            yield Problem((*path, "name"), f"another rule is called {rule.name!r} already")
        seen.add(rule.name or "")
    known = {text for rule, _ in walk(policy.rules) for text in (rule.name, rule.metric) if text}
    counted = [
        member for rule, _ in walk(policy.rules) if rule.kind in ("any", "at_least") for member, _ in walk(rule.members)
    ]
    waived: set[str] = set()
    for number, waiver in enumerate(policy.waivers):
        at: KeyPath = ("waivers", number)
        fitting = [rule for rule, _ in walk(policy.rules) if waiver.rule in (rule.name, rule.metric)]
        if fitting and fitting[0] in counted:
            yield Problem((*at, "rule"), f"{waiver.rule} counts in a group; name the group and waive that")
        if len(fitting) > 1:
            yield Problem(
                (*at, "rule"), f"{len(fitting)} rules are on {waiver.rule}; give the one that is meant a name"
            )
        if not fitting:
            advice = did_you_mean(waiver.rule, known) or f"Known: {', '.join(sorted(known))}."
            yield Problem((*at, "rule"), f"no rule is called {waiver.rule!r}. {advice}")
        if waiver.rule in waived:
            yield Problem((*at, "rule"), f"a second waiver for {waiver.rule!r}")
        waived.add(waiver.rule)
        if not waiver.reason.strip():
            yield Problem((*at, "reason"), "must say why")
        if _day(waiver.until) is None:
            yield Problem((*at, "until"), f"must be a day such as 2026-12-31, not {waiver.until!r}")


def walk(rules: Sequence[Rule], where: KeyPath = ("rules",)) -> Iterator[tuple[Rule, KeyPath]]:
    """Every rule and group with its path, groups before their members."""
    for number, rule in enumerate(rules):
        yield rule, (*where, number)
        if rule.members:
            yield from walk(rule.members, (*where, number, "of" if rule.kind == "at_least" else rule.kind))


def last_day(waiver: Waiver) -> date:
    """The last day on which a waiver holds. Raises ``ConfigError`` where it is no day."""
    found = _day(waiver.until)
    if found is None:
        raise ConfigError(f"until of the waiver for {waiver.rule!r} must be a day, not {waiver.until!r}.")
    return found


def parse_metric(text: str) -> MetricRef:
    """The parts of ``task[split=…,subset=…,slice=name:label]/metric``.

    Raises ``ConfigError`` for another form, ``UnknownNameError`` for a metric that nobody knows.
    """
    found = _METRIC.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{text!r} must be task/metric, or task[split=…,subset=…,slice=name:label]/metric.")
    where: dict[str, str] = {}
    for part in _NEXT.split(found["where"]) if found["where"] is not None else ():
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or not value or key not in _PLACES:
            raise ConfigError(f"{part!r} in {text!r} must be one of split=…, subset=…, slice=name:label.")
        if key in where:
            raise ConfigError(f"{key} stands twice in {text!r}.")
        where[key] = value
    name, label = None, None
    if "slice" in where:
        name, colon, label = where["slice"].partition(":")
        if not colon or not name or not label:
            raise ConfigError(f"slice={where['slice']} must name a label as well: slice=name:label.")
    _refuse_unknown(found["metric"])
    place = Place(found["task"].strip(), where.get("split"), where.get("subset"))
    return MetricRef(place, found["metric"], name, label)


def parse_margin(given: float | str) -> Margin:
    """A margin from ``0.01`` or ``"2%"``. Raises ``ConfigError`` unless it is above 0 and finite."""
    if isinstance(given, str):
        found = _PERCENT.fullmatch(given)
        value = float(found[1]) / 100 if found else 0.0
        if not 0.0 < value < 1.0:
            raise ConfigError(f'must be a number above 0, or a share such as "2%", not {given!r}.')
        return Margin(value, relative=True)
    if not (math.isfinite(given) and given > 0):
        raise ConfigError(f"must be finite and above 0, not {given}: without a margin nothing can be shown.")
    return Margin(float(given))


def _refuse_unknown(name: str) -> None:
    if name in facts.NAMES:
        return
    try:
        metrics.get(name)
    except UnknownNameError as error:
        raise UnknownNameError("metric", name, (*error.known, *facts.NAMES)) from None


def _as_value_error(field_name: str, parse: Any, given: Any) -> Any:
    try:
        return parse(given)
    except (ConfigError, UnknownNameError) as error:
        raise ValueError(f"{field_name} {str(error).rstrip('.')}") from None


def _singles(rules: Sequence[Rule]) -> Iterator[Rule]:
    return (rule for rule, _ in walk(rules) if rule.kind in SINGLE)


def _double(rules: Sequence[Rule], where: KeyPath) -> Iterator[Problem]:
    seen: dict[Any, int] = {}
    for number, rule in enumerate(rules):
        key = (rule.kind, rule.ref, rule.on or "point", rule.by) if rule.kind in SINGLE else (rule.kind, rule.text)
        if key in seen:
            yield Problem((*where, number), f"the same rule as {border.spell((*where, seen[key]))}: {rule.text}")
        seen[key] = number
        if rule.members:
            yield from _double(rule.members, (*where, number, "of" if rule.kind == "at_least" else rule.kind))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else None
    except ValueError:
        return None
