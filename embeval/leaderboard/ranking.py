"""Where each model of a board stands: means, ranks, and how far the data leaves the ranks open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embeval.core.words import plural
from embeval.leaderboard import apart, standings
from embeval.leaderboard.definition import Gaps, RankBy
from embeval.leaderboard.snapshot import Column, Pairs, Standing
from embeval.stats.many import Spread

Values = npt.NDArray[np.float64]
NOTHING_RANKED = "no column is ranked"
"""Why nothing is tested, where no column takes part in ranks."""
TWO_WAYS = "higher is better in some columns and lower in others, so there is no mean to test"
"""Why nothing is tested, where columns have both directions."""
UNITS = "the columns have different units, so there is no mean to test"
"""Why nothing is tested, where they are different losses, times or perplexities."""
NO_INTERVAL = "no interval: fewer than two models have items"
"""Why a model without a gap isn't tested, where nobody says it better."""


@dataclass(frozen=True)
class Rules:
    """How a board ranks."""

    rank_by: RankBy
    """What by."""
    gaps: Gaps
    """What becomes of models with gaps."""
    level: float
    """Confidence of tests."""


def ranked(columns: Sequence[Column]) -> list[int]:
    """Places of the columns that count."""
    return [place for place, column in enumerate(columns) if column.refused is None]


def both_ways(columns: Sequence[Column]) -> bool:
    """Whether higher is better in some columns and lower in others."""
    return len({column.higher_is_better for column in columns}) > 1


def unlike(columns: Sequence[Column]) -> bool:
    """Whether columns have no mean: both directions, or losses, times and perplexities of different units.

    Where more is better values are shares and correlations, which have a scale in common.
    """
    falling = any(not column.higher_is_better for column in columns)
    return both_ways(columns) or (falling and len({column.metric for column in columns}) > 1)


def shares(columns: Sequence[Column], rank_by: RankBy) -> list[float]:
    """What each of these columns counts in the mean that is tested; Borda's count is tested by the mean over tasks."""
    weights = [column.weight for column in columns]
    if rank_by == "mean_type":
        return standings.type_shares(weights, [column.group for column in columns])
    return standings.task_shares(weights)


def standings_of(
    values: Values,
    columns: Sequence[Column],
    rules: Rules,
    tested: Sequence[int] = (),
    pairs: Sequence[Pairs] = (),
    untested: Mapping[int, str] | None = None,
) -> list[Standing]:
    """Where K models stand by ``values`` float64 [K, T], NaN for a gap; ``pairs`` are those of the models ``tested``.

    ``untested`` says why of the others. Values of which less is better go into ranks with their sign turned. Of columns
    that are ``unlike`` there is no mean, and no rank by one; Borda's count needs none.
    """
    counted = ranked(columns)
    if not counted:
        return [Standing(untested=NOTHING_RANKED) for _ in values]
    chosen = [columns[place] for place in counted]
    signs = np.array([1.0 if column.higher_is_better else -1.0 for column in chosen])
    known = values[:, counted] * signs
    alike = not unlike(chosen)
    gaps = np.isnan(known).sum(axis=1)
    eligible = gaps == 0 if rules.gaps == "exclude" else gaps < len(counted)
    borda = _within(eligible, standings.borda(known[eligible]))
    ranks = borda if rules.rank_by == "borda" else np.zeros_like(borda)
    if alike and rules.rank_by != "borda":
        key = standings.means(standings.at_worst(known[eligible]), shares(chosen, rules.rank_by))
        ranks = _within(eligible, standings.competition_ranks(-key))
    intervals, names = _apart(known, chosen, counted, rules, tested, pairs, ranks) if alike else ({}, {})
    weights, groups = [column.weight for column in chosen], [column.group for column in chosen]
    by_task = standings.means(known, standings.task_shares(weights)) * signs[0]
    by_type = standings.means(known, standings.type_shares(weights, groups)) * signs[0]
    by_group = _group_means(values[:, counted], chosen)
    return [
        Standing(
            rank=int(ranks[row]) or None,
            rank_low=intervals[row][0] if row in intervals else None,
            rank_high=intervals[row][1] if row in intervals else None,
            letters=names.get(row),
            mean_task=_number(by_task[row]) if alike else None,
            mean_type=_number(by_type[row]) if alike else None,
            borda=int(borda[row]) or None,
            groups={name: _number(found[row]) for name, found in by_group.items()},
            gaps=int(gaps[row]),
            untested=None
            if row in intervals
            else (untested or {}).get(row) or _why_untested(np.isnan(known[row]), chosen),
        )
        for row in range(len(known))
    ]


def _within(eligible: npt.NDArray[np.bool_], ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The ranks of those that have one in the places of all; 0: none."""
    found = np.zeros(len(eligible), dtype=np.int64)
    found[eligible] = ranks
    return found


def _why_untested(missing: npt.NDArray[np.bool_], columns: Sequence[Column]) -> str:
    if missing.any():
        return gap_on([column.heading for column, gap in zip(columns, missing, strict=True) if gap])
    if both_ways(columns):
        return TWO_WAYS
    return UNITS if unlike(columns) else NO_INTERVAL


def gap_on(headings: Sequence[str]) -> str:
    """That there are gaps, and where: ``a gap on STS12``."""
    if len(headings) == 1:
        return f"a gap on {headings[0]}"
    return f"gaps on {headings[0]} and {plural(len(headings) - 1, 'more column')}"


def _apart(
    known: Values,
    columns: Sequence[Column],
    counted: Sequence[int],
    rules: Rules,
    tested: Sequence[int],
    pairs: Sequence[Pairs],
    ranks: npt.NDArray[np.int64],
) -> tuple[dict[int, tuple[int, int]], dict[int, str]]:
    """(interval of the rank, letters) of each tested model.

    A model that is not tested may stand anywhere. Borda's count may rank a model where the mean, which is tested, does
    not: its interval reaches there.
    """
    if len(tested) < 2:
        return {}, {}
    own = shares(columns, rules.rank_by)
    spreads = [spread_of(pairs[place], len(tested)) for place in counted]
    means = standings.means(known[list(tested)], own)
    gaps = means[:, None] - means[None, :]
    gaps[np.abs(gaps) <= standings.ROUNDING * np.abs(means).max()] = 0.0
    found = apart.tests(
        gaps,
        [each.variances for each in spreads],
        [each.different for each in spreads],
        [each.freedom for each in spreads],
        own,
        [(column.task, column.split) for column in columns],
        rules.level,
    )
    better, n_ranked = found.better, int((ranks > 0).sum())
    intervals = {
        row: (
            min(int(ranks[row]), 1 + int(better[:, place].sum())),
            max(int(ranks[row]), n_ranked - int(better[place].sum())),
        )
        for place, row in enumerate(tested)
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


def _group_means(values: Values, columns: Sequence[Column]) -> dict[str, Values]:
    """Group -> float64 [K]: mean of each model within it; NaN with a gap, and for columns that are ``unlike``."""
    found: dict[str, Values] = {}
    for name in dict.fromkeys(column.group for column in columns):
        inside = [place for place, column in enumerate(columns) if column.group == name]
        own = standings.task_shares([columns[place].weight for place in inside])
        mixed = unlike([columns[place] for place in inside])
        found[name] = np.full(len(values), np.nan) if mixed else standings.means(values[:, inside], own)
    return found
