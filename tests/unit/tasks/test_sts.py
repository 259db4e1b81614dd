"""The STS task: columns, roles and what it says of the texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embeval.core.progress import Silent
from embeval.core.specs import DatasetRef, ModelSpec, Role, TaskSpec
from embeval.data.pairs import Pairs
from embeval.encoders import loading
from embeval.errors import ConfigError
from embeval.tasks import sts
from tests.support.doubles import TableEncoder

TABLE = {"x": [1.0, 0.0], "y": [0.0, 2.0], "xy": [3.0, 4.0]}
PAIRS = Pairs(("1", "2", "3"), ("x", "x", "xy"), ("x", "y", "x"), np.array([5.0, 0.0, 3.0]))


def task(**fields: object) -> sts.StsTask:
    """An STS task whose data is handed to it."""
    spec = TaskSpec(name="t", type="sts", dataset=DatasetRef(path="unused"), **fields)  # type: ignore[arg-type]
    return sts.TASK.bind(spec, root=Path())


def test_columns_by_hand() -> None:
    """Cosine, inner product and negated distances of three pairs."""
    columns = task().collect(PAIRS, TableEncoder(TABLE), Silent()).records.columns
    assert columns["gold"].tolist() == [5.0, 0.0, 3.0]
    np.testing.assert_allclose(columns["cosine"], [1.0, 0.0, 0.6], atol=1e-7)
    assert columns["dot"].tolist() == [1.0, 0.0, 3.0]
    np.testing.assert_allclose(columns["euclidean"], [0.0, -np.sqrt(5), -np.sqrt(20)], rtol=1e-6)
    assert columns["manhattan"].tolist() == [0.0, -3.0, -6.0]


def test_both_sides_are_encoded_together_as_texts() -> None:
    """One call, neither queries nor documents."""
    encoder = TableEncoder(TABLE)
    task().collect(PAIRS, encoder, Silent())
    assert encoder.calls == [(Role.TEXT, ("x", "x", "xy", "x", "y", "x"))]


@pytest.mark.parametrize("name", ["t", "STS"])
def test_prompts_of_the_task_reach_the_texts(name: str) -> None:
    """By its name or type: the vectors are those of texts that begin with the prompt, and it is reported."""
    pairs = Pairs(("1", "2"), ("red backup", "old key"), ("blue backup", "old file"), np.array([1.0, 2.0]))
    prefixed = Pairs(
        ("1", "2"), ("the red backup", "the old key"), ("the blue backup", "the old file"), np.array([1.0, 2.0])
    )
    plain = loading.load(loading.resolve(ModelSpec(name="h", backend="hashing")))
    prompted = loading.load(loading.resolve(ModelSpec(name="h", backend="hashing", prompts={name: "the "})))
    found = task().collect(pairs, prompted, Silent())
    assert found.prompts == {"text": "the "}
    expected = task().collect(prefixed, plain, Silent()).records.columns["cosine"]
    assert found.records.columns["cosine"].tolist() == expected.tolist()
    assert (
        found.records.columns["cosine"].tolist()
        != task().collect(pairs, plain, Silent()).records.columns["cosine"].tolist()
    )


def test_main_score_of_the_spec() -> None:
    """Named first; an unknown one is refused with the nearest."""
    assert task(main_score="dot_pearson").metrics(PAIRS)[0].name == "dot_pearson"
    with pytest.raises(ConfigError, match="Did you mean 'cosine_spearman'"):
        task(main_score="cosine_spaerman")


def test_a_metric_of_another_kind_can_not_stand_for_sts() -> None:
    """ndcg_at_10 exists, but not for pairs: refused when the task is bound."""
    with pytest.raises(ConfigError, match="'ndcg_at_10' is not a metric of sts"):
        task(main_score="ndcg_at_10")
