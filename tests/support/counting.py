"""A backend whose every move is known: it counts letters, and what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import EncoderInfo
from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders.batching import Lengths, Rows
from embeval.encoders.cache import VectorCache
from embeval.encoders.encoder import BatchedEncoder
from embeval.encoders.shelves import Shelves

ALPHABET = "abcdefgh"
LIMIT = 6


@dataclass
class Letters:
    """Texts as letters; what is no letter is no token, and upper and lower case look alike."""

    texts: list[str]

    def seen(self, row: int) -> str:
        """What the model sees of a text."""
        return "".join(each for each in self.texts[row].lower() if each.isalpha())[:LIMIT]

    @property
    def lengths(self) -> Lengths:
        return np.array([len(self.seen(row)) for row in range(len(self.texts))], dtype=np.int64)

    @property
    def lost(self) -> Lengths:
        full = [sum(each.isalpha() for each in text) for text in self.texts]
        return np.array(full, dtype=np.int64) - self.lengths

    @property
    def unknown(self) -> Lengths:
        return np.array([self.seen(row).count("x") for row in range(len(self.texts))], dtype=np.int64)

    def key(self, row: int) -> bytes:
        return self.seen(row).encode()


@dataclass
class LetterCounts:
    """Vectors are counts of the letters a to h, which a batch leaves as they are unless ``noise`` is set."""

    batch_tokens: int = 24
    fits: int = 10_000
    """Tokens of the largest batch that there is memory for."""
    noise: float = 0.0
    """How much of its place in the run is added to a batch."""
    device: str = "cpu"
    prompts: dict[str, str] = field(default_factory=dict)
    poison: str | None = None
    """A text whose vector is NaN."""
    before_batch: Callable[[int], None] = lambda number: None
    batches: list[list[str]] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    """Where texts were tokenised."""
    prepared: list[list[str]] = field(default_factory=list)
    default_prompt_name: str | None = None
    dim: int = len(ALPHABET)

    @property
    def info(self) -> EncoderInfo:
        return EncoderInfo(
            dim=self.dim,
            max_seq_length=LIMIT,
            similarity="cosine",
            prompts=self.prompts,
            pooling=None,
            n_parameters=0,
            device=self.device,
            num_threads=1,
            batch_tokens=self.batch_tokens,
        )

    @property
    def n_run(self) -> int:
        """Texts that went through."""
        return sum(map(len, self.batches))

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> Letters:
        self.threads.append(threading.current_thread().name)
        self.prepared.append(list(texts))
        return Letters([prompt + text for text in texts])

    def forward(self, prepared: Letters, rows: Rows) -> npt.NDArray[np.float32]:
        batch = [prepared.texts[row] for row in rows]
        if len(rows) * int(prepared.lengths[rows].max()) > self.fits:
            raise MemoryError(f"a batch of {len(rows)}")
        self.before_batch(len(self.batches))
        self.batches.append(batch)
        counts = [[prepared.seen(row).count(letter) for letter in ALPHABET] for row in rows.tolist()]
        vectors = np.array(counts, dtype=np.float32) + np.float32(self.noise * len(self.batches))
        for place, text in enumerate(batch):
            if text == self.poison:
                vectors[place, 0] = np.nan
        return vectors


LETTERS = ModelSpec(name="letters", revision="builtin:1")


def shelves(folder: Path, runtime: RuntimeOptions | None = None) -> Shelves:
    """Those of a cache in a folder."""
    return Shelves(VectorCache(folder), runtime or RuntimeOptions())


def counting(backend: LetterCounts, folder: Path | None = None, spec: ModelSpec = LETTERS) -> BatchedEncoder[Letters]:
    """An encoder over the backend, with a cache where a folder is given."""
    return BatchedEncoder(spec, backend, shelves=shelves(folder) if folder is not None else None)
