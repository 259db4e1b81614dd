"""A whole gate: what a policy names is found, checked and judged. Reads results and items, never a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from embeval.compare import evidence, pairs
from embeval.compare.evidence import Evidence
from embeval.core import border, strict_json
from embeval.core.paths import expanded
from embeval.core.result import Result
from embeval.core.verdict import GateReport, Verdict
from embeval.core.words import plural
from embeval.errors import (
    ConfigError,
    EmbevalError,
    EvaluationError,
    EvidenceError,
    NotComparableError,
    StoreError,
    UnknownNameError,
    UsageError,
    did_you_mean,
)
from embeval.gates import decide, self_test
from embeval.gates.decide import Case, Material
from embeval.gates.policy import Place, Policy, problems
from embeval.gates.self_test import SelfTest
from embeval.store.results import ResultStore, Stored
from embeval.workflows import gate_details, sides
from embeval.workflows.sides import Side

UNVERIFIABLE = "unverifiable"
"""Revision of a model of which nobody can say what it is."""
DATA = "data"
"""Part of a protocol that changes with time: the hash of the data."""


@dataclass(frozen=True)
class Request:
    """A policy and what it is applied to."""

    policy: Policy
    """The policy."""
    source: str
    """Where it was read, for the report."""
    results: Path
    """Folder of results."""
    candidates: tuple[str, ...] = ()
    """What is to be released; none: what the policy says."""
    baseline: str | None = None
    """What it is held against; None: what the policy says."""
    root: Path | None = None
    """Folder at which paths in the policy start; None: the current one."""
    data: Path | None = None
    """Folder with the data of catalogue tasks, for the texts of lost queries."""
    warnings: tuple[str, ...] = ()
    """What a reader of the report should know."""


def gate(request: Request, *, now: datetime | None = None) -> GateReport:
    """The report on every candidate. Broken evidence is an outcome, not an exception.

    Raises ``UsageError`` for a policy that contradicts itself, and where no candidate or no baseline is named.
    """
    policy, at = request.policy, now or datetime.now(UTC)
    named, baseline = _named(request)
    if not named:
        raise UsageError("No candidate. Name one on the command line, or under 'candidate' in the policy.")
    reader = _Reader(ResultStore(request.results), policy, at, request.data)
    base, trouble = _base(reader, baseline if policy.compares else None)
    distinct = tuple(dict.fromkeys(named))
    verdicts = [_verdict(reader, name, base, trouble, baseline, len(distinct)) for name in distinct]
    return decide.report(
        policy,
        verdicts,
        source=request.source,
        made_at=at.isoformat(timespec="seconds"),
        version=_version(),
        warnings=request.warnings,
        error=trouble,
    )


def verdicts(
    request: Request, sides: Sequence[Side], baseline: Side | None, trouble: str | None, *, now: datetime
) -> list[Verdict]:
    """The verdict on each side, as ``gate`` decides on several candidates, without worst slices and lost items.

    ``trouble`` says why there is no baseline where the policy needs one. Raises ``ConfigError`` for a policy that
    contradicts itself.
    """
    policy = request.policy
    for problem in problems(policy):
        raise ConfigError(f"{request.source}: {problem}")
    reader = _Reader(ResultStore(request.results), policy, now, request.data)
    named = baseline.label if baseline is not None else None
    return [
        decide.broken(side.label, trouble, policy, named)
        if trouble is not None
        else _judged(reader, _case(reader, side, baseline), len(sides))
        for side in sides
    ]


def try_out(request: Request, *, now: datetime | None = None) -> SelfTest:
    """Whether the policy would block what it has to, tried on the first candidate or, without any, on the baseline.

    Raises ``EvaluationError`` where there is no sound evidence to try it on, ``UsageError`` as ``gate`` does.
    """
    policy, at = request.policy, now or datetime.now(UTC)
    named, baseline = _named(request)
    if not named and baseline is None:
        raise UsageError("Nothing to try the policy on. Name a candidate or --baseline, or either in the policy.")
    reader = _Reader(ResultStore(request.results), policy, at, request.data)
    side = reader.side(named[0] if named else str(baseline))
    base = reader.side(str(baseline)) if policy.compares else None
    found = {}
    for place in policy.places:
        candidate = reader.evidence(side, place, policy.max_candidate_age_days)
        compared = base is not None and any(rule.compares and rule.ref.place == place for rule in policy.singles)
        other = reader.evidence(base, place, policy.max_baseline_age_days) if base is not None and compared else None
        found[place] = self_test.Sides(candidate, other)
    results = [each.result for each in side.stored]
    return self_test.run(policy, found, today=at.date(), results=results, n_candidates=max(1, len(named)))


def _named(request: Request) -> tuple[tuple[str, ...], str | None]:
    """(candidates, baseline) as request and policy name them. Raises ``UsageError``."""
    policy = request.policy
    for problem in problems(policy):
        raise ConfigError(f"{request.source}: {problem}")
    named = request.candidates or tuple(_rooted(each, request.root) for each in policy.candidates)
    baseline = request.baseline
    if baseline is None and policy.baseline is not None:
        baseline = _rooted(policy.baseline, request.root)
    if policy.compares and baseline is None:
        raise UsageError(
            "The policy compares with a baseline and names none. Say --baseline, or 'baseline' in the policy."
        )
    return named, baseline


def failed(request: Request, problem: str, *, now: datetime | None = None) -> GateReport:
    """The report where nothing could even be looked for: outcome error."""
    at = now or datetime.now(UTC)
    return decide.report(
        request.policy,
        [],
        source=request.source,
        made_at=at.isoformat(timespec="seconds"),
        version=_version(),
        warnings=request.warnings,
        error=problem,
    )


class _Reader:
    """Sides and the evidence on them, each file read once."""

    def __init__(self, store: ResultStore, policy: Policy, now: datetime, data: Path | None) -> None:
        self.store, self.policy, self.now, self.data = store, policy, now, data
        self._found: list[Stored] | None = None
        self._broken: dict[Path, list[str]] = {}
        self._gathered: dict[Path, Evidence] = {}

    def side(self, text: str) -> Side:
        """Raises ``EvaluationError`` and ``UsageError``, as ``sides.resolve`` does."""
        if self._found is None and not expanded(text).exists():
            self._found = sides.all_stored(self.store)
        try:
            side = sides.resolve(text, self.store, self._found)
        except EmbevalError as error:
            unreadable = list[str]()
            list(self.store.find(broken=unreadable))
            if unreadable:
                more = f" ({len(unreadable)} such files)" if len(unreadable) > 1 else ""
                raise EvidenceError(
                    f"{error}\nA file that can't be read{more}: {unreadable[0].splitlines()[0]}"
                ) from None
            raise
        if side.repetitions:
            raise UsageError(f"{text!r} stands for {plural(len(side.repetitions), 'model')}; a gate takes one.")
        return side

    def evidence(self, side: Side, place: Place, max_age_days: int | None) -> Evidence:
        """The one result of a side on a place, checked. Raises ``EvaluationError``."""
        stored = _the_one(side, place)
        if beside := self._broken_beside(stored):
            raise EvidenceError(f"{beside[0]}\nIt may be newer than {stored.path.name}, which then decides nothing.")
        if stored.path not in self._gathered:
            self._gathered[stored.path] = evidence.gather(self.store, stored, now=self.now)
        found = self._gathered[stored.path]
        _refuse_old(found, max_age_days, self.now)
        if not self.policy.allow_unverifiable:
            _refuse_unverifiable(found.result, found.source)
        return found

    def _broken_beside(self, stored: Stored) -> list[str]:
        """Why files beside a result, of the same model and task, can't be read."""
        folder = stored.path.parent
        if folder not in self._broken:
            self._broken[folder] = []
            for file in sorted(folder.glob("*.json")):
                try:
                    if sides.is_result(file):
                        self.store.get(file)
                except StoreError as error:
                    self._broken[folder].append(str(error))
        return self._broken[folder]


