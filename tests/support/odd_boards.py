"""Boards that are small, empty or odd in some way: what a page has to bear."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from embeval.core.facts import ModelFacts
from embeval.leaderboard import ranking
from embeval.leaderboard.snapshot import Cell, GateOutcome, Measures, Model, Point, Snapshot
from tests.support import board_pictures

LONG = "an-embedding-model-whose-name-never-ends-" * 5
TURNED = "نموذج التضمين العربي الكبير"
NAMES = (LONG, "x" * 200, f"{TURNED} {TURNED}", "模型" * 40, "e\u0301" * 60, "🙂" * 40)
GROUPS = ("__proto__", "constructor", "<b>bold</b>", TURNED, LONG, "-")
OUTCOMES: tuple[GateOutcome, ...] = tuple(
    GateOutcome(outcome=each, sentence="It would take 400 items more, of which a few have to be hard ones.")
    for each in ("in_use", "pass", "fail", "inconclusive", "error")
)


def odd() -> dict[str, Snapshot]:
    """Boards by what is odd in them."""
    made = board_pictures.rich()
    tasks = range(len(made.columns))
    return {
        "one model, one task, nothing known": of_columns(of_models(unknown(made), [0]), [0]),
        "no model with every task": without(made, lambda model, task: (model + task) % 8 == 0),
        "no value": without(made, lambda model, task: True),
        "undefined values": undefined(made),
        "both directions": directed(made, {1, 4}),
        "below zero, less is better": directed(scaled(made, lambda task: 1.0, -0.6), tasks),
        "huge and tiny": scaled(made, lambda task: 1e12 if task % 2 else 1e-9),
        "all equal": scaled(made, lambda task: 0.0, 0.5),
        "names, outcomes, revisions": judged(revised(named(made), 12, 30)),
    }


def ranked(made: Snapshot) -> Snapshot:
    """The board with the standings that its cells make, its rows in their order; nothing is tested with a gap."""
    values = np.array([[_number(cell) for cell in model.cells] for model in made.models], dtype=np.float64)
    rules = ranking.Rules(made.rank_by, made.gaps, made.level)
    counted = ranking.ranked(made.columns)
    whole = all(not np.isnan(values[row, list(counted)]).any() for row in made.tested)
    if not whole or not counted or ranking.unlike([made.columns[place] for place in counted]):
        made = replace(made, tested=(), pairs=())
    found = ranking.standings_of(values, made.columns, rules, made.tested, made.pairs)
    order = sorted(range(len(found)), key=lambda row: (found[row].rank is None, found[row].rank or 0, row))
    place_of = {row: place for place, row in enumerate(order)}
    return replace(
        made,
        models=tuple(replace(made.models[row], standing=found[row]) for row in order),
        tested=tuple(place_of[row] for row in made.tested),
        reference=None if made.reference is None else place_of[made.reference],
    )


def _number(cell: Cell | None) -> float:
    return np.nan if cell is None or cell.value is None else cell.value


def of_models(made: Snapshot, places: list[int]) -> Snapshot:
    """The board with these models, none of them tested."""
    reference = places.index(made.reference) if made.reference in places else None
    models = tuple(made.models[place] for place in places)
    return ranked(replace(made, models=models, tested=(), pairs=(), reference=reference))


def of_columns(made: Snapshot, places: list[int]) -> Snapshot:
    """The board with these columns."""
    kept = tuple(replace(model, cells=tuple(model.cells[place] for place in places), items=()) for model in made.models)
    history = tuple(replace(each, values=tuple(each.values[place] for place in places)) for each in made.history)
    pairs = tuple(made.pairs[place] for place in places) if made.pairs else ()
    columns = tuple(made.columns[place] for place in places)
    return ranked(replace(made, columns=columns, models=kept, pairs=pairs, history=history))


def unknown(made: Snapshot) -> Snapshot:
    """The board without all that may be unknown."""
    models = tuple(
        replace(
            model, facts=ModelFacts(), measures=Measures(), retention=None, gate=None, items=(), prompts={}, date=None
        )
        for model in made.models
    )
    return replace(made, models=models, reference=None, production=None, history=(), date=None, description="")


def without(made: Snapshot, lacks: Callable[[int, int], bool]) -> Snapshot:
    """The board with a gap wherever ``lacks`` says so of a model's and a column's place."""
    return _changed(made, lambda cell, model, task: None if lacks(model, task) else cell)


def undefined(made: Snapshot) -> Snapshot:
    """The board with values that aren't defined, one column of nothing else."""

    def change(cell: Cell, model: int, task: int) -> Cell:
        lacks = task == 1 or (model * 3 + task) % 4 == 0
        return replace(cell, value=None, low=None, high=None, reason="constant_input") if lacks else cell

    return _changed(made, change)


def scaled(made: Snapshot, factor: Callable[[int], float], added: float = 0.0) -> Snapshot:
    """The board with other values, and their intervals; ``factor`` is that of a column's place."""

    def other(value: float | None, task: int) -> float | None:
        return None if value is None else value * factor(task) + added

    def change(cell: Cell, model: int, task: int) -> Cell:
        value, low, high = (other(each, task) for each in (cell.value, cell.low, cell.high))
        return replace(cell, value=value, low=low, high=high)

    return _changed(made, change)


def _changed(made: Snapshot, change: Callable[[Cell, int, int], Cell | None]) -> Snapshot:
    def cells(place: int, model: Model) -> tuple[Cell | None, ...]:
        return tuple(cell and change(cell, place, task) for task, cell in enumerate(model.cells))

    return ranked(
        replace(made, models=tuple(replace(each, cells=cells(place, each)) for place, each in enumerate(made.models)))
    )


def directed(made: Snapshot, lower: Collection[int]) -> Snapshot:
    """The board with less being better in these columns."""
    columns = tuple(replace(each, higher_is_better=place not in lower) for place, each in enumerate(made.columns))
    return ranked(replace(made, columns=columns))


def named(made: Snapshot) -> Snapshot:
    """The board with names, headings and groups that no layout likes."""
    models = tuple(
        replace(model, label=label, spec=replace(model.spec, name=f"org/{label}"))
        for model, label in zip(made.models, (*NAMES, "a", "b"), strict=True)
    )
    columns = tuple(
        replace(column, heading=f"{(*NAMES, 'a', 'b')[place]}{place}", group=GROUPS[place % len(GROUPS)])
        for place, column in enumerate(made.columns)
    )
    return ranked(replace(made, title=LONG, models=models, columns=columns, production=NAMES[0], remarks=("y" * 300,)))


def judged(made: Snapshot) -> Snapshot:
    """The board with every outcome of a gate."""
    models = tuple(
        replace(each, gate=OUTCOMES[place % len(OUTCOMES)], report=f"reports/a report #{place}?.html")
        for place, each in enumerate(made.models)
    )
    return replace(made, models=models)


def revised(made: Snapshot, n_models: int, n: int) -> Snapshot:
    """The board with so many revisions of so many models."""
    points = tuple(
        Point(
            model=f"line {line}",
            label=f"line {line} @ {number}",
            revision=f"sha256:{1000 * line + number:064x}",
            date=f"2025-{number % 12 + 1:02d}-{number // 12 + 1:02d}T00:00:00+00:00",
            values=tuple(0.5 + line / 50 + number / 1000 for _ in made.columns),
            mean=0.5 + line / 50 + number / 1000,
        )
        for line in range(n_models)
        for number in range(n)
    )
    return replace(made, history=points)
