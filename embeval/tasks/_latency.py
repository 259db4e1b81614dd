"""How long single queries take on the systems of a task, stage by stage, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from embeval import metrics
from embeval.core import provenance
from embeval.core.embeddings import Vectors
from embeval.core.ir import NOTHING, Run, tie_keys
from embeval.core.protocols import Encoder, Hits, Hybrid, PairScores, Ranker, System
from embeval.core.specs import Role
from embeval.metrics import cost, latency
from embeval.rerankers import loading as rerankers
from embeval.retrieval import approximate
from embeval.retrieval import latency as clock
from embeval.retrieval.first_stage import FirstStage, Kept, Search, Texts
from embeval.retrieval.fusion import fuse
from embeval.retrieval.kinds import INDEXES, ExactType

if TYPE_CHECKING:
    from embeval.tasks.retrieval import RetrievalTask

SHOWN = 100
"""Hits that a timed search fetches at most, as a system in production would."""
MIB = 1 << 20
IN_TURNS = ("latency_ms", *(f"{stage}_latency_ms" for stage in latency.STAGES), "queries_per_s")
"""Columns that several systems can be measured for in turns."""
FROM_A_FILE = ("ranking", "precomputed")
"""Backends that only know what a file says."""


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


@dataclass(frozen=True)
class Ready:
    """A system that was loaded to be timed, with its index."""

    stages: tuple[clock.Stage, ...]
    """From a query to its answer."""
    index_mib: float | None
    """Size of its index; None for a system without vectors."""
    usd_per_million_queries: float | None
    """What endpoints cost; None where no price is known."""

    def all_at_once(self, texts: Sequence[str]) -> Any:
        """Queries as one batch through all stages."""
        (_, encode), *others = self.stages
        given = encode(texts)
        for _, stage in others:
            given = stage(given)
        return given


def ready(task: RetrievalTask, first: FirstStage, corpus: Texts, search: Search) -> Ready | None:
    """The system of the task, loaded anew. None for one that only knows what a file says, which takes no time."""
    system = task.fresh()
    if not _answers(system):
        return None
    parts = _parts(system, first, corpus, search)

    def encode(texts: str | Sequence[str]) -> _Asked:
        given = [texts] if isinstance(texts, str) else texts
        return _Asked(given, [part.encode(given) for part in parts])

    def look_up(asked: _Asked) -> _Asked:
        runs = [part.search(asked.texts, vectors) for part, vectors in zip(parts, asked.vectors, strict=True)]
        return replace(asked, run=_whole(system, runs, search))

    stages: list[clock.Stage] = [("encode", encode), ("search", look_up)]
    if task.options.rerank is not None:
        stages.append(("rerank", _rescorer(task, corpus)))
    kept = [each.kept.n_bytes for each in first.encoded if each.kept is not None]
    return Ready(tuple(stages), sum(kept) / MIB if kept else None, _usd(first))


def measure(task: RetrievalTask, first: FirstStage, corpus: Texts, queries: Texts, search: Search) -> Timed:
    """Latencies of the first ``options.latency`` queries, each alone, on a system that was loaded for this.

    A system that only knows what a file says of given queries has no latency: all columns are empty, with a remark.
    """
    system = ready(task, first, corpus, search)
    if system is None:
        wanted = names(with_reranker=task.options.rerank is not None)
        empty = {column: dict[str, float]() for name in wanted for column in metrics.get(name).columns}
        return Timed(empty, ("Latency was not measured: what is read from a file takes no time.",))
    (columns,) = _measured([system], _chosen(task, queries))
    return Timed(columns)


def in_turns(task: RetrievalTask, systems: Sequence[Ready], queries: Texts) -> list[dict[str, dict[str, float]]]:
    """Of each system the columns of what can be measured in turns: times of single queries, and throughput.

    Cold times and memory can't: a process is cold once, and has one peak of memory.
    """
    return [
        {name: column for name, column in columns.items() if name in IN_TURNS}
        for columns in _measured(systems, _chosen(task, queries))
    ]


def _chosen(task: RetrievalTask, queries: Texts) -> Texts:
    """The queries to be timed."""
    return Texts(queries.ids[: task.options.latency], queries.texts[: task.options.latency])


def _measured(systems: Sequence[Ready], queries: Texts) -> list[dict[str, dict[str, float]]]:
    """Column -> query id -> value, of each system."""
    latencies = clock.measure_in_turns([system.stages for system in systems], queries.texts)
    per_s = clock.throughput_in_turns([system.all_at_once for system in systems], queries.texts)
    n, peak, found = len(queries), provenance.peak_rss_mib(), []
    for system, times, speed in zip(systems, latencies, per_s, strict=True):
        columns = {
            **times.columns(),
            "queries_per_s": cost.once(speed, n),
            "index_mib": cost.once(system.index_mib, n),
            "peak_rss_mib": cost.once(peak, n),
            "usd_per_million_queries": cost.once(system.usd_per_million_queries, n),
        }
        found.append({name: dict(zip(queries.ids, column.tolist(), strict=True)) for name, column in columns.items()})
    return found


@dataclass(frozen=True)
class _Asked:
    """Queries on their way through the stages."""

    texts: Sequence[str]
    vectors: Sequence[Vectors | None]
    """Of each part, where it has vectors."""
    run: Run | None = None


@dataclass(frozen=True)
class _Part:
    """One system, or one part of a hybrid, ready to answer."""

    encode: Callable[[Sequence[str]], Vectors | None]
    search: Callable[[Sequence[str], Vectors | None], Run]


def _answers(system: System) -> bool:
    parts = system.parts if isinstance(system, Hybrid) else (system,)
    return all(part.spec.backend not in FROM_A_FILE for part in parts)


def _parts(system: System, first: FirstStage, corpus: Texts, search: Search) -> list[_Part]:
    """Every part with its index; encoders of a hybrid come in the order of ``first.encoded``."""
    kept = iter(each.kept for each in first.encoded)
    depth = min(search.fetched, SHOWN, len(corpus))
    parts = []
    for part in system.parts if isinstance(system, Hybrid) else (system,):
        if isinstance(part, Encoder):
            of_part = next(kept)
            assert of_part is not None
            parts.append(_by_vectors(part, of_part, corpus, search, depth))
        else:
            assert isinstance(part, Ranker)
            parts.append(_by_rank(part, corpus, search, depth))
    return parts


def _by_vectors(encoder: Encoder, kept: Kept, corpus: Texts, search: Search, depth: int) -> _Part:
    def encode(texts: Sequence[str]) -> Vectors:
        return encoder.encode(texts, role=Role.QUERY, task=search.task).vectors

    def look_up(texts: Sequence[str], vectors: Vectors | None) -> Run:
        assert vectors is not None
        found = nearest(vectors)
        return Run(_numbers(texts), corpus.ids, found.positions.astype(np.int32), found.scores, search.ties)

    nearest = _nearest(encoder, kept, corpus, search, depth)
    return _Part(encode, look_up)


def _nearest(encoder: Encoder, kept: Kept, corpus: Texts, search: Search, depth: int) -> Callable[[Vectors], Hits]:
    """Vectors float32 [n, d] to their neighbours, on an index that is ready."""
    similarity = encoder.info.similarity
    if kept.index is not None:
        index, keys = kept.index, tie_keys(corpus.ids, search.ties)
        return lambda vectors: approximate.search(
            index, kept.vectors, vectors, k=depth, similarity=similarity, tie_keys=keys
        )
    kind = INDEXES.get(search.index)
    assert isinstance(kind, ExactType)
    whole = kind.create(encoder.info.dim, similarity)
    whole.add(np.asarray(kept.vectors))
    return lambda vectors: whole.search(vectors, depth)


def _by_rank(ranker: Ranker, corpus: Texts, search: Search, depth: int) -> _Part:
    def look_up(texts: Sequence[str], _vectors: Vectors | None) -> Run:
        return ranker.rank(corpus.ids, corpus.texts, _numbers(texts), texts, depth=depth, ties=search.ties)

    look_up(("",), None)  # indexes the corpus
    return _Part(lambda _texts: None, look_up)


def _whole(system: System, runs: Sequence[Run], search: Search) -> Run:
    if not isinstance(system, Hybrid):
        return runs[0]
    return fuse(runs, method=system.method, weights=system.weights, rrf_k=system.rrf_k, depth=SHOWN, ties=search.ties)


def _numbers(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(len(texts)))


def _usd(first: FirstStage) -> float | None:
    """What a million queries cost at endpoints; None where no price is known."""
    prices = []
    for each in first.encoded:
        tokens = each.queries.tokens_kept
        per_query = None if tokens is None else tokens / max(each.queries.n_texts, 1)
        prices.append(cost.usd_per_million_queries(each.encoder.info, per_query))
    known = [price for price in prices if price is not None]
    return sum(known) if known else None


def _rescorer(task: RetrievalTask, corpus: Texts) -> Callable[[_Asked], PairScores]:
    """Queries with their candidates to scores of the pairs, by a reranker that was loaded for this."""
    located, options = task.reranker, task.second_stage
    assert located is not None
    assert options is not None
    reranker = rerankers.load(located, task.runtime)
    text_of = dict(zip(corpus.ids, corpus.texts, strict=True))

    def rescore(asked: _Asked) -> PairScores:
        run = asked.run
        assert run is not None
        pairs = [
            (text, text_of[run.doc_ids[doc]])
            for text, row in zip(asked.texts, run.docs[:, : options.depth], strict=True)
            for doc in row[row != NOTHING].tolist()
        ]
        return reranker.score(pairs)

    return rescore
