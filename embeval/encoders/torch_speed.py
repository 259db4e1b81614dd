"""The same model, run faster on a CPU: other kernels for the same sums.

Two things take nearly all the time of a transformer on a CPU: linear layers and attention. torch hands linear layers in
float32 to MKL, which runs below oneDNN on processors that are not Intel's, and copies the bias first; oneDNN's
own kernel with packed weights adds bias and GELU on the way out. In bfloat16 the fused attention of torch computes its
products in small blocks, where two batched products with a softmax between them keep the matrix units busy.

Each replacement is tried on random numbers against what it replaces before it is used, and left out where it differs
or is not there (``benchmarks/bench_encode.py`` has the figures).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

CLOSE = {torch.float32: 1e-5, torch.bfloat16: 5e-2}
"""How far a replaced layer may be from the original, relative to its largest value."""
ATTENTION = "embeval_batched_products"
LONGEST = 1024
"""Tokens of a text up to which attention is written out: its scores take memory with the square of this."""
SCORES_AT_ONCE = 2_000_000
"""Attention scores computed together: as many as stay in a core's caches."""
COMPILE_CACHE_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


class PackedLinear(nn.Module):
    """``nn.Linear`` with an optional GELU after it, by oneDNN with weights in its own layout."""

    def __init__(self, linear: nn.Linear, *, gelu: bool, rows: int) -> None:
        super().__init__()
        # Not parameters: what is packed is neither trained nor saved nor moved.
        self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.data, rows)
        bias: torch.Tensor | None = linear.bias  # torch's own annotation forgets None
        self.bias = bias.data if bias is not None else None
        # Models ask a layer for its dtype and device (T5 does). Whatever computes with this instead gets NaN, and no
        # number that looks right; it takes the memory of one number.
        self.weight = torch.full((1, 1), torch.nan, dtype=linear.weight.dtype).expand(linear.weight.shape)
        self._after: tuple[str, list[float], str] = ("gelu", [], "none") if gelu else ("none", [], "")

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """[..., out] from [..., in]."""
        outputs: torch.Tensor = torch.ops.mkldnn._linear_pointwise(inputs, self._weight, self.bias, *self._after)
        return outputs

    def plus(self, inputs: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """The same with ``other`` added to it on the way out."""
        summed = torch.ops.mkldnn._linear_pointwise.binary
        outputs: torch.Tensor = summed(inputs, other, self._weight, self.bias, "add")
        return outputs


class PackedResidual(nn.Module):
    """A linear layer, the sum of its result with what went in before, and the normalisation of that sum."""

    def __init__(self, whole: Any, rows: int) -> None:
        super().__init__()
        self.dense = PackedLinear(whole.dense, gelu=False, rows=rows)
        self.LayerNorm = whole.LayerNorm

    def forward(self, hidden_states: torch.Tensor, input_tensor: torch.Tensor) -> torch.Tensor:
        """[..., out] from [..., in] and [..., out]."""
        return self.LayerNorm(self.dense.plus(hidden_states, input_tensor))  # type: ignore[no-any-return]


def speed_up(model: Any, dtype: torch.dtype, *, rows: int) -> None:
    """Replaces the linear layers of a model of transformers, and in bfloat16 its attention, where that is possible.

    ``rows`` is how many tokens a batch has, for which weights are laid out.
    """
    if dtype not in CLOSE or not _has_kernels():
        return
    with torch.inference_mode():
        _pack(model, dtype, rows)
    if dtype == torch.bfloat16:
        _write_attention_out(model)


def compiled(model: Any, device: str, cache: Path) -> Any:
    """The model behind torch.compile, on a CPU with weights frozen into the code.

    ``cache`` is a folder that keeps the code for the next process.
    """
    from torch._inductor import config

    os.environ.setdefault(COMPILE_CACHE_VARIABLE, str(cache))
    if device == "cpu":
        config.freezing = True
    return torch.compile(model, dynamic=True)


def _write_attention_out(model: Any) -> None:
    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    _register_attention()
    try:
        model.set_attn_implementation(ATTENTION)
    except (ValueError, AttributeError, NotImplementedError):
        return  # a model with an attention of its own keeps it


def _has_kernels() -> bool:
    available: Any = torch.backends.mkldnn.is_available
    return bool(available()) and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def _pack(module: nn.Module, dtype: torch.dtype, rows: int) -> None:
    for name, child in list(module.named_children()):
        activation = getattr(child, "intermediate_act_fn", None)
        dense = getattr(child, "dense", None)
        if type(dense) is nn.Linear and _is_gelu(activation):
            packed = _packed(dense, dtype, gelu=True, rows=rows)
            # Names of parts don't say how they are put together: only a block that is just these two is replaced.
            if packed is not None and _is_just(child, packed):
                setattr(child, "dense", packed)  # noqa: B010 - a module takes its children by setattr
                setattr(child, "intermediate_act_fn", nn.Identity())  # noqa: B010
        if (residual := _packed_residual(child, dtype, rows)) is not None:
            setattr(module, name, residual)
            continue
        if type(child) is nn.Linear:
            packed = _packed(child, dtype, gelu=False, rows=rows)
            if packed is not None:
                setattr(module, name, packed)
        else:
            _pack(child, dtype, rows)


def _is_just(block: nn.Module, packed: PackedLinear) -> bool:
    """Whether a block gives what the packed layer gives, on numbers."""
    out_features, in_features = packed.weight.shape
    probe = torch.linspace(-1, 1, 3 * in_features).reshape(1, 3, in_features).to(packed.weight.dtype)
    try:
        expected = block(probe)
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return False  # it takes something else
    if not isinstance(expected, torch.Tensor) or expected.shape != (1, 3, out_features):
        return False
    error = (packed(probe).float() - expected.float()).abs().max()
    return bool(error <= CLOSE[packed.weight.dtype] * expected.float().abs().max().clamp(min=1e-3))


def _is_gelu(activation: Any) -> bool:
    """Whether an activation is GELU by the error function, and nothing else."""
    if not callable(activation):
        return False
    probe = torch.linspace(-4, 4, 33)
    try:
        found = activation(probe)
    except (RuntimeError, TypeError):
        return False
    return isinstance(found, torch.Tensor) and torch.allclose(found, nn.functional.gelu(probe), atol=1e-6)


def _packed(linear: nn.Linear, dtype: torch.dtype, *, gelu: bool, rows: int) -> PackedLinear | None:
    if linear.weight.dtype != dtype or linear.weight.device.type != "cpu":
        return None
    probe = torch.linspace(-1, 1, 3 * linear.in_features).reshape(3, linear.in_features).to(dtype)
    try:
        packed = PackedLinear(linear, gelu=gelu, rows=rows)
        found = packed(probe)
    except (RuntimeError, NotImplementedError):
        return None  # oneDNN has no such kernel here: the layer stays as it is
    bias: torch.Tensor | None = linear.bias  # torch's own annotation forgets None
    bias = bias.float() if bias is not None else None
    expected = nn.functional.linear(probe.float(), linear.weight.float(), bias)
    expected = nn.functional.gelu(expected) if gelu else expected
    error = (found.float() - expected).abs().max()
    return packed if error <= CLOSE[dtype] * expected.abs().max().clamp(min=1e-3) else None


def _packed_residual(child: nn.Module, dtype: torch.dtype, rows: int) -> PackedResidual | None:
    """The block ``LayerNorm(dense(hidden_states) + input_tensor)`` of BERT and its kin in one; None for any other."""
    dense, norm = getattr(child, "dense", None), getattr(child, "LayerNorm", None)
    if type(dense) is not nn.Linear or type(norm) is not nn.LayerNorm or dense.weight.dtype != dtype:
        return None
    if dense.weight.device.type != "cpu" or {name for name, _ in child.named_children()} - {
        "dense",
        "LayerNorm",
        "dropout",
    }:
        return None
    before = torch.linspace(-1, 1, 3 * dense.in_features).reshape(1, 3, dense.in_features).to(dtype)
    other = torch.linspace(1, -1, 3 * dense.out_features).reshape(1, 3, dense.out_features).to(dtype)
    try:
        packed = PackedResidual(child, rows)
        found, expected = packed(before, other), child(before, other)
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return None  # a block that takes something else, or no such kernel: it stays as it is
    if not isinstance(expected, torch.Tensor) or expected.shape != found.shape:
        return None
    error = (found.float() - expected.float()).abs().max()
    return packed if error <= CLOSE[dtype] * expected.float().abs().max().clamp(min=1e-3) else None


def _register_attention() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(ATTENTION, _attention)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: torch.Tensor | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention [B, T, H, D] of query, key and value [B, H, T, D], written out. ``transformers`` calls it.

    ``position_bias`` is added to the scores, as T5 and MPNet have it. What else a model may ask for is the library's.
    """
    causal = options.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal  # as the library takes it
    if (
        (attention_mask is None and causal)
        or key.shape[1] != query.shape[1]
        or query.shape[2] > LONGEST
        or options.get("softcap") is not None
    ):
        options |= {"scaling": scaling, "dropout": dropout, "position_bias": position_bias}
        return _library_attention()(module, query, key, value, attention_mask, **options)  # type: ignore[no-any-return]
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    mixed = torch.empty_like(query.transpose(1, 2), memory_format=torch.contiguous_format)
    step = max(1, SCORES_AT_ONCE // (query.shape[1] * query.shape[2] * key.shape[2]))
    for start in range(0, len(query), step):
        part = slice(start, start + step)
        bias, mask = _rows(position_bias, part), _rows(attention_mask, part)
        mixed[part] = _mixed(query[part] * scale, key[part], value[part], bias, mask)
    return mixed, None


def _mixed(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None,
    mask: torch.Tensor | None,
) -> torch.Tensor:
    """[B, T, H, D]: values mixed by what queries, scaled already, find in keys."""
    scores = torch.matmul(query, key.transpose(-1, -2))
    if bias is not None:
        scores = scores.add_(bias)
    if mask is not None:
        # The smallest number and not -Inf: a row of padding alone would become NaN.
        least = torch.finfo(scores.dtype).min
        scores = scores.masked_fill_(~mask, least) if mask.dtype == torch.bool else scores.add_(mask)
    return torch.matmul(torch.softmax(scores, dim=-1), value).transpose(1, 2)


def _rows(of_batch: torch.Tensor | None, part: slice) -> torch.Tensor | None:
    """Some rows of what is given per text, or once for all."""
    return of_batch if of_batch is None or len(of_batch) == 1 else of_batch[part]


def _library_attention() -> Callable[..., Any]:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    return sdpa_attention_forward  # type: ignore[no-any-return]
