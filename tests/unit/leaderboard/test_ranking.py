"""Where models stand: gaps, weights, groups, directions, refused columns, what is tested and why others aren't."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest

from embeval.leaderboard import ranking
from embeval.leaderboard.definition import RankBy
from embeval.leaderboard.ranking import Rules, standings_of
from embeval.leaderboard.snapshot import Pairs, Standing
from embeval.stats.many import Spread
from tests.support.boards import column

GAP = float("nan")


def rules(rank_by: RankBy = "mean_task", gaps: Literal["exclude", "rank"] = "exclude") -> Rules:
    """At 95 %."""
    return Rules(rank_by, gaps, 0.95)


def pairs(k: int, error: float) -> Pairs:
    """All differences of k models have this standard error, from 400 items of 500."""
    square = np.full((k, k), error**2)
    return ranking.pairs_of(Spread(square, np.full((k, k), 400), 499.0))


def ranks(found: Sequence[Standing]) -> list[int | None]:
    """In the order of the models."""
    return [standing.rank for standing in found]


TWO = [column("a"), column("b")]


def test_models_with_gaps_are_not_ranked() -> None:
    """Others close up; the mean of what there is isn't a mean, and the gap is counted and named."""
    values = np.array([[0.9, GAP], [0.5, 0.6], [0.4, 0.9], [GAP, GAP]])
    found = standings_of(values, TWO, rules())
    assert ranks(found) == [None, 2, 1, None]
    assert [standing.borda for standing in found] == [None, 1, 1, None]
    assert [standing.mean_task for standing in found] == [None, pytest.approx(0.55), pytest.approx(0.65), None]
    assert [standing.gaps for standing in found] == [1, 0, 0, 2]
    assert found[0].groups == {"STS": None}
    assert (found[0].untested, found[3].untested) == ("a gap on b", "gaps on a and 1 more column")


def test_models_with_gaps_are_ranked_where_that_is_asked_for() -> None:
    """As if they were the worst there, marked by their gaps; one without any value never is.

    By the mean of what it has the second would be best: it left out the hard task.
    """
    values = np.array([[0.9, 0.3], [0.9, GAP], [0.6, 0.1], [GAP, GAP]])
    found = standings_of(values, TWO, rules(gaps="rank"))
    assert ranks(found) == [1, 2, 3, None]
    assert (found[1].mean_task, found[1].gaps) == (None, 1)


def test_the_worst_is_the_largest_where_less_is_better() -> None:
    """The gap counts as 9: a mean of 5 beside 3.5 and 5.5."""
    columns = [column("a", higher_is_better=False), column("b", higher_is_better=False)]
    found = standings_of(np.array([[1.0, GAP], [3.0, 4.0], [2.0, 9.0]]), columns, rules(gaps="rank"))
    assert ranks(found) == [2, 1, 3]


def test_borda_gives_a_gap_no_points() -> None:
    """As mteb counts: of three models 1 point for the second on a task, and none where there is a gap."""
    found = standings_of(np.array([[0.8, GAP], [0.9, 0.3], [0.7, 0.1]]), TWO, rules("borda", "rank"))
    assert ranks(found) == [2, 1, 2]


@pytest.mark.parametrize(("rank_by", "expected"), [("mean_task", [2, 1]), ("mean_type", [1, 2]), ("borda", [2, 1])])
def test_what_it_is_ranked_by(rank_by: RankBy, expected: list[int]) -> None:
    """Two STS tasks and one of retrieval: means over tasks 0.5 and 0.6, over groups 0.6 and 0.55, two wins of three."""
    columns = [column("a"), column("b"), column("c", "Retrieval")]
    values = np.array([[0.3, 0.3, 0.9], [0.7, 0.7, 0.4]])
    found = standings_of(values, columns, rules(rank_by))
    assert ranks(found) == expected
    assert found[0].mean_task == pytest.approx(0.5)
    assert found[0].mean_type == pytest.approx(0.6)
    assert found[0].groups == {"STS": pytest.approx(0.3), "Retrieval": pytest.approx(0.9)}


