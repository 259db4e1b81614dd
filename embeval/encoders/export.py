"""A model as ONNX graphs in a folder, with everything that a reader needs to use them as the model says.

The folder has what sentence-transformers expects of one with ``backend="onnx"``: ``modules.json``, the configurations
of its modules, the tokenizer, ``config.json`` and ``onnx/model.onnx`` with the inputs ``input_ids``,
``attention_mask`` (and ``token_type_ids`` where the model has them) and the output ``last_hidden_state``. Batch and
length are free. Pooling and what follows stay outside of the graph, so that they can't differ from what the files say.

The graph of a cross-encoder has the output ``logits`` [batch, labels] instead; that of a language model with its head
is made in ``language_models.export``.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.core.specs import ModelSpec
from embeval.encoders import locate, modules, onnx_head, tokens, torch_checks
from embeval.encoders.backends.onnx import EXPORT_FILE, load_tokenizer, position_limit
from embeval.encoders.backends.transformers import load_checkpoint
from embeval.encoders.locate import Located
from embeval.encoders.torch_runtime import quiet_libraries
from embeval.errors import ConfigError, ModelError

Output = Literal["last_hidden_state", "logits"]
Precision = Literal["fp32", "fp16", "int8", "int8-static"]
FILES: dict[Precision, str] = {
    "fp32": "model.onnx",
    "fp16": "model_fp16.onnx",
    "int8": "model_int8.onnx",
    "int8-static": "model_int8_static.onnx",
}
"""Precision -> file below ``onnx/``."""
EXPORTED = ("sentence_transformers", "transformers")
"""Backends whose models can be exported."""
QUANTIZED = ["MatMul", "Gemm"]
"""Where nearly all the time goes, and with the embeddings, nearly all the bytes."""
CALIBRATION_BATCH = 8


def write_folder(located: Located, out: Path) -> Path:
    """Writes the model in float32 and all that belongs to it to ``out``; gives the graph's file.

    Raises ``ConfigError`` for settings that an export can't carry, ``ModelError`` for a model that can't be exported.
    """
    refuse_settings(located)
    assert located.folder is not None
    stack = modules.read(located.folder, located.spec)
    locate.refuse_pickled_weights(located.folder)
    model, tokenizer, _ = load_checkpoint(stack.transformer, located.spec)
    copy_files(located.folder, out)
    if not (located.folder / "modules.json").is_file():
        _write_modules(out, located.spec, dim=model.config.hidden_size)
    below = out / stack.transformer.relative_to(located.folder)
    return _write(model, tokenizer, below, located.spec, output="last_hidden_state")


def is_cross_encoder(located: Located) -> bool:
    """Whether a model scores pairs of texts: a head for texts as a whole, and nobody says how to pool."""
    folder, spec = located.folder, located.spec
    if folder is None or spec.backend not in EXPORTED or spec.pooling is not None:
        return False
    if (folder / "modules.json").is_file() and len(modules.listed(folder, spec.name)) > 1:
        return False
    config = modules.transformer_folder(folder, spec) / "config.json"
    return config.is_file() and modules.is_classifier(modules.json_object(config))


def write_cross_encoder(located: Located, out: Path) -> Path:
    """The same as ``write_folder`` for a model of which ``is_cross_encoder`` is true."""
    refuse_settings(located)
    assert located.folder is not None
    transformer = modules.transformer_folder(located.folder, located.spec)
    locate.refuse_pickled_weights(located.folder)
    model, tokenizer, _ = load_checkpoint(transformer, located.spec, head="AutoModelForSequenceClassification")
    model.config.pad_token_id = tokenizer.pad_token_id  # by which decoders find the last token of a text
    copy_files(located.folder, out)
    below = out / transformer.relative_to(located.folder)
    return _write(model, tokenizer, below, located.spec, output="logits")


def _write(model: Any, tokenizer: Any, folder: Path, spec: ModelSpec, *, output: Output) -> Path:
    """Tokenizer, graph and what is to be known of it."""
    with quiet_libraries():
        tokenizer.save_pretrained(folder)
    graph = _export(model, tokenizer, folder, spec.name, output=output)
    note(folder, spec, positions=torch_checks.position_limit(model))
    return graph


def note(folder: Path, spec: ModelSpec, **about: strict_json.Json) -> None:
    """Writes to ``EXPORT_FILE`` of a transformer's folder which model it was, and what else is to be known of it."""
    whole = {"model": spec.name, "revision": spec.revision, **about}
    (folder / EXPORT_FILE).write_text(json.dumps(whole, indent=2) + "\n", encoding="utf-8")


def to_float16(graph: Path) -> Path:
    """The graph with weights and sums in float16; inputs and output keep their types, and so does a language head."""
    import onnx

    with _quiet():
        half = onnx_head.with_body(onnx.load(graph), halved)
    onnx.save(half, file := graph.with_name(FILES["fp16"]))
    return file


