"""The best candidates of a ranking in the order of a cross-encoder's scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from embeval.core.ir import Run, TieRule
from embeval.core.progress import Progress
from embeval.core.protocols import Reranker


@dataclass(frozen=True)
class Reranked:
    """A ranking after the reranker."""

    run: Run


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
    """The run with its candidates reordered."""
    rows = [(query, doc) for query in run.query_ids for doc, _ in run.hits(query)[:depth]]
    scores = reranker.score([(query_texts[query], doc_texts[doc]) for query, doc in rows]).scores
    found = [(query, doc, float(score)) for (query, doc), score in zip(rows, scores, strict=True)]
    return Reranked(Run.from_rows(found, query_ids=run.query_ids))
