"""Rankings and judgments: ``Run``, ``Qrels``, and the one place where ties are broken.

Every ranking metric of embeval reads a ``JudgedRuns``, and every ``JudgedRuns`` comes from ``judge``. So
nDCG, MAP, MRR and the rest always see the same order of the same documents, whichever way a run came in.

Scores are float32, as trec_eval keeps them: two doubles that differ in the last bit tie here as they do there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
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
    """Ranked documents per query, best first. Build one with ``ranked``, ``from_dict`` or ``from_rows``."""

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
            keys = np.append(tie_keys(doc_ids, ties), -1)  # the last one is for NOTHING
            order = rank(scores[rows], keys[docs[rows]])
            docs, scores = docs.copy(), scores.copy()
            docs[rows] = np.take_along_axis(docs[rows], order, axis=-1)
            scores[rows] = np.take_along_axis(scores[rows], order, axis=-1)
        if depth is not None:
            docs, scores = docs[:, :depth], scores[:, :depth]
        return cls(tuple(query_ids), tuple(doc_ids), docs, scores, ties, n_duplicates)

    @classmethod
    def from_dict(cls, scores: Mapping[str, Mapping[str, float]], ties: TieRule = TieRule.DOC_ID_DESC) -> Run:
        """A run from ``{query id: {doc id: score}}``, the form that pytrec_eval takes."""
        rows = ((query, doc, score) for query, hits in scores.items() for doc, score in hits.items())
        return cls.from_rows(rows, ties=ties, query_ids=tuple(scores))

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
        doc_index: dict[str, int] = {}
        hits: dict[str, dict[int, float]] = {query: {} for query in query_ids}
        n_duplicates = 0
        for query, doc, score in rows:
            if math.isnan(score):
                raise DataError(
                    f"run: the score of query {query!r}, document {doc!r} is nan. A ranking needs finite scores."
                )
            of_query = hits.setdefault(query, {})
            index = doc_index.setdefault(doc, len(doc_index))
            if index in of_query:
                n_duplicates += 1
                score = max(score, of_query[index])
            of_query[index] = score
        width = max((len(of_query) for of_query in hits.values()), default=0)
        docs = np.full((len(hits), width), NOTHING, dtype=np.int32)
        scores = np.full((len(hits), width), -np.inf, dtype=np.float32)
        for row, of_query in enumerate(hits.values()):
            docs[row, : len(of_query)] = list(of_query)
            with np.errstate(over="ignore"):  # a double beyond float32 becomes inf, which ``ranked`` refuses
                scores[row, : len(of_query)] = list(of_query.values())
        return cls.ranked(
            query_ids=tuple(hits),
            doc_ids=tuple(doc_index),
            docs=docs,
            scores=scores,
            ties=ties,
            n_duplicates=n_duplicates,
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
        if not drop.any():
            return self
        order = np.argsort(drop, axis=1, kind="stable")  # False before True: dropped hits go to the end of their row
        docs = np.where(drop, NOTHING, self.docs)
        scores = np.where(drop, np.float32(-np.inf), self.scores)
        return Run(
            self.query_ids,
            self.doc_ids,
            np.take_along_axis(docs, order, axis=1),
            np.take_along_axis(scores, order, axis=1),
            self.ties,
            self.n_duplicates,
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
    row_of = {query: row for row, query in enumerate(run.query_ids)}
    found = {query: row for query, row in row_of.items() if (run.docs[row] != NOTHING).any()}
    candidates = [query for query in qrels.judged if query not in exclude]
    empty = {query for query in candidates if max(qrels.judgments[query].values()) <= 0}
    kept = [
        query
        for query in candidates
        if (query in found or missing == MissingQueries.ZERO) and (query not in empty or no_relevant == NoRelevant.ZERO)
    ]
    unjudged = (set(run.query_ids) | set(qrels.judgments)) - set(qrels.judged) - exclude

    width = run.docs.shape[1]
    docs = np.full((len(kept), width), NOTHING, dtype=np.int32)
    scores = np.full((len(kept), width), -np.inf, dtype=np.float32)
    rows = [(place, found[query]) for place, query in enumerate(kept) if query in found]
    if rows:
        places, sources = (list(column) for column in zip(*rows, strict=True))
        docs[places], scores[places] = run.docs[sources], run.scores[sources]

    doc_index = {doc: index for index, doc in enumerate(run.doc_ids)}
    grades = np.zeros(docs.shape, dtype=np.int64)
    judged = np.zeros(docs.shape, dtype=bool)
    depth = max((len(qrels.judgments[query]) for query in kept), default=0)
    ideal = np.zeros((len(kept), depth), dtype=np.int64)
    for place, query in enumerate(kept):
        of_query = qrels.judgments[query]
        ideal[place, : len(of_query)] = sorted((max(grade, 0) for grade in of_query.values()), reverse=True)
        known = {doc_index[doc]: grade for doc, grade in of_query.items() if doc in doc_index}
        if known and width:
            targets = np.fromiter(known, dtype=np.int32, count=len(known))
            where = np.flatnonzero(np.isin(docs[place], targets))
            grades[place, where] = [known[int(doc)] for doc in docs[place, where]]
            judged[place, where] = True
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
            missing=sum(query not in found for query in candidates),
            unjudged=len(unjudged),
            no_relevant=len(empty),
        ),
    )
