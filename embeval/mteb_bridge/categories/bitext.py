"""Bitext mining: one item is a sentence, and whether it finds its translation among all of the other side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column, ItemRecords
from embeval.core.words import plural
from embeval.mteb_bridge.categories._category import Gathered, Outcome, Setting

NAMES = {"f1": "bitext_f1", "precision": "bitext_precision", "recall": "bitext_recall", "accuracy": "accuracy"}
"""mteb's name of a score -> ours."""
Places = npt.NDArray[np.int64]


class _Bitext:
    task_class = "AbsTaskBitextMining"
    one_thread = False
    together = True  # where the sub-sets share their columns, mteb encodes them all at once

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        left, right = _sides(setting, subset)
        yield from (("1", text) for text in left)
        yield from (("2", text) for text in right)
        if (pairs := _pairs(setting, subset)) is not None:
            yield from (("pair", str(place)) for place in pairs)

    def metrics(self, setting: Setting) -> Sequence[str]:
        return tuple(dict.fromkeys([NAMES[setting.task.metadata.main_score], *NAMES.values()]))

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        parts, ids, sizes, copies = [], [], {}, 0
        for subset in setting.subsets:
            left, right = _sides(setting, subset)
            pairs = _pairs(setting, subset)
            gold = np.arange(len(left)) if pairs is None else pairs
            found = np.array([each["corpus_id"] for each in _found(setting, subset, outcomes)], dtype=np.int64)
            parts.append(_values(gold, found))
            ids += [setting.name(subset, row) for row in range(len(gold))]
            sizes[subset] = len(gold)
            copies += sum(right[one] == right[other] for one, other in zip(gold, found, strict=True) if one != other)
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Gathered(
            records=ItemRecords(unit="sentence", ids=tuple(ids), columns=columns, slices=setting.labels(sizes)),
            counts={"sentences": len(ids), "found_a_copy": copies},
            warnings=(_told(copies),) if copies else (),
        )


def _sides(setting: Setting, subset: str) -> tuple[Sequence[str], Sequence[str]]:
    task = setting.task
    if task.parallel_subsets:
        left, right = subset.split("-")
        return task.dataset[setting.split][left], task.dataset[setting.split][right]
    left, right = task._DEFAULT_PAIR[0]
    rows = setting.rows(subset)
    return rows[left], rows[right]


def _pairs(setting: Setting, subset: str) -> Places | None:
    """Place of each sentence's translation where the data says it, as BUCC does; else it is its own."""
    if setting.task.parallel_subsets or not isinstance(rows := setting.rows(subset), dict) or "gold" not in rows:
        return None
    return np.array([place for _, place in rows["gold"]], dtype=np.int64)


def _found(setting: Setting, subset: str, outcomes: Mapping[str, Outcome]) -> Sequence[Mapping[str, Any]]:
    """The best of the other side for each sentence."""
    key = subset if setting.task.parallel_subsets else "-".join(setting.task._DEFAULT_PAIR[0])
    found: Sequence[Mapping[str, Any]] = outcomes[subset].predictions[key]
    return found


def _values(gold: Places, found: Places) -> dict[str, Column]:
    """Column -> float64 [n]: of each sentence, its own hit, and the values of its translation as a class."""
    hit = (gold == found).astype(np.float64)
    size = int(max(gold.max(initial=0), found.max(initial=0))) + 1
    hits = np.bincount(gold, hit, minlength=size)[gold]
    wanted, taken = (np.bincount(each, minlength=size)[gold].astype(np.float64) for each in (gold, found))
    return {
        "accuracy": hit,
        "bitext_f1": 2.0 * hits / (wanted + taken),
        "bitext_precision": hits / np.maximum(taken, 1.0),
        "bitext_recall": hits / wanted,
    }


def _told(copies: int) -> str:
    return f"{plural(copies, 'sentence')} found another copy of the very same translation, which counts as wrong."


CATEGORY = _Bitext()
