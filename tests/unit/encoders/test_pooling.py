"""Pooling functions against sentence-transformers 6.2 ``Pooling`` and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embeval.encoders.pooling import POOLING

LIBRARY_NAMES = {name: name for name in POOLING} | {"mean_sqrt_len": "mean_sqrt_len_tokens"}


@pytest.mark.parametrize("name", list(POOLING))
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), b=st.integers(1, 4), t=st.integers(1, 6), left=st.booleans())
def test_equal_to_the_library(name: Any, seed: int, b: int, t: int, left: bool) -> None:
    """Random tokens, any lengths, padding on either side: equal to 1e-5, for numpy and for torch."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Pooling

    rng = np.random.default_rng(seed)
    tokens = rng.normal(size=(b, t, 5)).astype(np.float32)
    lengths = rng.integers(1, t + 1, size=b)
    mask = (np.arange(t)[None, :] < lengths[:, None]).astype(np.int64)
    if left:
        mask = mask[:, ::-1].copy()
    features = {"token_embeddings": torch.from_numpy(tokens), "attention_mask": torch.from_numpy(mask)}
    theirs = Pooling(5, pooling_mode=LIBRARY_NAMES[name])(features)["sentence_embedding"].numpy()
    ours = POOLING[name](tokens, mask)
    assert isinstance(ours, np.ndarray)
    as_torch = POOLING[name](torch.from_numpy(tokens), torch.from_numpy(mask))
    assert isinstance(as_torch, torch.Tensor)
    np.testing.assert_allclose(as_torch.numpy(), ours, atol=1e-5)
    if name == "weightedmean" and left:
        # The library weights by place, so left padding changes its result; ours is that of right padding.
        unpadded = [POOLING[name](tokens[i : i + 1, t - n :], np.ones((1, n)))[0] for i, n in enumerate(lengths)]
        np.testing.assert_allclose(ours, np.stack(unpadded), atol=1e-5)
    else:
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("name", list(POOLING))
def test_what_stands_under_the_mask_is_never_read(name: Any) -> None:
    """NaN and Inf in padding change nothing."""
    tokens = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 0]])
    clean = POOLING[name](tokens, mask)
    tokens[mask == 0] = np.nan
    tokens[0, 3] = np.inf
    np.testing.assert_array_equal(POOLING[name](tokens, mask), clean)


@pytest.mark.parametrize("name", list(POOLING))
def test_a_row_without_tokens_is_zero(name: Any) -> None:
    """Nothing to pool is an empty text, not NaN or -inf."""
    pooled = POOLING[name](np.ones((1, 3, 2), dtype=np.float32), np.zeros((1, 3)))
    assert pooled.tolist() == [[0.0, 0.0]]


def test_weights_by_hand() -> None:
    """Weighted mean of 1, 2, 4 with weights 1, 2, 3: 17 / 6; root-length mean: 7 / sqrt(3)."""
    tokens = np.array([[[1.0], [2.0], [4.0]]], dtype=np.float32)
    mask = np.ones((1, 3))
    assert POOLING["weightedmean"](tokens, mask)[0, 0] == pytest.approx(17 / 6)
    assert POOLING["mean_sqrt_len"](tokens, mask)[0, 0] == pytest.approx(7 / np.sqrt(3))
