"""What a board answers first: by hand, for each way that ranks may lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from embeval.leaderboard.answer import answer
from embeval.leaderboard.snapshot import Cell, GateOutcome, Model, Snapshot, Standing
from tests.support import boards, shown

UNTESTED = Standing(rank=1, untested="imported: no items")
ALIKE = "may be the best: the data tells none from another (95 % confidence)."
OPEN = "may each be the best, and the data can't tell which"
Ranks = Sequence[tuple[int, int, int] | Standing]


def board(ranks: Ranks, **fields: object) -> Snapshot:
    """Models a, b, … with (rank, best, worst rank) or a standing."""
    models: list[Model] = []
    for name, rank in zip("abcdefgh", ranks, strict=False):
        standing = rank if isinstance(rank, Standing) else Standing(rank=rank[0], rank_low=rank[1], rank_high=rank[2])
        models.append(shown.model(name, (), standing))
    return Snapshot(title="t", columns=(), models=tuple(models), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([(1, 1, 1)], ""),
        ([(1, 1, 1), (2, 2, 3), (3, 2, 3)], "a is the best (95 % confidence)."),
        (
            [(1, 1, 2), (2, 1, 2), (3, 3, 3)],
            f"a and b {OPEN}; the other one is not (95 % confidence).",
        ),
        (
            [(1, 1, 6)] * 6 + [(7, 7, 8), (8, 7, 8)],
            f"a, b, c, d and 2 more models {OPEN}; the other 2 are not (95 % confidence).",
        ),
        ([(1, 1, 3)] * 3, f"Each of the 3 models {ALIKE}"),
        (
            [(1, 1, 2), (2, 1, 2), Standing()],
            f"Each of the 2 ranked models {ALIKE} c is not ranked.",
        ),
        (
            [UNTESTED, (2, 1, 3), (3, 1, 3)],
            f"a is first, untested. Of the 2 models that could be tested, b and c {OPEN} (95 % confidence).",
        ),
        (
            [(1, 1, 2), (2, 2, 3), replace(UNTESTED, rank=3)],
            "Of the 2 models that could be tested, a is the best (95 % confidence).",
        ),
        (
            [UNTESTED, replace(UNTESTED, rank=2)],
            "a is first; whether by more than chance is not known (imported: no items).",
        ),
        ([Standing()] * 2, "No model is ranked."),
    ],
)  # fmt: skip
def test_the_best_and_how_sure_that_is(ranks: Ranks, said: str) -> None:
    """A model is the best where it alone may have the first rank; without a test nothing is claimed."""
    assert answer(board(ranks)) == said


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (["in_use", None], ""),
        (["in_use", "pass"], " The gate lets b replace a."),
        (["in_use", "error"], " The gate lets none replace a."),
    ],
)
def test_what_the_gate_says(outcomes: list[str | None], said: str) -> None:
    """Only where it decides on somebody."""
    made = board([(1, 1, 1), (2, 2, 2)], production="a")
    judged = [
        replace(model, gate=None if outcome is None else GateOutcome(outcome=outcome, sentence="."))  # type: ignore[arg-type]
        for model, outcome in zip(made.models, outcomes, strict=True)
    ]
    assert answer(replace(made, models=tuple(judged))) == "a is the best (95 % confidence)." + said


def test_texts_are_written_as_they_are_asked_for() -> None:
    """Labels, and reasons that name tasks, for markup."""
    made = board([replace(UNTESTED, untested="a gap on <b>"), replace(UNTESTED, rank=2)])
    assert answer(made, str.upper, lambda text: text.replace("<", "&lt;")) == (
        "A is first; whether by more than chance is not known (a gap on &lt;b>)."
    )


def test_what_unranked_models_lack() -> None:
    """The task where it is one, their number where all lack the same, and columns that don't count aside."""
    value = Cell(value=0.5)
    columns = tuple(boards.column(name, "G", "ndcg_at_10") for name in ("docs", "pairs"))
    columns += (boards.column("texts", "G", "perplexity", refused="of different tokenisers"),)

    def said(*cells: tuple[Cell | None, ...]) -> str:
        models = [
            shown.model("a", (value,) * 3, Standing(rank=1, rank_low=1, rank_high=1)),
            *(shown.model(f"m{place}", each, Standing()) for place, each in enumerate(cells)),
        ]
        return answer(Snapshot(title="t", columns=columns, models=tuple(models)))

    best = "a is the best (95 % confidence)."
    assert said((value, None, None)) == f"{best} m0 is not ranked: no value on pairs."
    undefined = Cell(value=None, reason="constant_input")
    assert (
        said((undefined, None, None), (None, None, value)) == f"{best} m0 and m1 are not ranked: no value on 2 tasks."
    )
    assert said((value, None, None), (None, value, None)) == f"{best} m0 and m1 are not ranked: no value on some task."
    lacking = tuple(shown.model(name, (value, None, None), Standing()) for name in "ab")
    nobody = answer(Snapshot(title="t", columns=columns, models=lacking))
    assert nobody == "No model is ranked: each lacks a value on some task."
