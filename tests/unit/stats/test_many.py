"""How sure differences of many systems are, against t-tests of scipy, and leave-one-out and cluster sums by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from embeval import metrics
from embeval.core.records import ItemRecords
from embeval.stats.many import Spread, spread
from embeval.stats.student import two_sided

NDCG = metrics.get("ndcg_at_10")
SPEARMAN = metrics.get("cosine_spearman")
Values = npt.NDArray[np.float64]


def records(
    values: Sequence[float] | Values, *, subset: Sequence[str] = (), clusters: Sequence[str] | None = None
) -> ItemRecords:
    """Queries with these values of nDCG."""
    return ItemRecords(
        unit="query",
        ids=tuple(f"q{row}" for row in range(len(values))),
        columns={"ndcg_at_10": np.asarray(values, dtype=np.float64)},
        slices={"subset": tuple(subset)} if subset else {},
        clusters=None if clusters is None else tuple(clusters),
    )


def pairs(gold: Values, cosine: Values) -> ItemRecords:
    """Pairs of texts with these cosines."""
    return ItemRecords(
        unit="pair", ids=tuple(f"p{row}" for row in range(len(gold))), columns={"gold": gold, "cosine": cosine}
    )


def p_of(found: Spread, gap: float, i: int, j: int) -> float:
    """The two-sided p of a difference."""
    return two_sided(gap / float(np.sqrt(found.variances[i, j])), found.freedom)


def test_means_are_tested_as_scipy_tests_them() -> None:
    """Of every pair of four systems the p of ``scipy.stats.ttest_rel``."""
    rng = np.random.default_rng(0)
    values = rng.uniform(size=(4, 30)) + np.arange(4)[:, None] * 0.1
    found = spread([records(each) for each in values], NDCG)
    assert found.freedom == 29.0
    for i in range(4):
        for j in range(i):
            expected = stats.ttest_rel(values[i], values[j]).pvalue
            assert p_of(found, float(values[i].mean() - values[j].mean()), i, j) == pytest.approx(expected, rel=1e-8)
            assert found.variances[i, j] == found.variances[j, i]
    assert (np.diag(found.variances) == 0.0).all()


def test_units_that_differ_are_those_of_other_values() -> None:
    """Items on which both have the same value don't count, however far apart the means are."""
    one = np.linspace(0.0, 1.0, 40)
    other = one.copy()
    other[:3] += 0.5
    found = spread([records(one), records(other), records(one)], NDCG)
    assert found.different.tolist() == [[0, 3, 0], [3, 0, 3], [0, 3, 0]]
    assert found.variances[0, 2] == 0.0


@pytest.mark.parametrize("n", [25, 1200])
def test_rank_correlations_have_the_error_of_leaving_out(n: int) -> None:
    """(J - 1) / J times the squares of what leaving out a pair does to the difference, by ``scipy.stats.spearmanr``.

    Of more than 1,000 pairs, groups are left out: here 600 of two.
    """
    rng = np.random.default_rng(1)
    gold = rng.uniform(size=n)
    cosines = [gold + rng.normal(0.0, scale, n) for scale in (0.2, 0.4)]
    groups = n if n <= 1000 else n // 2
    left_out = np.array(
        [
            [stats.spearmanr(gold[rows], each[rows]).statistic for each in cosines]
            for group in range(groups)
            if len(rows := np.flatnonzero(np.arange(n) % groups != group))
        ]
    )
    gaps = left_out[:, 0] - left_out[:, 1]
    expected = (groups - 1) / groups * ((gaps - gaps.mean()) ** 2).sum()
    found = spread([pairs(gold, each) for each in cosines], SPEARMAN)
    assert found.variances[0, 1] == pytest.approx(expected, rel=1e-8)
    assert found.freedom == groups - 1
    assert found.different[0, 1] == n


