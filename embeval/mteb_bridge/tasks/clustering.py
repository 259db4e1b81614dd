"""``clustering``: how well k-means on the embeddings of labelled texts finds the labels again.

Scored as mteb's fast clustering (``AbsTaskClustering``): documents are drawn with replacement, clustered by mini-batch
k-means into as many clusters as there are labels, and compared with the labels; ten times over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.specs import TaskSpec
from embeval.data import files
from embeval.errors import DataError
from embeval.metrics.clustering import FAMILY
from embeval.mteb_bridge.categories.clustering import draws, embedded
from embeval.mteb_bridge.loading import Loaded
from embeval.mteb_bridge.tasks import _own
from embeval.mteb_bridge.tasks._bridged import BridgedTask
from embeval.tasks import _options

Levels = tuple[str, ...]
"""Labels of one text, the broadest first."""


@dataclass(frozen=True, kw_only=True)
class ClusteringColumns:
    """Where the parts of a row stand in the file."""

    __pydantic_config__ = BORDER

    text: str = "text"
    """Column of the text."""
    label: str = "label"
    """Column of the label: text, a whole number, or a list of labels, the broadest first, for a hierarchy."""


@dataclass(frozen=True, kw_only=True)
class ClusteringOptions:
    """Options of a clustering task."""

    __pydantic_config__ = BORDER

    columns: ClusteringColumns = field(default_factory=ClusteringColumns)
    """Names of the columns `text` and `label`, where the file has others."""
    draws: int = 10
    """How often documents are drawn and clustered, at each level of the labels; from 2."""
    documents_per_draw: int = 16_384
    """Documents in each draw, drawn with replacement, so that there may be more of them than the file has."""
    max_documents: int | None = None
    """Documents that are embedded, a random sample; null: all."""
    batch_size: int = 512
    """Documents in a batch of mini-batch k-means."""
    max_depth: int | None = None
    """Levels of the labels that are evaluated, from the broadest; null: all."""

    def __post_init__(self) -> None:
        lowest = {"draws": 2, "documents_per_draw": 2, "max_documents": 2, "batch_size": 1, "max_depth": 1}
        for name, least in lowest.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, not {value}")


@dataclass(frozen=True)
class ClusteringTask(BridgedTask):
    """Clustering of one file of labelled texts."""

    path: Path
    options: ClusteringOptions

    def load(self) -> Loaded:
        """The task with its texts. Raises ``DataError`` for rows that can't be clustered."""
        texts, labels = self._rows()
        from datasets import Dataset

        codes: dict[tuple[int, str], int] = {}  # mteb can tell "no label" from a label among numbers only
        coded = [[codes.setdefault(each, len(codes)) for each in enumerate(label)] for label in labels]
        loaded = _own.loaded(
            self.spec.name,
            task_class="AbsTaskClustering",
            type_name="Clustering",
            main_score=TASK.main_score,
            dataset={self.spec.dataset.split: Dataset.from_dict({"sentences": texts, "labels": coded})},
            split=self.spec.dataset.split,
            attributes={
                "max_fraction_of_documents_to_embed": None,
                "max_document_to_embed": self.options.max_documents,
                "max_documents_per_cluster": self.options.documents_per_draw,
                "n_clusters": self.options.draws,
                "k_mean_batch_size": self.options.batch_size,
                "max_depth": self.options.max_depth,
            },
        )
        task = loaded.setting.task
        self._check(embedded(task, labels, draws(task)))
        return loaded

    def protocol(self, payload: Loaded) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        return {
            **super().protocol(payload),
            "draws": self.options.draws,
            "documents_per_draw": self.options.documents_per_draw,
            "max_documents": self.options.max_documents,
            "batch_size": self.options.batch_size,
            "max_depth": self.options.max_depth,
        }

    def _rows(self) -> tuple[list[str], list[Levels]]:
        columns, texts, labels = self.options.columns, [], []
        for row in files.rows(self.path):
            for option in ("text", "label"):
                if (name := getattr(columns, option)) not in row.values:
                    raise files.no_column(self.path, row, option, name)
            text = files.text(row, self.path, columns.text)
            if not text.strip():
                raise DataError(f"{self.path}, line {row.line}: {columns.text!r} is empty: nothing to cluster.")
            texts.append(text)
            labels.append(_label(row, self.path, columns.label))
        return texts, labels

    def _check(self, labels: Sequence[Levels]) -> None:
        """Raises ``DataError`` where there is nothing to cluster at a level of the documents that are embedded."""
        deepest = max(map(len, labels))
        depth = min(deepest, self.options.max_depth or deepest)
        for level in range(depth):
            of_level = [label[level] for label in labels if len(label) > level]
            where = str(self.path) if depth == 1 else f"{self.path}, level {level} of the labels"
            if self.options.max_documents:
                where += f", {len(labels)} documents sampled"
            n = len(set(of_level))
            if n < 2:
                raise DataError(f"{where}: all texts have the label {of_level[0]!r}; at least two labels are needed.")
            if n == len(of_level):
                raise DataError(f"{where}: each of {n} texts has a label of its own; there is nothing to cluster.")
            if n > self.options.documents_per_draw:
                raise DataError(
                    f"{where}: {n} labels, and only {self.options.documents_per_draw} documents in a draw "
                    "(documents_per_draw)."
                )


def _label(row: files.Row, path: Path, name: str) -> Levels:
    """Labels of a row, one per level."""
    value = files.unfolded(row, path, name)
    if not isinstance(value, list):
        return (files.identifier(row, path, name),)
    if not value:
        raise DataError(f"{path}, line {row.line}: {name!r} is an empty list: no label at any level.")
    return tuple(files.identifier(row._replace(values={name: each}), path, name) for each in value)


class _ClusteringType:
    options = ClusteringOptions
    summary = "k-means clusters of labelled texts against their labels (V-measure, AMI, ARI), as mteb's"
    main_score = "v_measure"
    needs_vectors = True

    def bind(self, spec: TaskSpec, *, root: Path) -> ClusteringTask:
        _options.main_score(spec, FAMILY, self.main_score)
        _options.own_split(spec)
        return ClusteringTask(spec, _options.data_path(spec, root), _options.read(ClusteringOptions, spec))


TASK = _ClusteringType()
