"""What all types that run mteb's task classes share."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass

from embeval import metrics
from embeval.core import strict_json
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, Metric, System, TaskRef, require_encoder
from embeval.core.signature import STANDS
from embeval.core.specs import TaskSpec
from embeval.mteb_bridge import evaluation
from embeval.mteb_bridge.categories import Setting
from embeval.mteb_bridge.loading import Loaded
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.mteb_bridge.search import BridgedSearch
from embeval.tasks import _counts

VERSION = 1
"""Raised when the same data and vectors give another number."""
SEARCHED = "AbsTaskRetrieval"
"""mteb's class of tasks in which systems rank documents, so that those without vectors fit too."""


@dataclass(frozen=True)
class BridgedTask:
    """A task class of mteb on data that a subclass loads."""

    spec: TaskSpec

    @abstractmethod
    def load(self) -> Loaded:
        """The task with its data."""

    def protocol(self, payload: Loaded) -> dict[str, strict_json.Json]:
        """Everything besides the model that can change a number."""
        setting = payload.setting
        protocol: dict[str, strict_json.Json] = {
            "type": self.spec.type,
            "type_version": VERSION,
            "task_version": self.spec.version,
            "data": payload.data_hash,
            "split": setting.split,
        }
        if len(setting.subsets) > 1:  # mteb's random draws go on from one sub-set to the next
            protocol |= {"subsets": list(setting.subsets), STANDS: "mean"}
        return protocol

    def metrics(self, payload: Loaded) -> tuple[Metric, ...]:
        """The category's metrics, the main one first."""
        names = payload.category.metrics(payload.setting)
        return tuple(metrics.get(name) for name in dict.fromkeys([self.spec.main_score or names[0], *names]))

    def collect(self, payload: Loaded, system: System, progress: Progress) -> Collected:
        """One row per item of the category."""
        began = time.perf_counter()
        setting = payload.instance()
        metadata = setting.task.metadata
        reference = TaskRef(name=metadata.name, type=metadata.type)
        model: BridgedEncoder | BridgedSearch
        if payload.category.task_class == SEARCHED:
            model = self._search(setting, system, reference, progress)
        else:
            model = BridgedEncoder(require_encoder(system, self.spec), reference, progress)
        outcomes = evaluation.run(setting, payload.category, model)
        evaluated = time.perf_counter()
        gathered = payload.category.gather(setting, outcomes, model)
        counts, warnings = model.summary() if isinstance(model, BridgedSearch) else _of_texts(model)
        phases = {"encode": model.seconds, **(model.phases if isinstance(model, BridgedSearch) else {})}
        return Collected(
            records=gathered.records,
            run=gathered.run,
            counts={**gathered.counts, **counts},
            warnings=(*gathered.warnings, *warnings),
            prompts=model.prompts,
            phases={**phases, "score": max(evaluated - began - sum(phases.values()), 0.0)},
            work=model.work,
            also=gathered.also,
        )

    def _search(self, setting: Setting, system: System, reference: TaskRef, progress: Progress) -> BridgedSearch:
        # mteb's scores of groups of queries fail for a query without an entry.
        from mteb.abstasks import AbsTaskRetrieval

        complete = type(setting.task).task_specific_scores is not AbsTaskRetrieval.task_specific_scores
        return BridgedSearch(system, reference, progress, complete=complete)


def _of_texts(model: BridgedEncoder) -> tuple[dict[str, int | None], list[str]]:
    """Counts of the texts that went through an encoder, and sentences about them."""
    counts = {**_counts.texts("texts", model.counts), **_counts.sizes([model.encoder])}
    groups = [("texts", model.counts, model.alike)]
    prompts = list(model.prompts.values())
    return counts, _counts.warnings(groups, encoder=model.encoder, prompts_used=prompts)
