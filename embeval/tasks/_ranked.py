"""The numbers of a ranking, wherever it came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from embeval.core import ir
from embeval.core.ir import JudgedRuns, MissingQueries, NoRelevant, Run, SelfMatch
from embeval.core.records import Column, ItemRecords
from embeval.core.words import are, plural
from embeval.data.beir import RetrievalData
from embeval.errors import DataError
from embeval.metrics import answerability, context, documents, ranking
from embeval.retrieval.passages import collapse, collapse_qrels
from embeval.tasks import _slices
from embeval.tasks._retrieval_options import RetrievalOptions

KEPT_RECALL = 95
"""Per cent of the answerable queries that a threshold for refusing has to keep."""
TOP_SCORE = "top_score"


class Measured(NamedTuple):
    """A ranking with its numbers."""

    records: ItemRecords
    """One row per judged query, then one per query marked unanswerable, with the columns that speak of these."""
    judged: JudgedRuns
    """The ranking seen through its judgments."""
    counts: Mapping[str, int | None]
    """Queries by what became of them."""
    warnings: tuple[str, ...]
    """What a reader of the numbers should know."""


def metric_names(main: str, data: RetrievalData, options: RetrievalOptions) -> tuple[str, ...]:
    """The metrics of a ranking, the main one first."""
    if main.startswith(documents.PREFIX) and not data.sources:
        raise DataError(f"{main!r} needs passages of documents: a field 'document' in the rows of the corpus file.")
    cutoffs = [k for k in options.cutoffs if k <= options.depth]
    names = [main, *ranking.names(cutoffs)]
    passages = [k for k in options.context_passages if k <= options.depth]
    names += [f"context_{kind}_at_{k}" for k in passages for kind in context.MEASURES]
    if data.doc_texts:
        names += [f"context_{kind}_at_{n}_tokens" for n in options.context_tokens for kind in context.MEASURES]
    if data.sources:
        names += [documents.PREFIX + name for name in ranking.names(k for k in cutoffs if k <= 100)]
    if data.unanswerable:
        names += ["answerable_auroc", *(f"{kind}_at_recall_{KEPT_RECALL}" for kind in ("refusal", "threshold"))]
    return tuple(dict.fromkeys(names))


def hidden(data: RetrievalData, query_ids: Iterable[str], options: RetrievalOptions) -> dict[str, Collection[str]]:
    """Query id -> documents that are no hits for it: those it excludes, and itself where that is asked for."""
    if options.self_match != SelfMatch.DROP:
        return dict(data.excluded)
    return {query: data.excluded.get(query, frozenset()) | {query} for query in query_ids}


def judge(run: Run, data: RetrievalData, options: RetrievalOptions) -> JudgedRuns:
    """A ranking without what is no hit, seen through the judgments."""
    return ir.judge(
        run,
        data.qrels,
        missing=options.missing_queries,
        no_relevant=options.no_relevant,
        exclude=data.unanswerable,
    )


def rank_and_measure(
    run: Run,
    data: RetrievalData,
    names: Sequence[str],
    options: RetrievalOptions,
    extra: Mapping[str, Mapping[str, float]] | None = None,
) -> Measured:
    """The metrics of a ranking per query, wherever it came from. ``names`` starts with the main metric.

    ``extra`` holds columns that a ranking doesn't tell, by query id; queries without a value there have none.
    """
    run = run.without(hidden(data, run.query_ids, options))
    judged = judge(run, data, options)
    columns = _columns(run, judged, data, names, options)
    ids = judged.query_ids
    if data.unanswerable:
        others = tuple(query for query in data.queries if query in data.unanswerable)
        columns = {name: np.append(column, np.full(len(others), np.nan)) for name, column in columns.items()}
        columns |= answerability.records(run, ids, others).columns
        ids = (*ids, *others)
    for name, values in (extra or {}).items():
        columns[name] = np.array([values.get(query, np.nan) for query in ids], dtype=np.float64)
    k = cutoff(names[0])
    counts = _counts(run, judged, data, k)
    own = {name: tuple(values.get(query, "") for query in ids) for name, values in data.query_labels.items()}
    return Measured(
        records=ItemRecords(unit="query", ids=ids, columns=columns, slices={**_slices.built_in(data, ids), **own}),
        judged=judged,
        counts=counts,
        warnings=tuple(_warnings(counts, data, options, k)),
    )


def cutoff(name: str) -> int:
    """The k of the main metric."""
    return ranking.cutoff(name.removeprefix(documents.PREFIX))


def _columns(
    run: Run, judged: JudgedRuns, data: RetrievalData, names: Sequence[str], options: RetrievalOptions
) -> dict[str, Column]:
    own = ranking.Options(options.gains, options.map_denominator)

    def of(family: object) -> list[str]:
        return [name for name in names if family.make(name) is not None]  # type: ignore[attr-defined]

    columns = ranking.measure(judged, of(ranking.FAMILY), own)
    if wanted := of(context.FAMILY):
        lengths = data.doc_lengths
        tokens = np.array([lengths.get(doc, 0) for doc in run.doc_ids], dtype=np.int64)
        columns |= context.measure(judged, wanted, docs=context.docs_of(run, judged.query_ids), tokens=tokens)
    if wanted := of(documents.FAMILY):
        document_of = {doc: source.document for doc, source in data.sources.items()}
        whole = ir.judge(
            collapse(run, document_of),
            collapse_qrels(data.qrels, document_of),
            missing=options.missing_queries,
            no_relevant=options.no_relevant,
            exclude=data.unanswerable,
        )
        columns |= documents.measure(whole, wanted, own)
    return columns


def _counts(run: Run, judged: JudgedRuns, data: RetrievalData, k: int) -> dict[str, int | None]:
    unjudged = set(data.queries) - set(data.qrels.judged) - data.unanswerable
    return {
        "queries_scored": judged.counts.scored,
        "queries_without_ranking": judged.counts.missing,
        "queries_without_judgments": len(unjudged | (set(run.query_ids) - set(data.queries))),
        "queries_without_relevant": judged.counts.no_relevant,
        "queries_unanswerable": len(data.unanswerable),
        "documents_same_text": sum(n for text, n in Counter(data.doc_texts).items() if n > 1 and text.strip()),
        f"queries_tied_at_{k}": int(judged.tied_at(k).sum()),
        "judgments": sum(len(grades) for grades in data.qrels.judgments.values()),
        "unreachable_relevant": sum(len(docs) for docs in data.unreachable.values()),
        "duplicate_hits": run.n_duplicates,
    }


def _warnings(
    counts: Mapping[str, int | None], data: RetrievalData, options: RetrievalOptions, k: int
) -> Sequence[str]:
    found = []

    def queries(n: int, what: str) -> str:
        return plural(n, f"{what} query".strip(), f"{what} queries".strip())

    if n := counts["queries_without_ranking"]:
        zero = "counts 0" if n == 1 else "count 0"
        effect = zero if options.missing_queries == MissingQueries.ZERO else f"{are(n)} left out"
        found.append(f"{queries(n, 'judged')} without a ranking {effect}.")
    if n := counts["queries_without_judgments"]:
        found.append(f"{queries(n, '')} without judgments {are(n)} left out.")
    if n := counts["queries_unanswerable"]:
        found.append(f"{queries(n, '')} marked unanswerable {are(n)} left out.")
    if n := counts["queries_without_relevant"]:
        zero = "counts 0" if n == 1 else "count 0"
        effect = zero if options.no_relevant == NoRelevant.ZERO else f"{are(n)} left out"
        found.append(f"{queries(n, '')} without a relevant document {effect}.")
    if n := counts[f"queries_tied_at_{k}"]:
        found.append(f"{queries(n, '')} with a tie across rank {k}, decided by {options.ties.value}.")
    if n := counts["documents_same_text"]:
        found.append(
            f"{n} of {len(data.doc_ids)} documents have the same text as another one: they tie for every query."
        )
    if n := counts["unreachable_relevant"]:
        ceiling = _recall_ceiling(data)
        found.append(f"{plural(n, 'relevant document')} not in the corpus, so recall can't exceed {ceiling:.4f}.")
    if options.self_match is None and (overlap := sum(query in data.doc_id_set for query in data.qrels.judged)):
        ids = plural(overlap, "query id is also a document id", "query ids are also document ids")
        found.append(
            f"{ids}. If these queries are documents of the corpus, set self_match: drop, else set self_match: keep."
        )
    return found


def refreshed_warnings(
    measured: Measured,
    data: RetrievalData,
    options: RetrievalOptions,
    counts: Mapping[str, int | None],
    warnings: Sequence[str],
) -> tuple[str, ...]:
    """The warnings of a ranking measured anew, with those of ``warnings`` that speak of other things.

    ``counts`` are those that came with ``warnings``.
    """
    tied = next(name for name in counts if name.startswith("queries_tied_at_"))
    stale = _warnings(counts, data, options, int(tied.rsplit("_", 1)[1]))
    return (*measured.warnings, *(each for each in warnings if each not in stale))


def _recall_ceiling(data: RetrievalData) -> float:
    reachable = []
    for query in data.qrels.judged:
        relevant = sum(grade > 0 for grade in data.qrels.judgments[query].values())
        if query not in data.unanswerable and relevant:
            reachable.append(1.0 - len(data.unreachable.get(query, ())) / relevant)
    return float(np.mean(reachable)) if reachable else 0.0
