"""Our systems as mteb's ``SearchProtocol``: any encoder by our search, what ranks by itself, and a second stage."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from embeval.core.embeddings import Work
from embeval.core.ir import Run
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Encoder, Reranker, System, TaskRef
from embeval.mteb_bridge import door, retrieval_data
from embeval.rerankers.rerank import Reranked, rerank
from embeval.retrieval.candidates import rank_candidates
from embeval.retrieval.first_stage import Encoded, FirstStage, Search, Texts, rank_corpus
from embeval.tasks import _counts


@dataclass(frozen=True)
class Reranking:
    """A cross-encoder that orders the first candidates anew."""

    reranker: Reranker
    """The cross-encoder."""
    depth: int
    """Candidates per query that it scores."""


class BridgedSearch:
    """A system that mteb's retrieval tasks can evaluate. It keeps the rankings, and count of what made them."""

    def __init__(
        self,
        system: System,
        task: TaskRef,
        progress: Progress | None = None,
        *,
        second: Reranking | None = None,
        complete: bool = True,
    ) -> None:
        self.system, self.task = system, task
        self._progress = progress or Silent()
        self.second = second
        """What orders the first candidates anew."""
        self._complete = complete or isinstance(system, Encoder)
        self._corpus: Texts | None = None
        self.label = task.name
        """What is evaluated now, for the progress."""
        self.around: Callable[[], AbstractContextManager[Any]] = nullcontext
        """Entered while models work."""
        self.runs: dict[str, Run] = {}
        """Sub-set -> its ranking."""
        self.before: dict[str, Run] = {}
        """Sub-set -> its ranking before the second stage."""
        self.prompts: dict[str, str] = {}
        """The prompt used for each role."""
        self.work = Work()
        """What went through models."""
        self.seconds = 0.0
        """Wall seconds spent on vectors."""
        self.phases: dict[str, float] = {}
        """Wall seconds of what else there was: ``search``, ``rerank``."""
        self._encoded: list[Encoded] = []
        self._remarks: list[str] = []
        self._reranked: list[Reranked] = []

    def index(self, corpus: Any, **_: Any) -> None:
        """Takes up the documents; they are encoded while they are searched, chunk by chunk."""
        self._corpus = retrieval_data.documents(corpus)

    def search(
        self, queries: Any, *, hf_subset: str, top_k: int, top_ranked: Mapping[str, Any] | None = None, **_: Any
    ) -> dict[str, dict[str, float]]:
        """Query id -> document id -> score, the ``top_k`` best of the corpus or of a query's candidates.

        A query for which nothing was found has an entry where an encoder searched, as with mteb's own wrapper; a
        system that ranks by itself hands over what it has. mteb leaves queries without an entry out of its means.
        """
        assert self._corpus is not None
        began = time.perf_counter()
        asked, progress = retrieval_data.queries(queries), _Labelled(self._progress, self.label)
        wanted = Search(task=self.task, depth=top_k)
        with self.around():
            if top_ranked is None:
                first = rank_corpus(self.system, self._corpus, asked, wanted, progress)
            else:
                given = retrieval_data.candidates({"top_ranked": top_ranked}) or {}
                first = rank_candidates(self.system, self._corpus, asked, given, wanted, progress)
            self._take(first, began)
            run = self._again(first.run, asked, progress)
        self.before[hf_subset], self.runs[hf_subset], self._corpus = first.run, run, None
        found = {query: _hits(run, row) for row, query in enumerate(run.query_ids)}
        return (
            found
            if self._complete or not any(found.values())
            else {query: hits for query, hits in found.items() if hits}
        )

    @property
    def mteb_model_meta(self) -> Any:
        """What mteb wants to know of a model."""
        return door.nameless_model()

    def summary(self) -> tuple[dict[str, int | None], list[str]]:
        """Counts of texts and pairs, and sentences about them; the counts of texts are those of the first encoder."""
        counts: dict[str, int | None] = {}
        if self._encoded:
            one = self._encoded[0]
            counts = {
                **_counts.texts("documents", one.documents),
                "documents_truncated_alike": one.documents_alike.n,
                **_counts.texts("queries_encoded", one.queries),
                **_counts.sizes([each.encoder for each in self._encoded]),
            }
        sentences = [
            sentence
            for each in self._encoded
            for sentence in _counts.warnings(
                [("documents", each.documents, each.documents_alike), ("queries", each.queries, each.queries_alike)],
                encoder=each.encoder,
                prompts_used=list(each.prompts.values()),
            )
        ]
        if self._reranked:
            counts |= {
                "pairs_reranked": sum(each.n_pairs for each in self._reranked),
                "pairs_scored": sum(each.scored.work.n_texts for each in self._reranked),
                "pairs_truncated": sum(each.scored.n_truncated for each in self._reranked),
                "pairs_document_lost": sum(each.scored.n_document_lost for each in self._reranked),
            }
            sentences += [warning for each in self._reranked for warning in each.warnings]
        return counts, list(dict.fromkeys([*self._remarks, *sentences]))

    def _take(self, first: FirstStage, began: float) -> None:
        """Adds up what a ranking took."""
        if self._encoded:
            for mine, more in zip(self._encoded, first.encoded, strict=True):
                mine.queries += more.queries
                mine.documents += more.documents
                mine.queries_alike.join(more.queries_alike)
                mine.documents_alike.join(more.documents_alike)
        else:
            self._encoded = list(first.encoded)
        self._remarks += first.remarks
        self.prompts |= first.encoded[0].prompts if first.encoded else {}
        self.work += first.work
        self.seconds += first.encode_s
        self._spent("search", time.perf_counter() - began - first.encode_s)

    def _again(self, run: Run, asked: Texts, progress: Progress) -> Run:
        if self.second is None:
            return run
        assert self._corpus is not None
        depth = self.second.depth
        progress.start("pairs", int((run.docs[:, :depth] >= 0).sum()), "pairs")
        done = rerank(
            run,
            depth,
            self.second.reranker,
            dict(zip(asked.ids, asked.texts, strict=True)),
            dict(zip(self._corpus.ids, self._corpus.texts, strict=True)),
            progress=progress,
        )
        progress.finish()
        self._reranked.append(done)
        self._spent("rerank", done.seconds)
        return done.run

    def _spent(self, phase: str, seconds: float) -> None:
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds


def _hits(run: Run, row: int) -> dict[str, float]:
    docs = run.docs[row]
    n = int(np.count_nonzero(docs >= 0))
    return dict(zip([run.doc_ids[doc] for doc in docs[:n].tolist()], run.scores[row, :n].tolist(), strict=True))


@dataclass(frozen=True)
class _Labelled:
    """Progress that says of which task and sub-set a piece of work is."""

    inner: Progress
    label: str

    def start(self, label: str, total: int, unit: str) -> None:
        self.inner.start(f"{self.label}: {label}", total, unit)

    def advance(self, amount: int) -> None:
        self.inner.advance(amount)

    def finish(self) -> None:
        self.inner.finish()

    def note(self, text: str) -> None:
        self.inner.note(f"{self.label}: {text}")