def test_weights_count_within_groups_too() -> None:
    """Weights 3 and 1: 0.75 of the first task; the group's mean by the same weights."""
    columns = [column("a", weight=3.0), column("b")]
    (standing,) = standings_of(np.array([[0.8, 0.4]]), columns, rules())
    assert standing.mean_task == pytest.approx(0.7)
    assert standing.groups == {"STS": pytest.approx(0.7)}


def test_less_is_better_in_every_column() -> None:
    """The smallest mean ranks first, and means are shown as they are."""
    columns = [column("a", higher_is_better=False), column("b", higher_is_better=False)]
    found = standings_of(np.array([[3.0, 5.0], [2.0, 1.0]]), columns, rules())
    assert ranks(found) == [2, 1]
    assert (found[1].mean_task, found[1].mean_type, found[1].groups) == (1.5, 1.5, {"STS": 1.5})


def test_there_is_no_mean_of_losses_of_different_units() -> None:
    """Nats and a perplexity; Borda's count needs no mean, and groups of one unit have theirs."""
    nats = column("a", "Masked", higher_is_better=False)
    columns = [nats, replace(column("b", higher_is_better=False), metric="pppl_original")]
    values = np.array([[3.0, 500.0], [2.0, 100.0]])
    found = standings_of(values, columns, rules(), [0, 1], [pairs(2, 1e-6)] * 2)
    assert [(each.rank, each.mean_task, each.mean_type, each.letters) for each in found] == [(None,) * 4] * 2
    assert found[0].groups == {"Masked": 3.0, "STS": 500.0}
    assert {each.untested for each in found} == {ranking.UNITS}
    assert ranks(standings_of(values, columns, rules("borda"))) == [2, 1]


@pytest.mark.parametrize("rank_by", ["mean_task", "mean_type"])
def test_there_is_no_mean_of_both_directions(rank_by: RankBy) -> None:
    """No mean, no rank by it and no test; a group of one direction has its mean, Borda's count needs none."""
    columns = [column("a"), column("b", "Speed", higher_is_better=False)]
    values = np.array([[0.9, 20.0], [0.5, 10.0], [0.4, 30.0]])
    tested = ([0, 1, 2], [pairs(3, 1e-6)] * 2)
    found = standings_of(values, columns, rules(rank_by), *tested)
    assert ranks(found) == [None] * 3
    assert [(each.mean_task, each.mean_type, each.letters, each.rank_low) for each in found] == [(None,) * 4] * 3
    assert found[0].groups == {"STS": 0.9, "Speed": 20.0}
    assert {each.untested for each in found} == {ranking.TWO_WAYS}
    assert ranks(standings_of(values, columns, rules("borda"), *tested)) == [1, 1, 3]
    mixed = [column("a"), column("b", higher_is_better=False)]
    assert standings_of(values, mixed, rules("borda"))[0].groups == {"STS": None}


def test_refused_columns_count_for_nothing() -> None:
    """Neither for means nor as gaps; and with no other columns nothing is ranked."""
    columns = [column("a"), column("b", refused="values per token")]
    found = standings_of(np.array([[0.5, GAP], [0.6, 0.1]]), columns, rules())
    assert ranks(found) == [2, 1]
    assert [each.gaps for each in found] == [0, 0]
    (standing,) = standings_of(np.array([[0.5]]), columns[1:], rules())
    assert (standing.rank, standing.untested) == (None, ranking.NOTHING_RANKED)


