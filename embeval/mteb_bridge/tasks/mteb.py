"""``mteb``: a task of mteb by its name, run by mteb's own task class, on data of the hub or of a mirror."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.paths import expanded
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, System
from embeval.core.specs import TaskSpec
from embeval.errors import EmbevalError
from embeval.mteb_bridge import categories, loading
from embeval.mteb_bridge import mirror as mirrors
from embeval.mteb_bridge.categories import Parity
from embeval.mteb_bridge.loading import Loaded
from embeval.mteb_bridge.tasks._bridged import SEARCHED, BridgedTask
from embeval.tasks import _options, _second_stage
from embeval.tasks._retrieval_options import RerankOptions

PREFIX = "mteb:"
"""Begins the name of a task, so that it is never taken for one of the catalogue."""


@dataclass(frozen=True, kw_only=True)
class MtebOptions:
    """Options of a task of mteb."""

    __pydantic_config__ = BORDER

    subsets: tuple[str, ...] | None = None
    """Sub-sets to evaluate, such as languages; null: all that the task has."""
    parity: Parity = "embeval"
    """Whose value stands for the task where mteb's is wrong: `embeval` or `mteb`; both are in the result."""
    mirror: str | None = None
    """Folder that its data is read from instead of the hub; then the network is not used."""
    rerank: RerankOptions | str | None = None
    """For retrieval and reranking: a cross-encoder that orders the first candidates anew, by name or settings."""


@dataclass(frozen=True)
class MtebTask(BridgedTask):
    """A task of mteb."""

    options: MtebOptions
    mirror: Path | None
    """Folder that its data is read from; None: the hub."""

    @property
    def needs_vectors(self) -> bool:
        """Whether nothing is ranked in it. A task that can't be run is taken for such a one; ``check`` tells why."""
        try:
            return categories.of(loading.find(self.spec.dataset.path)).task_class != SEARCHED
        except EmbevalError:
            return True

    def load(self) -> Loaded:
        """The task with its data."""
        return loading.load(
            self.spec.dataset.path,
            self.spec.dataset.split,
            subsets=self.options.subsets,
            parity=self.options.parity,
            mirror=self.mirror,
        )

    def check(self) -> None:
        """Raises what ``load`` would, where that can be told without loading the data."""
        task = loading.find(self.spec.dataset.path)
        categories.of(task)
        if self.mirror is not None:
            mirrors.located(self.mirror, task.metadata.name)

    def protocol(self, payload: Loaded) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        return {**super().protocol(payload), "task": payload.setting.task.metadata.name}

    def collect(self, payload: Loaded, system: System, progress: Progress) -> Collected:
        """One row per item of the category, with what is to be said of the data."""
        collected = super().collect(payload, system, progress)
        return replace(
            collected,
            warnings=(*payload.warnings, *collected.warnings),
            origins={} if payload.origin is None else {"data": payload.origin},
        )


class _MtebType:
    options = MtebOptions
    summary = "a task or benchmark of mteb by its name, from the hub or a mirror (--mirror)"
    main_score = "main_score"
    needs_vectors = False  # a task of it says for itself

    def bind(self, spec: TaskSpec, *, root: Path) -> MtebTask:
        options = _options.read(MtebOptions, spec)
        second = _second_stage.find(options.rerank, spec, root=root)
        return MtebTask(
            spec, options, None if options.mirror is None else root / expanded(options.mirror), second=second
        )


TASK = _MtebType()
