"""Where each model of a board stands: means, ranks, and how far the data leaves the ranks open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.leaderboard import apart, standings
from embeval.leaderboard.definition import RankBy
from embeval.leaderboard.snapshot import Column, Pairs, Standing
from embeval.stats.many import Spread

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rules:
    """How a board ranks."""

    rank_by: RankBy
    """What by."""
    gaps: str
    """``exclude`` or ``rank``: what becomes of models with gaps."""
    level: float
    """Confidence of tests."""


def ranked(columns: Sequence[Column]) -> list[int]:
    """Places of the columns that count."""
    return [place for place, column in enumerate(columns) if column.refused is None]


def shares(columns: Sequence[Column], rank_by: RankBy) -> list[float]:
    """What each of these columns counts in the mean that is tested; Borda's count is tested by the mean over tasks."""
    weights = [column.weight for column in columns]
    if rank_by == "mean_type":
        return standings.type_shares(weights, [column.group for column in columns])
    return standings.task_shares(weights)


def standings_of(
    values: Values, columns: Sequence[Column], rules: Rules, tested: Sequence[int] = (), pairs: Sequence[Pairs] = ()
) -> list[Standing]:
    """Where K models stand by ``values`` float64 [K, T], NaN for a gap; ``pairs`` are those of the models ``tested``."""
    counted = ranked(columns)
    if not counted:
        return [Standing(gaps=0) for _ in values]
    chosen = [columns[place] for place in counted]
    # Values of which less is better count with their sign turned, so that the best always comes first.
    signs = np.array([1.0 if column.higher_is_better else -1.0 for column in chosen])
    known = values[:, counted] * signs
    gaps = np.isnan(known).sum(axis=1)
    complete = gaps == 0
    weights = [column.weight for column in chosen]
    groups = [column.group for column in chosen]
    by_task = standings.means(known, standings.task_shares(weights))
    by_type = standings.means(known, standings.type_shares(weights, groups))
    eligible = complete if rules.gaps == "exclude" else gaps < len(counted)
    borda = np.zeros(len(known), dtype=np.int64)
    borda[eligible] = standings.borda(known[eligible])
    if rules.rank_by == "borda":
        key = borda.astype(float)
    else:
        key = -standings.means_of_known(known, shares(chosen, rules.rank_by))
    ranks = np.zeros(len(known), dtype=np.int64)
    ranks[eligible] = standings.competition_ranks(key[eligible])
    intervals, names = _apart(known, chosen, counted, rules, tested, pairs, ranks, int(eligible.sum()))
    same_direction = len(set(signs.tolist())) == 1
    return [
        Standing(
            rank=int(ranks[row]) if eligible[row] else None,
            rank_low=intervals[row][0] if row in intervals else None,
            rank_high=intervals[row][1] if row in intervals else None,
            letters=names.get(row),
            mean_task=_number(by_task[row] * signs[0]) if same_direction else None,
            mean_type=_number(by_type[row] * signs[0]) if same_direction else None,
            borda=int(borda[row]) if eligible[row] else None,
            groups=_group_means(values[row, counted], groups, weights),
            gaps=int(gaps[row]),
            untested=None if row in intervals else "no interval",
        )
        for row in range(len(known))
    ]


def _apart(
    known: Values,
    columns: Sequence[Column],
    counted: Sequence[int],
    rules: Rules,
    tested: Sequence[int],
    pairs: Sequence[Pairs],
    ranks: npt.NDArray[np.int64],
    n_ranked: int,
) -> tuple[dict[int, tuple[int, int]], dict[int, str]]:
    """(interval of the rank, letters) of each tested model."""
    if len(tested) < 2:
        return {}, {}
    own = shares(columns, rules.rank_by)
    spreads = [spread_of(pairs[place], len(tested)) for place in counted]
    means = standings.means(known[list(tested)], own)
    gaps = means[:, None] - means[None, :]
    found = apart.tests(
        gaps,
        [each.variances for each in spreads],
        [each.different for each in spreads],
        [each.freedom for each in spreads],
        own,
        rules.level,
    )
    better = found.better
    intervals = {
        row: (1 + int(better[:, place].sum()), n_ranked - int(better[place].sum())) for place, row in enumerate(tested)
    }
    order = sorted(range(len(tested)), key=lambda place: (int(ranks[tested[place]]), place))
    names = apart.letters(order, better | better.T)
    return intervals, dict(zip(tested, names, strict=True))


def pairs_of(spread: Spread) -> Pairs:
    """The pairs of a column, as they are kept: variances to six digits, so that everybody computes with the same."""
    lower = np.tril_indices(len(spread.variances), -1)
    return Pairs(
        variances=tuple(_number(float(f"{each:.6g}")) for each in spread.variances[lower]),
        different=tuple(int(each) for each in spread.different[lower]),
        freedom=float(f"{spread.freedom:.6g}"),
    )


def spread_of(pairs: Pairs, k: int) -> Spread:
    """The pairs of a column of ``k`` models as squares."""
    lower = np.tril_indices(k, -1)
    variances, different = np.zeros((k, k)), np.zeros((k, k), dtype=np.int64)
    variances[lower] = [np.nan if each is None else each for each in pairs.variances]
    different[lower] = pairs.different
    return Spread(variances + variances.T, different + different.T, pairs.freedom)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _group_means(values: Values, groups: Sequence[str], weights: Sequence[float]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name in dict.fromkeys(groups):
        inside = [place for place, group in enumerate(groups) if group == name]
        found[name] = _number(
            float(standings.means(values[None, inside], standings.task_shares([weights[p] for p in inside]))[0])
        )
    return found
