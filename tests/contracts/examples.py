"""An example of every registered part, for the contract suites.

A new backend or task type needs one entry here; a test fails until it has one. Indexes and metrics need none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from embeval.core.specs import DatasetRef, ModelSpec, RerankerSpec, Role, TaskSpec
from embeval.encoders import loading
from embeval.language_models import export as language_export
from tests.support import endpoint
from tests.support.data import write_beir, write_jsonl, write_pairs
from tests.support.exports import copy_of, exported_cross_encoder
from tests.support.minimal_pairs import write_blimp
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


def onnx_language_model(checkpoint: Path, folder: Path) -> ModelSpec:
    """The graph of a masked model with its head."""
    folder.mkdir()
    language_export.write_folder(loading.resolve(ModelSpec(name=str(checkpoint))), "masked", folder)
    return ModelSpec(name=str(folder), backend="onnx")


LANGUAGE_MODEL_FORMS: dict[str, Callable[[Path, Path], ModelSpec]] = {
    "onnx": onnx_language_model,
    "transformers": lambda checkpoint, folder: ModelSpec(name=str(checkpoint)),
}
"""Language model backend -> a checkpoint in the form that it runs, made in a folder."""
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


def reranking_task(folder: Path) -> TaskSpec:
    """Three queries with candidates."""
    rows = [
        {"query": "restore backup", "positive": ["restore the backup"], "negative": ["a new token", "scan a page"]},
        {"query": "new token", "positive": ["a new token", "the token of a user"], "negative": ["restore the backup"]},
        {"query": "scan", "positive": ["scan a page"], "negative": ["a new token", "the backup"]},
    ]
    write_jsonl(folder / "pairs.jsonl", rows)
    return TaskSpec(name="example", type="reranking", dataset=DatasetRef(path="pairs.jsonl"))


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


def classification_task(folder: Path) -> TaskSpec:
    """Twelve texts of two labels to learn from, and six to tell."""
    words = ["backup of a file", "restore the backup", "backup server", "user token", "a new token", "token of the day"]
    for split, endings in (("train", ["", " at night"]), ("test", [" again"])):
        rows = [
            {"text": text + ending, "label": "backup" if "backup" in text else "token"}
            for text in words
            for ending in endings
        ]
        write_jsonl(folder / "texts" / f"{split}.jsonl", rows)
    return TaskSpec(name="example", type="classification", dataset=DatasetRef(path="texts"))


def mteb_task(folder: Path) -> TaskSpec:
    """A task of mteb whose data lies in a mirror: the pairs of ``sts_task``."""
    words = ["red backup", "blue backup", "old token", "new token of the day", "a file", "the folder"]
    pairs = [(left, words[-1 - place], place / 2) for place, left in enumerate(words)]
    write_pairs(folder / "mirror" / "STS12" / "test.jsonl", pairs)
    options = {"mirror": "mirror"}
    return TaskSpec(name="mteb:STS12", type="mteb", dataset=DatasetRef(path="STS12"), options=options)


def clustering_task(folder: Path) -> TaskSpec:
    """Eight texts with two labels."""
    texts = [
        "red backup",
        "blue backup",
        "backup of the day",
        "no backup",
        "old token",
        "new token",
        "token",
        "a token",
    ]
    rows = [{"text": text, "label": "backup" if "backup" in text else "token"} for text in texts]
    write_jsonl(folder / "corpus.jsonl", rows)
    return TaskSpec(name="example", type="clustering", dataset=DatasetRef(path="corpus.jsonl"))


def pair_classification_task(folder: Path) -> TaskSpec:
    """Eight pairs, half of which belong together."""
    words = ["red backup", "blue backup", "old token", "new token of the day", "a file", "the folder", "user", "night"]
    rows = [
        {"sentence1": text, "sentence2": words[place - 1] if place % 2 else f"{text} again", "label": 1 - place % 2}
        for place, text in enumerate(words)
    ]
    write_jsonl(folder / "pairs.jsonl", rows)
    return TaskSpec(name="example", type="pair_classification", dataset=DatasetRef(path="pairs.jsonl"))


def bitext_task(folder: Path) -> TaskSpec:
    """Four sentences with what is to be found."""
    words = ["red backup", "blue backup of the server", "old token", "new token of the day"]
    write_jsonl(folder / "pairs.jsonl", [{"sentence1": text, "sentence2": text.split(" ")[-1]} for text in words])
    return TaskSpec(name="example", type="bitext", dataset=DatasetRef(path="pairs.jsonl"))


def summarization_task(folder: Path) -> TaskSpec:
    """Three texts with one summary by a person and three by machines."""
    machines = ["backup of a file", "token of the old server backup", "night"]
    rows = [
        {"human_summaries": [human], "machine_summaries": machines, "relevance": grades}
        for human, grades in (("backup of files", [3, 2, 1]), ("old token", [1, 4, 2]), ("late night file", [2, 1, 5]))
    ]
    write_jsonl(folder / "pairs.jsonl", rows)
    return TaskSpec(name="example", type="summarization", dataset=DatasetRef(path="pairs.jsonl"))


def texts_file(folder: Path) -> str:
    """The name of a file of five texts."""
    texts = ["restore the backup of the server", "a new token", "scan a page", "three users at night", "the archive"]
    write_jsonl(folder / "texts.jsonl", [{"text": text} for text in texts])
    return "texts.jsonl"


def pseudo_likelihood_task(folder: Path) -> TaskSpec:
    """Five texts."""
    return TaskSpec(name="example", type="pseudo_likelihood", dataset=DatasetRef(path=texts_file(folder)))


def replaced_tokens_task(folder: Path) -> TaskSpec:
    """Five texts, of which every other token is replaced, so that none is left as it is."""
    options = {"probability": 0.5}
    return TaskSpec(
        name="example", type="replaced_tokens", dataset=DatasetRef(path=texts_file(folder)), options=options
    )


def masked_lm_task(folder: Path) -> TaskSpec:
    """Five texts, each with a mask."""
    data = DatasetRef(path=texts_file(folder))
    return TaskSpec(name="example", type="masked_lm", dataset=data, options={"at_least_one": True})


def minimal_pairs_task(folder: Path) -> TaskSpec:
    """Eleven pairs of three paradigms."""
    write_blimp(folder / "pairs")
    return TaskSpec(name="example", type="minimal_pairs", dataset=DatasetRef(path="pairs"))


TASKS: dict[str, Callable[[Path], TaskSpec]] = {
    "bitext": bitext_task,
    "classification": classification_task,
    "clustering": clustering_task,
    "masked_lm": masked_lm_task,
    "minimal_pairs": minimal_pairs_task,
    "mteb": mteb_task,
    "pair_classification": pair_classification_task,
    "pseudo_likelihood": pseudo_likelihood_task,
    "replaced_tokens": replaced_tokens_task,
    "reranking": reranking_task,
    "retrieval": retrieval_task,
    "sts": sts_task,
    "summarization": summarization_task,
}
"""Task type -> a small task with its data in a folder."""
