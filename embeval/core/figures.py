"""Numbers as reports show them: rounded, never so that a difference looks like none."""

from __future__ import annotations

import math

DECIMALS = 4
"""Decimals of scores and of all that is as small."""
LARGE = 100.0
"""From here on two decimals, and none where there is nothing behind the point."""
HUGE = 1e9
"""From here on a power of ten."""


def figure(value: float | None) -> str:
    """``0.8123``, ``12,345.60``, ``384``, ``2.1e-06`` where four decimals would show a zero; ``—`` for no value."""
    if value is None or not math.isfinite(value):
        return "—"
    size = abs(value)
    if size >= HUGE or 0.0 < size < 0.5 * 10**-DECIMALS:
        return f"{value:.1e}" if size < 1.0 else f"{value:.4e}"
    if size >= LARGE:
        return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"
    return f"{value + 0.0:.{DECIMALS}f}"  # adding zero turns -0.0 into 0.0


def signed(value: float | None) -> str:
    """The same with its sign: ``+0.0123``, ``-0.0041``, ``0.0000``."""
    return f"+{figure(value)}" if value is not None and 0.0 < value < math.inf else figure(value)


def interval(low: float | None, high: float | None) -> str:
    """``[-0.0102, 0.0020]``, or nothing where an end is missing."""
    return "" if low is None or high is None else "[{}, {}]".format(*ends(low, high))


def ends(low: float, high: float) -> tuple[str, str]:
    """Both ends of an interval, with as many decimals as the larger one has: ``-97.80`` beside ``-130.47``."""
    sizes = sorted((abs(low), abs(high)))
    if sizes[0] < LARGE <= sizes[1] < HUGE:
        return f"{low + 0.0:,.2f}", f"{high + 0.0:,.2f}"
    return figure(low), figure(high)


def probability(p: float | None) -> str:
    """A p-value: ``0.0312``, ``< 0.0001``, or ``—``."""
    if p is None or not math.isfinite(p):
        return "—"
    return "< 0.0001" if p < 10**-DECIMALS else f"{p:.{DECIMALS}f}"


def percent(share: float) -> str:
    """``95 %``, ``97.5 %``."""
    return f"{share * 100:.4g} %"


def rank(place: int | None) -> str:
    """``3``, or ``not ranked``."""
    return "not ranked" if place is None else str(place)


def size(n_bytes: int) -> str:
    """Bytes as people read them: ``90.9 MB``."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.1f} {unit}"
    return f"{n_bytes} B"


def duration(seconds: float) -> str:
    """``7.5 hours``, ``12.0 minutes``, ``40.0 seconds``, ``less than a second``."""
    if seconds < 1.0:
        return "less than a second"
    if seconds < 60.0:
        return f"{seconds:.1f} seconds"
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600.0 else f"{seconds / 60:.1f} minutes"
