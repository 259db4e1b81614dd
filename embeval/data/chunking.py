"""Passages of a text, as spans of characters: ``text[start:end]`` is the passage.

Sizes are in words, or in tokens of a model's tokenizer. A passage neither begins nor ends with white space, and
every character that isn't white space is in one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

Span = tuple[int, int]
"""First character, and the one after the last."""
Units = Callable[[str], Sequence[Span]]
"""Text -> the spans of its words or tokens, rising; what lies between them is white space."""
Chunker = Literal["none", "tokens", "heading", "sentence"]
CHUNKERS: tuple[Chunker, ...] = ("none", "tokens", "heading", "sentence")

_WORD = re.compile(r"\S+")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+|[。！？]+[」』”’）]*\s*|\n\s*\n\s*")
_UNDERLINING = re.compile(r"\A {0,3}(=+|-+)[ \t]*$", re.MULTILINE)
_NO_END = re.compile(r"(?:\b[A-Z]|\b(?:Dr|Mr|Mrs|Ms|Prof|St|vs|etc|e\.g|i\.e|z\.B|d\.h|Nr|Fig|cf|ca|bzw))\.$")
"""What a full stop behind doesn't end: initials and abbreviations."""


def words(text: str) -> list[Span]:
    """The spans of what stands between white space."""
    return [match.span() for match in _WORD.finditer(text)]


def chunks(
    text: str,
    chunker: Chunker,
    *,
    size: int,
    overlap: int = 0,
    headings: Sequence[int] = (),
    units: Units = words,
) -> list[Span]:
    """The passages of a text, in their order.

    ``none``: the whole text. ``tokens``: ``size`` units each, the last ``overlap`` of them again in the next one.
    ``sentence``: whole sentences, as many as fit, and again those that fit into ``overlap``; a sentence longer than
    ``size`` is cut like ``tokens``. ``heading``: what stands between headings, together with its heading; where that
    is longer than ``size``, its sentences.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap must be from 0 to size - 1, not {overlap} of {size}")
    if chunker == "none":
        return _trimmed(text, [(0, len(text))])
    found = list(units(text))
    if chunker == "tokens":
        return _trimmed(text, _windows(found, size, overlap, 0, len(text)))
    parts = sections(text, headings) if chunker == "heading" else [(0, len(text))]
    spans: list[Span] = []
    for start, end in parts:
        if chunker == "heading" and len(_within(found, start, end)) <= size:
            spans.append((start, end))
        else:
            spans += _packed(text, start, end, found, size, overlap)
    return _trimmed(text, spans)


def sections(text: str, headings: Sequence[int]) -> list[Span]:
    """What stands between headings; a heading with nothing below it goes with the next one."""
    cuts = [0]
    previous = None
    for heading in headings:
        is_bare = previous is not None and not _body(text, previous, heading)
        if not is_bare and text[cuts[-1] : heading].strip():
            cuts.append(heading)
        previous = heading
    return list(zip(cuts, [*cuts[1:], len(text)], strict=True))


def _body(text: str, start: int, end: int) -> str:
    """What stands below the heading at ``start``, its underlining left out."""
    _, _, below = text[start:end].partition("\n")
    return _UNDERLINING.sub("", below, count=1).strip()


def sentences(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """The spans of sentences, white space behind them included.

    A simple rule, the same for all languages: one ends at a full stop, question or exclamation mark before white space,
    at their full-width forms, and at an empty line; not behind an initial or a usual abbreviation, nor before a small
    letter.
    """
    end = len(text) if end is None else end
    found, begin = [], start
    for match in _SENTENCE_END.finditer(text, start, end):
        mark = match[0].rstrip()
        follows = text[match.end() : match.end() + 1]
        if mark == "." and (_NO_END.search(text[begin : match.start() + 1]) or follows.islower()):
            continue
        if match.end() > begin:
            found.append((begin, match.end()))
            begin = match.end()
    if begin < end:
        found.append((begin, end))
    return found


def _packed(text: str, start: int, end: int, units: Sequence[Span], size: int, overlap: int) -> Iterator[Span]:
    """Sentences between two places, as many at a time as fit into ``size`` units."""
    held: list[tuple[int, int, int]] = []
    is_new = False
    for first, last in sentences(text, start, end):
        inside = _within(units, first, last)
        if len(inside) > size:
            if held and is_new:
                yield held[0][0], held[-1][1]
            held, is_new = [], False
            yield from _windows(inside, size, overlap, first, last)
            continue
        if held and sum(n for _, _, n in held) + len(inside) > size:
            if is_new:
                yield held[0][0], held[-1][1]
            held = _again(held, min(overlap, size - len(inside)))
        held.append((first, last, len(inside)))
        is_new = True
    if held and is_new:
        yield held[0][0], held[-1][1]


def _again(held: list[tuple[int, int, int]], most: int) -> list[tuple[int, int, int]]:
    """The last sentences that have ``most`` units together, at most."""
    kept: list[tuple[int, int, int]] = []
    for sentence in reversed(held):
        if sum(n for _, _, n in kept) + sentence[2] > most:
            break
        kept.insert(0, sentence)
    return kept


def _windows(units: Sequence[Span], size: int, overlap: int, start: int, end: int) -> Iterator[Span]:
    """Passages of ``size`` units from one place to another. What no unit covers goes with the one before it."""
    if not units:
        yield start, end
    for first in range(0, len(units), size - overlap):
        beyond = first + size
        yield (
            units[first][0] if first else start,
            max(units[beyond - 1][1], units[beyond][0]) if beyond < len(units) else end,
        )
        if beyond >= len(units):
            break


def _within(units: Sequence[Span], start: int, end: int) -> Sequence[Span]:
    """The units between two places; of one that goes across an end, the part that is inside."""
    first = max(bisect_left(units, (start, 0)) - 1, 0)
    cut = [(max(begin, start), min(stop, end)) for begin, stop in units[first : bisect_left(units, (end, 0))]]
    return [(begin, stop) for begin, stop in cut if begin < stop]


def _trimmed(text: str, spans: Iterable[Span]) -> list[Span]:
    """The spans without white space at their ends, and without those that hold nothing else."""
    found = []
    for start, end in spans:
        part = text[start:end]
        if shown := part.strip():
            begin = start + len(part) - len(part.lstrip())
            found.append((begin, begin + len(shown)))
    return found
