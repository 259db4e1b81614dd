"""Labels of queries that follow from the data alone: by these, a result shows where a system is weak.

No model is asked and only relevant documents are looked at, so the labels of a large corpus take a moment, and the
same data always has the same ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from embeval.data.beir import RetrievalData
from embeval.data.language import language_of
from embeval.data.lexical import overlap, words

NO_DOCUMENT = "no relevant document"
"""Label of a query without a relevant document in the corpus, where the slice is one of documents."""
SEVERAL = "several"
"""Label where the relevant documents of a query differ."""
UNCLEAR = "unclear"
"""Language of a text that is too short to tell."""
LANGUAGE_FIELDS = ("language", "lang")
"""Fields of the queries file that say it better than a guess."""


@dataclass(frozen=True)
class _Buckets:
    """Ranges of a number, each with its label."""

    starts: tuple[float, ...]
    labels: tuple[str, ...]

    def label(self, value: float) -> str:
        return self.labels[max(bisect_right(self.starts, value) - 1, 0)]


QUERY_WORDS = _Buckets((0, 4, 8, 16), ("1-3", "4-7", "8-15", "16+"))
DOCUMENT_WORDS = _Buckets((0, 51, 201, 501), ("0-50", "51-200", "201-500", "501+"))
RELEVANT = _Buckets((0, 1, 2, 6), ("0", "1", "2-5", "6+"))
OVERLAP = _Buckets((0.0, 1e-9, 1 / 3, 2 / 3), ("none", "low (<1/3)", "middle", "high (>=2/3)"))


@dataclass(frozen=True)
class _Query:
    """A query with what is relevant to it."""

    text: str
    n_relevant: int
    documents: tuple[tuple[str, str], ...]
    """(id, text) of the relevant documents that are in the corpus."""


def _query_length(query: _Query) -> str:
    return QUERY_WORDS.label(len(words(query.text)))


def _language(query: _Query) -> str:
    return language_of(query.text) or UNCLEAR


def _lexical_overlap(query: _Query) -> str:
    shares = [overlap(query.text, text) for _, text in query.documents]
    return OVERLAP.label(max(shares)) if shares else NO_DOCUMENT


def _document_length(query: _Query) -> str:
    lengths = [len(words(text)) for _, text in query.documents]
    return DOCUMENT_WORDS.label(max(lengths)) if lengths else NO_DOCUMENT


def _relevant_documents(query: _Query) -> str:
    return RELEVANT.label(query.n_relevant)


BUILT_IN: dict[str, Callable[[_Query], str]] = {
    "query_length": _query_length,
    "language": _language,
    "lexical_overlap": _lexical_overlap,
    "document_length": _document_length,
    "relevant_documents": _relevant_documents,
}
"""Slices by name: words of the query; its language; share of its content words in the relevant document that has the
most of them; words of its longest relevant document; how many are relevant."""


def built_in(data: RetrievalData, query_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Labels by slice, in the order of the queries.

    Beside those of ``BUILT_IN``, ``document.<field>`` for each label of the documents: that of the relevant ones where
    they agree. A field of the queries file takes the place of a slice of the same name.
    """
    queries = _queries(data, query_ids)
    named = dict(BUILT_IN)
    if any(name in data.query_labels for name in LANGUAGE_FIELDS):
        del named["language"]
    found = {name: tuple(map(label, queries)) for name, label in named.items() if name not in data.query_labels}
    for field, values in data.doc_labels.items():
        name = f"document.{field}"
        if name not in data.query_labels:
            found[name] = tuple(_of_documents(query, values.get) for query in queries)
    return found


def _queries(data: RetrievalData, query_ids: Sequence[str]) -> list[_Query]:
    relevant = {
        query: [doc for doc, grade in data.qrels.judgments.get(query, {}).items() if grade > 0] for query in query_ids
    }
    wanted = {doc for docs in relevant.values() for doc in docs}
    texts = {doc: text for doc, text in zip(data.doc_ids, data.doc_texts, strict=True) if doc in wanted}
    return [
        _Query(data.queries[query], len(docs), tuple((doc, texts[doc]) for doc in docs if doc in texts))
        for query, docs in relevant.items()
    ]


def _of_documents(query: _Query, label_of: Callable[[str], str | None]) -> str:
    labels = {label_of(doc) or "" for doc, _ in query.documents}
    if not labels:
        return NO_DOCUMENT
    return labels.pop() if len(labels) == 1 else SEVERAL
