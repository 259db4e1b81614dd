"""What ``models show`` tells: sizes from the files, languages from the card, and what a corpus takes."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from embeval.core.specs import ModelSpec, RuntimeOptions
from embeval.encoders import facts as encoder_facts
from embeval.encoders import loading
from embeval.workflows import model_facts
from embeval.workflows.samples import Sample

RUNTIME = RuntimeOptions(device="cpu")


def test_a_model_of_files(tiny_model: Path) -> None:
    """Bytes on disk as the file system counts them, bytes in memory by the number of parameters."""
    facts = model_facts.look(ModelSpec(name=str(tiny_model)), RUNTIME)
    n = facts.encoder.info.n_parameters
    assert n is not None
    assert facts.disk_bytes == sum(file.stat().st_size for file in tiny_model.rglob("*") if file.is_file())
    assert facts.disk_bytes > 4 * n
    assert facts.memory_bytes == {"float32": 4 * n, "bfloat16": 2 * n, "float16": 2 * n, "int8": n}
    told = facts.to_json()
    assert (told["dimensions"], told["max_seq_length"], told["pooling"]) == (32, 16, "mean")
    assert told["memory_bytes"]["float32"] == told["weight_bytes"] == 4 * n


def test_it_says_what_results_of_the_model_say(tiny_model: Path, tmp_path: Path) -> None:
    """Languages and licence of the card among it, and the weights in the number format that was asked for."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    (folder / "README.md").write_text("---\nlanguage: [en, de]\nlicense: mit\n---\n", encoding="utf-8")
    spec = ModelSpec(name=str(folder), dtype="bfloat16", truncate_dim=8)
    known = model_facts.look(spec, RUNTIME)
    located = loading.resolve(spec)
    assert known.known == encoder_facts.of(located, loading.load(located, RUNTIME).info)
    told = known.to_json()
    assert (told["languages"], told["license"], told["dimensions"]) == (["en", "de"], "mit", 8)
    assert told["weight_bytes"] == told["memory_bytes"]["bfloat16"] == 2 * told["parameters"]


def test_a_model_without_files() -> None:
    """Nothing on disk, nothing in memory, no languages."""
    facts = model_facts.look(ModelSpec(name="hashing", backend="hashing"), RUNTIME)
    assert (facts.disk_bytes, facts.memory_bytes, facts.known.languages) == (0, {}, ())


def test_what_a_corpus_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 texts in 2 s: 20 a second, a million in 50,000 s; 16 dimensions are 64, 20 and 2 bytes."""
    clock = iter([10.0, 12.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    encoder = loading.load(loading.resolve(ModelSpec(name="hashing", backend="hashing", args={"dim": 16})), RUNTIME)
    sample = Sample("texts", tuple(f"some words number {number}" for number in range(40)), None)
    found = model_facts.estimate(encoder, 1_000_000, sample)
    assert (found.documents_per_s, found.tokens_per_document) == (20.0, 4.0)
    assert found.hours == pytest.approx(50_000 / 3600)
    assert found.vector_bytes == {"float32": 64_000_000, "int8": 20_000_000, "binary": 2_000_000}
