"""mteb's mock tasks as tasks of ours, with enough rows for intervals: one or more for every category.

Their classes and columns are mteb's own; the rows, of which mteb has two, are made here.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from embeval.core.specs import DatasetRef, TaskSpec
from embeval.mteb_bridge import categories, door
from embeval.mteb_bridge.categories import Parity, Setting
from embeval.mteb_bridge.loading import Loaded, eager
from embeval.mteb_bridge.tasks._bridged import BridgedTask
from tests.support.words import WORDS

MOCKS: Mapping[str, tuple[str, ...]] = {
    "AbsTaskBitextMining": (
        "MockBitextMiningTask",
        "MockMultilingualBitextMiningTask",
        "MockMultilingualParallelBitextMiningTask",
    ),
    "AbsTaskClassification": ("MockClassificationTask", "MockMultilingualClassificationTask"),
    "AbsTaskClustering": ("LegacyMockClusteringFastTask", "MockMultilingualClusteringFastTask"),
    "AbsTaskClusteringLegacy": ("MockClusteringTask", "MockMultilingualClusteringTask"),
    "AbsTaskMultilabelClassification": ("MockMultilabelClassification", "MockMultilingualMultilabelClassification"),
    "AbsTaskPairClassification": ("MockPairClassificationTask", "MockMultilingualPairClassificationTask"),
    "AbsTaskRegression": ("MockRegressionTask",),
    "AbsTaskRetrieval": (
        "MockRetrievalTask",
        "MockRetrievalDialogTask",
        "MockMultilingualRetrievalTask",
        "MockInstructionRetrieval",
        "MockMultilingualInstructionRetrieval",
        "MockRerankingTask",
        "MockMultilingualRerankingTask",
        "MockInstructionReranking",
        "MockMultilingualInstructionReranking",
    ),
    "AbsTaskSTS": ("MockSTSTask", "MockMultilingualSTSTask"),
    "AbsTaskSummarization": ("MockSummarizationTask", "MockMultilingualSummarizationTask"),
}
"""mteb's abstract class -> its mock tasks for texts."""
NOT_FOR_TEXTS = {"AbsTaskAggregate", "AbsTaskZeroShotClassification"}
"""Classes with a mock for texts that are no category: mteb has no task for texts of the one, the other runs others."""
ROWS, DOCUMENTS, CANDIDATES, SETS = 30, 50, 12, 8


@dataclass(frozen=True)
class MockTask(BridgedTask):
    """A mock task with grown data."""

    parity: Parity = "embeval"
    """Whose value stands for the task."""

    def load(self) -> Loaded:
        """The task with its data: the same rows each time."""
        name = self.spec.dataset.path
        with door.quiet():
            task = _classes()[name]()
            task.load_data()
        grow(task)
        eager(task)
        setting = Setting(task=task, split="test", subsets=tuple(task.hf_subsets), parity=self.parity)
        return Loaded(setting, categories.of(task))


def mock_task(name: str, parity: Parity = "embeval") -> MockTask:
    """The task, called ``mteb:NAME``."""
    return MockTask(TaskSpec(name=f"mteb:{name}", type="mteb", dataset=DatasetRef(path=name)), parity)


def text_mocks() -> dict[str, str]:
    """Name of every mock task of mteb that is for texts alone -> the abstract class nearest to it."""
    return {
        name: next(parent.__name__ for parent in each.__mro__ if parent.__name__.startswith("AbsTask"))
        for name, each in _classes().items()
        if list(each.metadata.modalities) == ["text"]
    }


@cache
def _classes() -> dict[str, Any]:
    """Name -> class of every mock task; the package doesn't export them all."""
    with door.quiet():
        package = importlib.import_module("mteb.mocks.mock_tasks")
        modules = [
            importlib.import_module(f"{package.__name__}.{each.name}")
            for each in pkgutil.iter_modules(package.__path__)
        ]
    found = [
        each
        for module in modules
        for each in vars(module).values()
        if getattr(each, "__module__", "") == module.__name__
    ]
    return {each.__name__: each for each in found if hasattr(each, "metadata")}


def grow(task: Any) -> None:
    """Gives every table of a task's data more rows, of the kind that it holds."""
    dice = random.Random(task.metadata.name)  # noqa: S311 - data for tests, no secret
    task.dataset = _grown(task.dataset, dice)


def _grown(value: Any, dice: random.Random) -> Any:
    import datasets

    if isinstance(value, datasets.Dataset):
        sets = isinstance(value[0].get("sentences"), list)
        return _table(value, SETS if sets else ROWS, dice)
    if isinstance(value, Mapping) and "relevant_docs" in value:
        return _collection(value, dice)
    grown = {key: _grown(each, dice) for key, each in value.items()}
    return datasets.DatasetDict(grown) if isinstance(value, datasets.DatasetDict) else grown


def _table(table: Any, rows: int, dice: random.Random) -> Any:
    import datasets

    seen = {name: list(table[name]) for name in table.column_names}
    return datasets.Dataset.from_dict(
        {name: [_like(dice.choice(column), name, dice) for _ in range(rows)] for name, column in seen.items()}
    )


def _like(example: Any, name: str, dice: random.Random) -> Any:
    """A value as the column's: other texts and fractions, but labels and grades that were seen."""
    match example:
        case str():
            return sentence(dice)
        case float():
            return round(dice.random(), 3)
        case [str(), *_]:
            return [sentence(dice) for _ in _stretched(example)]
        case [int(), *_] if name == "label":  # several of one text
            return sorted(dice.sample(range(4), dice.randint(1, 3)))
        case [int(), *_]:
            return _stretched(example)
        case [{"role": _}, *_]:
            return [{**turn, "content": sentence(dice)} for turn in example]
    return example


def _stretched(example: list[Any]) -> list[Any]:
    """Sets of texts, of which a mock has three, are made larger; pairs stay pairs."""
    return example if len(example) <= 2 else [*example] * 4


def _collection(split: Mapping[str, Any], dice: random.Random) -> dict[str, Any]:
    """Documents, queries, judgements of some documents for each query and, where the mock has them, candidates."""
    import datasets

    def with_ids(table: Any, prefix: str, rows: int) -> Any:
        columns = _table(table, rows, dice).to_dict()
        return datasets.Dataset.from_dict({**columns, "id": [f"{prefix}{row}" for row in range(rows)]})

    queries, documents = with_ids(split["queries"], "q", ROWS), with_ids(split["corpus"], "d", DOCUMENTS)
    candidates = {query: dice.sample(documents["id"][:], CANDIDATES) for query in queries["id"]}
    judged = {query: dict(zip(docs[:4], (1, 1, 2, 0), strict=True)) for query, docs in candidates.items()}
    shuffled = {query: sorted(docs) for query, docs in candidates.items()}
    return {
        **split,
        "queries": queries,
        "corpus": documents,
        "relevant_docs": judged,
        "top_ranked": None if split["top_ranked"] is None else shuffled,
    }


def sentence(dice: random.Random) -> str:
    """Three to nine words."""
    return " ".join(dice.choices(WORDS, k=dice.randint(3, 9)))
