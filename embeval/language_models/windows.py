"""Which part of a long text a model sees when a token of it is scored."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Starts = npt.NDArray[np.int64]


def usual_stride(room: int | None) -> int:
    """Half a window: every token then has a quarter of one on both sides, but at the ends of a text."""
    return max(1, (room or 2) // 2)


def starts(n: int, *, room: int | None, stride: int) -> Starts:
    """Where windows of ``room`` tokens begin in a text of ``n``: every ``stride`` tokens, the last one at its end."""
    if room is None or n <= room:
        return np.zeros(1, dtype=np.int64)
    return np.append(np.arange(0, n - room, stride, dtype=np.int64), n - room)


def starts_of(places: npt.ArrayLike, n: int, *, room: int | None, stride: int) -> Starts:
    """int64 [m]: where the window begins in which the token at each place is scored: the one with most on both sides.

    Of the windows that hold a token, that is the one whose middle is nearest; the earlier one of two. With a
    ``stride`` of at most ``room`` every token is in one.
    """
    at = np.asarray(places, dtype=np.int64)
    there = starts(n, room=room, stride=stride)
    if room is None or len(there) == 1:
        return np.zeros(len(at), dtype=np.int64)
    twice_ideal = 2 * at - (room - 1)  # twice, so that everything is whole
    later = np.clip(np.searchsorted(2 * there, twice_ideal), 1, len(there) - 1)
    earlier = later - 1
    nearer = np.abs(2 * there[later] - twice_ideal) < np.abs(2 * there[earlier] - twice_ideal)
    found: Starts = np.where(nearer, there[later], there[earlier])
    return found
