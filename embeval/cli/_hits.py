"""Hits of a search, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from embeval.cli import _state, _tables
from embeval.cli._texts import about, plain
from embeval.core.words import plural
from embeval.workflows.searching import Answer

WIDEST = 140
"""Columns beyond which lines of text are hard to read."""
LINES = 2
"""Lines that an excerpt fills."""
ID_SHARE = 4
"""The column of ids takes at most one part in so many."""
NAME = 12
"""Columns for the name of another system; a longer one is folded."""
GAP = 3
"""Columns between two of a table."""


def show(answers: Sequence[Answer]) -> None:
    """Prints the hits of each system; beside each its rank in the others."""
    width = min(_state.console().width, WIDEST)
    for number, answer in enumerate(answers):
        _state.out(Text(f"{plain(answer.system)}: {_found(answer)}", style="bold"))
        if not answer.hits:
            continue
        others = [other for other in range(len(answers)) if other != number]
        headings = ["Rank", *(f"in {plain(answers[other].system)}" for other in others), "Score", "Document", "Text"]
        made = _tables.table(headings, right=range(len(others) + 2))
        made.width = width
        for column in made.columns[1 : len(others) + 1]:
            column.no_wrap, column.overflow, column.max_width = False, "fold", NAME
        ids = made.columns[-2]
        ids.max_width = max(width // ID_SHARE, 8)
        scores = [f"{hit.score:.4f}" for hit in answer.hits]
        taken = [len("Rank"), max(map(len, [*scores, "Score"])), *(min(len(each), NAME) for each in headings[1:-3])]
        taken.append(min(max(len(plain(hit.id)) for hit in answer.hits), ids.max_width))
        room = width - sum(taken) - GAP * len(headings)
        for hit, score in zip(answer.hits, scores, strict=True):
            text = about(hit.text, answer.query, max(room, 10) * LINES)
            if hit.title:
                text = Text("\n").join([about(hit.title, answer.query, max(room, 10), style="cyan"), text])
            elsewhere = (answers[other].ranks.get(hit.id) for other in others)
            made.add_row(
                str(hit.rank),
                *("–" if rank is None else str(rank) for rank in elsewhere),
                score,
                Text(plain(hit.id)),
                text,
            )
        _state.out(made)


def _found(answer: Answer) -> str:
    spent = f"{answer.seconds * 1000:.0f} ms" if answer.seconds < 1 else f"{answer.seconds:.1f} s"
    return f"{plural(len(answer.hits), 'hit')} in {spent}" if answer.hits else f"nothing found in {spent}"
