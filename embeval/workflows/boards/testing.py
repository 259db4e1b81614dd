"""Which models of a board can be held against each other item by item, and how sure their differences are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from embeval import metrics
from embeval.compare import evidence
from embeval.core.protocols import Metric
from embeval.core.records import ItemRecords
from embeval.core.words import plural
from embeval.errors import EmbevalError, EvidenceError
from embeval.leaderboard import ranking
from embeval.leaderboard.board import Board, ColumnKey
from embeval.leaderboard.snapshot import Column, Pairs
from embeval.stats import many
from embeval.workflows.boards.gathering import Gathered

MOST_TESTED = 50
"""Models whose pairs are tested: the best of those that have items."""
IMPORTED = "imported: no items"
"""Why a model isn't tested whose values were published elsewhere."""
NOT_AMONG_BEST = f"not among the best {MOST_TESTED} models that have items"
"""Why a model isn't tested that has all items."""
UNREADABLE = "its items can't be read"
"""Why a model isn't tested whose files are missing or broken; a remark says more."""
UNSOUND = "its evidence doesn't hold"
"""Why a model isn't tested whose scores don't follow from its items, say; a remark says more."""
SHOWN = 5
"""Remarks on evidence; of more, their number is told."""


class Tested(NamedTuple):
    """The models of a board whose pairs are tested."""

    rows: list[int]
    """Rows of the board."""
    pairs: list[Pairs]
    """For each column their pairs; empty: nothing is tested."""
    untested: dict[int, str]
    """Row -> why it isn't tested, of all others."""
    remarks: list[str]
    """What a reader should know of the tests, as sentences."""


class _UnfitError(Exception):
    """Why the items of a model can't be held against those of others."""


@dataclass
class _Column:
    """A ranked column with the items that were read so far."""

    key: ColumnKey
    heading: str
    metric: Metric
    records: dict[int, ItemRecords] = field(default_factory=dict)
    """Row -> its items, in one order; what all have in common is kept once."""


def tested(
    board: Board,
    columns: Sequence[Column],
    values: npt.NDArray[np.float64],
    rules: ranking.Rules,
    gathered: Gathered,
) -> Tested:
    """The best models that have items on every ranked column, and their pairs."""
    counted = ranking.ranked(columns)
    untested: dict[int, str] = {}
    remarks: list[str] = []
    if not counted:
        return Tested([], [], dict.fromkeys(range(len(board.rows)), ranking.NOTHING_RANKED), [])
    for row in range(len(board.rows)):
        if (reason := _lacking(board, row, columns, values[row], counted)) is not None:
            untested[row] = reason
    standings = ranking.standings_of(values, columns, rules)
    ranked = [row for row, standing in enumerate(standings) if standing.rank is not None and row not in untested]
    ranked.sort(key=lambda row: (standings[row].rank, row))
    if len(ranked) < 2:
        return Tested([], [], untested, [])
    read = [
        _Column(board.columns[place], columns[place].heading, metrics.get(columns[place].metric)) for place in counted
    ]
    rows: list[int] = []
    for row in ranked:
        if len(rows) == MOST_TESTED:
            untested[row] = NOT_AMONG_BEST
            continue
        try:
            found = [_records(board, row, column, gathered) for column in read]
        except _UnfitError as error:
            untested[row] = str(error)
        except EmbevalError as error:
            untested[row] = UNSOUND if isinstance(error, EvidenceError) else UNREADABLE
            remarks.append(f"{board.rows[row].label} is not tested: {_told(error, gathered)}")
        else:
            rows.append(row)
            for column, records in zip(read, found, strict=True):
                column.records[row] = records
    if len(rows) < 2:
        return Tested([], [], untested, _shortened(remarks))
    pairs = [Pairs(variances=(), different=(), freedom=1.0)] * len(columns)
    for place, column in zip(counted, read, strict=True):
        spread = many.spread([column.records.pop(row) for row in rows], column.metric, _weighting(column.key))
        pairs[place] = ranking.pairs_of(spread)
        remarks += _unknown(column.heading, pairs[place])
    return Tested(rows, pairs, untested, _shortened(remarks))


def _lacking(
    board: Board, row: int, columns: Sequence[Column], values: npt.NDArray[np.float64], counted: Sequence[int]
) -> str | None:
    """Why a model can't be tested, as far as its results tell."""
    results = board.rows[row].results
    if any(result.imported is not None for result in results.values()):
        return IMPORTED
    if gaps := [place for place in counted if np.isnan(values[place])]:
        return ranking.gap_on([columns[place].heading for place in gaps])
    without = [columns[place].heading for place in counted if results[board.columns[place]].items is None]
    return f"no items on {without[0]}" if without else None


def _records(board: Board, row: int, column: _Column, gathered: Gathered) -> ItemRecords:
    """The items of a model that a column is computed from, in the order of the others'."""
    found = evidence.gather(*gathered.places[id(board.rows[row].results[column.key])])
    if (short := found.too_short_for(column.metric.name)) is not None:
        raise EvidenceError(short)
    records = found.records
    first = next(iter(column.records.values()), records)
    if records.ids != first.ids:
        place = {item: at for at, item in enumerate(records.ids)}
        if place.keys() != set(first.ids):
            raise _UnfitError(f"other items than the others on {column.heading}")
        records = records.take([place[item] for item in first.ids])
    return ItemRecords(
        unit=first.unit,
        ids=first.ids,
        columns={name: _shared(records, first, name) for name in column.metric.columns},
        slices={name: labels for name, labels in first.slices.items() if name == "subset"},
        clusters=first.clusters,
    )


def _shared(records: ItemRecords, first: ItemRecords, name: str) -> npt.NDArray[np.float64]:
    """A column, kept once where models have it in common, as they have gold values."""
    own, other = records.columns[name], first.columns[name]
    return other if np.array_equal(own, other, equal_nan=True) else own


def _weighting(key: ColumnKey) -> many.Weighting | None:
    return cast(many.Weighting, key.subset) if key.subset in evidence.MEANS else None


def _told(error: EmbevalError, gathered: Gathered) -> str:
    """What was wrong, without the place on this machine where the results lie."""
    message = str(error).splitlines()[0]
    for root in {store.root for store, _ in gathered.places.values()}:
        message = message.replace(f"{root}/", "")
    return message


def _unknown(heading: str, pairs: Pairs) -> list[str]:
    """That differences on a column can't be told, where that is so."""
    n = sum(each is None for each in pairs.variances)
    which = "All pairs" if n == len(pairs.variances) else plural(n, "pair")
    why = "too few items, or items that only one side has a value of"
    return [f"{which} of models can't be told apart, since nothing can be tested on {heading}: {why}."] if n else []


def _shortened(remarks: list[str]) -> list[str]:
    more = len(remarks) - SHOWN
    return remarks if more <= 0 else [*remarks[:SHOWN], f"{plural(more, 'more remark')} of this kind."]
