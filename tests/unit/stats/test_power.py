"""Items needed and gains found, against textbook figures and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from embeval.stats import power


def test_textbook_sample_sizes() -> None:
    """n = ((z_a + z_b) sd / d)²: Chow, Shao & Wang 2008, section 3.1, superiority and non-inferiority of one mean."""
    # 7.8489 = (1.95996 + 0.84162)²; with d = sd / 2 that is 31.4 items.
    assert power.items_for_gain(1.0, 0.5) == 32
    # 6.1826 = (1.64485 + 0.84162)²: 24.7 items, one-sided, and the same for a margin and no gain.
    assert power.items_for_gain(1.0, 0.5, two_sided=False) == 25
    assert power.items_for_margin(1.0, 0.5) == 25
    # A true loss of half the margin takes four times as many; a gain as large as the margin a quarter.
    assert power.items_for_margin(1.0, 0.5, gain=-0.25) == 99
    assert power.items_for_margin(1.0, 0.5, gain=0.5) == 7


def test_against_the_exact_power_of_a_t_test() -> None:
    """Noncentral t of scipy: with a hundred items and more the normal approximation is off by less than 1 %."""
    for n, gain in ((100, 0.28), (400, 0.14), (400, 0.05)):
        found = power.power_for_gain(1.0, n, gain)
        exact = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, gain * math.sqrt(n))
        assert found == pytest.approx(exact, abs=0.01)


def test_against_simulation() -> None:
    """So many items show the gain in 80 % of 20,000 simulated comparisons, and the margin likewise."""
    rng = np.random.default_rng(0)
    spread, gain = 0.3, 0.05
    for n, shift, two_sided in (
        (power.items_for_gain(spread, gain), gain, True),
        (power.items_for_margin(spread, 0.04, gain=-0.01), 0.03, False),
    ):
        means = rng.normal(shift, spread / math.sqrt(n), 20_000)
        reach = stats.norm.ppf(0.975 if two_sided else 0.95) * spread / math.sqrt(n)
        assert (means > reach).mean() == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 20_000) + 0.003)


@pytest.mark.parametrize("two_sided", [True, False])
def test_the_three_functions_are_inverse(two_sided: bool) -> None:
    """The detectable gain of n items takes n items and is shown with the power asked for."""
    gain = power.detectable_gain(0.4, 321, alpha=0.01, power=0.9, two_sided=two_sided)
    assert power.items_for_gain(0.4, gain * (1 + 1e-9), alpha=0.01, power=0.9, two_sided=two_sided) == 321
    assert power.power_for_gain(0.4, 321, gain, alpha=0.01, two_sided=two_sided) == pytest.approx(0.9)


def test_without_any_spread() -> None:
    """Two items and any gain do."""
    assert power.items_for_gain(0.0, 0.1) == 2
    assert power.detectable_gain(0.0, 10) == 0.0
    assert power.power_for_gain(0.0, 10, 0.1) == 1.0
    assert power.power_for_gain(0.0, 10, 0.0) == 0.0


def test_what_no_number_of_items_shows_is_refused() -> None:
    """No gain, a loss as large as the margin, and numbers that are none."""
    for wrong in (0.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="no number of items"):
            power.items_for_gain(1.0, wrong)
    with pytest.raises(ValueError, match="no number of items"):
        power.items_for_margin(1.0, 0.01, gain=-0.01)
    with pytest.raises(ValueError, match="standard deviation"):
        power.detectable_gain(math.nan, 10)
    with pytest.raises(ValueError, match="show nothing"):
        power.detectable_gain(1.0, 0)
    with pytest.raises(ValueError, match="alpha"):
        power.items_for_gain(1.0, 0.1, alpha=0.0)
    with pytest.raises(ValueError, match="power"):
        power.items_for_gain(1.0, 0.1, power=1.0)
