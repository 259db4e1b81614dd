"""Texts to try a model on: the user's own, or those that come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from embeval.core.protocols import Encoder
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import Role
from embeval.data.beir import RetrievalData
from embeval.data.pairs import Pairs
from embeval.data.texts import Texts
from embeval.errors import ConfigError
from embeval.workflows import requests

BUNDLED_TEXTS, BUNDLED_PAIRS = "demo-docs", "demo-pairs"
MOST = 512
"""Texts of a sample; the first of a larger set."""
FEWEST = 8
"""Fewer say nothing of neighbours."""
QUERIES, CANDIDATES = 32, 16
"""Queries with candidates, and candidates of each: relevant documents first, then others from all over the corpus."""


@dataclass(frozen=True)
class Sample:
    """Texts, and perhaps pairs with gold scores."""

    name: str
    """Where they are from."""
    texts: tuple[str, ...]
    """Distinct texts that are not empty."""
    pairs: Pairs | None
    """Pairs, where the sample has them."""
    candidates: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Queries, each with documents that a reranker could be given; from retrieval tasks."""

    def spearman(self, encoder: Encoder) -> float | None:
        """Spearman of the cosine of the pairs with their gold scores; None without pairs or where it has no value."""
        if self.pairs is None:
            return None
        vectors = encoder.encode([*self.pairs.left, *self.pairs.right], role=Role.TEXT).vectors
        n = len(self.pairs)
        cosines = SIMILARITIES["cosine"](vectors[:n], vectors[n:])
        if np.ptp(cosines) == 0 or np.ptp(self.pairs.gold) == 0:
            return None
        return float(stats.spearmanr(self.pairs.gold, cosines).statistic)


def take(words: str | None, *, data: Path | None = None) -> Sample:
    """The texts of a task as ``embeval run -t`` takes it; None: what comes with the package.

    Raises ``ConfigError`` where there are too few.
    """
    payloads = [
        (task.spec.name, task.load())
        for task in (
            requests.parse_task(each, root=Path(), data=data)
            for each in ([words] if words is not None else [BUNDLED_TEXTS, BUNDLED_PAIRS])
        )
    ]
    texts: list[str] = []
    pairs, candidates = None, list[tuple[str, tuple[str, ...]]]()
    for _, payload in payloads:
        if isinstance(payload, RetrievalData):
            candidates += _candidates(payload)
            texts += [*payload.doc_texts[:MOST], *list(payload.queries.values())[: MOST // 4]]
        elif isinstance(payload, Pairs):
            pairs = payload
            texts += [*payload.left[:MOST], *payload.right[:MOST]]
        elif isinstance(payload, Texts):
            texts += payload.texts[:MOST]
        else:
            raise ConfigError("A sample is a retrieval or an sts task, or one of texts, such as pseudo_likelihood.")
    distinct = tuple(dict.fromkeys(text for text in texts if text.strip()))[:MOST]
    if len(distinct) < FEWEST:
        raise ConfigError(f"The sample {words!r} has {len(distinct)} texts; at least {FEWEST} are needed.")
    return Sample("+".join(name for name, _ in payloads), distinct, pairs, tuple(candidates[:QUERIES]))


def _candidates(data: RetrievalData) -> list[tuple[str, tuple[str, ...]]]:
    texts = dict(zip(data.doc_ids, data.doc_texts, strict=True))
    others = data.doc_ids[:: max(1, len(data.doc_ids) // CANDIDATES)]
    found = []
    for query in data.qrels.judged[:QUERIES]:
        relevant = [doc for doc, grade in data.qrels.judgments[query].items() if grade > 0 and doc in texts]
        chosen = list(dict.fromkeys([*relevant[: CANDIDATES // 4], *others]))[:CANDIDATES]
        found.append((data.queries[query], tuple(texts[doc] for doc in chosen)))
    return found
