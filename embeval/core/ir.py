"""Rankings and judgments: ``Run``, ``Qrels``, and the one place where ties are broken.

Every ranking metric of embeval reads a ``JudgedRuns``, and every ``JudgedRuns`` comes from ``judge``. So
nDCG, MAP, MRR and the rest always see the same order of the same documents, whichever way a run came in.

Scores are float32, as trec_eval keeps them: two doubles that differ in the last bit tie here as they do there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, count, repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from embeval.errors import DataError

FloatRows = npt.NDArray[np.float32]
IntRows = npt.NDArray[np.int32]

MAX_GRADE = 1_000
"""Largest relevance: far above any scale in use, and exponential gains still fit into a float."""
NOTHING = -1
"""Document index of a rank that holds no document."""
TABLE = 500_000
"""Places of the table that judgments are looked up in, so that it stays in the processor's cache."""
UNJUDGED = np.iinfo(np.int16).min
"""Mark in that table of a document without a judgment."""


class TieRule(StrEnum):
    """What decides between documents of equal score."""

    DOC_ID_DESC = "doc_id_desc"
    """The greater doc id first, compared as UTF-8 bytes. Source: trec_eval 9.0.8, as pytrec_eval."""
    DOC_ID_ASC = "doc_id_asc"
    """The smaller doc id first. Source: sentence-transformers 6.2 InformationRetrievalEvaluator."""
    AVERAGE = "average"
    """No order: every metric is its mean over all orders of the tied documents. Source: McSherry & Najork,
    Computing Information Retrieval Performance Measures Efficiently in the Presence of Tied Scores, ECIR 2008."""


class SelfMatch(StrEnum):
    """What becomes of a hit whose doc id equals the query id."""

    KEEP = "keep"
    DROP = "drop"


class MissingQueries(StrEnum):
    """What a judged query counts for which the run has no ranking."""

    ZERO = "zero"
    """0 in every metric. Source: ir-measures 0.4."""
    SKIP = "skip"
    """Left out of the mean. Source: pytrec_eval 0.5, mteb 2.26."""


class NoRelevant(StrEnum):
    """What a query counts whose judgments are all 0 or less."""

    ZERO = "zero"
    """0 in every metric. Source: trec_eval 9.0.8."""
    SKIP = "skip"
    """Left out of the mean."""


