"""Contamination: which texts of an evaluation stand in a training corpus, as they are, in pieces or nearly.

The evaluation is held in memory, the corpus is read through once. Word n-grams: Brown et al., Language Models are
Few-Shot Learners, NeurIPS 2020, appendix C (n = 13). Near duplicates: MinHash (Broder, 1997) finds candidates, and
only the exact Jaccard index of a candidate counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from embeval.core.packages import require
from embeval.core.progress import Progress, Silent
from embeval.data import training
from embeval.data.near_duplicates import grams, jaccard, normalized, plain_words, shingles
from embeval.data.training import TrainingText
from embeval.errors import DataError, UsageError
from embeval.workflows.lint import reading
from embeval.workflows.lint.findings import LintOptions, Severity
from embeval.workflows.lint.gold import GoldSet

PERMUTATIONS = 128
SEED = 1
MISSED = 1e-4
"""Largest probability that MinHash misses a pair at the threshold."""
FEWEST_WORDS = 8
"""A text with fewer words is held against whole texts only: that it stands within a longer one proves nothing."""
EXCERPT = 80
"""Characters of an excerpt."""
ROLES = ("queries", "positives", "documents")

Kind = Literal["exact", "near", "contained"]


@dataclass(frozen=True, kw_only=True)
class OverlapOptions:
    """What is compared, and what counts."""

    texts: tuple[str, ...] = ("queries", "positives")
    """Of ``ROLES``."""
    split: str = "test"
    """The split whose relevant documents are the positives."""
    ngram: int = 13
    """Words of an n-gram."""
    threshold: float = 0.8
    """Share of its n-grams, or Jaccard index, from which a text counts as contaminated."""
    columns: tuple[str, ...] = ()
    """Columns of the corpus; empty: every text in it."""


class Evaluated(NamedTuple):
    """A text of the evaluation."""

    role: str
    id: str
    text: str
    file: str
    line: int


class Hit(NamedTuple):
    """A contaminated text and the first place where it was found."""

    text: Evaluated
    kind: Kind
    value: float
    """exact: 1; near: Jaccard index of the three-word shingles; contained: share of the n-grams."""
    file: str
    """Of the training corpus."""
    line: int
    excerpt: str
    """What stands there; for ``contained`` the first n-gram found."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "role": self.text.role,
            "id": self.text.id,
            "kind": self.kind,
            "value": self.value,
            "file": self.text.file,
            "line": self.text.line,
            "excerpt": excerpt(self.text.text),
            "training_file": self.file,
            "training_line": self.line,
            "training_excerpt": self.excerpt,
        }


class Share(NamedTuple):
    """How many texts of a role are concerned."""

    n: int
    contaminated: int
    touched: int
    """Texts of which some n-gram was found, contaminated or not."""
    short: int
    """Texts with too few words for n-grams."""

    @property
    def share(self) -> float:
        """Contaminated texts over all; 0 for none."""
        return self.contaminated / self.n if self.n else 0.0


@dataclass(frozen=True)
class Overlap:
    """What was found."""

    shares: Mapping[str, Share]
    """Role -> its share."""
    hits: tuple[Hit, ...]
    """One for each contaminated text: exact before near before contained; by role, in the order of the files."""
    n_files: int
    n_texts: int
    """Of the training corpus."""

    @property
    def worst(self) -> float:
        """The greatest share of a role."""
        return max((share.share for share in self.shares.values()), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "training": {"files": self.n_files, "texts": self.n_texts},
            "shares": {role: {**share._asdict(), "share": share.share} for role, share in self.shares.items()},
            "hits": [hit.to_json() for hit in self.hits],
        }


