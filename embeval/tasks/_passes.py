"""What scoring a model's tokens is going to cost, told before it begins."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from embeval.core.embeddings import Work
from embeval.core.figures import duration
from embeval.language_models.model import LanguageModel

WORTH = 20
"""Work of fewer batches is done before it is worth asking how long it takes."""
MOST = 1_024
"""Passes of the sample that is timed."""


@dataclass(frozen=True)
class Passes:
    """Work that lies ahead."""

    n: int
    """Passes through the model, each masked text once."""
    n_tokens: int
    """Tokens in them, special ones included."""

    def n_to_time(self, budget: int) -> int:
        """How many passes to time: about a batch; 0 where all of them are soon done."""
        if self.n_tokens < WORTH * budget:
            return 0
        return max(2, min(MOST, budget * self.n // self.n_tokens))


@dataclass(frozen=True)
class Timed:
    """What a sample of passes took."""

    seconds: float
    """Of those that were timed."""
    n_tokens: int
    """Tokens that went through the model meanwhile; 0 where everything was in the cache."""
    missing: float
    """Share of the sample that was not in the cache."""
    work: Work = field(default_factory=Work)
    """What went through the model altogether."""


def timed(variants: Sequence[str], system: LanguageModel) -> Timed:
    """The time of scoring a sample, the first quarter of it left out: that is when libraries set themselves up.

    What it computes is in the cache afterwards. Which variants are taken must not hang on what is there already, so
    that a run that goes on where another one was killed meets the same batches.
    """
    first = max(1, len(variants) // 4)
    warm = system.score(variants[:first]).work
    loaded, began = system.late_load_s, time.perf_counter()
    work = system.score(variants[first:]).work
    seconds = time.perf_counter() - began - (system.late_load_s - loaded)
    return Timed(seconds, work.n_tokens, (warm.n_texts + work.n_texts) / len(set(variants)), warm + work)


def counted(n: int, singular: str, several: str | None = None) -> str:
    """``1 token``, ``12,345 tokens``."""
    return f"{n:,} {singular if n == 1 else several or singular + 's'}"


def told(passes: Passes, what: str, found: Timed | None) -> str:
    """Such as ``12,345 passes for 11,000 tokens, about 3.1 minutes``."""
    sentence = f"{counted(passes.n, 'pass', 'passes')} for {what}"
    if found is None:
        return sentence
    if not found.missing:
        return f"{sentence}; all that were tried are in the cache"
    if not found.n_tokens:
        return f"{sentence}; about {100 * (1 - found.missing):.0f} % of them are in the cache"
    seconds = found.seconds / found.n_tokens * passes.n_tokens * found.missing
    cached = f" ({100 * (1 - found.missing):.0f} % of them are in the cache)" if found.missing < 1 else ""
    return f"{sentence}, about {duration(seconds)}{cached}"
