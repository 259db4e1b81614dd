"""Which part of a long text a model sees when a token of it is scored."""

from __future__ import annotations


def starts(n: int, *, room: int | None, stride: int) -> list[int]:
    """Where windows of ``room`` tokens begin in a text of ``n``: every ``stride`` tokens, the last one at its end."""
    if room is None or n <= room:
        return [0]
    return [*range(0, n - room, stride), n - room]


def window_of(place: int, n: int, *, room: int | None, stride: int) -> tuple[int, int]:
    """(first token, behind the last) of the window in which a token is scored: the one with most on both its sides.

    Among windows that hold it, that with the larger of the smaller sides; the earlier one where two are equal.
    """
    if room is None or n <= room:
        return 0, n

    def shorter_side(start: int) -> int:
        return min(place - start, start + room - 1 - place)

    holding = [start for start in starts(n, room=room, stride=stride) if start <= place < start + room]
    best = max(holding, key=lambda start: (shorter_side(start), -start))
    return best, best + room
