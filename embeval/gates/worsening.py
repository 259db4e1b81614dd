"""Item columns that give a metric a chosen value: how good results are made worse by a known amount."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from embeval.core.protocols import Metric
from embeval.core.records import ANSWERABLE, Column

Columns = Mapping[str, Column]
Rows = npt.NDArray[np.intp]
GIVEN = ("gold", ANSWERABLE)
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
    has its worst value there; of one that reads an order, the values are exchanged among these items until they stand
    in the reverse of the right order.
    """
    name = next((each for each in metric.columns if each not in GIVEN), metric.columns[0])
    reference = next((columns[each] for each in metric.columns if each != name), None)
    down = value(columns) > target
    scored = rows[np.isfinite(columns[name][rows])]
    order = rng.permutation(scored)
    lost = _extreme(columns[name][scored], target, down)

    def after(n: int) -> dict[str, Column]:
        hit, column = order[:n], columns[name].copy()
        if reference is None:
            column[hit] = lost
        else:
            ascending = np.sort(column[hit])
            column[hit[np.argsort(reference[hit], kind="stable")]] = ascending[::-1] if down else ascending
        return {**columns, name: column}

    def is_there(n: int) -> bool:
        found = value(after(n))
        return found <= target if down else found >= target

    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_there(middle) else (middle + 1, high)
    return after(low)


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


def _extreme(column: Column, target: float, down: bool) -> float:
    """The worst that a column may hold: downwards 0 where nothing is negative, upwards anything."""
    if down:
        return float(column.min(initial=0.0))
    highest = float(column.max(initial=0.0))
    return highest if highest > target else target + abs(target) + 1.0
