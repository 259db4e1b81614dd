"""How long do ranking metrics take for 2,000 queries x 1,000 documents, from arrays and from a TREC file?

Beside pytrec_eval and ranx on the same run. From arrays, pytrec_eval needs dictionaries first, and building them
counts. Its own reader parses the file for it; ranx reads the file with pandas, and has compiled its measures before.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytrec_eval
import ranx

from benchmarks.harness import best, interleaved, write
from embeval.core.ir import Qrels, Run, judge
from embeval.data import trec
from embeval.metrics import ranking

QUERIES, DEPTH, CORPUS, JUDGED = 2_000, 1_000, 50_000, 30
ROUNDS = 3
CUTOFFS = {"ndcg": ranking.CUTOFFS, "map": ranking.CUTOFFS, "recall": ranking.CUTOFFS, "precision": ranking.CUTOFFS}
"""With MRR, 29 measures: those that mteb 2.26 reports for retrieval, but for its abstention scores."""
TREC_NAMES = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P"}


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
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.trec"
        with file.open("wb") as opened:
            trec.write_run(Run.ranked(query_ids=query_ids, doc_ids=doc_ids, docs=docs, scores=scores), opened)
        contenders = _contenders(query_ids, doc_ids, docs, scores, grades, file)
        ours, theirs = contenders["arrays"](), contenders["pytrec_eval"]()
        from_file = contenders["trec_file"]()
        contenders["ranx_file"]()  # compiles
        largest = max(
            float(np.abs(found[name] - [theirs[query][_trec_name(name)] for query in query_ids]).max())
            for found in (ours, from_file)
            for name in ours
        )
        assert largest < 1e-9
        seconds = interleaved(contenders, rounds=ROUNDS)
    fastest = {name: best(rounds) for name, rounds in seconds.items()}
    write(
        "ranking",
        {
            "queries": QUERIES,
            "documents_per_query": DEPTH,
            "measures": len(ours),
            "largest_difference_to_pytrec_eval": largest,
            "seconds": {name: [round(each, 3) for each in rounds] for name, rounds in seconds.items()},
            "times_as_fast_as": {
                "pytrec_eval_with_its_dicts_from_arrays": round(fastest["pytrec_eval"] / fastest["arrays"], 2),
                "pytrec_eval_from_dicts": round(fastest["pytrec_eval_from_dicts"] / fastest["dicts"], 2),
                "pytrec_eval_from_a_file": round(fastest["pytrec_eval_file"] / fastest["trec_file"], 2),
                "ranx_from_a_file": round(fastest["ranx_file"] / fastest["trec_file"], 2),
            },
        },
    )


def _contenders(
    query_ids: tuple[str, ...],
    doc_ids: tuple[str, ...],
    docs: Any,
    scores: Any,
    grades: dict[str, dict[str, int]],
    file: Path,
) -> dict[str, Callable[[], Any]]:
    names = [f"{name}_at_{k}" for name, cutoffs in CUTOFFS.items() for k in cutoffs] + ["mrr_at_1000"]
    measures = {f"{TREC_NAMES[name]}.{','.join(map(str, cutoffs))}" for name, cutoffs in CUTOFFS.items()}
    measures.add("recip_rank")
    ranx_names = {"ndcg": "ndcg", "map": "map", "recall": "recall", "precision": "precision"}
    ranx_measures = [f"{ranx_names[name]}@{k}" for name, cutoffs in CUTOFFS.items() for k in cutoffs] + ["mrr@1000"]
    ranx_qrels = ranx.Qrels(grades)

    def to_dict() -> dict[str, dict[str, float]]:
        return {
            query: dict(zip([doc_ids[doc] for doc in found], values, strict=True))
            for query, found, values in zip(query_ids, docs.tolist(), scores.tolist(), strict=True)
        }

    def evaluated(run: dict[str, dict[str, float]]) -> Any:
        return pytrec_eval.RelevanceEvaluator(grades, measures).evaluate(run)

    def arrays() -> Any:
        run = Run.ranked(query_ids=query_ids, doc_ids=doc_ids, docs=docs, scores=scores)
        return ranking.measure(judge(run, Qrels(grades)), names)

    def trec_file() -> Any:
        return ranking.measure(judge(trec.read_run(file), Qrels(grades)), names)

    def pytrec_eval_file() -> Any:
        with file.open(encoding="utf-8") as opened:
            return evaluated(pytrec_eval.parse_run(opened))

    def ranx_file() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = ranx.Run.from_file(str(file), kind="trec")
            return ranx.evaluate(ranx_qrels, run, ranx_measures, return_mean=False)

    as_dict = to_dict()
    return {
        "arrays": arrays,
        "pytrec_eval": lambda: evaluated(to_dict()),
        "dicts": lambda: ranking.measure(judge(Run.from_dict(as_dict), Qrels(grades)), names),
        "pytrec_eval_from_dicts": lambda: evaluated(as_dict),
        "trec_file": trec_file,
        "pytrec_eval_file": pytrec_eval_file,
        "ranx_file": ranx_file,
    }


def _trec_name(name: str) -> str:
    measure, _, k = name.rpartition("_at_")
    return "recip_rank" if measure == "mrr" else f"{TREC_NAMES[measure]}_{k}"


if __name__ == "__main__":
    main()
