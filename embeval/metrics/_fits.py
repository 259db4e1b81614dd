"""Metrics that are the mean over several classifiers or regressors, each fitted on rows of its own.

The prediction of the i-th stands in the column ``predicted_<i>``. mteb fits ten; a mean over another number has it in
its name, as ``f1_over_5_fits``, so that one name never reads different columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Resampler, Swapper
from embeval.core.records import Column

USUAL = 10
"""Fits behind a name that says nothing of them."""
PREDICTED = "predicted"
"""Begins the columns of predictions."""

M = TypeVar("M")
_OTHER = re.compile(r"(\w+)_over_([1-9]\d?)_fits")


def columns(fits: int, prefix: str = PREDICTED) -> tuple[str, ...]:
    """The columns of so many fits."""
    return tuple(f"{prefix}_{fit}" for fit in range(fits))


def name(kind: str, fits: int) -> str:
    """The name of the mean of a measure over so many fits."""
    return kind if fits == USUAL else f"{kind}_over_{fits}_fits"


def parse(text: str, kinds: Collection[str]) -> tuple[str, int] | None:
    """(measure, fits) of a name; None where it is none of these measures."""
    if text in kinds:
        return text, USUAL
    found = _OTHER.fullmatch(text)
    if found is None or found[1] not in kinds or int(found[2]) == USUAL:
        return None
    return found[1], int(found[2])


def swapper(
    make: Callable[[Sequence[M], Mapping[str, Column]], Resampler],
    metrics: Sequence[M],
    baseline: Mapping[str, Column],
    candidate: Mapping[str, Column],
) -> Swapper:
    """Differences of metrics whose columns are on one scale for both sides, from their resampler.

    A side after the swap is a resample of the items of both: each item once, as one of them has it.
    """
    resample = make(metrics, {column: np.concatenate([baseline[column], candidate[column]]) for column in baseline})

    def swap(signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        stay = (signs > 0.0).astype(np.int64)
        before, after = np.concatenate([stay, 1 - stay]), np.concatenate([1 - stay, stay])
        return np.asarray(resample(after) - resample(before))

    return swap
