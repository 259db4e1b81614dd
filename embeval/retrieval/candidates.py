"""Rankings of candidates that are given for each query, as in reranking, instead of those of a whole corpus."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Alike, Work
from embeval.core.ir import NOTHING, Run
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Encoder, Hybrid, Ranker, System
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import Role
from embeval.errors import DataError
from embeval.retrieval.first_stage import CHUNK, Encoded, FirstStage, Search, Texts
from embeval.retrieval.fusion import fuse

PAIRS = 16_384
"""Similarities computed together: their vectors, once for each pair, are in memory."""
CELLS = 4_000_000
"""Hits of a system that ranks by itself, asked for together: it ranks all candidates for every query."""

Given = Mapping[str, Sequence[str]]


def rank_candidates(
    system: System, corpus: Texts, queries: Texts, given: Given, search: Search, progress: Progress | None = None
) -> FirstStage:
    """The ``search.depth`` best of each query's own candidates, in the order of ``queries``; none where none are given.

    Only documents that are candidates are encoded, in chunks. Raises ``DataError`` for one that is not in the corpus.
    """
    watch = progress or Silent()
    rows, docs, pool = _pairs(corpus, queries, given)
    if isinstance(system, Hybrid):
        return _fused(system, corpus, queries, given, search, watch)
    if isinstance(system, Encoder):
        return _by_vectors(system, pool, queries, rows, docs, search, watch)
    return _by_rank(system, pool, queries, given, search, watch)


def _pairs(corpus: Texts, queries: Texts, given: Given) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Texts]:
    """int64 [n] row of the query and int64 [n] place of the document in the pool of all candidates, and that pool."""
    text_of = dict(zip(corpus.ids, corpus.texts, strict=True))
    place: dict[str, int] = {}
    rows, docs = [], []
    for row, query in enumerate(queries.ids):
        for doc in dict.fromkeys(given.get(query, ())):
            if doc not in text_of:
                raise DataError(f"The candidate {doc!r} of query {query!r} is not in the corpus.")
            rows.append(row)
            docs.append(place.setdefault(doc, len(place)))
    pool = Texts(tuple(place), tuple(text_of[doc] for doc in place))
    return np.array(rows, dtype=np.int64), np.array(docs, dtype=np.int64), pool


def _fused(
    hybrid: Hybrid, corpus: Texts, queries: Texts, given: Given, search: Search, progress: Progress
) -> FirstStage:
    deep = replace(search, depth=max((len(docs) for docs in given.values()), default=1))
    parts = [rank_candidates(part, corpus, queries, given, deep, progress) for part in hybrid.parts]
    began = time.perf_counter()
    run = fuse(
        [part.run for part in parts],
        method=hybrid.method,
        weights=hybrid.weights,
        rrf_k=hybrid.rrf_k,
        depth=search.depth,
        ties=search.ties,
    )
    return FirstStage(
        run=run,
        encoded=tuple(each for part in parts for each in part.encoded),
        remarks=tuple(each for part in parts for each in part.remarks),
        encode_s=sum(part.encode_s for part in parts),
        search_s=sum(part.search_s for part in parts) + time.perf_counter() - began,
        work=sum((part.work for part in parts), start=Work()),
    )


def _by_vectors(
    encoder: Encoder,
    pool: Texts,
    queries: Texts,
    rows: npt.NDArray[np.int64],
    docs: npt.NDArray[np.int64],
    search: Search,
    progress: Progress,
) -> FirstStage:
    began = time.perf_counter()
    progress.start("queries", len(queries), "texts")
    of_queries = encoder.encode(queries.texts, role=Role.QUERY, task=search.task, ids=queries.ids, progress=progress)
    progress.finish()
    encoded = Encoded(
        encoder=encoder,
        prompts={role.value: encoder.prompt(role, search.task) for role in (Role.QUERY, Role.DOCUMENT)},
        queries=of_queries.counts,
        queries_alike=Alike.of(of_queries),
    )
    work, search_s = of_queries.work, 0.0
    scores = np.empty(len(rows), dtype=np.float32)
    order = np.argsort(docs, kind="stable")
    similarity = SIMILARITIES[encoder.info.similarity]
    progress.start("documents", len(pool), "texts")
    for start in range(0, len(pool), CHUNK):
        part = slice(start, start + CHUNK)
        chunk = encoder.encode(
            pool.texts[part], role=Role.DOCUMENT, task=search.task, ids=pool.ids[part], progress=progress
        )
        search_began = time.perf_counter()
        first, last = np.searchsorted(docs[order], (start, start + CHUNK))
        for low in range(int(first), int(last), PAIRS):
            some = order[low : min(low + PAIRS, int(last))]
            scores[some] = similarity(of_queries.vectors[rows[some]], chunk.vectors[docs[some] - start])
        search_s += time.perf_counter() - search_began
        encoded.documents += chunk.counts
        encoded.documents_alike.add(chunk)
        work += chunk.work
    progress.finish()
    encode_s = time.perf_counter() - began - search_s
    run = Run.from_hits(
        query_ids=queries.ids,
        doc_ids=pool.ids,
        rows=rows,
        docs=docs.astype(np.int32),
        scores=scores,
        ties=search.ties,
    )
    return FirstStage(run=_cut(run, search.depth), encoded=(encoded,), encode_s=encode_s, search_s=search_s, work=work)


def _by_rank(
    ranker: Ranker, pool: Texts, queries: Texts, given: Given, search: Search, progress: Progress
) -> FirstStage:
    """The candidates in the order in which the system ranks the pool; those that it doesn't find are no hits."""
    began = time.perf_counter()
    place = {doc: number for number, doc in enumerate(pool.ids)}
    row_of = {query: row for row, query in enumerate(queries.ids)}
    found: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]] = []
    step = max(1, CELLS // max(len(pool), 1))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        run = ranker.rank(
            pool.ids,
            pool.texts,
            queries.ids[part],
            queries.texts[part],
            depth=len(pool),
            ties=search.ties,
            progress=progress,
        )
        places = np.array([place[doc] for doc in run.doc_ids], dtype=np.int32)
        for docs, scores, query in zip(run.docs, run.scores, run.query_ids, strict=True):
            there = docs != NOTHING
            wanted = np.isin(places[docs[there]], [place[doc] for doc in given.get(query, ())])
            hits = places[docs[there][wanted]]
            found.append((np.full(len(hits), row_of[query]), hits, scores[there][wanted]))
    run = Run.from_hits(
        query_ids=queries.ids,
        doc_ids=pool.ids,
        rows=np.concatenate([rows for rows, _, _ in found]),
        docs=np.concatenate([docs for _, docs, _ in found]),
        scores=np.concatenate([scores for _, _, scores in found]),
        ties=search.ties,
    )
    return FirstStage(run=_cut(run, search.depth), remarks=ranker.info.remarks, search_s=time.perf_counter() - began)


def _cut(run: Run, depth: int) -> Run:
    return replace(run, docs=run.docs[:, :depth], scores=run.scores[:, :depth])
