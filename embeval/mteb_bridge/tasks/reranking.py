"""``reranking``: candidates of one's own for each query, ranked and scored as mteb's reranking tasks are.

One item is a query, ``map_at_1000`` first. With ``rerank`` a cross-encoder orders the candidates anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from embeval.core.border import BORDER
from embeval.core.progress import Progress
from embeval.core.protocols import Collected, System
from embeval.core.specs import TaskSpec
from embeval.core.words import plural
from embeval.data import reranking
from embeval.data.reranking import RerankingColumns
from embeval.errors import DataError
from embeval.metrics import ranking
from embeval.mteb_bridge.categories import ONE_SUBSET, SEARCHED
from embeval.mteb_bridge.loading import Loaded
from embeval.mteb_bridge.tasks import _own
from embeval.mteb_bridge.tasks._bridged import BridgedTask
from embeval.tasks import _options, _second_stage
from embeval.tasks._retrieval_options import RerankOptions


@dataclass(frozen=True, kw_only=True)
class RerankingOptions:
    """Options of a reranking task."""

    __pydantic_config__ = BORDER

    columns: RerankingColumns = field(default_factory=RerankingColumns)
    """Names of the columns `query`, `positive`, `negative`, `document`, `score` and `query_id`, where the file has
    others."""
    rerank: RerankOptions | str | None = None
    """A cross-encoder that orders the candidates anew: its name, or its settings."""


@dataclass(frozen=True)
class LoadedCandidates(Loaded):
    """A task with its candidates."""

    contradictions: tuple[int, ...] = ()
    """Line of each candidate that has several grades for one query."""
    n_only_relevant: int = 0
    """Queries whose candidates are all relevant."""


@dataclass(frozen=True)
class RerankingTask(BridgedTask):
    """Reranking on one file, or on a BEIR folder with candidates."""

    path: Path
    options: RerankingOptions

    def load(self) -> Loaded:
        """The queries with their candidates."""
        from datasets import Dataset

        split = self.spec.dataset.split
        data = reranking.load(self.path, split, self.options.columns)
        grades = [{max(data.grades[query].get(doc, 0), 0) for doc in docs} for query, docs in data.given.items()]
        if all(len(each) < 2 for each in grades):
            raise DataError(f"{self.path}: no query has both relevant candidates and others, so any order is as good.")
        rows = {
            "corpus": Dataset.from_dict({"id": list(data.documents), "text": list(data.documents.values())}),
            "queries": Dataset.from_dict({"id": list(data.queries), "text": list(data.queries.values())}),
            "relevant_docs": {query: dict(grades) for query, grades in data.grades.items()},
            "top_ranked": {query: list(docs) for query, docs in data.given.items()},
        }
        loaded = _own.loaded(
            self.spec.name,
            task_class=SEARCHED,
            type_name="Reranking",
            main_score=TASK.main_score,
            dataset={ONE_SUBSET: {split: rows}},
            split=split,
            slices={name: [of_query[query] for query in data.queries] for name, of_query in data.labels.items()},
        )
        return LoadedCandidates(
            loaded.setting,
            loaded.category,
            contradictions=data.contradictions,
            n_only_relevant=sum(min(each) > 0 for each in grades),
        )

    def collect(self, payload: Loaded, system: System, progress: Progress) -> Collected:
        """One row per query."""
        collected = super().collect(payload, system, progress)
        if not isinstance(payload, LoadedCandidates):
            return collected
        counts, told = dict(collected.counts), []
        if lines := payload.contradictions:
            several = plural(len(lines), "candidate has", "candidates have")
            told.append(f"{several} several grades for one query, such as in line {lines[0]}: the greatest counts.")
            counts["candidates_with_several_grades"] = len(lines)
        if n := payload.n_only_relevant:
            told.append(f"{plural(n, 'query has', 'queries have')} relevant candidates only: MAP is 1 in any order.")
            counts["queries_with_only_relevant"] = n
        return replace(collected, counts=counts, warnings=(*told, *collected.warnings))


class _RerankingType:
    options = RerankingOptions
    summary = "candidates of each query, ranked (MAP, MRR, nDCG): jsonl, csv or parquet, or a folder with top_ranked"
    main_score = "map_at_1000"
    needs_vectors = False

    def bind(self, spec: TaskSpec, *, root: Path) -> RerankingTask:
        options = _options.read(RerankingOptions, spec)
        _options.main_score(spec, ranking.FAMILY, self.main_score)
        _options.own_split(spec)
        second = _second_stage.find(options.rerank, spec, root=root)
        return RerankingTask(spec, _options.data_path(spec, root), options, second=second)


TASK = _RerankingType()
