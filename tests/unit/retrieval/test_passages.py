"""Rankings of documents from rankings of passages, and what the ranking metrics make of them."""

from __future__ import annotations

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.core.ir import Qrels, Run, TieRule, judge
from embeval.metrics import documents
from embeval.retrieval.passages import collapse, collapse_qrels

DOCUMENT_OF = {f"{document}{part}": document for document in "xyz" for part in range(3)}


def test_a_document_stands_where_its_best_passage_stands() -> None:
    """Passages x2, y0, x0, y1, loose, z0: documents x, y, loose, z; a passage of no document is one itself."""
    run = Run.from_dict({"q": {"x2": 6.0, "y0": 5.0, "x0": 4.0, "y1": 3.0, "loose": 2.0, "z0": 1.0}, "none": {}})
    found = collapse(run, DOCUMENT_OF)
    assert found.query_ids == ("q", "none")
    assert found.hits("q") == [("x", 6.0), ("y", 5.0), ("loose", 2.0), ("z", 1.0)]
    assert found.hits("none") == []


@pytest.mark.parametrize(("ties", "expected"), [(TieRule.DOC_ID_DESC, "zyx"), (TieRule.DOC_ID_ASC, "xyz")])
def test_ties_are_broken_by_document_ids(ties: TieRule, expected: str) -> None:
    """Equal best passages: the ids of the documents decide, though those of the passages say the reverse."""
    of_passage = {"a": "z", "b": "y", "c": "x"}
    found = collapse(Run.from_dict({"q": {"a": 1.0, "b": 1.0, "c": 1.0}}, ties), of_passage)
    assert "".join(doc for doc, _ in found.hits("q")) == expected
    assert found.ties == ties


def test_a_document_has_the_highest_grade_of_its_passages() -> None:
    """Also among grades of 0 and below, and for passages that are no part of anything."""
    qrels = Qrels({"q": {"x0": 0, "x1": 2, "x2": 1, "y0": 0, "z0": -2, "z1": -1, "loose": 1}, "blank": {}})
    assert collapse_qrels(qrels, DOCUMENT_OF).judgments == {"q": {"x": 2, "y": 0, "z": -1, "loose": 1}, "blank": {}}


def test_metrics_count_documents() -> None:
    """x, y, z with only z relevant, by its second passage: rank 3 of documents, rank 5 of passages."""
    run = Run.from_dict({"q": {"x0": 6.0, "x1": 5.0, "y0": 4.0, "y1": 3.0, "z0": 2.0, "z1": 1.0}})
    judged = judge(collapse(run, DOCUMENT_OF), collapse_qrels(Qrels({"q": {"z1": 1}}), DOCUMENT_OF))
    names = ["document_mrr_at_10", "document_ndcg_at_3", "document_recall_at_2", "document_success_at_3"]
    values = {name: float(column[0]) for name, column in documents.measure(judged, names).items()}
    assert values == pytest.approx(dict(zip(names, [1 / 3, 1 / 2, 0.0, 1.0], strict=True)), abs=1e-15)
    for wrong in ("ndcg_at_3", "document_err_at_3", "document_ndcg_at_0"):
        assert documents.FAMILY.make(wrong) is None
        with pytest.raises(KeyError):
            documents.measure(judged, [wrong])


QUERIES = st.sampled_from(["q0", "q1"])
PASSAGES = st.sampled_from([*DOCUMENT_OF, "loose"])


@settings(max_examples=150, deadline=None)
@given(
    scores=st.dictionaries(
        QUERIES,
        st.dictionaries(PASSAGES, st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=9),
        min_size=1,
        max_size=2,
    ),
    grades=st.dictionaries(
        QUERIES, st.dictionaries(PASSAGES, st.integers(0, 3), min_size=1, max_size=8), min_size=1, max_size=2
    ),
)
def test_against_trec_eval_on_dictionaries(
    scores: dict[str, dict[str, float]], grades: dict[str, dict[str, int]]
) -> None:
    """Maxima over passages by plain dictionaries, scored by pytrec_eval (pytrec-eval-terrier 0.5.11), ties included."""

    def best(values: dict[str, float]) -> dict[str, float]:
        found: dict[str, float] = {}
        for passage, value in values.items():
            document = DOCUMENT_OF.get(passage, passage)
            found[document] = max(value, found.get(document, value))
        return found

    whole = {query: {doc: int(grade) for doc, grade in best(dict(of)).items()} for query, of in grades.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(whole, {"ndcg_cut.2,10", "recall.1,2"})
    theirs = evaluator.evaluate({query: best(of) for query, of in scores.items()})
    judged = judge(collapse(Run.from_dict(scores), DOCUMENT_OF), collapse_qrels(Qrels(grades), DOCUMENT_OF))
    names = {
        "document_ndcg_at_2": "ndcg_cut_2",
        "document_ndcg_at_10": "ndcg_cut_10",
        "document_recall_at_1": "recall_1",
        "document_recall_at_2": "recall_2",
    }
    ours = documents.measure(judged, names)
    for place, query in enumerate(judged.query_ids):
        for name, theirs_name in names.items():
            expected = theirs[query][theirs_name] if query in theirs else 0.0
            assert ours[name][place] == pytest.approx(expected, abs=1e-9), (query, name)
