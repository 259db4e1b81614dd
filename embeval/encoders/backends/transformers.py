"""``transformers``: a bare checkpoint, and the pooling that you say. Nothing of it is guessed.

For models that nobody has packed for sentence-transformers: an encoder (BERT, RoBERTa, ALBERT, DistilBERT, ELECTRA,
XLNet, DeBERTa, ModernBERT …), the encoder half of T5 and its kin, or a decoder with ``pooling: lasttoken``. Heads are
left out. A folder that says how it pools (``modules.json``) belongs to the backend ``sentence_transformers``; here its
pooling must be said too, and what comes after it (dense layers, normalisation) is not applied, which a remark tells.

The vectors are not normalised unless ``normalize: true`` says so, and compared by cosine unless ``similarity`` does.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Encoder, EncoderInfo
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import locate, tokens, torch_checks, torch_runtime
from embeval.encoders.batching import Rows
from embeval.encoders.encoder import BatchedEncoder, check_dim
from embeval.encoders.locate import Located
from embeval.encoders.pooling import POOLING
from embeval.encoders.tokens import Tokens
from embeval.errors import ConfigError, ModelError

ENCODER_HALVES = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}
"""Models of which only the encoder embeds, by their type."""
Head = Literal[
    "AutoModelForSequenceClassification", "AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoModelForPreTraining"
]
"""Classes of transformers that load a model with a head."""
LANGUAGE_HEADS: tuple[Head, ...] = ("AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoModelForPreTraining")
"""Those of them whose head says something of tokens."""
DTYPE_OF_THEIR_OWN = ("xlnet",)
"""Models that make some of their weights float32 whatever is asked for, and then fail on the mixture."""


class _Backend:
    summary = "a bare checkpoint of transformers with the pooling that you say"
    options = ("trust_remote_code", "append_eos")
    dtypes: tuple[Dtype, ...] = ("float32", "bfloat16", "float16")

    def resolve(self, spec: ModelSpec, *, verify: bool) -> Located:
        for name, value in spec.args.items():
            if name not in self.options:
                raise ConfigError(f"Backend 'transformers' has no option {name!r}; it takes {', '.join(self.options)}.")
            if not isinstance(value, bool):
                raise ConfigError(f"Model {spec.name!r}: {name} must be true or false, not {value!r}.")
        if spec.pooling is None:
            raise ConfigError(
                f"Model {spec.name!r}: the backend 'transformers' doesn't guess how token vectors become one. "
                f"Say it behind the name, as in {spec.name},pooling=mean; there are {', '.join(POOLING)}.",
                key=("pooling",),
            )
        torch_runtime.refuse_int8(spec)
        return locate.locate(spec, verify=verify)

    def load(self, located: Located, runtime: RuntimeOptions) -> Encoder:
        return BatchedEncoder(located.spec, _Transformers(located, runtime))


BACKEND = _Backend()


class _Transformers:
    default_prompt_name: str | None = None

    def __init__(self, located: Located, runtime: RuntimeOptions) -> None:
        import torch

        assert located.folder is not None
        spec = located.spec
        assert spec.pooling is not None
        locate.refuse_pickled_weights(located.folder)
        self._torch, self._name, self._pool = torch, spec.name, POOLING[spec.pooling]
        self._device = device = torch_runtime.choose_device(runtime.device)
        torch_runtime.set_threads(runtime)
        model, self._tokenizer, remarks = load_checkpoint(located.folder, spec)
        positions = torch_checks.position_limit(model)
        self._limit, more = tokens.choose_limit(
            self._tokenizer, asked=spec.max_seq_length, positions=positions, name=spec.name
        )
        self.left = tokens.pads_left(self._tokenizer, positions)
        self._append = _end_token(self._tokenizer, spec) if spec.args.get("append_eos") else None
        if (located.folder / "modules.json").is_file():
            remarks.append("The model declares modules of its own (modules.json), which this backend does not run.")
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        dim = _dim(model.config)
        # The tokenizer may be of another kind of model: what it gives and the model has no use for is left out.
        self._takes_types = "token_type_ids" in inspect.signature(model.forward).parameters
        self._model = torch_runtime.made_fast(model.to(device), spec, runtime, device)
        self.info = EncoderInfo(
            dim=check_dim(spec, dim),
            max_seq_length=self._limit,
            similarity=spec.similarity or "cosine",
            prompts={},
            pooling=spec.pooling,
            n_parameters=n_parameters,
            device=torch_runtime.device_name(device),
            num_threads=torch.get_num_threads() if device == "cpu" else None,
            batch_tokens=torch_runtime.batch_tokens(spec, runtime, device),
            extra={"remote_code": "trusted"} if spec.args.get("trust_remote_code") else {},
            remarks=(*remarks, *more),
        )

    def prepare(self, texts: Sequence[str], *, prompt: str, role: Role) -> Tokens:
        found = tokens.tokenize(self._tokenizer, [prompt + text for text in texts] if prompt else texts, self._limit)
        return found if self._append is None else tokens.ended_with(found, self._append, self._limit)

    def forward(self, prepared: Tokens, rows: Rows) -> npt.NDArray[np.float32]:
        inputs = tokens.pad(self._tokenizer, prepared, rows, left=self.left)
        if not self._takes_types:
            inputs.pop("token_type_ids", None)
        longest = inputs["input_ids"].shape[1]
        with self._torch.inference_mode(), torch_runtime.failures_told(self._name, len(rows), longest):
            on_device = {name: self._torch.from_numpy(array).to(self._device) for name, array in inputs.items()}
            hidden = self._model(**on_device).last_hidden_state.float()
            vectors: npt.NDArray[np.float32] = self._pool(hidden, on_device["attention_mask"]).cpu().numpy()
        return vectors


def load_checkpoint(folder: Path, spec: ModelSpec, *, head: Head | None = None) -> tuple[Any, Any, list[str]]:
    """(model, fast tokenizer, remarks) of a folder of transformers. Raises ``ModelError``.

    The model is without its heads, or with the one that ``head`` loads.
    """
    remote = bool(spec.args.get("trust_remote_code", False))
    with torch_runtime.quiet_libraries(), torch_checks.recorded_loads() as loads:
        import transformers

        try:
            common = {"trust_remote_code": remote, "local_files_only": True}
            config = transformers.AutoConfig.from_pretrained(folder, **common)
            half = ENCODER_HALVES.get(config.model_type) if head is None else None
            kind = getattr(transformers, half or head or "AutoModel")
            model = kind.from_pretrained(
                folder,
                config=config,
                dtype=torch_runtime.torch_dtype(spec),
                use_safetensors=True,
                **({} if half else {"trust_remote_code": remote}),
                local_files_only=True,
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **common)
        except MemoryError:
            raise
        except Exception as error:  # the libraries below raise whatever they like for a broken folder
            raise torch_checks.not_loaded(error, spec.name, "transformers") from error
    if half:  # the decoder's weights are left out on purpose
        loads = [replace(load, unused=tuple(key for key in load.unused if "decoder" not in key)) for load in loads]
    remarks = torch_checks.refuse_missing_weights(
        loads, spec.name, pools_tokens=head is None, language_head=head in LANGUAGE_HEADS
    )
    if not tokenizer.is_fast:
        raise ModelError(
            f"Model {spec.name!r} has no fast tokenizer (tokenizer.json). Use backend sentence_transformers."
        )
    torch_checks.refuse_wrong_vocabulary(tokenizer, model, spec.name)
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer.pad_token = tokenizer.eos_token  # what stands under the mask is never read
    if config.model_type in DTYPE_OF_THEIR_OWN:
        model = model.to(torch_runtime.torch_dtype(spec))
    model.eval()
    return model, tokenizer, remarks


def _end_token(tokenizer: Any, spec: ModelSpec) -> int:
    if tokenizer.eos_token_id is None:
        raise ConfigError(f"Model {spec.name!r}: append_eos was asked for, but its tokenizer has no end token.")
    return int(tokenizer.eos_token_id)


def _dim(config: Any) -> int:
    for name in ("hidden_size", "d_model", "dim"):
        if (size := getattr(config, name, None)) is not None:
            return int(size)
    raise ModelError(f"A model of type {config.model_type!r} doesn't say how wide its vectors are.")
