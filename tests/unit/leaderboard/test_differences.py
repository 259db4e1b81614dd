"""The first thing in which two built boards differ, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from embeval.core.facts import ModelFacts
from embeval.leaderboard.differences import first
from embeval.leaderboard.snapshot import GateOutcome, Item, ItemList, Model, Snapshot
from tests.support.boards import synthetic

BOARD = synthetic(3, 2, n_tested=3)
BEST = BOARD.models[0]


def with_best(**fields: Any) -> Snapshot:
    """The board with something else said of its best model."""
    return replace(BOARD, models=(replace(BEST, **fields), *BOARD.models[1:]))


def with_cell(**fields: Any) -> Snapshot:
    """The board with something else said of the first value of its best model."""
    return with_best(cells=(replace(BEST.cells[0], **fields), BEST.cells[1]))  # type: ignore[type-var]


def test_equal_boards() -> None:
    """Nothing differs."""
    assert first(BOARD, synthetic(3, 2, n_tested=3)) is None


CELL = BEST.cells[0]
assert CELL is not None
NAME = f"{BEST.label} on Task00 (ndcg_at_10)"
SWAPPED: tuple[Model, ...] = (BOARD.models[1], BOARD.models[0], BOARD.models[2])
ITEMS = ItemList(column=0, n_lost=1, n_gained=0, lost=(Item(id="q", reference=1.0, value=0.0),))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (replace(BOARD, title="Other"), "title: '3 models, 2 tasks' there, 'Other' now"),
        (replace(BOARD, rank_by="borda"), "rank by: 'mean_task' there, 'borda' now"),
        (replace(BOARD, date="2026-01-02"), "date: None there, '2026-01-02' now"),
        (replace(with_cell(value=0.5), date="2026-01-02"), f"{NAME}: {CELL.value:.4f} there, 0.5000 now"),
        (
            replace(BOARD, columns=(replace(BOARD.columns[0], protocol="1234abcd", n_items=7), BOARD.columns[1])),
            "the column Task00 (ndcg_at_10): of other data or options than there",
        ),
        (replace(BOARD, columns=BOARD.columns[:1]), "the column Task01 (cosine_spearman) is there and has no result"),
        (
            replace(BOARD, columns=(replace(BOARD.columns[0], weight=2.0), BOARD.columns[1])),
            "the column Task00 (ndcg_at_10): weight: 1.0 there, 2.0 now",
        ),
        (replace(BOARD, models=BOARD.models[:2]), f"the model {BOARD.models[2].label} is there and has no result now"),
        (with_best(label="new"), "the model new is not there yet"),
        (replace(BOARD, models=SWAPPED), f"another order of models: {BEST.label} there, {SWAPPED[0].label} now"),
        (with_cell(value=0.5), f"{NAME}: {CELL.value:.4f} there, 0.5000 now"),
        (with_cell(value=None), f"{NAME}: {CELL.value:.4f} there, — now"),
        (with_cell(n_items=7), f"{NAME}: n items: 500 there, 7 now"),
        (with_best(cells=(None, BEST.cells[1])), f"{NAME}: {CELL.value:.4f} there, — now"),
        (with_best(standing=replace(BEST.standing, letters="z")), f"{BEST.label}, standing: letters: "),
        (with_best(facts=ModelFacts(parameters=3)), f"{BEST.label}, facts: parameters: "),
        (with_best(gate=GateOutcome(outcome="pass", sentence="Fine.")), f"{BEST.label}, gate: there in one only"),
        (with_best(date="2026-01-02"), f"{BEST.label}: date: "),
        (with_best(items=(ITEMS,)), f"{BEST.label}: other items lost or gained"),
        (replace(BOARD, remarks=("x",)), "now among the remarks: x"),
        (replace(BOARD, failures=("x",)), "now among the failures: x"),
        (replace(BOARD, pairs=BOARD.pairs[::-1]), "pairs differ"),
        (replace(BOARD, reference=1), "another reference"),
    ],
)
def test_what_differs(changed: Snapshot, said: str) -> None:
    """The one thing that was changed, with both values where they are short."""
    told = first(BOARD, changed)
    assert told is not None
    assert told.startswith(said)


def test_texts_that_are_not_at_hand() -> None:
    """A page with texts was built where the data is, and is held against results alone, as in CI."""
    shown = with_best(items=(replace(ITEMS, lost=(replace(ITEMS.lost[0], text="how to pay"),)),))
    assert first(shown, with_best(items=(ITEMS,))) == f"{BEST.label}: the texts of its items are not at hand here"
    other = with_best(items=(replace(ITEMS, lost=(replace(ITEMS.lost[0], text="how to run"),)),))
    assert first(shown, other) == f"{BEST.label}: other texts of its items"
    assert first(replace(BOARD, remarks=("x",)), BOARD) == "remarks differ"
