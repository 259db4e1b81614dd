"""Clustering: one item is a draw of documents, clustered by k-means, at one level of the labels.

mteb keeps the clusters of each draw and not which documents it drew, so the draws are made again from its seed, and
refused where they don't lead to the V-measure that it had.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from embeval.core.records import ItemRecords
from embeval.core.words import plural
from embeval.errors import EvaluationError
from embeval.metrics.clustering import NAMES
from embeval.mteb_bridge.categories import _partitions
from embeval.mteb_bridge.categories._category import Gathered, Outcome, Setting, texts

SAME = 1e-9
"""Largest difference of two V-measures of the same draw: the sums run in another order."""
L = TypeVar("L")
ABSENT = -1
"""mteb's label of a document that has none at a level."""


@dataclass
class _Items:
    """Draws of all sub-sets, one after the other."""

    ids: list[str] = field(default_factory=list)
    scored: list[dict[str, float]] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    draws: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    variances: list[float] = field(default_factory=list)
    """Of the V-measure over the draws of one sub-set and level."""
    n_without_choice: int = 0
    n_absent: int = 0


class _Clustering:
    task_class = "AbsTaskClustering"
    one_thread = True
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        rows = setting.rows(subset)
        for text, label in zip(rows[setting.task.input_column_name], _labels(setting, subset), strict=True):
            yield texts([text, *label])

    def metrics(self, setting: Setting) -> Sequence[str]:
        whole = (map(tuple, _labels(setting, subset)) for subset in setting.subsets)
        _partitions.refuse_without_choice(setting.task.metadata.name, whole)
        return tuple(dict.fromkeys([setting.task.metadata.main_score, *NAMES]))

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        drawing = draws(setting.task)  # one stream for all sub-sets
        items, n_embedded = _Items(), 0
        for subset in setting.subsets:
            labels = embedded(setting.task, _labels(setting, subset), drawing)
            n_embedded += len(labels)
            self._subset(setting, subset, labels, drawing, outcomes[subset], items)
        several = len(set(items.levels)) > 1
        slices = setting.labels(items.sizes)
        records = ItemRecords(
            unit="draw",
            ids=tuple(items.ids),
            columns=_partitions.columns(items.scored),
            slices={"level": tuple(items.levels), **slices} if several else slices,
            # A resample has to hold as many draws of each level as there are, for levels don't score alike.
            clusters=tuple(items.draws) if several else None,
        )
        return Gathered(
            records=records,
            counts={
                "draws": len(items.ids),
                "documents": sum(len(setting.rows(subset)) for subset in setting.subsets),
                "documents_embedded": n_embedded,
            },
            warnings=(*_partitions.without_choice(items.n_without_choice, "level"), *_notes(items)),
        )

    def _subset(
        self,
        setting: Setting,
        subset: str,
        labels: Sequence[Sequence[Any]],
        drawing: random.Random,
        outcome: Outcome,
        items: _Items,
    ) -> None:
        """Appends the draws of one sub-set."""
        task, before = setting.task, len(items.ids)
        found: Mapping[str, Sequence[Sequence[int]]] = outcome.predictions
        for level, name in enumerate(found):
            gold, n_absent = _of_level(labels, level)
            items.n_absent += n_absent
            items.n_without_choice += len(np.unique(gold)) < 2
            for draw, clusters in enumerate(found[name]):
                drawn = drawing.choices(range(len(gold)), k=task.max_documents_per_cluster)
                scored = _partitions.measures(gold[drawn], clusters)
                if abs(scored["v_measure"] - outcome.scores["v_measures"][name][draw]) > SAME:
                    raise EvaluationError(
                        f"{task.metadata.name}: which documents were drawn can't be followed "
                        f"({subset}, level {level}, draw {draw}), so its V-measure can't be computed again."
                    )
                items.scored.append(scored)
                place = f"level-{level}/draw-{draw}" if len(found) > 1 else f"draw-{draw}"
                items.ids.append(setting.name(subset, place))
                items.levels.append(str(level))
                items.draws.append(setting.name(subset, f"draw-{draw}"))
            items.variances.append(float(np.var(outcome.scores["v_measures"][name])))
        items.sizes[subset] = len(items.ids) - before


def _labels(setting: Setting, subset: str) -> list[Sequence[Any]]:
    """Labels of each document, one per level."""
    labels = setting.rows(subset)[setting.task.label_column_name][:]
    return [label if isinstance(label, list) else [label] for label in labels]


def draws(task: Any) -> random.Random:
    """The random stream from which mteb draws documents, at its beginning."""
    return random.Random(task.seed)  # noqa: S311 - it has to be mteb's


def embedded(task: Any, labels: list[L], drawing: random.Random) -> list[L]:
    """Labels of the documents that mteb embeds, in its order: all of them, or a sample."""
    if task.max_fraction_of_documents_to_embed is not None:
        limit = int(task.max_fraction_of_documents_to_embed * len(labels))
    elif task.max_document_to_embed is not None:
        limit = task.max_document_to_embed
    else:
        return labels
    return [labels[row] for row in drawing.sample(range(len(labels)), k=min(len(labels), limit))]


def _of_level(labels: Sequence[Sequence[Any]], level: int) -> tuple[npt.NDArray[Any], int]:
    """([n] labels of a level as mteb has them, how many of these only say that there is none)."""
    gold = np.array([label[level] if len(label) > level else ABSENT for label in labels])
    if gold.dtype.kind in "iuf":
        return gold[gold != ABSENT], 0
    # Among text the sign for "none" has become text too, and mteb takes it for a label.
    return gold, sum(len(label) <= level for label in labels)


def _notes(items: _Items) -> Iterator[str]:
    """What a reader of the numbers should know."""
    per_level = len(set(items.draws)) // len(items.sizes)
    deviation = math.sqrt(np.mean(items.variances))
    yield (
        f"Intervals speak of {plural(per_level, 'draw')} of the same documents, not of other documents "
        f"(v_measure over draws: standard deviation {deviation:.4f})."
    )
    if n := items.n_absent:
        yield f"{plural(n, 'document')} without a label at some level: mteb 2.26 takes them for a label of their own."


CATEGORY = _Clustering()
