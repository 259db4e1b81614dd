"""How near two sets of log-probabilities are, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from embeval.core.embeddings import Work
from embeval.language_models import parity
from embeval.language_models.model import Scores
from embeval.language_models.parity import BOUNDS, TokenBounds, TokenParity


def scores(log_prob: list[float], hits: list[float]) -> Scores:
    """Of tokens."""
    return Scores(np.array(log_prob), np.array(hits), np.ones(len(hits)), Work())


def test_differences_by_hand() -> None:
    """Four tokens; the loss grows by a mean of (0.5 - 0.1 + 0 + 0) / 4 nats; a share of a first place is one."""
    found = parity.compare(
        scores([-1.0, -2.0, -3.0, -4.0], [1, 0, 0, 0.5]), scores([-1.5, -1.9, -3.0, -4.0], [0, 0, 1, 1])
    )
    assert (found.n_tokens, found.top_1) == (4, 0.5)
    assert found.max_abs == pytest.approx(0.5)
    assert found.mean_abs == pytest.approx(0.15)
    assert found.loss_change == pytest.approx(0.1)


def test_nothing_to_compare() -> None:
    """An error and no NaN."""
    for other in (scores([], []), scores([-1.0], [1])):
        with pytest.raises(ValueError, match="can't be compared"):
            parity.compare(scores([], []), other)


def of(**changes: float) -> TokenParity:
    """A comparison without a difference, but for some."""
    same: dict[str, float] = {"max_abs": 0.0, "mean_abs": 0.0, "loss_change": 0.0, "top_1": 1.0}
    return TokenParity(n_tokens=1, **{**same, **changes})


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({}, []),
        ({"max_abs": 9.0}, []),
        ({"mean_abs": 0.2}, ["mean_abs 0.20000 is above 0.1"]),
        ({"loss_change": -0.3}, ["loss_change -0.30000 is above 0.2 in size"]),
        (
            {"loss_change": 0.3, "top_1": 0.8},
            ["loss_change 0.30000 is above 0.2 in size", "top_1 0.80000 is below 0.9"],
        ),
        ({"mean_abs": float("nan")}, ["mean_abs nan is above 0.1"]),
        ({"top_1": float("nan")}, ["top_1 nan is below 0.9"]),
    ],
)
def test_bounds(changes: dict[str, float], problems: list[str]) -> None:
    """Above, below, and a change of the loss in either direction; NaN breaks what it stands in."""
    assert TokenBounds(mean_abs=0.1, loss_change=0.2, top_1=0.9).broken_by(of(**changes)) == problems
    assert TokenBounds().broken_by(of(**changes)) == []


def test_bounds_are_narrower_with_more_bits() -> None:
    """For each number format that an export has."""
    widths = [BOUNDS[dtype].mean_abs for dtype in ("float32", "float16", "int8")]
    assert widths == sorted(widths, key=lambda width: width or 0.0)
