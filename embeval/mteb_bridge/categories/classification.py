"""Classification: one item is a text; its ``accuracy`` is the share of mteb's ten classifiers that got it right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from embeval.core.records import ItemRecords
from embeval.mteb_bridge.categories._category import Gathered, Outcome, Setting, texts


class _Classification:
    task_class = "AbsTaskClassification"
    one_thread = True
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        task = setting.task
        for split in dict.fromkeys([task.train_split, setting.split]):
            rows = setting.rows(subset, split)
            yield [split]
            yield from zip(texts(rows[task.input_column_name]), texts(rows[task.label_column_name]), strict=True)

    def metrics(self, setting: Setting) -> Sequence[str]:
        return ("accuracy",)

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        hits, ids, named = [], [], []
        for subset in setting.subsets:
            gold = setting.rows(subset)[setting.task.label_column_name][:]
            predicted = np.array(outcomes[subset].predictions)
            hits.append((predicted == np.array(gold)).mean(axis=0, dtype=np.float64))
            ids += [setting.name(subset, row) for row in range(len(gold))]
            named += [str(label) for label in gold]
        sizes = {subset: len(each) for subset, each in zip(setting.subsets, hits, strict=True)}
        records = ItemRecords(
            unit="text",
            ids=tuple(ids),
            columns={"accuracy": np.concatenate(hits)},
            slices={"label": tuple(named), **setting.labels(sizes)},
        )
        return Gathered(records=records)


CATEGORY = _Classification()
