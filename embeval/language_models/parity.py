"""How near the probabilities that one way to run a language model gives are to those of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from embeval.language_models import pseudo
from embeval.language_models.model import KEPT, LanguageModel, Scores
from embeval.language_models.tokenization import Text
from embeval.language_models.variants import packed

PLACES_PER_TEXT = 2
"""Tokens of each text that are compared."""


@dataclass(frozen=True, kw_only=True)
class TokenParity:
    """Differences between two sets of scores of the same tokens, in nats."""

    n_tokens: int
    """Tokens compared."""
    max_abs: float
    """Largest difference of a token's two log-probabilities."""
    mean_abs: float
    """Their mean difference."""
    loss_change: float
    """Difference of the mean losses; positive is worse than the reference."""
    top_1: float
    """Share of tokens that are the first guess of both or of neither."""


@dataclass(frozen=True, kw_only=True)
class TokenBounds:
    """What is near enough; None: whatever it is."""

    mean_abs: float | None = None
    """The mean difference may not be larger."""
    loss_change: float | None = None
    """Nor may the mean loss change by more, up or down."""
    top_1: float | None = None
    """No fewer tokens may stay first guesses, or no first guesses."""

    def broken_by(self, parity: TokenParity) -> list[str]:
        """What of it a comparison breaks, in words."""
        told = []
        for name, bound in asdict(self).items():
            value = getattr(parity, name)
            if bound is None:
                continue
            in_size = " in size" if name == "loss_change" else ""
            if name == "top_1" and not value >= bound:  # so that NaN breaks it too
                told.append(f"{name} {value:.5f} is below {bound:g}")
            elif name != "top_1" and not abs(value) <= bound:
                told.append(f"{name} {value:.5f} is above {bound:g}{in_size}")
        return told


BOUNDS = {
    "float32": TokenBounds(mean_abs=1e-3, loss_change=1e-3, top_1=0.99),
    "float16": TokenBounds(mean_abs=0.02, loss_change=0.01, top_1=0.98),
    "int8": TokenBounds(mean_abs=0.3, loss_change=0.1, top_1=0.9),
}
"""For each number format, against float32. Two models that are compared should differ by more than this does."""


def compare(reference: Scores, other: Scores) -> TokenParity:
    """Two sets of scores of the same variants, each with one target. Raises ``ValueError`` where none is there."""
    if not len(reference.log_prob) or len(reference.log_prob) != len(other.log_prob):
        raise ValueError(f"{len(reference.log_prob)} and {len(other.log_prob)} scores can't be compared")
    difference = other.log_prob - reference.log_prob
    return TokenParity(
        n_tokens=len(difference),
        max_abs=float(np.abs(difference).max()),
        mean_abs=float(np.abs(difference).mean()),
        loss_change=float(np.mean(reference.log_prob - other.log_prob)),
        top_1=float(np.mean((reference.hits_1 > 0) == (other.hits_1 > 0))),
    )


def variants(model: LanguageModel, texts: Sequence[str]) -> list[str]:
    """Variants with one target each: of some tokens of every text, spread evenly over what the model takes at once.

    They are masked for a masked model, the next token for a causal one, and as they are for a discriminator.
    """
    found: list[str] = []
    for text in model.tokens(texts):
        places = [each for each in pseudo.scored_places(text).tolist() if model.room is None or each < model.room]
        if model.kind == "causal" and not len(model.frame.before):
            places = [each for each in places if each]  # nothing stands before the first
        step = max(1, -(-len(places) // PLACES_PER_TEXT))
        chosen = places[step // 2 :: step]
        if model.kind == "masked":
            found += pseudo.variants(text, model.frame, "original", chosen, room=model.room, stride=model.room or 1)
        else:
            found += [_as_it_is(text, each, model) for each in chosen]
    return found


def _as_it_is(text: Text, place: int, model: LanguageModel) -> str:
    target = KEPT if model.kind == "replaced" else int(text.ids[place])
    return packed(model.frame.around(text.ids[: model.room]), [len(model.frame.before) + place], [target])
