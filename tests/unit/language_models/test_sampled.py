"""Estimates from some places of each text: right on average, with an interval that covers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from embeval.language_models import sampled

VALUES = np.array([-0.5, -7.0, -1.0, -2.5, -0.1])


@pytest.mark.parametrize("m", [2, 3, 4])
def test_estimates_over_all_samples(m: int) -> None:
    """Over every sample of m of 5 places: the mean is the sum itself, and the mean variance that of the estimates."""
    chosen = list(itertools.combinations(range(5), m))
    owner = np.repeat(np.arange(len(chosen)), m)
    values = VALUES[np.array(chosen).ravel()]
    estimates, variances = sampled.totals(values, owner, np.full(len(chosen), 5))
    assert estimates.mean() == pytest.approx(VALUES.sum(), rel=1e-12)
    assert variances.mean() == pytest.approx(estimates.var(), rel=1e-12)


def test_a_text_of_which_all_places_were_drawn_is_exact() -> None:
    """The sum to the last bit, and no variance; none at all of a text without places."""
    n_places = np.array([3, 0, 1])
    estimates, variances = sampled.totals(np.array([-0.1, -0.2, -0.3, -4.0]), np.array([0, 0, 0, 2]), n_places)
    assert estimates[0] == -0.1 + -0.2 + -0.3
    assert math.isnan(estimates[1])
    assert estimates[2] == -4.0
    assert variances.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("n", "share", "m"), [(0, 0.25, 0), (1, 0.25, 1), (2, 0.25, 2), (8, 0.25, 2), (9, 0.25, 3), (100, 0.1, 10)]
)
def test_how_many_are_drawn(n: int, share: float, m: int) -> None:
    """The share, rounded up; two where there are two, else what there is."""
    assert sampled.n_drawn(n, share) == m
    places = np.arange(n, dtype=np.int64) * 3
    found = sampled.drawn(places, "text", share=share, seed=0)
    assert len(found) == len(set(found.tolist())) == m
    assert set(found.tolist()) <= set(places.tolist())
    assert found.tolist() == sorted(found.tolist())


def test_every_sample_is_as_likely() -> None:
    """Over 3,000 seeds each of the 10 pairs of 5 places is drawn about 300 times; texts are drawn from apart."""
    places = np.arange(5, dtype=np.int64)

    def pairs(text: str) -> list[tuple[int, ...]]:
        return [tuple(sampled.drawn(places, text, share=0.4, seed=seed).tolist()) for seed in range(3_000)]

    one, other = pairs("one"), pairs("other")
    counts = [one.count(pair) for pair in itertools.combinations(range(5), 2)]
    assert sum((count - 300) ** 2 / 300 for count in counts) < 27.9  # chi-square, 9 degrees of freedom, p = 0.001
    same = sum(a == b for a, b in zip(one, other, strict=True))
    assert abs(same - 300) < 55  # 3.3 standard deviations of a binomial with p = 0.1
    assert one == pairs("one")


def test_the_interval_covers_the_value_of_all_places() -> None:
    """500 samples of a quarter of the places of 60 texts of 3 to 40 skewed values: 95 % within four standard errors."""
    dice = np.random.default_rng(0)
    n_places = dice.integers(3, 41, size=60)
    texts = [-dice.exponential(3.0, size=n) for n in n_places]
    exact = math.exp(-sum(each.sum() for each in texts) / n_places.sum())
    covered = below = 0
    for seed in range(500):
        chosen = [sampled.drawn(np.arange(n), str(number), share=0.25, seed=seed) for number, n in enumerate(n_places)]
        owner = np.repeat(np.arange(60), [len(each) for each in chosen])
        values = np.concatenate([text[each] for text, each in zip(texts, chosen, strict=True)])
        estimates, variances = sampled.totals(values, owner, n_places)
        low, high = sampled.interval(estimates.sum(), variances.sum(), int(n_places.sum()), 0.95)
        assert low < math.exp(-estimates.sum() / n_places.sum()) < high
        covered += low <= exact <= high
        below += exact < low
    assert abs(covered / 500 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 500)
    assert below < 500 - covered or covered == 500  # not all of what it misses on one side
