"""Lists of documents that are no hits for a query."""

from __future__ import annotations

from collections.abc import Iterator

from embeval.workflows.lint.findings import Check, Finding, Severity
from embeval.workflows.lint.gold import GoldSet

UNKNOWN = Check(
    "excluded-unknown", Severity.WARNING, "A query excludes documents that are not in the corpus.", "Mend the list."
)
POSITIVE = Check(
    "excluded-positive",
    Severity.ERROR,
    "A query excludes documents that are relevant to it, so no model can find them.",
    "Take them out of 'exclude' or out of the judgments.",
)


def _rule(gold: GoldSet) -> Iterator[Finding]:
    for query in gold.by_query.values():
        relevant = gold.relevant.get(query.id, frozenset())
        for check, documents in (
            (UNKNOWN, [doc for doc in query.excluded if doc not in gold.by_doc]),
            (POSITIVE, [doc for doc in query.excluded if doc in relevant]),
        ):
            for doc in documents:
                text = f"query {query.id!r}, document {doc!r}."
                yield check.at(text, file=gold.queries_file, line=query.line, ids=[query.id, doc])


RULE = _rule
