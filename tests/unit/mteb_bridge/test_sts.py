"""STS through mteb's task class: equal to mteb 2.26, but for the cosine of a zero vector."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from embeval import metrics
from embeval.core.protocols import TaskRef, Undefined
from embeval.metrics.correlation import FAMILY
from embeval.mteb_bridge import evaluation, loaders
from embeval.mteb_bridge.categories import Gathered, Outcome, Parity, Setting, of
from embeval.mteb_bridge.loading import Loaded
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.mteb_bridge.tasks import _own
from tests.support.doubles import TableEncoder

ZERO = {"": (0.0, 0.0), "a": (1.0, 0.0), "near": (0.9, 0.435890), "far": (0.3, 0.953939)}
ZERO_PAIRS = [("", "a", 0.0), ("a", "far", 1.0), ("a", "near", 5.0)]
"""Cosines 0 (of a zero vector), 0.3, 0.9."""
MANY = {f"text {row}": vector for row, vector in enumerate(np.random.default_rng(3).normal(size=(40, 5)).tolist())}
MANY_PAIRS = [(f"text {row}", f"text {row + 20}", float(row % 6)) for row in range(20)]
OF_MTEB = ("mteb_cosine_spearman", "mteb_cosine_pearson")


def loaded(pairs: Sequence[tuple[str, str, float]], parity: Parity = "embeval") -> Loaded:
    """The pairs as two sub-sets of a task of mteb's class, every second one in each; or as one where they are few."""
    from datasets import Dataset

    subsets = {"default": pairs} if len(pairs) < 10 else {"one": pairs[::2], "other": pairs[1::2]}
    rows = {
        name: {"test": Dataset.from_list([{"sentence1": a, "sentence2": b, "score": score} for a, b, score in part])}
        for name, part in subsets.items()
    }
    whole = _own.loaded(
        "Example", task_class="AbsTaskSTS", type_name="STS", main_score="cosine_spearman", dataset=rows, split="test"
    )
    whole.setting.task.hf_subsets = list(rows)
    setting: Setting = replace(whole.setting, subsets=tuple(rows), parity=parity)
    return Loaded(setting, of(setting.task))


def ran(
    pairs: Sequence[tuple[str, str, float]], vectors: Mapping[str, Sequence[float]], parity: Parity = "embeval"
) -> tuple[Gathered, dict[str, Outcome], dict[str, float | Undefined]]:
    """What the category makes of mteb's class, what that gave, and the metrics of the records."""
    whole = loaded(pairs, parity)
    setting = whole.instance()
    model = BridgedEncoder(TableEncoder(vectors), TaskRef(name="Example", type="STS"))
    outcomes = evaluation.run(setting, whole.category, model)
    gathered = whole.category.gather(setting, outcomes, model)
    names = [*whole.category.metrics(setting), *gathered.also]
    return gathered, outcomes, {name: metrics.get(name).aggregate(gathered.records.columns) for name in names}


def test_a_zero_vector_has_the_cosine_zero() -> None:
    """Spearman 1, for 0, 0.3, 0.9 follow gold; mteb's 0.5 in place of 0 gives 0.5, which is in the result too."""
    gathered, outcomes, found = ran(ZERO_PAIRS, ZERO)
    assert found["cosine_spearman"] == pytest.approx(1.0, abs=1e-12)
    assert found["mteb_cosine_spearman"] == pytest.approx(0.5, abs=1e-12)
    assert gathered.also == OF_MTEB
    assert gathered.warnings == ("1 pair has a zero vector: mteb 2.26 takes cosine 0.5 (mteb_cosine_spearman), not 0.",)
    assert gathered.records.columns["mteb_cosine"] == pytest.approx([0.5, 0.3, 0.9], abs=1e-6)
    for name in OF_MTEB:
        assert found[name] == pytest.approx(outcomes["default"].scores[name.removeprefix("mteb_")], abs=1e-9)


