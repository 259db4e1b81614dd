"""Models x tasks, one after another in this process; what is finished is skipped, what fails is recorded.

A step is one task for one model. Its results are written as soon as they exist, the one that marks the step as
finished last, so a run that is killed goes on at the first unfinished step when it is started again.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from embeval.core import packages, provenance, strict_json
from embeval.core.facts import ModelFacts
from embeval.core.ir import Run
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import (
    PARITY_PREFIX,
    QUERIES_TIMED,
    Checkable,
    Equippable,
    Hybrid,
    KeepsTokens,
    Metric,
    OfTokens,
    Remeasurable,
    System,
    Task,
    Timing,
)
from embeval.core.records import ItemRecords
from embeval.core.result import Failure, MetricValue, Result, Timings, TrainedOn
from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions, TaskSpec
from embeval.encoders import facts, loading, locate
from embeval.encoders.cache import VectorCache, open_cache
from embeval.encoders.encoder import BatchedEncoder
from embeval.encoders.locate import Located
from embeval.errors import (
    EmbevalError,
    EvaluationError,
    MissingPackageError,
    StoreError,
    UnknownNameError,
    UsageError,
)
from embeval.language_models import loading as language_models
from embeval.language_models.model import LanguageModel
from embeval.metrics import get as get_metric
from embeval.runner import assemble
from embeval.store import pins
from embeval.store.results import ResultStore, Stored

_HUB_COMMIT = re.compile(r"[0-9a-f]{40}")
MTEB = "mteb"
"""The task type whose tasks have names that models declare to be trained on."""
M = TypeVar("M")
Status = Literal["done", "skipped", "rescored", "timed", "failed"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One task for one model."""

    number: int
    """Place among all steps of the run, from 1."""
    total: int
    """How many steps there are."""
    model: ModelSpec
    """The model as it was asked for."""
    task: TaskSpec
    """The task."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a step."""

    step: Step
    """The step."""
    status: Status
    """``done`` now, ``skipped`` because finished before, ``rescored`` from stored items, ``timed`` in turns with the
    others of its run, or ``failed``."""
    stored: tuple[Stored, ...] = ()
    """Its results, the one for the whole split last; empty where it failed."""
    error: Exception | None = None
    """Why it failed; an error of embeval, or a fault of the program."""
    seconds: float = 0.0
    """Wall seconds it took."""

    @property
    def result(self) -> Result | None:
        """The result that stands for the task."""
        standing = [each.result for each in self.stored if each.result.stands]
        return standing[-1] if standing else None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How to go about a run."""

    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    statistics: StatisticsOptions = field(default_factory=StatisticsOptions)
    overwrite: bool = False
    """Run again what is finished."""
    verify: bool = False
    """Hash model files again instead of trusting what is remembered of them."""


def run(
    models: Sequence[ModelSpec],
    tasks: Sequence[Task[Any]],
    store: ResultStore,
    options: RunOptions,
    *,
    also: Sequence[tuple[ModelSpec, Sequence[Task[Any]]]] = (),
    progress: Progress | None = None,
    on_start: Callable[[Step], None] | None = None,
) -> Iterator[Outcome]:
    """The outcome of every step, models outside, tasks inside. A failing step doesn't stop the others.

    ``also`` holds further models, each with the tasks that it is evaluated on.

    Models are located and data is loaded once before anything is encoded, so that a misspelled name, a broken line or
    a model of the wrong kind is told in the first seconds and not after hours: steps that are bound to fail come first.
    Raises ``StoreError`` at once where results can't be written, since then nothing that follows could be kept.
    """
    store.refuse_unwritable()
    git = provenance.git_state()
    cache = open_cache() if options.runtime.cache else None
    steps = [
        (worker, task)
        for model, of_model in [*((model, tasks) for model in models), *also]
        for worker in [_Worker(model, store, options, progress or Silent(), git, cache)]
        for task in of_model
    ]
    if len(steps) > 1:
        broken = {id(task) for task in {id(task): task for _, task in steps}.values() if not _loads(task)}
        steps.sort(key=lambda step: step[0].takes(step[1]) and id(step[1]) not in broken)  # stable: False before True
    for number, (worker, task) in enumerate(steps, start=1):
        step = Step(number=number, total=len(steps), model=worker.model, task=task.spec)
        if on_start is not None:
            on_start(step)
        began = time.perf_counter()
        try:
            outcome = worker.step(step, task)
        except (StoreError, UsageError):
            raise
        except Exception as error:  # a fault in one step is reported and must not lose the others
            error = told(error)
            worker.record_failure(task, error)
            outcome = Outcome(step=step, status="failed", error=error)
        yield replace(outcome, seconds=time.perf_counter() - began)


def told(error: Exception) -> Exception:
    """An error as its reader should see it: what the system ran out of or refused is no fault of the program."""
    if isinstance(error, MemoryError):
        return EvaluationError("Out of memory. Try a smaller batch_tokens (--batch-tokens).")
    if isinstance(error, ModuleNotFoundError) and not isinstance(error, EmbevalError):
        return packages.not_installed(error) or error
    if isinstance(error, OSError) and error.errno is not None:
        place = f"{error.filename}: " if error.filename else ""
        return EvaluationError(f"{place}{error.strerror}.")
    return error


def _loads(task: Task[Any]) -> bool:
    try:
        if isinstance(task, Checkable):
            task.check()
        else:
            task.load()
    except EmbevalError:
        return False
    return True


class _Worker:
    """One model, located once and loaded when the first task needs it."""

    def __init__(
        self,
        model: ModelSpec,
        store: ResultStore,
        options: RunOptions,
        progress: Progress,
        git: tuple[str | None, bool | None],
        cache: VectorCache | None,
    ) -> None:
        self.model = model
        self._cache = cache
        self._store, self._options, self._progress, self._git = store, options, progress, git
        self._located: Located | Exception | None = None
        self._known: tuple[str, str | None] | None = None
        """What kind of language model it is, and the digest of its tokenizer: reading a large one takes a moment."""
        self._encoder: System | Exception | None = None
        self._language_model: LanguageModel | Exception | None = None

    def takes(self, task: Task[Any]) -> bool:
        """Whether the model can be located, and is of a kind that the task can evaluate."""
        try:
            self._fitted(task)
        except UsageError:
            raise
        except EmbevalError:
            return False
        return True

    def step(self, step: Step, task: Task[Any]) -> Outcome:
        located = self._locate()
        began, cpu_began = time.perf_counter(), time.process_time()
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        task = self._fitted(task)
        payload = task.load()
        load_data_s = time.perf_counter() - began
        protocol, metrics = task.protocol(payload), task.metrics(payload)

        if not self._options.overwrite and (found := self._finished(located, task, protocol)) is not None:
            together = (*self._siblings(found), found)
            if self._as_wanted(together, task, payload, metrics) and self._tells_all(together, task, located):
                return Outcome(step=step, status="skipped", stored=together)
            if (parts := self._rescored(found, task, payload, metrics)) is not None:
                told = found.result.facts or self._facts_of(located, task)
                results = [replace(part.result, facts=told) for part in parts]
                stored = tuple(
                    self._store.put(result, part.records, part.run, part.tokens)
                    for result, part in zip(results, parts, strict=True)
                )
                return Outcome(step=step, status="rescored", stored=stored)

        load_began = time.perf_counter()
        encoder, loaded_now = self._load(located, task)
        load_model_s = time.perf_counter() - load_began
        late_before = _late_load_s(encoder)
        if isinstance(task, Equippable):
            runtime = self._options.runtime
            task = task.equipped(runtime, self._cache, lambda: loading.load_system(located, runtime))
        try:
            collected = task.collect(payload, encoder, self._progress)
        except UsageError as error:  # found out by the model and no other: the steps that remain may fit
            raise EvaluationError(str(error)) from error
        late_s = _late_load_s(encoder) - late_before
        load_model_s += late_s
        info = encoder.info
        metrics = (*metrics, *(get_metric(name) for name in collected.also if name not in _names(metrics)))
        origin = provenance.collect(
            device=info.device,
            num_threads=info.num_threads,
            batch_tokens=info.batch_tokens,
            extra={**info.extra, **collected.origins},
        )
        evidence = assemble.Evidence(
            model=encoder.spec,
            task=portable(task.spec),
            protocol=protocol,
            metrics=metrics,
            records=collected.records,
            provenance=replace(origin, git_commit=self._git[0], git_dirty=self._git[1]),
            run=collected.run,
            tokens=collected.tokens,
            counts=collected.counts,
            warnings=collected.warnings,
            prompts=collected.prompts,
            labels=_labels(task, payload),
            trained_on=_trained_on(encoder.spec, task.spec),
            facts=_facts(located, encoder),
            tokenizer=collected.tokenizer,
        )
        parts = assemble.results(evidence, self._options.statistics, None)
        wall_s = time.perf_counter() - began - load_model_s
        phases = {"load_data": load_data_s, **collected.phases}
        if late_s:  # it is no part of encoding, though it happened there
            phases["encode"] = max(phases.get("encode", 0.0) - late_s, 0.0)
        encode_s = phases.get("encode") or None
        timings = Timings(
            started_at=started_at,
            wall_s=round(wall_s, 3),
            cpu_s=round(time.process_time() - cpu_began, 3),
            load_model_s=round(load_model_s, 3) if loaded_now or late_s else None,
            peak_rss_mib=provenance.peak_rss_mib(),
            phases={name: round(seconds, 3) for name, seconds in phases.items()},
            texts_encoded=collected.work.n_texts,
            texts_per_s=_per_second(collected.work.n_texts, encode_s),
            tokens_per_s=_per_second(collected.work.n_tokens, encode_s),
        )
        stored = tuple(
            self._store.put(replace(part.result, timings=timings), part.records, part.run, part.tokens)
            for part in parts
        )
        return Outcome(step=step, status="done", stored=stored)

    def record_failure(self, task: Task[Any], error: Exception) -> None:
        """Leaves a note of a failure beside the results, where the model is known well enough to have a place."""
        if not isinstance(self._located, Located):
            return
        spec = portable(task.spec)
        model = self._located.spec
        self._store.put(
            Result(
                status="error",
                task=spec,
                model=model,
                split=spec.dataset.split,
                subset=assemble.ALL,
                statistics=self._options.statistics,
                signature=assemble.signature(model, {"task": spec.name, "type": spec.type}, assemble.ALL, (), {}),
                provenance=provenance.collect(),
                error=Failure(type=type(error).__name__, message=str(error)),
            )
        )

    def _locate(self) -> Located:
        if self._located is None:
            try:
                self._located = loading.resolve(self.model, verify=self._options.verify)
            except EmbevalError as error:
                self._located = error
        if isinstance(self._located, Exception):
            raise self._located
        return self._located

    def _fitted(self, task: Task[Any]) -> Task[Any]:
        """The task, bound to the model where it scores tokens. Raises what ``OfTokens.fitted`` does."""
        located = self._locate()
        if not isinstance(task, OfTokens):
            return task
        if self._known is None:
            self._known = language_models.known_of(located)
        return task.fitted(*self._known, located.spec)

    def _load(self, located: Located, task: Task[Any]) -> tuple[System | LanguageModel, bool]:
        """The model as the task wants it, with its language-model head or as an encoder, and whether that took time."""
        runtime, cache = self._options.runtime, self._cache
        if isinstance(task, OfTokens):
            kind, loaded_now = task.kind, self._language_model is None
            self._language_model = self._language_model or self._loaded(
                lambda: language_models.load(located, kind, runtime, cache)
            )
        else:
            loaded_now = self._encoder is None
            self._encoder = self._encoder or self._loaded(lambda: loading.load_system(located, runtime, cache))
        loaded = self._language_model if isinstance(task, OfTokens) else self._encoder
        if isinstance(loaded, Exception):
            raise loaded
        assert loaded is not None
        return loaded, loaded_now

    def _loaded(self, load: Callable[[], M]) -> M | EmbevalError:
        self._progress.start("loading the model", 1, "model")
        try:
            return load()
        except EmbevalError as error:  # the next task would run into it again
            return error
        finally:
            self._progress.finish()

    def _as_wanted(self, together: Sequence[Stored], task: Task[Any], payload: Any, metrics: Sequence[Metric]) -> bool:
        """Whether the results of a task are complete, what is asked for, and what their stored items say.

        Every value is computed again: a file that was changed by hand, or half by another run, is found out here.
        Intervals that don't say how they were made are older ones.
        """
        versions = {metric.name: metric.version for metric in metrics}
        labels = _labels(task, payload)
        for stored in together:
            found = stored.result
            kept = _names(_kept(found, metrics))
            if (
                found.statistics != self._options.statistics
                or {name: n for name, n in found.signature.metrics.items() if name not in kept} != versions
                or (found.counts.get(QUERIES_TIMED) or 0) < _n_timed(task, payload)
                or found.main_score != metrics[0].name
                or found.labels != labels
                or any(score.ci_low is not None and score.interval is None for score in found.scores.values())
            ):
                return False
        whole = together[-1]
        held = [*metrics, *_kept(whole.result, metrics)]
        evidence = self._evidence(whole.result, task, held, self._store.records(whole), run=None)
        expected = {
            part.result.subset: part.result for part in assemble.results(evidence, StatisticsOptions(resamples=0), None)
        }
        there = {stored.result.subset: stored.result for stored in together}
        return expected.keys() == there.keys() and all(
            _equal_scores(there[subset].scores, result.scores) for subset, result in expected.items()
        )

    def _tells_all(self, together: Sequence[Stored], task: Task[Any], located: Located) -> bool:
        """Whether results say what the model is and what kind of task it was, as older ones don't.

        What a tag pins stays as it is, and so does what nothing more can be told of.
        """
        silent = any(each.result.facts is None for each in together)
        kind = any(each.result.task.category != task.spec.category for each in together)
        if not silent and not kind:
            return True
        pinned = {path.resolve() for path in pins.pinned(self._store.root)}
        if any(each.path.resolve() in pinned for each in together):
            return True
        return not kind and self._facts_of(located, task) is None

    def _facts_of(self, located: Located, task: Task[Any]) -> ModelFacts | None:
        """The facts of the model, which is loaded for them; None where it can't be."""
        try:
            return _facts(located, self._load(located, task)[0])
        except EmbevalError:
            return None

    def _finished(self, located: Located, task: Task[Any], protocol: dict[str, strict_json.Json]) -> Stored | None:
        """The stored result for the whole split under the same signature, if it and its files are sound."""
        wanted = assemble.signature(located.spec, protocol, assemble.ALL, (), {})
        name = f"{assemble.ALL}.{wanted.protocol_digest[:8]}.json"
        for path in self._store.folder(located.spec, task.spec.name).glob(f"*.{name}"):
            try:
                stored = Stored(path, self._store.get(path))
                self._store.verify(stored)
            except StoreError:
                continue  # broken on disk: evaluated again, and then replaced
            found = stored.result.signature
            if isinstance(task, KeepsTokens) and task.keeps_tokens and stored.result.tokens is None:
                continue
            if (found.protocol, found.model_digest, stored.result.task.name) == (
                wanted.protocol,
                wanted.model_digest,
                task.spec.name,
            ):
                return stored
        return None

    def _siblings(self, whole: Stored) -> tuple[Stored, ...]:
        """The results of sub-sets, and their means, that belong to the result for the whole split."""
        protocol = {**whole.result.signature.protocol, "subset": None}
        found = []
        for path in sorted(whole.path.parent.glob("*.json")):
            if path == whole.path or path.name.endswith(".error.json"):
                continue
            try:
                stored = Stored(path, self._store.get(path))
            except StoreError:
                continue  # broken on disk: missing, and then written again
            if {**stored.result.signature.protocol, "subset": None} == protocol:
                found.append(stored)
        return tuple(sorted(found, key=lambda each: assemble.place(each.result.subset)))

    def _rescored(
        self, stored: Stored, task: Task[Any], payload: Any, metrics: Sequence[Metric]
    ) -> list[assemble.Part] | None:
        """The results from stored items, or from the stored ranking; None where only the model can give them."""
        old = stored.result
        kept = _kept(old, metrics)
        run = self._store.run(stored) if old.run is not None else None
        if run is not None and isinstance(task, Remeasurable):
            # From the ranking even where the metrics are known: counts and notes hang on the main score too.
            collected = task.remeasure(payload, run, old.counts, old.warnings)
            if collected is None:
                return None
            records = collected.records
            if kept:
                records = _with_columns_of(kept, records, self._store.records(stored))
            evidence = self._evidence(old, task, [*metrics, *kept], records, run=run, labels=_labels(task, payload))
            evidence = replace(evidence, counts=collected.counts, warnings=collected.warnings)
        elif all(old.signature.metrics.get(metric.name) == metric.version for metric in metrics):
            evidence = self._evidence(old, task, [*metrics, *kept], self._store.records(stored), run=run)
        else:
            return None
        if old.tokens is not None:
            evidence = replace(evidence, tokens=self._store.tokens(stored))
        return assemble.results(evidence, self._options.statistics, old.timings)

    def _evidence(
        self,
        old: Result,
        task: Task[Any],
        metrics: Sequence[Metric],
        records: ItemRecords,
        *,
        run: Run | None,
        labels: str | None = None,
    ) -> assemble.Evidence:
        """What a stored result was made from, under the metrics that are wanted now."""
        return assemble.Evidence(
            model=old.model,
            task=portable(task.spec),
            protocol={key: value for key, value in old.signature.protocol.items() if key != "subset"},
            metrics=metrics,
            records=records,
            provenance=old.provenance,
            run=run,
            counts=old.counts,
            warnings=old.warnings,
            prompts=old.signature.prompts,
            labels=labels,
            trained_on=old.trained_on,
            facts=old.facts,
            tokenizer=old.signature.tokenizer,
        )


