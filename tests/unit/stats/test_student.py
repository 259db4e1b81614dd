"""Student's distribution without scipy, against scipy."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from embeval.stats.student import two_sided


@pytest.mark.parametrize("freedom", [1.0, 1.5, 2.0, 3.0, 5.5, 10.0, 34.0, 99.0, 499.3, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("t", [1e-8, 1e-3, 0.1, 0.5, 1.0, 1.96, -2.5, 4.0, 8.0, 20.0])
def test_two_sided_p(t: float, freedom: float) -> None:
    """Equal to ``2 * scipy.stats.t.sf`` (scipy 1.x) to 1e-8 of its value, far out too."""
    assert two_sided(t, freedom) == pytest.approx(2.0 * stats.t.sf(abs(t), freedom), rel=1e-8, abs=1e-300)


def test_its_limits() -> None:
    """1 where there is no difference, 0 infinitely far out, the normal distribution of infinitely many degrees."""
    assert two_sided(0.0, 7.0) == 1.0
    assert two_sided(math.inf, 7.0) == 0.0
    assert two_sided(1.96, math.inf) == pytest.approx(2.0 * stats.norm.sf(1.96), rel=1e-12)


def test_two_degrees_in_closed_form() -> None:
    """Of two degrees of freedom: 1 - t / √(2 + t²)."""
    assert two_sided(3.0, 2.0) == pytest.approx(1.0 - 3.0 / math.sqrt(11.0), rel=1e-13)
