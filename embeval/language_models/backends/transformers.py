"""``transformers``: a checkpoint with its own head, in torch.

The body runs once per batch. The head runs on the hidden states of the places that are asked for and no others: a
vocabulary has ten times as many entries as a text has tokens. In reduced precision the body is cast and the head stays
float32, since differences of log-probabilities are what everything is read off.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import EncoderInfo
from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import RuntimeOptions
from embeval.encoders import locate, modules, tokens, torch_checks, torch_runtime
from embeval.encoders.backends.onnx import load_tokenizer, position_limit
from embeval.encoders.backends.transformers import load_checkpoint
from embeval.encoders.locate import Located
from embeval.language_models import heads, kinds
from embeval.language_models.model import COLUMNS, VariantBackend

Head = Literal["AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoModelForPreTraining"]
HEADS: dict[Kind, Head] = {
    "masked": "AutoModelForMaskedLM",
    "causal": "AutoModelForCausalLM",
    "replaced": "AutoModelForPreTraining",
}
"""Kind -> the class of transformers that loads its head."""
LOGITS_AT_ONCE = 8_000_000
"""Scores of tokens computed together: 32 MB."""


class _Backend:
    runs = ("sentence_transformers", "transformers")

    def kind(self, located: Located) -> str:
        return kinds.kind_of(located.spec, located.folder)

    def tokenizer(self, located: Located) -> tuple[Any, int | None]:
        assert located.folder is not None
        folder = modules.transformer_folder(located.folder, located.spec)
        tokenizer = load_tokenizer(folder, located.spec)
        limit, _ = tokens.choose_limit(
            tokenizer, asked=located.spec.max_seq_length, positions=position_limit(folder), name=located.spec.name
        )
        return tokenizer, limit

    def load(self, located: Located, kind: Kind, runtime: RuntimeOptions, *, pad_id: int) -> VariantBackend:
        scorer = _Scorer(located, kind, runtime)
        return VariantBackend(scorer.info, kind, scorer, pad_id=pad_id)


BACKEND = _Backend()


class _Scorer:
    def __init__(self, located: Located, kind: Kind, runtime: RuntimeOptions) -> None:
        import torch

        assert located.folder is not None
        spec = located.spec
        locate.refuse_pickled_weights(located.folder)
        self._torch, self._name, self._kind = torch, spec.name, kind
        self._device = device = torch_runtime.choose_device(runtime.device)
        torch_runtime.set_threads(runtime)
        folder = modules.transformer_folder(located.folder, spec)
        model, _, remarks = load_checkpoint(folder, replace(spec, dtype="float32"), head=HEADS[kind])
        heads.refuse_untrained(model, spec.name)
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        self._body, self._head = _parted(model, spec.name, torch_runtime.torch_dtype(spec), device)
        self._body = torch_runtime.made_fast(self._body, spec, runtime, device)
        torch_runtime.made_fast(self._head, replace(spec, dtype="float32"), replace(runtime, compile=False), device)
        self.info = EncoderInfo(
            dim=COLUMNS,
            max_seq_length=torch_checks.position_limit(model),
            similarity="dot",
            prompts={},
            pooling=None,
            n_parameters=n_parameters,
            device=torch_runtime.device_name(device),
            num_threads=torch.get_num_threads() if device == "cpu" else None,
            batch_tokens=torch_runtime.batch_tokens(spec, runtime, device),
            extra={"remote_code": "trusted"} if spec.args.get("trust_remote_code") else {},
            remarks=tuple(remarks),
        )

    def __call__(
        self,
        features: dict[str, npt.NDArray[np.int64]],
        rows: npt.NDArray[np.intp],
        places: npt.NDArray[np.intp],
        targets: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.float32]:
        wanted = self._torch.from_numpy(targets).to(self._device)
        found: npt.NDArray[np.float32] = self._of_logits(
            features, rows, places, lambda logits, part: _scores(logits, wanted[part])
        )
        return found

    def draw(
        self,
        features: dict[str, npt.NDArray[np.int64]],
        rows: npt.NDArray[np.intp],
        places: npt.NDArray[np.intp],
        uniforms: npt.NDArray[np.float64],
        n_tokens: int,
    ) -> npt.NDArray[np.int64]:
        """int64 [M]: a token for each place, drawn from the model's distribution over its first ``n_tokens``.

        Token j is the first whose cumulated probability is above ``uniforms[j]``, in float64 on the CPU.
        """
        below = self._torch.from_numpy(uniforms)
        found: npt.NDArray[np.int64] = self._of_logits(
            features, rows, places, lambda logits, part: _drawn(logits[:, :n_tokens], below[part])
        )
        return found

    def _of_logits(
        self,
        features: dict[str, npt.NDArray[np.int64]],
        rows: npt.NDArray[np.intp],
        places: npt.NDArray[np.intp],
        give: Callable[[Any, slice], Any],
    ) -> Any:
        """What ``give`` makes of the scores [m, V] of a part of the places, for all of them end to end."""
        torch = self._torch
        n, longest = features["input_ids"].shape
        before = places - 1 if self._kind == "causal" else places
        with torch.inference_mode(), torch_runtime.failures_told(self._name, n, longest):
            inputs = {name: torch.from_numpy(array).to(self._device) for name, array in features.items()}
            hidden = self._body(**inputs)[0]  # without types: models that have them take 0, and GPT-2 none
            at = hidden[torch.from_numpy(rows).to(self._device), torch.from_numpy(before).to(self._device)].float()
            step = max(1, LOGITS_AT_ONCE // self._head.width)
            bounds = [slice(start, start + step) for start in range(0, len(at), step)]
            return torch.cat([give(self._head.logits(at[part]), part) for part in bounds]).cpu().numpy()


def _scores(logits: Any, wanted: Any) -> Any:
    """float32 [M, 3] of ``TokenScorer`` from scores [M, V]."""
    import torch

    own = logits.gather(1, wanted[:, None])
    log_prob = own[:, 0] - logits.logsumexp(dim=1)
    larger = (logits > own).sum(dim=1)
    equal = (logits == own).sum(dim=1)
    return torch.stack([log_prob, larger.float(), equal.float()], dim=1)


def _drawn(logits: Any, uniforms: Any) -> Any:
    """int64 [M]: the token at each uniform number [M] of the distribution of scores [M, V]."""
    import torch

    cumulated = logits.cpu().double().softmax(dim=1).cumsum(dim=1)
    found = torch.searchsorted(cumulated, uniforms[:, None] * cumulated[:, -1:], right=True)[:, 0]
    return found.clamp_max(logits.shape[1] - 1)


def _parted(model: Any, name: str, dtype: Any, device: str) -> tuple[Any, Any]:
    """(body in its number format, head in float32), which share nothing that a cast could reach."""
    body = model.base_model
    head = heads.head_of(model, name)
    if dtype != next(body.parameters()).dtype:
        body = copy.deepcopy(body).to(dtype)
    return body.to(device), head.to(device)
