"""A page for each model of a board: its comparison with the reference, test by test and item by item."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

from embeval.compare import changes, differences, html
from embeval.compare.differences import Names
from embeval.compare.pairs import Pair
from embeval.compare.report import CompareReport, TaskChanges
from embeval.core.specs import StatisticsOptions
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Column, Model, Snapshot
from embeval.workflows.boards import gathering
from embeval.workflows.boards.items import Sides, Texts

FOLDER = "reports"
"""Beside the board."""
LONGEST = 60
"""Characters of a label in the name of a file."""
RESAMPLES = 2_000
"""Fewer than a comparison on its own has: a board may have hundreds of these, and is built often."""
NOTE = (
    f"Of {RESAMPLES:,} resamples for each test. embeval compare makes more of them, and shows other metrics, slices "
    "and the documents that were found."
)


def linked(models: Sequence[Model], reference: int | None, definition: Definition) -> tuple[Model, ...]:
    """The models with the file of their report, where the board has reports and there is something to compare."""
    if reference is None or not definition.board.reports:
        return tuple(models)
    return tuple(
        replace(model, report=file_of(model.label) if _items_of_both(model, models[reference]) else None)
        if place != reference
        else model
        for place, model in enumerate(models)
    )


def _items_of_both(one: Model, other: Model) -> bool:
    return any(
        mine is not None and theirs is not None and not mine.imported and not theirs.imported
        for mine, theirs in zip(one.cells, other.cells, strict=True)
    )


def file_of(label: str) -> str:
    """Where the report of a model lies, from the board: of letters, digits and dashes, another for each label."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-")[:LONGEST].rstrip("-")
    return f"{FOLDER}/{name or 'model'}-{hashlib.sha256(label.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}.html"


def pages(made: Snapshot, definition: Definition) -> dict[str, bytes]:
    """File, relative to the board, -> page of each report. Results are read again. Raises as ``gathering.gather``."""
    wanted = [model for model in made.models if model.report is not None]
    if made.reference is None or not wanted:
        return {}
    sides, texts = Sides(gathering.gather(definition)), Texts(definition.board.texts, definition)
    reference = made.models[made.reference]
    return {
        str(model.report): html.html(_report(made, reference, model, sides, texts, definition)).encode()
        for model in wanted
    }


def _report(
    made: Snapshot, reference: Model, model: Model, sides: Sides, texts: Texts, definition: Definition
) -> CompareReport:
    statistics = StatisticsOptions(level=made.level, resamples=RESAMPLES)
    names = Names(reference.label, model.label)
    found: list[tuple[Column, Pair]] = []
    not_compared = []
    for place, column in enumerate(made.columns):
        pair = sides.pair(reference, model, place, column, statistics)
        if pair is not None and column.metric in pair.metric_names:
            found.append((column, pair))
        else:
            reason = None if pair is None else pair.other_tokens(column.metric)
            not_compared.append(f"{column.heading}: {reason or 'one of the two has no items of it that can be used'}.")
    compared = [each for column, pair in found for each in differences.compared(pair, (column.metric,), names)]
    return CompareReport(
        baseline=reference.label,
        candidates=(model.label,),
        comparisons=differences.adjusted(compared, "holm"),
        changes=tuple(
            each for column, pair in found if (each := _changes(column, pair, model.label, texts, definition))
        ),
        not_comparable=tuple(not_compared),
        notes=(NOTE,),
        level=made.level,
        correction="holm",
    )


def _changes(column: Column, pair: Pair, label: str, texts: Texts, definition: Definition) -> TaskChanges | None:
    made = changes.changes(pair, label, definition.board.items, column.metric)
    data = None if made is None else texts.of(pair.baseline)
    if made is None or data is None:
        return made
    lost, gained = (
        tuple(replace(each, text=data.queries.get(each.id)) for each in items) for items in (made.lost, made.gained)
    )
    return replace(made, lost=lost, gained=gained)
