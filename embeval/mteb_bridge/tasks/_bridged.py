"""What all types that run mteb's task classes share."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

from embeval import metrics
from embeval.core import strict_json
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, Metric, System, TaskRef, require_encoder
from embeval.core.signature import STANDS
from embeval.core.specs import RuntimeOptions, TaskSpec
from embeval.errors import EvaluationError, did_you_mean
from embeval.mteb_bridge import evaluation
from embeval.mteb_bridge.categories import SEARCHED, Setting
from embeval.mteb_bridge.categories.retrieval import staged_names
from embeval.mteb_bridge.loading import Loaded
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.mteb_bridge.search import BridgedSearch, Reranking
from embeval.rerankers import loading as rerankers
from embeval.tasks import _counts
from embeval.tasks._second_stage import SecondStage

VERSION = 1
"""Raised when the same data and vectors give another number."""


@dataclass(frozen=True)
class BridgedTask:
    """A task class of mteb on data that a subclass loads."""

    spec: TaskSpec
    second: SecondStage | None = field(default=None, kw_only=True)
    """A cross-encoder that orders the first candidates anew, where systems rank documents."""
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions, kw_only=True)
    """How it is run."""
    cache: Any = field(default=None, kw_only=True)
    """Where its scores are kept."""

    def equipped(self, runtime: RuntimeOptions, cache: Any, fresh: Callable[[], System]) -> Self:
        """The task with how models are run, and the cache."""
        return replace(self, runtime=runtime, cache=cache)

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
        if self.second is not None:
            if payload.category.task_class != SEARCHED:
                raise EvaluationError(
                    f"{self.spec.name}: 'rerank' fits tasks in which documents are ranked, and this one is of the type "
                    f"{setting.task.metadata.type}."
                )
            protocol["rerank"] = {"model": self.second.located.spec.digest, "depth": self.second.options.depth}
        return protocol

    def metrics(self, payload: Loaded) -> tuple[Metric, ...]:
        """The category's metrics, the main one first."""
        names = list(payload.category.metrics(payload.setting))
        if self.second is not None:
            names += staged_names(payload.setting, self.second.options.depth)
        main = self.spec.main_score or names[0]
        if main not in names:
            advice = did_you_mean(main, names) or f"It has {', '.join(names[:8])}, …"
            raise EvaluationError(f"Task {self.spec.name!r}: {main!r} is not one of its metrics. {advice}")
        return tuple(metrics.get(name) for name in dict.fromkeys([main, *names]))

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
        second = None
        if self.second is not None:
            reranker = rerankers.load(self.second.located, self.runtime, self.cache)
            second = Reranking(reranker, self.second.options.depth)
        return BridgedSearch(system, reference, progress, second=second, complete=complete)


def _of_texts(model: BridgedEncoder) -> tuple[dict[str, int | None], list[str]]:
    """Counts of the texts that went through an encoder, and sentences about them."""
    counts = {**_counts.texts("texts", model.counts), **_counts.sizes([model.encoder])}
    groups = [("texts", model.counts, model.alike)]
    prompts = list(model.prompts.values())
    return counts, _counts.warnings(groups, encoder=model.encoder, prompts_used=prompts)
