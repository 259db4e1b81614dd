"""Compares what a user names: finds or makes the results, pairs those that measured the same thing, tells the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple

from embeval import metrics
from embeval.compare import changes, differences, evidence, pairs, repetitions, slices
from embeval.compare.changes import Rankings
from embeval.compare.differences import Names
from embeval.compare.evidence import Evidence
from embeval.compare.pairs import Pair
from embeval.compare.report import CompareReport, FewItems, TaskChanges
from embeval.core.comparison import Comparison
from embeval.core.ir import NOTHING, Run
from embeval.core.progress import Progress
from embeval.core.result import Result
from embeval.core.signature import WHOLE, other_tokens
from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions
from embeval.core.words import plural
from embeval.data.beir import RetrievalData
from embeval.errors import (
    ConfigError,
    EmbevalError,
    EvaluationError,
    NotComparableError,
    StoreError,
    UnknownNameError,
    UsageError,
)
from embeval.leaderboard.board import RowKey
from embeval.store.results import ResultStore, Stored, name_filter
from embeval.workflows import sides
from embeval.workflows.sides import Side

if TYPE_CHECKING:
    from embeval.runner.local import Step

SHOWN = 4
"""Tasks named in a note."""

Key = tuple[str, str, str]
"""(task, split, sub-set); ``WHOLE`` is also for what stands for a task."""


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """What to compare, and how much to tell of it."""

    sides: tuple[str, ...]
    """The baseline, then the candidates, each as ``sides.resolve`` takes it, or a TREC file of a ranking."""
    results: Path
    """Folder of results."""
    tasks: tuple[str, ...] = ()
    """Tasks called so, or with it in the name; empty: all that both sides have. Models that lack one are run on it."""
    metrics: tuple[str, ...] = ()
    """Metrics; empty: each task's main one."""
    all_metrics: bool = False
    """Whether to compare every metric that both sides have."""
    subset: str | None = None
    """Sub-set of each task; None: the one that stands for it."""
    by: str | None = None
    """Slice to compare by, or ``all``."""
    min_items: int = 20
    """Items below which a label of a slice is left out."""
    show: int = 3
    """Largest losses and gains that are shown of each task."""
    golden: str | None = None
    """Golden set, a folder or a task of the catalogue: where texts come from, and what a ranking is scored against."""
    qrels: str | None = None
    """Judgments to score a ranking against, instead."""
    data: Path | None = None
    """Folder that holds the data of catalogue tasks."""
    mirror: Path | None = None
    """Folder that the data of mteb's tasks is read from."""
    statistics: StatisticsOptions = field(default_factory=StatisticsOptions)
    """How uncertainty is estimated."""
    correction: str = "holm"
    """How p-values are corrected over the report: ``holm``, ``bh`` or ``none``."""
    run_missing: bool = True
    """Whether models without a result of one of ``tasks`` are run."""
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    """How they are."""


class Matched(NamedTuple):
    """A pair with what its sides are called."""

    pair: Pair
    names: Names


def compare(
    request: CompareRequest, progress: Progress | None = None, on_start: Callable[[Step], None] | None = None
) -> CompareReport:
    """The report; ``on_start`` hears of each step of a run that was missing.

    Raises ``NotComparableError`` where nothing can be compared, with all the reasons.
    """
    _refuse_bad(request)
    store = ResultStore(request.results)
    broken: list[str] = []
    stored = sides.all_stored(store, broken)
    request = _each_task(request, stored)
    named = _distinct(_resolved(_Runner(request, store, progress, on_start), stored), request.sides)
    baseline, *candidates = named
    match = _Matching(request, store)
    match.notes += [f"Left out: {message.splitlines()[0]}" for message in broken]
    match.tell_unknown(named)
    matched = [each for candidate in candidates for each in match.pairs(baseline, candidate)]
    repeated = [each for candidate in candidates for each in match.repeated(baseline, candidate)]
    match.notes += [note for one in matched for note in _cut(request, one.pair)]
    compared = [*(each for one in matched for each in _metrics(request, one)), *repeated]
    if not (matched or repeated) or (match.left_out and not compared):
        raise NotComparableError(_nothing(baseline, candidates, match), tuple(match.not_comparable))
    _refuse_nowhere(request, matched, compared)
    match.notes += _nowhere(request, match, compared)
    by_label, few = _by_label(request, matched)
    return CompareReport(
        baseline=baseline.label,
        candidates=tuple(candidate.label for candidate in candidates),
        comparisons=differences.adjusted(compared, request.correction),
        slices=differences.adjusted(by_label, request.correction),
        worst_slices=slices.worst(matched, request.min_items),
        few=few,
        changes=tuple(_changes(request, store, matched)),
        not_comparable=tuple(match.not_comparable),
        notes=tuple(dict.fromkeys(match.notes)),
        level=request.statistics.level,
        correction=request.correction,
        min_items=request.min_items,
    )


