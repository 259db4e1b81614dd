"""Whether a model behaves: the same text gives the same vector, whatever stands around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from embeval.core.embeddings import Embeddings, Vectors, unit
from embeval.core.protocols import Encoder
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading
from embeval.encoders.encoder import BatchedEncoder
from embeval.errors import EmbevalError
from embeval.workflows.samples import Sample

BOUNDS: dict[Dtype, float] = {"float32": 1e-6, "bfloat16": 2e-2, "float16": 2e-3, "int8": 5e-2}
"""How far a text's vector (at length 1) may move in any dimension by what is in its batch, for each number format.
Of 384 dimensions: a float32 moves by some 1e-7, bfloat16 by 2e-3, and int8 whose activations are scaled batch by
batch by 3e-2."""
UNUSUAL = (
    "🙂🙃 👩‍👩‍👧 🇺🇳",
    "東京タワーの高さは",
    "서울 특별시",
    "שלום עולם",
    "مرحبا بالعالم",
    "\u202eright to left\u202c",
    "e\u0301 é ﬁ ½",
    "a\x00b\ufeff\u200b",
    "\U0001f9d1" * 50,
)
"""Emoji, CJK, right-to-left, combining, invisible."""
LONG = "long text " * 10_000
MIXED = 24
"""Texts of the sample that are used."""

State = Literal["ok", "shifts", "failed", "n/a"]


@dataclass(frozen=True)
class Finding:
    """One property and whether the model has it."""

    name: str
    """The property."""
    state: State
    """``shifts``: within the bound of its number format, but more than float32 does; ``n/a``: there is no choice."""
    detail: str
    """What was measured."""


def run(spec: ModelSpec, runtime: RuntimeOptions, sample: Sample) -> Iterator[Finding]:
    """Findings, one by one. Raises ``EmbevalError`` where the model can't be loaded."""
    encoder = loading.load(loading.resolve(spec), runtime)
    bound = BOUNDS[encoder.spec.dtype]
    texts = [*sample.texts[:MIXED], *(text.split(".")[0] for text in sample.texts[:MIXED]), *UNUSUAL]
    texts = list(dict.fromkeys(text for text in texts if text.strip()))
    try:
        together = encoder.encode(texts, role=Role.DOCUMENT)
    except EmbevalError as error:  # without vectors there is nothing to compare
        yield Finding("vectors at all", "failed", str(error).splitlines()[0])
        return

    def alone() -> Finding:
        each = np.concatenate([encoder.encode([text], role=Role.DOCUMENT).vectors for text in texts])
        return _near("a text alone = among others", together.vectors, each, bound)

    def order() -> Finding:
        back = encoder.encode(texts[::-1], role=Role.DOCUMENT).vectors[::-1]
        return _near("in another order", together.vectors, back, bound)

    def again() -> Finding:
        same = np.array_equal(together.vectors, encoder.encode(texts, role=Role.DOCUMENT).vectors)
        return Finding("run again", "ok" if same else "failed", "equal to the bit" if same else "other vectors")

    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("run again", again),
        ("in another order", order),
        ("a text alone = among others", alone),
        ("padding left = right", lambda: _padding(encoder, texts, together.vectors, bound)),
        ("empty text", lambda: _empty(encoder)),
        ("100,000 characters", lambda: _finite("100,000 characters", encoder, [LONG])),
        ("emoji, CJK, right-to-left, invisible", lambda: _unusual(encoder)),
        ("distinct texts, distinct vectors", lambda: _distinct(together, texts)),
    ]
    for name, check in checks:
        try:
            yield check()
        except EmbevalError as error:
            yield Finding(name, "failed", str(error).splitlines()[0])


def _near(name: str, expected: Vectors, found: Vectors, bound: float) -> Finding:
    left, right = unit(expected), unit(found)
    difference = float(np.abs(left - right).max())
    cosine = float(SIMILARITIES["cosine"](left, right)[expected.any(axis=1)].min(initial=1.0))
    exact = difference <= BOUNDS["float32"]
    state: State = "ok" if exact else "shifts" if difference <= bound else "failed"
    return Finding(name, state, f"differs by {difference:.1e} at most (bound {bound:g}), cosine {cosine:.6f} at least")


def _padding(encoder: Encoder, texts: Sequence[str], expected: Vectors, bound: float) -> Finding:
    name = "padding left = right"
    backend: Any = encoder.backend if isinstance(encoder, BatchedEncoder) else None
    if not hasattr(backend, "left"):
        return Finding(name, "n/a", "nothing is padded")
    if backend.left is None:
        return Finding(name, "n/a", "positions count from the left, so texts are always padded on the right")
    backend.left = not backend.left
    try:
        return _near(name, expected, encoder.encode(texts, role=Role.DOCUMENT).vectors, bound)
    finally:
        backend.left = not backend.left


def _empty(encoder: Encoder) -> Finding:
    zero = not encoder.encode(["", " \n"], role=Role.QUERY).vectors.any()
    return Finding("empty text", "ok" if zero else "failed", "a zero vector" if zero else "a vector of its own")


def _finite(name: str, encoder: Encoder, texts: Sequence[str]) -> Finding:
    embeddings = encoder.encode(texts, role=Role.DOCUMENT)  # raises on NaN and Inf
    lost = embeddings.counts.tokens_lost
    cut = f"{lost:,} tokens lost" if lost else "nothing cut off" if lost == 0 else "how much is cut off is not told"
    return Finding(name, "ok", cut)


def _unusual(encoder: Encoder) -> Finding:
    counts = encoder.encode(UNUSUAL, role=Role.DOCUMENT).counts
    name = "emoji, CJK, right-to-left, invisible"
    if counts.tokens_unknown is None or not counts.tokens_kept:
        return Finding(name, "ok", "finite")
    return Finding(name, "ok", f"finite; the tokenizer doesn't know {counts.tokens_unknown / counts.tokens_kept:.0%}")


def _distinct(together: Embeddings, texts: Sequence[str]) -> Finding:
    """A model that gives every text nearly the same vector is broken, or was trained to something else."""
    name = "distinct texts, distinct vectors"
    vectors = unit(together.vectors[together.vectors.any(axis=1)])  # a text without tokens is unlike any other
    if len(vectors) < 2:
        return Finding(name, "failed", f"{len(texts) - len(vectors)} of {len(texts)} texts have zero vectors")
    products = vectors @ vectors.T
    mean = float(products[np.triu_indices(len(vectors), 1)].mean())
    state: State = "ok" if mean < 0.999 else "failed"
    return Finding(name, state, f"mean cosine of two texts {mean:.3f}")
