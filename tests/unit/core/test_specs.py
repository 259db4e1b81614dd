"""Specs: what the digest covers, what a label tells, which options are refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embeval.core import border, strict_json
from embeval.core.specs import (
    DatasetRef,
    Dtype,
    ModelSpec,
    PoolingName,
    Prompting,
    Quantization,
    Role,
    RuntimeOptions,
    SimilarityName,
    StatisticsOptions,
    TaskSpec,
)

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text(min_size=1).filter(str.strip)
SPLITS = st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True)
MODELS = st.builds(
    ModelSpec,
    name=NAMES,
    backend=st.text(),
    revision=st.none() | st.text() | st.text().map("sha256:{}".format),
    pooling=st.none() | st.sampled_from(get_args(PoolingName)),
    normalize=st.none() | st.booleans(),
    max_seq_length=st.none() | st.integers(),
    prompts=st.dictionaries(st.text(), st.text(), max_size=3),
    truncate_dim=st.none() | st.integers(),
    dtype=st.sampled_from(get_args(Dtype)),
    similarity=st.none() | st.sampled_from(get_args(SimilarityName)),
    args=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | NUMBERS | st.text(), max_size=3),
    prompting=st.sampled_from(get_args(Prompting)),
    quantize=st.sampled_from(get_args(Quantization)),
    rescore=st.none() | st.integers(1, 1000),
)
TASKS = st.builds(
    TaskSpec,
    name=NAMES,
    type=st.text(),
    dataset=st.builds(DatasetRef, path=st.text(), split=SPLITS),
    options=st.dictionaries(
        st.text(), st.none() | st.booleans() | st.integers() | NUMBERS | st.lists(st.text()), max_size=3
    ),
    main_score=st.none() | st.text(),
    languages=st.lists(st.text(), max_size=3).map(tuple),
    license=st.none() | st.text(),
    citation=st.none() | st.text(),
    version=st.integers(1),
)

DEFAULTS: dict[str, Any] = {
    "name": "org/model",
    "backend": "sentence_transformers",
    "revision": None,
    "pooling": None,
    "normalize": None,
    "max_seq_length": None,
    "prompts": {},
    "truncate_dim": None,
    "dtype": "float32",
    "similarity": None,
    "args": {},
}


def sha256_of(fields: dict[str, Any]) -> str:
    """The digest that the fields should have, by the standard library."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def test_the_digest_is_sha256_over_all_fields() -> None:
    """From the fields written out by hand."""
    assert ModelSpec(name="org/model").digest == sha256_of(DEFAULTS)
    spec = ModelSpec(name="org/model", prompts={"query": "q: "}, dtype="bfloat16", args={"dim": 8})
    assert spec.digest == sha256_of({**DEFAULTS, "prompts": {"query": "q: "}, "dtype": "bfloat16", "args": {"dim": 8}})


CHANGES: list[tuple[str, Any]] = [
    ("name", "org/other"),
    ("backend", "onnx"),
    ("revision", "abc"),
    ("pooling", "cls"),
    ("normalize", False),
    ("normalize", True),
    ("max_seq_length", 128),
    ("prompts", {"query": "q: "}),
    ("prompts", {"document": "q: "}),
    ("prompts", {"query": ""}),
    ("truncate_dim", 64),
    ("dtype", "float16"),
    ("similarity", "cosine"),
    ("args", {"trust_remote_code": True}),
    ("args", {"trust_remote_code": False}),
    ("prompting", "none"),
    ("prompting", "swap"),
    ("quantize", "int8"),
    ("quantize", "binary"),
]


def test_every_field_counts_in_the_digest() -> None:
    """Each change gives a digest of its own, and no field is left untried."""
    digests = [ModelSpec(name="org/model").digest]
    digests += [dataclasses.replace(ModelSpec(name="org/model"), **{key: value}).digest for key, value in CHANGES]
    stored = ModelSpec(name="org/model", quantize="int8")
    digests += [dataclasses.replace(stored, rescore=times).digest for times in (1, 4)]  # which has no sense alone
    assert len(set(digests)) == len(digests)
    assert {key for key, _ in CHANGES} | {"rescore"} == {field.name for field in dataclasses.fields(ModelSpec)}


def test_the_name_does_not_count_where_the_files_are_hashed() -> None:
    """The same weights in two folders are one model; two names at one commit are two."""
    one, other = (ModelSpec(name=name, revision="sha256:00ff") for name in ("a/model", "/b/copy"))
    assert one.digest == other.digest
    fields = {key: value for key, value in DEFAULTS.items() if key != "name"}
    assert one.digest == sha256_of({**fields, "revision": "sha256:00ff"})
    assert ModelSpec(name="a", revision="00ff").digest != ModelSpec(name="b", revision="00ff").digest
    assert one.digest != dataclasses.replace(one, revision="sha256:00fe").digest
    assert one.digest != dataclasses.replace(one, dtype="float16").digest


