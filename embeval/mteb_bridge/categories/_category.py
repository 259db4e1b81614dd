"""What every category of mteb's tasks tells of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from embeval.core.ir import Run
from embeval.core.protocols import PARITY_PREFIX
from embeval.core.records import ItemRecords

__all__ = ["ONE_SUBSET", "PARITY_PREFIX", "SEARCHED", "Category", "Gathered", "Outcome", "Parity", "Setting", "texts"]

ONE_SUBSET = "default"
"""mteb's name of the sub-set of a task that has no others."""
SEARCHED = "AbsTaskRetrieval"
"""mteb's class of tasks in which systems rank documents, so that those without vectors fit too."""
Parity = Literal["embeval", "mteb"]
"""Whose value stands for a task where ours and mteb's differ."""


@dataclass(frozen=True)
class Outcome:
    """What mteb's task class gave for one sub-set."""

    scores: Mapping[str, Any]
    """Its scores, by its names."""
    predictions: Any
    """What it hands to ``_save_task_predictions``; None where it saves none."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A loaded task of mteb, as a category sees it."""

    task: Any
    """The task object (``mteb.AbsTask``), its data loaded."""
    split: str
    """The split that is evaluated."""
    subsets: tuple[str, ...]
    """The sub-sets that are evaluated, in the order in which mteb evaluates them."""
    parity: Parity = "embeval"
    """Whose value stands for the task."""

    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Sub-set -> id of each row, where the data has ids of its own."""
    slices: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """Slice -> sub-set -> label of each row, where the data has labels of its own."""

    def rows(self, subset: str, split: str | None = None) -> Any:
        """The data of a sub-set: a ``datasets.Dataset``, or what else mteb's task class holds there."""
        return splits_of(self.task, subset)[split or self.split]

    def name(self, subset: str, row: int | str) -> str:
        """The id of an item: its own or else its row, after the sub-set where there are several."""
        own = self.ids[subset][row] if isinstance(row, int) and subset in self.ids else str(row)
        return f"{subset}/{own}" if len(self.subsets) > 1 else own

    def labels(self, sizes: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
        """Slices of the items of all sub-sets: the data's own, and ``subset`` where there are several.

        ``sizes`` has the number of items of each sub-set. Own labels are for items that are rows.
        """
        found = {
            name: tuple(label for subset in self.subsets for label in of_subset[subset])
            for name, of_subset in self.slices.items()
        }
        if len(self.subsets) > 1:
            found["subset"] = tuple(subset for subset in self.subsets for _ in range(sizes[subset]))
        return found


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Item records of a task, with what belongs to them."""

    records: ItemRecords
    """One row per item."""
    run: Run | None = None
    """The ranking, for retrieval."""
    counts: Mapping[str, int | None] = field(default_factory=dict)
    """Items by what became of them."""
    warnings: tuple[str, ...] = ()
    """What a reader of the numbers should know."""
    also: tuple[str, ...] = ()
    """Names of further metrics that the records hold: those of mteb (``PARITY_PREFIX``) that differ from ours here."""


class Category(Protocol):
    """One file of ``mteb_bridge/categories``, under the name ``CATEGORY``."""

    task_class: str
    """Name of mteb's abstract task class, as ``mteb.abstasks`` spells it."""
    one_thread: bool
    """Whether scoring is faster with one thread, as small linear algebra is."""
    together: bool
    """Whether mteb evaluates all sub-sets in one call."""

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        """Everything of the data that can change a number, row by row: what the content hash is made from."""

    def metrics(self, setting: Setting) -> Sequence[str]:
        """Names of the metrics, the main one first."""

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        """The item records behind what mteb's task class gave for each sub-set. ``model`` is the one it ran."""


def splits_of(task: Any, subset: str) -> Mapping[str, Any]:
    """Split -> data of a sub-set of a loaded task object, which may hold that of its only sub-set without a name."""
    found: Mapping[str, Any] = task.dataset.get(subset, task.dataset)
    return found


def texts(values: Iterable[Any]) -> list[str]:
    """Values of a column as texts for the content hash; numbers in the shortest form that leads back to them."""
    return [value if isinstance(value, str) else repr(value) for value in values]
