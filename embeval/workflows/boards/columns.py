"""The columns of a board: in the order of its file, with the groups, weights and headings that it gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from embeval.core.result import Result
from embeval.core.signature import RESERVED_SUBSETS
from embeval.core.words import plural
from embeval.leaderboard.board import Board, ColumnKey, higher_is_better
from embeval.leaderboard.definition import ShownTask
from embeval.leaderboard.snapshot import Column
from embeval.workflows.boards.choosing import MTEB, Tasks

TYPES = {
    "sts": "STS",
    "retrieval": "Retrieval",
    "reranking": "Reranking",
    "classification": "Classification",
    "clustering": "Clustering",
    "pair_classification": "PairClassification",
    "bitext": "BitextMining",
    "pseudo_likelihood": "PseudoLikelihood",
    "summarization": "Summarization",
    "replaced_tokens": "ReplacedTokens",
    "masked_lm": "MaskedTokens",
    "minimal_pairs": "MinimalPairs",
}
"""Types of tasks of one's own in mteb's words, or in words like these."""
SHOWN = 3
"""Tasks of which it is told that they aren't those of published values."""


def arranged(board: Board, tasks: Tasks) -> tuple[Board, list[Column]]:
    """(the table with its columns in the order of the file, these columns as they are shown)."""
    entries = [entry_of(key, tasks) for key in board.columns]
    order = sorted(range(len(entries)), key=lambda place: (_order(board.columns[place], tasks), place))
    board = replace(board, columns=tuple(board.columns[place] for place in order))
    columns = [_column(board, key, entries[place]) for key, place in zip(board.columns, order, strict=True)]
    return board, _unlike(columns)


def entry_of(key: ColumnKey, tasks: Tasks) -> ShownTask:
    """What the file says of a column; one of which it says nothing is shown as it comes."""
    place = tasks.place_of.get((key.task, key.split, key.subset, key.metric))
    return ShownTask(task=key.task) if place is None else tasks.definition.shown[place]


def _order(key: ColumnKey, tasks: Tasks) -> int:
    return tasks.place_of.get((key.task, key.split, key.subset, key.metric), 0)


def _column(board: Board, key: ColumnKey, entry: ShownTask) -> Column:
    results = [row.results[key] for row in board.rows if key in row.results]
    first = results[0]
    kind = first.task.category or TYPES.get(first.task.type, first.task.type)
    heading = board.headings[key]
    return Column(
        task=key.task,
        heading=heading if entry.heading is None else entry.heading + heading.removeprefix(key.task),
        type=kind,
        group=entry.group or kind,
        split=key.split,
        subset=key.subset,
        metric=key.metric,
        metric_version=key.metric_version,
        protocol=key.protocol,
        higher_is_better=higher_is_better(key.metric),
        weight=entry.weight,
        refused=board.refused.get(key),
        n_items=max((each.scores[key.metric].n_items for each in results), default=0) or None,
    )


def _unlike(columns: Sequence[Column]) -> list[Column]:
    """The columns with the sub-set and the metric in headings that would be alike without them."""
    named = [
        replace(each, heading=f"{each.heading} [{each.subset}]")
        if each.subset not in RESERVED_SUBSETS and _alike(each, columns, "subset")
        else each
        for each in columns
    ]
    return [
        replace(each, heading=f"{each.heading} {each.metric}") if _alike(each, named, "metric") else each
        for each in named
    ]


def _alike(column: Column, columns: Sequence[Column], part: str) -> bool:
    alike = [other for other in columns if other.heading == column.heading]
    return any(getattr(other, part) != getattr(column, part) for other in alike)


def remarks(board: Board, tasks: Tasks) -> list[str]:
    """What a reader should know of columns that aren't there, as sentences."""
    found = []
    if tasks.unfinished:
        found.append(f"Without a column, since every run of them failed: {', '.join(tasks.unfinished)}.")
    if n := board.hidden_columns:
        older = plural(n, "older column is", "older columns are")
        found.append(f"{older} left out: newer results of the same task are of other data; 'older: true' shows all.")
    return found


def weighted(columns: Sequence[Column]) -> list[str]:
    """What tasks count in means where they don't count the same, as a sentence."""
    counted = [each for each in columns if each.refused is None]
    if len({each.weight for each in counted}) < 2:
        return []
    told = [f"{each.heading} {each.weight:g}" for each in counted if each.weight != 1.0]
    others = "" if len(told) == len(counted) else "; any other 1"
    return [f"What tasks count in means: {', '.join(told)}{others}."]


def published(columns: Sequence[Column], results: Sequence[Result]) -> list[str]:
    """Why published values don't stand beside one's own where that may surprise, as sentences.

    They are of tasks run by mteb's rules; the catalogue has some of the same names with rules of its own.
    """
    shown = {each.task for each in columns}
    theirs = {each.task.name for each in results if each.imported is not None}
    own = {each.task.name for each in results if each.imported is None}
    found = [
        f"Published values are of {name}, which is not {name.removeprefix(MTEB)} and shares no column with it: "
        f"'embeval run -t {name}' measures what they measured."
        for name in sorted(theirs - own)
        if name.startswith(MTEB) and name.removeprefix(MTEB) in shown
    ]
    if theirs and not theirs & shown and not found:
        found.append("No published value is shown: the board shows none of their tasks.")
    return found if len(found) <= SHOWN else [*found[:SHOWN], f"So it is with {len(found) - SHOWN} more tasks."]
