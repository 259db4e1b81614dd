"""Why a query fails, as far as texts and judgments tell: one small function per class of failure, in one table.

Positives are the relevant documents of a query. One is *missed* where a document of a lower grade, or one that nobody
judged, stands above it, or where it is not in the ranking. A competitor is a document that stands above a missed
positive without being as relevant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

from embeval.data.language import language_of
from embeval.data.lexical import content_words, overlap, words

LOOKED_AT = 20
"""Hits at the top of a ranking that are looked at as competitors; more where the metric's cut-off is deeper."""
GAP = 0.2
"""A document with a smaller share of the query's content words is beyond what shared words could find."""
SAME = 0.7
"""Jaccard index of word shingles (Broder et al., Syntactic Clustering of the Web, 1997) from which texts are near
duplicates."""
SHINGLE = 3
"""Words of a shingle."""


class Positive(NamedTuple):
    """A relevant document of a query."""

    doc: str
    """Its id."""
    grade: int
    """Its grade, above 0."""
    rank: int | None
    """Its rank from 1; None where it is not in the ranking."""
    reachable: bool
    """Whether a ranking can hold it: it is in the corpus and not excluded for this query."""


class Hit(NamedTuple):
    """A document in a ranking."""

    rank: int
    """From 1."""
    doc: str
    """Its id."""
    score: float
    """Higher is better."""
    grade: int | None
    """As judged; None where nobody did."""


class Limits(Protocol):
    """What a model keeps of a text."""

    def kept(self, text: str) -> str:
        """The beginning of a document that the model reads; all of it where nothing is cut."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A query with its positives and hits."""

    text: str
    """The query's text."""
    k: int
    """The cut-off of the metric."""
    positives: tuple[Positive, ...]
    """All of them."""
    hits: tuple[Hit, ...]
    """The first ``max(k, LOOKED_AT)``."""
    texts: Mapping[str, str]
    """Text of each document of the corpus."""
    limits: Limits | None = None
    """None: not known."""
    bm25_ranks: Mapping[str, int] | None = None
    """Rank of a document by BM25, for the first k; None: BM25 was not asked."""
    cache: Cache = field(default_factory=lambda: Cache())
    """Shared by the cases of a corpus."""

    @cached_property
    def missed(self) -> tuple[Positive, ...]:
        """The positives that can be found and are not where they belong."""
        return tuple(each for each in self.positives if each.reachable and (each.rank is None or self.above(each)))

    def above(self, positive: Positive) -> list[Hit]:
        """Competitors of a positive among the hits, best first."""
        last = positive.rank if positive.rank is not None else len(self.hits) + 1
        return [hit for hit in self.hits[: last - 1] if (hit.grade or 0) < positive.grade]


