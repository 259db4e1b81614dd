"""From a system to a ranking of a corpus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embeval.core import ir
from embeval.core.ir import Run, TieRule
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import Encoder, Ranker, System, TaskRef
from embeval.core.specs import Role
from embeval.retrieval.search import TopK

CHUNK = 16_384
"""Documents encoded and searched together."""


@dataclass(frozen=True)
class Texts:
    """Texts by id."""

    ids: tuple[str, ...]
    """N unique ids."""
    texts: tuple[str, ...]
    """Their N texts."""


@dataclass(kw_only=True)
class FirstStage:
    """A ranking, and what it took."""

    run: Run
    """Every query with its hits."""


def rank_corpus(
    system: System,
    corpus: Texts,
    queries: Texts,
    *,
    depth: int,
    task: TaskRef,
    ties: TieRule = TieRule.DOC_ID_DESC,
    index: str = "flat",
    progress: Progress | None = None,
) -> FirstStage:
    """The ``depth`` best documents per query, in the order of ``queries``."""
    watch = progress or Silent()
    if isinstance(system, Ranker):
        return FirstStage(
            run=system.rank(
                corpus.ids, corpus.texts, queries.ids, queries.texts, depth=depth, ties=ties, progress=watch
            )
        )
    assert isinstance(system, Encoder)
    vectors = system.encode(queries.texts, role=Role.QUERY, task=task, ids=queries.ids).vectors
    top = TopK(
        vectors,
        k=min(depth, len(corpus.ids)),
        similarity=system.info.similarity,
        tie_keys=ir.tie_keys(corpus.ids, ties),
        index=index,
    )
    watch.start("documents", len(corpus.ids), "texts")
    for start in range(0, len(corpus.ids), CHUNK):
        part = slice(start, start + CHUNK)
        top.add(
            system.encode(
                corpus.texts[part], role=Role.DOCUMENT, task=task, ids=corpus.ids[part], progress=watch
            ).vectors
        )
    watch.finish()
    best = top.result()
    return FirstStage(
        run=Run.ranked(
            query_ids=queries.ids,
            doc_ids=corpus.ids,
            docs=best.positions.astype(np.int32),
            scores=best.scores,
            ties=ties,
        )
    )