TYPES: Mapping[str, tuple[type | UnionType, str]] = {
    "all_metrics": (bool, "true or false"),
    "subset": (str | None, "a text"),
    "by": (str | None, "the name of a slice"),
    "min_items": (int, "a whole number, 2 or more"),
    "show": (int, "a whole number, 0 or more"),
    "golden": (str | None, "a folder or a task"),
    "qrels": (str | None, "the path of a file"),
    "correction": (str, "holm, bh or none"),
    "run_missing": (bool, "true or false"),
    "runtime": (RuntimeOptions, "RuntimeOptions(…)"),
}
"""What a caller in Python may get wrong: dataclasses take anything."""
LOWEST = {"min_items": 2, "show": 0}
"""Of an item, or of a negative number of them, there is nothing to say."""


def _refuse_bad(request: CompareRequest) -> None:
    for name, (kind, what) in TYPES.items():
        value = getattr(request, name)
        number = kind is not int or (not isinstance(value, bool) and isinstance(value, int) and value >= LOWEST[name])
        if not isinstance(value, kind) or not number:
            raise ConfigError(f"{name} must be {what}, not {value!r}.")
    if len(request.sides) < 2:
        raise UsageError("A comparison takes a baseline and a candidate at least: embeval compare A B.")
    if request.correction not in differences.CORRECTIONS:
        raise UnknownNameError("correction", request.correction, differences.CORRECTIONS)
    for name in request.metrics:
        metrics.get(name)
    if request.golden is not None and request.qrels is not None:
        raise UsageError("Say one of golden set and judgments: --golden or --qrels.")


def _refuse_nowhere(request: CompareRequest, matched: Sequence[Matched], compared: Sequence[Comparison]) -> None:
    """Raises ``UnknownNameError`` where no result has any of the metrics that were asked for."""
    if request.metrics and not compared:
        known = {name for one in matched for name in one.pair.metric_names}
        raise UnknownNameError("metric of these results", request.metrics[0], known)


def _nowhere(request: CompareRequest, match: _Matching, compared: Sequence[Comparison]) -> list[str]:
    """Notes on metrics that were asked for and that no result has."""
    if request.all_metrics:
        return []
    there = {each.metric for each in compared} | match.left_out
    return [f"No result that was compared has {name}." for name in request.metrics if name not in there]


def _distinct(found: Sequence[Side], words: Sequence[str]) -> list[Side]:
    """Sides with different labels: where two share one, what the user typed is added."""
    labels = [side.label for side in found]
    if len(set(labels)) == len(labels):
        return list(found)
    longer = [
        f"{side.label} [{word}]" if labels.count(side.label) > 1 else side.label
        for side, word in zip(found, words, strict=True)
    ]
    if len(set(longer)) < len(longer):
        twice = next(word for word in words if list(words).count(word) > 1)
        raise UsageError(f"{twice!r} is named twice. A side compared with itself says nothing.")
    return [replace(side, label=label) for side, label in zip(found, longer, strict=True)]


