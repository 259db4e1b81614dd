"""``summarization``: how well the similarity of a summary with those by people follows how good people find it.

One item is a text. The file has the columns ``human_summaries`` and ``machine_summaries`` (lists of texts) and
``relevance`` (a number for each machine summary, higher is better), and may have ``id``; columns that group the texts
become slices. Run by mteb's ``AbsTaskSummarization``; the main score is ``mean_cosine_spearman``, mteb's
``cosine_spearman``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.specs import TaskSpec
from embeval.data import files
from embeval.data.pairs import score
from embeval.errors import DataError
from embeval.metrics.summarization import FAMILY
from embeval.mteb_bridge.categories import ONE_SUBSET, Parity
from embeval.mteb_bridge.loading import Loaded, eager
from embeval.mteb_bridge.tasks import _own, _pair_rows
from embeval.mteb_bridge.tasks._bridged import BridgedTask
from embeval.tasks import _options


@dataclass(frozen=True, kw_only=True)
class SummarizationColumns:
    """Where the parts stand in the file."""

    __pydantic_config__ = BORDER

    human_summaries: str = "human_summaries"
    """Column of the summaries by people: a list of texts."""
    machine_summaries: str = "machine_summaries"
    """Column of the summaries to be judged: a list of texts."""
    relevance: str = "relevance"
    """Column of what people think of the latter: a list of numbers, higher is better."""
    id: str = "id"
    """Column of the id; where the file has none, texts are numbered from 1."""


@dataclass(frozen=True, kw_only=True)
class SummarizationOptions:
    """Options of a task of summarization."""

    __pydantic_config__ = BORDER

    columns: SummarizationColumns = field(default_factory=SummarizationColumns)
    """Names of the columns `human_summaries`, `machine_summaries`, `relevance` and `id`, where the file has others."""
    parity: Parity = "embeval"
    """Whose value stands for the task where mteb's differs: `embeval` or `mteb`; both are in the result."""


@dataclass(frozen=True)
class SummarizationTask(BridgedTask):
    """Summarization on one file of texts with their summaries."""

    path: Path
    options: SummarizationOptions

    def load(self) -> Loaded:
        """The summaries, as a task of mteb."""
        names = self.options.columns
        table = _pair_rows.read(
            self.path, names, {"human_summaries": _texts, "machine_summaries": _texts, "relevance": _numbers}
        )
        both = zip(table.columns["machine_summaries"], table.columns["relevance"], table.lines, strict=True)
        for summaries, grades, line in both:
            if len(summaries) != len(grades):
                raise DataError(
                    f"{self.path}, line {line}: {len(summaries)} {names.machine_summaries!r}, but {len(grades)} "
                    f"{names.relevance!r}. Each summary needs one number."
                )
        from datasets import Dataset

        found = _own.loaded(
            self.spec.name,
            task_class="AbsTaskSummarization",
            type_name="Summarization",
            main_score="cosine_spearman",
            dataset={
                ONE_SUBSET: {self.spec.dataset.split: Dataset.from_dict({"text": list(table.ids), **table.columns})}
            },
            split=self.spec.dataset.split,
            attributes={"min_score": 0, "max_score": 1},  # mteb's scaling by them changes no correlation
            ids=table.ids,
            slices=table.slices,
        )
        eager(found.setting.task)
        return replace(found, setting=replace(found.setting, parity=self.options.parity))

    def protocol(self, payload: Loaded) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number, of a sub-set too."""
        return {**super().protocol(payload), "rows": _own.rows_hash(payload.setting)}


def _list(row: files.Row, path: Path, name: str) -> list[Any]:
    """A column that must be a list; in csv it is written as JSON."""
    value = files.unfolded(row, path, name)
    if not isinstance(value, list) or not value:
        raise DataError(f"{path}, line {row.line}: {name!r} must be a list that is not empty, not {value!r:.60}.")
    return value


def _texts(row: files.Row, path: Path, name: str) -> list[str]:
    return [files.text(files.Row(row.line, {name: each}), path, name) for each in _list(row, path, name)]


def _numbers(row: files.Row, path: Path, name: str) -> list[float]:
    return [score(files.Row(row.line, {name: each}), path, name) for each in _list(row, path, name)]


class _SummarizationType:
    options = SummarizationOptions
    summary = "summaries judged by their similarity with people's, against grades (as in mteb)"
    main_score = "mean_cosine_spearman"
    needs_vectors = True

    def bind(self, spec: TaskSpec, *, root: Path) -> SummarizationTask:
        _options.main_score(spec, FAMILY, self.main_score)
        _options.own_split(spec)
        options = _options.read(SummarizationOptions, spec)
        return SummarizationTask(spec, _options.data_path(spec, root), options)


TASK = _SummarizationType()
