"""The reranker that all backends share: an encoder whose texts are pairs and whose vectors are scores.

So batches by length, the cache, the search for a batch that fits into memory, and bits that are equal for equal input
are those of ``encoders.encoder``. Scores are logits in float32: a sigmoid would make large ones equal, above all in
half precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from embeval.core.progress import Progress
from embeval.core.protocols import EncoderInfo, PairScores
from embeval.core.specs import ModelSpec, RerankerSpec, Role
from embeval.encoders import tokens
from embeval.encoders.batching import Rows
from embeval.encoders.encoder import BatchedEncoder
from embeval.encoders.shelves import Shelves
from embeval.errors import InvalidEmbeddingsError
from embeval.rerankers import pairs
from embeval.rerankers.declared import Declared
from embeval.rerankers.pairs import PairTokens, Template

COLUMNS = 2
"""Numbers per pair, in the model's place of dimensions: its score, and how many tokens of the document were left."""


def as_model(spec: RerankerSpec) -> ModelSpec:
    """The spec in the words of encoders. Its backend is none of theirs, so that nothing cached is ever mixed up."""
    return ModelSpec(
        name=spec.name,
        backend=f"rerankers.{spec.backend}",
        revision=spec.revision,
        max_seq_length=spec.max_seq_length,
        dtype=spec.dtype,
        args=spec.args,
    )


class Logits(Protocol):
    """What differs from library to library."""

    def __call__(self, features: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.float32]:
        """float32 [B]: the scores of a batch of padded pairs, ``input_ids`` and what else belongs to them [B, T].

        Raises ``MemoryError`` where they don't fit; fewer are then tried.
        """


class PairBackend:
    """Pairs in, scores out; fits ``encoders.encoder.Backend``."""

    default_prompt_name: str | None = None

    def __init__(
        self, tokenizer: Any, template: Template, *, left: bool | None, info: EncoderInfo, run: Logits
    ) -> None:
        self._tokenizer, self._left, self._run = tokenizer, left, run
        self._template = template
        self.info = info

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> PairTokens:
        """The pairs, tokenised and cut."""
        return pairs.tokenize(self._tokenizer, self._template, texts, self.info.max_seq_length)

    def forward(self, prepared: PairTokens, rows: Rows) -> npt.NDArray[np.float32]:
        """float32 [len(rows), 2]: ``COLUMNS`` of those pairs."""
        scores = self._run(tokens.pad(self._tokenizer, prepared, rows, left=self._left))
        return np.stack([scores, prepared.document[rows].astype(np.float32)], axis=1)


class CrossEncoder:
    """A ``Reranker`` made of a backend, with a cache or without."""

    def __init__(self, spec: RerankerSpec, encoder: BatchedEncoder[Any]) -> None:
        self.spec = spec
        self.encoder = encoder

    def with_cache(self, shelves: Shelves) -> CrossEncoder:
        """The same reranker, which keeps what it computes and finds it again."""
        return CrossEncoder(self.spec, self.encoder.with_cache(shelves))

    def with_measured_budget(self) -> CrossEncoder:
        """The same reranker with the budget that was found fastest for long pairs; takes some seconds."""
        return CrossEncoder(self.spec, self.encoder.with_measured_budget(lambda words: pairs.joined(words, words)))

    @property
    def info(self) -> EncoderInfo:
        """Limits and hardware; 1 dimension."""
        return replace(self.encoder.info, dim=1)

    @property
    def late_load_s(self) -> float:
        """Seconds that loading the model took where that happened within ``score``, because a pair was missing."""
        return self.encoder.late_load_s

    def score(self, pairs_: Sequence[tuple[str, str]], *, progress: Progress | None = None) -> PairScores:
        """Scores of (query, document) pairs, in their order; equal pairs go through the model once.

        Raises ``InvalidEmbeddingsError`` with the numbers of the pairs as ``ids`` where the model gives NaN or Inf.
        """
        texts = [pairs.joined(query, document) for query, document in pairs_]
        numbers = [str(number) for number in range(len(texts))]
        try:
            made = self.encoder.encode(texts, role=Role.TEXT, ids=numbers, progress=progress)
        except InvalidEmbeddingsError as error:
            raise InvalidEmbeddingsError(
                f"Reranker {self.spec.name!r} ({self.spec.dtype} on {self.info.device}) gave a score that is no finite "
                f"number, such as for the pairs number {', '.join(error.ids)}, counted from 0.\n"
                "Nothing was ranked. If the model runs in float16, try bfloat16 or float32.",
                error.ids,
            ) from error
        written = np.array([bool(document.strip()) for _, document in pairs_], dtype=np.bool_)
        counts = made.counts
        return PairScores(
            scores=np.ascontiguousarray(made.vectors[:, 0]),
            n_truncated=counts.n_truncated or 0,
            n_document_lost=int((written & (made.vectors[:, 1] == 0)).sum()),
            tokens_kept=counts.tokens_kept or 0,
            tokens_lost=counts.tokens_lost or 0,
            work=made.work,
        )


def choose_limit(
    tokenizer: Any, declared: Declared, spec: RerankerSpec, *, positions: int | None
) -> tuple[int | None, list[str]]:
    """(tokens to keep of a pair, remarks). Raises ``ModelError`` where what is asked for can't be."""
    if declared.max_seq_length is not None:
        tokenizer.model_max_length = declared.max_seq_length
    return tokens.choose_limit(tokenizer, asked=spec.max_seq_length, positions=positions, name=spec.name, pair=True)
