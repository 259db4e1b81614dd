"""``classification``: how well a simple classifier tells the labels of texts from their embeddings, as in mteb.

One item is a text of the split that is evaluated; the classifier is fitted on some texts per label of the training
split, ten times over, or on all of them, or in k folds of one split. The files have the columns ``text`` and
``label``, and may have ``id``; columns that group the texts become slices. Run by mteb's ``AbsTaskClassification``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.specs import TaskSpec
from embeval.data import files
from embeval.errors import ConfigError, DataError, did_you_mean
from embeval.metrics import _fits
from embeval.metrics.classification import ACCURACY, KINDS, over_folds
from embeval.mteb_bridge.categories._probe import folds
from embeval.mteb_bridge.categories.classification import EVERY_ROW
from embeval.mteb_bridge.loading import Loaded, eager
from embeval.mteb_bridge.tasks import _own, _pair_rows
from embeval.mteb_bridge.tasks._bridged import BridgedTask
from embeval.mteb_bridge.tasks._pair_rows import Table
from embeval.tasks import _options

EXPERIMENTS = 10
"""Classifiers that mteb fits, each on texts drawn anew."""
LEAST = 2
"""Fewest training rows of a label: of one alone nothing general can be learned."""


@dataclass(frozen=True, kw_only=True)
class ClassificationColumns:
    """Where the parts of a row stand in the file."""

    __pydantic_config__ = BORDER

    text: str = "text"
    """Column of the text."""
    label: str = "label"
    """Column of the label: text or a whole number."""
    id: str = "id"
    """Column of the id; where the file has none, texts are numbered from 1."""


@dataclass(frozen=True, kw_only=True)
class ClassificationOptions:
    """Options of a classification task."""

    __pydantic_config__ = BORDER

    columns: ClassificationColumns = field(default_factory=ClassificationColumns)
    """Names of the columns `text`, `label` and `id`, where the files have others."""
    samples_per_label: int | None = 8
    """Training texts per label that a classifier is fitted on (mteb: 8, 16 or 32); null: all."""
    experiments: int | None = None
    """How often such texts are drawn and a classifier is fitted; null: 10 as in mteb, or 1 where all are taken."""
    folds: int | None = None
    """Folds of one split, each predicted by a classifier fitted on the others; null: there is a training split."""
    train_split: str = "train"
    """Split that classifiers are fitted on: a file beside that of the split that is evaluated."""
    classifier: Literal["logistic_regression", "knn"] = "logistic_regression"
    """Logistic regression (at most 100 iterations, as in mteb), or the nearest neighbours' label."""
    neighbors: int = 5
    """Neighbours that `knn` asks."""

    def __post_init__(self) -> None:
        bounds = {
            "samples_per_label": (1, EVERY_ROW - 1),
            "experiments": (1, 99),
            "folds": (2, 99),
            "neighbors": (1, 1000),
        }
        for name, (least, most) in bounds.items():
            if (value := getattr(self, name)) is not None and not least <= value <= most:
                raise ValueError(f"{name} must be from {least} to {most}, not {value}")
        if self.folds is not None and self.experiments is not None:
            raise ValueError("with folds, each fold is one experiment: leave experiments out")

    @property
    def fits(self) -> int:
        """Classifiers that predict each text, where there are no folds."""
        return self.experiments or (1 if self.samples_per_label is None else EXPERIMENTS)

    def metric(self, kind: str) -> str:
        """The name of a measure under these options."""
        if self.folds is not None:
            return over_folds(kind, self.folds)
        return kind if kind == ACCURACY else _fits.name(kind, self.fits)


