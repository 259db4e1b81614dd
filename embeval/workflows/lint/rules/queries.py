"""Queries that are like another one, and queries that are a document."""

from __future__ import annotations

from collections.abc import Iterator

from embeval.data.near_duplicates import normalized, shingles, similar_pairs
from embeval.workflows.lint.findings import Check, Finding, Severity
from embeval.workflows.lint.gold import GoldSet, Query

THRESHOLD = 0.8
"""Jaccard index of the three-word shingles from which two queries are nearly the same."""
SAME = Check(
    "same-query",
    Severity.WARNING,
    "Queries are the same but for case, marks and spaces.",
    "Remove all but one, with the judgments of all.",
)
NEAR = Check(
    "near-duplicate-queries", Severity.NOTE, "Queries are nearly the same, so they count nearly twice.", "Look at them."
)
NEAR_OTHER = Check(
    "near-duplicate-queries-judged-apart",
    Severity.WARNING,
    "Queries are nearly the same and have other relevant documents.",
    "Check that the difference between them is what their judgments say.",
)
DOCUMENT = Check(
    "query-is-document",
    Severity.WARNING,
    "A query is the text of a document, which any model finds.",
    "Reword the query; or if queries are documents, list that document in 'exclude' or set self_match: drop.",
)


def _rule(gold: GoldSet) -> Iterator[Finding]:
    by_text: dict[str, list[Query]] = {}
    for query in gold.by_query.values():
        if query.text and (plain := normalized(query.text)):
            by_text.setdefault(plain, []).append(query)
    for group in by_text.values():
        for later in group[1:]:
            yield SAME.at(
                _pair(gold, group[0], later), file=gold.queries_file, line=later.line, ids=[group[0].id, later.id]
            )
    distinct = [group[0] for group in by_text.values()]
    for i, j, alike in similar_pairs([shingles(query.text or "") for query in distinct], THRESHOLD):
        first, later = distinct[i], distinct[j]
        check = NEAR if _judged_alike(gold, first, later) else NEAR_OTHER
        text = f"{_pair(gold, first, later)[:-1]} (Jaccard index {alike:.2f})."
        yield check.at(text, file=gold.queries_file, line=later.line, ids=[first.id, later.id])
    for doc in gold.by_doc.values():
        for query in by_text.get(normalized(doc.text), ()) if doc.text else ():
            if doc.id not in query.excluded:
                text = f"query {query.id!r}, document {doc.id!r} (line {doc.line} of the corpus)."
                yield DOCUMENT.at(text, file=gold.queries_file, line=query.line, ids=[query.id, doc.id])


def _judged_alike(gold: GoldSet, first: Query, later: Query) -> bool:
    return gold.relevant.get(first.id, frozenset()) == gold.relevant.get(later.id, frozenset())


def _pair(gold: GoldSet, first: Query, later: Query) -> str:
    judged = "the same" if _judged_alike(gold, first, later) else "other"
    return f"{later.id!r} and {first.id!r} (line {first.line}), with {judged} relevant documents."


RULE = _rule
