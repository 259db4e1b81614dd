"""``sentence_transformers``: a cross-encoder as ``CrossEncoder`` of that library loads it, in torch.

The model is loaded by transformers with its own head, and a checkpoint that lacks the head is refused: it would score
at random. Scores are the logits. In reduced precision the head computes in float32, as everything behind it does.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import EncoderInfo, Reranker
from embeval.core.specs import Dtype, RerankerSpec, RuntimeOptions
from embeval.encoders import locate, tokens, torch_checks, torch_runtime
from embeval.encoders.backends.transformers import load_checkpoint
from embeval.encoders.encoder import BatchedEncoder
from embeval.errors import ConfigError, ModelError
from embeval.rerankers import declared, labels, loading
from embeval.rerankers.cross_encoder import COLUMNS, CrossEncoder, PairBackend, as_model, choose_limit
from embeval.rerankers.loading import Located
from embeval.rerankers.pairs import Template


class _Backend:
    summary = "a cross-encoder that sentence-transformers loads: hub name or local folder"
    options = ("label", "trust_remote_code")
    dtypes: tuple[Dtype, ...] = ("float32", "bfloat16", "float16")

    def resolve(self, spec: RerankerSpec, *, verify: bool) -> Located:
        if not isinstance(remote := spec.args.get("trust_remote_code", False), bool):
            raise ConfigError(f"Reranker {spec.name!r}: trust_remote_code must be true or false, not {remote!r}.")
        located = loading.find(spec, verify=verify)
        folder = located.folder
        has_weights = folder is None or any(folder.glob("*.safetensors*"))
        if folder is not None and not has_weights and locate.graphs_in(folder, ["*.onnx"]):
            raise ModelError(
                f"Reranker {spec.name!r} is an ONNX graph, with no weights for torch. Say so: "
                f"rerank: {{model: {spec.name}, backend: onnx}}"
            )
        return located

    def load(self, located: Located, runtime: RuntimeOptions) -> Reranker:
        return CrossEncoder(located.spec, BatchedEncoder(as_model(located.spec), _loaded(located, runtime)))


BACKEND = _Backend()


def _loaded(located: Located, runtime: RuntimeOptions) -> PairBackend:
    import torch

    assert located.folder is not None
    spec, model_spec = located.spec, as_model(located.spec)
    locate.refuse_pickled_weights(located.folder)
    device = torch_runtime.choose_device(runtime.device)
    torch_runtime.set_threads(runtime)
    folder = declared.read(located.folder, model_spec)
    model, tokenizer, remarks = load_checkpoint(
        folder.transformer, model_spec, head="AutoModelForSequenceClassification"
    )
    label = labels.choose(spec, folder.labels, model.config.num_labels)
    positions = torch_checks.position_limit(model)
    limit, more = choose_limit(tokenizer, folder, spec, positions=positions)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    model.config.pad_token_id = tokenizer.pad_token_id  # by which decoders find the last token of a text
    _compute_head_in_float32(model)
    takes_types = "token_type_ids" in inspect.signature(model.forward).parameters
    model = torch_runtime.made_fast(model.to(device), model_spec, runtime, device)

    def run(features: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.float32]:
        if not takes_types:
            features.pop("token_type_ids", None)
        n_pairs, longest = features["input_ids"].shape
        with torch.inference_mode(), torch_runtime.failures_told(spec.name, n_pairs, longest):
            on_device = {name: torch.from_numpy(array).to(device) for name, array in features.items()}
            logits: npt.NDArray[np.float32] = model(**on_device).logits.float()[:, label].cpu().numpy()
        return logits

    info = EncoderInfo(
        dim=COLUMNS,
        max_seq_length=limit,
        similarity="dot",
        prompts={},
        pooling=None,
        n_parameters=n_parameters,
        device=torch_runtime.device_name(device),
        num_threads=torch.get_num_threads() if device == "cpu" else None,
        batch_tokens=torch_runtime.batch_tokens(model_spec, runtime, device),
        extra={"remote_code": "trusted"} if spec.args.get("trust_remote_code") else {},
        remarks=(*remarks, *more),
    )
    template, left = Template.of(tokenizer, spec.name), tokens.pads_left(tokenizer, positions)
    return PairBackend(tokenizer, template, left=left, info=info, run=run)


def _compute_head_in_float32(model: Any) -> None:
    """Makes what comes after the transformer take and give float32: 8 and 8.02 are one number in bfloat16."""
    import torch

    def widen(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            each.float() if isinstance(each, torch.Tensor) and each.is_floating_point() else each for each in given
        )

    for name, part in model.named_children():
        if name != model.base_model_prefix:
            part.float()
            part.register_forward_pre_hook(widen)
