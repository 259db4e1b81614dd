"""Which model of a board to take, and how sure that is: what a reader wants to know first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embeval.core import figures
from embeval.core.words import are, plural
from embeval.leaderboard import ranking
from embeval.leaderboard.snapshot import Model, Snapshot

NAMED = 4
"""Models that are named; of more, how many there are."""
Written = Callable[[str], str]


def answer(made: Snapshot, label: Written = str, text: Written = str) -> str:
    """A few sentences; empty where there is nothing to choose among.

    ``label`` writes labels of models and ``text`` other texts from data, where they are to become markup.
    """
    if len(made.models) < 2:
        return ""
    ranked = [model for model in made.models if model.standing.rank is not None]
    found = [_best(made, ranked, label, text)] if ranked else []
    found += [_unranked(made, label, text), _allowed(made, label)]
    return " ".join(each for each in found if each)


def _unranked(made: Snapshot, label: Written, text: Written) -> str:
    models = [model for model in made.models if model.standing.rank is None]
    if not models:
        return ""
    missing = {tuple(_missing(made, model)) for model in models}
    why = ""
    if all(missing):
        same = missing.pop() if len(missing) == 1 else ()
        why = f": no value on {text(same[0]) if len(same) == 1 else f'{len(same)} tasks' if same else 'some task'}"
    if len(models) == len(made.models) and ranking.unlike([each for each in made.columns if each.refused is None]):
        return "No model is ranked: the columns have different units or directions (rank_by: borda ranks them)."
    if len(models) == len(made.models):
        return f"No model is ranked{why and ': each lacks a value on some task'}."
    return f"{_joined(models, label)} {are(len(models))} not ranked{why}."


def _missing(made: Snapshot, model: Model) -> list[str]:
    """Headings of the columns that count and that it has no value in."""
    return [
        column.heading
        for column, cell in zip(made.columns, model.cells, strict=True)
        if column.refused is None and (cell is None or cell.value is None)
    ]


def _best(made: Snapshot, ranked: Sequence[Model], label: Written, text: Written) -> str:
    first = [model for model in ranked if model.standing.rank == 1]
    names = f"{_joined(first, label)} {are(len(first))} first"
    if all(model.standing.rank_low is None for model in made.models):
        return (
            f"{names}; whether by more than chance is not known ({text(first[0].standing.untested or 'not tested')})."
        )
    untested = f"{names}, untested. " if first[0].standing.rank_low is None else ""
    return untested + _tested(made, len(ranked), label)


def _tested(made: Snapshot, n_ranked: int, label: Written) -> str:
    tested = [model for model in made.models if model.standing.rank_low is not None]
    leaders = [model for model in tested if model.standing.rank_low == 1]
    sure = f"{figures.percent(made.level)} confidence"
    among = f"Of the {len(tested)} models that could be tested, " if len(tested) < n_ranked else ""
    if len(leaders) == 1:
        return f"{among}{label(leaders[0].label)} is the best ({sure})."
    others = len(tested) - len(leaders)
    if not others and not among:
        kind = "models" if len(tested) == len(made.models) else "ranked models"
        return f"Each of the {len(tested)} {kind} may be the best: the data tells none from another ({sure})."
    rest = f"; the other {'one is' if others == 1 else f'{others} are'} not" if others else ""
    return f"{among}{_joined(leaders, label)} may each be the best, and the data can't tell which{rest} ({sure})."


def _allowed(made: Snapshot, label: Written) -> str:
    """Whom the gate lets replace the model in use; empty where nothing decides that."""
    outcomes = [model.gate.outcome for model in made.models if model.gate is not None]
    if not set(outcomes) - {"in_use"}:
        return ""
    passing = [model for model in made.models if model.gate is not None and model.gate.outcome == "pass"]
    who = _joined(passing, label) if passing else "none"
    return f"The gate lets {who} {'pass' if made.production is None else f'replace {label(made.production)}'}."


def _joined(models: Sequence[Model], label: Written) -> str:
    names = [label(model.label) for model in models[:NAMED]]
    if (n := len(models) - NAMED) > 0:
        names = [*names, plural(n, "more model")]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
