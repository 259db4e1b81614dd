"""What is known of a model without loading it, and which models have no place in the cache."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from embeval.core import provenance
from embeval.core.protocols import EncoderInfo
from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading, shelves
from embeval.encoders.cache import VectorCache
from embeval.encoders.encoder import BatchedEncoder
from tests.support.models import save_tiny_model

INFO = EncoderInfo(
    dim=4,
    max_seq_length=None,
    similarity="cosine",
    prompts={},
    pooling=None,
    n_parameters=None,
    device="endpoint",
    num_threads=None,
    batch_tokens=8,
    extra={"endpoint": "here", "requests_so_far": "7"},
)


class Endpoint:
    """A backend that counts what it did, as far as a note is concerned."""

    default_prompt_name: str | None = None

    def __init__(self) -> None:
        self.info = INFO

    def prepare(self, texts: Any, *, prompt: str, role: Role) -> Any:
        """Counts a request."""
        self.info = dataclasses.replace(INFO, extra={"endpoint": "here", "requests_so_far": "8"})
        return texts

    def forward(self, prepared: Any, rows: Any) -> Any:
        """Nothing."""


def test_what_a_process_did_is_not_what_a_model_is() -> None:
    """Counts stay out of the note, loading finds the same model, and then they are there."""
    lazy = shelves.LazyBackend(json.loads(json.dumps(shelves.known_of(Endpoint()))), Endpoint, lambda known: None)
    assert lazy.info.extra == {"endpoint": "here"}
    lazy.prepare(["a"], prompt="", role=Role.TEXT)  # raises ChangedModel if it looked like another one
    assert lazy.info.extra == {"endpoint": "here", "requests_so_far": "8"}


@pytest.mark.parametrize(
    ("file", "code", "elsewhere"),
    [
        ("config.json", "modeling.Own", False),
        ("config.json", "org/other--modeling.Theirs", True),
        ("tokenizer_config.json", "org/other--tokens.Theirs", True),
    ],
)
def test_code_of_another_repository_is_seen(tmp_path: Path, file: str, code: str, elsewhere: bool) -> None:
    """``auto_map`` names it with two dashes; files of the model's own are part of its revision."""
    (tmp_path / file).write_text(json.dumps({"auto_map": {"AutoModel": code}}), encoding="utf-8")
    assert shelves.code_elsewhere(tmp_path) is elsewhere


def test_a_model_whose_code_may_change_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the code trusted, nothing is kept: the same key would find what older code computed (F8)."""
    folder = save_tiny_model(tmp_path / "model")
    resolved = loading.resolve(ModelSpec(name=str(folder), args={"trust_remote_code": True}))
    cache = VectorCache(tmp_path / "cache")
    own = loading.load(resolved, RuntimeOptions(device="cpu"), cache)
    assert isinstance(own, BatchedEncoder)
    assert own.encode(["a file"], role=Role.TEXT).work.n_texts == 1
    assert own.encode(["a file"], role=Role.TEXT).work.n_texts == 0
    monkeypatch.setattr(shelves, "code_elsewhere", lambda folder: True)
    theirs = loading.load(resolved, RuntimeOptions(device="cpu"), cache)
    assert [theirs.encode(["a file"], role=Role.TEXT).work.n_texts for _ in range(2)] == [1, 1]


SPEC = ModelSpec(name="model", revision="sha256:1")


def shelf_key(
    tmp_path: Path,
    *,
    spec: dict[str, Any] | None = None,
    info: dict[str, Any] | None = None,
    runtime: dict[str, Any] | None = None,
    role: Role = Role.QUERY,
    prompt: str = "query: ",
) -> bytes:
    """Where the vectors of a model are, with something changed."""
    kept = shelves.Shelves(VectorCache(tmp_path), RuntimeOptions(**runtime or {}))
    changed = dataclasses.replace(INFO, **info or {})
    return kept.shelf(dataclasses.replace(SPEC, **spec or {}), changed, role, prompt).key


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"revision": "sha256:2"}},
        {"spec": {"name": "other"}},
        {"spec": {"backend": "static"}},
        {"spec": {"pooling": "cls"}},
        {"spec": {"max_seq_length": 8}},
        {"spec": {"dtype": "bfloat16"}},
        {"spec": {"args": {"dim": 512}}},
        {"info": {"device": "cuda (other)"}},
        {"info": {"batch_tokens": 16}},
        {"info": {"extra": {"execution_provider": "CUDAExecutionProvider"}}},
        {"runtime": {"compile": True}},
        {"role": Role.DOCUMENT},
        {"prompt": ""},
    ],
    ids=lambda change: str(next(iter(change.values()))),
)
def test_what_may_change_a_vector_leads_to_another_shelf(tmp_path: Path, change: dict[str, Any]) -> None:
    """Each of them alone (F8)."""
    assert shelf_key(tmp_path, **change) != shelf_key(tmp_path)


@pytest.mark.parametrize(
    "spec",
    [
        {"truncate_dim": 2},
        {"normalize": True},
        {"quantize": "int8"},
        {"quantize": "int8", "rescore": 2},
        {"similarity": "dot"},
        {"prompts": {"query": "query: "}},
        {"prompting": "swap"},
    ],
    ids=str,
)
def test_what_is_done_to_a_vector_afterwards_leads_to_the_same_shelf(tmp_path: Path, spec: dict[str, Any]) -> None:
    """It is done again each time."""
    assert shelf_key(tmp_path, spec=spec) == shelf_key(tmp_path)


def test_every_field_of_a_model_is_in_the_key_or_left_out_on_purpose() -> None:
    """A field that comes later shall not be forgotten."""
    asked = {"name", "backend", "revision", "pooling", "max_seq_length", "dtype", "args"}
    assert {field.name for field in dataclasses.fields(ModelSpec)} == asked | set(shelves.AFTERWARDS)


@pytest.mark.parametrize("package", ["torch", "transformers", "onnxruntime", "embeval-toolkit"])
def test_another_version_of_a_library_leads_to_another_shelf_and_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    """Its kernels, or its tokenizer, may give other numbers."""
    before = shelf_key(tmp_path), shelves.note_key(SPEC, RuntimeOptions())
    found = provenance.installed
    monkeypatch.setattr(
        provenance, "installed", lambda names: {**found(names), **({package: "0.0"} if package in names else {})}
    )
    after = shelf_key(tmp_path), shelves.note_key(SPEC, RuntimeOptions())
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_a_note_hangs_on_the_machine_and_how_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of a model, such as its device, its threads and its budget, hangs on these."""
    keys = {shelves.note_key(SPEC, RuntimeOptions()), shelves.note_key(SPEC, RuntimeOptions(num_threads=1))}
    keys.add(shelves.note_key(dataclasses.replace(SPEC, dtype="bfloat16"), RuntimeOptions()))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    keys.add(shelves.note_key(SPEC, RuntimeOptions()))
    monkeypatch.setattr(provenance, "n_cpus", lambda: 1000)
    keys.add(shelves.note_key(SPEC, RuntimeOptions()))
    assert len(keys) == 5
