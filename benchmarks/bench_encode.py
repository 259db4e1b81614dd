"""How many tokens per second does all-MiniLM-L6-v2 encode in float32, by batch budget, beside the library itself?

Texts are the first 500 SciFact documents (title and text).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import best, data_folder, interleaved, write
from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.data.beir import load_beir
from embeval.encoders import loading

DOCUMENTS = 500
BUDGETS = (512, 1024, 2048, 4096, 8192, 16384)


def main() -> None:
    """Measures and writes the figures."""
    folder = data_folder()
    if folder is None:
        sys.exit("bench_encode.py needs the SciFact documents: set EMBEVAL_TEST_DATA.")
    texts = list(load_beir(folder / "retrieval" / "SciFact").doc_texts[:DOCUMENTS])
    located = loading.resolve(ModelSpec(name="demo"))
    encoders = {budget: loading.load(located, RuntimeOptions(batch_tokens=budget)) for budget in BUDGETS}

    from sentence_transformers import SentenceTransformer

    library = SentenceTransformer(str(located.folder), device="cpu", local_files_only=True)
    default = loading.load(located)
    embeddings = default.encode(texts, role=Role.DOCUMENT)
    theirs = library.encode(texts, batch_size=32)
    cosine = (embeddings.vectors * theirs).sum(axis=1)
    assert cosine.min() > 0.999999
    tokens = embeddings.counts.tokens_kept
    assert tokens is not None

    contenders: dict[str, Callable[[], Any]] = {
        f"budget {budget}": partial(encoder.encode, texts, role=Role.DOCUMENT) for budget, encoder in encoders.items()
    }
    contenders["sentence-transformers, batch 32"] = partial(library.encode, texts, batch_size=32)
    seconds = interleaved(contenders, rounds=3)
    speed = {name: round(tokens / best(rounds)) for name, rounds in seconds.items()}
    mine = f"budget {default.info.batch_tokens}"
    write(
        "encode",
        {
            "documents": DOCUMENTS,
            "tokens": tokens,
            "threads": default.info.num_threads,
            "smallest_cosine_to_library": float(np.min(cosine)),
            "seconds": {name: [round(each, 2) for each in rounds] for name, rounds in seconds.items()},
            "tokens_per_second": speed,
            "default": mine,
            "times_as_fast_as_library": round(speed[mine] / speed["sentence-transformers, batch 32"], 2),
        },
    )


if __name__ == "__main__":
    main()
