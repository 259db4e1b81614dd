"""How long queries take, one at a time, through the stages of a search; of one system, or of several in turns.

``measure`` sends each query alone through the stages: the first query once apart, which is what a user meets after a
start (cold), then warm-ups that are not counted, then every query ``repeats`` times, each time in another order, so
that no query always follows the same one. A query's latency is the median of its repeats. The garbage collector
waits meanwhile: its pauses belong to this process and not to the search.

Several systems answer each query right after one another, and each of them is first equally often. So a machine that
gets slower, or is disturbed for a while, slows all of them, and what is left between them is their own.

The stages must do the work that they stand for: an encoder that finds its vectors in a cache is not one to measure.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column
from embeval.metrics.cost import once
from embeval.stats.rng import seed_sequence

Stage = tuple[str, Callable[[Any], Any]]
"""Name, and what makes the output of the stage before it (for the first: a query) into its own."""
Clock = Callable[[], int]
"""Nanoseconds that only go forward."""

NS_PER_MS = 1e6
NS_PER_S = 1e9


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Times of n queries."""

    stage_ms: Mapping[str, Column]
    """Stage -> float64 [n], median over the repeats."""
    total_ms: Column
    """float64 [n]: median over the repeats of all stages together, which is not the sum of the medians."""
    cold_ms: Mapping[str, float]
    """Stage -> the first query, before anything was warm."""
    warmup: int
    """Queries that were answered uncounted."""
    repeats: int
    """Times that each query was counted."""

    def columns(self) -> dict[str, Column]:
        """float64 [n] each, under the names that ``metrics.latency`` reads; cold ones stand in the first row alone."""
        n = len(self.total_ms)
        return {
            "latency_ms": self.total_ms,
            **{f"{stage}_latency_ms": column for stage, column in self.stage_ms.items()},
            "cold_latency_ms": once(sum(self.cold_ms.values()), n),
            **{f"{stage}_cold_latency_ms": once(value, n) for stage, value in self.cold_ms.items()},
        }


def measure(
    stages: Sequence[Stage],
    queries: Sequence[Any],
    *,
    warmup: int = 10,
    repeats: int = 3,
    seed: int = 0,
    clock: Clock = time.perf_counter_ns,
) -> Latencies:
    """Milliseconds of every query, stage by stage. To be called before anything else has warmed the stages up.

    Raises ``ValueError`` without queries, stages or repeats, or where two stages have one name.
    """
    (alone,) = measure_in_turns([stages], queries, warmup=warmup, repeats=repeats, seed=seed, clock=clock)
    return alone


def measure_in_turns(
    systems: Sequence[Sequence[Stage]],
    queries: Sequence[Any],
    *,
    warmup: int = 10,
    repeats: int = 3,
    seed: int = 0,
    clock: Clock = time.perf_counter_ns,
) -> list[Latencies]:
    """The same of each of several systems, which take turns at every query.

    Raises ``ValueError`` as ``measure`` does, and without systems.
    """
    for stages in systems:
        names = [name for name, _ in stages]
        if not names or len(set(names)) != len(names):
            raise ValueError("latency needs stages of different names")
    if not systems or not len(queries) or repeats < 1 or warmup < 0:
        raise ValueError("latency needs a system, at least one query and at least one repeat")
    times = [np.empty((repeats, len(queries), len(stages))) for stages in systems]
    with _without_collector():
        cold = [_timed(stages, queries[0], clock) for stages in systems]
        turns = _turns(len(systems), seed)
        for number in range(warmup):
            for place in next(turns):
                _timed(systems[place], queries[number % len(queries)], clock)
        rng = np.random.default_rng(seed_sequence(seed, "latency"))
        turns = _turns(len(systems), seed)
        for repeat in range(repeats):
            for row in rng.permutation(len(queries)).tolist():
                for place in next(turns):
                    times[place][repeat, row] = _timed(systems[place], queries[row], clock)
    return [
        _latencies([name for name, _ in stages], of_system, first, warmup)
        for stages, of_system, first in zip(systems, times, cold, strict=True)
    ]


def throughput(
    batch: Callable[[Sequence[Any]], Any],
    queries: Sequence[Any],
    *,
    repeats: int = 3,
    clock: Clock = time.perf_counter_ns,
) -> float:
    """Queries per second where all of them come at once: median of the repeats, after one that is not counted."""
    (alone,) = throughput_in_turns([batch], queries, repeats=repeats, clock=clock)
    return alone


def throughput_in_turns(
    batches: Sequence[Callable[[Sequence[Any]], Any]],
    queries: Sequence[Any],
    *,
    repeats: int = 3,
    seed: int = 0,
    clock: Clock = time.perf_counter_ns,
) -> list[float]:
    """The same of each of several systems, which take turns at the whole batch."""
    if not batches or not len(queries) or repeats < 1:
        raise ValueError("throughput needs a system, at least one query and at least one repeat")
    spent: list[list[int]] = [[] for _ in batches]
    with _without_collector():
        for batch in batches:
            batch(queries)
        turns = _turns(len(batches), seed)
        for _ in range(repeats):
            for place in next(turns):
                began = clock()
                batches[place](queries)
                spent[place].append(clock() - began)
    # A batch that takes no time that the clock can tell took less than its smallest step.
    return [float(len(queries) * NS_PER_S / max(float(np.median(each)), 1.0)) for each in spent]


def _turns(n: int, seed: int) -> Iterator[list[int]]:
    """Orders of n systems without end. Among each n of them every system is once at every place."""
    rng = np.random.default_rng(seed_sequence(seed, "turns"))
    while True:
        order = rng.permutation(n).tolist()
        for start in range(n):
            yield [*order[start:], *order[:start]]


def _latencies(
    names: Sequence[str], times: npt.NDArray[np.float64], cold: npt.NDArray[np.float64], warmup: int
) -> Latencies:
    """Of one system, from float64 [repeats, n, stages] and [stages]."""
    medians = np.median(times, axis=0)
    return Latencies(
        stage_ms={name: medians[:, place].copy() for place, name in enumerate(names)},
        total_ms=np.asarray(np.median(times.sum(axis=2), axis=0)),
        cold_ms=dict(zip(names, cold.tolist(), strict=True)),
        warmup=warmup,
        repeats=len(times),
    )


def _timed(stages: Sequence[Stage], query: Any, clock: Clock) -> npt.NDArray[np.float64]:
    """float64 [stages]: milliseconds of each."""
    marks = [clock()]
    value = query
    for _, run in stages:
        value = run(value)
        marks.append(clock())
    return np.diff(marks) / NS_PER_MS


@contextmanager
def _without_collector() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
