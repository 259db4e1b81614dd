"""What ``embeval compare`` found out: everything that its tables, pages and JSON show."""

from __future__ import annotations

from dataclasses import dataclass

from embeval.core import border, strict_json
from embeval.core.border import BORDER
from embeval.core.comparison import Comparison, Finding, ItemChange
from embeval.core.words import plural

NAMED = 3
"""Comparisons of one finding that are named in a sentence; more are only counted."""


@dataclass(frozen=True, kw_only=True)
class TaskChanges:
    """Items of one task that a candidate lost, gained, or left as they were."""

    __pydantic_config__ = BORDER

    task: str
    """Name of the task."""
    split: str
    """Split of the data."""
    subset: str
    """``all``, or a sub-set by name."""
    metric: str
    """By the value of which items are compared."""
    candidate: str
    """Label of the candidate."""
    n_lost: int
    """Items on which the candidate is worse."""
    n_gained: int
    """Items on which it is better."""
    n_same: int
    """Items on which both are equal."""
    lost: tuple[ItemChange, ...] = ()
    """The largest losses, the largest first."""
    gained: tuple[ItemChange, ...] = ()
    """The largest gains, the largest first."""
    note: str | None = None
    """Why there are no texts, where there are none."""


@dataclass(frozen=True, kw_only=True)
class FewItems:
    """A label of too few items to compare anything on."""

    __pydantic_config__ = BORDER

    task: str
    """Name of the task."""
    slice: str
    """Name of the slice."""
    label: str
    """The label."""
    n_items: int
    """Its items."""


@dataclass(frozen=True, kw_only=True)
class CompareReport:
    """A baseline and its candidates on everything that can be compared."""

    __pydantic_config__ = BORDER

    baseline: str
    """Label of the baseline."""
    candidates: tuple[str, ...]
    """Labels of the candidates."""
    comparisons: tuple[Comparison, ...]
    """One for each candidate, task and metric, in this order."""
    slices: tuple[Comparison, ...] = ()
    """The same by label of the slices that were asked for."""
    worst_slices: tuple[Comparison, ...] = ()
    """The labels with the largest drops, the largest first."""
    few: tuple[FewItems, ...] = ()
    """Labels that were left out: too few items."""
    changes: tuple[TaskChanges, ...] = ()
    """Items lost and gained, by candidate and task."""
    not_comparable: tuple[str, ...] = ()
    """One sentence or two for each task that both have and that can't be compared."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers should know."""
    level: float = 0.95
    """Coverage that the intervals aim at."""
    correction: str = "holm"
    """How p-values are corrected: ``holm``, ``bh`` or ``none``."""
    min_items: int = 20
    """Items below which a label is left out."""

    def of(self, candidate: str) -> tuple[Comparison, ...]:
        """The comparisons of one candidate."""
        return tuple(each for each in self.comparisons if each.candidate_model == candidate)

    def sentence(self, candidate: str) -> str:
        """What the comparisons of one candidate come to, in words."""
        shown = self.of(candidate)
        if not shown:
            return f"{candidate} and {self.baseline}: nothing to compare."
        said = [
            f"{finding.value} {'on' if finding is not Finding.SAME else 'in'} {_places(found)}"
            for finding in (Finding.BETTER, Finding.WORSE, Finding.NOT_TOLD_APART, Finding.SAME, Finding.UNDEFINED)
            if (found := [each for each in shown if each.finding is finding])
        ]
        return f"{candidate} against {self.baseline}, {plural(len(shown), 'comparison')}: {', '.join(said)}."

    def to_json(self) -> strict_json.Json:
        """The report as plain values, each comparison with its finding."""
        whole = border.dump(self)
        for name in ("comparisons", "slices", "worst_slices"):
            for found, each in zip(whole[name], getattr(self, name), strict=True):
                found["finding"] = each.finding.value
        return {**whole, "summary": [self.sentence(candidate) for candidate in self.candidates]}


def _places(found: list[Comparison]) -> str:
    """How many, and which where these are few."""
    if len(found) > NAMED:
        return str(len(found))
    names = [each.task if each.subset == "all" else f"{each.task} {each.subset}" for each in found]
    if len(set(names)) < len(names):
        names = [f"{name} {each.metric}" for name, each in zip(names, found, strict=True)]
    return f"{len(found)} ({', '.join(names)})"
