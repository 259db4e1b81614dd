"""What is said of two systems on one metric: values, difference, how sure it is, and in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from embeval.core.border import BORDER


class Finding(StrEnum):
    """What a comparison shows. Nothing shown is not the same as equal."""

    BETTER = "better"
    """The candidate, at the level asked for."""
    WORSE = "worse"
    """The candidate, at the level asked for."""
    NOT_TOLD_APART = "not told apart"
    """A difference of this size could be chance."""
    SAME = "same on every item"
    """There is no difference at all."""
    UNDEFINED = "undefined"
    """One side has no value; ``reason`` says why."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One metric of a baseline and a candidate on the same items."""

    __pydantic_config__ = BORDER

    task: str
    """Name of the task."""
    split: str
    """Split of the data."""
    subset: str
    """``all``, a sub-set by name, ``mean`` or ``wmean``."""
    slice: str | None = None
    """Name of the slice, where only items of one label are compared."""
    label: str | None = None
    """That label."""
    metric: str
    """Name of the metric."""
    higher_is_better: bool
    """Direction of improvement."""
    baseline_model: str
    """Label of the baseline."""
    candidate_model: str
    """Label of the candidate."""
    baseline: float | None
    """Value of the baseline; null where undefined."""
    candidate: float | None
    """Value of the candidate; null where undefined."""
    delta: float | None
    """candidate - baseline, not oriented: negative is better where lower is."""
    ci_low: float | None = None
    """Lower end of the confidence interval of the difference."""
    ci_high: float | None = None
    """Upper end of it."""
    level: float = 0.95
    """Coverage that the interval aims at."""
    interval: str | None = None
    """How the interval was made: ``studentised``, ``bca``, …"""
    p: float | None = None
    """Two-sided p-value of "there is no difference"."""
    p_adjusted: float | None = None
    """The same, corrected for all comparisons of the report."""
    test: str | None = None
    """Where p comes from: ``randomization`` or ``bootstrap``."""
    resamples: int = 0
    """Resamples behind interval and p."""
    seed: int = 0
    """Their seed."""
    n_items: int
    """Items compared."""
    n_unscored: int = 0
    """Items without a value on either side, left out."""
    effect_size: float | None = None
    """Mean of the difference per item over its standard deviation; null where single items have no value."""
    wins: int | None = None
    """Items on which the candidate is better; null where single items have no value."""
    ties: int | None = None
    """Items on which both are equal."""
    losses: int | None = None
    """Items on which the candidate is worse."""
    detectable: float | None = None
    """Smallest true difference that so many items would show four times in five, at this level."""
    reason: str | None = None
    """Why there is no difference."""
    note: str | None = None
    """What to keep in mind when reading it."""

    @property
    def gain(self) -> float | None:
        """The difference, positive where the candidate is better."""
        return None if self.delta is None else self.delta if self.higher_is_better else -self.delta

    @property
    def finding(self) -> Finding:
        """What it shows, by the adjusted p-value where there is one, else by the interval."""
        if self.delta is None or self.gain is None:
            return Finding.UNDEFINED
        if self.wins == 0 and self.losses == 0:
            return Finding.SAME
        p = self.p if self.p_adjusted is None else self.p_adjusted
        if p is not None:
            shown = p <= 1.0 - self.level
        else:
            shown = self.ci_low is not None and self.ci_high is not None and not self.ci_low <= 0.0 <= self.ci_high
        if not shown or self.gain == 0.0:
            return Finding.NOT_TOLD_APART
        return Finding.BETTER if self.gain > 0 else Finding.WORSE


@dataclass(frozen=True, kw_only=True)
class ItemChange:
    """One item that a candidate lost or gained."""

    __pydantic_config__ = BORDER

    id: str
    """Id of the item."""
    baseline: float
    """Value of the baseline."""
    candidate: float
    """Value of the candidate."""
    text: str | None = None
    """The query, where the data was at hand."""
    positives: tuple[RankedPositive, ...] = ()
    """Its relevant documents with their ranks on both sides, where the data was at hand."""
    baseline_first: str | None = None
    """Id of the document that the baseline puts first."""
    candidate_first: str | None = None
    """Id of the one that the candidate does."""
    candidate_first_text: str | None = None
    """What that one says, the part that has to do with the query."""

    @property
    def delta(self) -> float:
        """candidate - baseline."""
        return self.candidate - self.baseline


@dataclass(frozen=True, kw_only=True)
class RankedPositive:
    """A relevant document and where each side has it."""

    __pydantic_config__ = BORDER

    doc: str
    """Its id."""
    grade: int
    """Its relevance."""
    baseline_rank: int | None
    """Its rank from 1 in the baseline's ranking; null: not in it."""
    candidate_rank: int | None
    """Its rank in the candidate's."""
    text: str | None = None
    """Its beginning, where the data was at hand."""