@relaxed
@given(spec=MODELS)
def test_a_model_survives_json_with_its_digest(spec: ModelSpec) -> None:
    """Written to text and read back it is equal, and so is its digest."""
    back = border.load(ModelSpec, strict_json.loads(strict_json.dumps(border.dump(spec))))
    assert back == spec
    assert back.digest == spec.digest


@relaxed
@given(spec=TASKS)
def test_a_task_survives_json(spec: TaskSpec) -> None:
    """Written to text and read back it is equal; languages are a tuple again."""
    back = border.load(TaskSpec, strict_json.loads(strict_json.dumps(border.dump(spec))))
    assert back == spec
    assert isinstance(back.languages, tuple)


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"name": "mini"}, "mini"),
        ({"name": "org/mini"}, "mini"),
        ({"name": "support-v2/checkpoint-500"}, "support-v2/checkpoint-500"),
        ({"name": "support-v2/Final"}, "support-v2/Final"),
        ({"name": "support-v2/final-mini"}, "final-mini"),
        ({"name": "checkpoint-500"}, "checkpoint-500"),
        ({"name": "./models/mine/"}, "mine"),
        ({"name": "org/mini", "revision": "abc", "backend": "onnx"}, "mini"),
        ({"name": "org/mini", "dtype": "bfloat16"}, "mini (bfloat16)"),
        ({"name": "m", "pooling": "cls"}, "m (cls)"),
        ({"name": "m", "truncate_dim": 64}, "m (64d)"),
        ({"name": "m", "max_seq_length": 128}, "m (128 tokens)"),
        ({"name": "m", "similarity": "dot"}, "m (dot)"),
        ({"name": "m", "normalize": True}, "m (normalised)"),
        ({"name": "m", "normalize": False}, "m (not normalised)"),
        ({"name": "m", "prompts": {"query": "q: "}}, "m (own prompts)"),
        ({"name": "m", "args": {"b": 2, "a": True}}, "m (a=True, b=2)"),
        ({"name": "m", "prompting": "none"}, "m (no prompts)"),
        ({"name": "m", "prompting": "swap"}, "m (swapped prompts)"),
        ({"name": "m", "quantize": "int8"}, "m (int8 vectors)"),
        ({"name": "m", "quantize": "binary", "rescore": 4}, "m (binary vectors rescored x4)"),
        ({"name": "o/m", "dtype": "float16", "truncate_dim": 8, "args": {"x": "y"}}, "m (float16, 8d, x=y)"),
    ],
)
def test_a_label_tells_what_differs_from_the_defaults(fields: dict[str, Any], label: str) -> None:
    """The last part of the name that says something, then every departure in brackets."""
    assert ModelSpec(**fields).label == label


@pytest.mark.parametrize("name", ["", " ", "\n"])
def test_names_are_not_empty(name: str) -> None:
    """Neither a model's nor a task's: it heads rows, columns and folders."""
    with pytest.raises(ValueError, match="name must not be empty"):
        ModelSpec(name=name)
    with pytest.raises(ValueError, match="name must not be empty"):
        TaskSpec(name=name, type="sts", dataset=DatasetRef(path="x"))


@pytest.mark.parametrize("split", ["", "../test", "a/b", ".hidden", "-x", "a b"])
def test_splits_are_plain_names(split: str) -> None:
    """They become part of file names, of the data and of results."""
    with pytest.raises(ValueError, match="split must be a plain name"):
        DatasetRef(path="x", split=split)


def test_versions_begin_at_one() -> None:
    """0 and less are typing mistakes."""
    with pytest.raises(ValueError, match="version must be at least 1, not 0"):
        TaskSpec(name="t", type="sts", dataset=DatasetRef(path="x"), version=0)


def test_threads_are_bounded() -> None:
    """A thousand is plenty; a million would take the machine down."""
    assert RuntimeOptions(num_threads=1024).num_threads == 1024
    with pytest.raises(ValueError, match="num_threads must be at most 1024, not 1025"):
        RuntimeOptions(num_threads=1025)