def halved(model: Any, kept: list[str]) -> Any:
    """A model of onnx in float16, but for its inputs and outputs and the nodes named in ``kept``."""
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    half = convert_float_to_float16(model, keep_io_types=True, node_block_list=kept)
    OnnxModel(half).topological_sort()  # new nodes were put behind all others, which the format doesn't allow
    return half


def to_int8(graph: Path) -> Path:
    """The graph with int8 weights (a scale per channel); activations are scaled batch by batch."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    file = graph.with_name(FILES["int8"])
    with _preprocessed(graph) as ready, _quiet():
        quantize_dynamic(
            ready,
            file,
            op_types_to_quantize=[*QUANTIZED, "Gather"],
            nodes_to_exclude=_kept(ready),
            per_channel=True,
            weight_type=QuantType.QInt8,
        )
    return file


def to_static_int8(graph: Path, folder: Path, texts: Sequence[str]) -> Path:
    """The same with scales of activations fixed beforehand, on the texts: a vector then hangs on its text alone."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    if not texts:
        raise ConfigError("int8-static needs texts to calibrate on.")
    batches = list(_calibration(folder, texts))

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = iter(batches)

        def get_next(self) -> Any:
            return next(self._left, None)

    file = graph.with_name(FILES["int8-static"])
    with _preprocessed(graph) as ready, _quiet():
        quantize_static(
            ready,
            file,
            Reader(),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=QUANTIZED,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    return file


def refuse_settings(located: Located) -> None:
    """Raises ``ConfigError`` for a model that can't be exported, or for settings that an export can't carry."""
    spec = located.spec
    if spec.backend not in EXPORTED:
        raise ConfigError(
            f"Model {spec.name!r} of the backend {spec.backend!r} can't be exported; "
            f"models of {' and '.join(EXPORTED)} can."
        )
    changed = {
        "dtype": spec.dtype != "float32",
        "truncate_dim": spec.truncate_dim is not None,
        "max_seq_length": spec.max_seq_length is not None,
        "normalize": spec.normalize is not None,
        "quantize": spec.quantize is not None,
        "prompts": bool(spec.prompts),
        "prompting": spec.prompting != "auto",
        "similarity": spec.similarity is not None,
        "append_eos": bool(spec.args.get("append_eos")),
    }
    if given := [name for name, is_changed in changed.items() if is_changed]:
        raise ConfigError(
            f"Model {spec.name!r}: {given[0]} is no part of an export. Export the model as it is, and give the setting "
            "where the export is used: -m onnx:FOLDER,…"
        )
    if spec.pooling is not None and spec.backend != "transformers":
        raise ConfigError(
            f"Model {spec.name!r}: an export keeps the pooling that the model declares. For a bare checkpoint say "
            f"transformers:{spec.name},pooling={spec.pooling}."
        )
    if spec.backend == "transformers" and located.folder is not None and (located.folder / "modules.json").is_file():
        raise ConfigError(
            f"Model {spec.name!r} says itself how it pools (modules.json), and an export keeps that. "
            "Export it with the backend sentence_transformers."
        )


def copy_files(source: Path, out: Path) -> None:
    """Copies all files of a model but its transformer's weights."""
    names = sorted(locate.relevant_files(source))
    weights = locate.torch_weights(source, names)
    for name in names:
        if name in weights:
            continue
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target)


