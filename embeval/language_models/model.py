"""The language model that all backends share: an encoder whose texts are variants and whose vectors are their scores.

So batches by length under a token budget, each distinct variant once, the cache, resuming after a kill, and the search
for a batch that fits into memory are those of ``encoders.encoder``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Work
from embeval.core.progress import Progress
from embeval.core.protocols import EncoderInfo
from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import ModelSpec, Role
from embeval.encoders.batching import Rows
from embeval.encoders.encoder import BatchedEncoder
from embeval.errors import InvalidEmbeddingsError, ModelError
from embeval.language_models import tokenization
from embeval.language_models.tokenization import Frame, Text
from embeval.language_models.variants import Variants

COLUMNS = 3
"""Numbers per variant, in the model's place of dimensions; see ``Scores``."""
TOP = 5
"""Hits are counted at 1 and at this many."""
KEPT, REPLACED = 0, 1
"""The two things that a discriminator says of a token: its targets."""


@dataclass(frozen=True)
class Scores:
    """What a model says of variants, each summed over its targets."""

    log_prob: npt.NDArray[np.float64]
    """float64 [n]: natural log of the probability of the tokens wanted."""
    hits_1: npt.NDArray[np.float64]
    """float64 [n]: how many of them are the model's first guess; tokens with equal scores share the places."""
    hits_5: npt.NDArray[np.float64]
    """float64 [n]: how many of them are among its first five; of a discriminator: how many of the replaced tokens it
    tells."""
    work: Work
    """What went through the model; what came from the cache did not."""


def info_of(
    *,
    device: str,
    num_threads: int | None,
    batch_tokens: int,
    n_parameters: int | None = None,
    extra: Mapping[str, str] | None = None,
    remarks: tuple[str, ...] = (),
) -> EncoderInfo:
    """What a backend tells of a loaded model; what is said of vectors does not act on scores.

    How many tokens it takes is known by its tokenizer: see ``LanguageModel.limit``.
    """
    return EncoderInfo(
        dim=COLUMNS,
        max_seq_length=None,
        similarity="dot",
        prompts={},
        pooling=None,
        n_parameters=n_parameters,
        device=device,
        num_threads=num_threads,
        batch_tokens=batch_tokens,
        extra=extra or {},
        remarks=remarks,
    )


class TokenScorer(Protocol):
    """What differs from library to library."""

    def __call__(
        self,
        features: dict[str, npt.NDArray[np.int64]],
        rows: npt.NDArray[np.intp],
        places: npt.NDArray[np.intp],
        targets: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.float32]:
        """float32 [M, 3]: the natural log-probability of each target, and how many tokens have a larger score.

        The third is how many have an equal score, itself included.
        ``features`` are padded texts [B, T]; target j stands at ``places[j]`` of text ``rows[j]``. A causal model is
        asked at the place before. Raises ``MemoryError`` where they don't fit; fewer are then tried.
        """


class VariantBackend:
    """Variants in, scores out; fits ``encoders.encoder.Backend``."""

    default_prompt_name: str | None = None

    def __init__(self, info: EncoderInfo, kind: Kind, run: TokenScorer, *, pad_id: int) -> None:
        self.info, self.run = info, run
        self._kind, self._pad_id = kind, pad_id

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> Variants:
        """The variants, unpacked."""
        return Variants.of(texts)

    def forward(self, prepared: Variants, rows: Rows) -> npt.NDArray[np.float32]:
        """float32 [len(rows), 3]: sums over the targets of each."""
        of_row, places, targets = prepared.wanted(rows)
        found = self.run(prepared.padded(rows, self._pad_id), of_row, places, targets)
        larger, equal = found[:, 1].astype(np.float64), np.maximum(found[:, 2], 1).astype(np.float64)
        first = np.clip((1 - larger) / equal, 0, 1)
        third = first * (targets == REPLACED) if self._kind == "replaced" else np.clip((TOP - larger) / equal, 0, 1)
        sums = np.zeros((len(rows), COLUMNS), dtype=np.float64)
        np.add.at(sums, of_row, np.stack([found[:, 0], first, third], axis=1))
        return sums.astype(np.float32)


def as_model(spec: ModelSpec, kind: Kind) -> ModelSpec:
    """The spec in the words of encoders: what doesn't act on tokens is left out, so that variants are found again.

    Its backend is none of theirs, so that nothing cached is ever mixed up. The limit only decides where texts are cut
    into windows, which variants show themselves.
    """
    return ModelSpec(
        name=spec.name,
        backend=f"language_models.{kind}.{spec.backend}",
        revision=spec.revision,
        dtype=spec.dtype,
        args=spec.args,
    )


class LanguageModel:
    """A model with its head, its tokenizer and what the tokenizer puts around a text."""

    def __init__(
        self,
        spec: ModelSpec,
        kind: Kind,
        tokenizer: Any,
        frame: Frame,
        *,
        limit: int | None,
        encoder: BatchedEncoder[Any],
    ) -> None:
        self.spec, self.kind = spec, kind
        self.limit = limit
        """Tokens that the model takes, special ones included; None: any number."""
        self.frame = frame
        self._tokenizer, self._encoder = tokenizer, encoder

    @property
    def info(self) -> EncoderInfo:
        """Limits and hardware; 0 dimensions."""
        return replace(self._encoder.info, dim=0, max_seq_length=self.limit)

    @property
    def backend(self) -> VariantBackend:
        """What runs its variants; of a model that was loaded without a cache."""
        assert isinstance(self._encoder.backend, VariantBackend)
        return self._encoder.backend

    @property
    def late_load_s(self) -> float:
        """Seconds that loading the model took where that happened within ``score``, because a variant was missing."""
        return self._encoder.late_load_s

    @property
    def room(self) -> int | None:
        """Tokens of a text that the model takes at once, special ones not counted; None: any number."""
        return None if self.limit is None else self.limit - self.frame.n_special

    def tokens(self, texts: Sequence[str]) -> Iterator[Text]:
        """Each text in tokens, whole."""
        return tokenization.tokenize(self._tokenizer, self.frame, texts)

    def token_names(self, ids: Sequence[int]) -> list[str]:
        """Tokens as the vocabulary writes them."""
        return [str(each) for each in self._tokenizer.convert_ids_to_tokens(list(ids))]

    def score(self, variants: Sequence[str], *, ids: Sequence[str] = (), progress: Progress | None = None) -> Scores:
        """Scores of packed variants, in their order; equal ones go through the model once.

        ``ids`` name the texts that they are of. Raises ``ModelError`` where the model gives NaN or Inf.
        """
        try:
            made = self._encoder.encode(variants, role=Role.TEXT, ids=ids, progress=progress)
        except InvalidEmbeddingsError as error:
            raise ModelError(
                f"Model {self.spec.label!r} ({self.spec.dtype} on {self.info.device}) gave a log-probability "
                f"that is no finite number, such as for {', '.join(dict.fromkeys(error.ids))}.\n"
                "Nothing was scored. If the model runs in float16, try bfloat16 or float32."
            ) from error
        columns = made.vectors.astype(np.float64)
        return Scores(columns[:, 0], columns[:, 1], columns[:, 2], made.work)
