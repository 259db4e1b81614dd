"""Why queries fail: for a stored retrieval result, what stands where it should not, and what that looks like.

Nothing is encoded: the ranking is the stored one, and texts come from the data, which must be the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embeval.core.ir import NOTHING, Run, SelfMatch, TieRule
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Encoder, Ranker, TaskRef
from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.data.beir import RetrievalData
from embeval.encoders import loading
from embeval.encoders.encoder import BatchedEncoder
from embeval.errors import ConfigError, EvaluationError, UnknownNameError, UsageError
from embeval.store.results import ResultStore, Stored
from embeval.workflows import failures, report
from embeval.workflows.failures import Cache, Case, FailureClass, Hit, Limits, Positive
from embeval.workflows.report import LabelValue

DEFAULT_K = 10
"""Cut-off where the metric's name has none."""
WORST_SLICES = 3
"""Labels listed in a summary."""
BM25 = ModelSpec(name="bm25", backend="bm25")
"""The system asked for ``bm25_finds_it``."""

_AT = re.compile(r".*_at_(\d+)")


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query with its ranking."""

    id: str
    """Its id."""
    text: str
    """Its text."""
    value: float
    """Its value of the metric."""
    labels: Mapping[str, str]
    """Its labels by slice."""
    positives: tuple[Positive, ...]
    """Its relevant documents: best grade first, then by rank."""
    hits: tuple[Hit, ...]
    """The first hits."""
    classes: tuple[str, ...]
    """Why it fails; empty for one that doesn't."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What is wrong with the queries of a result."""

    metric: str
    """The metric."""
    k: int
    """Its cut-off."""
    queries: tuple[Query, ...]
    """All that have a value, lowest first."""
    not_checked: tuple[FailureClass, ...]
    """Classes that were not looked at."""
    worst_slices: tuple[LabelValue, ...]
    """Labels of enough queries with the lowest values, where they are below the whole result's."""

    @property
    def failing(self) -> tuple[Query, ...]:
        """Those that could be better, lowest first."""
        return tuple(query for query in self.queries if query.classes)

    @property
    def by_class(self) -> dict[str, int]:
        """Failing queries per class, in the order of the table; classes that were not looked at are left out."""
        n = Counter(name for query in self.queries for name in query.classes)
        skipped = {each.name for each in self.not_checked}
        return {name: n[name] for name in failures.names() if name not in skipped}


def diagnose(
    store: ResultStore,
    stored: Stored,
    data: RetrievalData,
    *,
    metric: str | None = None,
    limits: Limits | None = None,
    bm25: Run | None = None,
) -> Diagnosis:
    """Every query of a result, lowest value first, those that fail with their classes.

    A query fails where its value is below 1 and its first k hits are not the most relevant ones there are. ``data`` is
    what the result was made from (``stored_data``). Raises ``UnknownNameError`` for a metric that the result doesn't
    have, ``ConfigError`` for one of which single queries have no value.
    """
    ranked = report.worst_items(store, stored, len(store.records(stored)), metric)
    name = metric or stored.result.main_score or ""
    k = cutoff(stored, metric)
    texts = dict(zip(data.doc_ids, data.doc_texts, strict=True))
    rankings, by_bm25 = _Rankings(store.run(stored)), _Rankings(bm25) if bm25 is not None else None
    cache = Cache()
    queries = []
    for item in ranked:
        if np.isnan(item.value):
            continue
        case = Case(
            text=data.queries[item.id],
            k=k,
            positives=_positives(item.id, data, rankings, texts),
            hits=rankings.hits(item.id, max(k, failures.LOOKED_AT), data),
            texts=texts,
            limits=limits,
            bm25_ranks=by_bm25.ranks(item.id, k) if by_bm25 is not None else None,
            cache=cache,
        )
        queries.append(
            Query(
                id=item.id,
                text=case.text,
                value=item.value,
                labels=item.labels,
                positives=case.positives,
                hits=case.hits,
                classes=failures.classify(case) if item.value < 1.0 and not _is_best(case) else (),
            )
        )
    given = {"truncated_positive": limits, "bm25_finds_it": bm25}
    return Diagnosis(
        metric=name,
        k=k,
        queries=tuple(queries),
        not_checked=tuple(each for each in failures.CLASSES if each.name in given and given[each.name] is None),
        worst_slices=_worst_slices(store, stored, name),
    )


def one(diagnosis: Diagnosis, query: str) -> Query:
    """A query by its id. Raises ``UnknownNameError``."""
    found = next((each for each in diagnosis.queries if each.id == query), None)
    if found is None:
        raise UnknownNameError("query of this result", query, [each.id for each in diagnosis.queries])
    return found


def of_class(diagnosis: Diagnosis, name: str) -> tuple[Query, ...]:
    """Failing queries of a class, lowest first. Raises for one that there is not, or that was not looked at."""
    if name not in failures.names():
        raise UnknownNameError("class of failures", name, failures.names())
    if skipped := next((each for each in diagnosis.not_checked if each.name == name), None):
        raise UsageError(f"The class {name!r} was not looked at. Add {skipped.needs}.")
    return tuple(each for each in diagnosis.failing if name in each.classes)


