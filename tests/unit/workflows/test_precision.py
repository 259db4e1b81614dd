"""Which number format is chosen, by doubles whose speed and vectors are set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval import api
from embeval.core.embeddings import Embeddings, refuse_nonfinite
from embeval.core.protocols import EncoderInfo
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading
from embeval.encoders.cache import VectorCache
from embeval.encoders.locate import Located
from embeval.errors import ConfigError, ModelError
from embeval.workflows import precision
from embeval.workflows.samples import Sample

SAMPLE = Sample("texts", tuple(f"text {number}" for number in range(40)), None)
SPEC = ModelSpec(name="double", backend="hashing")
RUNTIME = RuntimeOptions()


@dataclass
class Formats:
    """A backend: what each number format costs, and how far it moves vectors."""

    seconds: dict[str, float]
    error: dict[str, float] = field(default_factory=dict)
    device: str = "cuda (a GPU)"
    refused: tuple[str, ...] = ()
    dtypes: tuple[Dtype, ...] = ("float32", "bfloat16", "float16")
    loaded: list[str] = field(default_factory=list)
    now: float = 0.0

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        return Located(replace(spec, revision="r"), None)

    def load(self, located: Located, runtime: RuntimeOptions) -> Any:
        dtype = located.spec.dtype
        self.loaded.append(dtype)
        if dtype in self.refused:
            raise ModelError(f"{dtype} can't be run here.\nAt all.")
        return _Double(self, located.spec)


@dataclass
class _Double:
    formats: Formats
    spec: ModelSpec

    @property
    def info(self) -> EncoderInfo:
        return EncoderInfo(
            dim=16,
            max_seq_length=None,
            similarity="cosine",
            prompts={},
            pooling=None,
            n_parameters=0,
            device=self.formats.device,
            num_threads=None,
            batch_tokens=1,
        )

    def prompt(self, role: Role, task: Any = None) -> str:
        return ""

    def encode(self, texts: Sequence[str], *, role: Role, **others: Any) -> Embeddings:
        self.formats.now += self.formats.seconds[self.spec.dtype]
        rng = np.random.default_rng(0)
        vectors = rng.standard_normal((len(texts), 16)).astype(np.float32)
        vectors += np.float32(self.formats.error.get(self.spec.dtype, 0.0)) * rng.standard_normal(vectors.shape)
        vectors = vectors.astype(np.float32)
        refuse_nonfinite(vectors, by=f"The model in {self.spec.dtype}")
        return Embeddings(vectors=vectors, role=role, normalized=False, spec_digest=self.spec.digest)


def made(monkeypatch: pytest.MonkeyPatch, formats: Formats) -> Formats:
    """The formats, in the place of the backend ``hashing`` and of the clock."""
    monkeypatch.setattr(loading.BACKENDS, "get", lambda name: formats)
    monkeypatch.setattr(time, "perf_counter", lambda: formats.now)
    return formats


def test_words_and_formats() -> None:
    """What people say, and the long names; anything else is refused with what there is."""
    words = ("fp32", "bf16", "fp16", "int8", "float16", "auto")
    assert [precision.parse(word) for word in words] == ["float32", "bfloat16", "float16", "int8", "float16", None]
    with pytest.raises(ConfigError, match="precision must be fp32, bf16, fp16, int8, auto, not 'half'"):
        precision.parse("half")


@pytest.mark.parametrize(
    ("formats", "chosen", "sentence"),
    [
        (Formats({"float32": 1.0, "bfloat16": 0.5, "float16": 0.4}), "float16", "float16, 2.5 times as fast as"),
        (Formats({"float32": 1.0, "bfloat16": 0.4, "float16": 0.5}), "bfloat16", "at a cosine of at least 1.00000"),
        (Formats({"float32": 1.0, "bfloat16": 1.5, "float16": 0.96}), "float32", "float32 (no other is faster)"),
        (
            Formats({"float32": 1.0, "bfloat16": 0.5, "float16": 0.4}, {"float16": 0.3}),
            "bfloat16",
            "bfloat16, 2.0 times as fast",
        ),
        (
            Formats({"float32": 1.0, "bfloat16": 0.5, "float16": 0.4}, {"float16": 0.3, "bfloat16": 0.3}),
            "float32",
            "float32 (bfloat16 cosine_min 0.",
        ),
        (
            Formats({"float32": 1.0, "bfloat16": 1.0, "float16": 0.4}, {"float16": np.nan}),
            "float32",
            "float32 (float16: The model in float16 gave NaN in the embeddings of 16 of 16 texts",
        ),
        (
            Formats({"float32": 1.0, "bfloat16": 0.4, "float16": 0.5}, refused=("bfloat16",)),
            "float16",
            "float16, 2.0 times as fast",
        ),
        (Formats({"float32": 1.0, "bfloat16": 0.4, "float16": 0.1}, device="cpu"), "bfloat16", "2.5 times as fast"),
    ],
)
def test_the_fastest_that_is_near_enough(
    monkeypatch: pytest.MonkeyPatch, formats: Formats, chosen: Dtype, sentence: str
) -> None:
    """By 5 % at least, within the bounds on cosine and neighbours; NaN, refused formats and fp16 on CPUs are out."""
    made(monkeypatch, replace(formats, loaded=[]))
    choice = precision.choose(SPEC, RUNTIME, SAMPLE, None)
    assert choice.spec == replace(SPEC, dtype=chosen)
    assert choice.sentence.startswith("double: ")
    assert sentence in choice.sentence


def test_float32_must_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused or NaN in float32: nothing to compare with, and ``applied`` leaves the model to its turn."""
    for formats in (Formats({"float32": 1.0}, refused=("float32",)), Formats({"float32": 1.0}, {"float32": np.nan})):
        made(monkeypatch, replace(formats, dtypes=("float32", "bfloat16"), seconds={"float32": 1.0, "bfloat16": 1.0}))
        with pytest.raises(ModelError):
            precision.choose(SPEC, RUNTIME, SAMPLE, None)
        (choice,) = precision.applied([SPEC], "auto", RUNTIME, SAMPLE, None)
        assert choice == precision.Choice(SPEC)


