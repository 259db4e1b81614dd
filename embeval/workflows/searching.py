"""Queries asked by hand: a system over a corpus, and what it finds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embeval.core import border
from embeval.core.embeddings import Embeddings, Vectors
from embeval.core.ir import Run
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Encoder, EncoderInfo, Hybrid, Ranker, Reranker, System, TaskRef
from embeval.core.specs import ModelSpec, RerankerSpec, Role, RuntimeOptions
from embeval.data.corpus import Corpus
from embeval.encoders import loading
from embeval.encoders.cache import open_cache
from embeval.errors import ConfigError, StoreError, UsageError
from embeval.rerankers import loading as reranker_loading
from embeval.rerankers.rerank import rerank
from embeval.retrieval import stored
from embeval.retrieval.first_stage import CHUNK, Search, Texts, rank_corpus
from embeval.retrieval.stored import StoredIndex
from embeval.workflows import requests

TASK = TaskRef(name="search", type="retrieval")
"""What prompts hang on."""
QUERY_ID = "query"
EXACT = "exact"
"""Kind of index that is saved unless another is wanted."""
CANDIDATES = 100
"""Hits of the first stage that a reranker sees, unless more are wanted in the end."""


class Hit(NamedTuple):
    """A document that was found."""

    rank: int
    """From 1."""
    id: str
    """Its id."""
    score: float
    """Higher is better; comparable within one answer only."""
    title: str
    """Its title, empty where it has none."""
    text: str
    """Its text without the title."""


class Answer(NamedTuple):
    """What a system says to a query."""

    system: str
    """Name of the system."""
    query: str
    """The query."""
    hits: tuple[Hit, ...]
    """Best first."""
    ranks: Mapping[str, int]
    """Rank of each document that was looked at: the hits and those below them."""
    seconds: float
    """Wall time, that of encoding the corpus included where this had not been done."""


class Searcher:
    """A system over a corpus, ready to be asked.

    With ``keep`` the vectors of the documents stay in memory (4 bytes per dimension and document), so that every
    query but the first is answered at once; without, they go by in chunks.
    """

    def __init__(
        self,
        system: System,
        corpus: Corpus,
        *,
        index: str | None = None,
        reranker: Reranker | None = None,
        candidates: int = CANDIDATES,
        keep: bool = False,
        saved: StoredIndex | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.name = system.spec.label + (f" + {reranker.spec.name}" if reranker is not None else "")
        self._system = _keeping(system) if keep else system
        self._corpus, self._reranker, self._candidates = corpus, reranker, candidates
        self._texts = Texts(corpus.ids, corpus.texts)
        self._row_of = {doc: row for row, doc in enumerate(corpus.ids)}
        self._text_of = dict(zip(corpus.ids, corpus.texts, strict=True)) if reranker is not None else {}
        self._index: dict[str, Any] = {} if index is None else {"index": index}
        self._saved = saved
        self._progress = progress or Silent()

    def prepare(self) -> None:
        """Does what only the first query waits for: the model is loaded, and the corpus encoded."""
        self.ask(f"ready {time.time_ns()}", 1)  # a text that no cache holds, so that the model has to be there

    def ask(self, query: str, k: int, *, looked_at: int = 0) -> Answer:
        """The k best documents, and the ranks of the ``looked_at`` best.

        Raises ``UsageError`` for a query without a character.
        """
        if not query.strip():
            raise UsageError("The query is empty.")
        began = time.perf_counter()
        candidates = max(k, self._candidates)
        run = self._first_stage(query, max(k, looked_at, candidates if self._reranker is not None else 0))
        if self._reranker is not None:
            run = rerank(run, candidates, self._reranker, {QUERY_ID: query}, self._text_of, progress=self._progress).run
        hits, found = [], run.hits(QUERY_ID)
        for rank, (doc, score) in enumerate(found[:k], start=1):
            row = self._row_of[doc]
            hits.append(Hit(rank, doc, score, self._corpus.titles[row], self._corpus.bodies[row]))
        ranks = {doc: rank for rank, (doc, _) in enumerate(found, start=1)}
        return Answer(self.name, query, tuple(hits), ranks, time.perf_counter() - began)

    def _first_stage(self, query: str, depth: int) -> Run:
        if self._saved is None:
            return rank_corpus(
                self._system,
                self._texts,
                Texts((QUERY_ID,), (query,)),
                Search(task=TASK, depth=depth, **self._index),
                self._progress,
            ).run
        assert isinstance(self._system, Encoder)
        vectors = self._system.encode([query], role=Role.QUERY, task=TASK, ids=[QUERY_ID]).vectors
        found = self._saved.search(vectors, min(depth, len(self._saved)))
        return Run.ranked(
            query_ids=(QUERY_ID,),
            doc_ids=self._saved.doc_ids,
            docs=found.positions.astype(np.int32),
            scores=found.scores,
        )


def searchers(
    models: Sequence[ModelSpec],
    corpus: Corpus,
    *,
    reranker: RerankerSpec | None = None,
    candidates: int = CANDIDATES,
    runtime: RuntimeOptions | None = None,
    index: str | None = None,
    keep: bool = False,
    save_to: Path | None = None,
    open_from: Path | None = None,
    progress: Progress | None = None,
) -> list[Searcher]:
    """A searcher per model, each located before the first is loaded.

    One embedding model can search an index that is saved now, or was before. Raises ``UsageError``, ``ModelError``,
    ``StoreError``.
    """
    requests.refuse_same_models(models)
    on_disk = save_to is not None or open_from is not None
    if open_from is not None and (save_to is not None or index is not None):
        raise UsageError("An index is saved or opened: give --save with --index, or --open alone.")
    if on_disk and (len(models) != 1 or models[0].quantize is not None):
        raise UsageError("An index on disk is of one model, with its vectors as they are: give one, without quantize.")
    options = runtime or RuntimeOptions()
    cache = open_cache() if options.cache else None
    located = [loading.resolve(model) for model in models]
    second = reranker_loading.load(reranker_loading.resolve(reranker), options, cache) if reranker is not None else None
    found = []
    for each in located:
        system, saved = loading.load_system(each, options, cache), None
        if on_disk and not isinstance(system, Encoder):
            raise UsageError(f"{each.spec.label} gives no vectors, so there is nothing to save or to open.")
        if save_to is not None and isinstance(system, Encoder):
            saved = save(system, corpus, save_to, kind=index, progress=progress or Silent())
        elif open_from is not None and isinstance(system, Encoder):
            saved = opened(system, corpus, open_from)
        found.append(
            Searcher(
                system,
                corpus,
                index=index,
                reranker=second,
                candidates=candidates,
                keep=keep and saved is None,
                saved=saved,
                progress=progress,
            )
        )
    return found


def parse_reranker(text: str) -> RerankerSpec:
    """A reranker from ``NAME[,key=value…]``. Raises ``ConfigError``."""
    name, settings = requests.split_settings(text)
    try:
        return border.load(RerankerSpec, {"name": name, **settings})
    except border.BorderError as error:
        raise ConfigError(f"reranker {text!r}: {error.problems[0]}", key=error.problems[0].path) from None


def save(encoder: Encoder, corpus: Corpus, folder: Path, *, kind: str | None, progress: Progress) -> StoredIndex:
    """An index of the corpus in a new folder. Raises ``StoreError`` where it can't be written or is there."""

    def chunks() -> Iterator[Vectors]:
        progress.start("documents", len(corpus), "texts")
        for start in range(0, len(corpus), CHUNK):
            part = slice(start, start + CHUNK)
            texts, ids = corpus.texts[part], corpus.ids[part]
            yield encoder.encode(texts, role=Role.DOCUMENT, task=TASK, ids=ids, progress=progress).vectors
        progress.finish()

    return stored.build(
        folder,
        chunks(),
        corpus.ids,
        dim=encoder.info.dim,
        kind=kind or EXACT,
        similarity=encoder.info.similarity,
        description=_description(encoder, corpus),
    )


