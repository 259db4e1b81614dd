"""Where a passage stands in documents, whatever the white space in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from embeval.data.chunking import words


class Text:
    """A document to be searched."""

    def __init__(self, text: str) -> None:
        spans = words(text)
        self._flat = " ".join(text[start:end] for start, end in spans)
        self._starts = [start for start, _ in spans]
        self._flat_starts: list[int] = []
        place = 0
        for start, end in spans:
            self._flat_starts.append(place)
            place += end - start + 1

    def find(self, quote: str) -> Iterator[tuple[int, int]]:
        """The spans of characters of each place where it stands, in their order; they may overlap."""
        wanted = " ".join(quote.split())
        place = self._flat.find(wanted) if wanted else -1
        while place >= 0:
            yield self._original(place), self._original(place + len(wanted) - 1) + 1
            place = self._flat.find(wanted, place + 1)

    def has_folded(self, quote: str) -> bool:
        """Whether it stands there but for upper and lower case."""
        return " ".join(quote.split()).casefold() in self._flat.casefold()

    def _original(self, place: int) -> int:
        """Where a character of the flat text stands; never called for a space, which no quote begins or ends with."""
        word = bisect_right(self._flat_starts, place) - 1
        return self._starts[word] + place - self._flat_starts[word]
