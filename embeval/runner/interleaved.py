"""A run whose systems are timed in turns once all of them are evaluated, so that their times can be compared.

Each step is first done as in any run, with latencies of its own. Then all systems of a task are loaded anew, beside
each other, and take turns at its queries; the times measured so replace those of each result, and all of them carry
the same ``Timings.session``. A run that is killed leaves whole results, timed alone.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embeval.core.progress import Progress, Silent
from embeval.core.protocols import QUERIES_TIMED, Equippable, InTurns, Task
from embeval.core.specs import ModelSpec
from embeval.encoders import loading
from embeval.encoders.cache import VectorCache, open_cache
from embeval.errors import EvaluationError, StoreError, UsageError
from embeval.metrics import get as get_metric
from embeval.runner import assemble, local
from embeval.runner.local import Outcome, RunOptions, Step
from embeval.store.results import ResultStore, Stored

Columns = Mapping[str, Mapping[str, float]]
"""Column -> item id -> value."""


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
    """The outcomes of ``local.run``, and then one more for each step that was timed in turns, or could not be.

    Systems that were timed together before are left as they are. All systems of a task are in memory at once. Raises
    ``UsageError`` for a single model, and where no task times anything.
    """
    timed = [task for task in tasks if isinstance(task, InTurns) and task.times]
    if len(models) < 2 or not timed:
        lacking = "two models, -m A -m B" if len(models) < 2 else "a task that is timed, as -t TASK,latency=200"
        raise UsageError(f"Timing in turns needs {lacking}.")
    outcomes = []
    for outcome in local.run(models, tasks, store, options, also=also, progress=progress, on_start=on_start):
        outcomes.append(outcome)
        yield outcome
    cache = open_cache() if options.runtime.cache else None
    for task in timed:
        of_task = [each for each in outcomes if each.step.task == task.spec and each.stored]
        if not _together(of_task):
            yield from _Turns(task, store, options, progress or Silent(), cache).measure(of_task)


def _together(outcomes: Sequence[Outcome]) -> bool:
    """Whether all of them were timed in turns with each other before, or none is left to be."""
    timings = [each.result.timings for each in outcomes if each.result is not None]
    sessions = {None if each is None else each.session for each in timings}
    return not outcomes or (len(outcomes) > 1 and len(sessions) == 1 and None not in sessions)


class _Turns:
    """One task, and whatever was evaluated on it."""

    def __init__(
        self, task: Any, store: ResultStore, options: RunOptions, progress: Progress, cache: VectorCache | None
    ) -> None:
        self._task, self._store, self._options, self._progress, self._cache = task, store, options, progress, cache

    def measure(self, outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
        """What became of each."""
        began, payload = time.perf_counter(), self._task.load()
        with ExitStack() as stack:
            ready: list[tuple[Outcome, Any | None]] = []
            for outcome in outcomes:
                try:
                    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="embeval-vectors-"))
                    ready.append((outcome, self._ready(outcome, payload, Path(folder))))
                except StoreError:
                    raise
                except Exception as error:  # told, and the others are timed without it
                    yield _failed(outcome, error)
            systems = [system for _, system in ready if system is not None]
            if len(systems) < 2:
                alone = EvaluationError(f"Nothing to take turns with on {self._task.spec.name}.")
                yield from (_failed(outcome, alone) for outcome, _ in ready)
                return
            self._progress.start(f"timing {len(systems)} systems in turns", 1, "task")
            try:
                columns = iter(self._task.in_turns(payload, systems))
            except Exception as error:  # whichever it was, there are no times in turns
                yield from (_failed(outcome, error) for outcome, _ in ready)
                return
            finally:
                self._progress.finish()
        session, n = secrets.token_hex(16), self._task.n_timed(payload)
        each_s = (time.perf_counter() - began) / len(ready)
        for outcome, system in ready:
            # What only reads a file takes no time, and has none of its own among those that do.
            stored = self._replaced(outcome.stored[-1], next(columns) if system is not None else {}, session, n)
            yield replace(outcome, status="timed", stored=stored, seconds=each_s)

    def _ready(self, outcome: Outcome, payload: Any, folder: Path) -> Any | None:
        located, runtime, task = loading.resolve(outcome.step.model), self._options.runtime, self._task
        if isinstance(task, Equippable):
            task = task.equipped(runtime, self._cache, lambda: loading.load_system(located, runtime))
        system = loading.load_system(located, runtime, self._cache)
        return task.ready(payload, system, folder, self._progress)

    def _replaced(self, whole: Stored, columns: Columns, session: str, n: int) -> tuple[Stored, ...]:
        """The results of a task with the times that were measured in turns."""
        old, records = whole.result, self._store.records(whole)
        assert old.timings is not None
        new = {
            name: np.array([values.get(item, np.nan) for item in records.ids], dtype=np.float64)
            for name, values in columns.items()
        }
        evidence = assemble.Evidence(
            model=old.model,
            task=old.task,
            protocol={key: value for key, value in old.signature.protocol.items() if key != "subset"},
            metrics=[get_metric(name) for name in sorted(old.scores, key=lambda name: name != old.main_score)],
            records=replace(records, columns={**records.columns, **new}),
            provenance=old.provenance,
            run=self._store.run(whole) if old.run is not None else None,
            counts={**old.counts, QUERIES_TIMED: n},
            warnings=old.warnings,
            prompts=old.signature.prompts,
            labels=old.labels,
            trained_on=old.trained_on,
            facts=old.facts,
            tokenizer=old.signature.tokenizer,
        )
        parts = assemble.results(evidence, self._options.statistics, replace(old.timings, session=session))
        return tuple(self._store.put(part.result, part.records, part.run) for part in parts)


def _failed(outcome: Outcome, error: Exception) -> Outcome:
    told = local.told(error)
    return Outcome(step=outcome.step, status="failed", error=told)
