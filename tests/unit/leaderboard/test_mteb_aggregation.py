"""Means and Borda's count are mteb's own: ``mteb.benchmarks._create_table`` of mteb 2.26 on the same values."""

from __future__ import annotations

from itertools import islice

import numpy as np
import polars as pl
import pytest
from mteb.benchmarks._create_table import _create_summary_table
from mteb.models.model_implementations import MODEL_REGISTRY

from embeval.leaderboard import ranking
from tests.support.boards import column

TASKS = {
    "STS12": "STS",
    "STSBenchmark": "STS",
    "BIOSSES": "STS",
    "SciFact": "Retrieval",
    "NFCorpus": "Retrieval",
    "Banking77Classification": "Classification",
}
MODELS = tuple(islice(MODEL_REGISTRY, 9))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("gaps", [0.0, 0.25])
def test_the_same_results_give_the_same_table(seed: int, gaps: float) -> None:
    """Mean(Task), Mean(TaskType), the mean of each type and Rank(Borda), with ties, gaps and types of several sizes."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (len(MODELS), len(TASKS))) / 7.0
    values[rng.random(values.shape) < gaps] = np.nan
    values[0] = rng.random(len(TASKS))  # nobody leaves out all tasks, and one has no ties
    table = _create_summary_table(
        pl.DataFrame(
            [
                {"model_name": model, "task_name": task, "split": "test", "subset": "default", "score": float(value)}
                for model, row in zip(MODELS, values, strict=True)
                for task, value in zip(TASKS, row, strict=True)
                if not np.isnan(value)
            ]
        )
    ).df
    expected = {row["Model"]: row for row in table.to_dicts()}
    there = [place for place, model in enumerate(MODELS) if model in expected]
    columns = [column(task, group) for task, group in TASKS.items()]
    found = ranking.standings_of(values[there], columns, ranking.Rules("borda", "rank", 0.95))
    assert len(found) >= 7
    for place, standing in zip(there, found, strict=True):
        row = expected[MODELS[place]]
        assert standing.rank == standing.borda == row["Rank (Borda)"]
        assert standing.mean_task == (None if row["Mean (Task)"] is None else pytest.approx(row["Mean (Task)"]))
        assert standing.mean_type == (None if row["Mean (TaskType)"] is None else pytest.approx(row["Mean (TaskType)"]))
        assert standing.groups == {
            group: None if row[group] is None else pytest.approx(row[group]) for group in dict.fromkeys(TASKS.values())
        }