def _base(reader: _Reader, text: str | None) -> tuple[Side | None, str | None]:
    """The baseline, or why there is none: then nothing can be decided on any candidate."""
    if text is None:
        return None, None
    try:
        return reader.side(text), None
    except EmbevalError as error:
        return None, f"The baseline {text!r}: {error}"


def _verdict(
    reader: _Reader, text: str, base: Side | None, trouble: str | None, baseline: str | None, n_candidates: int
) -> Verdict:
    policy = reader.policy
    try:
        side = reader.side(text)
    except EmbevalError as error:
        return decide.broken(text, str(error), policy, base.label if base is not None else None)
    if trouble is not None:
        return decide.broken(side.label, trouble, policy, baseline)
    case = _case(reader, side, base)
    return gate_details.added(_judged(reader, case, n_candidates), policy, case, reader.store, reader.data)


def _case(reader: _Reader, side: Side, base: Side | None) -> Case:
    materials = {place: _material(reader, side, base, place) for place in reader.policy.places}
    return Case(
        candidate=side.label,
        materials=materials,
        candidate_digest=_digest(side),
        baseline=base.label if base is not None else None,
        baseline_digest=_digest(base) if base is not None else None,
        warnings=(*_cut(reader.policy, materials), *_same_items(materials)),
    )


