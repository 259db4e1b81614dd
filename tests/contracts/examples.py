"""An example of every registered part, for the contract suites.

A new backend or task type needs one entry here; a test fails until it has one. Indexes and metrics need none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from embeval.core.specs import DatasetRef, ModelSpec, TaskSpec
from tests.support.data import write_beir, write_pairs
from tests.support.models import save_tiny_model

MODELS: dict[str, Callable[[Path], ModelSpec]] = {
    "hashing": lambda folder: ModelSpec(name="hashing", backend="hashing"),
    "sentence_transformers": lambda folder: ModelSpec(name=str(save_tiny_model(folder / "model"))),
}
"""Backend -> a small model in a folder."""


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


TASKS: dict[str, Callable[[Path], TaskSpec]] = {"retrieval": retrieval_task, "sts": sts_task}
"""Task type -> a small task with its data in a folder."""
