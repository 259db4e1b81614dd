"""What an exported folder holds. That its vectors are those of torch is tested with the backend ``onnx``."""

from __future__ import annotations

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core.specs import ModelSpec, Role, RuntimeOptions
from embeval.encoders import export, loading
from embeval.errors import ConfigError, ModelError
from tests.support.exports import copy_of, exported, source
from tests.support.models import edit_json, save_tiny_checkpoint, save_tiny_model

TEXTS = ["restore a backup of the old server", "token", "the key of the archive", "red green blue", "scan a page"] * 3


def names(folder: Path) -> set[str]:
    """All files below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def vectors(folder: Path, texts: list[str], budget: int = 1_000, **fields: Any) -> np.ndarray[Any, Any]:
    """The vectors of an exported folder."""
    spec = ModelSpec(name=str(folder), backend="onnx", **fields)
    encoder = loading.load(loading.resolve(spec), RuntimeOptions(batch_tokens=budget))
    return encoder.encode(texts, role=Role.TEXT).vectors


def test_the_files_are_those_of_sentence_transformers() -> None:
    """Everything of the model but its weights, equal to the byte, and a graph where the library looks for it."""
    folder, model = exported("tiny"), Path(source("tiny").name)
    assert names(folder) - names(model) == {"onnx/model.onnx", "embeval_export.json"}
    assert names(model) - names(folder) <= {"model.safetensors", "README.md"}
    for name in (
        "modules.json",
        "1_Pooling/config.json",
        "config_sentence_transformers.json",
        "sentence_bert_config.json",
        "config.json",
    ):
        assert (folder / name).read_bytes() == (model / name).read_bytes()


def test_the_graph_has_the_names_that_others_expect() -> None:
    """As optimum's: inputs, output, free batch and length."""
    import onnxruntime

    session = onnxruntime.InferenceSession(exported("tiny") / "onnx/model.onnx", providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == ["input_ids", "attention_mask", "token_type_ids"]
    (output,) = session.get_outputs()
    assert (output.name, output.shape[2]) == ("last_hidden_state", 32)
    for batch, length in ((1, 2), (3, 5)):
        ones = np.ones((batch, length), dtype=np.int64)
        (found,) = session.run(None, {each.name: ones for each in session.get_inputs()})
        assert found.shape == (batch, length, 32)


def test_the_export_says_of_which_model_it_is() -> None:
    """Name, revision, positions."""
    spec = loading.resolve(source("tiny")).spec
    about = json.loads((exported("tiny") / "embeval_export.json").read_text(encoding="utf-8"))
    assert about == {"model": spec.name, "revision": spec.revision, "positions": 64}
    decoder = json.loads((exported("decoder") / "embeval_export.json").read_text(encoding="utf-8"))
    assert decoder["positions"] is None


def test_a_bare_checkpoint_gets_the_pooling_that_was_said() -> None:
    """Written so that sentence-transformers 6.2's own Pooling reads it."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    folder = exported("roberta")
    kinds = [each["type"] for each in json.loads((folder / "modules.json").read_text(encoding="utf-8"))]
    assert kinds == ["sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling"]
    pooling = Pooling.load(str(folder / "1_Pooling"))
    assert (pooling.pooling_mode, pooling.embedding_dimension) == ("mean", 32)
    assert "model.safetensors" not in names(folder)


def test_dense_weights_come_along() -> None:
    """They are no part of the graph."""
    folder, model = exported("dense"), Path(source("dense").name)
    name = "2_Dense/model.safetensors"
    assert (folder / name).read_bytes() == (model / name).read_bytes()


def test_a_transformer_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """As older models have it: the graph goes there, and the vectors are the same."""
    model = save_tiny_model(tmp_path / "model")
    own = model / "0_Transformer"
    own.mkdir()
    for file in [*model.glob("*token*"), *model.glob("*.safetensors"), model / "config.json"]:
        shutil.move(file, own / file.name)
    shutil.move(model / "sentence_bert_config.json", own)
    listed = json.loads((model / "modules.json").read_text(encoding="utf-8"))
    listed[0]["path"] = "0_Transformer"
    (model / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    out = tmp_path / "out"
    located = loading.resolve(ModelSpec(name=str(model)))
    assert export.write_folder(located, out) == out / "0_Transformer/onnx/model.onnx"
    assert "0_Transformer/model.safetensors" not in names(out)
    expected = loading.load(located).encode(TEXTS, role=Role.TEXT).vectors
    np.testing.assert_allclose(vectors(out, TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"truncate_dim": 4}, "truncate_dim is no part of an export"),
        ({"max_seq_length": 8}, "max_seq_length is no part of an export"),
        ({"normalize": True}, "normalize is no part of an export"),
        ({"prompts": {"query": "q"}}, "prompts is no part of an export"),
        ({"prompting": "none"}, "prompting is no part of an export"),
        ({"similarity": "dot"}, "similarity is no part of an export"),
        ({"dtype": "bfloat16"}, "dtype is no part of an export"),
        ({"pooling": "cls"}, "an export keeps the pooling that the model declares"),
    ],
)
def test_settings_that_an_export_cannot_carry(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """Refused before anything is written."""
    located = loading.resolve(replace(source("tiny"), **fields))
    with pytest.raises(ConfigError, match=message):
        export.write_folder(located, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_models_that_have_no_graph(tmp_path: Path) -> None:
    """The baseline, an end token that is added, and a checkpoint that says itself how it pools."""
    for spec, message in (
        (ModelSpec(name="h", backend="hashing"), "of the backend 'hashing' can't be exported"),
        (ModelSpec(name=str(exported("tiny")), backend="onnx"), "of the backend 'onnx' can't be exported"),
        (replace(source("roberta"), args={"append_eos": True}), "append_eos is no part of an export"),
        (replace(source("tiny"), backend="transformers", pooling="cls"), "says itself how it pools"),
    ):
        with pytest.raises(ConfigError, match=message):
            export.write_folder(loading.resolve(spec), tmp_path / "out")


def test_a_bare_checkpoint_needs_its_pooling(tmp_path: Path) -> None:
    """F9: not guessed."""
    located = loading.resolve(replace(source("roberta"), backend="sentence_transformers", pooling=None))
    with pytest.raises(ConfigError, match="doesn't say how it pools"):
        export.write_folder(located, tmp_path / "out")


def test_what_the_exporter_cannot_do_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of its reason."""
    import torch

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no such operator\nmany more lines")

    monkeypatch.setattr(torch.onnx, "export", fails)
    with pytest.raises(ModelError, match=r"can't be exported by torch's exporter\.\nno such operator$"):
        export.write_folder(loading.resolve(source("tiny")), tmp_path / "out")


def test_a_full_disk_is_not_the_models_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comes through as it is; whoever knows the folder tells it."""
    import torch

    def fails(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch.onnx, "export", fails)
    with pytest.raises(OSError, match="No space left on device"):
        export.write_folder(loading.resolve(source("tiny")), tmp_path / "out")


# --- other precisions ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model in all precisions."""
    folder = copy_of("tiny", tmp_path_factory.mktemp("converted") / "model")
    graph = folder / "onnx/model.onnx"
    for file in (export.to_float16(graph), export.to_int8(graph), export.to_static_int8(graph, folder, TEXTS)):
        assert file.parent == graph.parent
    return folder


def cosines(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of rows of length 1."""
    found: np.ndarray[Any, Any] = (left * right).sum(axis=1)
    return found


def test_each_precision_is_near_to_float32(converted: Path) -> None:
    """As near as its bits allow, and not equal."""
    assert names(converted / "onnx") == {
        "model.onnx",
        "model_fp16.onnx",
        "model_int8.onnx",
        "model_int8_static.onnx",
    }
    whole = vectors(converted, TEXTS)
    for fields, least in (
        ({"dtype": "float16"}, 0.99999),
        ({"dtype": "int8"}, 0.99),
        ({"dtype": "int8", "args": {"file": "model_int8_static.onnx"}}, 0.97),
    ):
        found = vectors(converted, TEXTS, **fields)
        assert least <= cosines(whole, found).min() < 1 - 1e-9
        assert not np.array_equal(whole, found)


def test_scales_that_are_fixed_leave_a_text_alone(converted: Path) -> None:
    """G2: in dynamic int8 a vector hangs on what else is in the batch, in static int8 it doesn't (1e-6)."""
    static = {"dtype": "int8", "args": {"file": "model_int8_static.onnx"}}
    texts = TEXTS[:5]
    alone, together = (vectors(converted, texts, budget, **static) for budget in (1, 1_000))
    np.testing.assert_allclose(alone, together, atol=1e-6)
    alone, together = (vectors(converted, texts, budget, dtype="int8") for budget in (1, 1_000))
    assert np.abs(alone - together).max() > 1e-5


def test_weights_are_a_byte_each(converted: Path) -> None:
    """Those of linear layers in int8, those of the word table too where scales come from the batch."""
    import onnx
    from onnx import TensorProto, numpy_helper

    for file, least in (("model_int8.onnx", 15_000), ("model_int8_static.onnx", 15_000)):
        tensors = onnx.load(converted / "onnx" / file).graph.initializer
        count = sum(
            numpy_helper.to_array(t).size for t in tensors if t.data_type in (TensorProto.INT8, TensorProto.UINT8)
        )
        assert count > least


def test_calibration_needs_texts_and_cuts_them(tmp_path: Path) -> None:
    """No texts is an error; a text beyond the positions of the model is cut as it is when the model is run."""
    folder = copy_of("roberta", tmp_path / "copy")
    graph = folder / "onnx/model.onnx"
    with pytest.raises(ConfigError, match="needs texts to calibrate on"):
        export.to_static_int8(graph, folder, [])
    edit_json(folder / "tokenizer_config.json", model_max_length=500)
    batches = list(export._calibration(folder, ["word " * 300, *TEXTS]))
    assert [batch["input_ids"].shape for batch in batches] == [(8, 63), (8, batches[1]["input_ids"].shape[1])]


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    """An export is no way around it."""
    model = save_tiny_checkpoint(tmp_path / "model", "bert")
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    spec = ModelSpec(name=str(model), backend="transformers", pooling="mean")
    with pytest.raises(ModelError, match="Pickled weights can run code"):
        export.write_folder(loading.resolve(spec), tmp_path / "out")
