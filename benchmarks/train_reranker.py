"""Is a small cross-encoder worth its time, and does it rank alike in torch and in onnxruntime?

Fine-tunes all-MiniLM-L6-v2 as a cross-encoder on one half of the queries of SelQA dev (1 positive sentence against
some negatives, softmax over their scores, split by query, seeded), and writes it to a folder: a reranker to test
with, that is made in minutes on a CPU and needs no download. A folder that is there is taken as it is. Then, on the
queries of the other half, ranks each query's candidates by the bi-encoder that it started from and by the reranker;
and reranks the bi-encoder's first 10 documents of Cranfield from end to end, in torch and from an exported graph.

``python -m benchmarks.train_reranker FOLDER``
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import data_folder, write
from embeval.core import ir
from embeval.core.ir import Qrels, Run
from embeval.core.protocols import Encoder, Reranker
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import ModelSpec, RerankerSpec, Role, RuntimeOptions
from embeval.data.beir import load_beir
from embeval.encoders import export, loading
from embeval.metrics import ranking
from embeval.metrics import rerank as rerank_metrics
from embeval.rerankers import loading as reranker_loading
from embeval.rerankers.rerank import rerank

SEED = 0
THREADS = 2
MAX_LENGTH = 256
NEGATIVES = 6
EPOCHS = 3
QUERIES_PER_STEP = 8
LEARNING_RATE = 5e-5
CRANFIELD_QUERIES, DEPTH = 225, 10
METRICS = ("map_at_1000", "mrr_at_10", "ndcg_at_10")


@dataclass(frozen=True)
class Query:
    """A question with sentences that answer it and others from the same article."""

    id: str
    text: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]


def selqa(data: Path) -> list[Query]:
    """The queries of SelQA dev that have both kinds of sentences."""
    with gzip.open(data / "reranking" / "SelQA" / "dev.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    queries = [Query(row["query_id"], row["query"], tuple(row["positive"]), tuple(row["negative"])) for row in rows]
    return [query for query in queries if query.positive and query.negative]


def halves(queries: Sequence[Query], seed: int = SEED) -> tuple[list[Query], list[Query]]:
    """To train on, and to test on."""
    order = np.random.default_rng(seed).permutation(len(queries))
    middle = len(queries) // 2
    return [queries[row] for row in order[:middle]], [queries[row] for row in order[middle:]]


def train(
    out: Path, queries: Sequence[Query], *, epochs: int = EPOCHS, rate: float = LEARNING_RATE, seed: int = SEED
) -> None:
    """Writes a cross-encoder with one logit, fine-tuned from the demo model, to ``out``."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = loading.resolve(ModelSpec(name="demo")).folder
    assert folder is not None
    random = np.random.default_rng(seed)
    tokenizer = AutoTokenizer.from_pretrained(folder, model_max_length=MAX_LENGTH)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1)
        model.train()
        steps = epochs * -(-len(queries) // QUERIES_PER_STEP)
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps))
        )
        for _ in range(epochs):
            order = random.permutation(len(queries))
            for start in range(0, len(order), QUERIES_PER_STEP):
                groups = [_group(queries[row], random) for row in order[start : start + QUERIES_PER_STEP]]
                loss = _loss(model, tokenizer, groups)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
    model.eval()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def _group(query: Query, random: np.random.Generator) -> tuple[str, list[str]]:
    """The query, and sentences of which the first answers it."""
    chosen = random.permutation(len(query.negative))[:NEGATIVES]
    return query.text, [str(random.choice(query.positive)), *(query.negative[row] for row in chosen)]


def _loss(model: Any, tokenizer: Any, groups: Sequence[tuple[str, list[str]]]) -> Any:
    """Cross-entropy of the first sentence among those of its query."""
    import torch

    left = [query for query, sentences in groups for _ in sentences]
    right = [sentence for _, sentences in groups for sentence in sentences]
    inputs = tokenizer(left, right, truncation="longest_first", padding=True, return_tensors="pt")
    parts = torch.split(model(**inputs).logits[:, 0], [len(sentences) for _, sentences in groups])
    return -torch.stack([torch.log_softmax(part, dim=0)[0] for part in parts]).mean()


@dataclass(frozen=True)
class Candidates:
    """A first stage with the texts and judgments that belong to it."""

    run: Run
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    qrels: Qrels


def selqa_candidates(queries: Sequence[Query], encoder: Encoder) -> Candidates:
    """Each query's own sentences, by their cosine with it."""
    documents, grades = dict[str, str](), dict[str, dict[str, int]]()
    for query in queries:
        for grade, sentences in ((0, query.negative), (1, query.positive)):
            for number, text in enumerate(sentences):
                documents[f"{query.id} {grade} {number}"] = text
                grades.setdefault(query.id, {})[f"{query.id} {grade} {number}"] = grade
    texts = {query.id: query.text for query in queries}
    left = encoder.encode(list(texts.values()), role=Role.QUERY).vectors
    right = encoder.encode(list(documents.values()), role=Role.DOCUMENT).vectors
    row_of = {query: row for row, query in enumerate(texts)}
    owners = [doc.split(" ")[0] for doc in documents]
    cosines = SIMILARITIES["cosine"](left[[row_of[owner] for owner in owners]], right)
    run = Run.from_rows([(o, doc, float(c)) for o, doc, c in zip(owners, documents, cosines, strict=True)])
    return Candidates(run, texts, documents, Qrels(grades))


