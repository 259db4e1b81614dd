"""``bitext``: whether a sentence finds its translation among those of all others, as in mteb.

One item is a sentence. The file has the columns ``sentence1`` and ``sentence2``, translations of each other, and may
have ``id``; columns that group the sentences become slices. Each ``sentence1`` looks for its own ``sentence2``. Run by
mteb's ``AbsTaskBitextMining``; the main score is ``bitext_f1``, mteb's ``f1``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from embeval import metrics
from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.protocols import Metric
from embeval.core.specs import TaskSpec
from embeval.data import files
from embeval.errors import DataError
from embeval.mteb_bridge.categories import ONE_SUBSET
from embeval.mteb_bridge.categories.bitext import NAMES
from embeval.mteb_bridge.loading import Loaded, eager
from embeval.mteb_bridge.tasks import _own, _pair_rows
from embeval.mteb_bridge.tasks._bridged import BridgedTask
from embeval.tasks import _options


@dataclass(frozen=True, kw_only=True)
class BitextColumns:
    """Where the two sides stand in the file."""

    __pydantic_config__ = BORDER

    sentence1: str = "sentence1"
    """Column of the sentence that looks for its translation."""
    sentence2: str = "sentence2"
    """Column of the translation."""
    id: str = "id"
    """Column of the id; where the file has none, sentences are numbered from 1."""


@dataclass(frozen=True, kw_only=True)
class BitextOptions:
    """Options of a task of bitext mining."""

    __pydantic_config__ = BORDER

    columns: BitextColumns = field(default_factory=BitextColumns)
    """Names of the columns `sentence1`, `sentence2` and `id`, where the file has others."""


@dataclass(frozen=True)
class BitextTask(BridgedTask):
    """Bitext mining on one file of translations."""

    path: Path
    options: BitextOptions

    def load(self) -> Loaded:
        """The translations, as a task of mteb."""
        table = _pair_rows.read(self.path, self.options.columns, {"sentence1": files.text, "sentence2": files.text})
        if len(table.ids) < 2:
            raise DataError(f"{self.path}: holds one pair, among which its translation can't be missed. Add others.")
        from datasets import Dataset

        found = _own.loaded(
            self.spec.name,
            task_class="AbsTaskBitextMining",
            type_name="BitextMining",
            main_score="f1",
            dataset={ONE_SUBSET: {self.spec.dataset.split: Dataset.from_dict(dict(table.columns))}},
            split=self.spec.dataset.split,
            ids=table.ids,
            slices=table.slices,
        )
        eager(found.setting.task)
        return found

    def protocol(self, payload: Loaded) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number, of a sub-set too."""
        return {**super().protocol(payload), "rows": _own.rows_hash(payload.setting)}


class _Metrics:
    """The metrics of the category, of two families."""

    def names(self) -> tuple[str, ...]:
        return tuple(NAMES.values())

    def make(self, name: str) -> Metric | None:
        return metrics.get(name) if name in self.names() else None


class _BitextType:
    options = BitextOptions
    summary = "sentences that find their translation among all others (as in mteb)"
    main_score = "bitext_f1"
    needs_vectors = True

    def bind(self, spec: TaskSpec, *, root: Path) -> BitextTask:
        _options.main_score(spec, _Metrics(), self.main_score)
        _options.own_split(spec)
        return BitextTask(spec, _options.data_path(spec, root), _options.read(BitextOptions, spec))


TASK = _BitextType()
