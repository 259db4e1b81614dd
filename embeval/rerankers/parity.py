"""How near the scores of one way to run a cross-encoder are to those of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embeval.core.ir import FloatRows
from embeval.encoders.parity import below


@dataclass(frozen=True, kw_only=True)
class ScoreParity:
    """Differences between two sets of scores of the same pairs."""

    n_pairs: int
    """Pairs compared."""
    max_abs: float
    """Largest difference of a pair's two scores."""
    spearman: float
    """Rank correlation of the scores of all pairs."""
    top_1: float
    """Share of queries whose best document stays the same."""


@dataclass(frozen=True, kw_only=True)
class ScoreBounds:
    """What is near enough."""

    spearman: float
    """The rank correlation may not be lower."""
    top_1: float
    """No fewer queries may keep their best document."""

    def broken_by(self, parity: ScoreParity) -> list[str]:
        """What of it a comparison breaks, in words."""
        return below(self, parity)


BOUNDS = {
    "float32": ScoreBounds(spearman=0.9999, top_1=0.99),
    "float16": ScoreBounds(spearman=0.999, top_1=0.95),
    "int8": ScoreBounds(spearman=0.97, top_1=0.80),
}
"""For each number format, against float32. What a ranking loses, only a score on real data says."""


def compare(reference: FloatRows, other: FloatRows, group_sizes: Sequence[int]) -> ScoreParity:
    """Two float32 [n] side by side, made of queries with ``group_sizes`` documents each, one after another.

    Raises ``ValueError`` where shapes differ or the sizes don't add up.
    """
    from scipy import stats

    if reference.shape != other.shape or sum(group_sizes) != len(reference):
        raise ValueError(f"{reference.shape} and {other.shape} scores of {sum(group_sizes)} pairs can't be compared")
    if np.ptp(reference) == 0 or np.ptp(other) == 0:  # no order, so none to keep, unless both have none
        spearman = 1.0 if np.ptp(reference) == np.ptp(other) else 0.0
    else:
        spearman = float(stats.spearmanr(reference, other).statistic)
    same, start = [], 0
    for size in group_sizes:
        group = slice(start, start + size)
        same.append(int(reference[group].argmax()) == int(other[group].argmax()))
        start += size
    return ScoreParity(
        n_pairs=len(reference),
        max_abs=float(np.abs(reference - other).max()),
        spearman=spearman,
        top_1=float(np.mean(same)),
    )
