"""A stored result that a decision can rest on: its files are whole, and its scores follow from its items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, cast

import numpy as np

from embeval import metrics
from embeval.core import border, strict_json
from embeval.core.ir import Run
from embeval.core.protocols import Metric, Undefined
from embeval.core.records import ANSWERABLE, ItemRecords
from embeval.core.result import MOST_CANDIDATES, Result
from embeval.core.specs import StatisticsOptions
from embeval.core.words import plural
from embeval.errors import EvidenceError, StoreError, UnknownNameError
from embeval.metrics import ranking
from embeval.stats import scoring
from embeval.store.results import ResultStore, Stored

CLOCKS_DIFFER = timedelta(minutes=10)
"""A result may be dated so far in the future: clocks of two machines are never quite equal."""
MEANS = ("mean", "wmean")
"""Sub-sets that are a mean over the others."""
FINDS_LESS = ("bm25",)
"""Backends that find only documents that share a word with the query."""
SHOWN_IDS = 3
"""Ids named in a message."""


@dataclass(frozen=True)
class Evidence:
    """One result with the rows behind it."""

    result: Result
    """The result."""
    records: ItemRecords
    """Its items."""
    source: str
    """Where it comes from, for messages: a path, or the name of a run file."""
    digest: str
    """sha256 of its content, equal for the very same result, however it is written down; of one metric its path."""
    run: Run | None = None
    """Its ranking, where it was asked for and there is one."""
    hits: Mapping[str, int] | None = None
    """Hits of each query in its ranking, where there is one."""

    @property
    def key(self) -> tuple[str, str, str]:
        """(task, split, sub-set)."""
        return self.result.task.name, self.result.split, self.result.subset

    @property
    def without_ranking(self) -> tuple[str, ...]:
        """Queries that count and that the ranking doesn't have: they count as 0, whatever the system would say."""
        if self.hits is None:
            return ()
        outside = self.records.outside
        return tuple(
            item for item, out in zip(self.records.ids, outside, strict=True) if item not in self.hits and not out
        )

    def too_short_for(self, metric: str) -> str | None:
        """Why the ranking doesn't reach as deep as a metric looks; None where it does.

        A system that looks for words may find less than was asked for; any other ranks the whole corpus.
        """
        if not self.hits or self.result.model.backend in FINDS_LESS or ranking.FAMILY.make(metric) is None:
            return None
        longest = max(self.hits.values())
        if longest >= self._reach(metric):
            return None
        return (
            f"the ranking of {self.result.model.label} holds {plural(longest, 'hit')} per query at most, "
            f"and {metric} looks at {ranking.cutoff(metric)}"
        )

    def cut_for(self, metric: str) -> str | None:
        """That some queries have fewer hits than a metric looks at, where others have enough; else None.

        It may be meant, as with a threshold on scores, and it may be a run that was cut.
        """
        if not self.hits or ranking.FAMILY.make(metric) is None or self.too_short_for(metric) is not None:
            return None
        if self.result.counts.get(MOST_CANDIDATES) is not None:  # queries that have fewer to rank have fewer hits
            return None
        cut = sum(n < self._reach(metric) for n in self.hits.values())
        if not cut or cut == len(self.hits):
            return None
        return (
            f"{cut} of {plural(len(self.hits), 'query', 'queries')} of {self.result.model.label} on "
            f"{self.result.task.name} have fewer hits than {metric} looks at. Was the run cut?"
        )

    def _reach(self, metric: str) -> int:
        """Hits that a metric looks at, where there are so many documents to be ranked."""
        candidates, documents = self.result.counts.get(MOST_CANDIDATES), self.result.counts.get("documents")
        if candidates is not None:
            return min(ranking.cutoff(metric), candidates)
        # A query may be a document of the corpus itself, which then is no hit of it.
        return ranking.cutoff(metric) if documents is None else min(ranking.cutoff(metric), documents - 1)


def gather(
    store: ResultStore,
    stored: Stored,
    *,
    with_run: bool = False,
    now: datetime | None = None,
    whole: bool = True,
    only: str | None = None,
) -> Evidence:
    """A stored result, checked.

    ``only`` names a metric of which a value is shown as ``stored`` has it: that value is held to its items, of which no
    more is read than it takes.

    Raises ``StoreError`` where its files are missing or changed, ``EvidenceError`` for a failed run, scores that don't
    follow from the items, values that are not finite, a date in the future, and, unless ``whole`` is false, a ranking
    that lacks queries.
    """
    result = stored.result
    if stored.remembered and only is None:  # a decision rests on the file itself
        result = store.get(stored.path)
    if result.status != "ok":
        message = result.error.message.splitlines()[0] if result.error is not None and result.error.message else ""
        raise EvidenceError(f"{stored.path}: this run failed: {message}\nRun it again; a failed run decides nothing.")
    refuse_imported(result, str(stored.path))
    refuse_future(result, str(stored.path), now=now)
    if result.signature.model_digest != result.model.digest:
        raise EvidenceError(
            f"{stored.path}: its signature names another model than it says it is of.\nThe file was changed after the "
            "run. Run the evaluation again."
        )
    try:
        records = store.records(stored, None if only is None else _columns(only))
    except StoreError as error:
        raise StoreError(error if str(stored.path.parent) in str(error) else f"{stored.path}: {error}") from None
    run = store.run(stored) if with_run and result.run is not None else None
    hits = store.hit_counts(stored) if result.run is not None else None
    digest = digest_of(result) if only is None else str(stored.path)  # the content takes longer than all the rest
    return checked(Evidence(result, records, str(stored.path), digest, run, hits), whole=whole, only=only)


