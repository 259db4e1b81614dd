"""How fast is exact search beside torch and mteb, and what do the approximate indexes find and take?

``exact``:

- 1,000,000 x 384 vectors on disk, 1,000 queries, 100 hits: beside torch's matmul and topk in chunks of 50,000, and
  beside mteb's search with its encoder stubbed and 30 words of text for each document.

``approximate``: 100,000 x 384 clustered vectors: recall, latency, size and build time of each approximate kind. HNSW is
built by one thread, which at a million would take half an hour.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.harness import best, interleaved, write
from embeval.core.embeddings import Vectors, unit
from embeval.retrieval import approximate
from embeval.retrieval.kinds import INDEXES, Neighbours
from embeval.retrieval.recall import ann_recall
from embeval.retrieval.search import TopK
from embeval.retrieval.vectors_file import VectorsWriter, open_vectors

DOCUMENTS, FEWER, DIM, QUERIES, K, CHUNK = 1_000_000, 100_000, 384, 1_000, 100, 50_000
APPROXIMATE = ("hnsw", "ivf", "ivf_pq", "sq8", "binary")
PASSAGE = " ".join(["passage"] * 30)
"""What stands for a document's text, which mteb hands on though nothing is encoded."""
SINGLE = 100
"""Queries asked one at a time."""


def main() -> None:
    """Measures and writes the figures: of both parts, or of the one that is named."""
    part = sys.argv[1] if len(sys.argv) > 1 else "both"
    if part == "only-ours":
        _exact(open_vectors(Path(sys.argv[2])), _random(QUERIES, seed=1))
        print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
        return
    if part in ("exact", "both"):
        write("search", _against_peers())
    if part in ("approximate", "both"):
        write("search_approximate", _approximate())


