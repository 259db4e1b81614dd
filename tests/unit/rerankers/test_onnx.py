"""Exported cross-encoders in onnxruntime, against torch."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.protocols import Reranker
from embeval.core.specs import Dtype, RerankerSpec, RuntimeOptions
from embeval.errors import ConfigError, ModelError
from embeval.rerankers import loading
from tests.support.exports import cross_encoder, exported_cross_encoder, save_lookup
from tests.support.models import edit_json

LONG = "one two three day old new fast slow red blue green one two three day old new fast slow red"
PAIRS = [("restore a backup", "the server"), (LONG, "one"), (LONG, "two"), ("token", LONG), ("key", ""), ("a", "b")]
CPU = RuntimeOptions(device="cpu")


def load(folder: Path, runtime: RuntimeOptions = CPU, **spec: Any) -> Reranker:
    """The reranker in a folder."""
    return loading.load(loading.resolve(RerankerSpec(name=str(folder), backend="onnx", **spec)), runtime)


def in_torch() -> np.ndarray[Any, Any]:
    """The scores of the model that was exported."""
    return loading.load(loading.resolve(RerankerSpec(name=str(cross_encoder()))), CPU).score(PAIRS).scores


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 5e-6), ("float16", 2e-2), ("int8", 0.5)])
def test_scores_are_those_of_torch(dtype: Dtype, tolerance: float) -> None:
    """One, two and many tokens per side in one batch; each precision from its own graph."""
    reranker = load(exported_cross_encoder(), dtype=dtype)
    scored = reranker.score(PAIRS)
    np.testing.assert_allclose(scored.scores, in_torch(), atol=tolerance)
    assert reranker.info.extra["execution_provider"] == "CPUExecutionProvider"
    assert reranker.info.max_seq_length == 16
    assert (scored.n_truncated, scored.n_document_lost) == (3, 0)


def test_a_provider_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """G1: an error, and not the CPU in silence, with an onnxruntime that has the CPU alone."""
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(ModelError, match="CUDAExecutionProvider was asked for, but this onnxruntime has only"):
        load(exported_cross_encoder(), RuntimeOptions(device="cuda"))
    with pytest.raises(ModelError, match="TensorrtExecutionProvider was asked for"):
        load(exported_cross_encoder(), RuntimeOptions(), args={"provider": "tensorrt"})


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    """The scores of torch on the CPU."""
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers() or not Path("/dev/nvidia0").exists():
        pytest.skip("no CUDA device")
    found = load(exported_cross_encoder(), RuntimeOptions(device="cuda"))
    assert found.info.extra["execution_provider"] == "CUDAExecutionProvider"
    np.testing.assert_allclose(found.score(PAIRS).scores, in_torch(), atol=1e-2)


def test_a_graph_without_logits(tmp_path: Path) -> None:
    """A graph for vectors is no reranker's."""
    save_lookup(tmp_path / "model")
    edit_json(tmp_path / "model/config.json", architectures=["BertForSequenceClassification"])
    with pytest.raises(ModelError, match="its graph gives last_hidden_state, and no 'logits'"):
        load(tmp_path / "model")


def test_a_graph_with_a_score_per_token(tmp_path: Path) -> None:
    """Logits of another shape are not taken for scores."""
    save_lookup(tmp_path / "model", outputs=("logits",))
    edit_json(tmp_path / "model/config.json", architectures=["BertForSequenceClassification"])
    with pytest.raises(ModelError, match=r"gives logits of shape \[1, 5, 4\] for 1 pairs"):
        load(tmp_path / "model")


def test_a_number_format_that_is_not_there(tmp_path: Path) -> None:
    """The message lists what is."""
    folder = Path(shutil.copytree(exported_cross_encoder(), tmp_path / "model"))
    (folder / "onnx/model_int8.onnx").unlink()
    with pytest.raises(ModelError, match=r"no graph in int8; there is onnx/model.onnx, onnx/model_fp16.onnx"):
        load(folder, dtype="int8")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"file": 3}, "file must be text, not 3"),
        ({"file": "model.bin"}, "file must be the name of an .onnx file"),
        ({"provider": "rocm"}, "provider must be cpu, cuda, tensorrt"),
        ({"trust_remote_code": True}, "has no option 'trust_remote_code'; it takes file, label, provider"),
    ],
)
def test_mistakes_in_the_spec(args: dict[str, Any], message: str) -> None:
    """Errors of ours."""
    with pytest.raises(ConfigError, match=message):
        load(exported_cross_encoder(), args=args)
