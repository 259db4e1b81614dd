"""An example of every registered part, for the contract suites.

A new backend or task type needs one entry here; a test fails until it has one. Indexes and metrics need none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from embeval.core.specs import DatasetRef, ModelSpec, RerankerSpec, Role, TaskSpec
from embeval.encoders import loading
from tests.support import endpoint
from tests.support.data import write_beir, write_pairs
from tests.support.exports import copy_of, exported_cross_encoder
from tests.support.models import (
    save_tiny_checkpoint,
    save_tiny_cross_encoder,
    save_tiny_model,
    save_tiny_static,
)

TEXTS = [
    "restore a backup of the old server",
    "token",
    "",
    "   \n\t ",
    "RESTORE a Backup of the OLD server",
    "é ü ß 東京タワー שלום 🙂🙃 \u202eabc",
    "x" * 100_000,
    "backup " * 20_000,
    "token",
    "a\x00b",
]
"""What the suite for encoders encodes."""


def endpoint_model(folder: Path) -> ModelSpec:
    """A model behind a local server, which runs until the tests end."""
    return ModelSpec(name="some-model", backend="openai", args={"base_url": endpoint.forever().url})


def precomputed_model(folder: Path) -> ModelSpec:
    """The vectors of the hashing baseline for ``TEXTS``, as a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [*dict.fromkeys(TEXTS), "backup"]
    vectors = loading.load(loading.resolve(MODELS["hashing"](folder))).encode(texts, role=Role.TEXT).vectors
    pq.write_table(pa.table({"text": texts, "embedding": list(vectors)}), folder / "vectors.parquet")
    return ModelSpec(name=str(folder / "vectors.parquet"), backend="precomputed")


MODELS: dict[str, Callable[[Path], ModelSpec]] = {
    "hashing": lambda folder: ModelSpec(name="hashing", backend="hashing"),
    "onnx": lambda folder: ModelSpec(name=str(copy_of("tiny", folder / "model")), backend="onnx"),
    "openai": endpoint_model,
    "precomputed": precomputed_model,
    "sentence_transformers": lambda folder: ModelSpec(name=str(save_tiny_model(folder / "model"))),
    "static": lambda folder: ModelSpec(name=str(save_tiny_static(folder / "model", normalize=True)), backend="static"),
    "transformers": lambda folder: ModelSpec(
        name=str(save_tiny_checkpoint(folder / "model", "bert")), backend="transformers", pooling="mean"
    ),
}
"""Backend -> a small model in a folder; those that give vectors."""


def ranking_file(folder: Path) -> ModelSpec:
    """A run over ``RANKED``: each query finds all documents, with many equal scores."""
    lines = [
        f"{query} Q0 {doc} 1 {len(set(text.split()) & set(other.split())) / 4} example\n"
        for query, text in RANKED_QUERIES.items()
        for doc, other in RANKED.items()
        if text.strip()
    ]
    (folder / "example.trec").write_text("".join(lines), encoding="utf-8")
    return ModelSpec(name=str(folder / "example.trec"), backend="ranking")


RANKED = {f"d{number}": text for number, text in enumerate([*TEXTS, "backup server", "server backup", "new token"])}
"""Documents of the suite for rankers."""
RANKED_QUERIES = {"q1": "backup", "q2": "new token", "q3": "", "q4": "restore the old server", "q5": " \n"}
"""Its queries; two are empty."""
RANKERS: dict[str, Callable[[Path], ModelSpec]] = {
    "bm25": lambda folder: ModelSpec(name="bm25", backend="bm25"),
    "ranking": ranking_file,
}
"""Backend -> a system that ranks documents itself."""
HYBRIDS: dict[str, Callable[[Path], ModelSpec]] = {
    "hybrid": lambda folder: ModelSpec(name="hashing+bm25", backend="hybrid"),
}
"""Backend -> a system of several."""
RERANKER_MODELS: dict[str, Callable[[Path], RerankerSpec]] = {
    "onnx": lambda folder: RerankerSpec(name=str(exported_cross_encoder()), backend="onnx"),
    "sentence_transformers": lambda folder: RerankerSpec(name=str(save_tiny_cross_encoder(folder / "model"))),
}
"""Reranker backend -> a small model in a folder."""
NEED_A_SERVER = {"openai"}
"""Backends whose example talks to a local server."""
WITHOUT_PROMPTS = {"precomputed"}
"""Backends that put nothing before a text."""
WITHOUT_A_LIMIT = {"openai", "precomputed"}
"""Backends that can't cut a text to a number of tokens, nor tell what was cut."""


def sts_task(folder: Path) -> TaskSpec:
    """Six pairs."""
    words = ["red backup", "blue backup", "old token", "new token of the day", "a file", "the folder"]
    write_pairs(folder / "pairs.jsonl", [(left, words[-1 - place], place / 2) for place, left in enumerate(words)])
    return TaskSpec(name="example", type="sts", dataset=DatasetRef(path="pairs.jsonl"))


def retrieval_task(folder: Path) -> TaskSpec:
    """Six documents, three queries."""
    write_beir(
        folder / "beir",
        corpus={
            "d1": "restore the backup of the server",
            "d2": "a new token for the user",
            "d3": "scan a page into the archive",
            "d4": "delete the old folder",
            "d5": "the key of the archive",
            "d6": "three users at night",
        },
        queries={"q1": "backup restore", "q2": "user token", "q3": "archive key"},
        qrels={"q1": {"d1": 2, "d4": 0}, "q2": {"d2": 2, "d6": 1}, "q3": {"d5": 2, "d3": 1}},
    )
    return TaskSpec(name="example", type="retrieval", dataset=DatasetRef(path="beir"))


def mteb_task(folder: Path) -> TaskSpec:
    """Six pairs, laid out as the mirror of a task of mteb."""
    write_pairs(
        folder / "mirror" / "BIOSSES" / "test.jsonl",
        [
            ("a backup of the server was restored", "the server got its backup back", 3.6),
            ("a backup of the server was restored", "cells divide within a day", 0.2),
            ("the token is valid for a day", "a token stays valid for one day", 4.0),
            ("the folder holds old files", "old files lie in the folder", 3.8),
            ("the folder holds old files", "the archive holds old backup files", 2.4),
            ("the key opens the archive", "users sleep at night", 0.0),
        ],
    )
    return TaskSpec(name="example", type="mteb", dataset=DatasetRef(path="BIOSSES"), options={"mirror": "mirror"})


TASKS: dict[str, Callable[[Path], TaskSpec]] = {"mteb": mteb_task, "retrieval": retrieval_task, "sts": sts_task}
"""Task type -> a small task with its data in a folder."""