def _judged(reader: _Reader, case: Case, n_candidates: int) -> Verdict:
    return decide.judge(reader.policy, case, today=reader.now.date(), n_candidates=n_candidates)


def _cut(policy: Policy, materials: Mapping[Place, Material]) -> Iterator[str]:
    """Rankings that look cut, on either side."""
    for rule in policy.singles:
        material = materials[rule.ref.place]
        sides = [material.candidate] if material.pair is None else [material.pair.baseline, material.pair.candidate]
        for side in sides:
            if side is not None and (note := side.cut_for(rule.ref.metric)) is not None:
                yield note


def _same_items(materials: Mapping[Place, Material]) -> Iterator[str]:
    """Where both sides have the same items to the last bit."""
    for place, material in materials.items():
        if material.pair is not None:
            one, other = (side.result.items for side in (material.pair.baseline, material.pair.candidate))
            if one is not None and other is not None and one.sha256 == other.sha256:
                yield f"Both sides have the very same values on {place}: equal models, or a copy of results."


def _material(reader: _Reader, side: Side, base: Side | None, place: Place) -> Material:
    policy = reader.policy
    try:
        candidate = reader.evidence(side, place, policy.max_candidate_age_days)
    except (EvaluationError, UnknownNameError) as error:
        return Material(problem=str(error))
    if base is None:
        return Material(candidate, problem="There is no baseline.")
    try:
        pair = pairs.pair(reader.evidence(base, place, policy.max_baseline_age_days), candidate, policy.resampling)
    except (EvaluationError, UnknownNameError) as error:
        # Whoever names one result twice learns nothing from thresholds either.
        same = isinstance(error, NotComparableError) and "same result" in error.parts
        return Material(None if same else candidate, problem=str(error))
    for one, other in ((pair.baseline, pair.candidate), (pair.candidate, pair.baseline)):
        if one.hits is None and other.hits is not None:
            problem = f"{one.source}: it has no ranking, and the other side has one.\nRun the evaluation again."
            return Material(problem=problem)
    return Material(candidate, pair)