def cranfield_candidates(data: Path, encoder: Encoder, *, n_queries: int, depth: int) -> Candidates:
    """The first documents of the bi-encoder for the first queries."""
    found = load_beir(data / "retrieval" / "Cranfield")
    queries = {query: found.queries[query] for query in found.qrels.judged[:n_queries]}
    left = encoder.encode(list(queries.values()), role=Role.QUERY).vectors
    right = encoder.encode(list(found.doc_texts), role=Role.DOCUMENT).vectors
    scores = left @ right.T
    docs = np.argsort(-scores, axis=1, kind="stable")[:, :depth].astype(np.int32)
    run = Run.ranked(
        query_ids=list(queries), doc_ids=found.doc_ids, docs=docs, scores=np.take_along_axis(scores, docs, axis=1)
    )
    texts = dict(zip(found.doc_ids, found.doc_texts, strict=True))
    return Candidates(run, queries, texts, Qrels({query: found.qrels.judgments[query] for query in queries}))


def figures(candidates: Candidates, reranker: Reranker, depth: int) -> tuple[dict[str, Any], Run, Any]:
    """(means of the metrics before, after and at best, the reranked run, its scores)."""
    done = rerank(candidates.run, depth, reranker, candidates.queries, candidates.documents)
    before, after = (ir.judge(run, candidates.qrels) for run in (candidates.run, done.run))
    columns = {
        **ranking.measure(after, METRICS),
        **rerank_metrics.columns(before, after, rerank_metrics.names(METRICS, depth=depth), depth=depth),
    }
    counts = {
        "queries": len(candidates.run.query_ids),
        "pairs": done.n_pairs,
        "pairs_truncated": done.scored.n_truncated,
        "relevant_never_candidates": rerank_metrics.positives_never_candidates(before, depth),
        "pairs_per_s": round(done.n_pairs / done.seconds, 1),
    }
    return {**{name: round(float(c.mean()), 4) for name, c in columns.items()}, **counts}, done.run, done.scored.scores


def main() -> None:
    """Trains, measures and writes the figures."""
    data = data_folder()
    if data is None or len(sys.argv) != 2:
        sys.exit("Usage: python -m benchmarks.train_reranker FOLDER, with EMBEVAL_TEST_DATA set.")
    out, runtime = Path(sys.argv[1]), RuntimeOptions(num_threads=THREADS, device="cpu")
    sys.argv[1:] = ["FOLDER"]  # where it lies on this machine is nobody's business in the results
    import torch

    torch.set_num_threads(THREADS)
    learned, held_out = halves(selqa(data))
    began = time.perf_counter()
    if not out.exists():
        train(out, learned)
    trained_s = time.perf_counter() - began
    encoder = loading.load(loading.resolve(ModelSpec(name="demo")), runtime)
    graph = out.with_name(f"{out.name}-onnx")
    shutil.rmtree(graph, ignore_errors=True)
    graph.mkdir()
    export.write_cross_encoder(loading.resolve(ModelSpec(name=str(out))), graph)
    own, exported = (
        reranker_loading.load(reranker_loading.resolve(spec), runtime)
        for spec in (RerankerSpec(name=str(out)), RerankerSpec(name=str(graph), backend="onnx"))
    )
    selqa_figures, _, _ = figures(selqa_candidates(held_out, encoder), own, depth=1000)
    cranfield = cranfield_candidates(data, encoder, n_queries=CRANFIELD_QUERIES, depth=DEPTH)
    in_torch, torch_run, torch_scores = figures(cranfield, own, DEPTH)
    in_onnx, onnx_run, onnx_scores = figures(cranfield, exported, DEPTH)
    write(
        "reranker",
        {
            "training": {"queries": len(learned), "epochs": EPOCHS, "seconds": round(trained_s, 1)},
            "selqa_held_out": selqa_figures,
            "cranfield_torch": in_torch,
            "cranfield_onnx": {"pairs_per_s": in_onnx["pairs_per_s"], **_differences(in_torch, in_onnx)},
            "torch_against_onnx": {
                "largest_score_difference": float(np.abs(torch_scores - onnx_scores).max()),
                "queries_with_another_order": int((torch_run.docs != onnx_run.docs).any(axis=1).sum()),
            },
        },
    )


def _differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {f"difference_{name}": round(other[name] - one[name], 6) for name in METRICS}


if __name__ == "__main__":
    main()
