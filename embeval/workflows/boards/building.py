"""From the results of a board to all that its pages show."""

from __future__ import annotations

import numpy as np

from embeval.core.result import MetricValue, Result
from embeval.leaderboard import ranking
from embeval.leaderboard.board import Board, ColumnKey, Row, build, higher_is_better
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Cell, Column, Model, Snapshot, Standing
from embeval.workflows.boards import gathering, items, measuring, testing
from embeval.workflows.boards.gathering import Gathered

UNRANKED = 10**9
"""Where models without a rank are put."""
TYPES = {
    "sts": "STS",
    "retrieval": "Retrieval",
    "reranking": "Reranking",
    "classification": "Classification",
    "clustering": "Clustering",
    "pair_classification": "PairClassification",
    "bitext": "BitextMining",
    "summarization": "Summarization",
}
"""Types of tasks of one's own in mteb's words."""


def snapshot(definition: Definition) -> Snapshot:
    """The board as its results make it. Raises ``ConfigError`` and ``StoreError``."""
    gathered = gathering.gather(definition)
    board = build(gathered.results, older=definition.board.older)
    columns = [_column(board, key) for key in board.columns]
    values = np.array([[_value(row.cells.get(key)) for key in board.columns] for row in board.rows])
    values = values.reshape(len(board.rows), len(columns))
    rules = ranking.Rules(definition.board.rank_by, definition.board.gaps, definition.board.level)
    rows, pairs, untested, remarks = testing.tested(board, columns, values, rules, gathered)
    standings = ranking.standings_of(values, columns, rules, rows, pairs, untested)
    order = sorted(range(len(board.rows)), key=lambda row: (standings[row].rank or UNRANKED, board.rows[row].label))
    place_of = {row: place for place, row in enumerate(order)}
    models = tuple(_model(board, board.rows[row], standings[row], definition, gathered) for row in order)
    models = measuring.beside(models, definition, gathered)
    models = items.with_items(models, definition, gathered)
    return Snapshot(
        title=definition.title,
        description=definition.board.description,
        rank_by=rules.rank_by,
        gaps=rules.gaps,
        level=rules.level,
        rag_k=definition.board.rag_k,
        columns=tuple(columns),
        models=models,
        tested=tuple(place_of[row] for row in rows),
        pairs=tuple(pairs),
        remarks=(*board.notes(more="'older: true' in board.yaml shows everything"), *remarks),
        failures=board.failures,
        date=max((each.started_at for each in gathered.results), default="") or None,
    )


def _value(cell: MetricValue | None) -> float:
    return float("nan") if cell is None or cell.value is None else cell.value


def _column(board: Board, key: ColumnKey) -> Column:
    results = [row.results[key] for row in board.rows if key in row.results]
    first = results[0]
    kind = first.task.category or TYPES.get(first.task.type, first.task.type)
    return Column(
        task=key.task,
        heading=board.headings[key],
        type=kind,
        group=kind,
        split=key.split,
        subset=key.subset,
        metric=key.metric,
        metric_version=key.metric_version,
        protocol=key.protocol,
        higher_is_better=higher_is_better(key.metric),
        refused=board.refused.get(key),
        n_items=max((each.scores[key.metric].n_items for each in results), default=0) or None,
    )


def _model(board: Board, row: Row, standing: Standing, definition: Definition, gathered: Gathered) -> Model:
    results = list(row.results.values())
    first = results[0]
    return Model(
        label=row.label,
        spec=first.model,
        digest=row.key.digest,
        prompts=first.signature.prompts,
        facts=measuring.facts(results),
        imported=first.imported,
        date=max((each.started_at for each in results), default="") or None,
        cells=tuple(_cell(row.results.get(key), key, gathered) for key in board.columns),
        standing=standing,
        measures=measuring.measures(results, definition),
    )


def _cell(result: Result | None, key: ColumnKey, gathered: Gathered) -> Cell | None:
    if result is None:
        return None
    found = result.scores[key.metric]
    place = gathered.places.get(id(result))
    return Cell(
        value=found.value,
        low=found.ci_low,
        high=found.ci_high,
        n_items=found.n_items,
        rough=found.approximate,
        reason=found.reason,
        trained_on=result.trained_on,
        imported=result.imported is not None,
        result=None if place is None else place[1].id,
    )
