"""What a clustering of labelled texts scores, for the categories of clustering."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column
from embeval.core.words import have, plural
from embeval.errors import DataError
from embeval.metrics.clustering import NAMES


def measures(gold: Sequence[Any] | npt.NDArray[Any], found: Sequence[int]) -> dict[str, float]:
    """Metric -> value of one clustering, by the names of ``metrics.clustering``."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import cluster

    homogeneity, completeness, v_measure = cluster.homogeneity_completeness_v_measure(gold, found)
    table = cluster.contingency_matrix(gold, found)
    values = (
        v_measure,
        cluster.adjusted_mutual_info_score(gold, found),
        cluster.adjusted_rand_score(gold, found),
        homogeneity,
        completeness,
        table[linear_sum_assignment(table, maximize=True)].sum() / len(gold),
    )
    # Sums of logarithms may end a rounding error above 1.
    return {name: min(float(value), 1.0) for name, value in zip(NAMES, values, strict=True)}


def columns(scored: Sequence[Mapping[str, float]]) -> dict[str, Column]:
    """float64 [n] per metric, of n clusterings."""
    return {name: np.array([each[name] for each in scored], dtype=np.float64) for name in NAMES}


def refuse_without_choice(name: str, partitions: Iterable[Iterable[Any]]) -> None:
    """Raises ``DataError`` where each of the labellings has fewer than two labels: any model has V-measure 1."""
    if all(len(set(labels)) < 2 for labels in partitions):
        raise DataError(f"mteb:{name}: all documents have the same label, so there is nothing to tell apart.")


def without_choice(n: int, what: str) -> tuple[str, ...]:
    """What a reader should know where ``n`` clusterings had fewer than two labels to tell apart; nothing for none."""
    if not n:
        return ()
    return (f"{plural(n, what)} {have(n)} fewer than two labels: v_measure 1 there, whatever the model.",)
