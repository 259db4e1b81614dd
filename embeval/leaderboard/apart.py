"""Which models of a board the data tells apart: tests of all pairs, intervals of ranks, letters.

The difference of two models on the board's mean is a weighted sum over tasks, whose items are independent of each
other; its variance is the sum of theirs. The test is Student's with Welch's degrees of freedom, and no p-value is
smaller than a test by signs of the items that differ could show. Holm corrects for all pairs of the board.

A model's rank lies between 1 + the number of models shown to be better and J - the number shown to be worse, of J
models. Models share a letter where no test tells them apart; that is not transitive, so a model may have several.

Sources: Welch, Biometrika 1947; Holm, Scandinavian Journal of Statistics 1979; Mohamad, Goeman & van Zwet, Statistics
in Medicine 2019 (rank intervals); Piepho, Journal of Computational and Graphical Statistics 2004 (letters).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.stats import corrections
from embeval.stats.student import two_sided

Square = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tests:
    """What the tests of all pairs of K models show."""

    p: Square
    """float64 [K, K]: adjusted by Holm; NaN where there is no test."""
    better: npt.NDArray[np.bool_]
    """bool [K, K]: whether the model of the row is shown to be better than that of the column."""

    @property
    def ranks(self) -> list[tuple[int, int]]:
        """The interval of each model's rank among the K."""
        return [
            (1 + int(above), len(self.p) - int(below))
            for above, below in zip(self.better.sum(axis=0), self.better.sum(axis=1), strict=True)
        ]


def tests(
    gaps: Square,
    variances: Sequence[Square],
    different: Sequence[npt.NDArray[np.int64]],
    freedom: Sequence[float],
    shares: Sequence[float],
    level: float,
) -> Tests:
    """The tests of all pairs of K models.

    ``gaps`` float64 [K, K]: mean of the row's model less that of the column's, higher being better. For each task
    ``variances`` and ``different`` [K, K] and ``freedom`` as ``stats.many.Spread`` has them, ``shares`` its weight in
    the mean.
    """
    k = len(gaps)
    squares = np.stack([share**2 * each for share, each in zip(shares, variances, strict=True)])
    total = squares.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        welch = total**2 / (squares**2 / np.asarray(freedom, dtype=float)[:, None, None]).sum(axis=0)
        statistic = np.abs(gaps) / np.sqrt(total)
    units = np.sum([each for share, each in zip(shares, different, strict=True) if share], axis=0)
    raw = np.full((k, k), np.nan)
    for i in range(k):
        for j in range(i + 1, k):
            raw[i, j] = _p(float(statistic[i, j]), float(welch[i, j]), int(units[i, j]), float(gaps[i, j]))
    upper = np.triu_indices(k, 1)
    adjusted = np.full((k, k), np.nan)
    holm = corrections.holm([None if np.isnan(each) else float(each) for each in raw[upper]])
    adjusted[upper] = [np.nan if each is None else each for each in holm]
    adjusted = np.where(np.isnan(adjusted), adjusted.T, adjusted)
    return Tests(adjusted, (adjusted <= 1.0 - level) & (gaps > 0.0))


def _p(statistic: float, freedom: float, units: int, gap: float) -> float:
    """Two-sided; 1 for models that are the same on every item; NaN where the spread isn't known."""
    if np.isnan(statistic) and not (units == 0 and gap == 0.0):
        return float("nan")
    if units == 0:
        return 1.0
    return max(two_sided(statistic, freedom), 2.0 ** (1 - units))


def letters(order: Sequence[int], apart: npt.NDArray[np.bool_]) -> list[str]:
    """Letters of K models: two share one exactly where ``apart`` [K, K] is false.

    ``order`` lists the models best first, and ``a`` goes to the group of the best. Source: Piepho 2004, insert and
    absorb.
    """
    groups: list[set[int]] = [set(order)]
    for i in order:
        for j in order:
            if i < j and apart[i, j]:
                groups = _without_pair(groups, i, j)
    place = {model: rank for rank, model in enumerate(order)}
    groups.sort(key=lambda group: sorted(place[model] for model in group))
    names = dict.fromkeys(order, "")
    for number, group in enumerate(groups):
        for model in group:
            names[model] += _letter(number)
    return [names[model] for model in range(len(apart))]


def _without_pair(groups: list[set[int]], i: int, j: int) -> list[set[int]]:
    """The groups once no group holds both, none of them inside another."""
    split = [kept for group in groups for kept in ((group - {i}, group - {j}) if {i, j} <= group else (group,))]
    found: list[set[int]] = []
    for group in sorted(split, key=len, reverse=True):
        if not any(group <= other for other in found):
            found.append(group)
    return found


def _letter(number: int) -> str:
    """a … z, then a1 … z1, …"""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")
