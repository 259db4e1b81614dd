"""From any system to rankings of a corpus: by its vectors, by its own ranking, or by several fused into one."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from embeval.core import ir, quantization
from embeval.core.embeddings import Alike, Embeddings, TextCounts, Vectors, Work
from embeval.core.ir import Run, TieRule
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Encoder, Hybrid, Ranker, System, TaskRef
from embeval.core.specs import Role, Scalar
from embeval.errors import ConfigError
from embeval.retrieval import approximate
from embeval.retrieval.fusion import fuse, part_depth
from embeval.retrieval.kinds import INDEXES, Approximate, Neighbours
from embeval.retrieval.search import TopK
from embeval.retrieval.vectors_file import VectorsWriter, open_vectors

CHUNK = 16_384
"""Documents encoded and searched together: 25 MB of vectors at 384 dimensions."""


@dataclass(frozen=True)
class Texts:
    """Texts by id."""

    ids: tuple[str, ...]
    """N unique ids."""
    texts: tuple[str, ...]
    """Their N texts."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is looked for, and how."""

    task: TaskRef
    """Prompts can hang on it."""
    depth: int
    """Hits per query."""
    ties: TieRule = TieRule.DOC_ID_DESC
    """What decides between documents of equal score."""
    without: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Query id -> documents that are no hits for it, and take no place of one."""
    index: str = "exact"
    """Kind of index for systems with vectors."""
    index_options: Mapping[str, Scalar] = field(default_factory=dict)
    """Its options."""
    keep_in: Path | None = None
    """Folder for the document vectors, where they are wanted afterwards; it must stay until they are no longer."""

    @property
    def fetched(self) -> int:
        """Hits to fetch so that ``depth`` are left."""
        return self.depth + max((len(docs) for docs in self.without.values()), default=0)


@dataclass(frozen=True)
class Kept:
    """The vectors of a corpus, and what searched them."""

    vectors: Vectors
    """float32 [N, d], memory-mapped."""
    index: Approximate | None
    """The index, where its kind is not exact."""
    n_bytes: int
    """Bytes of the index; of the vectors where the search is exact."""


@dataclass(frozen=True)
class Misses:
    """What an approximate search found beside what there was to find, for each query."""

    found: Neighbours
    """By the index, scored by the vectors."""
    exact: Neighbours
    """By exact search."""


@dataclass
class Encoded:
    """What became of the texts of one encoder."""

    encoder: Encoder
    """The encoder."""
    prompts: Mapping[str, str]
    """The prompt used for each role."""
    queries: TextCounts
    """Counts of the queries."""
    queries_alike: Alike
    """Queries that look the same once cut."""
    documents: TextCounts = field(default_factory=TextCounts)
    """Counts of the documents."""
    documents_alike: Alike = field(default_factory=Alike)
    """Documents that look the same once cut."""
    kept: Kept | None = None
    """Its vectors of the documents, where ``Search.keep_in`` is given."""


@dataclass(kw_only=True)
class FirstStage:
    """A ranking, and what it took."""

    run: Run
    """Every query with its hits."""
    encoded: tuple[Encoded, ...] = ()
    """One entry per encoder: none for a system that reads no vectors, several for a hybrid of several."""
    misses: Misses | None = None
    """Of one encoder searched by an index that is not exact."""
    remarks: tuple[str, ...] = ()
    """What a reader should know of systems that are no encoders."""
    encode_s: float = 0.0
    """Wall seconds spent on vectors."""
    search_s: float = 0.0
    """Wall seconds spent on ranking, where an index was measured without the exact search that it is held against."""
    work: Work = field(default_factory=Work)
    """What went through models."""


def rank_corpus(
    system: System, corpus: Texts, queries: Texts, search: Search, progress: Progress | None = None
) -> FirstStage:
    """The best documents per query, in the order of ``queries``.

    Texts are encoded and searched in chunks of ``CHUNK`` documents; vectors of a corpus are never all in memory.
    """
    watch = progress or Silent()
    if isinstance(system, Hybrid):
        return _fused(system, corpus, queries, search, watch)
    if isinstance(system, Encoder):
        return _by_vectors(system, corpus, queries, search, watch)
    return _by_rank(system, corpus, queries, search, watch)


def _fused(hybrid: Hybrid, corpus: Texts, queries: Texts, search: Search, progress: Progress) -> FirstStage:
    parts = []
    for number, part in enumerate(hybrid.parts):
        keep_in = None if search.keep_in is None else search.keep_in / str(number)
        of_part = replace(search, depth=part_depth(search.depth), keep_in=keep_in)
        parts.append(rank_corpus(part, corpus, queries, of_part, progress))
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


def _by_rank(ranker: Ranker, corpus: Texts, queries: Texts, search: Search, progress: Progress) -> FirstStage:
    began = time.perf_counter()
    run = ranker.rank(
        corpus.ids,
        corpus.texts,
        queries.ids,
        queries.texts,
        depth=search.fetched,
        ties=search.ties,
        progress=progress,
    )
    run = _cut(run, search)
    return FirstStage(run=run, remarks=ranker.info.remarks, search_s=time.perf_counter() - began)


def _by_vectors(encoder: Encoder, corpus: Texts, queries: Texts, search: Search, progress: Progress) -> FirstStage:
    exact = INDEXES.get(search.index).exact
    if not exact:
        if encoder.spec.rescore is not None:
            raise ConfigError(f"Index {search.index!r} can't be used with rescore: it finds its own candidates.")
        approximate.check(search.index, encoder.info.similarity, encoder.info.dim, search.index_options)
        if search.keep_in is None:
            with tempfile.TemporaryDirectory(prefix="embeval-vectors-") as folder:
                whole = _by_vectors(encoder, corpus, queries, replace(search, keep_in=Path(folder)), progress)
                whole.encoded[0].kept = None
                return whole
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
    top = _top(encoder, corpus, of_queries.vectors, search)
    path = search.keep_in / "vectors.npy" if search.keep_in is not None else None
    writer = VectorsWriter(path, encoder.info.dim) if path is not None else None

    def take(chunk: Embeddings) -> None:
        nonlocal work, search_s
        search_began = time.perf_counter()
        top.add(chunk.vectors)
        if writer is not None:
            writer.append(chunk.vectors)
        search_s += time.perf_counter() - search_began
        encoded.documents += chunk.counts
        encoded.documents_alike.add(chunk)
        work += chunk.work

    try:
        encode_corpus(encoder, corpus, search.task, progress, take)
    except BaseException:
        if writer is not None:
            writer.discard()
        raise
    encode_s = time.perf_counter() - began - search_s
    best, misses = top.result(), None
    if writer is not None and path is not None:
        writer.close()
        vectors = open_vectors(path)
        encoded.kept = Kept(vectors, None, vectors.nbytes)
        if not exact:
            search_began = time.perf_counter()
            encoded.kept, found = _by_index(encoder, corpus, of_queries.vectors, vectors, search, progress)
            search_s = time.perf_counter() - search_began
            best, misses = found, Misses(found, best)
    run = Run.ranked(
        query_ids=queries.ids,
        doc_ids=corpus.ids,
        docs=best.positions.astype(np.int32),
        scores=best.scores,
        ties=search.ties,
    )
    return FirstStage(
        run=_cut(run, search), encoded=(encoded,), misses=misses, encode_s=encode_s, search_s=search_s, work=work
    )


def _by_index(
    encoder: Encoder, corpus: Texts, queries: Vectors, vectors: Vectors, search: Search, progress: Progress
) -> tuple[Kept, Neighbours]:
    similarity = encoder.info.similarity
    index = approximate.build(
        vectors, kind=search.index, similarity=similarity, options=search.index_options, progress=progress
    )
    found = approximate.search(
        index,
        vectors,
        queries,
        k=min(search.fetched, len(corpus)),
        similarity=similarity,
        tie_keys=ir.tie_keys(corpus.ids, search.ties),
    )
    return Kept(vectors, index, index.n_bytes()), found


def encode_corpus(
    encoder: Encoder, corpus: Texts, task: TaskRef, progress: Progress, take: Callable[[Embeddings], Any]
) -> None:
    """Hands the embeddings of all documents to ``take``, chunk by chunk, in their order."""
    progress.start("documents", len(corpus), "texts")
    for start in range(0, len(corpus), CHUNK):
        part = slice(start, start + CHUNK)
        take(encoder.encode(corpus.texts[part], role=Role.DOCUMENT, task=task, ids=corpus.ids[part], progress=progress))
    progress.finish()


def _top(encoder: Encoder, corpus: Texts, queries: Vectors, search: Search) -> TopK:
    quantize, rescore = encoder.spec.quantize, encoder.spec.rescore
    two_stages = quantize is not None and rescore is not None
    return TopK(
        quantization.coded(queries, quantize) if two_stages and quantize is not None else queries,
        k=min(search.fetched * (rescore or 1), len(corpus)),
        similarity=encoder.info.similarity,
        tie_keys=ir.tie_keys(corpus.ids, search.ties),
        index=search.index if INDEXES.get(search.index).exact else "exact",
        rescored_by=queries if two_stages else None,
    )


def _cut(run: Run, search: Search) -> Run:
    """The first hits of each query, without those that are none."""
    run = run.without(search.without) if search.without else run
    return replace(run, docs=run.docs[:, : search.depth], scores=run.scores[:, : search.depth])
