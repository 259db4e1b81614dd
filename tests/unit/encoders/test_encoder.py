"""The encoder that all backends share, over a backend whose every move is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

from embeval.core.protocols import EncoderInfo
from embeval.core.specs import ModelSpec, Role
from embeval.encoders.batching import Lengths, Rows
from embeval.encoders.encoder import BatchedEncoder
from embeval.errors import InvalidEmbeddingsError
from tests.support.doubles import Seen


@dataclass
class Letters:
    """Texts as letters, at most four of them."""

    texts: list[str]

    @property
    def lengths(self) -> Lengths:
        return np.array([min(len(text), 4) for text in self.texts], dtype=np.int64)

    @property
    def lost(self) -> Lengths:
        return np.array([max(len(text) - 4, 0) for text in self.texts], dtype=np.int64)

    @property
    def unknown(self) -> Lengths:
        return np.array([text[:4].count("x") for text in self.texts], dtype=np.int64)

    def key(self, row: int) -> bytes:
        return self.texts[row][:4].lower().encode()


@dataclass
class Counting:
    """Vectors are letter counts of a, b and c; remembers its batches."""

    batch_tokens: int = 100
    prompts: dict[str, str] = field(default_factory=dict)
    poison: str | None = None
    batches: list[list[str]] = field(default_factory=list)
    default_prompt_name: str | None = None

    @property
    def info(self) -> EncoderInfo:
        return EncoderInfo(
            dim=3,
            max_seq_length=4,
            similarity="cosine",
            prompts=self.prompts,
            pooling=None,
            n_parameters=0,
            device="cpu",
            num_threads=1,
            batch_tokens=self.batch_tokens,
        )

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> Letters:
        return Letters([prompt + text for text in texts])

    def forward(self, prepared: Letters, rows: Rows) -> npt.NDArray[np.float32]:
        batch = [prepared.texts[row] for row in rows]
        self.batches.append(batch)
        counts = [[text[:4].lower().count(letter) for letter in "abc"] for text in batch]
        vectors = np.array(counts, dtype=np.float32)
        for place, text in enumerate(batch):
            if text == self.poison:
                vectors[place, 1] = np.inf
        return vectors


def made_of(backend: Counting, **fields: object) -> BatchedEncoder[Letters]:
    """An encoder over the backend."""
    return BatchedEncoder(ModelSpec(name="letters", revision="builtin:1", **fields), backend)  # type: ignore[arg-type]


def test_order_is_that_of_the_texts_and_each_key_runs_once() -> None:
    """Longest first through the model, equal keys once, empty texts not at all, the caller's order back."""
    backend, seen = Counting(batch_tokens=8), Seen()
    texts = ["a", "abcx", "bb", "a", "ABCX", "abcxyz", "", "ccc"]
    embeddings = made_of(backend).encode(texts, role=Role.TEXT, progress=seen)
    assert backend.batches == [["abcxyz", "ccc"], ["bb", "a"]]
    expected = [[1, 0, 0], [1, 1, 1], [0, 2, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 3]]
    assert embeddings.vectors.tolist() == expected
    assert seen.total == len(texts)


def test_counts_and_truncated_texts() -> None:
    """Repeated texts count each time; keys of truncated texts are told by row."""
    embeddings = made_of(Counting()).encode(["abcabc", "x", " ", "abcabc", "ABCAzz"], role=Role.TEXT)
    counts = embeddings.counts
    assert (counts.n_texts, counts.n_empty, counts.n_zero, counts.n_truncated) == (5, 1, 2, 3)
    assert (counts.tokens_kept, counts.tokens_lost, counts.tokens_unknown) == (4 + 1 + 4 + 4, 6, 1)
    assert embeddings.truncated is not None
    assert set(embeddings.truncated) == {0, 3, 4}
    assert len(set(embeddings.truncated.values())) == 1


def test_inf_is_refused_with_the_ids_of_all_texts_concerned() -> None:
    """The poisoned text stands twice: both ids are named, model, dtype and device too."""
    encoder = made_of(Counting(poison="bad"))
    with pytest.raises(InvalidEmbeddingsError) as caught:
        encoder.encode(["ok", "bad", "fine", "bad"], role=Role.DOCUMENT, ids=["d0", "d1", "d2", "d3"])
    assert caught.value.ids == ("d1", "d3")
    message = str(caught.value)
    assert "Model 'letters' (float32 on cpu) gave Inf in the embeddings of 2 of 4 texts: 'd1', 'd3'." in message
    assert "Nothing was scored" in message
    with pytest.raises(InvalidEmbeddingsError, match="\"'bad'\""):
        encoder.encode(["ok", "bad"], role=Role.DOCUMENT)


def test_prompt_goes_before_the_text_and_counts_as_text() -> None:
    """With "ab" before "c" the vector has all three letters."""
    backend = Counting(prompts={"query": "ab"})
    assert made_of(backend).encode(["c"], role=Role.QUERY).vectors.tolist() == [[1, 1, 1]]
    assert made_of(backend).encode(["c"], role=Role.DOCUMENT).vectors.tolist() == [[0, 0, 1]]


def test_normalize_leaves_zero_vectors_zero() -> None:
    """Unit length for the others, and ``normalized`` says so."""
    embeddings = made_of(Counting(), normalize=True).encode(["aabb", "", "c"], role=Role.TEXT)
    np.testing.assert_allclose(embeddings.vectors, [[0.5**0.5, 0.5**0.5, 0], [0, 0, 0], [0, 0, 1]], atol=1e-7)
    assert embeddings.normalized


def test_truncation_normalises_only_what_was_normalised() -> None:
    """Raw counts stay raw; all-unit vectors are scaled again."""
    raw = made_of(Counting(), truncate_dim=2).encode(["aabc", "c"], role=Role.TEXT)
    assert raw.vectors.tolist() == [[2, 1], [0, 0]]
    unit = made_of(Counting(), truncate_dim=2).encode(["a", "c"], role=Role.TEXT)
    assert unit.vectors.tolist() == [[1, 0], [0, 0]]


def test_texts_are_a_sequence_of_texts() -> None:
    """An iterator keeps all its texts; the letters of one text, and what is no text, are refused."""
    encoder = made_of(Counting())
    walked = encoder.encode(iter(["aabc", "", "c"]), role=Role.TEXT)  # type: ignore[arg-type]
    assert np.array_equal(walked.vectors, encoder.encode(["aabc", "", "c"], role=Role.TEXT).vectors)
    for wrong in ("abc", ["a", None], ["a", 0], [b"a"]):
        with pytest.raises(TypeError, match="texts must be a sequence of str"):
            encoder.encode(wrong, role=Role.TEXT)  # type: ignore[arg-type]
