"""STS: one item is a pair; correlations of each similarity with gold, as for the task type ``sts``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from embeval.core.records import ItemRecords
from embeval.core.similarity import SIMILARITIES
from embeval.core.specs import SimilarityName
from embeval.metrics.correlation import FAMILY
from embeval.mteb_bridge.categories._category import Gathered, Outcome, Setting, texts


class _Sts:
    task_class = "AbsTaskSTS"
    one_thread = False
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        rows = setting.rows(subset)
        left, right = setting.task.column_names
        yield from zip(texts(rows[left]), texts(rows[right]), texts(rows["score"]), strict=True)

    def metrics(self, setting: Setting) -> Sequence[str]:
        return tuple(dict.fromkeys([setting.task.metadata.main_score, *FAMILY.names()]))

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        gold, vectors, ids = [], [], []
        for subset in setting.subsets:
            rows = setting.rows(subset)
            gold.append(np.array(rows["score"], dtype=np.float64))
            vectors.append(model.vectors(subset))  # of both sides, in the order in which mteb asked for them
            ids += [setting.name(subset, row) for row in range(len(rows))]
        columns = {"gold": np.concatenate(gold)}
        for name in get_args(SimilarityName):
            columns[name] = np.concatenate(
                [SIMILARITIES[name](left, right).astype(np.float64) for left, right in vectors]
            )
        sizes = {subset: len(each) for subset, each in zip(setting.subsets, gold, strict=True)}
        records = ItemRecords(unit="pair", ids=tuple(ids), columns=columns, slices=setting.labels(sizes))
        return Gathered(records=records, counts={"pairs": len(ids)})


CATEGORY = _Sts()
