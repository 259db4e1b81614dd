"""Classification: one item is a text, with its label and what each of mteb's classifiers predicted for it.

``accuracy`` is the share of the classifiers that got it right: of mteb's ten, or of the one that was fitted without
the text's fold where mteb cross-validates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from embeval.core.records import Column, ItemRecords
from embeval.core.words import plural
from embeval.errors import DataError
from embeval.metrics import _fits
from embeval.metrics.classification import ACCURACY, BINARY, FOLD, GOLD, KINDS, PREDICTED, over_folds
from embeval.mteb_bridge.categories._category import Gathered, Outcome, Setting, texts
from embeval.mteb_bridge.categories._probe import content, folds, joined, known_texts

EVERY_ROW = 10**9
"""``samples_per_label`` of a task that takes the whole training split."""


class _Classification:
    task_class = "AbsTaskClassification"
    one_thread = True
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        yield from content(setting, subset, texts)

    def metrics(self, setting: Setting) -> Sequence[str]:
        labels = [set(_labels(setting, subset)) for subset in setting.subsets]
        for subset, each in zip(setting.subsets, labels, strict=True):
            _refuse_hidden(setting, subset, each)
        kinds = [kind for kind in KINDS if kind not in BINARY or all(len(each) == 2 for each in labels)]
        main = setting.task.metadata.main_score
        if setting.task.is_cross_validation:
            folded = [over_folds(kind, setting.task.n_splits) for kind in (main, ACCURACY, *kinds)]
            return tuple(dict.fromkeys([folded[0], ACCURACY, *folded]))
        names = {kind: _fits.name(kind, setting.task.n_experiments) for kind in kinds}
        return tuple(dict.fromkeys([names.get(main, ACCURACY), ACCURACY, *names.values()]))

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        gold = {subset: _labels(setting, subset) for subset in setting.subsets}
        predicted = {subset: outcomes[subset].predictions for subset in setting.subsets}
        code = _codes([*gold.values(), *(each for of_fits in predicted.values() for each in of_fits)])
        columns = []
        for subset in setting.subsets:
            own = np.array([code[label] for label in gold[subset]], dtype=np.float64)
            fits = [np.array([code[label] for label in each], dtype=np.float64) for each in predicted[subset]]
            columns.append(_columns(setting, own, fits))
        names = [name for subset in setting.subsets for name in _shown(setting, subset, gold[subset])]
        sizes = {subset: len(labels) for subset, labels in gold.items()}
        records = ItemRecords(
            unit="text",
            ids=tuple(setting.name(subset, row) for subset in setting.subsets for row in range(sizes[subset])),
            columns=joined(columns),
            slices={"label": tuple(names), **setting.labels(sizes)},
        )
        return Gathered(
            records=records,
            counts={"texts_in_train": known_texts(setting)},
            warnings=(*_one_label(predicted), *(() if setting.task.is_cross_validation else _scarce(setting))),
        )


def _columns(setting: Setting, gold: Column, fits: Sequence[Column]) -> dict[str, Column]:
    """The columns of one sub-set from the codes of its labels and of what each classifier predicted."""
    if not setting.task.is_cross_validation:
        hits = np.stack([each == gold for each in fits]).mean(axis=0, dtype=np.float64)
        return {ACCURACY: hits, GOLD: gold, **dict(zip(_fits.columns(len(fits)), fits, strict=True))}
    fold, predicted = np.empty(len(gold)), np.empty(len(gold))
    for number, (rows, each) in enumerate(zip(folds(setting.task, len(gold)), fits, strict=True)):
        fold[rows], predicted[rows] = number, each
    return {ACCURACY: (predicted == gold).astype(np.float64), GOLD: gold, PREDICTED: predicted, FOLD: fold}


def _labels(setting: Setting, subset: str, split: str | None = None) -> list[Any]:
    return list(setting.rows(subset, split)[setting.task.label_column_name][:])


def _refuse_hidden(setting: Setting, subset: str, labels: set[Any]) -> None:
    """Raises ``DataError`` where nothing can be learned, or where labels were replaced to be kept secret."""
    learned = set(_labels(setting, subset, setting.task.train_split))
    where = f"mteb:{setting.task.metadata.name}, {subset}"
    if len(learned) < 2:
        raise DataError(f"{where}, {setting.task.train_split}: all rows have the label {_first(learned)!r}.")
    if not labels & learned:
        raise DataError(
            f"{where}, {setting.split}: no row has a label that is in {setting.task.train_split}, but "
            f"{_first(labels)!r} or the like: the labels seem to be kept secret."
        )


def _first(labels: set[Any]) -> Any:
    return min(labels, key=str, default=None)


def _codes(labels: Iterable[Iterable[Any]]) -> dict[Any, float]:
    """A number for each label, larger for larger labels: itself where it is a number."""
    distinct = {label for each in labels for label in each}
    if all(isinstance(label, (int, float)) for label in distinct):
        return {label: float(label) for label in distinct}
    return {label: float(place) for place, label in enumerate(sorted(distinct, key=str))}


def _shown(setting: Setting, subset: str, labels: Sequence[Any]) -> list[str]:
    """The labels as the data set calls them, where it has names for its numbers."""
    feature = setting.rows(subset).features[setting.task.label_column_name]
    name = getattr(feature, "int2str", str)
    return [name(label) for label in labels]


def _one_label(predicted: Mapping[str, Sequence[Sequence[Any]]]) -> tuple[str, ...]:
    """A warning where classifiers don't tell texts apart, which accuracy alone may hide."""
    n = sum(len(set(each)) == 1 and len(each) > 1 for of_fits in predicted.values() for each in of_fits)
    return (f"{plural(n, 'classifier')} predicted one label for all texts.",) if n else ()


def _scarce(setting: Setting) -> tuple[str, ...]:
    """A warning where the classifiers saw fewer rows of a label than the task says."""
    wanted = setting.task.samples_per_label
    if wanted >= EVERY_ROW:
        return ()
    scarce = set()
    for subset in setting.subsets:
        labels, rows = np.unique(_labels(setting, subset, setting.task.train_split), return_counts=True)
        scarce |= {(subset, label) for label in labels[rows < wanted].tolist()}
    if not scarce:
        return ()
    few = "1 label has" if len(scarce) == 1 else f"{len(scarce)} labels have"
    return (f"{few} fewer than {wanted} training rows, and the classifiers saw all of these.",)


CATEGORY = _Classification()
