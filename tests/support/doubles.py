"""Encoders whose vectors, and a reranker whose scores, are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Embeddings, TextCounts, Work
from embeval.core.progress import Progress
from embeval.core.protocols import EncoderInfo, PairScores, TaskRef
from embeval.core.specs import ModelSpec, RerankerSpec, Role, SimilarityName
from embeval.errors import InvalidEmbeddingsError


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
        if self.counts is not None:
            counts = self.counts(texts)
        return Embeddings(vectors=vectors, role=role, normalized=False, spec_digest=self.spec.digest, counts=counts)


def rows(*values: Sequence[float]) -> npt.NDArray[np.float32]:
    """float32 [n, d]."""
    return np.array(values, dtype=np.float32)


@dataclass
class Seen:
    """Progress that adds up."""

    total: int = 0
    notes: list[str] = field(default_factory=list)

    def start(self, label: str, total: int, unit: str) -> None:
        """Nothing."""

    def advance(self, amount: int) -> None:
        """Adds."""
        self.total += amount

    def finish(self) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Keeps it."""
        self.notes.append(text)


class TableReranker:
    """A ``Reranker`` whose scores are looked up in a table, and that remembers what it was asked."""

    def __init__(self, scores: Mapping[tuple[str, str], float]) -> None:
        self.scores = scores
        self.asked: list[list[tuple[str, str]]] = []
        self.spec = RerankerSpec(name="table", revision="builtin:1")
        self.info = EncoderInfo(
            dim=1,
            max_seq_length=None,
            similarity="dot",
            prompts={},
            pooling=None,
            n_parameters=None,
            device="cpu",
            num_threads=None,
            batch_tokens=1,
        )

    def score(self, pairs: Sequence[tuple[str, str]], *, progress: Progress | None = None) -> PairScores:
        """The table's scores; a number that is not finite is refused as the real one does it."""
        self.asked.append(list(pairs))
        scores = np.array([self.scores[pair] for pair in pairs], dtype=np.float32)
        if bad := [str(row) for row in np.flatnonzero(~np.isfinite(scores))]:
            raise InvalidEmbeddingsError("not finite", tuple(bad))
        return PairScores(
            scores=scores, n_truncated=1, tokens_kept=3 * len(pairs), tokens_lost=1, work=Work(len(pairs), 3)
        )
