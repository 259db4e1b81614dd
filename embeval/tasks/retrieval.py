"""``retrieval``: whether the documents that answer a query stand high among its nearest neighbours.

One item is a judged query, with a column per metric: ``ndcg_at_10`` first, then every measure of
``metrics.ranking`` at 1, 3, 5, 10, 20, 100 and 1000, or at cut-offs of your own. Fields of the queries file that are
labels (``kind``, ``language``, …) become slices. The corpus is encoded and searched in chunks: memory holds its texts
and one chunk of vectors.

The ranking is kept beside the numbers, so that another cut-off needs no model (``remeasure``), and
``rank_and_measure`` scores a ranking that came from elsewhere in the same way.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from embeval import metrics
from embeval.core import strict_json
from embeval.core.ir import Run, SelfMatch
from embeval.core.progress import Progress
from embeval.core.protocols import QUERIES_TIMED, Collected, Metric, Reranker, System, TaskRef
from embeval.core.specs import RuntimeOptions, TaskSpec
from embeval.core.words import plural
from embeval.data.beir import RetrievalData, load_beir
from embeval.errors import ConfigError, UnknownNameError
from embeval.metrics import documents, ranking
from embeval.metrics import rerank as rerank_metrics
from embeval.rerankers import loading as rerankers
from embeval.rerankers.rerank import Reranked, rerank
from embeval.retrieval.first_stage import FirstStage, Misses, Search, Texts, rank_corpus
from embeval.retrieval.kinds import INDEXES, read_options
from embeval.retrieval.recall import ann_recall
from embeval.tasks import _counts, _latency, _options, _second_stage
from embeval.tasks._ranked import Measured, cutoff, hidden, judge, metric_names, rank_and_measure, refreshed_warnings
from embeval.tasks._retrieval_options import RerankOptions, RetrievalOptions

__all__ = ["TASK", "Measured", "RetrievalOptions", "RetrievalTask", "rank_and_measure"]

VERSION = 1
"""Raised when the same data and vectors give another number."""
ANN_CUTOFFS = (10, 100)
"""The k of ``ann_recall_at_k``."""

ByQuery = dict[str, dict[str, float]]
"""Column -> query id -> value."""


def _cannot_load() -> System:
    raise RuntimeError("the task was not equipped by a runner")


@dataclass(frozen=True)
class RetrievalTask:
    """Retrieval on a BEIR folder: a first stage, and a reranker where one is given."""

    spec: TaskSpec
    path: Path
    options: RetrievalOptions
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    """How the reranker is run."""
    cache: Any = None
    """Where its scores are kept."""
    fresh: Callable[[], System] = field(default=_cannot_load, repr=False)
    """Loads the system anew, without a cache: what a latency is measured on."""

    def equipped(self, runtime: RuntimeOptions, cache: Any, fresh: Callable[[], System]) -> RetrievalTask:
        """The task with how models are run, the cache, and what loads the system anew."""
        return replace(self, runtime=runtime, cache=cache, fresh=fresh)

    def load(self) -> RetrievalData:
        """Corpus, queries and judgments of the split."""
        return load_beir(self.path, self.spec.dataset.split, unreachable=self.options.unreachable)

    def protocol(self, payload: RetrievalData) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        options = self.options
        protocol: dict[str, strict_json.Json] = {
            "type": "retrieval",
            "type_version": VERSION,
            "task_version": self.spec.version,
            "data": payload.data_hash,
            "split": self.spec.dataset.split,
            "depth": options.depth,
            # Exact kinds all give the same ranking, so they are one protocol.
            "index": options.index if self._approximate else "exact",
            "ties": options.ties.value,
            "self_match": (options.self_match or SelfMatch.KEEP).value,
            "missing_queries": options.missing_queries.value,
            "no_relevant": options.no_relevant.value,
            "gains": options.gains.value,
            "map_denominator": options.map_denominator.value,
            "unreachable": options.unreachable.value,
        }
        if self._approximate and options.index_options:
            protocol["index_options"] = dict(options.index_options)
        if self.second_stage is not None and self.reranker is not None:
            protocol["rerank"] = {"model": self.reranker.spec.digest, "depth": self.second_stage.depth}
        return protocol

    def metrics(self, payload: RetrievalData) -> tuple[Metric, ...]:
        """Every measure at every cut-off within the depth, the main one first."""
        main = self.spec.main_score or TASK.main_score
        names = list(metric_names(main, payload, self.options))
        if self.second_stage is not None:
            names += self._rerank_names(main)
        if self._approximate:
            names += [f"ann_recall_at_{k}" for k in ANN_CUTOFFS if k <= min(self.options.depth, len(payload.doc_ids))]
        if self.options.latency:
            names += _latency.names(with_reranker=self.second_stage is not None)
        return tuple(metrics.get(name) for name in names)

    def collect(self, payload: RetrievalData, system: System, progress: Progress) -> Collected:
        """One row per judged query, one per unanswerable query, and the ranking."""
        load_began = time.perf_counter()
        reranker = self._load_reranker()  # before anything is encoded, so that what can't be loaded is told at once
        began = time.perf_counter()
        queries, corpus, search = self._asked(payload)
        with ExitStack() as stack:
            if self.options.latency:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="embeval-vectors-"))
                search = replace(search, keep_in=Path(folder))
            first = rank_corpus(system, corpus, queries, search, progress)
            ranked_at = time.perf_counter()
            again = self._rerank(reranker, first.run, corpus, queries, progress)
            reranked_at = time.perf_counter()
            run = first.run if again is None else again.run
            extra = self._extra(payload, first, run, queries)
            timed = _latency.Timed()
            if self.options.latency:
                timed = _latency.measure(self, first, corpus, queries, search)
                extra |= timed.columns
        timed_at = time.perf_counter()
        names = [metric.name for metric in self.metrics(payload)]
        measured = rank_and_measure(run, payload, names, self.options, extra)
        ended = time.perf_counter()
        text_counts, text_warnings = _of_texts(first)
        pair_counts, pair_warnings = self._of_pairs(payload, first, again)
        phases = {"encode": first.encode_s, "search": ranked_at - began - first.encode_s}
        if again is not None:
            phases |= {"load_reranker": began - load_began, "rerank": reranked_at - ranked_at}
        phases |= {"latency": timed_at - reranked_at} if self.options.latency else {}
        return Collected(
            records=measured.records,
            run=run,
            counts={
                **measured.counts,
                **text_counts,
                **pair_counts,
                **({QUERIES_TIMED: self.n_timed(payload)} if self.options.latency else {}),
            },
            warnings=(*measured.warnings, *text_warnings, *pair_warnings, *timed.remarks),
            prompts=first.encoded[0].prompts if first.encoded else {},
            phases={**phases, "measure": ended - timed_at},
            work=first.work,
        )

    def ready(self, payload: RetrievalData, system: System, folder: Path, progress: Progress) -> _latency.Ready | None:
        """The system loaded anew with its index, to be timed; ``system`` gives the vectors of the documents.

        None for a system that only knows what a file says.
        """
        queries, corpus, search = self._asked(payload)
        first = rank_corpus(system, corpus, queries, replace(search, keep_in=folder), progress)
        return _latency.ready(self, first, corpus, search)

    def in_turns(self, payload: RetrievalData, systems: Sequence[_latency.Ready]) -> list[ByQuery]:
        """Columns of times, of each of the systems, which take turns at the queries."""
        return _latency.in_turns(self, systems, _queries(payload))

    def at(self, root: Path) -> RetrievalTask:
        """The task with the reranker's folder looked up under ``root``. Raises ``ConfigError`` where it can't be."""
        found = _second_stage.find(self.options.rerank, self.spec, root=root)
        return self if found is None else replace(self, options=replace(self.options, rerank=found.options))

    @property
    def _approximate(self) -> bool:
        return not INDEXES.get(self.options.index).exact

    @property
    def second_stage(self) -> RerankOptions | None:
        given = self.options.rerank
        return RerankOptions(model=given) if isinstance(given, str) else given

    @cached_property
    def reranker(self) -> rerankers.Located | None:
        """The reranker with its revision, not yet loaded."""
        return None if self.second_stage is None else rerankers.resolve(self.second_stage.spec)

    def _rerank_names(self, main: str) -> list[str]:
        assert self.second_stage is not None
        k = cutoff(main)
        base = dict.fromkeys([main, *(f"{kind}_at_{k}" for kind in ranking.MEASURES if kind != "judged")])
        ours = [name for name in base if ranking.FAMILY.make(name) is not None]
        return list(rerank_metrics.names(ours, depth=self.second_stage.depth))

    def _asked(self, payload: RetrievalData) -> tuple[Texts, Texts, Search]:
        """Queries, corpus, and what is looked for."""
        queries = _queries(payload)
        search = Search(
            task=TaskRef(name=self.spec.name, type=self.spec.type),
            depth=self.options.depth,
            ties=self.options.ties,
            without=hidden(payload, queries.ids, self.options),
            index=self.options.index,
            index_options=self.options.index_options,
        )
        return queries, Texts(payload.doc_ids, payload.doc_texts), search

    def _load_reranker(self) -> Reranker | None:
        return None if self.reranker is None else rerankers.load(self.reranker, self.runtime, self.cache)

    def _rerank(
        self, reranker: Reranker | None, run: Run, corpus: Texts, queries: Texts, progress: Progress
    ) -> Reranked | None:
        if self.second_stage is None or reranker is None:
            return None
        depth = self.second_stage.depth
        progress.start("pairs", int((run.docs[:, :depth] >= 0).sum()), "pairs")
        done = rerank(
            run,
            depth,
            reranker,
            dict(zip(queries.ids, queries.texts, strict=True)),
            dict(zip(corpus.ids, corpus.texts, strict=True)),
            ties=self.options.ties,
            progress=progress,
        )
        progress.finish()
        return done

    def _extra(self, payload: RetrievalData, first: FirstStage, run: Run, queries: Texts) -> ByQuery:
        """Columns that the final ranking doesn't tell."""
        extra: ByQuery = {}
        if self.second_stage is not None:
            before, after = (judge(each, payload, self.options) for each in (first.run, run))
            columns = rerank_metrics.columns(
                before,
                after,
                self._rerank_names(self.spec.main_score or TASK.main_score),
                depth=self.second_stage.depth,
                options=ranking.Options(self.options.gains, self.options.map_denominator),
            )
            for name, column in columns.items():
                extra[name] = dict(zip(before.query_ids, column.tolist(), strict=True))
        if self._approximate:
            # Without values for what no index was asked: BM25, and hybrids, whose parts each have their own.
            extra |= {f"ann_recall_at_{k}": {} for k in ANN_CUTOFFS}
        if first.misses is not None:
            for k in ANN_CUTOFFS:
                if k <= first.misses.exact.positions.shape[1]:
                    values = _found_share(first.misses, k).tolist()
                    judged = dict(zip(queries.ids, values, strict=True))
                    extra[f"ann_recall_at_{k}"] = {
                        query: value for query, value in judged.items() if query not in payload.unanswerable
                    }
        return extra

    def _of_pairs(
        self, payload: RetrievalData, first: FirstStage, again: Reranked | None
    ) -> tuple[dict[str, int | None], tuple[str, ...]]:
        """Counts of what the reranker saw, and sentences about it."""
        if again is None or self.second_stage is None:
            return {}, ()
        before, depth = judge(first.run, payload, self.options), self.second_stage.depth
        never = rerank_metrics.positives_never_candidates(before, depth)
        counts: dict[str, int | None] = {
            "pairs_reranked": again.n_pairs,
            "pairs_scored": again.scored.work.n_texts,
            "pairs_truncated": again.scored.n_truncated,
            "pairs_document_lost": again.scored.n_document_lost,
            "relevant_never_candidates": never,
        }
        told = []
        if never:
            told.append(
                f"{plural(never, 'relevant document')} not among the first {depth} candidates, so the reranker "
                "never saw them."
            )
        return counts, (*again.warnings, *told)

    def labels(self, payload: RetrievalData) -> str:
        """Hash of the labels of queries and documents."""
        hashed: dict[str, strict_json.Json] = {name: dict(each) for name, each in payload.query_labels.items()}
        # Under a name that no field has, and only where there are any: results without them stay what they are.
        if payload.doc_labels:
            hashed["\0documents"] = {name: dict(each) for name, each in payload.doc_labels.items()}
        return strict_json.digest(hashed)

    @property
    def times(self) -> bool:
        """Whether queries are timed."""
        return self.options.latency > 0

    def n_timed(self, payload: RetrievalData) -> int:
        """Queries to be timed."""
        return min(self.options.latency, len(_queries(payload)))

    def remeasure(
        self, payload: RetrievalData, run: Run, counts: Mapping[str, int | None], warnings: Sequence[str]
    ) -> Collected | None:
        """The records of a stored ranking under the metrics that are wanted now.

        ``counts`` and ``warnings`` are those of the result it was stored with. None where more than the last ranking
        is needed: what stood before a reranker, what an index missed, how long it took.
        """
        if self.second_stage is not None or self._approximate or self.options.latency:
            return None
        if payload.unanswerable - set(run.query_ids):
            return None
        measured = rank_and_measure(run, payload, [metric.name for metric in self.metrics(payload)], self.options)
        kept = {name: count for name, count in counts.items() if not name.startswith("queries_tied_at_")}
        return Collected(
            records=measured.records,
            run=run,
            counts={**kept, **measured.counts},
            warnings=refreshed_warnings(measured, payload, self.options, counts, warnings),
        )


