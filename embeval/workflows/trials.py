"""Ways to run a model, tried side by side on the same texts: how fast, and how near to float32."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from embeval.core.protocols import Encoder, Reranker
from embeval.core.specs import Role
from embeval.encoders.parity import Bounds, Parity, compare
from embeval.errors import ConfigError
from embeval.language_models import parity as token_parity
from embeval.language_models.model import LanguageModel
from embeval.language_models.parity import TokenBounds, TokenParity
from embeval.rerankers import parity as score_parity
from embeval.rerankers.parity import ScoreBounds, ScoreParity
from embeval.workflows.samples import Sample

ROUNDS = 2
"""Times that each is run, taking turns, after one that sets kernels up; the fastest counts."""
WARM_UP = 16
"""Texts of that first run."""
Way = TypeVar("Way")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What one way to run a model came to."""

    name: str
    """Which way."""
    tokens_per_s: float
    """Speed on the sample; texts per second where the model doesn't tell tokens."""
    parity: Parity | ScoreParity | TokenParity
    """Against the reference: of vectors, of a cross-encoder's scores, or of probabilities of tokens."""
    spearman: float | None = None
    """Of the pairs of the sample."""
    spearman_delta: float | None = None
    """Against the reference; negative is worse."""
    bounds: Bounds | ScoreBounds | TokenBounds
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
    found, fastest = _in_turns(encoders, lambda encoder, n: encoder.encode(sample.texts[:n], role=Role.DOCUMENT))
    vectors = {name: embeddings.vectors for name, embeddings in found.items()}
    spearman = {name: sample.spearman(encoder) for name, encoder in encoders.items()}
    first = next(iter(encoders))
    tokens = found[first].counts.tokens_kept or len(sample.texts)
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
    found, fastest = _in_turns(rerankers, lambda reranker, n: reranker.score(pairs[:n]))
    first = next(iter(rerankers))
    tokens = found[first].tokens_kept
    trials = []
    for name in rerankers:
        parity = score_parity.compare(found[first].scores, found[name].scores, sizes)
        limits = bounds.get(name, ScoreBounds(spearman=0.0, top_1=0.0))
        trials.append(
            Trial(
                name=name,
                tokens_per_s=round(tokens / fastest[name], 1),
                parity=parity,
                bounds=limits,
                problems=tuple(limits.broken_by(parity)),
            )
        )
    return trials


def run_language_models(
    models: Mapping[str, LanguageModel], bounds: Mapping[str, TokenBounds], sample: Sample
) -> list[Trial]:
    """A trial of each language model on some tokens of every text; else as ``run``. All have the same tokenizer."""
    first = next(iter(models))
    variants = token_parity.variants(models[first], sample.texts)
    if not variants:
        raise ConfigError(f"The texts of the sample {sample.name!r} have no token that {first} can be asked for.")
    found, fastest = _in_turns(models, lambda model, n: model.score(variants[:n]))
    trials = []
    for name in models:
        parity = token_parity.compare(found[first], found[name])
        limits = bounds.get(name, TokenBounds())
        trials.append(
            Trial(
                name=name,
                tokens_per_s=round(found[first].work.n_tokens / fastest[name], 1),
                parity=parity,
                bounds=limits,
                problems=tuple(limits.broken_by(parity)),
            )
        )
    return trials


def _in_turns(
    ways: Mapping[str, Way], once: Callable[[Way, int | None], Result]
) -> tuple[dict[str, Result], dict[str, float]]:
    """(what each gave, the fewest seconds that it took); ``once`` runs one, on the first so many of all or on all."""
    found: dict[str, Result] = {}
    fastest = dict.fromkeys(ways, float("inf"))
    for way in ways.values():
        once(way, WARM_UP)
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            found[name] = once(way, None)
            fastest[name] = min(fastest[name], time.perf_counter() - began)
    return found, fastest
