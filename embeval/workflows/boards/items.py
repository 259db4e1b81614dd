"""Items that models lost and gained against the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from embeval import metrics
from embeval.compare import changes, evidence, pairs
from embeval.compare.evidence import Evidence
from embeval.compare.pairs import Pair
from embeval.compare.report import TaskChanges
from embeval.core.characters import cut
from embeval.core.comparison import ItemChange
from embeval.core.specs import StatisticsOptions
from embeval.data.beir import RetrievalData
from embeval.errors import EmbevalError, UnknownNameError
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Cell, Column, Item, ItemList, Model
from embeval.store.results import ResultStore, Stored
from embeval.workflows.boards.gathering import Gathered

LONGEST = 200
"""Characters of a text."""

_Key = tuple[str, str, str]


def with_items(
    models: Sequence[Model],
    columns: Sequence[Column],
    reference: int | None,
    definition: Definition,
    gathered: Gathered,
) -> tuple[tuple[Model, ...], tuple[str, ...]]:
    """(the models with their largest losses and gains on each task, what a reader should know of these).

    Only of metrics that single items have a value of. Evidence that can't be read gives no list: that it can't is told
    where models are tested.
    """
    if reference is None or not definition.board.items:
        return tuple(models), ()
    found = Sides(gathered)
    texts = Texts(definition.board.texts, definition)
    listed = list(models)
    for place, model in enumerate(models):
        if place != reference:
            lists = _lists(models[reference], model, columns, found, texts, definition.board.items)
            listed[place] = replace(model, items=tuple(lists))
    return tuple(listed), tuple(texts.remarks)


def _lists(
    reference: Model, model: Model, columns: Sequence[Column], found: Sides, texts: Texts, show: int
) -> Iterator[ItemList]:
    for place, column in enumerate(columns):
        if not of_items(column.metric):
            continue
        pair = found.pair(reference, model, place, column)
        made = None if pair is None else changes.changes(pair, model.label, show, column.metric)
        if pair is not None and made is not None:
            yield _list(place, made, texts.of(pair.baseline) if made.lost or made.gained else None)


def _list(column: int, made: TaskChanges, data: RetrievalData | None) -> ItemList:
    def items(those: Sequence[ItemChange]) -> tuple[Item, ...]:
        return tuple(Item(id=each.id, reference=each.baseline, value=each.candidate, text=text(each)) for each in those)

    def text(item: ItemChange) -> str | None:
        known = None if data is None else data.queries.get(item.id)
        return None if known is None else cut(known, LONGEST)

    return ItemList(
        column=column,
        n_lost=made.n_lost,
        n_gained=made.n_gained,
        lost=items(made.lost),
        gained=items(made.gained),
    )


def of_items(metric: str) -> bool:
    """Whether single items have a value of a metric: a correlation is of all of them."""
    try:
        return metrics.get(metric).columns == (metric,)
    except UnknownNameError:  # of an imported result
        return False


class Sides:
    """The evidence behind the values of a board; that of the reference, which comes in every pair, is read once."""

    def __init__(self, gathered: Gathered) -> None:
        self._places: dict[_Key, tuple[ResultStore, Stored]] = {}
        for store, stored in gathered.places.values():
            result = stored.result
            self._places[stored.id, result.signature.model_digest[:8], result.task.name] = (store, stored)
        self._kept: dict[tuple[str, ...], Evidence | None] = {}

    def place(self, model: Model, cell: Cell | None, column: Column) -> tuple[ResultStore, Stored] | None:
        """Where the result of a value lies; None for a gap and for a value that was published elsewhere."""
        if cell is None or cell.imported or cell.result is None:
            return None
        return self._places.get((cell.result, model.digest, column.task))

    def pair(
        self,
        reference: Model,
        model: Model,
        place: int,
        column: Column,
        statistics: StatisticsOptions = StatisticsOptions(),  # noqa: B008  # frozen
    ) -> Pair | None:
        """Two models on one column, item by item; None where there is nothing to hold against each other."""
        one = self._evidence(reference, reference.cells[place], column, keep=True)
        other = None if one is None else self._evidence(model, model.cells[place], column, keep=False)
        if one is None or other is None:
            return None
        try:
            return pairs.pair(one, other, statistics)
        except EmbevalError:
            return None

    def _evidence(self, model: Model, cell: Cell | None, column: Column, *, keep: bool) -> Evidence | None:
        there = self.place(model, cell, column)
        if there is None:
            return None
        key = (there[1].id, model.digest, column.task, column.metric)
        if key in self._kept:
            return self._kept[key]
        try:
            found = evidence.gather(*there, only=column.metric)
        except EmbevalError:
            found = None
        if keep:
            self._kept[key] = found
        return found


class Texts:
    """The queries behind results, each set read once, and what is to be said where they aren't at hand."""

    def __init__(self, wanted: bool, definition: Definition) -> None:
        self._wanted = wanted
        self._data = None if definition.board.data is None else definition.folder(definition.board.data)
        self._known: dict[str, RetrievalData | None] = {}
        self.remarks: list[str] = []

    def of(self, side: Evidence) -> RetrievalData | None:
        """The data behind a result; None where it isn't wanted, not at hand, or not that of a search."""
        if not self._wanted or side.result.run is None:
            return None
        key = str(side.result.signature.protocol.get("data"))
        if key not in self._known:
            self._known[key] = self._read(side)
        return self._known[key]

    def _read(self, side: Evidence) -> RetrievalData | None:
        from embeval.workflows import stored_data

        try:
            return stored_data.retrieval_data(Stored(Path(side.source), side.result), data=self._data)
        except EmbevalError:
            self.remarks.append(f"The texts of {side.result.task.name} are not at hand, or not those that were used.")
            return None
