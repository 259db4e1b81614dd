"""Labels that follow from the data: every bucket at its edges, and what gives way to a field."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from embeval.core.ir import Qrels
from embeval.data.beir import RetrievalData
from embeval.tasks import _slices

GERMAN = "Wie kann ich ein gelöschtes Dokument aus der Sicherung wiederherstellen?"
ENGLISH = "How can I restore a document that was deleted by somebody from the backup?"


def data(
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    query_labels: Mapping[str, Mapping[str, str]] | None = None,
    doc_labels: Mapping[str, Mapping[str, str]] | None = None,
) -> RetrievalData:
    """Data in memory."""
    return RetrievalData(
        doc_ids=tuple(documents),
        doc_texts=tuple(documents.values()),
        queries=queries,
        qrels=Qrels(qrels),
        query_labels=query_labels or {},
        doc_labels=doc_labels or {},
    )


def words(n: int) -> str:
    """A text of n words."""
    return " ".join(f"w{number}" for number in range(n))


def labels(name: str, found: RetrievalData) -> tuple[str, ...]:
    """One slice of all queries."""
    return _slices.built_in(found, list(found.queries))[name]


def test_query_length_at_the_edges_of_its_buckets() -> None:
    """Words as ``lexical.words`` counts them: punctuation is none."""
    lengths = {1: "1-3", 3: "1-3", 4: "4-7", 7: "4-7", 8: "8-15", 15: "8-15", 16: "16+", 40: "16+"}
    queries = {f"q{n}": words(n) for n in lengths} | {"dots": "a, b – c!"}
    assert labels("query_length", data(queries, {}, {})) == (*lengths.values(), "1-3")


def test_document_length_is_that_of_the_longest_relevant_document() -> None:
    """At the edges of the buckets; documents of grade 0 don't count."""
    documents = {f"d{n}": words(n) for n in (0, 50, 51, 200, 201, 500, 501)}
    qrels: dict[str, dict[str, int]] = {f"q{n}": {f"d{n}": 1} for n in (0, 50, 51, 200, 201, 500, 501)}
    qrels |= {"several": {"d50": 2, "d201": 1, "d501": 0}, "nothing": {"d501": 0}, "gone": {"elsewhere": 1}}
    found = data(dict.fromkeys(qrels, "text"), documents, qrels)
    assert labels("document_length", found) == (
        *("0-50", "0-50", "51-200", "51-200", "201-500", "201-500", "501+"),
        *("201-500", "no relevant document", "no relevant document"),
    )


def test_lexical_overlap_is_the_best_of_the_relevant_documents() -> None:
    """Of three content words (``the`` is none): 0, 1, 2, 3; a third is middle and two thirds are high."""
    documents = {"d0": "nothing", "d1": "a fox", "d2": "the red fox", "d3": "Red, quick FOX", "d4": "one of four: lime"}
    queries = dict.fromkeys(("q0", "q1", "q2", "q3", "best", "none"), "the quick red fox")
    qrels = {f"q{n}": {f"d{n}": 1} for n in range(4)} | {"best": {"d0": 2, "d2": 1}, "none": {"d3": 0}}
    found = data(queries | {"low": "lime kiln river stone"}, documents, qrels | {"low": {"d4": 1}})
    assert labels("lexical_overlap", found) == (
        *("none", "middle", "high (>=2/3)", "high (>=2/3)", "high (>=2/3)", "no relevant document"),
        "low (<1/3)",
    )


def test_relevant_documents_counts_grades_above_0() -> None:
    """Those that are not in the corpus too: the judgments know them."""
    qrels = {f"q{n}": {f"d{place}": 1 for place in range(n)} | {"no": 0} for n in (0, 1, 2, 5, 6)}
    assert labels("relevant_documents", data(dict.fromkeys(qrels, "text"), {"d0": "text"}, qrels)) == (
        *("0", "1", "2-5", "2-5", "6+"),
    )


def test_language_of_the_query() -> None:
    """Two that are told apart, and one that is too short."""
    found = data({"en": ENGLISH, "de": GERMAN, "short": "restore"}, {}, {})
    assert labels("language", found) == ("en", "de", "unclear")


@pytest.mark.parametrize("field", ["language", "lang"])
def test_a_field_of_the_queries_says_the_language_better(field: str) -> None:
    """Then there is no guess beside it."""
    found = data({"q": ENGLISH}, {}, {}, query_labels={field: {"q": "eng"}})
    assert "language" not in _slices.built_in(found, ["q"])


def test_a_field_of_the_queries_takes_the_place_of_a_slice_of_its_name() -> None:
    """Only of that one."""
    fields = {"query_length": {"q": "short"}, "document.kind": {"q": "mine"}}
    found = data({"q": "text"}, {"d": "text"}, {"q": {"d": 1}}, query_labels=fields, doc_labels={"kind": {"d": "x"}})
    assert set(_slices.built_in(found, ["q"])) == {
        *("language", "lexical_overlap", "document_length", "relevant_documents")
    }


def test_labels_of_documents_where_the_relevant_ones_agree() -> None:
    """One label, several, none at all, and a document without one beside one that has it."""
    documents = dict.fromkeys(("a", "b", "c", "blank"), "text")
    qrels = {"same": {"a": 1, "b": 2, "c": 0}, "differ": {"a": 1, "c": 1}, "half": {"a": 1, "blank": 1}}
    qrels |= {"none": {"blank": 1}, "nothing": {"a": 0}}
    kinds = {"kind": {"a": "guide", "b": "guide", "c": "news"}}
    found = data(dict.fromkeys(qrels, "text"), documents, qrels, doc_labels=kinds)
    assert labels("document.kind", found) == ("guide", "several", "several", "", "no relevant document")


def test_only_the_queries_that_are_asked_for_in_their_order() -> None:
    """A query without any judgment among them."""
    found = data({"a": words(1), "b": words(5), "c": words(9)}, {"d": "text"}, {"a": {"d": 1}})
    built = _slices.built_in(found, ["c", "a"])
    assert built["query_length"] == ("8-15", "1-3")
    assert built["relevant_documents"] == ("0", "1")
