"""What first stages find: BM25, all-MiniLM-L6-v2, and both fused; and how long BM25 takes beside bm25s itself.

BM25 has Lucene's k1 and b, chosen among the three settings in use that are measured here, and not the best of them on
every set; fusion has the rrf_k of its source, and equal weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from embeval.core import ir
from embeval.core.ir import Run, TieRule
from embeval.core.protocols import Encoder, Ranker
from embeval.core.specs import ModelSpec, Role
from embeval.data.beir import RetrievalData, Unreachable, load_beir
from embeval.encoders import lexicon, loading
from embeval.encoders.cache import open_cache
from embeval.metrics import ranking
from embeval.retrieval.fusion import fuse, part_depth
from embeval.retrieval.search import TopK

SETS = ("SciFact", "Cranfield", "CISI", "Vaswani_NPL")
METRICS = ("ndcg_at_10", "recall_at_100")
DEPTH = part_depth(100)
TIES = TieRule.DOC_ID_DESC
ROUNDS = 3
BM25 = {
    "bm25 (k1=1.2, b=0.75, Lucene's)": {},
    "bm25 (k1=0.9, b=0.4, Anserini's)": {"k1": 0.9, "b": 0.4},
    "bm25 (k1=1.5, b=0.75, bm25s')": {"k1": 1.5, "b": 0.75},
}


def main() -> None:
    """Runs all sets and writes the figures."""
    folder = harness.data_folder()
    if folder is None:
        raise SystemExit("Set EMBEVAL_TEST_DATA to the folder of evaluation data.")
    encoder = loading.load(loading.resolve(ModelSpec(name="demo")), cache=open_cache())
    figures: dict[str, Any] = {"seconds to index SciFact and rank 300 queries": speed(folder)}
    for name in SETS:
        data = load_beir(folder / "retrieval" / name, unreachable=Unreachable.KEEP)
        queries = tuple(query for query in data.qrels.judged if query not in data.unanswerable)
        runs = {system: by_words(data, queries, args) for system, args in BM25.items()}
        lexical, dense = next(iter(runs.values())), by_vectors(data, queries, encoder)
        runs["all-MiniLM-L6-v2"] = dense
        runs["hybrid (rrf, rrf_k=60)"] = fuse([dense, lexical], method="rrf", depth=DEPTH, ties=TIES)
        runs["hybrid (weighted 0.5, 0.5)"] = fuse(
            [dense, lexical], method="weighted", weights=(0.5, 0.5), depth=DEPTH, ties=TIES
        )
        figures[name] = {
            "documents": len(data.doc_ids),
            "queries": len(queries),
            "scores": {system: measured(run, data) for system, run in runs.items()},
        }
        harness.write("first_stage", figures)  # after each set: encoding the next one takes minutes


def by_words(data: RetrievalData, queries: tuple[str, ...], args: dict[str, Any]) -> Run:
    """The ranking of BM25."""
    ranker = loading.load_system(loading.resolve(ModelSpec(name="bm25", backend="bm25", args=args)))
    assert isinstance(ranker, Ranker)
    texts = [data.queries[query] for query in queries]
    return ranker.rank(data.doc_ids, data.doc_texts, queries, texts, depth=DEPTH, ties=TIES)


def by_vectors(data: RetrievalData, queries: tuple[str, ...], encoder: Encoder) -> Run:
    """The ranking of an encoder."""
    asked = encoder.encode([data.queries[query] for query in queries], role=Role.QUERY, ids=queries)
    keys = ir.tie_keys(data.doc_ids, TIES)
    top = TopK(asked.vectors, k=DEPTH, similarity=encoder.info.similarity, tie_keys=keys)
    top.add(encoder.encode(data.doc_texts, role=Role.DOCUMENT, ids=data.doc_ids).vectors)
    found = top.result()
    docs = found.positions.astype(np.int32)
    return Run.ranked(query_ids=queries, doc_ids=data.doc_ids, docs=docs, scores=found.scores, ties=TIES)


def measured(run: Run, data: RetrievalData) -> dict[str, float]:
    """Means over the judged queries."""
    judged = ir.judge(run, data.qrels, exclude=data.unanswerable)
    columns = ranking.measure(judged, METRICS, ranking.Options())
    return {name: round(float(np.mean(columns[name])), 4) for name in METRICS}


def speed(folder: Path) -> dict[str, float]:
    """The fastest of several rounds."""
    data = load_beir(folder / "retrieval" / "SciFact")
    queries = tuple(data.qrels.judged)
    texts = [data.queries[query] for query in queries]

    def direct() -> None:
        import Stemmer

        library = lexicon.bm25s()
        stemmer = Stemmer.Stemmer("english")
        index = library.BM25(k1=1.2, b=0.75)
        index.index(library.tokenize(list(data.doc_texts), stemmer=stemmer, show_progress=False), show_progress=False)
        tokens = library.tokenize(texts, stemmer=stemmer, show_progress=False)
        index.retrieve(tokens, k=DEPTH, show_progress=False)

    contenders = {"embeval bm25": lambda: by_words(data, queries, {}), "bm25s 0.3.16 used directly": direct}
    return {
        name: round(harness.best(found), 3) for name, found in harness.interleaved(contenders, rounds=ROUNDS).items()
    }


if __name__ == "__main__":
    main()
