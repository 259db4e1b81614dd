"""Which models of a board can be held against each other item by item, and how sure their differences are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
from embeval.leaderboard.render import deciding
from embeval.leaderboard.snapshot import Column, Pairs, Standing
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
    if not counted:
        return Tested([], [], dict.fromkeys(range(len(board.rows)), ranking.NOTHING_RANKED), [])
    standings = ranking.standings_of(values, columns, rules)
    untested = {
        row: reason
        for row in range(len(board.rows))
        if (reason := _lacking(board, row, columns, values[row], counted)) is not None
    }
    chosen = [columns[place] for place in counted]
    remarks = list(_on_ranks(chosen, rules, standings))
    order = [row for row, standing in enumerate(standings) if standing.rank is not None and row not in untested]
    order.sort(key=lambda row: (standings[row].rank, row))
    if len(order) < 2 or ranking.unlike(chosen):
        return Tested([], [], untested, remarks)
    read = [
        _Column(board.columns[place], columns[place].heading, metrics.get(columns[place].metric)) for place in counted
    ]
    rows, broken = _read(board, order, read, gathered, untested)
    remarks += _shortened(broken)
    if len(rows) < 2:
        return Tested([], [], untested, remarks)
    pairs = [Pairs(variances=(), different=(), freedom=1.0)] * len(columns)
    for place, column in zip(counted, read, strict=True):
        pairs[place] = _pairs([column.records.pop(row) for row in rows], column)
        remarks += _unknown(column, pairs[place])
    return Tested(rows, pairs, untested, remarks)


def _read(
    board: Board, order: Sequence[int], columns: Sequence[_Column], gathered: Gathered, untested: dict[int, str]
) -> tuple[list[int], list[str]]:
    """(the first rows whose items can be read, what a reader should know of others); ``untested`` says why of these."""
    rows: list[int] = []
    broken: list[str] = []
    for row in order:
        if len(rows) == MOST_TESTED:
            untested[row] = NOT_AMONG_BEST
            continue
        try:
            found = [_records(board, row, column, gathered) for column in columns]
        except _UnfitError as error:
            untested[row] = str(error)
        except EmbevalError as error:
            untested[row] = UNSOUND if isinstance(error, EvidenceError) else UNREADABLE
            broken.append(f"{board.rows[row].label} is not tested: {_told(error, gathered)}")
        else:
            rows.append(row)
            for column, records in zip(columns, found, strict=True):
                column.records[row] = records
    return rows, broken


def _on_ranks(columns: Sequence[Column], rules: ranking.Rules, standings: Sequence[Standing]) -> Iterator[str]:
    """What a reader should know of the ranks, as sentences."""
    if ranking.both_ways(columns):
        yield "No means, and nothing tested: higher is better in some columns and lower in others."
    elif ranking.unlike(columns):
        yield "No means, and nothing tested: the columns have different units."
    for task, n in Counter(column.task for column in columns).items():
        if n > 1:
            yield f"{task} counts in {n} columns. Tests take them for the same items."
    if any(standing.rank is not None and standing.gaps for standing in standings):
        yield f"Models with gaps are ranked as well, {deciding.GAPS_COUNT[rules.rank_by]}."


def _lacking(
    board: Board, row: int, columns: Sequence[Column], values: npt.NDArray[np.float64], counted: Sequence[int]
) -> str | None:
    """Why a model can't be tested, as far as its results tell."""
    results = board.rows[row].results
    if any(result.imported is not None for result in results.values()):
        return IMPORTED
    if gaps := [place for place in counted if np.isnan(values[place])]:
        undefined = results.get(board.columns[gaps[0]])
        if undefined is None or len(gaps) > 1:
            return ranking.gap_on([columns[place].heading for place in gaps])
        return f"no value on {columns[gaps[0]].heading}: {undefined.scores[columns[gaps[0]].metric].reason}"
    without = [columns[place].heading for place in counted if results[board.columns[place]].items is None]
    return f"no items on {without[0]}" if without else None


def _records(board: Board, row: int, column: _Column, gathered: Gathered) -> ItemRecords:
    """The items of a model that a column is computed from, in the order of the others'."""
    found = evidence.gather(*gathered.places[id(board.rows[row].results[column.key])], only=column.metric.name)
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


def _pairs(systems: Sequence[ItemRecords], column: _Column) -> Pairs:
    n = len(systems) * (len(systems) - 1) // 2
    if _timed(column.metric):
        return Pairs(variances=(None,) * n, different=(0,) * n, freedom=1.0)
    subset = column.key.subset
    weighting = cast(many.Weighting, subset) if subset in evidence.MEANS else None
    return ranking.pairs_of(many.spread(systems, column.metric, weighting))


def _timed(metric: Metric) -> bool:
    """Whether it is of some items that were timed: that says how one run went, and items say nothing of the next."""
    return getattr(metric, "of_some_items", False)


def _told(error: EmbevalError, gathered: Gathered) -> str:
    """What was wrong, without the place on this machine where the results lie."""
    message = str(error).splitlines()[0]
    for root in {store.root for store, _ in gathered.places.values()}:
        message = message.replace(f"{root}/", "")
    return message


def _unknown(column: _Column, pairs: Pairs) -> list[str]:
    """That differences on a column can't be told, where that is so."""
    n = sum(each is None for each in pairs.variances)
    which = "All pairs" if n == len(pairs.variances) else plural(n, "pair")
    why = "too few items, or items that only one side has a value of"
    if _timed(column.metric):
        why = "times differ from run to run"
    return (
        [f"{which} of models can't be told apart, since nothing can be tested on {column.heading}: {why}."] if n else []
    )


def _shortened(remarks: list[str]) -> list[str]:
    more = len(remarks) - SHOWN
    return remarks if more <= 0 else [*remarks[:SHOWN], f"{plural(more, 'more remark')} of this kind."]
