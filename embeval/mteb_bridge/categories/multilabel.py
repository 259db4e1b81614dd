"""Classification with several labels: one item is a text, with its labels and those of each of mteb's classifiers.

mteb evaluates at most 3,000 texts of some tasks, drawn so that labels keep their shares; the items are these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embeval.core.records import Column, ItemRecords
from embeval.metrics import _fits
from embeval.metrics.classification import ACCURACY
from embeval.metrics.multilabel import F1, GOLD, MAX_LABELS, MEANS, PREDICTED, to_bits
from embeval.mteb_bridge.categories._category import Gathered, Outcome, Setting
from embeval.mteb_bridge.categories._probe import content, joined, known_texts

Marks = npt.NDArray[np.bool_]


class _Multilabel:
    task_class = "AbsTaskMultilabelClassification"
    one_thread = True
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        yield from content(setting, subset, lambda rows: [repr(list(labels)) for labels in rows])

    def metrics(self, setting: Setting) -> Sequence[str]:
        names = [ACCURACY, *MEANS]
        if len(_all_labels(setting)) <= MAX_LABELS:
            names.append(_fits.name(F1, setting.task.n_experiments))
        main = setting.task.metadata.main_score
        return tuple(dict.fromkeys([*(name for name in names if name.removeprefix("multilabel_") == main), *names]))

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        every = _all_labels(setting)
        columns, ids, sizes = [], [], {}
        evaluated = {subset: _evaluated(setting, subset) for subset in setting.subsets}
        for subset, rows in evaluated.items():
            labels = [_labels(setting, subset)[row] for row in rows]
            own = sorted({label for each in labels for label in each})  # the columns of mteb's predictions
            gold = np.array([[label in each for label in own] for each in map(set, labels)], dtype=np.bool_)
            fits = [np.array(each, dtype=np.bool_) for each in outcomes[subset].predictions]
            columns.append(_columns(gold, fits, [every.index(label) for label in own], len(every)))
            ids += [setting.name(subset, row) for row in rows]
            sizes[subset] = len(rows)
        whole = {subset: len(_labels(setting, subset)) for subset in setting.subsets}
        records = ItemRecords(
            unit="text", ids=tuple(ids), columns=joined(columns), slices=_slices(setting, evaluated, sizes)
        )
        counts = {"texts_in_train": known_texts(setting)}
        if left := sum(whole.values()) - len(ids):
            counts["texts_not_drawn"] = left
        return Gathered(records=records, counts=counts, warnings=_without_f1(every))


def _all_labels(setting: Setting) -> list[Any]:
    """The labels of all texts of all sub-sets."""
    return sorted({label for subset in setting.subsets for each in _labels(setting, subset) for label in each})


def _labels(setting: Setting, subset: str) -> list[Sequence[Any]]:
    return list(setting.rows(subset)[setting.task.label_column_name][:])


def _evaluated(setting: Setting, subset: str) -> list[int]:
    """The rows that mteb evaluates, in its order: drawn again as mteb 2.26 draws them, where there are too many."""
    rows, task = setting.rows(subset), setting.task
    if task.max_eval_samples is None or len(rows) <= task.max_eval_samples:
        return list(range(len(rows)))
    import datasets
    from mteb.abstasks.abstask import _multilabel_subsampling

    numbered = datasets.Dataset.from_dict(
        {"row": list(range(len(rows))), task.label_column_name: _labels(setting, subset)}
    )
    drawn = _multilabel_subsampling(
        datasets.DatasetDict({setting.split: numbered}),
        seed=task.seed,
        splits=[setting.split],
        label=task.label_column_name,
        n_samples=task.max_eval_samples,
    )
    return list(drawn[setting.split]["row"][:])


def _columns(gold: Marks, fits: Sequence[Marks], places: Sequence[int], n_labels: int) -> dict[str, Column]:
    """The columns of one sub-set, from labels bool [n, L] that stand at ``places`` among those of all sub-sets."""
    columns = {
        ACCURACY: np.mean([(each == gold).all(axis=1) for each in fits], axis=0, dtype=np.float64),
        "lrap": np.mean([_ranking_precision(gold, each) for each in fits], axis=0),
        "hamming": np.mean([_shared(gold, each) for each in fits], axis=0),
    }
    if n_labels > MAX_LABELS:
        return columns

    def bits(marks: Marks) -> Column:
        spread = np.zeros((len(marks), n_labels), dtype=np.bool_)
        spread[:, places] = marks
        return to_bits(spread)

    names = (GOLD, *_fits.columns(len(fits), PREDICTED))
    return {**columns, **{name: bits(marks) for name, marks in zip(names, (gold, *fits), strict=True)}}


def _ranking_precision(gold: Marks, predicted: Marks) -> Column:
    """[n]: of each gold label, the share of gold among the labels that rank at least as high; the mean over them.

    Predicted labels rank first, all alike, and all others rank after them, all alike. A text whose gold is no label,
    or every label, has 1.
    """
    n_labels = gold.shape[1]
    right, chosen, wanted = (each.sum(axis=1).astype(np.float64) for each in (gold & predicted, predicted, gold))
    first = np.divide(right**2, chosen, out=np.zeros(len(gold)), where=chosen > 0.0)
    total = first + (wanted - right) * wanted / n_labels
    one = (wanted == 0.0) | (wanted == n_labels)
    return np.asarray(np.where(one, 1.0, total / np.maximum(wanted, 1.0)))


def _shared(gold: Marks, predicted: Marks) -> Column:
    """[n]: labels that both have, of those that either has; 1 where neither has any."""
    both, either = (gold & predicted).sum(axis=1), (gold | predicted).sum(axis=1)
    return np.asarray(np.where(either == 0, 1.0, both / np.maximum(either, 1)))


def _slices(
    setting: Setting, evaluated: Mapping[str, Sequence[int]], sizes: Mapping[str, int]
) -> dict[str, tuple[str, ...]]:
    """The slices of the rows that were evaluated."""
    own = {
        name: tuple(of_subset[subset][row] for subset, rows in evaluated.items() for row in rows)
        for name, of_subset in setting.slices.items()
    }
    return {**replace(setting, slices={}).labels(sizes), **own}


def _without_f1(labels: Sequence[Any]) -> tuple[str, ...]:
    if len(labels) <= MAX_LABELS:
        return ()
    return (f"No F1: it is computed for up to {MAX_LABELS} labels, and there are {len(labels)}.",)


CATEGORY = _Multilabel()
