"""Pooled embeddings, and what is known of the texts they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from embeval.core.specs import Role
from embeval.errors import InvalidEmbeddingsError

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TextCounts:
    """What happened to texts on their way into the model. Two counts add up."""

    n_texts: int = 0
    """Texts asked for, repeated ones included."""
    n_empty: int = 0
    """Texts that are empty or only white space."""
    n_zero: int = 0
    """Texts whose vector is all zeros, empty ones among them; their cosine with anything is 0."""
    n_truncated: int | None = 0
    """Texts that lost tokens to the model's limit; null where the model doesn't tell."""
    tokens_kept: int | None = 0
    """Tokens that the model saw, special tokens included; repeated texts counted each time."""
    tokens_lost: int | None = 0
    """Tokens cut off."""
    tokens_unknown: int | None = 0
    """Kept tokens that stand for words which the tokenizer doesn't know; null where the model doesn't tell."""

    def __add__(self, other: TextCounts) -> TextCounts:
        def plus(a: int | None, b: int | None) -> int | None:
            return None if a is None or b is None else a + b

        return TextCounts(
            self.n_texts + other.n_texts,
            self.n_empty + other.n_empty,
            self.n_zero + other.n_zero,
            plus(self.n_truncated, other.n_truncated),
            plus(self.tokens_kept, other.tokens_kept),
            plus(self.tokens_lost, other.tokens_lost),
            plus(self.tokens_unknown, other.tokens_unknown),
        )


@dataclass(frozen=True)
class Work:
    """What it took to make embeddings; what came from the cache took none. Two add up."""

    n_texts: int = 0
    """Texts that went through the model, each distinct one once."""
    n_tokens: int = 0
    """Their tokens, padding not counted."""

    def __add__(self, other: Work) -> Work:
        return Work(self.n_texts + other.n_texts, self.n_tokens + other.n_tokens)


@dataclass(frozen=True)
class Embeddings:
    """One vector per text. Always finite: building one from NaN or Inf raises ``InvalidEmbeddingsError``."""

    vectors: Vectors
    """float32 [n, d]."""
    role: Role
    """What the texts were to the model."""
    normalized: bool
    """Whether every vector that is not zero has length 1 (to 1e-3)."""
    spec_digest: str
    """``ModelSpec.digest`` of the model that made them."""
    counts: TextCounts = field(default_factory=TextCounts)
    """Truncated, empty and zero texts."""
    truncated: Mapping[int, bytes] | None = field(default_factory=dict)
    """Row -> digest of the tokens that were kept, for each text that lost tokens; equal digests mean that
    different texts look the same to the model. None where the model doesn't tell."""
    work: Work = field(default_factory=Work)
    """What it took to make them."""

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or self.vectors.dtype != np.float32:
            raise TypeError(f"vectors must be float32 [n, d], not {self.vectors.dtype} {self.vectors.shape}")
        refuse_nonfinite(self.vectors)

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass
class Alike:
    """Finds different texts that look the same to the model once truncated."""

    _seen: Counter[bytes] = field(default_factory=Counter)

    @classmethod
    def of(cls, embeddings: Embeddings) -> Alike:
        """Of one batch of texts."""
        alike = cls()
        alike.add(embeddings)
        return alike

    def add(self, embeddings: Embeddings) -> None:
        """More texts."""
        self._seen.update((embeddings.truncated or {}).values())

    def join(self, other: Alike) -> None:
        """The texts of another one."""
        self._seen.update(other._seen)

    @property
    def n(self) -> int:
        """Texts that share what is left of them with another one."""
        return sum(count for count in self._seen.values() if count > 1)


def refuse_nonfinite(vectors: Vectors, ids: Sequence[str] = (), *, by: str = "The model") -> None:
    """Raises ``InvalidEmbeddingsError`` naming the first rows of float32 [n, d] that hold NaN or Inf.

    ``ids`` names the rows (else they are numbered from 0), ``by`` starts the message: "model x in float16 on cpu".
    """
    finite = np.isfinite(vectors).all(axis=1)
    if finite.all():
        return
    rows = np.flatnonzero(~finite)
    names = tuple(ids[row] if len(ids) else f"row {row}" for row in rows[:5])
    kind = "NaN" if np.isnan(vectors[rows[0]]).any() else "Inf"
    raise InvalidEmbeddingsError(
        f"{by} gave {kind} in the embeddings of {len(rows)} of {len(vectors)} texts: "
        f"{', '.join(map(repr, names))}{', …' if len(rows) > len(names) else ''}.\n"
        "Nothing was scored. If the model runs in float16, try bfloat16 or float32.",
        names,
    )


def zero_rows(vectors: Vectors) -> npt.NDArray[np.bool_]:
    """bool [n]: which rows are all zeros."""
    return np.asarray(~vectors.any(axis=1))


def unit(vectors: Vectors) -> Vectors:
    """float32 [n, d] scaled to length 1, computed in float64; zero rows stay zero."""
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return np.asarray((wide / np.where(norms == 0.0, 1.0, norms)[:, None]).astype(np.float32))