def test_parity_puts_the_value_of_mteb_first() -> None:
    """Under ``parity: mteb`` it stands for the task, also where nothing differs; ours is there all the same."""
    for pairs, vectors in ((ZERO_PAIRS, ZERO), (MANY_PAIRS[:8], MANY)):
        _, outcomes, found = ran(pairs, vectors, "mteb")
        assert next(iter(found)) == "mteb_cosine_spearman"
        assert found["mteb_cosine_spearman"] == pytest.approx(outcomes["default"].scores["main_score"], abs=1e-9)
        assert {"cosine_spearman", "mteb_cosine_pearson", "dot_pearson"} <= set(found)


def test_values_are_those_of_mteb() -> None:
    """Every metric of each sub-set to 1e-6, and no column of mteb's where rounding is all that differs."""
    gathered, outcomes, _ = ran(MANY_PAIRS, MANY)
    assert gathered.also == gathered.warnings == ()
    assert set(gathered.records.columns) == {"gold", "cosine", "dot", "euclidean", "manhattan"}
    for subset, outcome in outcomes.items():
        part = gathered.records.take(gathered.records.rows_by("subset")[subset])
        for name in sorted(set(outcome.scores) & set(FAMILY.names())):
            assert metrics.get(name).aggregate(part.columns) == pytest.approx(outcome.scores[name], abs=1e-6), name
        assert metrics.get("dot_pearson").aggregate(part.columns) == pytest.approx(
            np.corrcoef(part.columns["gold"], _dots(part.ids))[0, 1], abs=1e-6
        )


def _dots(ids: Sequence[str]) -> list[float]:
    """Inner products of the pairs, from the rows that their ids name."""
    found = []
    for each in ids:
        subset, row = each.split("/")
        left, right, _ = MANY_PAIRS[int(row) * 2 + (subset == "other")]
        found.append(float(np.dot(MANY[left], MANY[right])))
    return found


def test_items_are_pairs() -> None:
    """Ids are rows after the sub-set; the gold score as it stands in the data."""
    gathered, _, _ = ran(MANY_PAIRS, MANY)
    records = gathered.records
    assert records.unit == "pair"
    assert (records.ids[0], records.ids[10]) == ("one/0", "other/0")
    assert records.columns["gold"].tolist() == [pair[2] for pair in [*MANY_PAIRS[::2], *MANY_PAIRS[1::2]]]
    assert gathered.counts == {"pairs": 20}


def test_equal_scores_have_no_correlation() -> None:
    """Constant gold, where mteb has NaN: undefined with the reason."""
    _, outcomes, found = ran([(left, right, 1.0) for left, right, _ in MANY_PAIRS[:5]], MANY)
    assert np.isnan(outcomes["default"].scores["cosine_spearman"])
    assert found["cosine_spearman"] == found["manhattan_pearson"] == Undefined("constant_input")


def test_a_changed_score_or_text_is_other_data() -> None:
    """The hash; ``1`` and ``1.0`` come from different files of the same data."""
    first = loaded(MANY_PAIRS[:3]).data_hash
    assert loaded([*MANY_PAIRS[:2], (*MANY_PAIRS[2][:2], 5.5)]).data_hash != first
    assert loaded([*MANY_PAIRS[:2], ("text 2", "text 3", MANY_PAIRS[2][2])]).data_hash != first


def test_texts_reach_the_model_without_torch() -> None:
    """mteb's own loaders would import torch; they are back afterwards, and stay where a query is put together."""
    from mteb.types import PromptType

    any_sts_evaluator: Any = importlib.import_module("mteb._evaluators.any_sts_evaluator")
    original = any_sts_evaluator.create_dataloader
    rows = loaded(MANY_PAIRS[:3]).setting.rows("default").rename_columns({"sentence1": "text"})
    metadata: Any = loaded(MANY_PAIRS[:3]).setting.task.metadata
    with mock.patch.dict(sys.modules, {"torch.utils.data": None}), loaders.of_texts():
        made = any_sts_evaluator.create_dataloader(rows, task_metadata=metadata, batch_size=2)
        assert (
            [text for batch in made for text in batch["text"]] == made.dataset["text"] == ["text 0", "text 1", "text 2"]
        )
        with pytest.raises(ImportError):
            any_sts_evaluator.create_dataloader(rows, task_metadata=metadata, prompt_type=PromptType.query)
        ran(MANY_PAIRS, MANY)
    assert any_sts_evaluator.create_dataloader is original
