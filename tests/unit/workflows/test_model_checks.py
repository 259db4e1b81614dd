"""What ``models check`` finds: sound models pass, and each kind of broken one fails at its check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.protocols import Encoder
from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading
from embeval.encoders.encoder import BatchedEncoder
from embeval.workflows import model_checks, samples
from tests.support.models import save_tiny_decoder

NAMES = [
    "run again",
    "in another order",
    "a text alone = among others",
    "padding left = right",
    "empty text",
    "100,000 characters",
    "emoji, CJK, right-to-left, invisible",
    "distinct texts, distinct vectors",
]
HASHING = ModelSpec(name="hashing", backend="hashing")
RUNTIME = RuntimeOptions(device="cpu", cache=False)


@pytest.fixture(scope="module")
def sample() -> samples.Sample:
    """A few of the texts that come with the package."""
    whole = samples.take(None)
    return replace(whole, texts=whole.texts[:12])


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama, whose positions are relative."""
    return save_tiny_decoder(tmp_path_factory.mktemp("models") / "decoder")


def states(spec: ModelSpec, sample: samples.Sample) -> dict[str, str]:
    """The state of each check."""
    return {finding.name: finding.state for finding in model_checks.run(spec, RUNTIME, sample)}


def broken(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, Any, Any], Any]) -> None:
    """Puts ``hashing`` in the place of every model, its vectors changed by (backend, vectors, rows)."""
    real = loading.load

    def load(*arguments: Any) -> Encoder:
        encoder = real(*arguments)
        assert isinstance(encoder, BatchedEncoder)
        backend: Any = encoder.backend
        forward = backend.forward
        backend.forward = lambda tokens, rows: change(backend, forward(tokens, rows), tokens.lengths[rows]).astype(
            np.float32
        )
        return encoder

    monkeypatch.setattr(loading, "load", load)


def test_hashing_passes(sample: samples.Sample) -> None:
    """It pads nothing."""
    assert states(HASHING, sample) == {**dict.fromkeys(NAMES, "ok"), "padding left = right": "n/a"}


def test_a_bert_passes_and_its_padding_is_no_choice(tiny_model: Path, sample: samples.Sample) -> None:
    """Positions count from the left; random weights give all texts nearly one vector."""
    found = states(ModelSpec(name=str(tiny_model)), sample)
    assert found.pop("distinct texts, distinct vectors") in ("ok", "failed")
    assert found == {**dict.fromkeys(NAMES[:-1], "ok"), "padding left = right": "n/a"}


def test_rotary_positions_are_padded_on_both_sides(decoder: Path, sample: samples.Sample) -> None:
    """The vectors agree; where the mask is left out on one side they don't, and it is told."""
    spec = ModelSpec(name=str(decoder))
    assert states(spec, sample)["padding left = right"] == "ok"
    encoder: Any = loading.load(loading.resolve(spec), RUNTIME)
    before = encoder.backend.left
    finding = model_checks._padding(encoder, ["a b", "a"], np.ones((2, 32), dtype=np.float32), 1e-6)
    assert (finding.state, encoder.backend.left) == ("failed", before)


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        # A leak of one part in a hundred from the mean of the batch.
        (lambda _, vectors, lengths: vectors + 0.01 * vectors.mean(axis=0), {"a text alone = among others"}),
        # Padding that is seen: a vector moves by how much longer the longest text is.
        (
            lambda _, vectors, lengths: vectors + 0.001 * (lengths.max() - lengths)[:, None] * np.arange(256) / 256,
            {"a text alone = among others"},
        ),
        (lambda _, vectors, lengths: vectors * 0 + np.arange(256), {"distinct texts, distinct vectors"}),
        (lambda _, vectors, lengths: vectors * 0, {"distinct texts, distinct vectors"}),
    ],
)
def test_vectors_that_hang_on_others_fail(
    monkeypatch: pytest.MonkeyPatch, sample: samples.Sample, change: Any, failing: set[str]
) -> None:
    """By the bound of float32; the same bits come out again and again, so that alone would not tell."""
    broken(monkeypatch, change)
    found = states(HASHING, sample)
    assert {name for name, state in found.items() if state == "failed"} == failing
    assert found["run again"] == "ok"


def test_chance_fails(monkeypatch: pytest.MonkeyPatch, sample: samples.Sample) -> None:
    """Dropout left on: nothing comes out again."""
    rng = np.random.default_rng(0)
    broken(monkeypatch, lambda _, vectors, lengths: vectors * (rng.random(vectors.shape) > 0.1))
    found = states(HASHING, sample)
    assert found["run again"] == found["in another order"] == found["a text alone = among others"] == "failed"


def test_what_lies_between_float32_and_the_bound_shifts() -> None:
    """1e-3 is within bfloat16's 2e-2, and not float32's."""
    one = np.array([[1.0, 0.0]], dtype=np.float32)
    other = np.array([[1.0, 1e-3]], dtype=np.float32)
    bounds = model_checks.BOUNDS
    found = [model_checks._near("x", one, other, bounds[dtype]).state for dtype in ("float32", "bfloat16")]
    assert found == ["failed", "shifts"]
    assert model_checks._near("x", one, one, bounds["bfloat16"]).state == "ok"


def test_nan_fails(monkeypatch: pytest.MonkeyPatch, sample: samples.Sample) -> None:
    """For all texts there is nothing to compare; for long ones only, that check fails and the others go on."""
    broken(monkeypatch, lambda _, vectors, lengths: vectors * np.nan)
    (finding,) = model_checks.run(HASHING, RUNTIME, sample)
    assert (finding.name, finding.state) == ("vectors at all", "failed")
    assert "gave NaN in the embeddings" in finding.detail
    monkeypatch.undo()
    broken(monkeypatch, lambda _, vectors, lengths: np.where(lengths[:, None] > 9_000, np.nan, vectors))
    found = states(HASHING, sample)
    assert {name for name, state in found.items() if state == "failed"} == {"100,000 characters"}
    assert list(found) == NAMES


def test_an_empty_text_with_a_vector_fails(monkeypatch: pytest.MonkeyPatch, sample: samples.Sample) -> None:
    """A backend of another kind, which makes something of nothing."""
    real = BatchedEncoder.encode

    def encode(self: Any, texts: Sequence[str], *, role: Role, **others: Any) -> Any:
        return real(self, [text if text.strip() else "nothing" for text in texts], role=role, **others)

    monkeypatch.setattr(BatchedEncoder, "encode", encode)
    assert states(HASHING, sample)["empty text"] == "failed"