def test_cosines_on_another_scale_rank_alike() -> None:
    """A rising function of the cosines changes every value and no rank: no spread of the difference."""
    rng = np.random.default_rng(2)
    gold = rng.uniform(size=40)
    cosine = gold + rng.normal(0.0, 0.3, 40)
    found = spread([pairs(gold, cosine), pairs(gold, np.tanh(cosine) / 3.0)], SPEARMAN)
    assert found.variances[0, 1] == 0.0
    assert found.different[0, 1] == 40


def test_clusters_are_what_is_counted() -> None:
    """G / (G - 1) Σ (sum over a cluster of d - mean)² / n² (Cochran 1977, section 9A), for clusters of three sizes."""
    rng = np.random.default_rng(3)
    labels = ["a"] * 2 + ["b"] * 5 + ["c"] * 3 + ["d"] * 4
    one, other = rng.uniform(size=(2, 14))
    other[:2] = one[:2]
    d = one - other
    sums = np.array([(d[[label == name for label in labels]] - d.mean()).sum() for name in "abcd"])
    found = spread([records(one, clusters=labels), records(other, clusters=labels)], NDCG)
    assert found.variances[0, 1] == pytest.approx(4 / 3 * (sums**2).sum() / 14**2, rel=1e-12)
    assert found.freedom == 3.0
    assert found.different[0, 1] == 3


def test_clusters_of_one_size_are_tested_by_their_means() -> None:
    """Then it is ``scipy.stats.ttest_rel`` of the means of clusters."""
    rng = np.random.default_rng(4)
    labels = [f"c{row // 3}" for row in range(24)]
    one, other = rng.uniform(size=(2, 24))
    expected = stats.ttest_rel(one.reshape(8, 3).mean(axis=1), other.reshape(8, 3).mean(axis=1)).pvalue
    found = spread([records(one, clusters=labels), records(other, clusters=labels)], NDCG)
    assert p_of(found, float(one.mean() - other.mean()), 0, 1) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("weighting", "shares"), [("mean", (0.5, 0.5)), ("wmean", (8 / 18, 10 / 18))])
def test_means_over_subsets_add_their_parts(weighting: str, shares: tuple[float, float]) -> None:
    """Each sub-set's variance by its share squared; by number of items, those without a value don't count."""
    rng = np.random.default_rng(5)
    labels = ["en"] * 10 + ["de"] * 10
    one, other = rng.uniform(size=(2, 20))
    one[:2] = other[:2] = np.nan
    d = one - other
    expected = sum(
        share**2 * float(np.var(part, ddof=1)) / len(part)
        for share, part in zip(shares, (d[2:10], d[10:]), strict=True)
    )
    found = spread([records(one, subset=labels), records(other, subset=labels)], NDCG, weighting)  # type: ignore[arg-type]
    assert found.variances[0, 1] == pytest.approx(expected, rel=1e-12)
    assert found.freedom == 7.0
    assert found.different[0, 1] == 18


def test_items_that_one_side_lacks_leave_nothing_to_say() -> None:
    """A difference on other items would be that of other systems; those that lack the same items are tested."""
    rng = np.random.default_rng(6)
    values = rng.uniform(size=(3, 12))
    values[1, 4] = values[2, 4] = np.nan
    found = spread([records(each) for each in values], NDCG)
    assert np.isnan(found.variances).tolist() == [[False, True, True], [True, False, False], [True, False, False]]
    d = np.delete(values[1] - values[2], 4)
    assert found.variances[1, 2] == pytest.approx(float(np.var(d, ddof=1)) / 11, rel=1e-12)
    assert found.freedom == 10.0


@pytest.mark.parametrize("subset", [["en"] * 5 + ["de"], ["en"] * 6])
def test_too_few_items_tell_nothing(subset: list[str]) -> None:
    """A sub-set of one item, or a single cluster, has no spread: none is made up."""
    one, other = np.random.default_rng(7).uniform(size=(2, 6))
    clusters = ["same"] * 6 if "de" not in subset else None
    sides = [records(each, subset=subset, clusters=clusters) for each in (one, other)]
    assert np.isnan(spread(sides, NDCG, "mean").variances[0, 1])
