"""The pooling functions as a module of torch, to stand in for the library's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from embeval.encoders.pooling import LIBRARY_NAMES, POOLING


class Pooled(torch.nn.Module):
    """``sentence_embedding`` [B, D x modes] from ``token_embeddings`` [B, T, D] and ``attention_mask`` [B, T].

    Differs from sentence-transformers 6.2 ``Pooling`` in one thing: a text without a token pools to zeros, and not to
    -Inf (max) or to the vector of a padding token (cls).
    """

    def __init__(self, modes: Sequence[str]) -> None:
        super().__init__()
        self.pooling_mode = tuple(LIBRARY_NAMES.get(mode, mode) for mode in modes)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """The features with the pooled vectors added."""
        tokens, mask = features["token_embeddings"], features["attention_mask"]
        pooled = [POOLING[mode](tokens, mask) for mode in self.pooling_mode]  # type: ignore[index]
        features["sentence_embedding"] = torch.cat(pooled, dim=-1)
        return features
