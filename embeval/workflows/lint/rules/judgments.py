"""Judgments of what isn't there, judgments that come twice, and queries that have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from embeval.workflows.lint.findings import Check, Finding, Severity
from embeval.workflows.lint.gold import GoldSet, Judgment
from embeval.workflows.lint.rules.ids import folded

NONE = Check("no-judgments", Severity.ERROR, "A split has no judgments.", "Add some, or lint another split.")
QUERY = Check(
    "dangling-query", Severity.ERROR, "Judged queries are not in the queries file.", "Add them, or mend the id."
)
UNREACHABLE = Check(
    "unreachable-positive",
    Severity.ERROR,
    "Relevant documents are not in the corpus, so no model can find them and no score can reach 1.",
    "Add the documents or mend the ids. In a published set (--public), evaluate with 'unreachable: keep'.",
)
DOCUMENT = Check(
    "dangling-document",
    Severity.WARNING,
    "Documents judged not relevant are not in the corpus.",
    "Mend the id, if it should be there; the judgment has no effect.",
)
TWICE = Check("judged-twice", Severity.ERROR, "A pair is judged twice, with the same grade.", "--fix drops the second.")
CONTRADICTION = Check(
    "contradictory-grades",
    Severity.ERROR,
    "A pair is judged twice, with different grades.",
    "Keep the one that is right.",
)
NO_POSITIVE = Check(
    "no-positive",
    Severity.WARNING,
    "All judgments of a query are 0, so it counts 0 for every model.",
    "Judge a relevant document, or mark the query with 'answerable: false'.",
)
UNJUDGED = Check(
    "unjudged-query",
    Severity.NOTE,
    "Queries without any judgment are left out of every mean.",
    "Judge them, or mark those that the corpus has no answer to with 'answerable: false'.",
)
ANSWERABLE = Check(
    "unanswerable-with-positive",
    Severity.ERROR,
    "A query is marked 'answerable: false' and has relevant documents.",
    "Remove the mark or the judgments.",
)


def _rule(gold: GoldSet) -> Iterator[Finding]:
    public = gold.options.public or gold.source.startswith("mteb:")
    for split, rows in gold.splits.items():
        file = gold.qrels_files[split]
        if not rows and file not in gold.incomplete:
            yield NONE.at("there are no rows after the header.", file=file)
        yield from _dangling(gold, rows, file, public)
        yield from _twice(rows, file)
        lines = {row.query: row.line for row in reversed(rows)}
        for query, grades in gold.grades[split].items():
            known = gold.by_query.get(query)
            if known is None or max(grades.values()) > 0 or not known.answerable:
                continue
            yield NO_POSITIVE.at(f"query {query!r}.", file=file, line=lines[query], ids=[query])
    all_known = all(gold.splits.values())
    judged = {row.query for rows in gold.splits.values() for row in rows} | gold.judged_elsewhere
    for known in gold.by_query.values():
        if not known.answerable and (documents := sorted(gold.relevant.get(known.id, ()))):
            text = f"query {known.id!r}: {', '.join(map(repr, documents[:3]))}."
            yield ANSWERABLE.at(text, file=gold.queries_file, line=known.line, ids=[known.id, *documents])
        if all_known and known.answerable and known.id not in judged:
            yield UNJUDGED.at(f"query {known.id!r}.", file=gold.queries_file, line=known.line, ids=[known.id])


def _dangling(gold: GoldSet, rows: Iterable[Judgment], file: str, public: bool) -> Iterator[Finding]:
    queries = {folded(name): name for name in gold.by_query}
    documents = {folded(name): name for name in gold.by_doc}
    seen: set[str] = set()
    for row in rows:
        if row.query not in gold.by_query and row.query not in seen:
            seen.add(row.query)
            text = f"query {row.query!r}{_hint(row.query, queries)}."
            yield QUERY.at(text, file=file, line=row.line, ids=[row.query])
        if row.document in gold.by_doc:
            continue
        text = f"document {row.document!r} of query {row.query!r}{_hint(row.document, documents)}."
        if row.grade > 0:
            severity = Severity.WARNING if public else None
            yield UNREACHABLE.at(text, file=file, line=row.line, ids=[row.query, row.document], severity=severity)
        else:
            yield DOCUMENT.at(text, file=file, line=row.line, ids=[row.query, row.document])


def _hint(name: str, known: dict[str, str]) -> str:
    close = known.get(folded(name))
    return f"; there is {close!r}" if close is not None else ""


def _twice(rows: Iterable[Judgment], file: str) -> Iterator[Finding]:
    first: dict[tuple[str, str], Judgment] = {}
    for row in rows:
        earlier = first.setdefault((row.query, row.document), row)
        if earlier is row:
            continue
        pair = f"query {row.query!r}, document {row.document!r}"
        ids = [row.query, row.document]
        if earlier.grade == row.grade:
            yield TWICE.at(f"{pair}, in line {earlier.line} too.", file=file, line=row.line, ids=ids)
        else:
            text = f"{pair}: {earlier.grade} in line {earlier.line}, {row.grade} here."
            yield CONTRADICTION.at(text, file=file, line=row.line, ids=ids)


RULE = _rule
