"""Built boards in the terminal, and what became of their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embeval.cli import _state, _tables
from embeval.core import figures
from embeval.core.words import plural
from embeval.leaderboard.answer import answer

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType

    from embeval.leaderboard.snapshot import Model, Snapshot, Standing
    from embeval.workflows.boards.writing import Checked

MOST_TASKS = 6
"""Tasks that have columns of their own; of more, their groups have."""
BY = {"mean_task": "Mean", "mean_type": "Mean of groups", "borda": "Borda"}
"""Heading of what a board is ranked by."""


def table(made: Snapshot, console: Console) -> RenderableType:
    """Rank with its interval, letters, what it is ranked by, and tasks or groups; what there is no room for goes."""
    tasks = [column.heading for column in made.columns] if len(made.columns) <= MOST_TASKS else []
    groups = list(dict.fromkeys(column.group for column in made.columns if column.refused is None))
    parts = tasks or groups
    # Headings may be alike, such as a task that is called as its group; rows go by place.
    headings = ["Rank", "Ties", "Model", BY[made.rank_by], *parts, "Gaps"]
    rows = [
        [rank_text(model.standing), model.standing.letters or "", model.label, _by(made, model)]
        + [_value(made, model, place) if tasks else figures.figure(model.standing.groups.get(name))
           for place, name in enumerate(parts)]
        + [str(model.standing.gaps or "")]
        for model in made.models
    ]  # fmt: skip
    spare = [*([] if any(model.standing.gaps for model in made.models) else ["Gaps"]), *reversed(parts)]
    return _tables.fitting(headings, rows, console, right=("Rank", BY[made.rank_by], *parts, "Gaps"), spare=spare)


def rank_text(standing: Standing) -> str:
    """``3 (2–4)``, ``3`` without a test, ``—`` without a rank."""
    if standing.rank is None:
        return "—"
    if standing.rank_low is None or standing.rank_high is None:
        return str(standing.rank)
    return f"{standing.rank} ({standing.rank_low}–{standing.rank_high})"


def _by(made: Snapshot, model: Model) -> str:
    standing = model.standing
    if made.rank_by == "borda":
        return "—" if standing.borda is None else str(standing.borda)
    return figures.figure(standing.mean_type if made.rank_by == "mean_type" else standing.mean_task)


def _value(made: Snapshot, model: Model, place: int) -> str:
    cell = model.cells[place]
    return figures.figure(None if cell is None else cell.value)


def remarks(made: Snapshot) -> list[str]:
    """What a reader of the table should know, as sentences."""
    found = [said] if (said := answer(made)) else []
    if made.tested:
        level = figures.percent(made.level)
        found.append(f"Behind a rank stands its {level} interval; models that share a letter can't be told apart.")
    found += made.remarks
    return found


def checked(path: Path, found: Checked) -> None:
    """What is stale, a line for each file."""
    for stale in found.stale:
        _state.out_text(f"{stale.path}: stale: {stale.why}.\n")
    if not found.stale:
        _state.out_text(f"{path.parent}: fresh.\n")
    if not found.from_results:
        _state.note(f"{path.parent}: the results aren't here; the pages were only held against board.json.")


def summary(made: Snapshot) -> str:
    """What was built, and what it says."""
    said = answer(made)
    size = f"{made.title}: {plural(len(made.models), 'model')}, {plural(len(made.columns), 'column')}."
    return f"{size} {said}" if said else size