def _cut(request: CompareRequest, pair: Pair) -> Iterator[str]:
    """Rankings that look cut, on either side."""
    for name in _wanted(request, pair):
        notes = (side.cut_for(name) for side in (pair.baseline, pair.candidate))
        yield from (note for note in notes if note is not None)


def _metrics(request: CompareRequest, matched: Matched) -> tuple[Comparison, ...]:
    pair, names = matched
    return differences.compared(pair, _wanted(request, pair), names)


def _wanted(request: CompareRequest, pair: Pair) -> tuple[str, ...]:
    """Metrics of a pair. One that was asked for and that neither side has is left to the other tasks."""
    if request.all_metrics:
        return pair.metric_names
    wanted = _wanted_of(request, pair.baseline.result, pair.candidate.result)
    return tuple(name for name in wanted if pair.other_tokens(name) is None)


def _wanted_of(request: CompareRequest, one: Result, other: Result) -> tuple[str, ...]:
    if request.all_metrics:
        return tuple(name for name in one.scores if name in other.scores)
    if not request.metrics:
        return (one.main_score or "",)
    known = {*one.scores, *other.scores}
    return tuple(name for name in request.metrics if name in known)


def _by_label(request: CompareRequest, matched: Sequence[Matched]) -> tuple[list[Comparison], tuple[FewItems, ...]]:
    if request.by is None:
        return [], ()
    if not matched:
        raise UsageError("--by compares one system with another: a side with * has no comparison by label.")
    having = [one for one in matched if request.by == slices.ALL or request.by in one.pair.baseline.records.slices]
    if not having and request.by != slices.ALL:
        known = {name for one in matched for name in one.pair.baseline.records.slices}
        raise UnknownNameError("slice", request.by, known, hint="" if known else "These results have no slices.")
    compared: list[Comparison] = []
    few: dict[FewItems, None] = {}
    for pair, names in having:
        found = slices.by_slice(pair, _wanted(request, pair), names, request.by, request.min_items)
        compared += found.comparisons
        few |= dict.fromkeys(found.few)
    return compared, tuple(few)


def _changes(request: CompareRequest, store: ResultStore, matched: Sequence[Matched]) -> Iterator[TaskChanges]:
    texts = _Texts(request)
    for pair, names in matched:
        found = changes.changes(pair, names.candidate, request.show)
        if found is None:
            continue
        if pair.baseline.hits is None or not (found.lost or found.gained):
            yield found
            continue
        data = texts.of(pair.baseline)
        if isinstance(data, RetrievalData):
            yield changes.with_rankings(found, data, _rankings(store, pair))
        else:
            yield replace(found, note=data)


