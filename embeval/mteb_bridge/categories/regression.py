"""Regression: one item is a text, with its value and what each of mteb's linear regressions predicted for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from embeval.core.records import ItemRecords
from embeval.metrics import _fits
from embeval.metrics.regression import ERRORS, GOLD, KINDS, TAU
from embeval.mteb_bridge.categories._category import Gathered, Outcome, Setting, texts
from embeval.mteb_bridge.categories._probe import content, joined, known_texts


class _Regression:
    task_class = "AbsTaskRegression"
    one_thread = True
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        yield from content(setting, subset, lambda values: texts(map(float, values)))

    def metrics(self, setting: Setting) -> Sequence[str]:
        names = {kind: _fits.name(kind, setting.task.n_experiments) for kind in (TAU, *KINDS)}
        names |= {kind: kind for kind in ERRORS}
        return tuple(dict.fromkeys([names[setting.task.metadata.main_score], *names.values()]))

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        columns, sizes = [], {}
        for subset in setting.subsets:
            gold = np.array(setting.rows(subset)[setting.task.label_column_name][:], dtype=np.float64)
            fits = [np.array(each, dtype=np.float64).reshape(len(gold)) for each in outcomes[subset].predictions]
            errors = [each - gold for each in fits]
            columns.append(
                {
                    "mse": np.mean([each**2 for each in errors], axis=0),
                    "mae": np.mean([np.abs(each) for each in errors], axis=0),
                    GOLD: gold,
                    **dict(zip(_fits.columns(len(fits)), fits, strict=True)),
                }
            )
            sizes[subset] = len(gold)
        records = ItemRecords(
            unit="text",
            ids=tuple(setting.name(subset, row) for subset in setting.subsets for row in range(sizes[subset])),
            columns=joined(columns),
            slices=setting.labels(sizes),
        )
        return Gathered(records=records, counts={"texts_in_train": known_texts(setting)})


CATEGORY = _Regression()
