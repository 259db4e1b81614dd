"""Token vectors to one vector per text, as pure functions for numpy arrays and torch tensors alike.

Every function takes ``tokens`` float [B, T, D] and ``mask`` [B, T] (0 = padding) and gives [B, D]. Nothing
under the mask is ever read into a result, wherever the padding stands: left, right or in the middle. A row
without any token pools to zeros, which the encoder then reports as an empty text.

Source: sentence-transformers 6.2 ``Pooling``, restated for padding on either side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, get_args

import numpy as np

from embeval.core.specs import PoolingName

Array = Any
"""numpy.ndarray or torch.Tensor."""


def cls(tokens: Array, mask: Array) -> Array:
    """[B, D]: the first token that is not padding."""
    xp = _namespace(tokens)
    return _pick(xp, tokens, mask, xp.argmax(_ints(xp, mask), 1))


def lasttoken(tokens: Array, mask: Array) -> Array:
    """[B, D]: the last token that is not padding."""
    xp = _namespace(tokens)
    # Counting tokens from the left, the last one is the first place where the count reaches its maximum.
    return _pick(xp, tokens, mask, xp.argmax(xp.cumsum(_ints(xp, mask), 1), 1))


def mean(tokens: Array, mask: Array) -> Array:
    """[B, D]: arithmetic mean of the tokens."""
    total, count = _sum(tokens, mask)
    return total / count


def mean_sqrt_len(tokens: Array, mask: Array) -> Array:
    """[B, D]: sum of the tokens over the square root of their number."""
    total, count = _sum(tokens, mask)
    return total / count**0.5


def weightedmean(tokens: Array, mask: Array) -> Array:
    """[B, D]: mean weighted by position, the i-th token of a text counting i. Source: Muennighoff, SGPT, 2022."""
    xp = _namespace(tokens)
    # Positions are counted over tokens, not over places, so that left padding doesn't change the weights.
    weights = xp.cumsum(_ints(xp, mask), 1) * _ints(xp, mask)
    total = (_masked(xp, tokens, mask, 0.0) * weights[:, :, None]).sum(1)
    divisor = weights.sum(1)
    return total / xp.where(divisor == 0, 1, divisor)[:, None]


def max_(tokens: Array, mask: Array) -> Array:
    """[B, D]: greatest value in each dimension."""
    xp = _namespace(tokens)
    masked = _masked(xp, tokens, mask, -float("inf"))
    greatest = xp.amax(masked, 1)
    return xp.where((_ints(xp, mask).sum(1) == 0)[:, None], xp.zeros_like(greatest), greatest)


POOLING: dict[PoolingName, Callable[[Array, Array], Array]] = {
    "cls": cls,
    "mean": mean,
    "max": max_,
    "lasttoken": lasttoken,
    "weightedmean": weightedmean,
    "mean_sqrt_len": mean_sqrt_len,
}
"""Every pooling by name."""
LIBRARY_NAMES: dict[str, PoolingName] = {"mean_sqrt_len_tokens": "mean_sqrt_len"}
"""What sentence-transformers calls by another name."""

assert set(POOLING) == set(get_args(PoolingName))


def _namespace(array: Array) -> ModuleType:
    # torch is never imported for a numpy array: whoever holds a tensor has it loaded already.
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else np


def _ints(xp: ModuleType, mask: Array) -> Array:
    present = mask != 0
    return present.astype(np.int64) if xp is np else present.long()


def _masked(xp: ModuleType, tokens: Array, mask: Array, fill: float) -> Array:
    # ``where`` and not a product: 0 * NaN is NaN, and what stands under the mask may be anything.
    filler = xp.full_like(tokens, fill)
    return xp.where((mask != 0)[:, :, None], tokens, filler)


def _sum(tokens: Array, mask: Array) -> tuple[Array, Array]:
    xp = _namespace(tokens)
    count = _ints(xp, mask).sum(1)
    return _masked(xp, tokens, mask, 0.0).sum(1), xp.where(count == 0, 1, count)[:, None]


def _pick(xp: ModuleType, tokens: Array, mask: Array, places: Array) -> Array:
    rows = np.arange(len(tokens)) if xp is np else xp.arange(len(tokens), device=tokens.device)
    picked = tokens[rows, places]
    empty = (_ints(xp, mask).sum(1) == 0)[:, None]
    return xp.where(empty, xp.zeros_like(picked), picked)
