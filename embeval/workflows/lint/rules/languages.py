"""Languages of documents and queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from embeval.core.words import plural
from embeval.data.language import UNKNOWN, language_of
from embeval.workflows.lint.findings import Check, Finding, Severity
from embeval.workflows.lint.gold import GoldSet

MOST = 1_000
"""Texts whose language is looked at, evenly spread over the file."""
BEGINNING = 500
"""Characters of each."""
COMMON = 0.02
"""Share of the queries from which a language counts as one of theirs; a single guess may be wrong."""

MIX = Check("languages", Severity.NOTE, "Texts are in more than one language.", "Make sure the model knows them all.")
ALONE = Check(
    "language-without-documents",
    Severity.WARNING,
    "Queries are in a language that no document is in.",
    "If that is meant (cross-lingual search), choose a model that knows both; else look at the queries.",
)


def _rule(gold: GoldSet) -> Iterator[Finding]:
    documents = _languages([doc.text for doc in gold.by_doc.values() if doc.text])
    queries = _languages([query.text for query in gold.by_query.values() if query.text])
    for file, found in ((gold.corpus_file, documents), (gold.queries_file, queries)):
        common = _common(found)
        if len(common) > 1:
            shares = ", ".join(f"{name} {found[name] / found.total():.0%}" for name in common)
            yield MIX.at(f"{shares}, of {plural(found.total(), 'clear text')} looked at.", file=file)
    for language in _common(queries):
        if documents and language not in documents:
            text = (
                f"{plural(queries[language], 'query', 'queries')} in {language!r}; documents: {', '.join(documents)}."
            )
            yield ALONE.at(text, file=gold.queries_file)


def _common(found: Counter[str]) -> list[str]:
    """Languages that are more than a wrong guess or two, the most frequent first."""
    by_frequency = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [name for name, n in by_frequency if n >= max(2, COMMON * found.total())]


def _languages(texts: Sequence[str]) -> Counter[str]:
    """Texts per language of those looked at; texts that are not clear are left out."""
    step = max(1, -(-len(texts) // MOST))
    found = Counter(language_of(text[:BEGINNING]) for text in texts[::step])
    del found[UNKNOWN]
    return found


RULE = _rule