@dataclass(frozen=True)
class ClassificationTask(BridgedTask):
    """Classification on files of labelled texts."""

    path: Path
    options: ClassificationOptions

    def load(self) -> Loaded:
        """The texts, as a task of mteb. Raises ``DataError`` with file and line."""
        split, train_split = self.spec.dataset.split, self.options.train_split
        file = _file(self.path, split)
        table = self._table(file)
        train_file, train = file, table
        if self.options.folds is None:
            train_file = _file(self.path, train_split)
            if train_file == file:
                raise DataError(
                    f"{file}: there is one file, and classifiers need texts of their own. Call it {split}.… and put "
                    f"{train_split}.… beside it, or let 'folds' of it take turns."
                )
            train = self._table(train_file)
        self._check(train_file, train, file, table)
        order = sorted(set(train.columns["label"]), key=_by_value)
        code = {label: place for place, label in enumerate(order)}
        from datasets import Dataset, DatasetDict

        splits = {split: table} if self.options.folds is not None else {train_split: train, split: table}
        found = _own.loaded(
            self.spec.name,
            task_class="AbsTaskClassification",
            type_name="Classification",
            main_score=ACCURACY,
            dataset=DatasetDict(
                {
                    name: Dataset.from_dict(
                        {"text": rows.columns["text"], "label": [code[label] for label in rows.columns["label"]]}
                    )
                    for name, rows in splits.items()
                }
            ),
            split=split,
            attributes=self._attributes(),
            ids=table.ids,
            slices={**table.slices, "label": tuple(table.columns["label"])},
        )
        if self.options.folds is not None:
            _check_folds(file, table.columns["label"], folds(found.setting.task, len(table.ids)))
        eager(found.setting.task)
        return found

    def protocol(self, payload: Loaded) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        options = self.options
        protocol: dict[str, strict_json.Json] = {
            **super().protocol(payload),
            "rows": _own.rows_hash(payload.setting),
            "samples_per_label": options.samples_per_label,
            "classifier": options.classifier,
        }
        protocol |= {"experiments": options.fits} if options.folds is None else {"folds": options.folds}
        return protocol | ({"neighbors": options.neighbors} if options.classifier == "knn" else {})

    def _table(self, file: Path) -> Table:
        return _pair_rows.read(file, self.options.columns, {"text": _text, "label": files.identifier})

    def _attributes(self) -> dict[str, Any]:
        """What mteb's class is told."""
        options, split = self.options, self.spec.dataset.split
        found: dict[str, Any] = {
            "samples_per_label": options.samples_per_label or EVERY_ROW,
            "n_experiments": options.fits,
            "train_split": options.train_split if options.folds is None else split,
            "is_cross_validation": options.folds is not None,
            "n_splits": options.folds or 0,
            "_calculate_scores": staticmethod(_accuracy),
        }
        if options.classifier == "knn":
            from sklearn.neighbors import KNeighborsClassifier

            found["evaluator_model"] = KNeighborsClassifier(n_neighbors=options.neighbors)
        return found

    def _check(self, train_file: Path, train: Table, file: Path, table: Table) -> None:
        """Raises ``DataError`` for labels that can't be learned, and for too few rows."""
        rows = Counter(train.columns["label"])
        if len(rows) < 2:
            raise DataError(
                f"{train_file}: all {len(train.ids)} texts have the label {next(iter(rows))!r}; two are needed."
            )
        for line, label in zip(train.lines, train.columns["label"], strict=True):
            if rows[label] < LEAST:
                raise DataError(
                    f"{train_file}, line {line}: only this text has the label {label!r}; at least {LEAST} are needed "
                    "to learn it."
                )
        for line, label in zip(table.lines, table.columns["label"], strict=True):
            if label not in rows:
                raise DataError(
                    f"{file}, line {line}: no text of {train_file.name} has the label {label!r}. "
                    f"{did_you_mean(label, rows)}".rstrip()
                )
        n_folds, options = self.options.folds, self.options
        if n_folds is not None and n_folds > len(table.ids):
            raise DataError(f"{file}: {n_folds} folds need at least as many texts, and there are {len(table.ids)}.")
        if options.classifier == "knn" and self._fitted_on(rows, len(table.ids)) < options.neighbors:
            raise DataError(
                f"{train_file}: too few texts to ask {options.neighbors} neighbours (neighbors). A classifier is "
                f"fitted on {options.samples_per_label or 'all'} per label, and there are {len(rows)} labels."
            )

    def _fitted_on(self, rows: Counter[str], n: int) -> int:
        """Fewest texts that a classifier is fitted on."""
        per_label = self.options.samples_per_label or EVERY_ROW
        outside = 0 if self.options.folds is None else -(-n // self.options.folds)  # the largest fold
        return max(sum(min(per_label, each) for each in rows.values()) - outside, 0)


def _check_folds(file: Path, labels: Sequence[str], rows_of_folds: Sequence[npt.NDArray[np.intp]]) -> None:
    """Raises ``DataError`` where a fold leaves one label to be fitted on."""
    taken = len(labels) - len(rows_of_folds[0])  # mteb 2.26 takes no more texts for later folds than for the first
    for rows in rows_of_folds:
        left = set(np.delete(np.array(labels, dtype=np.object_), rows)[:taken].tolist())
        if len(left) < 2:
            raise DataError(
                f"{file}: all texts outside one of {len(rows_of_folds)} folds have the label {min(left)!r}, and a "
                "classifier needs two. Add texts of the others, or take more folds."
            )


def _accuracy(y_test: Sequence[int], y_pred: Sequence[int]) -> dict[str, float]:
    """What stands for mteb's scores of a classifier.

    All numbers are computed from its predictions; sklearn's average precision fails where neither of two labels is 1.
    """
    return {ACCURACY: float(np.mean(np.array(y_test) == np.array(y_pred)))}


def _text(row: files.Row, path: Path, name: str) -> str:
    text = files.text(row, path, name)
    if not text.strip():
        raise DataError(f"{path}, line {row.line}: {name!r} is empty: a text without words has no label to be found.")
    return text


def _by_value(label: str) -> tuple[int, int, str]:
    """Whole numbers by their value, then words: the larger label is the positive one of two."""
    try:
        return (0, int(label), label)
    except ValueError:
        return (1, 0, label)


def _file(path: Path, split: str) -> Path:
    """The file of a split: in a folder the one of its name, else the one beside ``path``."""
    if not path.is_dir():
        return files.of_split(path, split)
    there = sorted(each for each in path.iterdir() if files.kind_or_none(each) is not None)
    found = [each for each in there if each.name.partition(".")[0] == split]
    if len(found) > 1:
        raise DataError(f"{found[0]} and {found[1].name} are both there, and may differ. Remove one.")
    if found:
        return found[0]
    shown = ", ".join(each.name for each in there) or "none"
    raise DataError(f"{path}: there is no file of the split {split!r}, such as {split}.jsonl. Files there: {shown}.")


class _ClassificationType:
    options = ClassificationOptions
    summary = "labels of texts, told by a classifier on their embeddings (linear probe or kNN, as in mteb)"
    main_score = ACCURACY
    needs_vectors = True

    def bind(self, spec: TaskSpec, *, root: Path) -> ClassificationTask:
        options = _options.read(ClassificationOptions, spec)
        path = _options.data_path(spec, root)
        if path.suffix:
            _options.own_split(spec)
        if options.folds is None and options.train_split == spec.dataset.split:
            raise ConfigError(
                f"Task {spec.name!r}: {options.train_split!r} can't be both trained and evaluated on, but for 'folds'.",
                key=("options", "train_split"),
            )
        _check_main_score(spec, options)
        return ClassificationTask(spec, path, options)


def _check_main_score(spec: TaskSpec, options: ClassificationOptions) -> None:
    """Raises ``ConfigError`` for a metric that a task with these options doesn't have."""
    known = dict.fromkeys([ACCURACY, *map(options.metric, (ACCURACY, *KINDS))])
    name = spec.main_score
    if name is None or name in known:
        return
    advice = did_you_mean(name, known) or f"Known: {', '.join(known)}."
    if name in (ACCURACY, *KINDS):
        advice = f"With these options it is {options.metric(name)!r}."
    raise ConfigError(f"Task {spec.name!r}: {name!r} is not a metric of this task. {advice}", key=("main_score",))


TASK = _ClassificationType()