def overlap(
    folder: Path, corpora: Sequence[Path], options: OverlapOptions, progress: Progress | None = None
) -> Overlap:
    """Holds an evaluation against training corpora. Raises ``DataError`` for what can't be read."""
    if options.ngram < FEWEST_WORDS:
        raise UsageError(f"An n-gram needs at least {FEWEST_WORDS} words, not {options.ngram}; short ones are common.")
    if not 0.5 <= options.threshold <= 1:
        raise UsageError(f"The threshold must be from 0.5 to 1, not {options.threshold:g}.")
    watch, files = progress or Silent(), training.corpus_files(corpora)
    texts = list(evaluated(folder, options))
    search = _Search([each.text for each in texts], options)
    n_texts = 0
    watch.start("training corpus", len(files), "files")
    for path in files:
        search.end_of_file()
        for found in training.texts_of(path, options.columns):
            n_texts += 1
            search.look_at(found)
        watch.advance(1)
    watch.finish()
    if not n_texts:
        raise DataError(f"{', '.join(map(str, files[:3]))}: there is no text to compare with.")
    return _summed(texts, search, options, len(files), n_texts)


def evaluated(folder: Path, options: OverlapOptions) -> Iterator[Evaluated]:
    """The texts to look for. Raises ``DataError`` where files of the set are broken."""
    gold, findings = reading.read(folder, LintOptions(split=options.split))
    if broken := [each for each in findings if each.severity == Severity.ERROR]:
        first = broken[0]
        line = "" if first.line is None else f", line {first.line}"
        raise DataError(f"{folder / first.file}{line}: {first.message}\n'embeval data lint' lists all problems.")
    for role in dict.fromkeys(options.texts):
        yield from _of_role(gold, role)


def _of_role(gold: GoldSet, role: str) -> Iterator[Evaluated]:
    if role == "queries":
        for query in gold.by_query.values():
            yield Evaluated(role, query.id, query.text or "", gold.queries_file, query.line)
        return
    relevant = {row.document for _, row in gold.positives}
    for doc in gold.by_doc.values():
        if role == "documents" or doc.id in relevant:
            yield Evaluated(role, doc.id, doc.text or "", gold.corpus_file, doc.line)


def excerpt(text: str) -> str:
    """The beginning of a text, in one line."""
    plain = " ".join(text[: 4 * EXCERPT].split())
    return plain if len(plain) <= EXCERPT else plain[: EXCERPT - 1] + "…"


class Place(NamedTuple):
    """Where something was found first."""

    value: float
    file: str
    line: int
    excerpt: str


@dataclass
class _Grams:
    """n-grams that are still looked for; each is taken out once it is found."""

    n: int
    wanted: dict[str, list[int]] = field(default_factory=dict)
    totals: dict[int, int] = field(default_factory=dict)
    """Text -> its distinct n-grams."""
    found: dict[int, int] = field(default_factory=dict)
    first: dict[int, Place] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()

    def add(self, row: int, words: Sequence[str]) -> None:
        """Looks for a text; one with fewer than n words is an n-gram itself."""
        length = min(self.n, len(words))
        if length < FEWEST_WORDS:
            return
        distinct = dict.fromkeys(grams(words, length))
        self.totals[row] = len(distinct)
        self.lengths = tuple(sorted({*self.lengths, length}))
        for gram in distinct:
            self.wanted.setdefault(gram, []).append(row)

    def look_at(self, words: Sequence[str], before: int, source: TrainingText) -> None:
        """The words of a text, after ``before`` words of what it goes on from."""
        for length in self.lengths:
            for gram in grams(words[max(0, before - length + 1) :], length):
                rows = self.wanted.pop(gram, None)
                for row in rows or ():
                    self.found[row] = self.found.get(row, 0) + 1
                    self.first.setdefault(row, Place(0.0, str(source.file), source.line, excerpt(gram)))

    def share(self, row: int) -> float:
        return self.found.get(row, 0) / self.totals[row] if row in self.totals else 0.0