def test_a_choice_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is loaded the second time; other texts, another runtime, or a damaged note, and it is tried again."""
    formats = made(monkeypatch, Formats({"float32": 1.0, "bfloat16": 0.5, "float16": 0.7}))
    cache = VectorCache(tmp_path)
    assert not precision.choose(SPEC, RUNTIME, SAMPLE, cache).remembered
    assert formats.loaded == ["float32", "bfloat16", "float16"]
    again = precision.choose(SPEC, RUNTIME, SAMPLE, VectorCache(tmp_path))
    assert (again.spec.dtype, again.remembered) == ("bfloat16", True)
    assert again.sentence == "double: bfloat16, as found before on this machine"
    assert len(formats.loaded) == 3
    precision.choose(SPEC, RUNTIME, replace(SAMPLE, texts=SAMPLE.texts[1:]), cache)
    precision.choose(SPEC, RuntimeOptions(num_threads=1), SAMPLE, cache)
    assert len(formats.loaded) == 9
    put = VectorCache.put_note
    monkeypatch.setattr(VectorCache, "put_note", lambda self, key, value: put(self, key, b"\xff"))
    for _ in range(2):
        assert precision.choose(SPEC, RuntimeOptions(num_threads=2), SAMPLE, cache).spec.dtype == "bfloat16"
    assert len(formats.loaded) == 15


def test_who_has_no_choice_and_who_has_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dtype of one's own stands, and a backend with one format has no choice."""
    formats = made(monkeypatch, Formats({"float32": 1.0, "bfloat16": 0.5, "float16": 0.7}))
    own = replace(SPEC, dtype="float16")
    for word in ("fp32", "bf16", "auto"):
        found = precision.applied([SPEC, own], word, RUNTIME, SAMPLE, None)
        assert [choice.spec.dtype for choice in found] == ["float32" if word == "fp32" else "bfloat16", "float16"]
    formats.dtypes = ("float32",)
    for word in ("bf16", "auto"):
        (choice,) = precision.applied([SPEC], word, RUNTIME, SAMPLE, None)
        assert choice.spec == SPEC
    assert choice.sentence == "double: float32, where there was nothing to choose"


def test_from_the_facade() -> None:
    """``hashing`` has no choice; a wrong word is refused before anything is looked at."""
    (choice,) = api.with_precision([SPEC], "bf16")
    assert choice.spec == SPEC
    with pytest.raises(ConfigError, match="not 'half'"):
        api.with_precision([SPEC], "half")