@dataclass(frozen=True)
class Qrels:
    """Relevance judgments: query id -> doc id -> grade. Grades above 0 are relevant."""

    judgments: Mapping[str, Mapping[str, int]]

    def __post_init__(self) -> None:
        for query, grades in self.judgments.items():
            values = grades.values()
            if set(map(type, values)) == {int} and max(map(abs, values)) <= MAX_GRADE:
                continue
            for doc, grade in grades.items():
                whole = not isinstance(grade, bool) and isinstance(grade, int | np.integer)
                if not whole or abs(grade) > MAX_GRADE:
                    raise DataError(
                        f"qrels: the relevance of query {query!r}, document {doc!r} must be a whole number "
                        f"up to {MAX_GRADE}, not {grade!r}."
                    )

    @property
    def judged(self) -> tuple[str, ...]:
        """Ids of the queries that have at least one judgment, in their order."""
        return tuple(query for query, grades in self.judgments.items() if grades)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Ids of the queries listed without any judgment."""
        return tuple(query for query, grades in self.judgments.items() if not grades)


@dataclass(frozen=True)
class Run:
    """Ranked documents per query, best first. Made by ``ranked``, ``from_hits``, ``from_dict`` or ``from_rows``."""

    query_ids: tuple[str, ...]
    """Q ids, unique."""
    doc_ids: tuple[str, ...]
    """The documents that ``docs`` points into."""
    docs: IntRows
    """int32 [Q, K]: index into ``doc_ids``, ``NOTHING`` after the last hit."""
    scores: FloatRows
    """float32 [Q, K]: higher is better; -inf where there is no document."""
    ties: TieRule = TieRule.DOC_ID_DESC
    """The rule that ordered equal scores."""
    n_duplicates: int = 0
    """Hits left out because the same document stood higher for the same query."""

    @classmethod
    def ranked(
        cls,
        *,
        query_ids: Sequence[str],
        doc_ids: Sequence[str],
        docs: IntRows,
        scores: FloatRows,
        ties: TieRule = TieRule.DOC_ID_DESC,
        depth: int | None = None,
        n_duplicates: int = 0,
    ) -> Run:
        """A run from candidates in any order; sorts by the tie rule and keeps ``depth`` hits.

        ``docs`` int32 [Q, K] (``NOTHING`` = no candidate), ``scores`` float32 [Q, K]. Raises ``DataError`` where a
        candidate has a score that is not finite.
        """
        present = docs != NOTHING
        bad = present & ~np.isfinite(scores)
        if bad.any():
            row, place = (int(index[0]) for index in np.nonzero(bad))
            raise DataError(
                f"run: the score of query {query_ids[row]!r}, document {doc_ids[docs[row, place]]!r} is "
                f"{scores[row, place]} ({int(bad.sum())} such scores). A ranking needs finite scores."
            )
        # Adding 0 turns -0.0 into 0.0, so that equal rankings are equal to the bit.
        scores = np.where(present, scores, np.float32(-np.inf)).astype(np.float32, copy=False) + np.float32(0.0)
        # Exact search hands over rows that are sorted but for ties; only rows with a tie or out of order are sorted.
        settled = np.all((scores[:, :-1] > scores[:, 1:]) | ~present[:, 1:], axis=1) & np.all(
            present[:, :-1] | ~present[:, 1:], axis=1
        )
        rows = np.flatnonzero(~settled)
        if len(rows):
            docs, scores = docs.copy(), scores.copy()
            docs[rows], scores[rows] = _sorted(docs[rows], scores[rows], doc_ids, ties)
        if depth is not None:
            docs, scores = docs[:, :depth], scores[:, :depth]
        return cls(tuple(query_ids), tuple(doc_ids), docs, scores, ties, n_duplicates)

    @classmethod
    def from_hits(
        cls,
        *,
        query_ids: Sequence[str],
        doc_ids: Sequence[str],
        rows: npt.NDArray[np.integer],
        docs: IntRows,
        scores: npt.NDArray[np.floating],
        ties: TieRule = TieRule.DOC_ID_DESC,
    ) -> Run:
        """A run from n hits in any order.

        ``rows`` int [n] points into ``query_ids``, ``docs`` int32 [n] into ``doc_ids``; ``scores`` float [n] are
        rounded to float32 first. A document that comes twice for one query counts once, at its best score;
        ``n_duplicates`` tells how many were left out. Raises ``DataError`` for a score that is not finite.
        """
        with np.errstate(over="ignore"):  # a double beyond float32 becomes inf, which is refused
            scores = scores.astype(np.float32)
        if len(bad := np.flatnonzero(~np.isfinite(scores))):
            raise DataError(
                f"run: the score of query {query_ids[rows[bad[0]]]!r}, document {doc_ids[docs[bad[0]]]!r} is "
                f"{scores[bad[0]]} ({len(bad)} such scores). A ranking needs finite scores."
            )
        if (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            rows, docs, scores = rows[order], docs[order], scores[order]
        lengths = np.bincount(rows, minlength=len(query_ids))
        shape = (len(query_ids), int(lengths.max(initial=0)))
        if len(docs) == shape[0] * shape[1]:
            table, by_rank = docs.reshape(shape), scores.reshape(shape)
        else:
            table, by_rank = np.full(shape, NOTHING, np.int32), np.full(shape, -np.inf, np.float32)
            places = _places(lengths)
            table[rows, places], by_rank[rows, places] = docs, scores
        run = cls.ranked(query_ids=query_ids, doc_ids=doc_ids, docs=table, scores=by_rank, ties=ties)
        return run._without_duplicates()

    @classmethod
    def from_dict(cls, scores: Mapping[str, Mapping[str, float]], ties: TieRule = TieRule.DOC_ID_DESC) -> Run:
        """A run from ``{query id: {doc id: score}}``, the form that pytrec_eval takes."""
        lengths = [len(hits) for hits in scores.values()]
        codes, doc_ids = _codes(chain.from_iterable(scores.values()), sum(lengths))
        return cls.from_hits(
            query_ids=tuple(scores),
            doc_ids=doc_ids,
            rows=np.repeat(np.arange(len(lengths)), lengths),
            docs=codes,
            scores=np.fromiter(chain.from_iterable(hits.values() for hits in scores.values()), np.float64, len(codes)),
            ties=ties,
        )

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[str, str, float]],
        ties: TieRule = TieRule.DOC_ID_DESC,
        query_ids: Sequence[str] = (),
    ) -> Run:
        """A run from (query id, doc id, score) rows in any order.

        A document that comes twice for one query counts once, at its best score; ``n_duplicates`` tells how many
        were left out. ``query_ids`` lists queries that may have no row at all.
        """
        queries, docs, scores = zip(*rows, strict=True) if (rows := list(rows)) else ((), (), ())
        of_query, all_queries = _codes(chain(query_ids, queries), len(query_ids) + len(queries))
        codes, doc_ids = _codes(docs, len(docs))
        return cls.from_hits(
            query_ids=all_queries,
            doc_ids=doc_ids,
            rows=of_query[len(query_ids) :],
            docs=codes,
            scores=np.fromiter(scores, np.float64, len(scores)),
            ties=ties,
        )

    def without_self_matches(self) -> Run:
        """The run without hits whose doc id equals the query id; what stood below moves up."""
        return self.without({query: (query,) for query in self.query_ids})

    def without(self, excluded: Mapping[str, Collection[str]]) -> Run:
        """The run without the documents that are excluded per query; what stood below moves up."""
        position = {doc: index for index, doc in enumerate(self.doc_ids)}
        drop = np.zeros(self.docs.shape, dtype=np.bool_)
        for row, query in enumerate(self.query_ids):
            if places := [position[doc] for doc in excluded.get(query, ()) if doc in position]:
                drop[row] = np.isin(self.docs[row], places)
        return self._dropped(drop) if drop.any() else self

    def _without_duplicates(self) -> Run:
        """The run with every document once per query, at its best rank; counts the others."""
        in_order = np.sort(self.docs, axis=1)
        rows = np.flatnonzero(((in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] != NOTHING)).any(axis=1))
        if not len(rows):
            return self
        docs = self.docs[rows]
        order = np.argsort(docs, axis=1, kind="stable")  # of equal documents the better rank comes first
        grouped = np.take_along_axis(docs, order, axis=1)
        again = np.zeros(docs.shape, dtype=np.bool_)
        again[:, 1:] = (grouped[:, 1:] == grouped[:, :-1]) & (grouped[:, 1:] != NOTHING)
        drop = np.zeros(self.docs.shape, dtype=np.bool_)
        drop[rows[:, None], order] = again
        run = self._dropped(drop)
        width = int((run.docs != NOTHING).sum(axis=1).max())
        return replace(run, docs=run.docs[:, :width], scores=run.scores[:, :width], n_duplicates=int(drop.sum()))

    def _dropped(self, drop: npt.NDArray[np.bool_]) -> Run:
        """The run without some hits; what stood below moves up."""
        order = np.argsort(drop, axis=1, kind="stable")  # False before True: dropped hits go to the end of their row
        docs = np.where(drop, NOTHING, self.docs)
        scores = np.where(drop, np.float32(-np.inf), self.scores)
        return replace(
            self,
            docs=np.take_along_axis(docs, order, axis=1),
            scores=np.take_along_axis(scores, order, axis=1),
        )

    def hits(self, query_id: str) -> list[tuple[str, float]]:
        """(doc id, score) of one query, best first; empty for a query that the run doesn't know."""
        if query_id not in self.query_ids:
            return []
        row = self.query_ids.index(query_id)
        return [
            (self.doc_ids[doc], float(score))
            for doc, score in zip(self.docs[row], self.scores[row], strict=True)
            if doc != NOTHING
        ]


