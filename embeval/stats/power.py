"""How many items a comparison takes, and what a number of items can show.

Everything is about a mean of n differences with standard deviation ``spread`` and a normal distribution of that mean:
the true gain d is shown with probability Φ(d √n / spread - z), z being the quantile of the test. For a metric that is
no mean, ``spread`` is its standard error times √n.

Source: Chow, Shao & Wang, Sample Size Calculations in Clinical Research, 2008, chapter 3 (paired and one-sample design,
superiority and non-inferiority).
"""

from __future__ import annotations

import math
from statistics import NormalDist

NORMAL = NormalDist()
USUAL_POWER = 0.8
"""Four times in five."""


def items_for_gain(
    spread: float, gain: float, *, alpha: float = 0.05, power: float = USUAL_POWER, two_sided: bool = True
) -> int:
    """Items with which a true ``gain`` is shown with probability ``power`` by a test at level ``alpha``; at least 2.

    Raises ``ValueError`` for a gain of 0 or less, which no number of items shows.
    """
    if not gain > 0.0:
        raise ValueError(f"no number of items shows a gain of {gain}")
    return max(2, math.ceil((_reach(alpha, power, two_sided) * _checked(spread) / gain) ** 2))


def items_for_margin(
    spread: float, margin: float, *, gain: float = 0.0, alpha: float = 0.05, power: float = USUAL_POWER
) -> int:
    """Items with which a loss below ``margin`` is shown with probability ``power``; at least 2.

    ``gain`` is the true gain, 0 for a candidate that is as good as the baseline. The test is one-sided at level
    ``alpha``.

    Raises ``ValueError`` for a true loss as large as the margin or larger.
    """
    if not gain + margin > 0.0:
        raise ValueError(f"no number of items shows a loss below {margin} where it is {-gain}")
    return items_for_gain(spread, gain + margin, alpha=alpha, power=power, two_sided=False)


def detectable_gain(
    spread: float, n_items: int, *, alpha: float = 0.05, power: float = USUAL_POWER, two_sided: bool = True
) -> float:
    """The smallest true gain that ``n_items`` show with probability ``power`` by a test at level ``alpha``."""
    if n_items < 1:
        raise ValueError(f"{n_items} items show nothing")
    return _reach(alpha, power, two_sided) * _checked(spread) / math.sqrt(n_items)


def power_for_gain(spread: float, n_items: int, gain: float, *, alpha: float = 0.05, two_sided: bool = True) -> float:
    """Probability that ``n_items`` show a true ``gain`` as one, by a test at level ``alpha``.

    For non-inferiority: one-sided, with the true gain plus the margin as ``gain``.
    """
    if n_items < 1:
        raise ValueError(f"{n_items} items show nothing")
    if _checked(spread) == 0.0:
        return float(gain > 0.0)
    return NORMAL.cdf(gain * math.sqrt(n_items) / spread - _quantile(alpha, two_sided))


def _reach(alpha: float, power: float, two_sided: bool) -> float:
    if not 0.0 < power < 1.0:
        raise ValueError(f"power must lie in (0, 1), not {power}")
    reach = _quantile(alpha, two_sided) + NORMAL.inv_cdf(power)
    if reach <= 0.0:
        raise ValueError(f"a test at level {alpha} has a power of {power} without any gain")
    return reach


def _quantile(alpha: float, two_sided: bool) -> float:
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie in (0, 1), not {alpha}")
    return NORMAL.inv_cdf(1.0 - (alpha / 2.0 if two_sided else alpha))


def _checked(spread: float) -> float:
    if not 0.0 <= spread < math.inf:
        raise ValueError(f"a standard deviation is finite and not negative, not {spread}")
    return spread