def _columns(metric: str) -> tuple[str, ...]:
    """Those that a metric is computed from, and the one by which items are left out."""
    try:
        return (*metrics.get(metric).columns, ANSWERABLE)
    except UnknownNameError:  # it is told with the place of the result
        return ()


def checked(evidence: Evidence, *, whole: bool = True, only: str | None = None) -> Evidence:
    """The same, once its scores follow from its items, or one of them. Raises ``EvidenceError``."""
    refuse_infinite(evidence.records, evidence.source)
    refuse_changed_scores(evidence.result, evidence.records, evidence.source, only)
    if whole and (lacking := evidence.without_ranking):
        raise EvidenceError(
            f"{evidence.source}: its ranking lacks {plural(len(lacking), 'query', 'queries')} of "
            f"{len(evidence.records)}: {named(lacking)}.\nWhat the system finds for them isn't known. Run the "
            "evaluation again with all queries."
        )
    left_out = evidence.result.counts.get("queries_without_ranking") or 0
    if whole and left_out and evidence.result.signature.protocol.get("missing_queries") == "skip":
        raise EvidenceError(
            f"{evidence.source}: {plural(left_out, 'query', 'queries')} without a ranking left out "
            "(missing_queries: skip), and a mean over the rest would flatter it.\nRun it again with all queries."
        )
    return evidence


def digest_of(result: Result) -> str:
    """sha256 of a result's content, 64 hexadecimal digits."""
    return strict_json.digest(border.dump(result))


def named(ids: Sequence[str]) -> str:
    """The first ids, for a message: ``'q1', 'q2', 'q3', …``."""
    return ", ".join(map(repr, ids[:SHOWN_IDS])) + (", …" if len(ids) > SHOWN_IDS else "")


def refuse_infinite(records: ItemRecords, source: str) -> None:
    """Raises ``EvidenceError`` for a value of an item that is infinite."""
    for name, column in records.columns.items():
        if len(rows := np.flatnonzero(np.isinf(column))):
            raise EvidenceError(
                f"{source}: {name} of the item {records.ids[rows[0]]!r} is {column[rows[0]]} ({len(rows)} such "
                "values). A value has to be finite. Run the evaluation again."
            )


def started(result: Result) -> datetime | None:
    """When a result was made; None where that can't be read."""
    if result.timings is None:
        return None
    try:
        at = datetime.fromisoformat(result.timings.started_at)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def refuse_imported(result: Result, source: str, task: str | None = None) -> None:
    """Raises ``EvidenceError`` for published values: they have no items, so nothing can be shown of them."""
    if result.imported is not None:
        raise EvidenceError(
            f"{source}: imported, and published values have no items to compare or decide on.\n"
            f"Run the model here: embeval run -m {result.model.name} -t {task or result.task.name}"
        )


def refuse_future(result: Result, source: str, *, now: datetime | None = None) -> None:
    """Raises ``EvidenceError`` for a result from the future, or one whose date can't be read."""
    if result.timings is None:
        return
    at = started(result)
    if at is None:
        raise EvidenceError(f"{source}: {result.timings.started_at!r} is no date. Run the evaluation again.")
    if at > (now or datetime.now(UTC)) + CLOCKS_DIFFER:
        raise EvidenceError(
            f"{source}: made at {result.timings.started_at}, which lies in the future.\n"
            "Set the clock of this machine right, or that of the one that made it and run it again."
        )


def refuse_changed_scores(result: Result, records: ItemRecords, source: str, only: str | None = None) -> None:
    """Raises ``EvidenceError`` where a score is not what the items give. Source: conventions of this package."""
    for name, expected in recomputed(result, records, source, only).items():
        found = result.scores[name]
        got = None if isinstance(expected.value, Undefined) else expected.value
        same = (
            found.value is got
            if found.value is None or got is None
            else math.isclose(found.value, got, rel_tol=1e-9, abs_tol=1e-12)
        )
        if not same or found.n_items != expected.n_items or found.n_unscored != expected.n_unscored:
            raise EvidenceError(
                f"{source}: {name} is {found.value} on {found.n_items} items, but the items give {got} on "
                f"{expected.n_items}.\nThe file was changed after the run. Run the evaluation again."
            )


def recomputed(
    result: Result, records: ItemRecords, source: str, only: str | None = None
) -> Mapping[str, scoring.Estimate]:
    """Metric name -> what the items give, without resamples; of all metrics, or of one."""
    if result.main_score not in result.scores:
        raise EvidenceError(f"{source}: its main score {result.main_score!r} is not among its scores.")
    wanted: list[Metric] = []
    for name in result.scores if only is None else (only,):
        try:
            metric = metrics.get(name)
        except UnknownNameError as error:
            raise EvidenceError(f"{source}: {error}") from None
        if result.signature.metrics.get(name) != metric.version:
            raise EvidenceError(
                f"{source}: {name} was computed by version {result.signature.metrics.get(name)} of the metric, and "
                f"this is {metric.version}.\nRun the evaluation again: it will be computed anew from what is stored."
            )
        if missing := [column for column in metric.columns if column not in records.columns]:
            raise EvidenceError(f"{source}: its items have no column {missing[0]!r}, which {name} is computed from.")
        wanted.append(metric)
    plain = replace(StatisticsOptions(), resamples=0)
    if result.subset not in MEANS:
        return scoring.estimate(records, wanted, plain)
    if "subset" not in records.slices:
        raise EvidenceError(f"{source}: a mean over sub-sets, but its items name none.")
    groups = {
        label: scoring.estimate(records.take(rows), wanted, plain)
        for label, rows in sorted(records.rows_by("subset").items())
    }
    return scoring.mean_over(groups, cast(Literal["mean", "wmean"], result.subset))
