"""What language models say of held-out text: losses, pseudo-perplexities and hits of masked tokens.

All but the last two are sums over all items divided by sums, so that a text counts by its length. PLL is the
pseudo-log-likelihood, a sum of ln p of each token given all the others; MODE is ``within_word_l2r``, where what follows
in the same word is masked as well, or ``original``.

- ``pppl_MODE``: exp(-PLL / tokens), the pseudo-perplexity. It is not the perplexity of a causal model.
- ``word_pppl_MODE``: exp(-PLL / words). ``bits_per_character_MODE``: -PLL / ln 2 / characters.
- ``mlm_loss``: nats per masked token, ``mlm_loss_bits`` the same in bits; ``mlm_accuracy`` and ``mlm_top_5``: the share
  of masked tokens that are the model's first guess, or among its first five.
- ``mlm_loss_per_word`` and ``mlm_bits_per_character``: of masks that cover whole words, the same for all models.
- ``rtd_loss`` (nats per token), ``rtd_accuracy`` and ``rtd_recall`` (of replaced tokens): of telling replaced tokens.
- ``pll_accuracy`` and ``ll_accuracy``: the share of minimal pairs of which the right sentence is the likelier one, by
  PLL, or by the log-likelihood of a causal model; a tie counts half.

Values per token hang on how a tokenizer cuts text, and those of two tokenizers can't be compared. Values per word and
per character can. Undefined, never infinite, where nothing was counted (``no_tokens``, …) or a perplexity is larger
than a float can be (``overflow``).

Sources: Devlin et al., NAACL 2019 (masked tokens); Salazar, Liang, Nguyen & Kirchhoff, ACL 2020 (PLL and PPPL, equation
3: by tokens of the whole corpus); Kauf & Ivanova, ACL 2023 (within_word_l2r); Clark et al., ICLR 2020 (replaced
tokens); Warstadt et al., TACL 2020 (minimal pairs).
"""

from __future__ import annotations

import math

from embeval.core.protocols import PLL_MODES, Metric, PllMode
from embeval.metrics._family import MeanOf
from embeval.metrics._ratio import RatioOf

PAIRS = ("pll_accuracy", "ll_accuracy")
"""Shares of minimal pairs: of masked models, and of causal ones."""
CHANCE = 0.5
"""The share of pairs that a coin gets right."""
BITS = 1.0 / math.log(2.0)
"""In a nat."""


def _of_mode(mode: PllMode) -> tuple[RatioOf, ...]:
    pll = f"pll_{mode}"
    return (
        RatioOf(f"pppl_{mode}", pll, "tokens", factor=-1.0, exponential=True, per_token=True),
        RatioOf(f"word_pppl_{mode}", pll, "words", factor=-1.0, exponential=True),
        RatioOf(f"bits_per_character_{mode}", pll, "characters", factor=-BITS),
    )


RATIOS = (
    *(metric for mode in PLL_MODES for metric in _of_mode(mode)),
    RatioOf("mlm_loss", "nats", "masked_tokens", per_token=True),
    RatioOf("mlm_loss_bits", "nats", "masked_tokens", factor=BITS, per_token=True),
    RatioOf("mlm_accuracy", "hits_1", "masked_tokens", higher_is_better=True, per_token=True),
    RatioOf("mlm_top_5", "hits_5", "masked_tokens", higher_is_better=True, per_token=True),
    RatioOf("mlm_loss_per_word", "nats", "masked_words"),
    RatioOf("mlm_bits_per_character", "nats", "masked_characters", factor=BITS),
    RatioOf("rtd_loss", "rtd_nats", "rtd_tokens", per_token=True),
    RatioOf("rtd_accuracy", "rtd_correct", "rtd_tokens", higher_is_better=True, per_token=True),
    RatioOf("rtd_recall", "rtd_replaced_correct", "rtd_replaced", higher_is_better=True, per_token=True),
)


class _Family:
    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {metric.name: metric for metric in RATIOS}
        self._metrics |= {name: MeanOf(name, chance=CHANCE, ties_half=True) for name in PAIRS}

    def names(self) -> tuple[str, ...]:
        return tuple(self._metrics)

    def make(self, name: str) -> Metric | None:
        return self._metrics.get(name)


FAMILY = _Family()
