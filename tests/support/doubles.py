"""Encoders whose vectors are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Embeddings, TextCounts
from embeval.core.progress import Progress
from embeval.core.protocols import EncoderInfo, TaskRef
from embeval.core.specs import ModelSpec, Role, SimilarityName


@dataclass
class TableEncoder:
    """Gives each text the vector that a table holds for it, and remembers what it was asked."""

    table: Mapping[str, Sequence[float]]
    similarity: SimilarityName = "cosine"
    prompts: Mapping[str, str] = field(default_factory=dict)
    calls: list[tuple[Role, tuple[str, ...]]] = field(default_factory=list)
    counts: Callable[[Sequence[str]], TextCounts] | None = None

    @property
    def spec(self) -> ModelSpec:
        return ModelSpec(name="table", revision="builtin:table")

    @property
    def info(self) -> EncoderInfo:
        return EncoderInfo(
            dim=len(next(iter(self.table.values()))),
            max_seq_length=None,
            similarity=self.similarity,
            prompts=dict(self.prompts),
            pooling=None,
            n_parameters=0,
            device="cpu",
            num_threads=1,
            batch_tokens=1,
        )

    def prompt(self, role: Role, task: TaskRef | None = None) -> str:
        return ""

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: Role,
        task: TaskRef | None = None,
        ids: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Embeddings:
        self.calls.append((role, tuple(texts)))
        vectors = np.array([self.table[text] for text in texts], dtype=np.float32)
        zero = ~vectors.any(axis=1)
        counts = TextCounts(n_texts=len(texts), n_empty=sum(not text.strip() for text in texts), n_zero=int(zero.sum()))
        return Embeddings(vectors=vectors, role=role, normalized=False, spec_digest=self.spec.digest, counts=counts)


def rows(*values: Sequence[float]) -> npt.NDArray[np.float32]:
    """float32 [n, d]."""
    return np.array(values, dtype=np.float32)


@dataclass
class Seen:
    """Progress that adds up."""

    total: int = 0

    def start(self, label: str, total: int, unit: str) -> None:
        """Nothing."""

    def advance(self, amount: int) -> None:
        """Adds."""
        self.total += amount

    def finish(self) -> None:
        """Nothing."""
