"""Clustering as mteb had it first: one item is a set of texts with labels, clustered by k-means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from embeval.core.records import ItemRecords
from embeval.core.words import plural
from embeval.errors import EvaluationError
from embeval.metrics.clustering import NAMES
from embeval.mteb_bridge.categories import _partitions
from embeval.mteb_bridge.categories._category import Gathered, Outcome, Setting, texts


class _ClusteringLegacy:
    task_class = "AbsTaskClusteringLegacy"
    one_thread = True
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        rows = setting.rows(subset)
        for column in (setting.task.input_column_name, setting.task.label_column_name):
            yield [column]
            for row in rows[column]:
                yield texts(row)

    def metrics(self, setting: Setting) -> Sequence[str]:
        column = setting.task.label_column_name
        sets = (labels for subset in setting.subsets for labels in setting.rows(subset)[column][:])
        _partitions.refuse_without_choice(setting.task.metadata.name, sets)
        return tuple(dict.fromkeys([setting.task.metadata.main_score, *NAMES]))

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        ids: list[str] = []
        scored: list[dict[str, float]] = []
        sizes: dict[str, int] = {}
        n_documents = n_without_choice = 0
        for subset in setting.subsets:
            sets = setting.rows(subset)[setting.task.label_column_name][:]
            clusters = iter(outcomes[subset].predictions)  # of the sets that leave a choice, in their order
            for gold in sets:
                alike = len(set(gold)) < 2
                n_without_choice += alike
                scored.append(dict.fromkeys(NAMES, 1.0) if alike else _partitions.measures(gold, next(clusters)))
            if next(clusters, None) is not None:
                raise EvaluationError(f"{setting.task.metadata.name}: mteb clustered more sets than there are.")
            ids += [setting.name(subset, row) for row in range(len(sets))]
            sizes[subset] = len(sets)
            n_documents += sum(map(len, sets))
        records = ItemRecords(
            unit="set", ids=tuple(ids), columns=_partitions.columns(scored), slices=setting.labels(sizes)
        )
        note = f"Intervals speak of {plural(len(ids), 'set')} of documents, each clustered once."
        return Gathered(
            records=records,
            counts={"sets": len(ids), "documents": n_documents},
            warnings=(*_partitions.without_choice(n_without_choice, "set"), note),
        )


CATEGORY = _ClusteringLegacy()
