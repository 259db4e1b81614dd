"""Numbers with their nouns, for messages."""

from __future__ import annotations


def plural(n: int, singular: str, several: str | None = None) -> str:
    """``1 query``, ``2 queries``; ``several`` where it isn't the singular with an s."""
    return f"{n} {singular if n == 1 else several or singular + 's'}"


def are(n: int) -> str:
    """The verb that goes with that many."""
    return "is" if n == 1 else "are"


def have(n: int) -> str:
    """The verb that goes with that many."""
    return "has" if n == 1 else "have"
