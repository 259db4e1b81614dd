"""What people choose a model by, from its files and from what it says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from embeval.core.facts import ModelFacts
from embeval.core.protocols import EncoderInfo
from embeval.core.specs import Dtype, ModelSpec
from embeval.encoders import facts
from embeval.encoders.locate import Located


def info(*, n_parameters: int | None = 1000, **extra: str) -> EncoderInfo:
    """A model of 384 dimensions."""
    return EncoderInfo(
        dim=384,
        max_seq_length=256,
        similarity="cosine",
        prompts={},
        pooling="mean",
        n_parameters=n_parameters,
        device="cpu",
        num_threads=1,
        batch_tokens=4096,
        extra=extra,
    )


@pytest.mark.parametrize(
    ("dtype", "n_parameters", "expected"),
    [("float32", 1000, 4000), ("bfloat16", 1000, 2000), ("int8", 1000, 1000), ("float32", None, None), ("int8", 0, 0)],
)
def test_bytes_of_weights(dtype: Dtype, n_parameters: int | None, expected: int | None) -> None:
    """Parameters in their number format; not known where their number isn't."""
    found = facts.of(Located(ModelSpec(name="m", dtype=dtype), None), info(n_parameters=n_parameters))
    assert found == ModelFacts(parameters=n_parameters, dimensions=384, max_tokens=256, weight_bytes=expected)


def test_an_exported_model_weighs_what_its_graph_does(tmp_path: Path) -> None:
    """With the weights that lie in a file of their own, wherever in the folder; other files don't count."""
    (tmp_path / "onnx").mkdir()
    for name, size in (("model_int8.onnx", 30), ("model_int8.onnx.data", 500), ("model.onnx", 2000)):
        (tmp_path / "onnx" / name).write_bytes(b"x" * size)
    (tmp_path / "README.md").write_text("---\nlanguage: en\nlicense: other\nlicense_name: gemma\n---\n", "utf-8")
    found = facts.of(Located(ModelSpec(name="m", dtype="int8"), tmp_path), info(graph="model_int8.onnx"))
    assert (found.weight_bytes, found.languages, found.license) == (530, ("en",), "gemma")
