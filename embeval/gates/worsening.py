"""Item columns that give a metric a chosen value: how good results are made worse by a known amount."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric
from embeval.core.records import ANSWERABLE, Column
from embeval.metrics import RatioOf

Columns = Mapping[str, Column]
Rows = npt.NDArray[np.intp]
Arrangement = Callable[[Column], Column]
GIVEN = ("gold", "fold", ANSWERABLE)
"""Columns that belong to the data and not to the system, so that no system can make them worse."""


def on_some_items(
    columns: Columns,
    metric: Metric,
    rows: Rows,
    target: float,
    *,
    value: Callable[[Columns], float],
    rng: np.random.Generator,
) -> dict[str, Column]:
    """Columns float64 [n] with which ``value`` is at ``target`` or just beyond it, where that can be.

    Everything is lost on as few of ``rows`` as it takes, drawn at random, and the others stay. A metric that is a mean
    has its worst value there; of one that reads several columns, the values of each are exchanged among these items
    until they stand to what the data has as is worst for it: in the reverse of the right order, or moved by half. A
    ratio of sums has its worst value on these items by what it is a sum of, and they count as much as before.
    """
    own = [each for each in metric.columns if each not in GIVEN] or list(metric.columns[:1])
    reference = next((columns[each] for each in metric.columns if each in GIVEN and each not in own), None)
    if isinstance(metric, RatioOf):
        own = [metric.numerator]
    elif reference is None and len(own) > 1:
        reference, own = columns[own[1]], own[:1]
    down = value(columns) > target
    read = metric.columns if isinstance(metric, RatioOf) else own
    scored = rows[np.isfinite(np.stack([columns[name][rows] for name in read])).all(axis=0)]
    order = rng.permutation(scored)

    def after(n: int, arranged: Arrangement) -> dict[str, Column]:
        hit, moved = order[:n], {}
        for name in own:
            moved[name] = columns[name].copy()
            if isinstance(metric, RatioOf):
                moved[name][hit] = columns[metric.denominator][hit] * _rate(metric, target, down)
            elif reference is None:
                moved[name][hit] = _extreme(columns[name][scored], target, down)
            else:
                moved[name][hit[np.argsort(reference[hit], kind="stable")]] = arranged(np.sort(columns[name][hit]))
        return {**columns, **moved}

    found = {each: value(after(len(order), each)) for each in (ARRANGEMENTS if reference is not None else (_rising,))}
    worst = (min if down else max)(found, key=lambda each: found[each])

    def is_there(n: int) -> bool:
        reached = value(after(n, worst))
        return reached <= target if down else reached >= target

    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_there(middle) else (middle + 1, high)
    return after(low, worst)


def on_every_item(
    columns: Columns,
    metric: Metric,
    rows: Rows,
    target: float,
    *,
    value: Callable[[Columns], float],
    rng: np.random.Generator,
    noise: float,
) -> dict[str, Column]:
    """Columns float64 [n] with which a metric that is a mean is at ``target``.

    Each of ``rows`` moves by the same amount and by noise of that standard deviation, which is 0 on average.
    """
    (name,) = metric.columns
    column = columns[name].copy()
    scored = rows[np.isfinite(column[rows])]
    drawn = rng.normal(0.0, noise, len(scored))
    column[scored] += target - value(columns) + drawn - drawn.mean()
    return {**columns, name: column}


def _rising(ascending: Column) -> Column:
    return ascending


def _falling(ascending: Column) -> Column:
    return ascending[::-1]


def _moved_by_half(ascending: Column) -> Column:
    """Of labels the middle one stays where all are reversed, and here it doesn't."""
    return np.roll(ascending, len(ascending) // 2)


ARRANGEMENTS: tuple[Arrangement, ...] = (_falling, _moved_by_half, _rising)
"""The orders in which values may stand to those of the data, of which one is the worst for a metric."""


def _rate(metric: RatioOf, target: float, down: bool) -> float:
    """The same of a ratio, per unit of its denominator: downwards nothing, upwards what makes it twice as large."""
    return 0.0 if down else metric.at(_beyond(target))


def _extreme(column: Column, target: float, down: bool) -> float:
    """The worst that a column may hold: downwards 0 where nothing is negative, upwards anything."""
    if down:
        return float(column.min(initial=0.0))
    highest = float(column.max(initial=0.0))
    return highest if highest > target else _beyond(target)


def _beyond(target: float) -> float:
    return target + abs(target) + 1.0