def tie_keys(doc_ids: Sequence[str], ties: TieRule) -> npt.NDArray[np.int64]:
    """int64 [n]: the document with the greater key goes first among equal scores.

    Python compares strings by code point, which orders them as strcmp orders their UTF-8 bytes.
    """
    order = sorted(range(len(doc_ids)), key=doc_ids.__getitem__, reverse=ties == TieRule.DOC_ID_ASC)
    keys = np.empty(len(doc_ids), dtype=np.int64)
    keys[order] = np.arange(len(doc_ids))
    return keys


def _sorted(docs: IntRows, scores: FloatRows, doc_ids: Sequence[str], ties: TieRule) -> tuple[IntRows, FloatRows]:
    """``docs`` and ``scores`` [Q, K] with each row in order. Only documents that tie have their ids compared."""
    order = np.argsort(-scores, axis=1, kind="stable")
    docs, scores = np.take_along_axis(docs, order, axis=1), np.take_along_axis(scores, order, axis=1)
    equal = (scores[:, 1:] == scores[:, :-1]) & (docs[:, 1:] != NOTHING)
    rows = np.flatnonzero(equal.any(axis=1))
    if len(rows):
        tied = np.zeros((len(rows), docs.shape[1]), dtype=np.bool_)
        tied[:, 1:] |= equal[rows]
        tied[:, :-1] |= equal[rows]
        members = np.unique(docs[rows][tied])
        keys = np.full(len(doc_ids) + 1, -1, dtype=np.int64)  # the last one is for NOTHING
        keys[members] = tie_keys([doc_ids[member] for member in members.tolist()], ties)
        order = rank(scores[rows], keys[docs[rows]])
        docs[rows] = np.take_along_axis(docs[rows], order, axis=1)
    return docs, scores


