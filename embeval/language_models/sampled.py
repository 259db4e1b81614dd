"""Pseudo-log-likelihoods estimated from some of the places of each text, drawn without replacement.

With m of n places, n / m times the sum over those drawn is right on average, whatever the text. Its variance is
n² (1 - m / n) s² / m, with s² that of the places drawn. Texts are drawn from independently, so the variance of a corpus
is the sum of theirs.

Source: Cochran, Sampling Techniques, 3rd ed. 1977, sections 2.5 (one stratum) and 5.3 (stratified).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column
from embeval.stats.intervals import NORMAL
from embeval.stats.rng import seed_sequence

Numbers = npt.NDArray[np.int64]
FEWEST = 2
"""Places drawn of a text that has so many: one alone tells nothing of how much places differ."""


def n_drawn(n: int, share: float) -> int:
    """How many of ``n`` places are drawn."""
    return min(n, max(FEWEST, math.ceil(share * n)))


def drawn(places: Numbers, text: str, *, share: float, seed: int) -> Numbers:
    """Places of a text, in their order, that hang on the text and the seed and on nothing else."""
    dice = np.random.default_rng(seed_sequence(seed, "pseudo_likelihood", text.encode("utf-8", "replace").decode()))
    chosen = dice.choice(len(places), size=n_drawn(len(places), share), replace=False, shuffle=False)
    return places[np.sort(chosen)]


def totals(values: Column, owner: Numbers, n_places: Numbers) -> tuple[Column, Column]:
    """(estimated sum of each text [N], its variance [N]) from values [M] of places drawn of the text ``owner`` [M].

    ``n_places`` [N] are all the places of each text. A text of which none were drawn has NaN, and variance 0.
    """
    m = np.bincount(owner, minlength=len(n_places)).astype(np.float64)
    sums = np.bincount(owner, weights=values, minlength=len(n_places))
    with np.errstate(invalid="ignore", divide="ignore"):
        estimates = np.where(m == n_places, sums, n_places * (sums / m))
        deviations = (values - (sums / m)[owner]) ** 2
        spread = np.bincount(owner, weights=deviations, minlength=len(n_places)) / np.maximum(m - 1, 1)
        variances = np.where(m > 0, n_places**2 * (1 - m / n_places) * spread / m, 0.0)
    return np.where(m > 0, estimates, np.nan), variances


def interval(total: float, variance: float, n_tokens: int, level: float) -> tuple[float, float]:
    """Ends of the interval around exp(-total / tokens): those of the total, put through it."""
    half = NORMAL.inv_cdf((1.0 + level) / 2.0) * math.sqrt(variance)
    return math.exp(-(total + half) / n_tokens), math.exp(-(total - half) / n_tokens)
