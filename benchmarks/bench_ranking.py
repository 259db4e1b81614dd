"""How long do ranking metrics take for 2,000 queries x 1,000 documents, beside pytrec_eval on the same run?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytrec_eval

from benchmarks.harness import best, interleaved, write
from embeval.core.ir import Qrels, Run, judge
from embeval.metrics import ranking

QUERIES, DEPTH, CORPUS, JUDGED = 2_000, 1_000, 50_000, 30
NAMES = {"ndcg_cut": "ndcg", "map_cut": "map", "recall": "recall", "P": "precision", "success": "success"}


def main() -> None:
    """Measures and writes the figures."""
    rng = np.random.default_rng(0)
    doc_ids = tuple(f"doc{number}" for number in range(CORPUS))
    query_ids = tuple(f"q{number}" for number in range(QUERIES))
    docs = np.stack([rng.choice(CORPUS, DEPTH, replace=False) for _ in query_ids]).astype(np.int32)
    scores = np.sort(rng.normal(size=(QUERIES, DEPTH)).astype(np.float32), axis=1)[:, ::-1].copy()
    grades = {
        query: {
            doc_ids[doc]: int(rng.integers(0, 4))
            for doc in {*docs[row, rng.choice(DEPTH, JUDGED // 2)].tolist(), *rng.choice(CORPUS, JUDGED // 2).tolist()}
        }
        for row, query in enumerate(query_ids)
    }
    as_dict = {
        query: {doc_ids[doc]: float(score) for doc, score in zip(docs[row], scores[row], strict=True)}
        for row, query in enumerate(query_ids)
    }
    cutoffs = ranking.CUTOFFS
    names = [f"{ours}_at_{k}" for ours in NAMES.values() for k in cutoffs]
    measures = {f"{trec}.{','.join(map(str, cutoffs))}" for trec in NAMES}

    def from_arrays() -> dict[str, Any]:
        run = Run.ranked(query_ids=query_ids, doc_ids=doc_ids, docs=docs, scores=scores)
        return ranking.measure(judge(run, Qrels(grades)), names)

    def from_dicts() -> dict[str, Any]:
        return ranking.measure(judge(Run.from_dict(as_dict), Qrels(grades)), names)

    def trec() -> Any:
        return pytrec_eval.RelevanceEvaluator(grades, measures).evaluate(as_dict)

    ours, theirs = from_arrays(), trec()
    largest = max(
        float(np.abs(ours[f"{name}_at_{k}"] - [theirs[query][f"{trec_name}_{k}"] for query in query_ids]).max())
        for trec_name, name in NAMES.items()
        for k in cutoffs
    )
    assert largest < 1e-9
    seconds = interleaved({"arrays": from_arrays, "dicts": from_dicts, "pytrec_eval": trec}, rounds=3)
    write(
        "ranking",
        {
            "queries": QUERIES,
            "documents_per_query": DEPTH,
            "measures": len(names),
            "largest_difference_to_pytrec_eval": largest,
            "seconds": {name: [round(each, 3) for each in rounds] for name, rounds in seconds.items()},
            "times_as_fast_as_pytrec_eval_from_arrays": round(
                best(seconds["pytrec_eval"]) / best(seconds["arrays"]), 2
            ),
            "times_as_fast_as_pytrec_eval_from_dicts": round(best(seconds["pytrec_eval"]) / best(seconds["dicts"]), 2),
        },
    )


if __name__ == "__main__":
    main()
