"""``onnx``: an exported cross-encoder in our own onnxruntime session, on CPU, CUDA or TensorRT.

The graph gives ``logits``, [n, 1] or [n, labels]; tokenizer and names of labels come from the files beside it. Which
graph of a folder runs hangs on ``dtype``, or on ``args.file``, as in the encoder backend of that name. ``embeval
export`` writes such folders, and so do optimum and sentence-transformers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import EncoderInfo, Reranker
from embeval.core.specs import Dtype, RerankerSpec, RuntimeOptions
from embeval.encoders import tokens
from embeval.encoders.backends import onnx
from embeval.encoders.encoder import BatchedEncoder
from embeval.encoders.onnx_session import Session
from embeval.errors import ConfigError, ModelError
from embeval.rerankers import declared, labels, loading, pairs
from embeval.rerankers.cross_encoder import COLUMNS, CrossEncoder, PairBackend, as_model, choose_limit
from embeval.rerankers.loading import Located
from embeval.rerankers.pairs import Template

OUTPUT = "logits"


class _Backend:
    summary = "an exported cross-encoder in onnxruntime: cpu, cuda or tensorrt"
    options = ("file", "label", "provider")
    dtypes: tuple[Dtype, ...] = ("float32", "float16", "int8")

    def resolve(self, spec: RerankerSpec, *, verify: bool) -> Located:
        for name in ("file", "provider"):
            value = spec.args.get(name, "model.onnx")
            if not isinstance(value, str) or not value:
                raise ConfigError(f"Reranker {spec.name!r}: {name} must be text, not {value!r}.")
        if not str(spec.args.get("file", ".onnx")).endswith(".onnx"):
            raise ConfigError(
                f"Reranker {spec.name!r}: file must be the name of an .onnx file, not {spec.args['file']!r}."
            )
        patterns = [str(spec.args["file"])] if "file" in spec.args else list(onnx.FILES[spec.dtype])
        return loading.find(spec, verify=verify, graphs=patterns)

    def load(self, located: Located, runtime: RuntimeOptions) -> Reranker:
        return CrossEncoder(located.spec, BatchedEncoder(as_model(located.spec), _loaded(located, runtime)))


BACKEND = _Backend()


def _loaded(located: Located, runtime: RuntimeOptions) -> PairBackend:
    assert located.folder is not None
    spec, model_spec = located.spec, as_model(located.spec)
    if runtime.compile:
        raise ConfigError("The reranker backend 'onnx' has nothing to compile; leave --compile out.")
    folder = declared.read(located.folder, model_spec)
    file = onnx.graph_file(located.folder, model_spec)
    provider = spec.args.get("provider")
    session = Session(
        file, runtime, provider=None if provider is None else str(provider), name=spec.name, output=OUTPUT
    )
    tokenizer = onnx.load_tokenizer(folder.transformer, model_spec)
    positions = onnx.position_limit(folder.transformer)
    limit, remarks = choose_limit(tokenizer, folder, spec, positions=positions)
    template, left = Template.of(tokenizer, spec.name), tokens.pads_left(tokenizer, positions)
    one = pairs.tokenize(tokenizer, template, [pairs.joined("a", "a")], limit)
    n_labels = _logits(session, tokens.pad(tokenizer, one, np.array([0]), left=left), spec.name).shape[1]
    label = labels.choose(spec, folder.labels, n_labels)

    def run(features: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.float32]:
        return _logits(session, features, spec.name)[:, label]

    on_cpu = session.device == "cpu"
    info = EncoderInfo(
        dim=COLUMNS,
        max_seq_length=limit,
        similarity="dot",
        prompts={},
        pooling=None,
        n_parameters=None,
        device=session.device,
        num_threads=session.num_threads if on_cpu else None,
        batch_tokens=runtime.budget_or(onnx.CPU_BATCH_TOKENS if on_cpu else onnx.GPU_BATCH_TOKENS),
        extra={"execution_provider": session.provider, "graph": file.name},
        remarks=tuple(remarks),
    )
    return PairBackend(tokenizer, template, left=left, info=info, run=run)


def _logits(session: Session, features: dict[str, npt.NDArray[np.int64]], name: str) -> npt.NDArray[np.float32]:
    """float32 [B, labels]."""
    logits = session.run(features).astype(np.float32, copy=False)
    n_pairs = len(features["input_ids"])
    if logits.ndim == 1:
        logits = logits[:, None]
    if logits.ndim != 2 or len(logits) != n_pairs:
        raise ModelError(
            f"Reranker {name!r}: its graph gives {OUTPUT} of shape {list(logits.shape)} for {n_pairs} pairs, "
            "where a row per pair belongs."
        )
    return logits