def _write_modules(out: Path, spec: ModelSpec, *, dim: int) -> None:
    """What a bare checkpoint doesn't say: the pooling that the spec does."""
    mode = {"mean_sqrt_len": "mean_sqrt_len_tokens"}.get(str(spec.pooling), spec.pooling)
    listed = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (out / "1_Pooling").mkdir(exist_ok=True)
    for name, content in (
        ("modules.json", listed),
        ("1_Pooling/config.json", {"word_embedding_dimension": dim, "pooling_mode": mode}),
    ):
        (out / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _export(model: Any, tokenizer: Any, folder: Path, name: str, *, output: Output) -> Path:
    import inspect

    import torch

    takes = inspect.signature(model.forward).parameters
    inputs = [each for each in ("input_ids", "attention_mask", "token_type_ids") if each in takes]
    if "token_type_ids" not in tokenizer.model_input_names:
        inputs = [each for each in inputs if each != "token_type_ids"]

    class Graph(torch.nn.Module):
        """The model with its inputs by place and one output."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            """[B, T, D], or [B, labels]."""
            found: torch.Tensor = self.model(**dict(zip(inputs, given, strict=True)))[output]
            return found

    attend_plainly(model)
    # Two rows of which one is padded: a mask of ones alone would be taken for one that is never needed.
    texts = [["a b c d e f", "a"]] * (2 if output == "logits" else 1)
    encoded = tokenizer(*texts, padding=True, return_tensors="pt")
    return write_graph(Graph(), {each: encoded[each] for each in inputs}, folder, name, output=output)


def attend_plainly(model: Any) -> None:
    """Sets a model's attention to the one that exports best.

    The exporter writes torch's fused attention out with a guard against rows of padding alone, three passes over all
    scores; the plain one masks with the smallest number, which needs none. Models with an attention of their own say by
    these errors that they keep it.
    """
    with contextlib.suppress(ValueError, AttributeError, NotImplementedError):
        model.set_attn_implementation("eager")


def write_graph(module: Any, examples: Mapping[str, Any], folder: Path, name: str, *, output: str) -> Path:
    """Writes a module of torch in float32 below a transformer's folder; gives the graph's file.

    The module takes ``*given``, tensors by place; ``examples`` names them. All their sizes are free. Raises
    ``ModelError`` for a module that can't be exported.
    """
    import torch

    file = folder / "onnx" / FILES["fp32"]
    file.parent.mkdir(parents=True, exist_ok=True)
    free = tuple(dict.fromkeys(range(each.ndim), torch.export.Dim.DYNAMIC) for each in examples.values())
    try:
        with _quiet(), torch.inference_mode():
            program = torch.onnx.export(
                module.eval(),
                tuple(examples.values()),
                dynamo=True,
                dynamic_shapes={"given": free},
                input_names=list(examples),
                output_names=[output],
                verbose=False,
            )
            assert program is not None
            program.save(file)
    except (MemoryError, OSError):  # of the machine and not of the model, such as a full disk
        raise
    except Exception as error:  # the exporter raises what the model's code makes of it
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(f"Model {name!r} can't be exported by torch's exporter.\n{reason[:300]}") from error
    return file


@contextlib.contextmanager
def _preprocessed(graph: Path) -> Iterator[Path]:
    """The graph with shapes inferred, as the quantiser wants it; gone afterwards."""
    import onnx
    from onnxruntime.quantization.shape_inference import quant_pre_process

    ready = graph.with_name("preprocessed.onnx")
    try:
        with _quiet():
            quant_pre_process(graph, ready, skip_symbolic_shape=True)
            model = onnx.load(ready)
            weights = {each.name for each in model.graph.initializer}
            shapes = [each for each in model.graph.value_info if each.name not in weights]
            if len(shapes) < len(model.graph.value_info):  # the quantiser turns weights around, and not their shapes
                del model.graph.value_info[:]
                model.graph.value_info.extend(shapes)
                onnx.save(model, ready)
        yield ready
    finally:
        ready.unlink(missing_ok=True)


def _kept(graph: Path) -> list[str]:
    """Names of the products that stay as they are: those that give ``logits`` themselves, and a language model's head.

    They cost next to nothing, and what they round decides between candidates.
    """
    import onnx

    model = onnx.load(graph, load_external_data=False)
    if head := onnx_head.node_names(model):
        return sorted(name for node in head for name in (node, f"{node}_MatMul"))
    makers = {output: node for node in model.graph.node for output in node.output}
    found, wanted, seen = [], ["logits"], set[str]()
    while wanted:
        node = makers.get(name := wanted.pop())
        if node is None or name in seen:
            continue
        seen.add(name)
        if node.op_type in QUANTIZED:
            found += [node.name, f"{node.name}_MatMul"]  # what the quantiser makes of a Gemm
        else:
            wanted += node.input
    return found


def _calibration(folder: Path, texts: Sequence[str]) -> Iterator[dict[str, npt.NDArray[np.int64]]]:
    """The inputs of the graph for the texts, cut and padded as the backend does it."""
    import onnxruntime

    spec = ModelSpec(name=str(folder), backend="onnx")
    stack = modules.read(folder, spec)
    tokenizer = load_tokenizer(stack.transformer, spec)
    if stack.max_seq_length is not None:
        tokenizer.model_max_length = stack.max_seq_length
    positions = position_limit(stack.transformer)
    limit, _ = tokens.choose_limit(tokenizer, asked=None, positions=positions, name=spec.name)
    session = onnxruntime.InferenceSession(
        stack.transformer / "onnx" / FILES["fp32"], providers=["CPUExecutionProvider"]
    )
    wanted = [each.name for each in session.get_inputs()]
    prepared = tokens.tokenize(tokenizer, texts, limit)
    for start in range(0, len(texts), CALIBRATION_BATCH):
        rows = np.arange(start, min(start + CALIBRATION_BATCH, len(texts)), dtype=np.intp)
        padded = tokens.pad(tokenizer, prepared, rows, left=tokens.pads_left(tokenizer, positions))
        yield {name: padded[name] for name in wanted}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Exporters print and log their progress."""
    import io
    import logging

    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