def _facts(located: Located, model: System | LanguageModel) -> ModelFacts:
    """The facts of a loaded model; languages and licence as mteb lists them where its card tells none."""
    found = facts.of(located, model.info)
    if isinstance(model, LanguageModel):  # of vectors nothing was seen
        found = replace(found, dimensions=None)
    if (found.languages and found.license) or not _HUB_COMMIT.fullmatch(located.spec.revision or ""):
        return found
    try:
        from embeval.mteb_bridge import model_facts

        listed = model_facts.of(located.spec)
    except MissingPackageError:
        return found
    # Sizes and limits of another number format or setting than this one's wouldn't be those of this model.
    return found.completed(ModelFacts(languages=listed.languages, license=listed.license))


def _trained_on(model: ModelSpec, task: TaskSpec) -> TrainedOn | None:
    """What is declared of a model's training data, where anybody declares it: for tasks of mteb."""
    if task.type != MTEB:
        return None
    from embeval.mteb_bridge import contamination

    found = contamination.of(model, task.dataset.path)
    # Of a reranker's training nobody was asked.
    return "unknown" if task.options.get("rerank") and found == "not_declared" else found


def _equal_scores(there: Mapping[str, MetricValue], expected: Mapping[str, MetricValue]) -> bool:
    def same(one: MetricValue, other: MetricValue) -> bool:
        if one.value is None or other.value is None:
            return one.value is other.value and one.reason == other.reason
        # Another processor may round the last digit otherwise.
        return math.isclose(one.value, other.value, rel_tol=1e-9, abs_tol=1e-12) and one.n_items == other.n_items

    return there.keys() == expected.keys() and all(same(there[name], expected[name]) for name in expected)


