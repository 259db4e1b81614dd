"""Ratios of two sums over items, such as a loss per token: long items count more than short ones."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Resampler, Swapper, Undefined
from embeval.core.records import Column

LARGEST_EXPONENT = math.log(sys.float_info.max)
"""Above this the exponential of a number is none that a float can hold."""

Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RatioOf:
    """The sum of one column over that of another, times a factor; by choice the exponential of it."""

    name: str
    numerator: str
    denominator: str
    factor: float = 1.0
    """What the ratio is multiplied by: -1 makes a loss of a log-likelihood, 1 / ln 2 makes bits of nats."""
    exponential: bool = False
    """Whether the value is e to that power, as a perplexity is."""
    higher_is_better: bool = False
    per_token: bool = False
    """Whether the denominator counts tokens of the model's own tokenizer: see ``core.protocols.Metric``."""
    version: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it reads."""
        return (self.numerator, self.denominator)

    def aggregate(self, columns: Mapping[str, Column]) -> float | Undefined:
        """The ratio; undefined for no items, a denominator of 0, and where it is larger than a float can be."""
        if not len(columns[self.numerator]):
            return Undefined("too_few_items")
        with np.errstate(over="ignore"):
            above, below = float(columns[self.numerator].sum()), float(columns[self.denominator].sum())
        if below == 0.0:
            return Undefined(f"no_{self.denominator}")
        value = self._value(np.array([above]), np.array([below]))[0]
        return float(value) if np.isfinite(value) else Undefined("overflow")

    def of_items(self, columns: Mapping[str, Column]) -> npt.NDArray[np.float64]:
        """float64 [N]: the ratio of each item alone; NaN where its denominator is 0."""
        above, below = (np.asarray(columns[name], dtype=np.float64) for name in self.columns)
        return self._value(above, below)

    def at(self, value: float) -> float:
        """How much of the numerator there has to be per unit of the denominator for the metric to have a value."""
        return (math.log(value) if self.exponential else value) / self.factor

    def on(self, names: Mapping[str, str]) -> RatioOf:
        """The same of other columns; those that ``names`` doesn't have stay."""
        numerator, denominator = (names.get(each, each) for each in self.columns)
        return replace(self, numerator=numerator, denominator=denominator)

    @staticmethod
    def resampler(metrics: Sequence[RatioOf], columns: Mapping[str, Column]) -> Resampler:
        """Each ratio under resampling, their sums from one matrix product; NaN where one is undefined."""
        names, values = _stacked(metrics, columns)

        def resample(counts: npt.NDArray[np.int64]) -> Rows:
            sums = _product(values, counts.astype(np.float64))
            return _values(metrics, names, sums)

        return resample

    @staticmethod
    def swapper(metrics: Sequence[RatioOf], baseline: Mapping[str, Column], candidate: Mapping[str, Column]) -> Swapper:
        """Differences where items change places with both of their sums."""
        names, before = _stacked(metrics, baseline)
        _, after = _stacked(metrics, candidate)
        # The two sums of a side are the same but for the sign of what changes places: one product serves both.
        common, apart = before.sum(axis=1, keepdims=True) / 2.0, (after - before) / 2.0
        common = common + after.sum(axis=1, keepdims=True) / 2.0

        def swap(signs: Rows) -> Rows:
            moved = _product(apart, signs)
            return _values(metrics, names, common + moved) - _values(metrics, names, common - moved)

        return swap

    def _value(self, above: Rows, below: Rows) -> Rows:
        """Of sums [R]; NaN for a denominator of 0 and for what is larger than a float can be."""
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.divide(self.factor * above, below, out=np.full(len(below), np.nan), where=below != 0.0)
        if self.exponential:
            ratio = np.exp(ratio, out=np.full(len(ratio), np.nan), where=ratio <= LARGEST_EXPONENT)
        return np.where(np.isfinite(ratio), ratio, np.nan)


def _stacked(metrics: Sequence[RatioOf], columns: Mapping[str, Column]) -> tuple[list[str], Rows]:
    """(names of the columns read, their values [C, n])."""
    names = list(dict.fromkeys(name for metric in metrics for name in metric.columns))
    return names, np.stack([columns[name] for name in names])


def _product(values: Rows, weights: Rows) -> Rows:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values @ weights)


def _values(metrics: Sequence[RatioOf], names: Sequence[str], sums: Rows) -> Rows:
    """float64 [M, R] from the sums [C, R] of the columns."""
    of = dict(zip(names, sums, strict=True))
    return np.stack([metric._value(of[metric.numerator], of[metric.denominator]) for metric in metrics])