def _codes(names: Iterable[str], n: int) -> tuple[IntRows, tuple[str, ...]]:
    """int32 [n] and the distinct names that it points into, in the order in which they first come."""
    known: defaultdict[str, int] = defaultdict(count().__next__)
    return np.fromiter(map(known.__getitem__, names), np.int32, n), tuple(known)


def _places(lengths: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """int64 [n]: 0, 1, … within each of several groups that stand one after another."""
    return np.asarray(np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths))


def rank(scores: FloatRows, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """int [Q, K]: the order of each row of ``scores`` [Q, K], greatest first, equal ones by greatest key first."""
    return np.asarray(np.lexsort((-keys, -scores), axis=-1))


class QueryCounts(NamedTuple):
    """How many queries went where; every report of a ranking metric prints them."""

    scored: int
    """Queries in the mean."""
    missing: int
    """Judged queries for which the run has no hit."""
    unjudged: int
    """Queries of the run or the qrels without a judgment; left out."""
    no_relevant: int
    """Queries whose judgments are all 0 or less."""


@dataclass(frozen=True)
class JudgedRuns:
    """A run seen through its judgments: what ranking metrics compute on. Made by ``judge``."""

    query_ids: tuple[str, ...]
    """The Q queries that count, in the order of the qrels."""
    grades: npt.NDArray[np.int64]
    """int64 [Q, K]: grade of the document at each rank; 0 if not judged or no document."""
    judged: npt.NDArray[np.bool_]
    """bool [Q, K]: whether that document was judged."""
    retrieved: npt.NDArray[np.bool_]
    """bool [Q, K]: whether there is a document at that rank."""
    scores: FloatRows
    """float32 [Q, K], non-increasing along a row."""
    ideal: npt.NDArray[np.int64]
    """int64 [Q, J]: grades of all judged documents, greatest first, 0 after the last."""
    ties: TieRule
    """How equal scores were ordered."""
    counts: QueryCounts = field(default=QueryCounts(0, 0, 0, 0))
    """How many queries went where."""

    @property
    def n_relevant(self) -> npt.NDArray[np.int64]:
        """int64 [Q]: judged documents with a grade above 0, retrieved or not."""
        return np.asarray((self.ideal > 0).sum(axis=1))

    def tied_at(self, k: int) -> npt.NDArray[np.bool_]:
        """bool [Q]: whether the documents at ranks k and k + 1 have equal scores, so that a rule cut between them."""
        if self.scores.shape[1] <= k:
            return np.zeros(len(self.query_ids), dtype=bool)
        return np.asarray((self.scores[:, k - 1] == self.scores[:, k]) & self.retrieved[:, k])


def judge(
    run: Run,
    qrels: Qrels,
    *,
    missing: MissingQueries = MissingQueries.ZERO,
    no_relevant: NoRelevant = NoRelevant.ZERO,
    self_match: SelfMatch = SelfMatch.KEEP,
    exclude: frozenset[str] = frozenset(),
) -> JudgedRuns:
    """The run's ranks with their grades, for every query that counts.

    A query without judgments is left out and counted. ``exclude`` holds queries that are left out without being
    counted as unjudged (marked unanswerable).
    """
    if self_match == SelfMatch.DROP:
        run = run.without_self_matches()
    has_hits = (run.docs != NOTHING).any(axis=1)
    row_of = {query: row for row, query in enumerate(run.query_ids) if has_hits[row]}
    candidates = [query for query in qrels.judged if query not in exclude]
    empty = {query for query in candidates if max(qrels.judgments[query].values()) <= 0}
    kept = [
        query
        for query in candidates
        if (query in row_of or missing == MissingQueries.ZERO)
        and (query not in empty or no_relevant == NoRelevant.ZERO)
    ]
    unjudged = (set(run.query_ids) | set(qrels.judgments)) - set(qrels.judged) - exclude

    sources = np.array([row_of.get(query, -1) for query in kept], dtype=np.int64)
    docs, scores = _taken(run, sources)
    judgments = [qrels.judgments[query] for query in kept]
    lengths = np.array([len(of_query) for of_query in judgments], dtype=np.int64)
    rows, places = np.repeat(np.arange(len(kept)), lengths), _places(lengths)
    all_grades = np.fromiter(chain.from_iterable(each.values() for each in judgments), np.int64, len(rows))
    ideal = np.zeros((len(kept), int(lengths.max(initial=0))), dtype=np.int64)
    ideal[rows, places] = np.maximum(all_grades, 0)
    ideal = -np.sort(-ideal, axis=1)

    doc_index = dict(zip(run.doc_ids, range(len(run.doc_ids)), strict=True))
    targets = np.fromiter(map(doc_index.get, chain.from_iterable(judgments), repeat(NOTHING)), np.int64, len(rows))
    known = targets != NOTHING
    grades, judged = _looked_up(docs, rows[known], targets[known], all_grades[known], len(run.doc_ids))
    return JudgedRuns(
        query_ids=tuple(kept),
        grades=grades,
        judged=judged,
        retrieved=docs != NOTHING,
        scores=scores,
        ideal=ideal,
        ties=run.ties,
        counts=QueryCounts(
            scored=len(kept),
            missing=sum(query not in row_of for query in candidates),
            unjudged=len(unjudged),
            no_relevant=len(empty),
        ),
    )


def _taken(run: Run, sources: npt.NDArray[np.int64]) -> tuple[IntRows, FloatRows]:
    """Documents and scores of some rows of a run; -1 gives a row of nothing."""
    if np.array_equal(sources, np.arange(len(run.query_ids))):
        return run.docs, run.scores
    shape = (len(sources), run.docs.shape[1])
    docs, scores = np.full(shape, NOTHING, np.int32), np.full(shape, -np.inf, np.float32)
    there = np.flatnonzero(sources >= 0)
    docs[there], scores[there] = run.docs[sources[there]], run.scores[sources[there]]
    return docs, scores


def _looked_up(
    docs: IntRows,
    rows: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    grades: npt.NDArray[np.int64],
    n_docs: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """int64 [Q, K] grades and bool [Q, K] whether judged, of ``docs`` int32 [Q, K].

    The judgments are (row, target, grade), ``rows`` non-decreasing. A table of as many queries as fit holds a place
    for each of their documents, so that a look-up is one step.
    """
    found, judged = np.zeros(docs.shape, dtype=np.int64), np.zeros(docs.shape, dtype=np.bool_)
    stride = n_docs + 1  # the first place of a query is for NOTHING
    n_rows = max(1, TABLE // stride)
    table = np.full(n_rows * stride, UNJUDGED, dtype=np.int16)
    offsets = (np.arange(n_rows) * stride + 1)[:, None]
    for first in range(0, len(docs), n_rows):
        start, stop = np.searchsorted(rows, (first, first + n_rows))
        places = (rows[start:stop] - first) * stride + targets[start:stop] + 1
        table[places] = grades[start:stop]
        part = docs[first : first + n_rows]
        values = table[part + offsets[: len(part)]]
        row, column = np.nonzero(values != UNJUDGED)
        found[first + row, column] = values[row, column]
        judged[first + row, column] = True
        table[places] = UNJUDGED
    return found, judged
