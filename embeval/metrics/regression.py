"""Regression: ``mse``, ``mae``, ``rmse``, ``r2`` and ``kendalltau`` as the mean over fitted regressors.

``mse`` and ``mae`` are means of their own columns, an item's squared and absolute error averaged over the regressors.
The others read ``gold`` and ``predicted_0`` … ``predicted_9``; ``r2_over_5_fits`` is the same over five. Kendall's tau
is tau-b. Undefined, never 0, where gold is constant, and for tau where a regressor's predictions are.

Source: sklearn.metrics ``mean_squared_error``, ``mean_absolute_error``, ``r2_score`` and scipy.stats ``kendalltau``,
averaged as mteb 2.26 averages them (tests/unit/metrics, tests/unit/mteb_bridge).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Resampler, Swapper, Undefined
from embeval.core.records import Column
from embeval.metrics import _fits
from embeval.metrics._family import MeanOf
from embeval.metrics._kendall import Pairs

VERSION = 1
GOLD = "gold"
ERRORS = ("mse", "mae")
"""Means of a column."""
KINDS = ("rmse", "r2")
TAU = "kendalltau"
SPREAD_OF_ROUNDING = 1e-13
"""Largest variance of equal values scaled to at most 1 that is still rounding error."""

Counts = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OfErrors:
    """The mean over regressors of a measure that follows from their squared errors."""

    kind: str
    name: str
    columns: tuple[str, ...]
    higher_is_better: bool
    version: int = VERSION

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The mean: ``rmse`` in units of gold, ``r2`` up to 1."""
        gold = columns[GOLD]
        if not len(gold):
            return Undefined("too_few_items")
        if self.kind == "r2" and np.ptp(gold) == 0.0:
            return Undefined("constant_input")
        return float(self.resampler([self], columns)(np.ones((len(gold), 1), dtype=np.int64))[0, 0])

    @staticmethod
    def resampler(metrics: Sequence[OfErrors], columns: Mapping[str, Column]) -> Resampler:
        """Each mean under resampling, from weighted sums of squared errors, gold and its square."""
        names = list(dict.fromkeys(name for metric in metrics for name in metric.columns if name != GOLD))
        places = [[names.index(name) for name in metric.columns if name != GOLD] for metric in metrics]
        gold = columns[GOLD]
        centred = gold - gold.mean()
        scale = float(np.abs(centred).max()) or 1.0
        terms = np.stack([*((columns[name] - gold) ** 2 for name in names), centred / scale, (centred / scale) ** 2])

        def resample(counts: Counts) -> Rows:
            weights = counts.astype(np.float64)
            *errors, first, square = terms @ weights / weights.sum(axis=0)
            spread = square - first**2
            spread[spread <= SPREAD_OF_ROUNDING] = np.nan
            values = []
            for metric, rows in zip(metrics, places, strict=True):
                squared = np.stack([errors[row] for row in rows])
                each = np.sqrt(squared) if metric.kind == "rmse" else 1.0 - squared / (spread * scale**2)
                values.append(each.mean(axis=0))
            return np.stack(values)

        return resample

    @staticmethod
    def swapper(
        metrics: Sequence[OfErrors], baseline: Mapping[str, Column], candidate: Mapping[str, Column]
    ) -> Swapper:
        """Differences where items change places with all that was predicted for them."""
        return _fits.swapper(OfErrors.resampler, metrics, baseline, candidate)


@dataclass(frozen=True)
class KendallTau:
    """The mean over regressors of Kendall's tau-b."""

    name: str
    columns: tuple[str, ...]
    higher_is_better: bool = True
    version: int = VERSION

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The mean in [-1, 1]."""
        if len(columns[GOLD]) < 2:
            return Undefined("too_few_items")
        if any(np.ptp(columns[name]) == 0.0 for name in self.columns):
            return Undefined("constant_input")
        return self._pairs(columns).value()

    @staticmethod
    def resampler(metrics: Sequence[KendallTau], columns: Mapping[str, Column]) -> Resampler:
        """Each mean under resampling; see ``_kendall``."""
        resamples = [metric._pairs(columns).resampler() for metric in metrics]

        def resample(counts: Counts) -> Rows:
            return np.stack([each(counts) for each in resamples])

        return resample

    def _pairs(self, columns: Mapping[str, Column]) -> Pairs:
        return Pairs(columns[GOLD], [columns[name] for name in self.columns if name != GOLD])


class _Family:
    def names(self) -> tuple[str, ...]:
        return (*ERRORS, *KINDS, TAU, _fits.name("r2", 5), _fits.name(TAU, 5))

    def make(self, name: str) -> Metric | None:
        if name in ERRORS:
            return MeanOf(name, higher_is_better=False, version=VERSION)
        if (found := _fits.parse(name, (*KINDS, TAU))) is None:
            return None
        kind, fits = found
        read = (GOLD, *_fits.columns(fits))
        if kind == TAU:
            return KendallTau(name, read)
        return OfErrors(kind, name, read, higher_is_better=kind != "rmse")


FAMILY = _Family()
