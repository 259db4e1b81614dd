"""The last layer of a body, only at the places that are asked for.

A masked variant asks for one token of a text. What the last layer makes of all the others is never read: they are
needed as keys and values only. BERT and its kin (RoBERTa, XLM-R, CamemBERT, …) have one form of layer, which is
computed here for one token per text. Whether a body is of that form is tried on numbers; any other keeps its layer
(``benchmarks/intrinsic.py`` has what it is worth).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

CLOSE = {torch.float32: 1e-5, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""How far a hidden state may be from that of the whole layer, relative to the largest value."""


class LastLayer(nn.Module):
    """A layer [B, T, D] to [B, T, D]; to [B, 1, D] while ``places`` says which token of each text is wanted."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        self.places: torch.Tensor | None = None

    def forward(
        self, hidden_states: torch.Tensor, attention_mask: torch.Tensor | None = None, *others: Any, **options: Any
    ) -> Any:
        """The layer, or its row at each place."""
        if self.places is None:
            return self.layer(hidden_states, attention_mask, *others, **options)
        own = self.layer.attention.self
        at = hidden_states[torch.arange(len(hidden_states), device=hidden_states.device), self.places][:, None]

        def heads(vectors: torch.Tensor) -> torch.Tensor:
            """[B, heads, T, D / heads]."""
            n, length, _ = vectors.shape
            return vectors.view(n, length, own.num_attention_heads, -1).transpose(1, 2)

        query, key, value = heads(own.query(at)), heads(own.key(hidden_states)), heads(own.value(hidden_states))
        found = torch.matmul(query, key.transpose(-1, -2)).float() * query.shape[-1] ** -0.5
        if attention_mask is not None:
            mask = self._row_of(attention_mask, len(at))
            least = torch.finfo(found.dtype).min
            found = found.masked_fill(~mask, least) if mask.dtype == torch.bool else found + mask
        mixed = torch.matmul(torch.softmax(found, dim=-1).to(value.dtype), value).transpose(1, 2).flatten(2)
        attended = self.layer.attention.output(mixed, at)
        return self.layer.output(self.layer.intermediate(attended), attended)

    def _row_of(self, attention_mask: torch.Tensor, n: int) -> torch.Tensor:
        """[B or 1, heads or 1, 1, T]: what the wanted token of each text sees."""
        if attention_mask.shape[2] == 1:
            return attention_mask
        rows = torch.arange(n, device=attention_mask.device)
        return attention_mask.expand(n, -1, -1, -1)[rows, :, self.places][:, :, None]


def fits(body: Any) -> bool:
    """Whether ``narrowed`` can be trusted with a body, by its numbers in float32; it stays as it is.

    In a reduced precision what a layer of another form adds can be smaller than the rounding.
    """
    if (last := narrowed(body)) is None:
        return False
    body.encoder.layer[-1] = last.layer
    return True


def narrowed(body: Any) -> LastLayer | None:
    """Puts a ``LastLayer`` in the place of a body's last one; None where that doesn't give the same."""
    try:
        layers = body.encoder.layer
        wrapped = LastLayer(layers[-1])
    except (AttributeError, TypeError, IndexError):
        return None
    layers[-1] = wrapped
    if _is_equal(body, wrapped):
        return wrapped
    layers[-1] = wrapped.layer
    return None


def _is_equal(body: Any, wrapped: LastLayer) -> bool:
    """Whether the tokens of two texts, one of them padded, come out as the whole layer gives them."""
    device = next(body.parameters()).device
    last = int(body.config.vocab_size) - 1
    ids = torch.tensor([[5, 6, 7, 8, 9], [9, 7, 5, 0, 0]], device=device).clamp(max=last)
    inputs = {"input_ids": ids, "attention_mask": torch.tensor([[1] * 5, [1, 1, 1, 0, 0]], device=device)}
    rows = torch.arange(2, device=device)
    try:
        with torch.inference_mode():
            whole = body(**inputs)[0]
            for places in ([0, 2], [4, 0], [3, 1]):
                wrapped.places = torch.tensor(places, device=device)
                found = body(**inputs)[0]
                expected = whole[rows, wrapped.places]
                error = (found[:, 0].float() - expected.float()).abs().max()
                bound = CLOSE.get(whole.dtype, 0.0) * whole.float().abs().max().clamp(min=1e-3)
                if found.shape[1] != 1 or not bool(error <= bound):
                    return False
    except (RuntimeError, AttributeError, TypeError, ValueError, IndexError, KeyError):
        return False  # a layer of another form
    finally:
        wrapped.places = None
    return True
