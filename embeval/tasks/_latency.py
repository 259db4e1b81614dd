"""How long single queries take on the system of a task, stage by stage, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from embeval.core import provenance
from embeval.core.embeddings import Vectors
from embeval.core.ir import tie_keys
from embeval.core.protocols import Encoder, Reranker
from embeval.core.specs import Role
from embeval.metrics import cost, latency
from embeval.rerankers import loading as rerankers
from embeval.retrieval import approximate
from embeval.retrieval import latency as clock
from embeval.retrieval.first_stage import FirstStage, Kept, Search, Texts
from embeval.retrieval.kinds import INDEXES, ExactType, Neighbours

if TYPE_CHECKING:
    from embeval.tasks.retrieval import RetrievalTask

SHOWN = 100
"""Hits that a timed search fetches at most, as a system in production would."""
MIB = 1 << 20


@dataclass(frozen=True)
class Timed:
    """What was measured."""

    columns: Mapping[str, dict[str, float]] = field(default_factory=dict)
    """Column -> query id -> value; queries that were not timed have none."""
    remarks: tuple[str, ...] = ()
    """What a reader should know."""


def names(*, with_reranker: bool) -> list[str]:
    """The metrics of a timed task."""
    stages = ["", "encode_", "search_", *(["rerank_"] if with_reranker else [])]
    return [
        *(f"{stage}latency_p{percent}_ms" for stage in stages for percent in latency.PERCENTS),
        *(f"{stage}cold_latency_ms" for stage in stages),
        "queries_per_s",
        *cost.NAMES,
    ]


def measure(task: RetrievalTask, first: FirstStage, corpus: Texts, queries: Texts, search: Search) -> Timed:
    """Latencies of the first ``options.latency`` queries, each alone, on a model that was loaded for this.

    All columns are NaN, with a remark, for a system that is not one encoder.
    """
    chosen = Texts(queries.ids[: task.options.latency], queries.texts[: task.options.latency])
    wanted = names(with_reranker=task.options.rerank is not None)
    if len(first.encoded) != 1 or first.encoded[0].kept is None:
        empty = {column: dict[str, float]() for name in wanted for column in _columns_of(name)}
        return Timed(empty, ("Latency was not measured: it is for systems that are one encoder.",))
    encoded, kept = first.encoded[0], first.encoded[0].kept
    encoder = task.fresh()
    assert isinstance(encoder, Encoder)
    depth = min(search.fetched, SHOWN, len(corpus))
    look_up = _searcher(encoder, kept, corpus, search, depth)

    def encode(texts: Sequence[str]) -> tuple[Sequence[str], Vectors]:
        return texts, encoder.encode(texts, role=Role.QUERY, task=search.task).vectors

    stages: list[clock.Stage] = [
        ("encode", lambda text: encode([text])),
        ("search", lambda given: (given[0], look_up(given[1]))),
    ]
    if task.options.rerank is not None:
        stages.append(("rerank", _rescorer(task, corpus)))
    found = clock.measure(stages, chosen.texts)

    def all_at_once(texts: Sequence[str]) -> Any:
        given: Any = encode(texts)
        for _, stage in stages[1:]:
            given = stage(given)
        return given

    n = len(chosen)
    tokens = encoded.queries.tokens_kept
    per_query = None if tokens is None else tokens / max(encoded.queries.n_texts, 1)
    columns = {
        **found.columns(),
        "queries_per_s": cost.once(clock.throughput(all_at_once, chosen.texts), n),
        "index_mib": cost.once(kept.n_bytes / MIB, n),
        "peak_rss_mib": cost.once(provenance.peak_rss_mib(), n),
        "usd_per_million_queries": cost.once(cost.usd_per_million_queries(encoder.info, per_query), n),
    }
    return Timed({name: dict(zip(chosen.ids, column.tolist(), strict=True)) for name, column in columns.items()})


def _columns_of(metric: str) -> tuple[str, ...]:
    from embeval import metrics

    return metrics.get(metric).columns


def _searcher(encoder: Encoder, kept: Kept, corpus: Texts, search: Search, depth: int) -> Any:
    """Vectors float32 [n, d] to their neighbours, on an index that is ready."""
    if kept.index is not None:
        index, keys = kept.index, tie_keys(corpus.ids, search.ties)
        similarity = encoder.info.similarity

        def approximately(vectors: Vectors) -> Neighbours:
            return approximate.search(index, kept.vectors, vectors, k=depth, similarity=similarity, tie_keys=keys)

        return approximately
    kind = INDEXES.get(search.index)
    assert isinstance(kind, ExactType)
    whole = kind.create(encoder.info.dim, encoder.info.similarity)
    whole.add(np.asarray(kept.vectors))
    return lambda vectors: whole.search(vectors, depth)


def _rescorer(task: RetrievalTask, corpus: Texts) -> Any:
    """Queries with their neighbours to scores of the pairs, by a reranker that was loaded for this."""
    located, options = task.reranker, task.second_stage
    assert located is not None
    assert options is not None
    reranker: Reranker = rerankers.load(located, task.runtime)

    def rescore(given: tuple[Sequence[str], Neighbours]) -> Any:
        texts, found = given
        pairs = [
            (text, corpus.texts[position])
            for text, row in zip(texts, found.positions, strict=True)
            for position in row[: options.depth].tolist()
            if position >= 0
        ]
        return reranker.score(pairs)

    return rescore
