"""The part of a text that has to do with a query, and the words in it that the query has too."""

from __future__ import annotations

import re

from embeval.data.lexical import content_words

_WORD = re.compile(r"\w+")
CUT = "…"
"""Stands where something is left out."""
LEAD = 0.25
"""Share of an excerpt that comes before the first of the query's words, where there is so much."""


def shared_words(text: str, query: str) -> list[tuple[int, int]]:
    """(start, end) of every word of the text that is a content word of the query, in characters."""
    wanted = content_words(query)
    return [found.span() for found in _WORD.finditer(text) if found[0].casefold() in wanted]


def excerpt(text: str, query: str, width: int) -> str:
    """At most ``width`` characters of a text on one line: where most of the query's content words stand together.

    Without any of them, its beginning. White space becomes single spaces.
    """
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    room = max(width - 2 * len(CUT), 1)
    start = _best_start(line, shared_words(line, query), room)
    if start == 0:
        return line[: width - len(CUT)].rstrip() + CUT
    if start + room + len(CUT) >= len(line):
        tail = line[len(line) - (width - len(CUT)) :]
        return CUT + (tail if line[-len(tail) - 1] == " " else tail.partition(" ")[2] or tail).lstrip()
    return CUT + line[start : start + room].strip() + CUT


def _best_start(line: str, spans: list[tuple[int, int]], room: int) -> int:
    """Where an excerpt begins so that most distinct words of ``spans`` lie in it; the first such place."""
    best, most = 0, 0
    counts: dict[str, int] = {}
    first = 0
    for start, end in spans:
        word = line[start:end].casefold()
        counts[word] = counts.get(word, 0) + 1
        while spans[first][0] < end - room and spans[first] != (start, end):
            gone = line[slice(*spans[first])].casefold()
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
            first += 1
        if len(counts) > most:
            most, best = len(counts), _with_lead(line, spans[first][0], end, room)
    return best


def _with_lead(line: str, begin: int, end: int, room: int) -> int:
    """A start before ``begin`` at the beginning of a word, as far ahead as ``end`` leaves room."""
    start = begin - min(int(room * LEAD), max(room - (end - begin), 0), begin)
    if start == 0:
        return 0
    space = line.find(" ", start - 1, begin)
    return space + 1 if space >= 0 else begin