def test_digests_are_those_of_before_there_were_more_fields() -> None:
    """The digest of the first release, over the eleven fields that it had: stored results keep their place."""
    pinned = "1c1dafa94dba89e0507846672aec099575e66e1e0d1c2104c75663749fc5cef8"
    assert ModelSpec(name="m", revision="r").digest == sha256_of({**DEFAULTS, "name": "m", "revision": "r"}) == pinned
    explicit = ModelSpec(name="m", revision="r", prompting="auto", quantize=None, rescore=None)
    assert explicit.digest == pinned


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rescore": 4}, "rescore needs quantize: without it nothing is lost that could be won back"),
        ({"quantize": "binary", "rescore": 0}, "rescore must be from 1 to 1000 candidates per hit, not 0"),
        ({"quantize": "binary", "rescore": 1001}, "rescore must be from 1 to 1000 candidates per hit, not 1001"),
    ],
)
def test_rescoring_is_of_quantised_vectors_and_bounded(fields: dict[str, Any], message: str) -> None:
    """What can't be meant is refused where it is said, also in a file."""
    with pytest.raises(ValueError, match=f"^{message}$"):
        ModelSpec(name="m", **fields)
    with pytest.raises(border.BorderError, match=message.removeprefix("rescore ")):
        border.load(ModelSpec, {"name": "m", **fields})


def test_a_budget_is_a_number_or_auto() -> None:
    """``auto`` and null leave it to the device; a number is that number; at the border, too."""
    assert [RuntimeOptions(batch_tokens=each).budget_or(7) for each in (None, "auto", 512)] == [7, 7, 512]
    assert border.load(RuntimeOptions, {"batch_tokens": "auto"}).batch_tokens == "auto"
    with pytest.raises(border.BorderError, match="batch_tokens"):
        border.load(RuntimeOptions, {"batch_tokens": "fast"})


@pytest.mark.parametrize("name", ["batch_tokens", "num_threads"])
@pytest.mark.parametrize("value", [0, -1])
def test_runtime_options_are_positive(name: str, value: int) -> None:
    """A batch of no tokens or no threads is refused with the name and the value; 1 is fine."""
    with pytest.raises(ValueError, match=f"^{name} must be at least 1, not {value}$"):
        RuntimeOptions(**{name: value})  # type: ignore[arg-type]  # the name is one of two that take numbers
    RuntimeOptions(**{name: 1})  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resamples": -1}, "resamples must be 0 or at least 100, not -1"),
        ({"resamples": 1}, "resamples must be 0 or at least 100, not 1"),
        ({"resamples": 99}, "resamples must be 0 or at least 100, not 99"),
        ({"level": 1.0}, r"level must lie in \[0.5, 1\), not 1.0"),
        ({"level": 0.49}, r"level must lie in \[0.5, 1\), not 0.49"),
        ({"level": 95.0}, r"level must lie in \[0.5, 1\), not 95.0"),
        ({"level": math.nan}, r"level must lie in \[0.5, 1\), not nan"),
        ({"seed": -1}, "seed must not be negative, but is -1"),
    ],
)
def test_wrong_statistics_are_refused(options: dict[str, Any], message: str) -> None:
    """Values outside their range, with the value in the message."""
    with pytest.raises(ValueError, match=f"^{message}$"):
        StatisticsOptions(**options)


@pytest.mark.parametrize(
    "options", [{"resamples": 0}, {"resamples": 100}, {"level": 0.5}, {"level": 0.999}, {"seed": 0}]
)
def test_statistics_at_the_edge_are_accepted(options: dict[str, Any]) -> None:
    """The ends of the ranges belong to them."""
    assert dataclasses.asdict(StatisticsOptions(**options)).items() >= options.items()


def test_wrong_statistics_are_refused_at_the_border() -> None:
    """What a file asks for is checked like what code asks for."""
    with pytest.raises(border.BorderError, match="resamples: must be 0 or at least 100, not 5"):
        border.load(StatisticsOptions, {"resamples": 5})


@pytest.mark.parametrize(
    "spec",
    [
        ModelSpec(name="m"),
        RuntimeOptions(),
        StatisticsOptions(),
        DatasetRef(path="x"),
        TaskSpec(name="t", type="sts", dataset=DatasetRef(path="x")),
    ],
    ids=lambda spec: type(spec).__name__,
)
def test_specs_do_not_change(spec: Any) -> None:
    """No field can be set once the spec is built, so that digests stay true."""
    for field in dataclasses.fields(spec):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(spec, field.name, None)


def test_how_a_model_is_run_is_no_part_of_what_it_is() -> None:
    """No field of the runtime options is a field of the model, whose digest it would move."""
    runtime = {field.name for field in dataclasses.fields(RuntimeOptions)}
    assert runtime == {"device", "batch_tokens", "num_threads", "compile", "cache"}
    assert not runtime & {field.name for field in dataclasses.fields(ModelSpec)}


def test_roles_are_their_names() -> None:
    """Prompts are looked up by these words."""
    assert [role.value for role in Role] == ["query", "document", "text"]
    assert f"{Role.QUERY}" == "query"