class Cache:
    """What was found out of documents, which come up for one query after another."""

    def __init__(self) -> None:
        self._languages: dict[str, str] = {}
        self._shingles: dict[str, frozenset[tuple[str, ...]]] = {}

    def language(self, text: str) -> str:
        """ISO 639-1 code, empty where not clear."""
        if text not in self._languages:
            self._languages[text] = language_of(text)
        return self._languages[text]

    def shingles(self, text: str) -> frozenset[tuple[str, ...]]:
        """Every run of ``SHINGLE`` words; all words as one of a shorter text."""
        if text not in self._shingles:
            self._shingles[text] = shingles(text)
        return self._shingles[text]


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Every run of ``SHINGLE`` words of a text; of a shorter one, all its words as one; none of a text without."""
    found = words(text)
    if not found:
        return frozenset()
    return frozenset(tuple(found[start : start + SHINGLE]) for start in range(max(len(found) - SHINGLE + 1, 1)))


def near_duplicates(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> bool:
    """Whether shared shingles over all shingles are at least ``SAME``; never without any."""
    fewer, more = sorted((len(left), len(right)))
    if not fewer or fewer < SAME * more:  # the share can't exceed fewer / more, and large sets are slow to meet
        return False
    shared = len(left & right)
    return shared >= SAME * (fewer + more - shared)


def _nothing_relevant(case: Case) -> bool:
    return not case.positives


def _unreachable(case: Case) -> bool:
    return any(not each.reachable for each in case.positives)


def _lost_in_first_stage(case: Case) -> bool:
    return any(each.rank is None for each in case.missed)


def _lexical_gap(case: Case) -> bool:
    missed = case.missed
    return bool(missed) and all(overlap(case.text, case.texts[each.doc]) < GAP for each in missed)


def _truncated_positive(case: Case) -> bool | None:
    if case.limits is None:
        return None
    return any(_mostly_behind(case.text, text, case.limits.kept(text)) for text in _missed_texts(case))


def _mostly_behind(query: str, text: str, kept: str) -> bool:
    wanted = content_words(query)
    there = wanted & frozenset(words(text))
    return len(kept) < len(text) and bool(there) and 2 * len(there - frozenset(words(kept))) >= len(there)


def _near_duplicate_competitor(case: Case) -> bool:
    return any(
        near_duplicates(case.cache.shingles(case.texts[positive.doc]), case.cache.shingles(case.texts[hit.doc]))
        for positive in case.missed
        for hit in case.above(positive)
    )


def _wrong_language(case: Case) -> bool:
    wanted = language_of(case.text)
    if not wanted:
        return False
    for positive in case.missed:
        if case.cache.language(case.texts[positive.doc]) == wanted:
            others = [case.cache.language(case.texts[hit.doc]) for hit in case.above(positive)[: case.k]]
            if 2 * sum(other not in ("", wanted) for other in others) > len(others):
                return True
    return False


def _unjudged_hit(case: Case) -> bool:
    ranks = [each.rank for each in case.positives if each.rank is not None]
    best = max((overlap(case.text, case.texts[each.doc]) for each in case.positives if each.reachable), default=0.0)
    return any(
        hit.grade is None and (share := overlap(case.text, case.texts[hit.doc])) > 0.0 and share >= best
        for hit in case.hits
        if not ranks or hit.rank < min(ranks)
    )


def _bm25_finds_it(case: Case) -> bool | None:
    if case.bm25_ranks is None:
        return None
    return any(each.doc in case.bm25_ranks for each in case.missed if each.rank is None or each.rank > case.k)


def _wrong_order(case: Case) -> bool:
    fitting = min(len(case.positives), case.k)
    return (
        bool(case.missed) and sum(each.rank is not None and each.rank <= case.k for each in case.positives) >= fitting
    )


def _missed_texts(case: Case) -> Iterator[str]:
    return (case.texts[each.doc] for each in case.missed)


@dataclass(frozen=True)
class FailureClass:
    """A kind of failure."""

    name: str
    """As the command line takes it."""
    meaning: str
    """When a failed query is one, as a sentence."""
    applies: Callable[[Case], bool | None]
    """Whether a case is one; None where that was not looked at."""
    needs: str = ""
    """What to give so that it is looked at."""


CLASSES: tuple[FailureClass, ...] = (
    FailureClass("nothing_relevant", "No document is judged relevant: no ranking can score.", _nothing_relevant),
    FailureClass(
        "unreachable",
        "A positive is not in the corpus, or is excluded for the query: no ranking can hold it.",
        _unreachable,
    ),
    FailureClass(
        "lost_in_first_stage",
        "A positive is not in the ranking at all: no reranker can bring it back.",
        _lost_in_first_stage,
    ),
    FailureClass(
        "lexical_gap",
        f"Every missed positive has less than {GAP:.0%} of the query's content words: only meaning could find it.",
        _lexical_gap,
    ),
    FailureClass(
        "truncated_positive",
        "At least half of the words that a missed positive shares with the query lie behind the model's limit.",
        _truncated_positive,
        needs="--limits MODEL",
    ),
    FailureClass(
        "near_duplicate_competitor",
        f"A document above a missed positive has nearly its text (Jaccard of {SHINGLE}-word shingles from {SAME}).",
        _near_duplicate_competitor,
    ),
    FailureClass(
        "wrong_language",
        "Most documents above a missed positive are in another language than the query, which is the positive's.",
        _wrong_language,
    ),
    FailureClass(
        "unjudged_hit",
        "A document that nobody judged stands above every positive and shares as many of the query's words as the best "
        "of them: perhaps a judgment is missing.",
        _unjudged_hit,
    ),
    FailureClass(
        "wrong_order",
        "As many positives as fit are within the cut-off, only not in front: a reranker may help.",
        _wrong_order,
    ),
    FailureClass(
        "bm25_finds_it",
        "BM25 has a positive within the cut-off that this ranking has beyond it: a hybrid may help.",
        _bm25_finds_it,
        needs="--bm25",
    ),
)
"""The classes, in the order in which they are told. A query can be in several."""
OTHER = FailureClass("other", "None of the others.", lambda _: None)
"""What is left."""


def classify(case: Case) -> tuple[str, ...]:
    """Names of the classes of a failed query; ``other`` alone where there is none."""
    return tuple(each.name for each in CLASSES if each.applies(case)) or (OTHER.name,)


def names() -> tuple[str, ...]:
    """Every class."""
    return tuple(each.name for each in (*CLASSES, OTHER))
