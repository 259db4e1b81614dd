"""What a gate shows beside its decision: the worst slices, and lost queries with their texts where data is there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from embeval.compare import changes, slices
from embeval.compare.changes import Rankings
from embeval.compare.differences import Names
from embeval.compare.evidence import Evidence
from embeval.compare.pairs import Pair
from embeval.compare.report import TaskChanges
from embeval.core.verdict import Lost, Outcome, SliceChange, Verdict
from embeval.errors import EmbevalError
from embeval.gates.decide import Case
from embeval.gates.policy import Policy
from embeval.store.results import ResultStore, Stored

WORST_SLICES = 3
"""Slices shown."""
RESAMPLES = 2_000
"""For their intervals, which decide nothing."""
READABLE_DOCUMENTS = 50_000
"""A larger corpus is not read for the texts of a few lost queries: a gate answers in seconds."""
READABLE_IN_PASSING = 2_000
"""The same where the candidate passes, and nobody waits for a reason."""


def added(verdict: Verdict, policy: Policy, case: Case, store: ResultStore, data: Path | None) -> Verdict:
    """The verdict with its worst slices and lost items. What can't be read for them is left out, never an error."""
    found = [material.pair for material in case.materials.values() if material.pair is not None]
    names = Names(case.baseline or "", case.candidate)
    fewer = replace(policy.resampling, resamples=min(RESAMPLES, policy.resampling.resamples))
    quick = [(Pair(pair.baseline, pair.candidate, fewer), names) for pair in found]
    worst = slices.worst(quick, policy.min_slice_items, WORST_SLICES)
    return replace(
        verdict,
        slices=tuple(SliceChange(comparison=each) for each in worst),
        lost=tuple(_lost(found, policy.show_lost, verdict, store, data)),
    )


def _lost(found: Iterable[Pair], show: int, verdict: Verdict, store: ResultStore, data: Path | None) -> Iterable[Lost]:
    readable = READABLE_IN_PASSING if verdict.outcome is Outcome.PASS else READABLE_DOCUMENTS
    for pair in found:
        changed = changes.changes(pair, verdict.candidate, show)
        if changed is None or not changed.n_lost:
            continue
        if changed.lost and (pair.baseline.result.counts.get("documents") or READABLE_DOCUMENTS + 1) <= readable:
            changed = _with_texts(replace(changed, gained=()), pair, store, data)
        yield Lost(
            task=changed.task,
            metric=changed.metric,
            n_lost=changed.n_lost,
            n_gained=changed.n_gained,
            items=changed.lost,
        )


def _with_texts(changed: TaskChanges, pair: Pair, store: ResultStore, data: Path | None) -> TaskChanges:
    """With texts and ranks, where the data is at hand and can be read."""
    result = pair.baseline.result
    if result.run is None:
        return changed
    try:
        from embeval.workflows import stored_data

        texts = stored_data.retrieval_data(Stored(Path(pair.baseline.source), result), data=data)
        return changes.with_rankings(changed, texts, _rankings(store, pair))
    except (EmbevalError, ImportError, OSError):
        return changed


def _rankings(store: ResultStore, pair: Pair) -> Callable[[Collection[str]], tuple[Rankings, Rankings]]:
    def of(side: Evidence, queries: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        return store.rankings(Stored(Path(side.source), side.result), queries)

    return lambda queries: (of(pair.baseline, queries), of(pair.candidate, queries))
