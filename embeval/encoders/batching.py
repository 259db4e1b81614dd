"""Which texts go through the model together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
Lengths = npt.NDArray[np.int64]

SMALLEST, LARGEST = 1_024, 1_048_576
"""Budgets between which the best is looked for, doubling."""
WORTH = 1.03
"""How much faster twice the budget must be to be worth its memory."""


def plan(lengths: Lengths, budget: int) -> list[Rows]:
    """Batches of row numbers, longest texts first, such that rows x longest row <= ``budget`` tokens.

    ``lengths`` int64 [n] are tokens per text. A text longer than the budget gets a batch of its own. The plan
    depends on nothing else, so the same texts under the same budget always meet in the same batches. Longest
    first: a batch that doesn't fit into memory fails at the start, and the time left is over- rather than
    underestimated.
    """
    if budget < 1:
        raise ValueError(f"the token budget must be at least 1, not {budget}")
    order = np.argsort(-lengths, kind="stable")
    batches: list[Rows] = []
    start = 0
    while start < len(order):
        longest = max(int(lengths[order[start]]), 1)
        stop = start + max(1, budget // longest)
        batches.append(order[start:stop])
        start = stop
    return batches


def unique(texts: Sequence[str]) -> tuple[list[str], Rows]:
    """(distinct texts in order of first appearance, place of each text among them [n]).

    Compared as strings, not by hash value alone: two texts never share a vector by accident.
    """
    place: dict[str, int] = {}
    inverse = np.fromiter((place.setdefault(text, len(place)) for text in texts), dtype=np.intp, count=len(texts))
    return list(place), inverse


def grown(speed: Callable[[int], float], *, smallest: int = SMALLEST, largest: int = LARGEST) -> int:
    """The budget that twice as much is no longer faster than, or no longer fits.

    ``speed`` gives tokens per second under a budget, and raises ``MemoryError`` where a batch doesn't fit.
    """
    budget, fastest = smallest, speed(smallest)
    while budget * 2 <= largest:
        try:
            found = speed(budget * 2)
        except MemoryError:
            break
        if found < fastest * WORTH:
            break
        budget, fastest = budget * 2, found
    return budget
