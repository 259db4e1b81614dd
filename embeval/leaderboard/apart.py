"""Which models of a board the data tells apart: tests of all pairs, intervals of ranks, letters.

The difference of two models on the board's mean is a weighted sum over tasks, whose items are independent of each
other; its variance is the sum of theirs. Columns of one task may hold the same items, by another metric, say, and
nobody knows how they go together: their standard errors are added up, which is never too little. The test is Student's
with Welch's degrees of freedom, and no p-value is smaller than a test by signs of the items that differ could show.
Holm corrects for all pairs of the board.

A model's rank lies between 1 + the number of models shown to be better and J - the number shown to be worse, of J
models. Models share a letter where no test tells them apart; that is not transitive, so a model may have several.

Sources: Welch, Biometrika 1947; Holm, Scandinavian Journal of Statistics 1979; Mohamad, Goeman & van Zwet, Statistics
in Medicine 2019 (rank intervals); Piepho, Journal of Computational and Graphical Statistics 2004, and Gramm, Guo,
Hüffner, Niedermeier, Piepho & Schmid, Computational Statistics & Data Analysis 2007 (letters).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
    tasks: Sequence[Hashable],
    level: float,
) -> Tests:
    """The tests of all pairs of K models.

    ``gaps`` float64 [K, K]: mean of the row's model less that of the column's, higher being better. For each column
    ``variances`` and ``different`` [K, K] and ``freedom`` as ``stats.many.Spread`` has them, ``shares`` its weight in
    the mean, and ``tasks`` what it is of: columns of one task may hold the same items.
    """
    k = len(gaps)
    own = [share**2 * each for share, each in zip(shares, variances, strict=True)]
    together = [[place for place, task in enumerate(tasks) if task == one] for one in dict.fromkeys(tasks)]
    squares = np.stack([_added([own[place] for place in alike]) for alike in together])
    fewest = np.array([min(freedom[place] for place in alike) for alike in together], dtype=float)
    units = np.sum([np.max([different[place] for place in alike], axis=0) for alike in together], axis=0)
    total = squares.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        welch = total**2 / (squares**2 / fewest[:, None, None]).sum(axis=0)
        statistic = np.abs(gaps) / np.sqrt(total)
    raw = np.full((k, k), np.nan)
    for i in range(k):
        for j in range(i + 1, k):
            if not np.isnan(total[i, j]):
                raw[i, j] = _p(float(statistic[i, j]), float(welch[i, j]), int(units[i, j]))
    upper = np.triu_indices(k, 1)
    adjusted = np.full((k, k), np.nan)
    holm = corrections.holm([None if np.isnan(each) else float(each) for each in raw[upper]])
    adjusted[upper] = [np.nan if each is None else each for each in holm]
    adjusted = np.where(np.isnan(adjusted), adjusted.T, adjusted)
    return Tests(adjusted, (adjusted <= 1.0 - level) & (gaps > 0.0))


def _added(squares: Sequence[Square]) -> Square:
    """The square of the sum of standard errors, of which the squares are given."""
    return squares[0] if len(squares) == 1 else np.asarray(np.sum(np.sqrt(squares), axis=0) ** 2)


def _p(statistic: float, freedom: float, units: int) -> float:
    """Two-sided; 1 for models that are the same on every item, or that differ on some without any effect."""
    if units == 0 or np.isnan(statistic):
        return 1.0
    return max(two_sided(statistic, freedom), 2.0 ** (1 - units))


def letters(order: Sequence[int], apart: npt.NDArray[np.bool_]) -> list[str]:
    """Letters of K models: two share one exactly where ``apart`` [K, K] is false.

    ``order`` lists the models best first, and ``a`` goes to the group of the best. A letter stands for a group that no
    other model fits into. Not every such group has one, since of 25 pairs of models there may be 2^25; these are as
    many as it takes to say all. Source: Gramm et al. 2007, with a heuristic that grows groups by what is not said yet.
    """
    place = {model: rank for rank, model in enumerate(order)}
    told = np.zeros_like(apart)
    groups: list[list[int]] = []
    pairs = [(i, j) for i in order for j in order if place[i] < place[j]]
    for i, j in [*pairs, *((i, i) for i in order)]:
        if not apart[i, j] and not told[i, j]:
            groups.append(_grown([i] if i == j else [i, j], order, apart, told))
            told[np.ix_(groups[-1], groups[-1])] = True
    groups.sort(key=lambda group: sorted(place[model] for model in group))
    names = dict.fromkeys(order, "")
    for number, group in enumerate(groups):
        for model in group:
            names[model] += _letter(number)
    return [names[model] for model in range(len(apart))]


def _grown(
    group: list[int], order: Sequence[int], apart: npt.NDArray[np.bool_], told: npt.NDArray[np.bool_]
) -> list[int]:
    """The group with all that fit in, first those that share no letter yet with most of it, the best of them first."""
    fitting = [model for model in order if model not in group and not apart[model, group].any()]
    while fitting:
        news = (~told[np.ix_(fitting, group)]).sum(axis=1)
        chosen = fitting[int(np.argmax(news))]
        group = [*group, chosen]
        fitting = [model for model in fitting if model != chosen and not apart[model, chosen]]
    return group


def _letter(number: int) -> str:
    """``a`` to ``z``, then ``a1`` to ``z1``, and so on."""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")