def _the_one(side: Side, place: Place) -> Stored:
    """The result of a side on a place. Raises ``EvidenceError`` where there is none, or several that differ."""
    tasks = sorted({each.result.task.name for each in side.stored})
    of_task = [each for each in side.stored if each.result.task.name == place.task]
    if not of_task:
        there = did_you_mean(place.task, tasks) or f"There are: {', '.join(tasks)}."
        raise EvidenceError(f"{side.label} has no result of the task {place.task!r}. {there}")
    found = _fitting(side, of_task, place)
    failed_runs = [each for each in found if each.result.status != "ok"]
    if failed_runs:  # a later success would have removed the record
        return failed_runs[0]
    options = {strict_json.canonical(_without_data(each.result)) for each in found}
    if len(options) > 1:
        first, second = _two_kinds(found)
        parts = "; ".join(first.result.signature.differences(second.result.signature))
        raise EvidenceError(
            f"{side.label} has {plural(len(options), 'result')} on {place} that measure different things: {parts}.\n"
            f"Name one by its path ({first.path} or {second.path}), or move the other away."
        )
    return max(found, key=_when)


def _fitting(side: Side, of_task: Sequence[Stored], place: Place) -> list[Stored]:
    """Those of the split and sub-set that a place names, or of the only ones there are."""
    splits = sorted({each.result.split for each in of_task})
    if place.split is None and len(splits) > 1:
        raise EvidenceError(
            f"{side.label} has results on {place.task} for the splits {', '.join(splits)}.\n"
            f"Say which: {place.task}[split={splits[0]}]/…"
        )
    of_split = [each for each in of_task if place.split in (None, each.result.split)]
    if not of_split:
        raise EvidenceError(f"{side.label} on {place.task}: {UnknownNameError('split', str(place.split), splits)}")
    subsets = sorted({each.result.subset for each in of_split})
    if place.subset is None:
        standing = [each for each in of_split if each.result.stands] or of_split
        if len({each.result.subset for each in standing if each.result.status == "ok"}) <= 1:
            return standing
        raise EvidenceError(
            f"{side.label} has results on {place.task} for the sub-sets {', '.join(subsets)}.\n"
            f"Say which: {place.task}[subset={subsets[0]}]/…"
        )
    found = [each for each in of_split if each.result.subset == place.subset]
    if not found:
        raise EvidenceError(f"{side.label} on {place.task}: {UnknownNameError('sub-set', place.subset, subsets)}")
    return found


def _two_kinds(found: Sequence[Stored]) -> tuple[Stored, Stored]:
    """Two results whose options differ."""
    first = found[0]
    return first, next(each for each in found if _without_data(each.result) != _without_data(first.result))


def _without_data(result: Result) -> strict_json.Json:
    return {key: value for key, value in result.signature.protocol.items() if key != DATA}


def _when(stored: Stored) -> datetime:
    return evidence.started(stored.result) or datetime.min.replace(tzinfo=UTC)


def _refuse_old(found: Evidence, max_age_days: int | None, now: datetime) -> None:
    if max_age_days is None:
        return
    at = evidence.started(found.result)
    if at is None:
        raise EvidenceError(f"{found.source}: it doesn't say when it was made, so its age can't be checked.")
    if now - at > timedelta(days=max_age_days):
        raise EvidenceError(
            f"{found.source}: made {(now - at).days} days ago, and the policy allows {max_age_days}.\n"
            "Run the evaluation again with --overwrite."
        )


def _refuse_unverifiable(result: Result, source: str) -> None:
    spec = strict_json.canonical([border.dump(result.model), dict(result.signature.protocol)])
    if result.model.revision is None or UNVERIFIABLE in spec:
        raise EvidenceError(
            f"{source}: nobody can verify what {result.model.label} is: its files have no hash.\n"
            "Set allow_unverifiable: true in the policy if that is meant to be."
        )


def _digest(side: Side) -> str | None:
    digests = {each.result.signature.model_digest for each in side.stored}
    return next(iter(digests)) if len(digests) == 1 else None


def _rooted(text: str, root: Path | None) -> str:
    """A path in a policy starts at the folder of its file."""
    if root is not None and text.strip() and (root / text).exists():  # an empty one would be that folder itself
        return str(root / text)
    return text


def _version() -> str:
    from importlib.metadata import version

    return version("embeval-toolkit")
