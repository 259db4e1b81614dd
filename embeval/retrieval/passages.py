"""From passages to the documents that they were cut from: rankings and judgments of whole documents.

``judge`` and the ranking metrics then apply to them as they are. A document stands where its best passage stands.
Source: "MaxP" of Dai & Callan, Deeper Text Understanding for IR with Contextual Neural Language Modeling, SIGIR 2019.

A ranking of K passages may hold far fewer documents, so metrics "at k" want K to be well above k.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from embeval.core.ir import NOTHING, IntRows, Qrels, Run


def collapse(run: Run, document_of: Mapping[str, str]) -> Run:
    """The ranking of documents: each once, at the score of its best passage, ties by the run's rule on document ids.

    ``document_of``: passage id -> document id. A passage that is not in it is a document of its own.
    """
    numbers: dict[str, int] = {}
    of_passage = [numbers.setdefault(document_of.get(doc, doc), len(numbers)) for doc in run.doc_ids]
    docs = np.array([*of_passage, NOTHING], dtype=np.int32)[run.docs]  # NOTHING, -1, is the one at the end
    again = _seen_before(docs)
    return Run.ranked(
        query_ids=run.query_ids,
        doc_ids=tuple(numbers),
        docs=np.where(again, NOTHING, docs).astype(np.int32),
        scores=np.where(again, np.float32(-np.inf), run.scores),
        ties=run.ties,
        n_duplicates=run.n_duplicates,
    )


def collapse_qrels(qrels: Qrels, document_of: Mapping[str, str]) -> Qrels:
    """The judgments of documents: each has the highest grade among its judged passages."""
    judgments: dict[str, dict[str, int]] = {}
    for query, grades in qrels.judgments.items():
        of_query = judgments[query] = {}
        for passage, grade in grades.items():
            document = document_of.get(passage, passage)
            of_query[document] = max(grade, of_query.get(document, grade))
    return Qrels(judgments)


def _seen_before(docs: IntRows) -> npt.NDArray[np.bool_]:
    """bool [Q, K]: whether the same document stands further up in its row."""
    order = np.argsort(docs, axis=1, kind="stable")
    ordered = np.take_along_axis(docs, order, axis=1)
    again = np.zeros(docs.shape, dtype=np.bool_)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return again
