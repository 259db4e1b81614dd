"""The best candidates of a ranking in the order of a cross-encoder's scores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Work
from embeval.core.ir import NOTHING, FloatRows, Run, TieRule
from embeval.core.progress import Progress
from embeval.core.protocols import PairScores, Reranker
from embeval.core.words import plural
from embeval.errors import ConfigError, DataError, InvalidEmbeddingsError

CHUNK = 16_384
"""Pairs scored together, give or take a query: their texts, put together, are in memory."""


@dataclass(frozen=True)
class Reranked:
    """A ranking after the reranker."""

    run: Run
    """For each query its candidates by the reranker's score, then what stood below them, in its old order with scores
    below the lowest of the reranker's."""
    scored: PairScores
    """What the reranker said of all pairs, query after query, candidates in their old order."""
    n_pairs: int
    """Pairs of query and candidate."""
    seconds: float
    """Wall time."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the ranking should know, as sentences."""
        found = []
        scored = self.scored
        if scored.n_truncated:
            share = scored.tokens_lost / (scored.tokens_kept + scored.tokens_lost)
            found.append(
                f"{scored.n_truncated} of {plural(self.n_pairs, 'reranked pair')} were truncated ({share:.1%} of all "
                "tokens lost), the longer text of each first."
            )
        if scored.n_document_lost:
            found.append(
                f"{plural(scored.n_document_lost, 'reranked pair')} had no token of a document that is not empty: "
                "these scores say nothing."
            )
        return tuple(found)


def rerank(
    run: Run,
    depth: int,
    reranker: Reranker,
    query_texts: Mapping[str, str],
    doc_texts: Mapping[str, str],
    *,
    ties: TieRule | None = None,
    progress: Progress | None = None,
) -> Reranked:
    """The run with the first ``depth`` documents of each query reordered; no other document comes among them.

    ``ties`` orders equal scores of the reranker; None: as in the run. ``progress`` gets a step per pair. Raises
    ``DataError`` where the run has a query or a document that has no text, ``InvalidEmbeddingsError`` that names
    queries and documents where the reranker gives NaN or Inf.
    """
    if depth < 1:
        raise ConfigError(f"rerank: depth must be at least 1, not {depth}.", key=("rerank", "depth"))
    began = time.perf_counter()
    candidates = run.docs[:, :depth] != NOTHING
    parts = [_score(run, rows, candidates, reranker, query_texts, doc_texts, progress) for rows in _chunks(candidates)]
    scored = _joined(parts)
    scores = run.scores.copy()
    scores[:, :depth][candidates] = scored.scores
    for row in range(len(scores)):
        _push_below(scores[row], run.scores[row], n_candidates=int(candidates[row].sum()), docs=run.docs[row])
    reranked = Run.ranked(
        query_ids=run.query_ids,
        doc_ids=run.doc_ids,
        docs=run.docs,
        scores=scores,
        ties=ties or run.ties,
        n_duplicates=run.n_duplicates,
    )
    return Reranked(reranked, scored, len(scored.scores), time.perf_counter() - began)


def _chunks(candidates: npt.NDArray[np.bool_]) -> Iterator[slice]:
    """Consecutive queries with about ``CHUNK`` candidates together; a query is never divided."""
    start = n_pairs = 0
    for row, n in enumerate(candidates.sum(axis=1).tolist()):
        if n_pairs and n_pairs + n > CHUNK:
            yield slice(start, row)
            start, n_pairs = row, 0
        n_pairs += n
    if n_pairs:
        yield slice(start, len(candidates))


def _score(
    run: Run,
    rows: slice,
    candidates: npt.NDArray[np.bool_],
    reranker: Reranker,
    query_texts: Mapping[str, str],
    doc_texts: Mapping[str, str],
    progress: Progress | None,
) -> PairScores:
    names = [
        (query, run.doc_ids[doc])
        for query, docs, present in zip(
            run.query_ids[rows], run.docs[rows, : candidates.shape[1]], candidates[rows], strict=True
        )
        for doc in docs[present].tolist()
    ]
    pairs = [(_text(query_texts, query, "query"), _text(doc_texts, doc, "document")) for query, doc in names]
    try:
        return reranker.score(pairs, progress=progress)
    except InvalidEmbeddingsError as error:
        bad = [names[int(number)] for number in error.ids]
        told = ", ".join(f"query {query!r} with document {doc!r}" for query, doc in bad)
        raise InvalidEmbeddingsError(
            f"Reranker {reranker.spec.name!r} ({reranker.spec.dtype} on {reranker.info.device}) gave a score that is "
            f"no finite number, such as for {told}.\n"
            "Nothing was ranked. If the model runs in float16, try bfloat16 or float32.",
            tuple(doc for _, doc in bad),
        ) from error


def _text(texts: Mapping[str, str], name: str, kind: str) -> str:
    try:
        return texts[name]
    except KeyError:
        raise DataError(f"rerank: the {kind} {name!r} of the ranking has no text, so it can't be reranked.") from None


def _push_below(scores: FloatRows, before: FloatRows, *, n_candidates: int, docs: npt.NDArray[np.int32]) -> None:
    """Gives what stands below the candidates scores below theirs, in place; what tied before ties again."""
    below = before[n_candidates:][docs[n_candidates:] != NOTHING]
    if not len(below):
        return
    level = np.concatenate([[0], np.cumsum(below[1:] != below[:-1])])
    lowest = float(scores[:n_candidates].min())
    # Far enough apart to be different numbers in float32, whatever the size of the reranker's scores.
    step = max(1.0, 4.0 * float(np.spacing(np.float32(abs(lowest) + len(below)))))
    scores[n_candidates : n_candidates + len(below)] = lowest - step * (1.0 + level)


def _joined(parts: Sequence[PairScores]) -> PairScores:
    return PairScores(
        scores=np.concatenate([part.scores for part in parts]) if parts else np.zeros(0, dtype=np.float32),
        n_truncated=sum(part.n_truncated for part in parts),
        n_document_lost=sum(part.n_document_lost for part in parts),
        tokens_kept=sum(part.tokens_kept for part in parts),
        tokens_lost=sum(part.tokens_lost for part in parts),
        work=sum((part.work for part in parts), Work()),
    )
