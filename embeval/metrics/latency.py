"""How fast a search answers: ``latency_p95_ms``, the same for one stage, cold latency and ``queries_per_s``.

- ``latency_pXX_ms``: percentile XX (1 to 99) over queries of the column ``latency_ms``, interpolated linearly
  between the two values next to it. Source: Hyndman & Fan, American Statistician 1996, definition 7; equal to
  ``numpy.percentile``.
- ``encode_latency_pXX_ms``, ``search_latency_pXX_ms``, ``rerank_latency_pXX_ms``: the same of ``encode_latency_ms``, …
- ``cold_latency_ms`` and ``<stage>_cold_latency_ms``: the first query that a process answers.
- ``queries_per_s``: queries answered in one batch.

``retrieval.latency`` measures the columns. They belong to one machine, and no two runs give the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Resampler, Undefined
from embeval.core.records import Column
from embeval.metrics._family import MeanOf

STAGES = ("encode", "search", "rerank")
"""Parts of an answer that are timed for themselves."""
PERCENTS = (50, 95, 99)
"""Percentiles for listings."""


@dataclass(frozen=True)
class Percentile:
    """A percentile of one column."""

    name: str
    column: str
    percent: int
    version: int = 1
    higher_is_better: bool = False
    of_some_items: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The column it reads."""
        return (self.column,)

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The percentile; undefined for no items."""
        values = columns[self.column]
        return float(np.percentile(values, self.percent)) if len(values) else Undefined("too_few_items")

    @staticmethod
    def resampler(metrics: Sequence[Percentile], columns: Mapping[str, Column]) -> Resampler:
        """Each percentile under resampling; items are sorted once, and counts summed along that order."""
        orders = {metric.column: np.argsort(columns[metric.column], kind="stable") for metric in metrics}

        def resample(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            up_to = {name: np.cumsum(counts[order], axis=0) for name, order in orders.items()}
            return np.stack(
                [
                    _interpolated(columns[metric.column][orders[metric.column]], up_to[metric.column], metric.percent)
                    for metric in metrics
                ]
            )

        return resample


def _interpolated(values: Column, up_to: npt.NDArray[np.int64], percent: int) -> Column:
    """float64 [R] for sorted ``values`` [n], of which ``up_to`` [n, R] tells how many draws were made down to each."""
    last = up_to[-1] - 1
    place = last * (percent / 100)
    below = np.floor(place).astype(np.int64)

    def at(rank: npt.NDArray[np.int64]) -> Column:
        return np.asarray(values[np.argmax(up_to > rank, axis=0)])

    lower = at(below)
    # Above a single draw there is none, and whatever stands there has the weight 0.
    return np.asarray(lower + (at(below + 1) - lower) * (place - below))


_STAGE = rf"(?:(?:{'|'.join(STAGES)})_)?"
_PERCENTILE = re.compile(rf"({_STAGE}latency)_p([1-9][0-9]?)_ms")
_COLD = re.compile(rf"{_STAGE}cold_latency_ms")


class _Family:
    def names(self) -> tuple[str, ...]:
        prefixes = ["", *(f"{stage}_" for stage in STAGES)]
        return (
            *(f"{prefix}latency_p{percent}_ms" for prefix in prefixes for percent in PERCENTS),
            *(f"{prefix}cold_latency_ms" for prefix in prefixes),
            "queries_per_s",
        )

    def make(self, name: str) -> Percentile | MeanOf | None:
        if match := _PERCENTILE.fullmatch(name):
            return Percentile(name, f"{match[1]}_ms", int(match[2]))
        if _COLD.fullmatch(name):
            return MeanOf(name, higher_is_better=False, of_some_items=True)
        return MeanOf(name, of_some_items=True) if name == "queries_per_s" else None


FAMILY = _Family()
