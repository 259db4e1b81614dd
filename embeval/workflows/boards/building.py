"""From the results of a board to all that its pages show."""

from __future__ import annotations

import numpy as np

from embeval.core import collector
from embeval.core.paths import readable
from embeval.core.result import MetricValue, Result
from embeval.core.words import plural
from embeval.errors import StoreError
from embeval.leaderboard import ranking
from embeval.leaderboard.board import Board, ColumnKey, Row, build
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Cell, Measures, Model, Snapshot, Standing
from embeval.workflows.boards import (
    choosing,
    columns,
    gathering,
    history,
    items,
    measuring,
    reports,
    retention,
    testing,
    verdicts,
)
from embeval.workflows.boards.gathering import Gathered

UNRANKED = 10**9
"""Where models without a rank are put."""
SHOWN = 3
"""Files that can't be read, and are named."""


def snapshot(definition: Definition) -> Snapshot:
    """The board as its results make it.

    Raises ``ConfigError`` for a name in the file that fits nothing, and ``StoreError`` where there is nothing to show.
    """
    with collector.paused():
        gathered = gathering.gather(definition)
        tasks = choosing.Tasks(definition, gathered.results)
        table = build(gathered.results, older=definition.board.older, shown=tasks if definition.shown else None)
    board, shown = columns.arranged(table, tasks)
    if not board.rows:
        raise StoreError(f"{definition.path}: {_nothing(board, gathered)}")
    values = np.array([[_value(row.cells.get(key)) for key in board.columns] for row in board.rows])
    rules = ranking.Rules(definition.board.rank_by, definition.board.gaps, definition.board.level)
    rows, pairs, untested, of_tests = testing.tested(board, shown, values, rules, gathered)
    standings = ranking.standings_of(values, shown, rules, rows, pairs, untested)
    order = sorted(range(len(board.rows)), key=lambda row: (standings[row].rank or UNRANKED, board.rows[row].label))
    place_of = {row: place for place, row in enumerate(order)}
    taken = measuring.measures(board, definition)
    models = tuple(_model(board, board.rows[row], standings[row], taken[row], gathered) for row in order)
    reference = choosing.reference(definition, models)
    production = choosing.production(definition, models, gathered.tags)
    models = retention.beside(models, reference, shown, rules.rank_by)
    models, judged = verdicts.judged(models, production, definition, gathered)
    models, of_items = items.with_items(models, shown, reference, definition, gathered)
    models = reports.linked(models, reference, definition)
    remarks = (
        *board.of_values(),
        *columns.remarks(board, tasks),
        *columns.weighted(shown),
        *columns.published(shown, gathered.results),
        *measuring.remarks(models),
        *judged,
        *gathered.notes,
        *of_items,
        *of_tests,
        *_left_out(gathered),
    )
    return Snapshot(
        title=definition.title,
        description=definition.board.description,
        rank_by=rules.rank_by,
        gaps=rules.gaps,
        level=rules.level,
        rag_k=definition.board.rag_k,
        columns=tuple(shown),
        models=models,
        tested=tuple(place_of[row] for row in rows),
        pairs=tuple(pairs),
        reference=reference,
        production=production,
        history=history.points(gathered.everything, board.columns, shown),
        remarks=tuple(map(readable, remarks)),
        failures=board.failures,
        date=max((each.started_at for each in gathered.results), default="") or None,
        outputs=definition.board.outputs,
    )


def _nothing(board: Board, gathered: Gathered) -> str:
    if gathered.broken:
        return f"nothing to show. {gathered.broken[0]}"
    failed = f" Failed: {board.failures[0]}" if board.failures else ""
    return f"nothing to show: no result of these models stands for a task.{failed}"


def _left_out(gathered: Gathered) -> list[str]:
    """What couldn't be read, as sentences."""
    found = [f"Left out: {message.splitlines()[0]}" for message in gathered.broken[:SHOWN]]
    if (n := len(gathered.broken) - SHOWN) > 0:
        found.append(f"Left out as well: {plural(n, 'more file')} that can't be used.")
    return found


def _value(cell: MetricValue | None) -> float:
    return float("nan") if cell is None or cell.value is None else cell.value


def _model(board: Board, row: Row, standing: Standing, taken: Measures, gathered: Gathered) -> Model:
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
        measures=taken,
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