def opened(encoder: Encoder, corpus: Corpus, folder: Path) -> StoredIndex:
    """A saved index. Raises ``StoreError`` for one of another model, prompt or corpus."""
    found = stored.open_index(folder)
    for name, value in _description(encoder, corpus).items():
        if found.description.get(name) != value:
            raise StoreError(
                f"{folder} was built with another {name} ({found.description.get(name, '')[:12]!r} instead of "
                f"{value[:12]!r}).\nSearch it with what it was built with, or save a new one."
            )
    return found


def _description(encoder: Encoder, corpus: Corpus) -> dict[str, str]:
    return {
        "model": encoder.spec.digest,
        "prompt": encoder.prompt(Role.DOCUMENT, TASK),
        "corpus": corpus.digest,
    }


def _keeping(system: System) -> System:
    if isinstance(system, Hybrid):
        parts = tuple(_Keeping(part) if isinstance(part, Encoder) else part for part in system.parts)
        return replace(system, parts=parts)
    return system if isinstance(system, Ranker) else _Keeping(system)


class _Keeping:
    """An encoder that encodes the same documents once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._kept: dict[tuple[str, ...], Embeddings] = {}

    @property
    def spec(self) -> ModelSpec:
        return self._encoder.spec

    @property
    def info(self) -> EncoderInfo:
        return self._encoder.info

    def prompt(self, role: Role, task: TaskRef | None = None) -> str:
        return self._encoder.prompt(role, task)

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: Role,
        task: TaskRef | None = None,
        ids: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Embeddings:
        if role != Role.DOCUMENT:
            return self._encoder.encode(texts, role=role, task=task, ids=ids, progress=progress)
        key = tuple(ids)
        if key not in self._kept:
            self._kept[key] = self._encoder.encode(texts, role=role, task=task, ids=ids, progress=progress)
        elif progress is not None:
            progress.advance(len(texts))
        return self._kept[key]
