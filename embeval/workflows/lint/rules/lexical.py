"""Relevant documents that share no word with their query and that BM25 does not find either: wrong, or hard."""

from __future__ import annotations

import re
from collections.abc import Iterator

from embeval.core.ir import TieRule
from embeval.core.protocols import Ranker
from embeval.core.specs import ModelSpec
from embeval.data.language import language_of
from embeval.data.lexical import overlap
from embeval.data.near_duplicates import UNSPACED
from embeval.encoders import loading
from embeval.workflows.lint.findings import Check, Finding, Severity
from embeval.workflows.lint.gold import GoldSet, Judgment

DEPTH = 1_000
"""Rank in BM25 down to which a document counts as found."""
BM25 = ModelSpec(name="bm25", backend="bm25")
_UNSPACED = re.compile(f"[{UNSPACED}]")
"""Scripts in which words can't be told apart, nor compared."""
MIXED_UP = 0.2
"""Share of strange ones from which it is rather the ids than the texts. In published sets it is below 0.1."""

STRANGE = Check(
    "strange-positive",
    Severity.NOTE,
    f"Relevant documents share no word with their query, and BM25 has them not among its first {DEPTH:,}.",
    "Read them: the judgment may belong to another query or document.",
)
MANY = Check(
    "strange-judgments",
    Severity.WARNING,
    "Many relevant documents share no word with their query, stemmed or not.",
    "Read some of these pairs: have the ids been mixed up, perhaps by one row?",
)


def _rule(gold: GoldSet) -> Iterator[Finding]:
    suspects = [(split, row) for split, row in gold.positives if _nothing_shared(gold, row)]
    if not suspects:
        return
    found = _found(gold, [row for _, row in suspects])
    strange = [(split, row) for split, row in suspects if (row.query, row.document) not in found]
    for split in gold.splits:
        lines = [row.line for of, row in strange if of == split]
        total = sum(of == split for of, _ in gold.positives)
        if len(lines) > 1 and len(lines) >= MIXED_UP * total:
            text = f"{len(lines)} of {total} relevant documents, such as in lines {', '.join(map(str, lines[:5]))}."
            yield MANY.at(text, file=gold.qrels_files[split], line=lines[0])
    if len(gold.by_doc) <= DEPTH:
        return  # no rank there is a low one
    for split, row in strange:
        text = f"query {row.query!r}, document {row.document!r}."
        yield STRANGE.at(text, file=gold.qrels_files[split], line=row.line, ids=[row.query, row.document])


def _nothing_shared(gold: GoldSet, row: Judgment) -> bool:
    query, document = gold.by_query[row.query].text, gold.by_doc[row.document].text
    if not query or not document or _UNSPACED.search(query) or overlap(query, document):
        return False
    languages = {language_of(query), language_of(document)} - {""}
    return len(languages) < 2  # across languages no words are shared


def _found(gold: GoldSet, rows: list[Judgment]) -> set[tuple[str, str]]:
    """Pairs of a query and a document that BM25 finds by a word, after stemming."""
    ranker = loading.load_system(loading.resolve(BM25))
    assert isinstance(ranker, Ranker)
    queries = list(dict.fromkeys(row.query for row in rows))
    run = ranker.rank(
        list(gold.by_doc),
        [doc.text or "" for doc in gold.by_doc.values()],
        queries,
        [gold.by_query[query].text or "" for query in queries],
        depth=DEPTH,
        ties=TieRule.DOC_ID_DESC,
    )
    return {(query, doc) for query in queries for doc, score in run.hits(query) if score > 0}


RULE = _rule
