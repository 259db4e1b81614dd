"""``hashing``: feature hashing of words and character trigrams. No weights, numpy only, the same everywhere.

The baseline that a neural model has to beat, and the double for tests and tutorials: it is deterministic to the
bit, has prompts, limits and empty texts like any model, and needs a millisecond to load. The name tells nothing;
``args.dim`` sets the dimensions (default 256).

Source: Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Encoder, EncoderInfo
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders.batching import Lengths, Rows
from embeval.encoders.encoder import BatchedEncoder, check_dim
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, ModelError

REVISION = "builtin:1"
"""Raised when the same text gets another vector."""
DEFAULT_DIM = 256
DEFAULT_BATCH_TOKENS = 65_536
TRIGRAM_WEIGHT = 0.5
"""Weight of a character trigram beside a whole word: enough to find misspelled words, too little to drown right
ones."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _Words:
    words: list[list[str]]
    lengths: Lengths
    lost: Lengths
    unknown: Lengths | None = None  # a hash knows every word

    def key(self, row: int) -> bytes:
        return "\n".join(self.words[row]).encode("utf-8", "surrogatepass")


class _Hashing:
    """Words and trigrams, each added with a hashed sign at a hashed place; then normalised."""

    default_prompt_name: str | None = None

    def __init__(self, spec: ModelSpec, runtime: RuntimeOptions) -> None:
        if runtime.device not in ("auto", "cpu"):
            raise ConfigError(f"Backend 'hashing' runs on the CPU; the device {runtime.device!r} can't be used.")
        dim = _dim(spec)
        self._dim, self._limit = dim, spec.max_seq_length
        self._features: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = {}
        self.info = EncoderInfo(
            dim=check_dim(spec, dim),
            max_seq_length=spec.max_seq_length,
            similarity=spec.similarity or "cosine",
            prompts={},
            pooling=None,
            n_parameters=0,
            device="cpu",
            num_threads=1,
            batch_tokens=runtime.budget_or(DEFAULT_BATCH_TOKENS),
        )

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> _Words:
        words = [_WORD.findall((prompt + text).casefold()) for text in texts]
        full = np.array([len(found) for found in words], dtype=np.int64)
        kept = np.minimum(full, self._limit) if self._limit is not None else full
        return _Words([found[:n] for found, n in zip(words, kept.tolist(), strict=True)], kept, full - kept)

    def forward(self, prepared: _Words, rows: Rows) -> npt.NDArray[np.float32]:
        vectors = np.zeros((len(rows), self._dim))
        for place, row in enumerate(rows):
            for word in prepared.words[row]:
                positions, signs = self._feature(word)
                np.add.at(vectors[place], positions, signs)
        norms = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
        return np.asarray((vectors / np.where(norms == 0.0, 1.0, norms)).astype(np.float32))

    def _feature(self, word: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        if word not in self._features:
            padded = f"<{word}>"
            grams = [padded[start : start + 3] for start in range(len(padded) - 2)]
            # crc32 and not hash(): the same in every process, whatever PYTHONHASHSEED is.
            hashes = [zlib.crc32(gram.encode("utf-8", "surrogatepass")) for gram in [f"word:{word}", *grams]]
            positions = np.array([value % self._dim for value in hashes], dtype=np.int64)
            weights = np.array([1.0] + [TRIGRAM_WEIGHT] * len(grams))
            signs = np.array([1.0 if value & 0x8000_0000 else -1.0 for value in hashes])
            self._features[word] = (positions, signs * weights)
        return self._features[word]


def _dim(spec: ModelSpec) -> int:
    """The dimensions that a spec asks for. Raises ``ConfigError`` for settings that this backend doesn't have."""
    dim = spec.args.get("dim", DEFAULT_DIM)
    if unknown := sorted(set(spec.args) - {"dim"}):
        raise ConfigError(f"Backend 'hashing' has no option {unknown[0]!r}; its only option is 'dim'.")
    if isinstance(dim, bool) or not isinstance(dim, int) or not 8 <= dim <= 65_536:
        raise ConfigError(f"Backend 'hashing': dim must be a whole number from 8 to 65536, not {dim!r}.")
    if spec.pooling is not None or spec.dtype != "float32":
        raise ConfigError("Backend 'hashing' has no pooling and no dtype to choose.")
    return dim


class _Backend:
    summary = "feature hashing of words and trigrams; no weights, numpy only"
    options = ("dim",)
    dtypes: tuple[Dtype, ...] = ("float32",)

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        check_dim(spec, _dim(spec))  # told before anything runs, not when this model's turn comes
        if spec.revision not in (None, REVISION):
            raise ModelError(f"Backend 'hashing' is revision {REVISION!r} here, not {spec.revision!r}.")
        return Located(replace(spec, revision=REVISION), None)

    def load(self, located: Located, runtime: RuntimeOptions) -> Encoder:
        return BatchedEncoder(located.spec, _Hashing(located.spec, runtime))


BACKEND = _Backend()
