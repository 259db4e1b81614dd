"""P-values adjusted for many comparisons at once: Holm, and Benjamini–Hochberg.

An adjusted p-value is compared with α itself. Holm bounds the probability of one false claim or more, whatever depends
on what; Benjamini–Hochberg bounds the expected share of false claims, for tests that are independent or positively
dependent.

Sources: Holm, Scandinavian Journal of Statistics 1979; Benjamini & Hochberg, JRSS B 1995; adjusted values as in
Wright, Biometrics 1992. Benjamini–Hochberg is equal to ``scipy.stats.false_discovery_control``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column


def holm(p: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjusted p-values in the order given. None and NaN are no tests: they count for nothing and come out as None.

    Raises ``ValueError`` for a p-value outside [0, 1].
    """
    return _adjusted(p, _step_down)


def benjamini_hochberg(p: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjusted p-values in the order given. None and NaN are no tests: they count for nothing and come out as None.

    Raises ``ValueError`` for a p-value outside [0, 1].
    """
    return _adjusted(p, _step_up)


def _step_down(ascending: Column) -> Column:
    left = np.arange(len(ascending), 0, -1)
    return np.asarray(np.maximum.accumulate(ascending * left))


def _step_up(ascending: Column) -> Column:
    share = len(ascending) / np.arange(1, len(ascending) + 1)
    return np.asarray(np.minimum.accumulate((ascending * share)[::-1])[::-1])


def _adjusted(p: Sequence[float | None], step: Callable[[Column], Column]) -> tuple[float | None, ...]:
    values: npt.NDArray[np.float64] = np.array([np.nan if each is None else each for each in p], dtype=np.float64)
    tests = np.flatnonzero(~np.isnan(values))
    if ((values[tests] < 0.0) | (values[tests] > 1.0)).any():
        raise ValueError("p-values lie in [0, 1]")
    order = tests[np.argsort(values[tests], kind="stable")]
    adjusted: list[float | None] = [None] * len(values)
    for place, value in zip(order, np.minimum(step(values[order]), 1.0), strict=True):
        adjusted[place] = float(value)
    return tuple(adjusted)
