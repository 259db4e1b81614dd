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
from embeval.mteb_bridge.loading import Loaded
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.tasks import _counts

VERSION = 1
"""Raised when the same data and vectors give another number."""


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
        encoder = require_encoder(system, self.spec)
        metadata = setting.task.metadata
        model = BridgedEncoder(encoder, TaskRef(name=metadata.name, type=metadata.type), progress)
        outcomes = evaluation.run(setting, payload.category, model)
        evaluated = time.perf_counter()
        gathered = payload.category.gather(setting, outcomes, model)
        return Collected(
            records=gathered.records,
            run=gathered.run,
            counts={**gathered.counts, **_counts.texts("texts", model.counts), **_counts.sizes([encoder])},
            warnings=(
                *gathered.warnings,
                *_counts.warnings(
                    [("texts", model.counts, model.alike)], encoder=encoder, prompts_used=list(model.prompts.values())
                ),
            ),
            prompts=model.prompts,
            phases={"encode": model.seconds, "score": evaluated - began - model.seconds},
            work=model.work,
        )