class _Rankings:
    """A run, looked up by query."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._rows = {query: row for row, query in enumerate(run.query_ids)}

    def ranks(self, query: str, k: int | None = None) -> dict[str, int]:
        """Rank from 1 of each document, of the first k."""
        row = self._rows.get(query)
        docs = self._run.docs[row, :k].tolist() if row is not None else []
        return {self._run.doc_ids[doc]: rank for rank, doc in enumerate(docs, start=1) if doc != NOTHING}

    def hits(self, query: str, n: int, data: RetrievalData) -> tuple[Hit, ...]:
        """The first n."""
        ranks = self.ranks(query, n)
        grades = data.qrels.judgments.get(query, {})
        scores = self._run.scores[self._rows[query]] if ranks else ()
        return tuple(Hit(rank, doc, float(scores[rank - 1]), grades.get(doc)) for doc, rank in ranks.items())


def _positives(query: str, data: RetrievalData, rankings: _Rankings, texts: Mapping[str, str]) -> tuple[Positive, ...]:
    ranks = rankings.ranks(query)
    excluded = data.excluded.get(query, frozenset())
    found = [
        Positive(doc, grade, ranks.get(doc), doc in texts and doc not in excluded)
        for doc, grade in data.qrels.judgments.get(query, {}).items()
        if grade > 0
    ]
    return tuple(sorted(found, key=lambda each: (-each.grade, each.rank is None, each.rank, each.doc)))


def _is_best(case: Case) -> bool:
    """Whether the first k hits are the most relevant that the judgments know, the best first."""
    best = [each.grade for each in case.positives][: case.k]
    there = [max(hit.grade or 0, 0) for hit in case.hits[: case.k]]
    return bool(best) and there[: len(best)] == best


def _worst_slices(store: ResultStore, stored: Stored, metric: str) -> tuple[LabelValue, ...]:
    whole = stored.result.scores[metric].value
    if whole is None:
        return ()
    # The interval is not shown, and resampling each label would take longer than all the rest.
    quick = replace(stored, result=replace(stored.result, statistics=replace(stored.result.statistics, resamples=0)))
    return tuple(
        each
        for each in report.all_slices(store, quick, metric)
        if each.value.n_items >= report.FEW_ITEMS and each.value.value is not None and each.value.value < whole
    )[:WORST_SLICES]


class _ModelLimits:
    """What an encoder keeps of a document, found by asking it how much of its beginnings it loses."""

    def __init__(self, encoder: BatchedEncoder[Any], task: TaskRef) -> None:
        self._encoder = encoder
        self._prompt = encoder.prompt(Role.DOCUMENT, task)

    def kept(self, text: str) -> str:
        if not self._loses(text):
            return text
        ends = [found.end() for found in re.finditer(r"\S+", text)]
        fits, over = 0, len(ends)  # so many words fit; so many don't
        while over - fits > 1:
            middle = (fits + over) // 2
            fits, over = (fits, middle) if self._loses(text[: ends[middle - 1]]) else (middle, over)
        return text[: ends[fits - 1]] if fits else ""

    def _loses(self, text: str) -> bool:
        lost = self._encoder.backend.prepare([text], prompt=self._prompt, role=Role.DOCUMENT).lost
        return lost is not None and bool(lost[0])


def limits_of(stored: Stored, model: ModelSpec, runtime: RuntimeOptions) -> Limits:
    """What the model of a result keeps of documents; ``model`` says where it is, and is loaded.

    Raises ``ConfigError`` where it is another model, and ``EvaluationError`` for one that doesn't tell what it cuts.
    """
    located = loading.resolve(model)
    if located.spec.digest != stored.result.model.digest:
        raise ConfigError(
            f"{located.spec.label} (digest {located.spec.digest[:8]}) is not the model of the result {stored.id}, "
            f"{stored.result.model.label} (digest {stored.result.model.digest[:8]}). Name that one, with its settings."
        )
    encoder: Encoder = loading.load(located, runtime)
    if (
        not isinstance(encoder, BatchedEncoder)
        or encoder.backend.prepare(["text"], prompt="", role=Role.DOCUMENT).lost is None
    ):
        raise EvaluationError(f"{located.spec.label} doesn't tell what it cuts off a text. Leave out --limits.")
    return _ModelLimits(encoder, TaskRef(name=stored.result.task.name, type=stored.result.task.type))


def bm25_run(stored: Stored, data: RetrievalData, k: int, progress: Progress | None = None) -> Run:
    """The first k documents by BM25 for the queries of a result, and some more in place of excluded ones."""
    system = loading.load_system(loading.resolve(BM25))
    assert isinstance(system, Ranker)
    drops_itself = stored.result.signature.protocol.get("self_match") == SelfMatch.DROP
    query_ids = [query for query in data.qrels.judged if query not in data.unanswerable]
    excluded = max((len(data.excluded.get(query, ())) for query in query_ids), default=0)
    run = system.rank(
        data.doc_ids,
        data.doc_texts,
        query_ids,
        [data.queries[query] for query in query_ids],
        depth=k + excluded + drops_itself,
        ties=TieRule.DOC_ID_DESC,
        progress=progress or Silent(),
    )
    run = run.without(data.excluded)
    return run.without_self_matches() if drops_itself else run


def cutoff(stored: Stored, metric: str | None) -> int:
    """The k of a metric of a result, the main one unless named; ``DEFAULT_K`` where its name has none."""
    match = _AT.fullmatch(metric or stored.result.main_score or "")
    return int(match[1]) if match else DEFAULT_K