def _kept(stored: Result, wanted: Sequence[Metric]) -> list[Metric]:
    """Metrics of a stored result that are not wanted now, and never to be lost.

    They were measured on some items only, or are another tool's and differ from ours, as a model alone can tell.
    """
    others = stored.signature.metrics.keys() - _names(wanted)
    found = []
    for name in sorted(others):
        with contextlib.suppress(UnknownNameError):  # of a plug-in that has gone
            found.append(get_metric(name))
    return [
        metric for metric in found if getattr(metric, "of_some_items", False) or metric.name.startswith(PARITY_PREFIX)
    ]


def _names(metrics: Sequence[Metric]) -> set[str]:
    return {metric.name for metric in metrics}


def _n_timed(task: Task[Any], payload: Any) -> int:
    return task.n_timed(payload) if isinstance(task, Timing) else 0


def _with_columns_of(kept: Sequence[Metric], records: ItemRecords, old: ItemRecords) -> ItemRecords:
    """The records with the columns that these metrics of an older result read."""
    place = {item: row for row, item in enumerate(old.ids)}
    columns = dict(records.columns)
    for name in {name for metric in kept for name in metric.columns}:
        values = old.columns[name]
        columns[name] = np.array([values[place[item]] if item in place else np.nan for item in records.ids])
    return replace(records, columns=columns)


