"""What becomes of an error while a task class of mteb runs."""

from __future__ import annotations

from typing import Any

import pytest

from embeval.core.protocols import TaskRef
from embeval.core.specs import ModelSpec
from embeval.encoders import loading as encoders
from embeval.errors import DataError, EvaluationError
from embeval.mteb_bridge import evaluation
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.mteb_bridge.tasks import _own


def evaluate(monkeypatch: pytest.MonkeyPatch, stop: Any) -> None:
    """Runs a small classification, in which ``stop`` takes the place of the classifier's ``fit``."""
    import datasets

    rows = {"text": [f"text {row}" for row in range(20)], "label": [row % 2 for row in range(20)]}
    table = datasets.Dataset.from_dict(rows)
    loaded = _own.loaded(
        "stops",
        task_class="AbsTaskClassification",
        type_name="Classification",
        main_score="accuracy",
        dataset=datasets.DatasetDict({"train": table, "test": table}),
        split="test",
    )
    encoder = encoders.load(encoders.resolve(ModelSpec(name="h", backend="hashing", args={"dim": 8})))
    monkeypatch.setattr("sklearn.linear_model.LogisticRegression.fit", stop)
    evaluation.run(
        loaded.instance(), loaded.category, BridgedEncoder(encoder, TaskRef(name="stops", type="Classification"))
    )


def test_what_stops_mteb_is_no_fault_of_embeval(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error from a library is told as mteb's, in its first line, with its cause."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(monkeypatch, lambda *_: int("seven\nof nine"))
    first = "mteb:stops can't be evaluated: mteb 2"
    assert str(caught.value).startswith(first)
    assert isinstance(caught.value.__cause__, ValueError)
    assert len(str(caught.value).splitlines()) == 2


def test_errors_of_ours_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was raised on purpose, and a fault in our own code."""

    def on_purpose(*_: Any) -> None:
        raise DataError("line 7 is broken.")

    with pytest.raises(DataError, match="line 7"):
        evaluate(monkeypatch, on_purpose)
    fault = {"__name__": "embeval.somewhere"}
    exec("def fail(*_):\n    raise KeyError('slip')", fault)  # noqa: S102 - code that stands in a module of ours
    with pytest.raises(KeyError, match="slip"):
        evaluate(monkeypatch, fault["fail"])
