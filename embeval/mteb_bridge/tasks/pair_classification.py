"""``pair_classification``: how well a threshold on similarity tells pairs that belong together, as in mteb.

One item is a pair. The file has the columns ``sentence1``, ``sentence2`` and ``label`` (1: they belong together, 0:
they don't), and may have ``id``; columns that group the pairs become slices. Run by mteb's
``AbsTaskPairClassification``; the main score is ``max_ap``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.specs import TaskSpec
from embeval.data import files
from embeval.errors import DataError
from embeval.metrics.pair_threshold import FAMILY
from embeval.mteb_bridge.categories import ONE_SUBSET, Parity
from embeval.mteb_bridge.loading import Loaded, eager
from embeval.mteb_bridge.tasks import _own, _pair_rows
from embeval.mteb_bridge.tasks._bridged import BridgedTask
from embeval.tasks import _options

LABELS = {"1": 1, "0": 0, "true": 1, "false": 0}


@dataclass(frozen=True, kw_only=True)
class PairClassificationColumns:
    """Where the parts of a pair stand in the file."""

    __pydantic_config__ = BORDER

    sentence1: str = "sentence1"
    """Column of the first text."""
    sentence2: str = "sentence2"
    """Column of the second text."""
    label: str = "label"
    """Column that says whether the two belong together: 1 or 0, true or false."""
    id: str = "id"
    """Column of the id; where the file has none, pairs are numbered from 1."""


@dataclass(frozen=True, kw_only=True)
class PairClassificationOptions:
    """Options of a task of pair classification."""

    __pydantic_config__ = BORDER

    columns: PairClassificationColumns = field(default_factory=PairClassificationColumns)
    """Names of the columns `sentence1`, `sentence2`, `label` and `id`, where the file has others."""
    parity: Parity = "embeval"
    """Whose value stands for the task where mteb's is wrong: `embeval` or `mteb`; both are in the result."""


@dataclass(frozen=True)
class PairClassificationTask(BridgedTask):
    """Pair classification on one file of pairs."""

    path: Path
    options: PairClassificationOptions

    def load(self) -> Loaded:
        """The pairs, as a task of mteb."""
        table = _pair_rows.read(
            self.path, self.options.columns, {"sentence1": files.text, "sentence2": files.text, "label": _label}
        )
        labels = table.columns["label"]
        if len(set(labels)) < 2:
            raise DataError(
                f"{self.path}: all {len(labels)} pairs have the label {labels[0]}. Pairs that belong together are "
                "needed, and pairs that don't."
            )
        from datasets import Dataset

        found = _own.loaded(
            self.spec.name,
            task_class="AbsTaskPairClassification",
            type_name="PairClassification",
            main_score=TASK.main_score,
            dataset={ONE_SUBSET: {self.spec.dataset.split: Dataset.from_dict(dict(table.columns))}},
            split=self.spec.dataset.split,
            attributes={"label_column_name": "label"},
            ids=table.ids,
            slices=table.slices,
        )
        eager(found.setting.task)
        return replace(found, setting=replace(found.setting, parity=self.options.parity))

    def protocol(self, payload: Loaded) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number, of a sub-set too."""
        return {**super().protocol(payload), "rows": _own.rows_hash(payload.setting)}


def _label(row: files.Row, path: Path, name: str) -> int:
    value = files.column(row, path, name)
    if (label := LABELS.get(str(value).strip().lower().removesuffix(".0"))) is None:
        raise DataError(f"{path}, line {row.line}: {name!r} must be 0 or 1, not {value!r:.60}.")
    return label


class _PairClassificationType:
    options = PairClassificationOptions
    summary = "pairs that belong together or don't, told by a threshold on similarity (as in mteb)"
    main_score = "max_ap"
    needs_vectors = True

    def bind(self, spec: TaskSpec, *, root: Path) -> PairClassificationTask:
        _options.main_score(spec, FAMILY, self.main_score)
        _options.own_split(spec)
        options = _options.read(PairClassificationOptions, spec)
        return PairClassificationTask(spec, _options.data_path(spec, root), options)


TASK = _PairClassificationType()
