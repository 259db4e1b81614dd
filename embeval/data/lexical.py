"""Words of texts, and how much two texts share: what a query and its documents have in common without a model."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
STOP_WORDS = frozenset(
    "a about an and are as at be been but by can could did do does for from had has have he her his how i if in into "
    "is it its may me my no nor not of on or our she should so than that the their them then there these they this "
    "those to us was we were what when where which while who whom whose why will with would you your".split()
)
"""English words that say nothing of what a text is about."""


def words(text: str) -> list[str]:
    """The words of a text, case folded, in their order."""
    return _WORD.findall(text.casefold())


def content_words(text: str) -> frozenset[str]:
    """The distinct words of a text without stop words; all of them where nothing else would be left."""
    found = frozenset(words(text))
    return found - STOP_WORDS or found


def overlap(query: str, document: str) -> float:
    """Share of the query's content words that the document has, in [0, 1]; 0 for a query without words."""
    wanted = content_words(query)
    return len(wanted & frozenset(words(document))) / len(wanted) if wanted else 0.0
