"""The head of a language model on its own: scores of tokens from hidden states, whatever the family calls it."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import nn

from embeval.errors import ModelError

PROBE = 4
"""Tokens on which head and body are tried one after the other."""


class _Output(tuple[Any, ...]):
    """Hidden states as models return them: first by place, and by name; of all else a body gives, nothing."""

    def __new__(cls, hidden: Any) -> Self:
        return super().__new__(cls, (hidden,))

    @property
    def last_hidden_state(self) -> Any:
        """The hidden states."""
        return self[0]

    def __getattr__(self, name: str) -> None:
        return None


class _Shown(nn.Module):
    """Stands where the body was, and gives the hidden states that it was shown."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.shown: torch.Tensor | None = None
        if (embeddings := getattr(body, "embeddings", None)) is not None:
            self.embeddings = embeddings  # some heads read the table of words there

    def forward(self, *_: Any, **__: Any) -> Any:
        """What it was shown, where models look for hidden states."""
        return _Output(self.shown)


class Head(nn.Module):
    """A model of transformers whose body is gone: [M, V] scores from hidden states [M, D]."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self._shown = _Shown(model.base_model)
        setattr(model, model.base_model_prefix, self._shown)
        self.config = model.config
        vectors = next(
            each for each in (getattr(model.config, name, None) for name in ("hidden_size", "dim", "n_embd")) if each
        )
        with torch.inference_mode():
            parameter = next(model.parameters())
            self.width = self.logits(torch.zeros(1, int(vectors), device=parameter.device)).shape[1]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """float32 [M, V] of float32 [M, D]. A discriminator's one score becomes two: of kept and of replaced."""
        self._shown.shown = hidden[None]
        found: torch.Tensor = self.model(input_ids=torch.zeros(1, len(hidden), dtype=torch.long, device=hidden.device))[
            0
        ]
        self._shown.shown = None
        if found.ndim == 2:  # [1, M]
            score = found[0].float()
            return torch.stack([torch.zeros_like(score), score], dim=1)
        return found[0].float()


def head_of(model: Any, name: str) -> Head:
    """The head of a model with one; the model keeps its head only.

    Raises ``ModelError`` where that can't be done, or where head and body one after the other don't give what the
    model gives: some models do more between the two.
    """
    width = model.get_input_embeddings().num_embeddings
    probe = torch.arange(2, 2 + PROBE, device=next(model.parameters()).device).remainder(width)[None]
    try:
        with torch.inference_mode():
            whole = model(input_ids=probe)[0][0].float()
            hidden = model.base_model(input_ids=probe)[0][0].float()
            head = Head(model)
            own = head.logits(hidden)
            wanted = whole if whole.ndim == 2 else torch.stack([torch.zeros_like(whole), whole], dim=1)
            fits = own.shape == wanted.shape and torch.allclose(own, wanted, rtol=1e-4, atol=1e-4)
    except MemoryError:
        raise
    except Exception as error:  # code of models fails in ways of its own when a part of it is missing
        raise ModelError(
            f"Model {name!r}: its language-model head can't be run apart from its body ({type(error).__name__}: "
            f"{str(error)[:200]}).\nModels of this type are not supported."
        ) from error
    if not fits:
        raise ModelError(
            f"Model {name!r}: its language-model head on its own gives other scores than the whole model.\n"
            "Models of this type are not supported: they compute more than a head on hidden states."
        )
    return head


def refuse_untrained(model: Any, name: str) -> None:
    """Raises ``ModelError`` where a head is as it was made: no training leaves all its biases at exactly 0.

    That is what a checkpoint without a head becomes when it is loaded with one and saved again. A head of one bias, or
    of none, doesn't tell: other programs' models get a bias of 0 when they are converted.
    """
    body = model.base_model_prefix
    named = [(key, value.detach()) for key, value in model.named_parameters() if value.ndim == 1]
    own = [(key, value) for key, value in named if key.split(".")[0] != body]
    tells = len(own) > 1 or any(bool((value == 1).all()) for _, value in own)
    if tells and all(bool((value == value[0]).all()) and float(value[0]) in (0.0, 1.0) for _, value in own):
        raise ModelError(
            f"Model {name!r}: its language-model head was never trained: {', '.join(key for key, _ in own[:3])} are "
            "exactly as they were initialised.\nIt would give random probabilities. Use the checkpoint whose head was "
            "trained."
        )
