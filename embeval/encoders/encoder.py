"""The encoder that all backends share: prompts, batches, guards, counts. A backend only tokenises and runs.

``encode`` does, in this order: set empty texts aside, put the prompt before each text, keep each distinct text once,
tokenise all of them, sort by length, run batches under a token budget, refuse NaN and Inf by name, cut to
``truncate_dim``, normalise if asked, and hand the vectors back in the order of the texts. An empty text, and one that
has no tokens, gets a zero vector: whatever a model makes of nothing would be as near to any text as to its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from embeval.core.embeddings import Embeddings, TextCounts, Vectors, refuse_nonfinite, unit, zero_rows
from embeval.core.progress import Progress, Silent
from embeval.core.protocols import EncoderInfo, TaskRef
from embeval.core.specs import ModelSpec, Role
from embeval.encoders import batching, prompts
from embeval.encoders.batching import Lengths, Rows
from embeval.errors import ModelError

NORM_TOLERANCE = 1e-3
"""How far from 1 a length may be and still count as normalised: wide enough for a float16 model."""


class Prepared(Protocol):
    """Tokenised texts, ready to be run in any batches."""

    @property
    def lengths(self) -> Lengths:
        """int64 [n]: tokens per text, special tokens included."""

    @property
    def lost(self) -> Lengths | None:
        """int64 [n]: tokens cut off each text; None where the backend can't tell."""

    @property
    def unknown(self) -> Lengths | None:
        """int64 [n]: kept tokens per text that stand for what the tokenizer doesn't know; None if it can't tell."""

    def key(self, row: int) -> bytes:
        """What the model sees of a text. Texts with equal keys are run once and share a vector."""


P = TypeVar("P", bound=Prepared)


class Backend(Protocol[P]):
    """What differs from library to library."""

    info: EncoderInfo
    default_prompt_name: str | None

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> P:
        """The texts, tokenised with ``prompt`` before each."""

    def forward(self, prepared: P, rows: Rows) -> npt.NDArray[np.float32]:
        """float32 [len(rows), d]: pooled vectors of those texts, in that order, padded together."""


@dataclass(frozen=True)
class BatchedEncoder(Generic[P]):
    """An ``Encoder`` made of a backend."""

    spec: ModelSpec
    backend: Backend[P]

    @property
    def info(self) -> EncoderInfo:
        """Dimensions, limits and hardware."""
        return self.backend.info

    @cached_property
    def _digest(self) -> str:
        return self.spec.digest

    def prompt(self, role: Role, task: TaskRef | None = None) -> str:
        """The text that is put before each input of that role."""
        return prompts.resolve(
            role,
            task,
            own=self.spec.prompts,
            declared=self.info.prompts,
            default_name=self.backend.default_prompt_name,
        ).text

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: Role,
        task: TaskRef | None = None,
        ids: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Embeddings:
        """Embeddings in the order of the texts."""
        if isinstance(texts, str):  # a sequence of letters, which nobody means
            raise TypeError("texts must be a sequence of str, not one str")
        texts = list(texts)  # before anything walks through it: an iterator can be walked through once
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"texts must be a sequence of str, and one is {text!r}")
        watch = progress or Silent()
        full = np.flatnonzero([bool(text.strip()) for text in texts])
        distinct, place = batching.unique([texts[row] for row in full.tolist()])
        prepared = self.backend.prepare(distinct, prompt=self.prompt(role, task), role=role)
        first, same = batching.first_of_equals([prepared.key(row) for row in range(len(distinct))])
        runs = np.flatnonzero(prepared.lengths[first] > 0)
        found: Vectors | None = None
        for rows in batching.plan(prepared.lengths[first[runs]], self.info.batch_tokens):
            batch = self.backend.forward(prepared, first[runs[rows]])
            if found is None:
                found = np.zeros((len(first), batch.shape[1]), dtype=np.float32)
            found[runs[rows]] = batch
            watch.advance(len(rows))
        watch.advance(len(texts) - len(runs))

        row_of = same[place]
        if found is not None and not np.isfinite(found).all():
            names = [ids[row] if len(ids) else repr(texts[row][:40]) for row in full.tolist()]
            by = f"Model {self.spec.label!r} ({self.spec.dtype} on {self.info.device})"
            refuse_nonfinite(found[row_of], names, by=by)
        finished = self._finish(found) if found is not None else np.zeros((len(first), self.info.dim), dtype=np.float32)
        vectors = np.zeros((len(texts), finished.shape[1]), dtype=np.float32)
        vectors[full] = finished[row_of]
        zero = zero_rows(vectors)
        return Embeddings(
            vectors=vectors,
            role=role,
            normalized=bool(np.all(zero | _is_unit(vectors))),
            spec_digest=self._digest,
            counts=_count(len(texts), place, prepared, zero),
            truncated=_truncated(full, place, prepared),
        )

    def _finish(self, vectors: Vectors) -> Vectors:
        dim = self.spec.truncate_dim
        if dim is not None and dim < vectors.shape[1]:
            was_unit = bool(np.all(zero_rows(vectors) | _is_unit(vectors)))
            vectors = np.ascontiguousarray(vectors[:, :dim])
            if was_unit:
                return unit(vectors)
        return unit(vectors) if self.spec.normalize else vectors


def _is_unit(vectors: Vectors) -> npt.NDArray[np.bool_]:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    return np.asarray(np.abs(lengths - 1.0) < NORM_TOLERANCE)


def _count(n_texts: int, place: Rows, prepared: Prepared, zero: npt.NDArray[np.bool_]) -> TextCounts:
    lost, unknown = prepared.lost, prepared.unknown
    return TextCounts(
        n_texts=n_texts,
        n_empty=n_texts - len(place),
        n_zero=int(zero.sum()),
        n_truncated=None if lost is None else int((lost > 0)[place].sum()),
        tokens_kept=None if lost is None else int(prepared.lengths[place].sum()),
        tokens_lost=None if lost is None else int(lost[place].sum()),
        tokens_unknown=None if unknown is None else int(unknown[place].sum()),
    )


def _truncated(full: Rows, place: Rows, prepared: Prepared) -> dict[int, bytes] | None:
    if prepared.lost is None:
        return None
    rows = np.flatnonzero((prepared.lost > 0)[place])
    return {int(full[row]): hashlib.blake2b(prepared.key(int(place[row])), digest_size=16).digest() for row in rows}


def check_dim(spec: ModelSpec, full: int) -> int:
    """The length of the vectors after ``truncate_dim``. Raises ``ModelError`` where the model has fewer."""
    if spec.truncate_dim is None:
        return full
    if not 1 <= spec.truncate_dim <= full:
        raise ModelError(
            f"Model {spec.name!r} has {full} dimensions, so truncate_dim can't be {spec.truncate_dim}. Use 1 to {full}."
        )
    return spec.truncate_dim


def declared_prompts(prompts_: Mapping[str, str]) -> dict[str, str]:
    """Prompts without the empty ones that libraries put in as placeholders."""
    return {name: text for name, text in prompts_.items() if text}
