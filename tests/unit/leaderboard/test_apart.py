"""Tests of all pairs of a board, intervals of ranks and letters: against brute force, scipy and simulation."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from embeval import metrics
from embeval.core.records import ItemRecords
from embeval.leaderboard import apart
from embeval.stats.many import Spread, spread

Values = npt.NDArray[np.float64]
NDCG = metrics.get("ndcg_at_10")


def spread_of(values: Values) -> Spread:
    """That of systems with these values of nDCG, float64 [K, n]."""
    ids = tuple(f"q{row}" for row in range(values.shape[1]))
    return spread([ItemRecords(unit="query", ids=ids, columns={"ndcg_at_10": each}) for each in values], NDCG)


def all_pairs(*tasks: Values, names: tuple[str, ...] = (), level: float = 0.95) -> apart.Tests:
    """The tests of K systems by the mean over tasks, float64 [K, n] each."""
    spreads = [spread_of(each) for each in tasks]
    means = np.mean([each.mean(axis=1) for each in tasks], axis=0)
    return apart.tests(
        means[:, None] - means[None, :],
        [each.variances for each in spreads],
        [each.different for each in spreads],
        [each.freedom for each in spreads],
        [1.0 / len(tasks)] * len(tasks),
        names or tuple(f"task {place}" for place in range(len(tasks))),
        level,
    )


def holm(p: list[float]) -> list[float]:
    """Adjusted p-values as Holm wrote it down: the smallest times m, the next times m - 1, none below one before."""
    adjusted, largest = [0.0] * len(p), 0.0
    for step, place in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        largest = max(largest, min(1.0, (len(p) - step) * p[place]))
        adjusted[place] = largest
    return adjusted


def test_one_task_is_tested_pair_by_pair_as_scipy_does() -> None:
    """P-values of ``scipy.stats.ttest_rel`` by Holm, intervals and order counted pair by pair."""
    rng = np.random.default_rng(0)
    values = rng.normal(0.0, 1.0, (6, 40)) + np.array([0.0, 0.1, 0.8, 0.9, 1.6, 3.0])[:, None]
    found = all_pairs(values)
    pairs = list(combinations(range(6), 2))
    floor = 2.0**-39  # what the signs of 40 items can show
    expected = holm([max(floor, float(stats.ttest_rel(values[i], values[j]).pvalue)) for i, j in pairs])
    assert [found.p[pair] for pair in pairs] == pytest.approx(expected, rel=1e-7, abs=0.0)
    means = values.mean(axis=1)
    better = {pair for pair, p in zip(pairs, expected, strict=True) if p <= 0.05}
    assert 5 < len(better) < 15  # some are told apart, and some are not
    for model in range(6):
        apart_from = [other for pair in better if model in pair for other in pair if other != model]
        above = sum(means[other] > means[model] for other in apart_from)
        assert found.ranks[model] == (1 + above, 6 - (len(apart_from) - above))


def test_several_tasks_add_their_variances_with_welch_degrees() -> None:
    """By hand for two tasks of 12 and 50 items: t of the mean difference, degrees by Welch."""
    rng = np.random.default_rng(1)
    one, other = rng.normal(0.3, 1.0, (2, 12)), rng.normal(0.2, 0.2, (2, 50))
    differences = [one[0] - one[1], other[0] - other[1]]
    parts = [float(np.var(d, ddof=1)) / len(d) / 4.0 for d in differences]
    gap = sum(float(d.mean()) for d in differences) / 2.0
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 11 + parts[1] ** 2 / 49)
    expected = 2.0 * stats.t.sf(abs(gap) / np.sqrt(sum(parts)), freedom)
    assert all_pairs(one, other).p[0, 1] == pytest.approx(expected, rel=1e-8)


def test_the_same_items_twice_are_no_more_evidence() -> None:
    """A task shown by two metrics that say the same is tested as if it were shown once."""
    values = np.random.default_rng(2).normal(0.2, 1.0, (2, 30))
    once = all_pairs(values).p[0, 1]
    assert all_pairs(values, values, names=("docs", "docs")).p[0, 1] == pytest.approx(once, rel=1e-9)
    assert all_pairs(values, values).p[0, 1] < once


def test_a_handful_of_items_that_differ_shows_no_more_than_their_signs() -> None:
    """Five of 500 items, all in favour of one side: Student says 0.025, and five coins say 2 / 2^5 = 0.0625."""
    values = np.zeros((2, 500))
    values[1, :5] = 1.0
    assert stats.ttest_rel(values[1], values[0]).pvalue == pytest.approx(0.0252, abs=1e-4)
    assert all_pairs(values).p[0, 1] == 0.0625


def test_models_without_a_difference_are_not_told_apart() -> None:
    """p is 1 for the same model twice, and one that nothing is known of has no p."""
    values = np.random.default_rng(3).normal(size=(3, 20))
    values[1] = values[0]
    values[2, 4] = np.nan
    with np.errstate(invalid="ignore"):
        found = all_pairs(values)
    assert found.p[0, 1] == 1.0
    assert np.isnan(found.p[0, 2])
    assert not found.better.any()
    assert found.ranks == [(1, 3)] * 3


def test_an_effect_that_is_the_same_on_every_item_is_certain_but_for_their_number() -> None:
    """Without any spread, 2 / 2^n is what n coins can show."""
    values = np.stack([np.linspace(0.0, 1.0, 10), np.linspace(0.0, 1.0, 10) + 0.25])
    assert all_pairs(values).p[0, 1] == pytest.approx(2.0**-9)


@st.composite
def relations(draw: st.DrawFn) -> npt.NDArray[np.bool_]:
    """Which of up to 8 models are told apart, any way at all."""
    k = draw(st.integers(1, 8))
    square = np.zeros((k, k), dtype=np.bool_)
    for i, j in combinations(range(k), 2):
        square[i, j] = square[j, i] = draw(st.booleans())
    return square


@settings(max_examples=150)
@given(relations(), st.randoms())
def test_letters_say_all_and_nothing_else(told_apart: npt.NDArray[np.bool_], random: object) -> None:
    """Two share a letter exactly if they aren't told apart; no group has room for another model; a is the best's."""
    k = len(told_apart)
    order = list(range(k))
    random.shuffle(order)  # type: ignore[attr-defined]
    names = apart.letters(order, told_apart)
    for i, j in combinations(range(k), 2):
        assert bool(set(names[i]) & set(names[j])) == (not told_apart[i, j])
    used = sorted(set("".join(names)))
    assert used == [chr(ord("a") + number) for number in range(len(used))]
    assert "a" in names[order[0]]
    groups = [{model for model in range(k) if letter in names[model]} for letter in used]
    assert len({frozenset(group) for group in groups}) == len(groups)
    for group in groups:
        assert not any(all(not told_apart[model, other] for other in group) for model in set(range(k)) - group), (
            "a group with room for another"
        )


def test_letters_of_a_plain_board() -> None:
    """Neighbours are alike and all others are apart, so each pair of neighbours has its own letter."""
    places = np.arange(5)
    assert apart.letters([0, 1, 2, 3, 4], np.abs(places[:, None] - places) > 1) == ["a", "ab", "bc", "cd", "d"]


def test_letters_beyond_the_alphabet() -> None:
    """Of 28 models that are all apart the last two have a1 and b1."""
    assert apart.letters(list(range(28)), ~np.eye(28, dtype=np.bool_))[24:] == ["y", "z", "a1", "b1"]


def test_letters_stay_few_where_groups_are_without_number() -> None:
    """25 models, each told apart from its own int8 form and from nothing else: 2^25 groups fit, and 30 letters do."""
    told_apart = np.zeros((50, 50), dtype=np.bool_)
    for model in range(0, 50, 2):
        told_apart[model, model + 1] = told_apart[model + 1, model] = True
    begun = time.perf_counter()
    names = apart.letters(list(range(50)), told_apart)
    assert time.perf_counter() - begun < 5.0
    assert len(set("".join(names))) <= 30
    for i, j in combinations(range(50), 2):
        assert bool(set(names[i]) & set(names[j])) == (not told_apart[i, j])


Draw = Callable[[np.random.Generator, tuple[int, int]], Values]
KINDS: dict[str, tuple[int, int, Draw]] = {
    "normal": (3, 20, lambda rng, shape: rng.normal(size=shape)),
    "few items": (1, 6, lambda rng, shape: rng.normal(size=shape)),
    "skewed": (2, 40, lambda rng, shape: rng.exponential(size=shape)),
    "binary": (1, 60, lambda rng, shape: (rng.random(shape) < 0.8).astype(float)),
    "few binary items": (2, 12, lambda rng, shape: (rng.random(shape) < 0.7).astype(float)),
    "almost all right": (1, 100, lambda rng, shape: (rng.random(shape) < 0.98).astype(float)),
}
"""Tasks, items of each, and how values are drawn."""
REPETITIONS = 300


@pytest.mark.parametrize("kind", KINDS)
def test_models_that_are_alike_are_seldom_told_apart(kind: str) -> None:
    """Five models with the same distribution: the share of boards with any claim is 0.05 at most.

    Three standard errors of 300 boards are allowed for.
    """
    n_tasks, n, draw = KINDS[kind]
    rng = np.random.default_rng(len(kind))
    claims = sum(bool(all_pairs(*[draw(rng, (5, n)) for _ in range(n_tasks)]).better.any()) for _ in range(REPETITIONS))
    assert claims / REPETITIONS <= 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / REPETITIONS)


def test_a_difference_is_found_as_often_as_it_should_be() -> None:
    """Two models, 50 items, half a standard deviation: the power of the t-test by scipy's noncentral t, 0.93."""
    rng = np.random.default_rng(9)
    limit = stats.t.ppf(0.975, 49)
    power = float(stats.nct.sf(limit, 49, 0.5 * np.sqrt(50)) + stats.nct.cdf(-limit, 49, 0.5 * np.sqrt(50)))
    found = 0
    for _ in range(REPETITIONS):
        base = rng.normal(size=50)
        found += bool(all_pairs(np.stack([base + rng.normal(0.5, 1.0, 50), base])).better[0, 1])
    assert found / REPETITIONS == pytest.approx(power, abs=3.0 * np.sqrt(power * (1.0 - power) / REPETITIONS))
