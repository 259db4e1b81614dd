"""Boards in a temporary folder, with results made from given rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from embeval.leaderboard import definition
from embeval.leaderboard.definition import Definition
from embeval.store.results import ResultStore
from tests.support.stored import put

NDCG = "ndcg_at_10"
RECALL = "recall_at_10"
GOOD, FAIR, POOR = [1.0, 0.9, 0.8, 0.7] * 5, [0.8, 0.7, 0.6, 0.9] * 5, [0.1, 0.3, 0.2, 0.2] * 5
"""Values of twenty queries, with means of 0.85, 0.75 and 0.2."""


def board(root: Path, text: str, name: str = "mine") -> Definition:
    """A board of that file."""
    path = root / "leaderboards" / name / definition.FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return definition.load(path)


def results(root: Path, values: Mapping[tuple[str, str], Sequence[float]], folder: str = "results") -> ResultStore:
    """A store that holds, for (model, task), these values of its queries by ndcg and half of them by recall."""
    store = ResultStore(root / folder)
    for (model, task), of_queries in values.items():
        put(store, {NDCG: of_queries, RECALL: [each / 2 for each in of_queries]}, model=model, task=task)
    return store


def three(root: Path) -> ResultStore:
    """Three models on two tasks, in the folder that a board's file reaches as ``../../results``."""
    return results(
        root,
        {
            ("org/good", "docs"): GOOD,
            ("org/good", "faq"): FAIR,
            ("org/fair", "docs"): FAIR,
            ("org/fair", "faq"): FAIR,
            ("org/poor", "docs"): POOR,
            ("org/poor", "faq"): POOR,
        },
    )