def _found_share(misses: Misses, k: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return ann_recall(misses.found.positions, misses.exact.positions, misses.exact.scores, misses.found.scores, k)


def _queries(payload: RetrievalData) -> Texts:
    """The queries that are asked: those with judgments, then those marked unanswerable."""
    judged = [query for query in payload.qrels.judged if query not in payload.unanswerable]
    ids = (*judged, *(query for query in payload.queries if query in payload.unanswerable))
    return Texts(ids, tuple(payload.queries[query] for query in ids))


def _of_texts(first: FirstStage) -> tuple[dict[str, int | None], list[str]]:
    """Counts of texts and sentences about them; the counts of texts are those of the first encoder."""
    counts: dict[str, int | None] = {}
    if first.encoded:
        one = first.encoded[0]
        counts = {
            **_counts.texts("documents", one.documents),
            "documents_truncated_alike": one.documents_alike.n,
            **_counts.texts("queries_encoded", one.queries),
            **_counts.sizes([each.encoder for each in first.encoded]),
        }
    sentences = [
        sentence
        for each in first.encoded
        for sentence in _counts.warnings(
            [("documents", each.documents, each.documents_alike), ("queries", each.queries, each.queries_alike)],
            encoder=each.encoder,
            prompts_used=list(each.prompts.values()),
        )
    ]
    return counts, list(dict.fromkeys([*first.remarks, *sentences]))


class _RetrievalType:
    options = RetrievalOptions
    summary = "search of a corpus by queries with graded judgments (nDCG, MAP, MRR, recall, …)"
    main_score = "ndcg_at_10"
    needs_vectors = False

    def bind(self, spec: TaskSpec, *, root: Path) -> RetrievalTask:
        options = _options.read(RetrievalOptions, spec)
        main = spec.main_score or self.main_score
        family = documents.FAMILY if main.startswith(documents.PREFIX) else ranking.FAMILY
        _options.main_score(spec, family, self.main_score)
        try:
            INDEXES.get(options.index)
            read_options(options.index, options.index_options)
        except UnknownNameError as error:
            raise ConfigError(f"Task {spec.name!r}: {error}", key=("index",)) from None
        except ConfigError as error:
            raise ConfigError(f"Task {spec.name!r}: {error}", key=("index_options", *error.key)) from None
        if not options.cutoffs or min(options.cutoffs) < 1:
            raise ConfigError(f"Task {spec.name!r}: cutoffs must be whole numbers from 1.", key=("cutoffs",))
        if cutoff(main) > options.depth:
            raise ConfigError(
                f"Task {spec.name!r}: depth {options.depth} is less than the cut-off of the main score {main!r}.",
                key=("depth",),
            )
        task = RetrievalTask(spec, _options.data_path(spec, root), options)
        return task.at(root)


TASK = _RetrievalType()
