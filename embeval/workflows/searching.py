"""Queries asked by hand: a system over a corpus, and what it finds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from embeval.core import border
from embeval.core.embeddings import Embeddings
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Encoder, EncoderInfo, Hybrid, Ranker, Reranker, System, TaskRef
from embeval.core.specs import ModelSpec, RerankerSpec, Role, RuntimeOptions
from embeval.data.corpus import Corpus
from embeval.encoders import loading
from embeval.encoders.cache import open_cache
from embeval.errors import ConfigError, UsageError
from embeval.rerankers import loading as reranker_loading
from embeval.rerankers.rerank import rerank
from embeval.retrieval.first_stage import Search, Texts, rank_corpus
from embeval.workflows import requests

TASK = TaskRef(name="search", type="retrieval")
"""What prompts hang on."""
QUERY_ID = "query"
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
        progress: Progress | None = None,
    ) -> None:
        self.name = system.spec.label + (f" + {reranker.spec.name}" if reranker is not None else "")
        self._system = _keeping(system) if keep else system
        self._corpus, self._reranker, self._candidates = corpus, reranker, candidates
        self._texts = Texts(corpus.ids, corpus.texts)
        self._row_of = {doc: row for row, doc in enumerate(corpus.ids)}
        self._text_of = dict(zip(corpus.ids, corpus.texts, strict=True)) if reranker is not None else {}
        self._index: dict[str, Any] = {} if index is None else {"index": index}
        self._progress = progress or Silent()

    def prepare(self) -> None:
        """Does what only the first query waits for: the model is loaded, and the corpus encoded."""
        self.ask(f"ready {time.time_ns()}", 1)  # a text that no cache holds, so that the model has to be there

    def ask(self, query: str, k: int) -> Answer:
        """The k best documents. Raises ``UsageError`` for a query without a character."""
        if not query.strip():
            raise UsageError("The query is empty.")
        began = time.perf_counter()
        depth = k if self._reranker is None else max(k, self._candidates)
        run = rank_corpus(
            self._system,
            self._texts,
            Texts((QUERY_ID,), (query,)),
            Search(task=TASK, depth=depth, **self._index),
            self._progress,
        ).run
        if self._reranker is not None:
            run = rerank(run, depth, self._reranker, {QUERY_ID: query}, self._text_of, progress=self._progress).run
        hits = []
        for rank, (doc, score) in enumerate(run.hits(QUERY_ID)[:k], start=1):
            row = self._row_of[doc]
            hits.append(Hit(rank, doc, score, self._corpus.titles[row], self._corpus.bodies[row]))
        return Answer(self.name, query, tuple(hits), time.perf_counter() - began)


def searchers(
    models: Sequence[ModelSpec],
    corpus: Corpus,
    *,
    reranker: RerankerSpec | None = None,
    candidates: int = CANDIDATES,
    runtime: RuntimeOptions | None = None,
    index: str | None = None,
    keep: bool = False,
    progress: Progress | None = None,
) -> list[Searcher]:
    """A searcher per model, each located before the first is loaded. Raises ``ConfigError``, ``ModelError``."""
    requests.refuse_same_models(models)
    options = runtime or RuntimeOptions()
    cache = open_cache() if options.cache else None
    located = [loading.resolve(model) for model in models]
    second = reranker_loading.load(reranker_loading.resolve(reranker), options, cache) if reranker is not None else None
    return [
        Searcher(
            loading.load_system(each, options, cache),
            corpus,
            index=index,
            reranker=second,
            candidates=candidates,
            keep=keep,
            progress=progress,
        )
        for each in located
    ]


def parse_reranker(text: str) -> RerankerSpec:
    """A reranker from ``NAME[,key=value…]``. Raises ``ConfigError``."""
    name, settings = requests.split_settings(text)
    try:
        return border.load(RerankerSpec, {"name": name, **settings})
    except border.BorderError as error:
        raise ConfigError(f"reranker {text!r}: {error.problems[0]}", key=error.problems[0].path) from None


def ranks(answers: Sequence[Answer]) -> Mapping[str, tuple[int | None, ...]]:
    """Doc id -> its rank in each answer; None where it is not among the hits."""
    places = [{hit.id: hit.rank for hit in answer.hits} for answer in answers]
    return {doc: tuple(each.get(doc) for each in places) for of_one in places for doc in of_one}


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
