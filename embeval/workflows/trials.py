"""Ways to run a model, tried side by side on the same texts: how fast, and how near to float32."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from embeval.core.embeddings import Vectors
from embeval.core.ir import FloatRows
from embeval.core.protocols import Encoder, Reranker
from embeval.core.specs import Role
from embeval.encoders.parity import Bounds, Parity, compare
from embeval.rerankers import parity as score_parity
from embeval.rerankers.parity import ScoreBounds, ScoreParity
from embeval.workflows.samples import Sample

ROUNDS = 2
"""Times that each is run, taking turns, after one that sets kernels up; the fastest counts."""
WARM_UP = 16
"""Texts of that first run."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What one way to run a model came to."""

    name: str
    """Which way."""
    tokens_per_s: float
    """Speed on the sample; texts per second where the model doesn't tell tokens."""
    parity: Parity | ScoreParity
    """Against the reference: of vectors, or of a cross-encoder's scores."""
    spearman: float | None
    """Of the pairs of the sample."""
    spearman_delta: float | None
    """Against the reference; negative is worse."""
    bounds: Bounds | ScoreBounds
    """What was asked of it."""
    problems: tuple[str, ...]
    """What of that it breaks."""

    @property
    def passes(self) -> bool:
        """Whether it is near enough."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "problems": list(self.problems), "passes": self.passes}


def run(encoders: Mapping[str, Encoder], bounds: Mapping[str, Bounds], sample: Sample) -> list[Trial]:
    """A trial of each encoder, the first being the reference; ``bounds`` for each but that."""
    vectors: dict[str, Vectors] = {}
    tokens = 0
    fastest = dict.fromkeys(encoders, float("inf"))
    for encoder in encoders.values():
        encoder.encode(sample.texts[:WARM_UP], role=Role.DOCUMENT)
    for _ in range(ROUNDS):
        for name, encoder in encoders.items():
            began = time.perf_counter()
            embeddings = encoder.encode(sample.texts, role=Role.DOCUMENT)
            fastest[name] = min(fastest[name], time.perf_counter() - began)
            vectors[name] = embeddings.vectors
            tokens = embeddings.counts.tokens_kept or len(sample.texts)
    spearman = {name: sample.spearman(encoder) for name, encoder in encoders.items()}
    first = next(iter(encoders))
    trials = []
    for name in encoders:
        parity = compare(vectors[first], vectors[name])
        value, base = spearman[name], spearman[first]
        limits = bounds.get(name, Bounds(cosine_min=0.0, top_10_overlap=0.0))
        trials.append(
            Trial(
                name=name,
                tokens_per_s=round(tokens / fastest[name], 1),
                parity=parity,
                spearman=value,
                spearman_delta=value - base if value is not None and base is not None else None,
                bounds=limits,
                problems=tuple(limits.broken_by(parity)),
            )
        )
    return trials


def run_rerankers(rerankers: Mapping[str, Reranker], bounds: Mapping[str, ScoreBounds], sample: Sample) -> list[Trial]:
    """A trial of each cross-encoder on the queries of the sample and their candidates; else as ``run``."""
    pairs = [(query, document) for query, documents in sample.candidates for document in documents]
    sizes = [len(documents) for _, documents in sample.candidates]
    scores: dict[str, FloatRows] = {}
    tokens = 0
    fastest = dict.fromkeys(rerankers, float("inf"))
    for reranker in rerankers.values():
        reranker.score(pairs[:WARM_UP])
    for _ in range(ROUNDS):
        for name, reranker in rerankers.items():
            began = time.perf_counter()
            scored = reranker.score(pairs)
            fastest[name] = min(fastest[name], time.perf_counter() - began)
            scores[name], tokens = scored.scores, scored.tokens_kept
    first = next(iter(rerankers))
    trials = []
    for name in rerankers:
        parity = score_parity.compare(scores[first], scores[name], sizes)
        limits = bounds.get(name, ScoreBounds(spearman=0.0, top_1=0.0))
        trials.append(
            Trial(
                name=name,
                tokens_per_s=round(tokens / fastest[name], 1),
                parity=parity,
                spearman=None,
                spearman_delta=None,
                bounds=limits,
                problems=tuple(limits.broken_by(parity)),
            )
        )
    return trials
