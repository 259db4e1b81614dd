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

from embeval.core.protocols import LanguageModelKind as Kind
from embeval.core.specs import RuntimeOptions
from embeval.encoders import locate, modules, torch_runtime
from embeval.encoders.backends.transformers import load_checkpoint
from embeval.encoders.locate import Located
from embeval.language_models import heads, kinds, last_layer
from embeval.language_models.model import VariantBackend, info_of

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

    def load(self, located: Located, kind: Kind, runtime: RuntimeOptions, *, pad_id: int) -> VariantBackend:
        scorer = _Scorer(located, kind, runtime)
        return VariantBackend(scorer.info, kind, scorer, pad_id=pad_id)


BACKEND = _Backend()


class _Scorer:
    def __init__(self, located: Located, kind: Kind, runtime: RuntimeOptions) -> None:
        import torch

        assert located.folder is not None
        spec = located.spec
        self._torch, self._name, self._kind = torch, spec.name, kind
        self._device = device = torch_runtime.choose_device(runtime.device)
        torch_runtime.set_threads(runtime)
        model, remarks = load_with_head(located, kind)
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        dtype = torch_runtime.torch_dtype(spec)
        narrow = kind == "masked" and not runtime.compile
        narrow = narrow and (dtype == torch.float32 or last_layer.fits(model.base_model))
        self._body, self._head = _parted(model, spec.name, dtype, device)
        self._body = torch_runtime.made_fast(self._body, spec, runtime, device)
        self._last = last_layer.narrowed(self._body) if narrow else None
        torch_runtime.made_fast(self._head, replace(spec, dtype="float32"), replace(runtime, compile=False), device)
        self.info = info_of(
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
            features, rows, places, lambda logits, part: scores(logits, wanted[part])
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
            at = self._hidden(inputs, torch.from_numpy(rows), torch.from_numpy(before)).float()
            step = max(1, LOGITS_AT_ONCE // self._head.width)
            bounds = [slice(start, start + step) for start in range(0, len(at), step)]
            return torch.cat([give(self._head.logits(at[part]), part) for part in bounds]).cpu().numpy()

    def _hidden(self, inputs: dict[str, Any], rows: Any, places: Any) -> Any:
        """[M, D]: what the body makes of the tokens at those places of those texts."""
        rows, places = rows.to(self._device), places.to(self._device)
        n = len(inputs["input_ids"])
        if self._last is None or len(rows) != n or not bool((rows == self._torch.arange(n, device=rows.device)).all()):
            return self._body(**inputs)[0][rows, places]  # without types: models that have them take 0, and GPT-2 none
        self._last.places = places
        try:
            return self._body(**inputs)[0][:, 0]
        finally:
            self._last.places = None


def load_with_head(located: Located, kind: Kind) -> tuple[Any, list[str]]:
    """(model of transformers in float32 with its language-model head, remarks).

    Raises ``ModelError``, also for a head that was never trained.
    """
    assert located.folder is not None
    spec = located.spec
    locate.refuse_pickled_weights(located.folder)
    folder = modules.transformer_folder(located.folder, spec)
    model, _, remarks = load_checkpoint(folder, replace(spec, dtype="float32"), head=HEADS[kind])
    heads.refuse_untrained(model, spec.name)
    return model, remarks


def scores(logits: Any, wanted: Any) -> Any:
    """float32 [M, 3] of ``TokenScorer`` from scores [M, V]."""
    import torch

    log_prob = logits.log_softmax(dim=1).gather(1, wanted[:, None])[:, 0]  # twice as fast as logsumexp
    # Signs add up faster than truth values, and exactly: no vocabulary has 2^24 entries.
    signs = (logits - logits.gather(1, wanted[:, None])).sign_()
    more_larger = signs.sum(dim=1)
    unequal = signs.abs_().sum(dim=1)
    return torch.stack([log_prob, (unequal + more_larger) / 2, logits.shape[1] - unequal], dim=1)


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