def _against_peers() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "vectors.npy"
        with VectorsWriter(path, DIM) as writer:
            for number in range(DOCUMENTS // CHUNK):
                writer.append(_random(CHUNK, seed=100 + number))
        return {
            "dimensions": DIM,
            "queries": QUERIES,
            "k": K,
            "beside_torch": {f"threads_{threads}": _beside_torch(path, threads) for threads in (1, 2)},
            "beside_mteb": _beside_mteb(path),
            "peak_resident_gib": _resident(path),
        }


def _random(n: int, *, seed: int) -> Vectors:
    return unit(np.random.default_rng(seed).standard_normal((n, DIM), dtype=np.float32))


def _exact(vectors: Vectors, queries: Vectors) -> Neighbours:
    top = TopK(queries, k=K, similarity="cosine", tie_keys=np.arange(len(vectors)))
    for start in range(0, len(vectors), CHUNK):
        top.add(vectors[start : start + CHUNK])
    return top.result()


def _torch(vectors: Vectors, queries: Vectors) -> npt.NDArray[np.int64]:
    import torch

    asked = torch.from_numpy(queries)
    scores, positions = torch.empty(len(queries), 0), torch.empty(len(queries), 0, dtype=torch.int64)
    for start in range(0, len(vectors), CHUNK):
        chunk = torch.from_numpy(np.array(vectors[start : start + CHUNK]))
        values, places = torch.topk(asked @ chunk.T, K, dim=1)
        scores, chosen = torch.topk(torch.cat([scores, values], dim=1), K, dim=1)
        positions = torch.gather(torch.cat([positions, places + start], dim=1), 1, chosen)
    return positions.numpy()


def _beside_torch(path: Path, threads: int) -> dict[str, Any]:
    import torch

    torch.set_num_threads(threads)
    vectors, queries = open_vectors(path), _random(QUERIES, seed=1)
    found: dict[str, npt.NDArray[np.int64]] = {}
    seconds = interleaved(
        {
            "embeval": lambda: found.update(embeval=_exact(vectors, queries).positions),
            "torch": lambda: found.update(torch=_torch(vectors, queries)),
        },
        rounds=2,
    )
    same = (np.sort(found["embeval"], axis=1) == np.sort(found["torch"], axis=1)).all(axis=1)
    return {
        "documents": DOCUMENTS,
        "seconds": _rounded(seconds),
        "times_as_fast_as_torch": round(best(seconds["torch"]) / best(seconds["embeval"]), 2),
        "queries_with_the_same_documents": int(same.sum()),
    }


def _resident(path: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_search", "only-ours", str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    return round(int(done.stdout) / 2**20, 2)


def _beside_mteb(path: Path) -> dict[str, Any]:
    import datasets
    import mteb
    from mteb.models.search_wrappers import chunked_full_corpus_search
    from mteb.similarity_functions import cos_sim

    logging.disable(logging.INFO)
    datasets.disable_progress_bars()
    vectors, queries = np.array(open_vectors(path)), _random(QUERIES, seed=1)
    ids = [str(number) for number in range(DOCUMENTS)]
    corpus = datasets.Dataset.from_dict({"id": ids, "title": [""] * DOCUMENTS, "text": [PASSAGE] * DOCUMENTS})
    metadata = mteb.get_task("SciFact").metadata
    found: dict[str, Any] = {}

    def theirs() -> None:
        starts = iter(range(0, DOCUMENTS, CHUNK))
        found["mteb"] = chunked_full_corpus_search(
            task_corpus=corpus,
            corpus_chunk_size=CHUNK,
            query_idx_to_id={number: str(number) for number in range(QUERIES)},
            query_embeddings=queries,
            task_metadata=metadata,
            hf_subset="default",
            hf_split="test",
            top_k=K,
            encode_kwargs={"show_progress_bar": False},
            encode_fn=lambda *_, **__: (lambda start: vectors[start : start + CHUNK])(next(starts)),
            similarity_fn=cos_sim,
        )

    seconds = interleaved({"embeval": lambda: found.update(embeval=_exact(vectors, queries)), "mteb": theirs}, rounds=2)
    same = sum(
        {int(doc) for _, doc in found["mteb"][str(row)]} == set(found["embeval"].positions[row].tolist())
        for row in range(QUERIES)
    )
    return {
        "documents": DOCUMENTS,
        "mteb": mteb.__version__,
        "seconds": _rounded(seconds),
        "times_as_fast_as_mteb": round(best(seconds["mteb"]) / best(seconds["embeval"]), 2),
        "queries_with_the_same_documents": same,
    }


def _clustered(n: int, *, seed: int) -> Vectors:
    """Unit vectors with the look of embeddings: 500 topics in 48 dimensions, seen through 384, and some noise."""
    shared, rng = np.random.default_rng(0), np.random.default_rng(seed)
    topics = shared.standard_normal((500, 48))
    view = shared.standard_normal((48, DIM)) / 48**0.5
    latent = topics[rng.integers(0, 500, n)] + 0.8 * rng.standard_normal((n, 48))
    return unit((latent @ view + 0.2 * rng.standard_normal((n, DIM))).astype(np.float32))


def _approximate() -> dict[str, Any]:
    vectors, queries = _clustered(FEWER, seed=1), _clustered(QUERIES, seed=2)
    keys = np.arange(FEWER)
    exact = _exact(vectors, queries)
    rows: dict[str, Any] = {"exact": {**_latency(lambda some: _exact(vectors, some), queries), "recall_at_10": 1.0}}
    for kind in APPROXIMATE:
        began = time.perf_counter()
        index = approximate.build(vectors, kind=kind, similarity="cosine", options={})
        built = time.perf_counter() - began

        def ask(some: Vectors, index: Any = index) -> Neighbours:
            return approximate.search(index, vectors, some, k=K, similarity="cosine", tie_keys=keys)

        found = ask(queries)
        recall = {
            f"recall_at_{k}": round(
                float(ann_recall(found.positions, exact.positions, exact.scores, found.scores, k).mean()), 4
            )
            for k in (10, 100)
        }
        rows[kind] = {
            "summary": INDEXES.get(kind).summary,
            "options": dict(index.settled),
            **recall,
            **_latency(ask, queries),
            "index_mb": round(index.n_bytes() / 1e6, 1),
            "build_s": round(built, 1),
        }
    return {
        "documents": FEWER,
        "dimensions": DIM,
        "queries": QUERIES,
        "k": K,
        "vectors_mb": round(vectors.nbytes / 1e6, 1),
        "kinds": rows,
    }


def _latency(ask: Callable[[Vectors], Any], queries: Vectors) -> dict[str, float]:
    def milliseconds(work: Callable[[], None], n: int) -> float:
        seconds = interleaved({"it": work}, rounds=3)
        return round(best(seconds["it"]) * 1000 / n, 3)

    def singly() -> None:
        for row in range(SINGLE):
            ask(queries[row : row + 1])

    return {
        "ms_per_query_alone": milliseconds(singly, SINGLE),
        "ms_per_query_of_1000": milliseconds(lambda: ask(queries), len(queries)),
    }


def _rounded(seconds: dict[str, list[float]]) -> dict[str, list[float]]:
    return {name: [round(each, 2) for each in rounds] for name, rounds in seconds.items()}


if __name__ == "__main__":
    main()
