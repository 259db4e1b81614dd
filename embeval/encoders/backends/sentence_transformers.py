"""``sentence_transformers``: any model that the library of that name loads, driven by our batching.

Text models built on a transformer take the fast path: tokenised once, sorted by token count, padded per batch.
Every other kind (static embeddings, routers, CLIP, chat-template models) is preprocessed by the library itself,
batch by batch; how many tokens it cuts off is then not known, and said so.

Either way the model's own module stack runs: transformer, pooling, dense, normalisation. Everything after the
transformer computes in float32, whatever the dtype of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Encoder, EncoderInfo
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import locate, tokens, torch_checks, torch_runtime
from embeval.encoders.batching import Lengths, Rows
from embeval.encoders.encoder import BatchedEncoder, check_dim, declared_prompts
from embeval.encoders.locate import Located
from embeval.encoders.tokens import Tokens, limit_of
from embeval.encoders.torch_runtime import choose_device, device_name, quiet_libraries
from embeval.errors import ConfigError, ModelError


class _Backend:
    summary = "any model that sentence-transformers loads: hub name, local folder or 'demo'"
    options = ("trust_remote_code",)
    dtypes: tuple[Dtype, ...] = ("float32", "bfloat16", "float16")

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        if unknown := sorted(set(spec.args) - set(self.options)):
            raise ConfigError(
                f"Backend 'sentence_transformers' has no option {unknown[0]!r}; it takes {', '.join(self.options)}."
            )
        if not isinstance(remote := spec.args.get("trust_remote_code", False), bool):
            raise ConfigError(f"Model {spec.name!r}: trust_remote_code must be true or false, not {remote!r}.")
        torch_runtime.refuse_int8(spec)
        return locate.locate(spec, verify=verify)

    def load(self, located: Located, runtime: RuntimeOptions) -> Encoder:
        return BatchedEncoder(located.spec, _SentenceTransformers(located, runtime))


BACKEND = _Backend()


@dataclass(frozen=True)
class _Texts:
    """Texts that the library preprocesses itself."""

    texts: Sequence[str]
    prompt: str
    task: str | None
    lengths: Lengths
    lost: Lengths | None = None
    unknown: Lengths | None = None

    def key(self, row: int) -> bytes:
        return self.texts[row].encode("utf-8", "surrogatepass")


class _SentenceTransformers:
    def __init__(self, located: Located, runtime: RuntimeOptions) -> None:
        import torch

        assert located.folder is not None
        spec = located.spec
        locate.refuse_pickled_weights(located.folder)
        device = choose_device(runtime.device)
        torch_runtime.set_threads(runtime)
        self._torch, self._name = torch, spec.name
        self._model, remarks = _load(located, device)
        self._device = device
        self.default_prompt_name: str | None = self._model.default_prompt_name
        self._fast = _has_plain_tokenizer(self._model)
        self._override(spec)
        remarks += self._limit_length(spec)
        full = self._model.get_embedding_dimension()
        if full is None:
            full = self._model.encode(["a"]).shape[1]
        n_parameters = sum(parameter.numel() for parameter in self._model.parameters())
        if self._fast:
            self._pool_ourselves()
            first = self._model[0]
            first.model = torch_runtime.made_fast(first.model, spec, runtime, device)
        elif runtime.compile:
            remarks.append("compile was asked for, but models of this kind are not compiled.")
        self.info = EncoderInfo(
            dim=check_dim(spec, int(full)),
            max_seq_length=limit_of(self._model.max_seq_length),
            similarity=spec.similarity or self._model.similarity_fn_name,
            prompts=declared_prompts(self._model.prompts),
            pooling=_pooling_name(self._model),
            n_parameters=n_parameters,
            device=device_name(device),
            num_threads=torch.get_num_threads() if device == "cpu" else None,
            batch_tokens=torch_runtime.batch_tokens(spec, runtime, device),
            extra={"remote_code": "trusted"} if spec.args.get("trust_remote_code") else {},
            remarks=tuple(remarks),
        )

    def _override(self, spec: ModelSpec) -> None:
        from sentence_transformers.base.modules import Normalize
        from sentence_transformers.sentence_transformer.modules import Pooling

        if spec.max_seq_length is not None:
            self._model.max_seq_length = spec.max_seq_length
        if spec.pooling is not None:
            names = [name for name, module in self._model.named_children() if isinstance(module, Pooling)]
            if len(names) != 1:
                raise ModelError(
                    f"Model {spec.name!r} has {len(names)} pooling modules, so its pooling can't be set "
                    f"to {spec.pooling!r}."
                )
            before = self._model._modules[names[0]]
            mode = {"mean_sqrt_len": "mean_sqrt_len_tokens"}.get(spec.pooling, spec.pooling)
            after = Pooling(before.embedding_dimension, pooling_mode=mode, include_prompt=before.include_prompt)
            self._model._modules[names[0]] = after
        if spec.normalize is False and any(isinstance(module, Normalize) for module in self._model):
            raise ModelError(
                f"Model {spec.name!r} ends with a normalisation of its own, so 'normalize: false' can't be honoured. "
                "Leave normalize out."
            )
        # Whatever the transformer computes in, pooling and all that follows see float32: a mean over 256 tokens
        # in bfloat16 keeps two or three digits, and near documents would tie.
        first = self._model[0]
        first.register_forward_hook(lambda _module, _inputs, output: _widen(self._torch, output))

    def _pool_ourselves(self) -> None:
        """Puts our pooling in the place of the library's, where that has only token vectors and a mask to go by."""
        from sentence_transformers.sentence_transformer.modules import Pooling

        from embeval.encoders.torch_pooling import Pooled

        second: Any = self._model[1] if len(self._model) > 1 else None
        if type(second) is Pooling and second.include_prompt:
            modes = [second.pooling_mode] if isinstance(second.pooling_mode, str) else second.pooling_mode
            self._model[1] = Pooled(modes)

    def _limit_length(self, spec: ModelSpec) -> list[str]:
        """Keeps texts within what the model has positions for; gives remarks."""
        if not self._fast:
            return []
        positions = torch_checks.position_limit(self._model[0])
        self.left = tokens.pads_left(self._model.tokenizer, positions)
        limit, remarks = tokens.choose_limit(
            self._model.tokenizer, asked=spec.max_seq_length, positions=positions, name=spec.name
        )
        if limit is not None:
            self._model.max_seq_length = limit
        return remarks

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> Tokens | _Texts:
        if self._fast and not (prompt and self._pooling_leaves_out_prompt()):
            return self._tokenize([prompt + text for text in texts] if prompt else texts, role)
        lengths = np.array([len(text) // 4 + 1 for text in texts], dtype=np.int64)
        if self.info.max_seq_length is not None:
            lengths = np.minimum(lengths, self.info.max_seq_length)
        return _Texts(texts, prompt, None if role == Role.TEXT else role.value, lengths)

    def _pooling_leaves_out_prompt(self) -> bool:
        return any(getattr(module, "include_prompt", True) is False for module in self._model)

    def _tokenize(self, texts: Sequence[str], role: Role) -> Tokens:
        tokenizer, first = self._model.tokenizer, self._model[0]
        own = {Role.QUERY: first.query_length, Role.DOCUMENT: first.document_length}.get(role)
        limit = own if own is not None else tokenizer.model_max_length
        fewest = tokenizer.num_special_tokens_to_add(pair=False) + 1
        return tokens.tokenize(tokenizer, texts, tokens.declared_limit(limit, fewest=fewest, name=self._name))

    def forward(self, prepared: Tokens | _Texts, rows: Rows) -> npt.NDArray[np.float32]:
        longest = int(prepared.lengths[rows].max())
        with (
            self._torch.inference_mode(),
            quiet_libraries(),
            torch_runtime.failures_told(self._name, len(rows), longest),
        ):
            output = self._features(prepared, rows)
            vectors: npt.NDArray[np.float32] = output["sentence_embedding"].float().cpu().numpy()
        return vectors

    def _features(self, prepared: Tokens | _Texts, rows: Rows) -> Any:
        """The features of a batch, ``sentence_embedding`` among them."""
        if isinstance(prepared, Tokens):
            tokenizer = self._model.tokenizer
            inputs = tokens.pad(tokenizer, prepared, rows, left=self.left)
            on_device = {name: self._torch.from_numpy(array).to(self._device) for name, array in inputs.items()}
            return self._model({**on_device, "modality": "text"})
        route = {} if prepared.task is None else {"task": prepared.task}
        texts = [prepared.texts[row] for row in rows]
        features = self._model.preprocess(texts, prompt=prepared.prompt or None, **route)
        return self._model(_to(features, self._device), **route)


def _load(located: Located, device: str) -> tuple[Any, list[str]]:
    """The model, and what its user should know of how it was loaded."""
    with quiet_libraries(), torch_checks.recorded_loads() as loads:
        from sentence_transformers import SentenceTransformer

        spec = located.spec
        try:
            model = SentenceTransformer(
                str(located.folder),
                device=device,
                trust_remote_code=bool(spec.args.get("trust_remote_code", False)),
                local_files_only=True,
                model_kwargs={"dtype": torch_runtime.torch_dtype(spec), "use_safetensors": True},
            )
        except MemoryError:
            raise
        except Exception as error:  # the libraries below raise whatever they like for a broken folder
            advice = torch_checks.WHY_NOT
            if "model2vec" in str(error):  # libraries without it call it an unknown architecture
                advice = "A Model2Vec folder is run by the backend 'static': put static: before its name."
            raise torch_checks.not_loaded(error, spec.name, "sentence-transformers", advice) from error
    pools_tokens = any(hasattr(module, "pooling_mode") for module in model)
    remarks = torch_checks.refuse_missing_weights(loads, spec.name, pools_tokens=pools_tokens)
    if _has_plain_tokenizer(model):
        torch_checks.refuse_wrong_vocabulary(model.tokenizer, model[0].model, spec.name)
    assert located.folder is not None
    if not (located.folder / "modules.json").exists() and spec.pooling is None:
        remarks.append(f"The model doesn't say how it pools (no modules.json): {_pooling_name(model)} was assumed.")
    if spec.name.startswith("hkunlp/instructor"):  # the library knows these by name only, and is given a folder
        model.set_pooling_include_prompt(False)
    model.eval()
    return model, remarks


def _has_plain_tokenizer(model: Any) -> bool:
    from sentence_transformers.base.modules import Transformer
    from transformers import PreTrainedTokenizerBase

    first = model[0]
    return (
        type(first) is Transformer
        and isinstance(first.processor, PreTrainedTokenizerBase)
        and first.processor.is_fast
        and "text" in first.modality_config
        and "message" not in first.modality_config
        and not first.processing_kwargs
        and first.query_expansion is None
        and not getattr(first, "can_flatten_inputs", False)
        and set(first.processor.model_input_names) <= {"input_ids", "attention_mask", "token_type_ids"}
    )


def _widen(torch: Any, features: Any) -> Any:
    for name, value in features.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float32:
            features[name] = value.float()
    return features


def _to(features: dict[str, Any], device: str) -> dict[str, Any]:
    return {name: value.to(device) if hasattr(value, "to") else value for name, value in features.items()}


def _pooling_name(model: Any) -> str | None:
    modes = [module.pooling_mode for module in model if hasattr(module, "pooling_mode")]
    if not modes:
        return None
    return "+".join(modes[0]) if isinstance(modes[0], (list, tuple)) else str(modes[0])
