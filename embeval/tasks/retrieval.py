"""``retrieval``: whether the documents that answer a query stand high among its nearest neighbours.

One item is a judged query, with a column per metric: ``ndcg_at_10`` first, then every measure of
``metrics.ranking`` at 1, 3, 5, 10, 20, 100 and 1000, or at cut-offs of your own. Fields of the queries file that are
labels (``kind``, ``language``, …) become slices. The corpus is encoded and searched in chunks: memory holds its texts
and one chunk of vectors.

The ranking is kept beside the numbers, so that another cut-off needs no model (``remeasure``), and
``rank_and_measure`` scores a ranking that came from elsewhere in the same way.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from embeval import metrics
from embeval.core import ir, quantization, strict_json
from embeval.core.border import BORDER
from embeval.core.embeddings import TextCounts, Vectors, Work
from embeval.core.ir import JudgedRuns, MissingQueries, NoRelevant, Run, SelfMatch, TieRule
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, Encoder, Metric, System, TaskRef, require_encoder
from embeval.core.records import ItemRecords
from embeval.core.specs import Role, TaskSpec
from embeval.core.words import are, plural
from embeval.data.beir import RetrievalData, Unreachable, load_beir
from embeval.errors import ConfigError, UnknownNameError
from embeval.metrics import ranking
from embeval.metrics.ranking import Gains, MapDenominator
from embeval.retrieval.kinds import INDEXES
from embeval.retrieval.search import TopK
from embeval.tasks import _counts, _options

VERSION = 1
"""Raised when the same data and vectors give another number."""
CHUNK = 16_384
"""Documents encoded and searched together: 25 MB of vectors at 384 dimensions."""


@dataclass(frozen=True, kw_only=True)
class RetrievalOptions:
    """Options of a retrieval task. Those that can change a number are part of the signature."""

    __pydantic_config__ = BORDER

    depth: int = 1000
    """Documents kept per query."""
    cutoffs: tuple[int, ...] = ranking.CUTOFFS
    """The k of the metrics ``…_at_k``; those beyond the depth are left out. Changes no number, only which there are."""
    index: str = "flat"
    """Kind of index that finds candidates."""
    ties: TieRule = TieRule.DOC_ID_DESC
    """What decides between documents of equal score."""
    self_match: SelfMatch | None = None
    """``drop`` leaves out a hit whose doc id equals the query id, as in data sets whose queries are documents;
    null keeps them, and warns where ids overlap."""
    missing_queries: MissingQueries = MissingQueries.ZERO
    """What a judged query counts that has no ranking."""
    no_relevant: NoRelevant = NoRelevant.ZERO
    """What a query counts whose judgments are all 0."""
    gains: Gains = Gains.LINEAR
    """What a grade is worth in nDCG."""
    map_denominator: MapDenominator = MapDenominator.RELEVANT
    """What average precision at k is divided by."""
    unreachable: Unreachable = Unreachable.ERROR
    """What becomes of relevant documents that are not in the corpus."""


class Measured(NamedTuple):
    """A ranking with its numbers."""

    records: ItemRecords
    """One row per query."""
    judged: JudgedRuns
    """The ranking seen through its judgments."""
    counts: Mapping[str, int | None]
    """Queries by what became of them."""
    warnings: tuple[str, ...]
    """What a reader of the numbers should know."""


def rank_and_measure(run: Run, data: RetrievalData, names: Sequence[str], options: RetrievalOptions) -> Measured:
    """The metrics of a ranking per query, wherever it came from. ``names`` starts with the main metric."""
    judged = ir.judge(
        run,
        data.qrels,
        missing=options.missing_queries,
        no_relevant=options.no_relevant,
        self_match=options.self_match or SelfMatch.KEEP,
        exclude=data.unanswerable,
    )
    columns = ranking.measure(judged, names, ranking.Options(options.gains, options.map_denominator))
    k = ranking.cutoff(names[0])
    unjudged = set(data.queries) - set(data.qrels.judged) - data.unanswerable
    counts: dict[str, int | None] = {
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
    return Measured(
        records=ItemRecords(
            unit="query",
            ids=judged.query_ids,
            columns=columns,
            slices={
                name: tuple(values.get(query, "") for query in judged.query_ids)
                for name, values in data.query_labels.items()
            },
        ),
        judged=judged,
        counts=counts,
        warnings=tuple(_warnings(counts, data, options, k)),
    )


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


def _recall_ceiling(data: RetrievalData) -> float:
    reachable = []
    for query in data.qrels.judged:
        relevant = sum(grade > 0 for grade in data.qrels.judgments[query].values())
        if query not in data.unanswerable and relevant:
            reachable.append(1.0 - len(data.unreachable.get(query, ())) / relevant)
    return float(np.mean(reachable)) if reachable else 0.0


@dataclass(frozen=True)
class RetrievalTask:
    """Bi-encoder retrieval on a BEIR folder."""

    spec: TaskSpec
    path: Path
    options: RetrievalOptions

    def load(self) -> RetrievalData:
        """Corpus, queries and judgments of the split."""
        return load_beir(self.path, self.spec.dataset.split, unreachable=self.options.unreachable)

    def protocol(self, payload: RetrievalData) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        options = self.options
        return {
            "type": "retrieval",
            "type_version": VERSION,
            "task_version": self.spec.version,
            "data": payload.data_hash,
            "split": self.spec.dataset.split,
            "depth": options.depth,
            # Exact kinds all give the same ranking, so they are one protocol.
            "index": "exact" if INDEXES.get(options.index).exact else options.index,
            "ties": options.ties.value,
            "self_match": (options.self_match or SelfMatch.KEEP).value,
            "missing_queries": options.missing_queries.value,
            "no_relevant": options.no_relevant.value,
            "gains": options.gains.value,
            "map_denominator": options.map_denominator.value,
            "unreachable": options.unreachable.value,
        }

    def metrics(self, payload: RetrievalData) -> tuple[Metric, ...]:
        """Every measure at every cut-off within the depth, the main one first."""
        main = self.spec.main_score or TASK.main_score
        names = ranking.names(k for k in self.options.cutoffs if k <= self.options.depth)
        return tuple(metrics.get(name) for name in dict.fromkeys([main, *names]))

    def collect(self, payload: RetrievalData, system: System, progress: Progress) -> Collected:
        """One row per judged query, and the ranking."""
        encoder = require_encoder(system, self.spec)
        started = time.perf_counter()
        reference = TaskRef(name=self.spec.name, type=self.spec.type)
        query_ids = tuple(query for query in payload.qrels.judged if query not in payload.unanswerable)
        query_texts = [payload.queries[query] for query in query_ids]
        progress.start("queries", len(query_texts), "texts")
        queries = encoder.encode(query_texts, role=Role.QUERY, task=reference, ids=query_ids, progress=progress)
        progress.finish()
        found = self._search(payload, encoder, queries.vectors, reference, progress)
        searched = time.perf_counter()

        run = Run.ranked(
            query_ids=query_ids,
            doc_ids=payload.doc_ids,
            docs=found.top.result().positions.astype(np.int32),
            scores=found.top.result().scores,
            ties=self.options.ties,
        )
        if self.options.self_match == SelfMatch.DROP:
            run = run.without_self_matches()
        run = replace(run, docs=run.docs[:, : self.options.depth], scores=run.scores[:, : self.options.depth])
        measured = rank_and_measure(run, payload, [metric.name for metric in self.metrics(payload)], self.options)
        measured_at = time.perf_counter()

        prompts = {role.value: encoder.prompt(role, reference) for role in (Role.QUERY, Role.DOCUMENT)}
        text_warnings = _counts.warnings(
            [
                ("documents", found.counts, found.alike),
                ("queries", queries.counts, _counts.Alike.of(queries)),
            ],
            encoder=encoder,
            prompts_used=list(prompts.values()),
        )
        return Collected(
            records=measured.records,
            run=run,
            counts={
                **measured.counts,
                **_counts.texts("documents", found.counts),
                "documents_truncated_alike": found.alike.n,
                **_counts.texts("queries_encoded", queries.counts),
            },
            warnings=(*measured.warnings, *text_warnings),
            prompts=prompts,
            phases={
                "encode": searched - started - found.search_s,
                "search": found.search_s,
                "measure": measured_at - searched,
            },
            work=queries.work + found.work,
        )

    def labels(self, payload: RetrievalData) -> str:
        """Hash of the labels of the queries."""
        return strict_json.digest({name: dict(values) for name, values in payload.query_labels.items()})

    def remeasure(
        self, payload: RetrievalData, run: Run, counts: Mapping[str, int | None], warnings: Sequence[str]
    ) -> Collected:
        """The records of a stored ranking under the metrics that are wanted now.

        ``counts`` and ``warnings`` are those of the result it was stored with.
        """
        measured = rank_and_measure(run, payload, [metric.name for metric in self.metrics(payload)], self.options)
        tied = next(name for name in counts if name.startswith("queries_tied_at_"))
        stale = _warnings(counts, payload, self.options, int(tied.rsplit("_", 1)[1]))
        kept = {name: count for name, count in counts.items() if name != tied}
        return Collected(
            records=measured.records,
            run=run,
            counts={**kept, **measured.counts},
            warnings=(*measured.warnings, *(each for each in warnings if each not in stale)),
        )

    def _search(
        self, payload: RetrievalData, encoder: Encoder, queries: Vectors, reference: TaskRef, progress: Progress
    ) -> _Found:
        # With the self-match filter one hit may go, and the list must still be full.
        k = self.options.depth + (self.options.self_match == SelfMatch.DROP)
        quantize, rescore = encoder.spec.quantize, encoder.spec.rescore
        two_stages = quantize is not None and rescore is not None
        top = TopK(
            quantization.coded(queries, quantize) if two_stages and quantize is not None else queries,
            k=min(k * (rescore or 1), len(payload.doc_ids)),
            similarity=encoder.info.similarity,
            tie_keys=ir.tie_keys(payload.doc_ids, self.options.ties),
            index=self.options.index,
            rescored_by=queries if two_stages else None,
        )
        found = _Found(top, TextCounts(), _counts.Alike(), 0.0, Work())
        progress.start("documents", len(payload.doc_texts), "texts")
        for start in range(0, len(payload.doc_texts), CHUNK):
            part = slice(start, start + CHUNK)
            texts = payload.doc_texts[part]
            embeddings = encoder.encode(
                texts, role=Role.DOCUMENT, task=reference, ids=payload.doc_ids[part], progress=progress
            )
            began = time.perf_counter()
            top.add(embeddings.vectors)
            found.search_s += time.perf_counter() - began
            found.counts += embeddings.counts
            found.alike.add(embeddings)
            found.work += embeddings.work
        progress.finish()
        return found


@dataclass
class _Found:
    top: TopK
    counts: TextCounts
    alike: _counts.Alike
    search_s: float
    work: Work


class _RetrievalType:
    options = RetrievalOptions
    summary = "search of a corpus by queries with graded judgments (nDCG, MAP, MRR, recall, …)"
    main_score = "ndcg_at_10"

    def bind(self, spec: TaskSpec, *, root: Path) -> RetrievalTask:
        options = _options.read(RetrievalOptions, spec)
        try:
            INDEXES.get(options.index)
        except UnknownNameError as error:
            raise ConfigError(f"Task {spec.name!r}: {error}", key=("index",)) from None
        main = _options.main_score(spec, ranking.FAMILY, self.main_score)
        if not options.cutoffs or min(options.cutoffs) < 1:
            raise ConfigError(f"Task {spec.name!r}: cutoffs must be whole numbers from 1.", key=("cutoffs",))
        if ranking.cutoff(main) > options.depth:
            raise ConfigError(
                f"Task {spec.name!r}: depth {options.depth} is less than the cut-off of the main score {main!r}.",
                key=("depth",),
            )
        return RetrievalTask(spec, _options.data_path(spec, root), options)


TASK = _RetrievalType()
