"""Which texts go through the model together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
Lengths = npt.NDArray[np.int64]


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


def first_of_equals(keys: Sequence[bytes]) -> tuple[Rows, Rows]:
    """(row of the first of each group of equal keys [m], which of these m each row belongs to [n])."""
    place: dict[bytes, int] = {}
    inverse = np.fromiter((place.setdefault(key, len(place)) for key in keys), dtype=np.intp, count=len(keys))
    first = np.empty(len(place), dtype=np.intp)
    first[inverse[::-1]] = np.arange(len(keys) - 1, -1, -1)  # backwards: the smallest row of a group is written last
    return first, inverse