def _labels(task: Task[Any], payload: Any) -> str | None:
    return task.labels(payload) if isinstance(task, Remeasurable) else None


def portable(spec: TaskSpec) -> TaskSpec:
    """The spec without a path of this machine: the data is named by its hash, the path is only a hint."""
    path = spec.dataset.path
    if _on_this_machine(path):
        path = "/".join(path.split("/")[-2:])
    return replace(spec, dataset=replace(spec.dataset, path=path), options=_portable(spec.options))


def _portable(options: Mapping[str, strict_json.Json]) -> dict[str, strict_json.Json]:
    """Options, in which a model such as ``rerank`` can be named by its folder too."""
    return {
        name: _portable(value)
        if isinstance(value, Mapping)
        else locate.short_name(Path(value))
        if isinstance(value, str) and _on_this_machine(value)
        else value
        for name, value in options.items()
    }


def _on_this_machine(path: str) -> bool:
    return path.startswith(("/", "~"))


def _late_load_s(encoder: System | LanguageModel) -> float:
    if isinstance(encoder, Hybrid):
        return sum(map(_late_load_s, encoder.parts))
    return encoder.late_load_s if isinstance(encoder, BatchedEncoder | LanguageModel) else 0.0


def _per_second(n: int, seconds: float | None) -> float | None:
    return round(n / seconds, 1) if n and seconds else None
