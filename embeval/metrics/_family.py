"""Metrics by name, and the mean, which most of them are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric, Resampler, Swapper, Undefined
from embeval.core.records import Column
from embeval.errors import UnknownNameError
from embeval.registry import Registry


class MetricFamily(Protocol):
    """Metrics that are computed alike, such as all rank correlations or everything "at k"."""

    def names(self) -> tuple[str, ...]:
        """Names for listings and for "did you mean"; a family with a cut-off lists the usual ones."""

    def make(self, name: str) -> Metric | None:
        """The metric of that name, or None if it is not of this family."""


FAMILIES: Registry[MetricFamily] = Registry(
    kind="metric family", package="embeval.metrics", attribute="FAMILY", group="embeval.metrics"
)


@cache
def get(name: str) -> Metric:
    """The metric of that name. Raises ``UnknownNameError`` with the closest names."""
    known: list[str] = []
    for family_name in FAMILIES.names():
        family = FAMILIES.get(family_name)
        if (metric := family.make(name)) is not None:
            return metric
        known += family.names()
    raise UnknownNameError("metric", name, known)


def is_per_token(name: str) -> bool:
    """Whether values of a metric are per token of a model's own tokenizer.

    An unknown metric, as imported results may have, is taken for one whose values are not.
    """
    try:
        return getattr(get(name), "per_token", False)
    except UnknownNameError:
        return False


@dataclass(frozen=True)
class MeanOf:
    """The arithmetic mean of one column."""

    name: str
    """Name of the metric and of the column."""
    higher_is_better: bool = True
    version: int = 1
    of_some_items: bool = False
    """Whether it is measured on some items only, so that the others lack nothing."""
    chance: float | None = None
    """What guessing gets on any data; None where that is not known."""
    ties_half: bool = False
    """Whether it is a share of items in which 0.5 stands for a tie."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The column it reads."""
        return (self.name,)

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The mean; undefined for no items."""
        values = columns[self.name]
        return float(values.mean()) if len(values) else Undefined("too_few_items")

    @staticmethod
    def resampler(metrics: Sequence[MeanOf], columns: Mapping[str, Column]) -> Resampler:
        """Each mean under resampling, all of them in one matrix product."""
        values = np.stack([columns[metric.name] for metric in metrics])

        def resample(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
            weights = counts.astype(np.float64)
            return np.asarray(values @ weights / weights.sum(axis=0))

        return resample

    @staticmethod
    def swapper(metrics: Sequence[MeanOf], baseline: Mapping[str, Column], candidate: Mapping[str, Column]) -> Swapper:
        """Means of the differences, each with a sign."""
        differences = np.stack([candidate[metric.name] - baseline[metric.name] for metric in metrics])

        def swap(signs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            return np.asarray(differences @ signs / differences.shape[1])

        return swap