class _Near:
    """Texts whose shingles are nearly those of a training text."""

    def __init__(self, sets: Sequence[frozenset[str]], threshold: float) -> None:
        datasketch = require("datasketch", extra="docs", purpose="The search for near duplicates")
        self.sets, self.threshold = sets, threshold
        self.best: dict[int, Place] = {}
        self._known = frozenset().union(*sets)
        self._largest = max(map(len, sets), default=0) / threshold
        self._make: Callable[..., Any] = datasketch.MinHash
        self._index = datasketch.MinHashLSH(num_perm=PERMUTATIONS, params=bands(threshold))
        for row, each in enumerate(sets):
            if each:
                self._index.insert(row, self._sketch(each))

    def look_at(self, source: TrainingText) -> None:
        theirs = shingles(source.text)
        # The Jaccard index with any of the sets is at most the share of the shingles that one of them has.
        if not theirs or len(theirs) > self._largest or len(theirs & self._known) < self.threshold * len(theirs):
            return
        for row in self._index.query(self._sketch(theirs)):
            alike = jaccard(self.sets[row], theirs)
            if alike >= self.threshold and (row not in self.best or alike > self.best[row].value):
                self.best[row] = Place(alike, str(source.file), source.line, excerpt(source.text))

    def _sketch(self, elements: Iterable[str]) -> Any:
        sketch = self._make(num_perm=PERMUTATIONS, seed=SEED)
        sketch.update_batch([element.encode("utf-8", "replace") for element in sorted(elements)])
        return sketch


def bands(threshold: float) -> tuple[int, int]:
    """(bands, rows of each): the widest that miss a pair at the threshold with a probability of ``MISSED`` at most."""
    for rows in range(PERMUTATIONS // 2, 1, -1):  # datasketch needs two bands
        if (1 - threshold**rows) ** (PERMUTATIONS // rows) <= MISSED:
            return PERMUTATIONS // rows, rows
    return PERMUTATIONS, 1


class _Search:
    """All that is looked for at once."""

    def __init__(self, texts: Sequence[str], options: OverlapOptions) -> None:
        self.exact: dict[int, Place] = {}
        self.grams = _Grams(options.ngram)
        self.near = _Near([shingles(text) for text in texts], options.threshold)
        self._rows: dict[str, list[int]] = {}
        self._tail: list[str] = []
        for row, text in enumerate(texts):
            if words := plain_words(text):
                self._rows.setdefault(normalized(text), []).append(row)
                self.grams.add(row, words)

    def end_of_file(self) -> None:
        self._tail = []

    def look_at(self, source: TrainingText) -> None:
        words = plain_words(source.text)
        for row in self._rows.get(" ".join(words), ()):
            place = Place(1.0, str(source.file), source.line, excerpt(source.text))
            self.exact.setdefault(row, place)
        self.near.look_at(source)
        tail = self._tail if source.goes_on else []
        joined = tail + words
        self.grams.look_at(joined, len(tail), source)
        self._tail = joined[-(self.grams.n - 1) :]


def _summed(
    texts: Sequence[Evaluated], search: _Search, options: OverlapOptions, n_files: int, n_texts: int
) -> Overlap:
    hits: list[Hit] = []
    for row, text in enumerate(texts):
        share = search.grams.share(row)
        if (place := search.exact.get(row)) is not None:
            hits.append(Hit(text, "exact", *place))
        elif (place := search.near.best.get(row)) is not None:
            hits.append(Hit(text, "near", *place))
        elif share >= options.threshold:
            hits.append(Hit(text, "contained", share, *search.grams.first[row][1:]))
    shares = {}
    for role in dict.fromkeys(options.texts):
        rows = [row for row, text in enumerate(texts) if text.role == role]
        shares[role] = Share(
            n=len(rows),
            contaminated=sum(hit.text.role == role for hit in hits),
            touched=sum(search.grams.share(row) > 0 for row in rows),
            short=sum(row not in search.grams.totals for row in rows),
        )
    kinds: list[Kind] = ["exact", "near", "contained"]
    return Overlap(shares, tuple(sorted(hits, key=lambda hit: kinds.index(hit.kind))), n_files, n_texts)
