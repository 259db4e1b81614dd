"""Kendall's tau-b of several predictions with one gold, averaged, and on many resamples at once.

The numerator is a sum over pairs of items: +1 where gold and prediction put them in the same order, -1 where they
don't, 0 for ties. With counts w it is ``w' S w / 2``, where S holds those signs; S is added up over predictions with
the same ties, since these share the denominator. Up to ``PAIRWISE`` items S is kept, and a resample is exact. Of more
items, only the row sums of S are kept, and the numerator of a resample is the linear one, ``w' S 1 - 1' S 1 / 2``, less
what items drawn twice lose by not being pairs with themselves. What is left out shrinks faster than the interval: the
bounds move by a fiftieth of its width at 2,000 items, and by less of more items.

Source: Kendall, Rank Correlation Methods, 1945 (tau-b); Hoeffding, A class of statistics with asymptotically normal
distribution, 1948 (the linear part of a sum over pairs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column

PAIRWISE = 2000
"""Most items whose pairs are kept one by one: 16 MB of signs, and 3 s for 10,000 resamples."""

Ranks = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float64]


class Pairs:
    """Gold and several predictions of n items."""

    def __init__(self, gold: Column, predictions: Sequence[Column]) -> None:
        self._gold = _ranks(gold)
        ranked = [_ranks(each) for each in predictions]
        # Predictions by the groups of equal values in them, whatever the order of the groups.
        self._alike: dict[bytes, list[Ranks]] = {}
        for ranks in ranked:
            self._alike.setdefault(_first_of_equals(ranks).tobytes(), []).append(ranks)
        self._n_predictions = len(ranked)

    def value(self) -> float:
        """The mean of tau-b; NaN where something is constant."""
        return float(self._mean(np.ones((len(self._gold), 1), dtype=np.int64), self._linear)[0])

    def resampler(self) -> Callable[[Counts], Rows]:
        """Counts [n, R] to the mean of tau-b on each resample, float64 [R]; NaN where something is constant."""
        make = self._pairwise if len(self._gold) <= PAIRWISE else self._linear
        numerators = {key: make(ranks) for key, ranks in self._alike.items()}
        return lambda counts: self._mean(counts, lambda ranks: numerators[_first_of_equals(ranks[0]).tobytes()])

    def _mean(self, counts: Counts, numerator: Callable[[Sequence[Ranks]], Callable[[Counts], Rows]]) -> Rows:
        gold = _untied(self._gold, counts)
        total = np.zeros(counts.shape[1])
        for ranks in self._alike.values():
            below = np.sqrt(gold * _untied(ranks[0], counts))
            nothing = np.full(len(below), np.nan)
            total += np.divide(numerator(ranks)(counts), below, out=nothing, where=below > 0.0)
        return np.asarray(total / self._n_predictions)

    def _pairwise(self, predictions: Sequence[Ranks]) -> Callable[[Counts], Rows]:
        order = _signs(self._gold)
        signs = (order * sum(_signs(ranks) for ranks in predictions)).astype(np.float32)

        def numerator(counts: Counts) -> Rows:
            # Whole numbers far below 2^24, which float32 holds exactly.
            return np.asarray(np.einsum("ij,ij->j", signs @ counts.astype(np.float32), counts, dtype=np.float64) / 2.0)

        return numerator

    def _linear(self, predictions: Sequence[Ranks]) -> Callable[[Counts], Rows]:
        sums = np.sum([concordance(self._gold, ranks) for ranks in predictions], axis=0).astype(np.float64)
        middle, n = float(sums.sum()) / 2.0, len(self._gold)

        def numerator(counts: Counts) -> Rows:
            weights = counts.astype(np.float64)
            repeated = (weights * (weights - 1.0)).sum(axis=0) / (n * (n - 1.0))
            return np.asarray(sums @ weights - middle * (1.0 + repeated))

        return numerator


def _ranks(values: Column) -> Ranks:
    return np.unique(values, return_inverse=True)[1].astype(np.intp)


def _first_of_equals(ranks: Ranks) -> Ranks:
    """[n]: the first item with the same value."""
    return np.asarray(np.unique(ranks, return_index=True)[1][ranks])


def _signs(ranks: Ranks) -> npt.NDArray[np.int8]:
    return np.asarray(np.sign(ranks[:, None] - ranks), dtype=np.int8)


def _untied(ranks: Ranks, counts: Counts) -> Rows:
    """[R]: pairs of drawn items that are not tied; an item that was drawn twice is tied with itself."""
    order = np.argsort(ranks, kind="stable")
    starts = np.unique(ranks[order], return_index=True)[1]
    drawn = np.add.reduceat(counts[order], starts, axis=0).astype(np.float64)
    return np.asarray((counts.sum(axis=0).astype(np.float64) ** 2 - (drawn**2).sum(axis=0)) / 2.0)


def concordance(x: Ranks, y: Ranks) -> npt.NDArray[np.int64]:
    """int64 [n]: of each item, the others that x and y put on the same side of it less those on different sides.

    Pairs with different x differ first in one binary digit of x. Digit by digit, items that agree in all digits above
    it are sorted by y, and those with a 1 count the ones with a 0 below and above them in y, and the other way round.
    """
    sums = np.zeros(len(x), dtype=np.int64)
    for digit in range(int(x.max()).bit_length()):
        block = x >> (digit + 1)
        order = np.lexsort((y, block))
        one = (x[order] >> digit & 1).astype(np.int64)
        new_block = np.append(True, np.diff(block[order]) != 0)
        new_value = new_block | np.append(True, np.diff(y[order]) != 0)
        for mine, others, sign in ((one == 1, 1 - one, 1), (one == 0, one, -1)):
            below, above = _around(others, new_block, new_value)
            sums[order] += sign * mine * (below - above)
    return sums


def _around(
    marks: npt.NDArray[np.int64], new_block: npt.NDArray[np.bool_], new_value: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """([n], [n]): marks of each item's block at smaller and at larger values than its own, in sorted order."""
    before = np.append(0, np.cumsum(marks))  # marks of all items before each place

    def bounds(new: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        starts = np.flatnonzero(new)
        run = np.cumsum(new) - 1
        return before[starts][run], before[np.append(starts[1:], len(new))][run]

    (block_start, block_end), (value_start, value_end) = bounds(new_block), bounds(new_value)
    return value_start - block_start, block_end - value_end
