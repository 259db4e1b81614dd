"""ONNX models to test with: tiny models exported once per run of the tests, and graphs built by hand."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embeval.core.specs import ModelSpec
from embeval.encoders import export, loading
from embeval.language_models import export as language_export
from tests.support.models import (
    save_tiny_checkpoint,
    save_tiny_cross_encoder,
    save_tiny_decoder,
    save_tiny_model,
    save_tokenizer,
)


@functools.cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="embeval-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def source(kind: str) -> ModelSpec:
    """A tiny model in torch.

    ``tiny`` (sentence-transformers, mean, normalised), ``dense``, ``decoder``, or a type of transformers: a bare
    checkpoint with mean pooling.
    """
    folder = _scratch() / kind
    if kind == "tiny":
        return ModelSpec(name=str(save_tiny_model(folder, prompts={"query": "the query "})))
    if kind == "dense":
        return ModelSpec(name=str(save_tiny_model(folder, dense=8, normalize=False)))
    if kind == "decoder":
        return ModelSpec(name=str(save_tiny_decoder(folder, pooling="lasttoken")))
    return ModelSpec(name=str(save_tiny_checkpoint(folder, kind)), backend="transformers", pooling="mean")


@functools.cache
def exported(kind: str) -> Path:
    """The folder that ``export.write_folder`` makes of it; not to be changed."""
    folder = _scratch() / f"{kind}-onnx"
    folder.mkdir()
    export.write_folder(loading.resolve(source(kind)), folder)
    return folder


@functools.cache
def cross_encoder() -> Path:
    """A tiny cross-encoder in torch; not to be changed."""
    return save_tiny_cross_encoder(_scratch() / "cross-encoder")


@functools.cache
def exported_cross_encoder() -> Path:
    """The folder that ``export.write_cross_encoder`` makes of it, with int8 and float16; not to be changed."""
    folder = _scratch() / "cross-encoder-onnx"
    folder.mkdir()
    graph = export.write_cross_encoder(loading.resolve(ModelSpec(name=str(cross_encoder()))), folder)
    export.to_float16(graph)
    export.to_int8(graph)
    return folder


@functools.cache
def language_model(kind: str) -> Path:
    """A tiny masked language model of that type in torch, one layer but for ``bert``; not to be changed."""
    layers: dict[str, Any] = {} if kind == "bert" else {"n_layers" if kind == "distilbert" else "num_hidden_layers": 1}
    return save_tiny_checkpoint(_scratch() / f"{kind}-lm", kind, head="AutoModelForMaskedLM", **layers)


@functools.cache
def exported_language_model(kind: str) -> Path:
    """The folder that ``language_models.export.write_folder`` makes of it; not to be changed.

    ``bert`` is there with int8 and float16, too.
    """
    folder = _scratch() / f"{kind}-lm-onnx"
    folder.mkdir()
    located = loading.resolve(ModelSpec(name=str(language_model(kind))))
    graph = language_export.write_folder(located, "masked", folder)
    if kind == "bert":
        export.to_float16(graph)
        export.to_int8(graph)
    return folder


def copy_of(kind: str, folder: Path) -> Path:
    """A copy of that, to be changed."""
    return Path(shutil.copytree(exported(kind), folder))


def save_lookup(
    folder: Path,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    outputs: Sequence[str] = ("last_hidden_state",),
    integer: str = "INT64",
    number: str = "FLOAT",
    file: str = "onnx/model.onnx",
) -> np.ndarray[Any, Any]:
    """A folder whose graph looks each token up in a table, which it gives back: float [vocabulary, 4].

    Every input but the ids is added to the vector as it is (times 0 for the mask), so that it can be seen from outside.
    An output ``sentence_embedding`` is the first token's vector.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = save_tokenizer(folder)
    (folder / "config.json").write_text('{"model_type": "bert", "max_position_embeddings": 64}', encoding="utf-8")
    table = np.random.default_rng(0).standard_normal((len(tokenizer), 4)).astype(np.float32)
    if number == "FLOAT16":
        table = table.astype(np.float16)
    kind, ids = getattr(TensorProto, number), getattr(TensorProto, integer)
    constants = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
        numpy_helper.from_array(np.array(0, dtype=np.int64), "first"),
        numpy_helper.from_array(np.array(0, dtype=table.dtype), "nothing"),
    ]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["sum0"])]
    for place, name in enumerate(name for name in inputs if name != "input_ids"):
        nodes += [
            helper.make_node("Cast", [name], [f"{name}_float"], to=kind),
            helper.make_node("Unsqueeze", [f"{name}_float", "last"], [f"{name}_wide"]),
        ]
        wide = f"{name}_wide"
        if name == "attention_mask":
            nodes.append(helper.make_node("Mul", [wide, "nothing"], [f"{name}_none"]))
            wide = f"{name}_none"
        nodes.append(helper.make_node("Add", [f"sum{place}", wide], [f"sum{place + 1}"]))
    last = f"sum{len(inputs) - 1}"
    declared = []
    for name in outputs:
        if name == "sentence_embedding":
            nodes.append(helper.make_node("Gather", [last, "first"], [name], axis=1))
            declared.append(helper.make_tensor_value_info(name, kind, ["batch", 4]))
        else:
            nodes.append(helper.make_node("Identity", [last], [name]))
            declared.append(helper.make_tensor_value_info(name, kind, ["batch", "length", 4]))
    graph = helper.make_graph(
        nodes,
        "lookup",
        [helper.make_tensor_value_info(name, ids, ["batch", "length"]) for name in inputs],
        declared,
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / file)
    return table
