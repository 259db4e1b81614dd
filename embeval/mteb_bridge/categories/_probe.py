"""What categories share in which something is fitted on vectors of a training split: the probes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column
from embeval.mteb_bridge.categories._category import Setting, texts


def content(setting: Setting, subset: str, labels: Callable[[Iterable[Any]], list[str]]) -> Iterator[Sequence[str]]:
    """Texts and labels of the training split and of the one that is evaluated, each split after its name."""
    task = setting.task
    for split in dict.fromkeys([task.train_split, setting.split]):
        rows = setting.rows(subset, split)
        yield [split]
        yield from zip(texts(rows[task.input_column_name]), labels(rows[task.label_column_name]), strict=True)


def folds(task: Any, n: int) -> list[npt.NDArray[np.intp]]:
    """The rows of each fold, as mteb 2.26 draws them for cross-validation."""
    from sklearn.model_selection import KFold

    splitter = KFold(n_splits=task.n_splits, shuffle=True, random_state=task.seed)
    return [rows for _, rows in splitter.split(range(n))]


def joined(parts: Sequence[Mapping[str, Column]]) -> dict[str, Column]:
    """The columns of all sub-sets, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def known_texts(setting: Setting) -> int:
    """Texts that stand in the training split of their sub-set as well; 0 for cross-validation, where all do."""
    task = setting.task
    if task.train_split == setting.split:
        return 0
    n = 0
    for subset in setting.subsets:
        known = set(setting.rows(subset, task.train_split)[task.input_column_name][:])
        n += sum(text in known for text in setting.rows(subset)[task.input_column_name][:])
    return n