def test_intervals_and_letters() -> None:
    """Standard error 0.01 of each mean of two tasks: 0.1 apart is told, 0.005 is not."""
    values = np.array([[0.5, 0.5], [0.7, 0.7], [0.605, 0.605], [0.6, 0.6]])
    found = standings_of(values, TWO, rules(), [0, 1, 2, 3], [pairs(4, 0.0141)] * 2)
    assert ranks(found) == [4, 1, 2, 3]
    assert [(each.rank_low, each.rank_high) for each in found] == [(4, 4), (1, 1), (2, 3), (2, 3)]
    assert [each.letters for each in found] == ["c", "a", "b", "b"]
    assert {each.untested for each in found} == {None}


def test_two_columns_of_one_task_may_hold_the_same_items() -> None:
    """0.024 apart with errors of 0.0141 in both: t is 2.4 for two tasks, and 1.7 for the same items twice."""
    values = np.array([[0.524, 0.524], [0.5, 0.5]])
    tested = ([0, 1], [pairs(2, 0.0141)] * 2)
    assert [each.letters for each in standings_of(values, TWO, rules(), *tested)] == ["a", "b"]
    same = [column("a"), column("a", metric="cosine_pearson")]
    assert [each.letters for each in standings_of(values, same, rules(), *tested)] == ["a", "a"]


def test_models_that_are_not_tested_may_stand_anywhere() -> None:
    """A third model without items widens the other two's intervals; it has none and says why."""
    values = np.array([[0.5, 0.5], [0.7, 0.7], [0.6, 0.6], [0.9, GAP]])
    found = standings_of(values, TWO, rules(), [0, 1], [pairs(2, 0.01)] * 2, {2: "imported: no items"})
    assert [(each.rank_low, each.rank_high) for each in found] == [(2, 3), (1, 2), (None, None), (None, None)]
    assert [each.letters for each in found] == ["b", "a", None, None]
    assert [each.untested for each in found] == [None, None, "imported: no items", "a gap on b"]


def test_the_interval_holds_the_rank_by_borda() -> None:
    """Tested is the mean; where Borda's count says otherwise, the interval reaches as far as its rank."""
    columns = [column("a"), column("b"), column("c")]
    values = np.array([[0.50, 0.50, 0.50], [0.51, 0.51, 0.10]])
    found = standings_of(values, columns, rules("borda"), [0, 1], [pairs(2, 0.01)] * 3)
    assert ranks(found) == [2, 1]
    assert [(each.rank_low, each.rank_high) for each in found] == [(1, 2), (1, 2)]
    assert [each.letters for each in found] == ["b", "a"]


def test_rounding_tells_nobody_apart() -> None:
    """Means that differ in the last digit share a rank and, though no item seems to waver, a letter."""
    columns = [column("a"), column("b"), column("c")]
    values = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    found = standings_of(values, columns, rules(), [0, 1], [pairs(2, 0.0)] * 3)
    assert ranks(found) == [1, 1]
    assert [each.letters for each in found] == ["a", "a"]


def test_pairs_are_kept_to_six_digits() -> None:
    """And read back as the square they were, an unknown variance as such."""
    square = np.array([[0.0, 1.23456789e-7, np.nan], [1.23456789e-7, 0.0, 2.0], [np.nan, 2.0, 0.0]])
    kept = ranking.pairs_of(Spread(square, np.array([[0, 4, 5], [4, 0, 6], [5, 6, 0]]), 41.00000049))
    assert kept == Pairs(variances=(1.23457e-7, None, 2.0), different=(4, 5, 6), freedom=41.0)
    found = ranking.spread_of(kept, 3)
    expected: npt.NDArray[np.float64] = np.array(
        [[0.0, 1.23457e-7, np.nan], [1.23457e-7, 0.0, 2.0], [np.nan, 2.0, 0.0]]
    )
    np.testing.assert_array_equal(found.variances, expected)
    assert found.different.tolist() == [[0, 4, 5], [4, 0, 6], [5, 6, 0]]


def test_a_board_without_models_is_empty() -> None:
    """Nothing to rank is no error."""
    assert standings_of(np.empty((0, 2)), TWO, rules()) == []
