"""Documents with the same text. They tie for every query, and one that is not judged counts as not relevant."""

from __future__ import annotations

from collections.abc import Iterator

from embeval.workflows.lint.findings import Check, Finding, Severity
from embeval.workflows.lint.gold import Document, GoldSet

SAME = Check(
    "same-text", Severity.NOTE, "Documents have the same text, so they tie for every query.", "Remove all but one."
)
PARTLY = Check(
    "same-text-partly-judged",
    Severity.WARNING,
    "Of documents with the same text only some are judged relevant; a model that finds the others counts as wrong.",
    "Remove all but one, or give them all the judgment: --fix --merge-duplicates.",
)
GRADES = Check(
    "same-text-other-grade",
    Severity.WARNING,
    "Documents with the same text have different grades for one query.",
    "Give them the same grade.",
)


def groups(gold: GoldSet) -> list[list[Document]]:
    """Documents of the same text but for white space, where there are several; those without a text are left out."""
    by_text: dict[str, list[Document]] = {}
    for doc in gold.by_doc.values():
        if doc.text and (plain := " ".join(doc.text.split())):
            by_text.setdefault(plain, []).append(doc)
    return [sorted(group, key=lambda doc: doc.line) for group in by_text.values() if len(group) > 1]


def _rule(gold: GoldSet) -> Iterator[Finding]:
    queries_of: dict[str, list[tuple[str, str]]] = {}
    for split, rows in gold.splits.items():
        for row in rows:
            if row.grade > 0:
                queries_of.setdefault(row.document, []).append((split, row.query))
    for group in groups(gold):
        names = [doc.id for doc in group]
        listed = ", ".join(f"{doc.id!r} (line {doc.line})" for doc in group[:6]) + (", …" if len(group) > 6 else "")
        yield SAME.at(f"{listed}.", file=gold.corpus_file, line=group[1].line, ids=names)
        for split, query in sorted({each for name in names for each in queries_of.get(name, ())}):
            grades = gold.grades[split][query]
            judged = {name: grades[name] for name in names if name in grades}
            excluded = gold.by_query[query].excluded if query in gold.by_query else ()
            lacking = [name for name in names if name not in grades and name not in excluded]
            if len(set(judged.values())) > 1:
                text = f"query {query!r}: " + ", ".join(f"{name!r} {grade}" for name, grade in judged.items()) + "."
                yield GRADES.at(text, file=gold.qrels_files[split], ids=[query, *judged])
            if lacking:
                has = ", ".join(map(repr, judged))
                text = f"query {query!r}: {has} judged, {', '.join(map(repr, lacking[:6]))} not."
                yield PARTLY.at(text, file=gold.qrels_files[split], ids=[query, *names])


RULE = _rule
