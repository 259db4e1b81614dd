"""Which models of a board can be held against each other item by item, and how sure their differences are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from embeval import metrics
from embeval.compare import evidence
from embeval.core.records import ItemRecords
from embeval.errors import EmbevalError
from embeval.leaderboard import ranking
from embeval.leaderboard.board import Board
from embeval.leaderboard.snapshot import Column, Pairs
from embeval.stats import many
from embeval.workflows.boards.gathering import Gathered

MOST_TESTED = 50
"""Models whose pairs are tested: the best of those that have items."""


def tested(
    board: Board, columns: Sequence[Column], values: npt.NDArray[np.float64], gathered: Gathered
) -> tuple[list[int], list[Pairs]]:
    """(rows of the board that have items on every ranked column, for each column their pairs)."""
    counted = ranking.ranked(columns)
    there = [
        row
        for row in range(len(board.rows))
        if counted
        and not np.isnan(values[row, counted]).any()
        and all(board.rows[row].results[board.columns[place]].items is not None for place in counted)
    ]
    best = sorted(there, key=lambda row: -float(values[row, counted].mean()))[:MOST_TESTED]
    records: dict[int, list[ItemRecords]] = {}
    for row in best:
        try:
            records[row] = [
                evidence.gather(*gathered.places[id(board.rows[row].results[board.columns[place]])]).records
                for place in counted
            ]
        except EmbevalError:
            continue
    rows = list(records)
    if len(rows) < 2:
        return [], []
    pairs = [Pairs(variances=(), different=(), freedom=1.0)] * len(columns)
    for number, place in enumerate(counted):
        subset = columns[place].subset
        found = many.spread(
            [records[row][number] for row in rows],
            metrics.get(columns[place].metric),
            subset if subset in ("mean", "wmean") else None,  # type: ignore[arg-type]
        )
        pairs[place] = ranking.pairs_of(found)
    return rows, pairs
