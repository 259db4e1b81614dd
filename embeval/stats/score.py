"""The score interval of a difference of two paired shares: of right answers of two systems on the same items.

A bound is the difference that a score test at that level would just not reject, with the other parameter (how many
items go one way or the other) at its most likely value for that difference. It is closer to its level than a bootstrap
where few items changed.

Source: Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample
design", Statistics in Medicine 1998.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from embeval.stats.intervals import Side

HALVINGS = 60
"""Steps of bisection: 2 / 2^60 is below the precision of a float near 1."""


def score_bound(wins: int, losses: int, n_items: int, alpha: float, side: Side) -> float:
    """The bound on (wins - losses) / n_items that leaves ``alpha`` outside, within [-1, 1]."""
    if side == "upper":
        return -score_bound(losses, wins, n_items, alpha, "lower")
    z = NormalDist().inv_cdf(1.0 - alpha)
    low, high = -1.0, (wins - losses) / n_items
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if _statistic(wins, losses, n_items, middle) > z:
            low = middle
        else:
            high = middle
    return high


def _statistic(wins: int, losses: int, n: int, difference: float) -> float:
    """How many standard errors what was seen lies above a true difference."""
    b = -wins - losses + (2 * n - wins + losses) * difference
    c = -losses * difference * (1.0 - difference)
    share_of_losses = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = n * (2.0 * share_of_losses + difference * (1.0 - difference))
    distance = wins - losses - n * difference
    return distance / math.sqrt(variance) if variance > 0.0 else math.copysign(math.inf, distance)
