"""Texts that are empty, or of an unlikely length."""

from __future__ import annotations

from collections.abc import Iterator

from embeval.workflows.lint.findings import Check, Finding, Severity
from embeval.workflows.lint.gold import GoldSet

SHORT_DOCUMENT = 20
"""Characters below which a document says little."""
LONG_DOCUMENT = 50_000
"""Characters that no common model reads to their end (about 8,192 tokens are 32,000)."""
LONG_QUERY = 2_000
"""Characters of a query that is rather a document."""

EMPTY_QUERY = Check(
    "empty-query", Severity.ERROR, "A query has no text, so nothing can be found.", "Remove or write it."
)
EMPTY = Check(
    "empty-document",
    Severity.WARNING,
    "A document has no text: it gets a zero vector and is never found.",
    "Write or remove it.",
)
EMPTY_POSITIVE = Check(
    "empty-positive",
    Severity.WARNING,
    "A relevant document has no text, so no model can find it for what it says.",
    "Write the text, or remove the judgment.",
)
NO_WORDS = Check("no-words", Severity.WARNING, "A query has neither a letter nor a digit.", "Look at it.")
SHORT = Check(
    "short-document", Severity.NOTE, f"Documents have fewer than {SHORT_DOCUMENT} characters.", "Look at them."
)
LONG = Check(
    "long-document",
    Severity.NOTE,
    f"Documents have more than {LONG_DOCUMENT:,} characters; models read the beginning only.",
    "Cut them into passages; --model tells what a model cuts off.",
)
LONG_ONE = Check("long-query", Severity.NOTE, f"Queries have more than {LONG_QUERY:,} characters.", "Look at them.")


def _rule(gold: GoldSet) -> Iterator[Finding]:
    for query in gold.by_query.values():
        if query.text is None:
            continue
        plain = query.text.strip()
        if not plain:
            check = EMPTY_QUERY
        elif not any(map(str.isalnum, plain)):
            check = NO_WORDS
        elif len(plain) > LONG_QUERY:
            check = LONG_ONE
        else:
            continue
        text = f"query {query.id!r}" + (f", {len(plain):,} characters." if plain else ".")
        yield check.at(text, file=gold.queries_file, line=query.line, ids=[query.id])
    for doc in gold.by_doc.values():
        if doc.text is None or SHORT_DOCUMENT <= len(doc.text) <= LONG_DOCUMENT:
            continue
        check = EMPTY if not doc.text else SHORT if len(doc.text) < SHORT_DOCUMENT else LONG
        text = f"document {doc.id!r}" + (f", {len(doc.text):,} characters." if doc.text else ".")
        yield check.at(text, file=gold.corpus_file, line=doc.line, ids=[doc.id])
    for split, row in gold.positives:
        if gold.by_doc[row.document].text == "":
            text = f"query {row.query!r}, document {row.document!r}."
            yield EMPTY_POSITIVE.at(text, file=gold.qrels_files[split], line=row.line, ids=[row.query, row.document])


RULE = _rule
