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
from embeval.errors import ConfigError
from embeval.workflows import requests

BUNDLED_TEXTS, BUNDLED_PAIRS = "demo-docs", "demo-pairs"
MOST = 512
"""Texts of a sample; the first of a larger set."""
FEWEST = 8
"""Fewer say nothing of neighbours."""


@dataclass(frozen=True)
class Sample:
    """Texts, and perhaps pairs with gold scores."""

    name: str
    """Where they are from."""
    texts: tuple[str, ...]
    """Distinct texts that are not empty."""
    pairs: Pairs | None
    """Pairs, where the sample has them."""

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
    pairs = None
    for _, payload in payloads:
        if isinstance(payload, RetrievalData):
            texts += [*payload.doc_texts[:MOST], *list(payload.queries.values())[: MOST // 4]]
        elif isinstance(payload, Pairs):
            pairs = payload
            texts += [*payload.left[:MOST], *payload.right[:MOST]]
        else:
            raise ConfigError("A sample is a retrieval or an sts task.")
    distinct = tuple(dict.fromkeys(text for text in texts if text.strip()))[:MOST]
    if len(distinct) < FEWEST:
        raise ConfigError(f"The sample {words!r} has {len(distinct)} texts; at least {FEWEST} are needed.")
    return Sample("+".join(name for name, _ in payloads), distinct, pairs)
