"""Row counts, against the descriptive statistics that mteb 2.26 keeps beside its own mock tasks."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from embeval.mteb_bridge import door, row_counts

MOCKS = (
    "LegacyMockClusteringFastTask",
    "MockBitextMiningTask",
    "MockClassificationTask",
    "MockInstructionReranking",
    "MockMultilabelClassification",
    "MockMultilingualClassificationTask",
    "MockMultilingualParallelBitextMiningTask",
    "MockMultilingualRetrievalTask",
    "MockPairClassificationTask",
    "MockRegressionTask",
    "MockRerankingTask",
    "MockRetrievalTask",
    "MockSTSTask",
    "MockSummarizationTask",
)


def made(name: str) -> Any:
    """A mock task with its data."""
    door.library()
    with door.quiet():
        from mteb.mocks import mock_tasks

        task = getattr(mock_tasks, name)()
        task.load_data()
    return task


@pytest.mark.parametrize("name", MOCKS)
def test_counts_are_mtebs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They agree where mteb says so, and each number that differs is told with its place."""
    task = made(name)
    said: dict[str, Any] = copy.deepcopy(task.expected_stats)
    monkeypatch.setattr(type(task.metadata), "descriptive_stats", property(lambda _: said))
    assert row_counts.differences(task) == []
    subset, split = task.hf_subsets[-1], next(iter(said))
    numbers = said[split].get(row_counts.OF_SUBSETS, {}).get(subset, said[split])
    key = "num_queries" if "num_queries" in numbers else "num_samples"
    numbers[key] += 1000
    place = f"{subset}/{split}" if len(task.hf_subsets) > 1 else split
    (told,) = row_counts.differences(task)
    assert told.startswith(f"{place} has {numbers[key] - 1000} ")
    assert told.endswith(f", and {numbers[key]:,} in mteb's statistics")
    assert row_counts.differences(task, ["another split"]) == []


def test_of_a_task_without_statistics_nothing_is_said() -> None:
    """mteb has none of some tasks, such as this one."""
    task = made("MockSTSTask")
    assert task.metadata.descriptive_stats is None
    assert row_counts.differences(task) == []
