"""Running text that language models are trained and tested on: which of it, and which never for training.

WikiText-2 raw (test) and the inaugural addresses 1789-1933. Every tenth article and three addresses are held
out, whole.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

EVERY = 10
# Name -> opening of a held-out address, and of the one after it: nothing else in the file says where one ends.
HELD_OUT_ADDRESSES = {
    "Adams 1825": ("In compliance with an usage", "Fellow citizens, about to undertake"),
    "Lincoln 1865": ("Fellow-Countrymen:", "Citizens of the United States:"),
    "Roosevelt 1905": ("My fellow citizens, no people on earth", "My fellow citizens: Anyone who has taken"),
}
FEWEST_WORDS, MOST_WORDS = 5, 60
SEED = 0


@dataclass(frozen=True)
class Document:
    """An article or an address: its name, and its lines without headings."""

    name: str
    lines: tuple[str, ...]


def articles(text: str) -> list[Document]:
    """The articles of a WikiText file, in its order, without headings."""
    found: list[tuple[str, list[str]]] = []
    for line in map(str.strip, text.splitlines()):
        if _is_title(line):
            found.append((line.strip("= "), []))
        elif line and not _is_heading(line) and found:
            found[-1][1].append(line)
    return [Document(name, tuple(lines)) for name, lines in found]


def _is_heading(line: str) -> bool:
    return line.startswith("= ") and line.endswith(" =")


def _is_title(line: str) -> bool:
    """A heading of the first level; a formula torn over lines looks like one, but for the small letter of its unit."""
    words = [word for word in line.split() if word[0].isalpha()]
    return _is_heading(line) and not line.startswith("= =") and bool(words) and words[0][0].isupper()


def held_out_articles(documents: Sequence[Document]) -> list[Document]:
    """Every tenth article."""
    return list(documents[EVERY - 1 :: EVERY])


def addresses(
    text: str, held_out: Mapping[str, tuple[str, str]] = HELD_OUT_ADDRESSES
) -> tuple[list[Document], list[Document]]:
    """(what lies between held-out addresses, the held-out ones).

    Raises:
        ValueError: If an opening isn't in the text, or is there twice.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    bounds = [(_only(lines, begin), _only(lines, end)) for begin, end in held_out.values()]
    starts = [0, *(end for _, end in bounds)]
    ends = [*(begin for begin, _ in bounds), len(lines)]
    between = [Document(f"addresses {n}", tuple(lines[a:b])) for n, (a, b) in enumerate(zip(starts, ends, strict=True))]
    return between, [Document(name, tuple(lines[a:b])) for name, (a, b) in zip(held_out, bounds, strict=True)]


def _only(lines: Sequence[str], opening: str) -> int:
    found = [place for place, line in enumerate(lines) if line.startswith(opening)]
    if len(found) != 1:
        raise ValueError(f"{len(found)} paragraphs begin with {opening!r}, not one: these are other addresses.")
    return found[0]


@dataclass(frozen=True)
class Split:
    """Documents to learn from, and those that nothing learns from."""

    learned: tuple[Document, ...]
    held_out: tuple[Document, ...]


def split(data: Path) -> Split:
    """The articles and addresses of the data folder, divided by the fixed rule."""
    wiki = wikitext(data)
    between, held_out = addresses(_read(data / "lm" / "inaugural" / "1789-1933.txt.gz"))
    kept = held_out_articles(wiki)
    return Split((*(each for each in wiki if each not in kept), *between), (*kept, *held_out))


def wikitext(data: Path) -> list[Document]:
    """The 60 articles of WikiText-2 raw (test)."""
    return articles(_read(data / "lm" / "wikitext2_raw" / "wiki.test.raw.gz"))


def _read(path: Path) -> str:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read()


def sentences_of(line: str) -> list[str]:
    """A line's sentences, cut after full stops that stand alone (WikiText) or before a capital (addresses)."""
    return [each for each in _cuts(line) if each]


def _cuts(line: str) -> Iterator[str]:
    words = line.split()
    begin = 0
    for place, word in enumerate(words[:-1], start=1):
        if word == "." or (word.endswith(".") and len(word) > 3 and words[place][0].isupper()):
            yield " ".join(words[begin:place])
            begin = place
    yield " ".join(words[begin:])


def sentences(data: Path, n: int) -> list[str]:
    """The first ``n`` of WikiText-2's sentences of 5 to 60 words, in an order drawn once: 200 are among 5,000.

    Raises:
        ValueError: If there are fewer.
    """
    found = [each for document in wikitext(data) for line in document.lines for each in sentences_of(line)]
    fitting = [each for each in dict.fromkeys(found) if FEWEST_WORDS <= len(each.split()) <= MOST_WORDS]
    if len(fitting) < n:
        raise ValueError(f"WikiText-2 has {len(fitting)} sentences of {FEWEST_WORDS} to {MOST_WORDS} words, not {n}.")
    return [fitting[row] for row in np.random.default_rng(SEED).permutation(len(fitting))[:n]]
