"""The score interval against its definition, worked out by numerical maximisation, and by exact coverage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize, stats

from embeval.stats.score import score_bound


def by_definition(wins: int, losses: int, n: int, alpha: float) -> float:
    """The lower bound from the score test with the multinomial likelihood maximised numerically."""
    z = float(stats.norm.ppf(1 - alpha))

    def distance(difference: float) -> float:
        def unlikelihood(lost: float) -> float:
            shares = np.array([lost + difference, lost, 1 - 2 * lost - difference])
            counts = np.array([wins, losses, n - wins - losses])
            return -float((counts[counts > 0] * np.log(np.maximum(shares[counts > 0], 1e-300))).sum())

        bounds = (max(0.0, -difference), (1 - difference) / 2)
        lost = optimize.minimize_scalar(unlikelihood, bounds=bounds, method="bounded", options={"xatol": 1e-13}).x
        error = np.sqrt(n * (2 * lost + difference - difference**2))
        return float((wins - losses - n * difference) / error) - z

    return float(optimize.brentq(distance, -1 + 1e-9, (wins - losses) / n - 1e-9))


@pytest.mark.parametrize(("wins", "losses", "n"), [(7, 3, 50), (0, 4, 30), (12, 1, 44), (3, 0, 20), (20, 25, 60)])
def test_bounds_are_where_the_score_test_turns(wins: int, losses: int, n: int) -> None:
    """Within the precision of the maximisation; the upper bound is that of the sides swapped."""
    for alpha in (0.05, 0.025):
        assert score_bound(wins, losses, n, alpha, "lower") == pytest.approx(
            by_definition(wins, losses, n, alpha), abs=1e-5
        )
        assert score_bound(losses, wins, n, alpha, "upper") == -score_bound(wins, losses, n, alpha, "lower")


def test_without_any_change() -> None:
    """Closed form: z² / (n + z²), as Wilson's bound of no successes."""
    z = stats.norm.ppf(0.95)
    assert score_bound(0, 0, 50, 0.05, "lower") == pytest.approx(-(z**2) / (50 + z**2), abs=1e-12)
    assert score_bound(0, 0, 50, 0.05, "upper") == pytest.approx(z**2 / (50 + z**2), abs=1e-12)


def test_all_changed() -> None:
    """Bounds stay within [-1, 1]."""
    assert score_bound(20, 0, 20, 0.05, "upper") == pytest.approx(1.0, abs=1e-12)
    assert 0.5 < score_bound(20, 0, 20, 0.05, "lower") < 1.0
    assert score_bound(0, 20, 20, 0.05, "lower") == pytest.approx(-1.0, abs=1e-12)


@pytest.mark.parametrize(("won", "lost"), [(0.05, 0.08), (0.1, 0.1), (0.02, 0.04)])
def test_exact_coverage(won: float, lost: float) -> None:
    """Sum over all outcomes of 50 items: between 93 and 98 % for 95 %."""
    n, coverage = 50, 0.0
    for wins, losses in itertools.product(range(26), repeat=2):
        share = float(stats.multinomial.pmf([wins, losses, n - wins - losses], n, [won, lost, 1 - won - lost]))
        low, high = (score_bound(wins, losses, n, 0.025, side) for side in ("lower", "upper"))
        coverage += share * (low <= won - lost <= high)
    assert 0.93 < coverage < 0.98
