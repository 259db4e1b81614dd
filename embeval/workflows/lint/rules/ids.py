"""Ids that come twice, that look alike, and that queries and documents share."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from embeval.core.words import plural
from embeval.workflows.lint.findings import Check, Finding, Severity
from embeval.workflows.lint.gold import Document, GoldSet, Query

DUPLICATE = Check("duplicate-id", Severity.ERROR, "An id stands twice.", "Remove one row; --fix drops equal ones.")
ALIKE = Check(
    "look-alike-ids",
    Severity.WARNING,
    "Ids differ only in case, in spaces or in how a character is coded.",
    "Make sure that they are meant to be different, and give them clearer names.",
)
SPACES = Check(
    "id-spaces", Severity.WARNING, "Ids have spaces around them, which other tools strip.", "--fix strips them."
)
TYPES = Check(
    "mixed-id-types",
    Severity.WARNING,
    "Ids are numbers in some rows and text in others.",
    "Write them all as text: other tools take 1 and '1' for different ids.",
)
SHARED = Check(
    "shared-ids",
    Severity.NOTE,
    "Query ids are document ids too.",
    "If these queries are documents of the corpus, set self_match: drop, else self_match: keep.",
)


def folded(name: str) -> str:
    """An id without what is easily overlooked: case, spaces, forms of a character."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def _rule(gold: GoldSet) -> Iterator[Finding]:
    for file, rows in ((gold.corpus_file, gold.documents), (gold.queries_file, gold.queries)):
        yield from _duplicates(file, rows)
        yield from _alike(file, rows)
        numeric = [row for row in rows if row.numeric]
        if 0 < len(numeric) < len(rows):
            text = f"{plural(len(numeric), 'id is a number', 'ids are numbers')}, {len(rows) - len(numeric)} are text."
            yield TYPES.at(text, file=file, line=numeric[0].line, ids=[numeric[0].id])
    if shared := [row.id for row in gold.by_query.values() if row.id in gold.by_doc]:
        text = f"{len(shared)} of {len(gold.by_query)} query ids."
        yield SHARED.at(text, file=gold.queries_file, ids=shared)


def _duplicates(file: str, rows: Sequence[Document | Query]) -> Iterator[Finding]:
    first: dict[str, Document | Query] = {}
    for row in rows:
        earlier = first.setdefault(row.id, row)
        if earlier is row:
            continue
        if earlier.numeric != row.numeric:
            how = "once as a number and once as text"
        else:
            how = "the same row" if earlier.content == row.content else "with other content"
        yield DUPLICATE.at(f"{row.id!r} is in line {earlier.line} too, {how}.", file=file, line=row.line, ids=[row.id])


def _alike(file: str, rows: Sequence[Document | Query]) -> Iterator[Finding]:
    by_form: dict[str, dict[str, int]] = {}
    for row in rows:
        by_form.setdefault(folded(row.id), {}).setdefault(row.id, row.line)
        if row.id != row.id.strip():
            yield SPACES.at(f"{row.id!r}", file=file, line=row.line, ids=[row.id])
    for group in by_form.values():
        if len(group) > 1:
            text = " and ".join(f"{name!r} (line {line})" for name, line in group.items())
            yield ALIKE.at(f"{text}.", file=file, line=max(group.values()), ids=list(group))


RULE = _rule