def _rankings(store: ResultStore, pair: Pair) -> Callable[[Collection[str]], tuple[Rankings, Rankings]]:
    def of(side: Evidence, queries: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        if side.run is not None:
            return _first(side.run, queries)
        return store.rankings(Stored(Path(side.source), side.result), queries)

    return lambda queries: (of(pair.baseline, queries), of(pair.candidate, queries))


def _first(run: Run, queries: Collection[str]) -> dict[str, tuple[str, ...]]:
    rows = {query: row for row, query in enumerate(run.query_ids) if query in queries}
    return {
        query: tuple(run.doc_ids[doc] for doc in run.docs[row].tolist() if doc != NOTHING)
        for query, row in rows.items()
    }


class _Texts:
    """Golden sets, each read once."""

    def __init__(self, request: CompareRequest) -> None:
        self._request = request
        self._known: dict[str, RetrievalData | str] = {}

    def of(self, side: Evidence) -> RetrievalData | str:
        """The data behind a result, or why it isn't at hand."""
        key = str(side.result.signature.protocol.get("data"))
        if key not in self._known:
            self._known[key] = self._read(side)
        return self._known[key]

    def _read(self, side: Evidence) -> RetrievalData | str:
        stored = Stored(Path(side.source), side.result)
        golden = sides.golden_folder(self._request.golden, self._request.data)
        first: EmbevalError | None = None
        for folder in dict.fromkeys((golden, None)):
            try:
                from embeval.workflows import stored_data

                return stored_data.retrieval_data(stored, golden=folder, data=self._request.data, ranked=True)
            except EmbevalError as error:
                first = first or error
        return str(first).splitlines()[0]


class _Matching:
    """Pairs results of two sides and keeps what is to be said of the others."""

    def __init__(self, request: CompareRequest, store: ResultStore) -> None:
        self._request = request
        self._store = store
        self._checked: dict[Path, Evidence] = {}
        self.not_comparable: list[str] = []
        self.notes: list[str] = []
        self.left_out: set[str] = set()
        """Metrics per token that were asked for, of results of different tokenizers."""

    def pairs(self, baseline: Side, candidate: Side) -> list[Matched]:
        """What can be compared of two sides that are one system each, by task."""
        if baseline.repetitions or candidate.repetitions:
            return []
        found = []
        for one, other in self._same_protocol(baseline, candidate):
            try:
                made = pairs.pair(self._evidence(one), self._evidence(other), self._request.statistics)
            except EvaluationError as error:
                self.not_comparable.append(str(error))
                continue
            names = Names(baseline.label, candidate.label)
            left_out = self._without_tokens(names, [made.baseline, made.candidate])
            if not left_out or _wanted(self._request, made):
                found.append(Matched(made, names))
        return found

    def _without_tokens(self, names: Names, runs: Sequence[Evidence]) -> set[str]:
        """The metrics per token that were asked for, where the tokenizers of the runs differ; told with the reason."""
        one, other = runs[0].result, runs[-1].result
        reason = other_tokens(each.result.signature for each in runs)
        wanted = _wanted_of(self._request, one, other)
        left_out = [name for name in wanted if metrics.is_per_token(name)]
        if reason is None or not left_out:
            return set()
        self.left_out |= set(left_out)
        both = sorted(name for name in one.scores if name in other.scores and not metrics.is_per_token(name))
        instead = " ".join(f"--metric {name}" for name in both if name not in wanted)
        advice = "" if both and not instead else f" Instead: {instead or 'run the task so that it has such values'}."
        self.not_comparable.append(
            f"{_name(self._key(one))}: {', '.join(left_out)} of {names.baseline} and {names.candidate} left out: "
            f"{reason}.{advice}"
        )
        return set(left_out)

    def tell_unknown(self, found: Sequence[Side]) -> None:
        """Notes tasks that were asked for and that no side has, such as a name with a slip in it."""
        results = [each.result for side in found for each in side.stored]
        results += [each.result for side in found for each in side.evidence]
        names = sorted({result.task.name for result in results})
        for word in self._request.tasks:
            fits = name_filter(names, [sides.task_name(word, self._request.data)])
            if not any(map(fits, names)):
                self.notes.append(f"No side has a result of {word!r}.")

    def repeated(self, baseline: Side, candidate: Side) -> list[Comparison]:
        """The same where a side stands for repetitions of one system."""
        if not (baseline.repetitions or candidate.repetitions):
            return []
        repetitions.refuse_shared(
            *({each.result.model.label for each in side.stored} for side in (baseline, candidate))
        )
        names = Names(baseline.label, candidate.label)
        found: list[Comparison] = []
        for one, other in self._same_protocol(baseline, candidate):
            try:
                runs = self._runs(one, baseline, one), self._runs(other, candidate, one)
                left_out = self._without_tokens(names, [*runs[0], *runs[1]])
                wanted = [each for each in _wanted_of(self._request, one.result, other.result) if each not in left_out]
                found += repetitions.compared(runs[0], runs[1], wanted, names, self._request.statistics)
            except EvaluationError as error:
                self.not_comparable.append(str(error))
        return found

    def _runs(self, first: Stored | Evidence, side: Side, protocol: Stored | Evidence) -> list[Evidence]:
        """Of each repetition its newest result under the protocol."""
        key = self._key(first.result)
        of_model: dict[RowKey, Stored | Evidence] = {}
        for each in self._by_key(side)[key]:
            if each.result.status != "ok":
                self.notes.append(f"{_name(key)}: the run of {each.result.model.label} failed and is left out.")
            elif not each.result.signature.differences(protocol.result.signature):
                model = RowKey.of(each.result)
                of_model[model] = max(of_model.get(model, each), each, key=_age)
        lacking = len(side.repetitions) - len(of_model)
        if side.repetitions and lacking > 0:
            self.notes.append(f"{_name(key)}: {plural(lacking, 'run')} of {side.label} without a comparable result.")
        return [self._evidence(each) for each in of_model.values()]

    def _evidence(self, result: Stored | Evidence) -> Evidence:
        if isinstance(result, Evidence):
            return result
        if result.path not in self._checked:
            self._checked[result.path] = evidence.gather(self._store, result, whole=False)
        return self._checked[result.path]

    def _same_protocol(self, baseline: Side, candidate: Side) -> Iterator[tuple[Stored | Evidence, Stored | Evidence]]:
        """The newest results of equal protocol of each task; what has none is told."""
        one, other = self._by_key(baseline), self._by_key(candidate)
        self._tell_alone(baseline, one.keys() - other.keys(), other)
        self._tell_alone(candidate, other.keys() - one.keys(), one)
        for key in sorted(one.keys() & other.keys()):
            ok = [[each for each in found[key] if each.result.status == "ok"] for found in (one, other)]
            if not (ok[0] and ok[1]):
                self._tell_failed(key, (baseline, one[key], ok[0]), (candidate, other[key], ok[1]))
                continue
            equal = [
                (mine, theirs)
                for mine in ok[0]
                for theirs in ok[1]
                if not mine.result.signature.differences(theirs.result.signature)
            ]
            if equal:
                yield max(equal, key=lambda both: min(map(_age, both)))
                continue
            latest = [max(found, key=_age).result.signature for found in ok]
            parts = latest[0].differences(latest[1])
            self.not_comparable.append(
                f"{_name(key)}: {baseline.label} and {candidate.label} didn't measure the same thing. "
                f"Different: {'; '.join(parts)}."
            )

    def _tell_alone(self, side: Side, keys: Collection[Key], others: Collection[Key]) -> None:
        if alone := sorted({key[0] for key in keys} - {key[0] for key in others}):
            self.notes.append(f"Only {side.label} has results of {_listed(alone)}.")

    def _tell_failed(self, key: Key, *found: tuple[Side, list[Any], list[Any]]) -> None:
        for side, there, ok in found:
            if not ok:
                error = there[0].result.error
                message = error.message.splitlines()[0] if error is not None and error.message else "no message"
                self.not_comparable.append(f"{_name(key)}: the run of {side.label} failed: {message}")

    def _by_key(self, side: Side) -> dict[Key, list[Stored | Evidence]]:
        found: dict[Key, list[Stored | Evidence]] = {}
        everything: list[Stored | Evidence] = [*side.stored, *side.evidence]
        fits = name_filter([each.result.task.name for each in everything], self._tasks())
        for each in everything:
            result = each.result
            wanted = result.stands if self._request.subset is None else result.subset == self._request.subset
            if wanted and fits(result.task.name):
                found.setdefault(self._key(result), []).append(each)
        return found

    def _key(self, result: Result) -> Key:
        return result.task.name, result.split, WHOLE if self._request.subset is None else result.subset

    def _tasks(self) -> Sequence[str] | None:
        return [sides.task_name(word, self._request.data) for word in self._request.tasks] or None


def _models(side: Side) -> set[str]:
    return {each.result.model.label for each in side.stored}


def _age(result: Stored | Evidence) -> str:
    timings = result.result.timings
    return "" if timings is None else timings.started_at


def _name(key: Key) -> str:
    task, split, subset = key
    return f"{task} ({split})" if subset == WHOLE else f"{task} ({split}, {subset})"


def _listed(names: Sequence[str]) -> str:
    more = f" and {plural(len(names) - SHOWN, 'more task')}" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _nothing(baseline: Side, candidates: Iterable[Side], match: _Matching) -> str:
    them = " and ".join(candidate.label for candidate in candidates)
    reasons = [*match.not_comparable, *match.notes]
    if not reasons:
        reasons = [
            "No result fits the tasks, sub-set and metrics that were asked for. 'embeval results list' shows all."
        ]
    return "\n".join([f"Nothing of {baseline.label} and {them} can be compared.", *reasons])


def _resolved(runner: _Runner, stored: Sequence[Stored]) -> list[Side]:
    """The sides; a ranking is scored, and a model that lacks a task is run."""
    request = runner.request
    found: dict[str, Side] = {}
    rankings = [word for word in request.sides if sides.is_run_file(word)]
    for word in request.sides:
        if word not in rankings:
            found[word] = _with_missing(runner, word, stored)
    for word in rankings:
        found[word] = sides.scored(
            word,
            [each for side in found.values() for each in side.stored],
            golden=request.golden,
            qrels=request.qrels,
            data=request.data,
            statistics=request.statistics,
        )
    return [found[word] for word in request.sides]


class _Runner:
    """Runs what is missing."""

    def __init__(
        self,
        request: CompareRequest,
        store: ResultStore,
        progress: Progress | None,
        on_start: Callable[[Step], None] | None,
    ) -> None:
        self.request = request
        self.store = store
        self._progress = progress
        self._on_start = on_start

    def run(self, word: str, side: Side | None, words: Sequence[str]) -> Side:
        """The side with results of those tasks. Raises the first error that a step ran into."""
        # Loaded only where something has to be run: reading stored results starts in half the time.
        from embeval.runner import local
        from embeval.workflows import requests

        spec: ModelSpec = requests.parse_model(word)
        data, mirror = self.request.data, self.request.mirror
        tasks = [requests.parse_task(each, root=Path(), data=data, mirror=mirror) for each in words]
        options = local.RunOptions(runtime=self.request.runtime, statistics=self.request.statistics)
        made: list[Stored] = []
        for outcome in local.run([spec], tasks, self.store, options, progress=self._progress, on_start=self._on_start):
            if outcome.error is not None:
                raise outcome.error
            made += outcome.stored
        if side is None:
            return Side(made[0].result.model.label, tuple(made))
        return replace(side, stored=(*side.stored, *made))


def _each_task(request: CompareRequest, stored: Sequence[Stored]) -> CompareRequest:
    """The request with a benchmark of mteb as its tasks."""
    if not any(each.startswith("mteb:") for each in request.tasks):
        return request  # and nothing is imported for it
    from embeval.workflows import mteb_entries

    there = {each.result.task.name for each in stored}
    return replace(request, tasks=tuple(word for each in request.tasks for word in mteb_entries.words(each, there)))


def _with_missing(runner: _Runner, word: str, stored: Sequence[Stored]) -> Side:
    request = runner.request
    try:
        side = sides.resolve(word, runner.store, stored)
    except (StoreError, UnknownNameError) as error:
        if not request.tasks or word.startswith(sides.TAG) or "*" in word:
            raise
        if not request.run_missing:
            raise StoreError(f"{word!r} isn't stored, and --no-run forbids to run it. {error}") from None
        return runner.run(word, None, request.tasks)
    spec = sides.spec_of(word, side)
    if spec is None or not request.run_missing:
        return side
    there = {each.result.task.name for each in side.stored if each.result.status == "ok"}
    missing = [task for task in request.tasks if _is_missing(task, there, request)]
    return runner.run(word, side, missing) if missing else side


def _is_missing(task: str, there: Collection[str], request: CompareRequest) -> bool:
    """Whether a word of ``-t`` is a task that isn't among those; a mere part of a name asks for nothing to be run."""
    fits = name_filter(there, [sides.task_name(task, request.data)])
    return not any(map(fits, there)) and sides.bound(task, request.data) is not None
