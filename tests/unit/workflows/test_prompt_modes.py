"""What prompts are worth: a model with its prompts, without, and with them exchanged, side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from embeval import api
from embeval.core.specs import ModelSpec
from embeval.errors import ConfigError
from tests.support.data import write_beir

MODEL = ModelSpec(name="hashing", backend="hashing", prompts={"query": "zebra zebra zebra ", "document": "quagga "})


def test_each_model_in_each_mode_once() -> None:
    """In the order that was asked for, with digests and labels of their own; at the default nothing changes."""
    other = ModelSpec(name="other")
    found = api.with_prompts([MODEL, other], "auto, none,swap,none")
    assert [model.prompting for model in found] == ["auto", "none", "swap"] * 2
    assert found[0] == MODEL
    assert len({model.digest for model in found}) == len({model.label for model in found}) == 6
    assert api.with_prompts([MODEL, other], "auto") == (MODEL, other)


@pytest.mark.parametrize("modes", ["", "off", "none,", "None"])
def test_wrong_modes_are_refused(modes: str) -> None:
    """With what there is."""
    with pytest.raises(ConfigError, match="prompts must be auto, none, swap, or several with commas, not "):
        api.with_prompts([MODEL], modes)


def test_modes_are_rows_of_a_leaderboard(tmp_path: Path) -> None:
    """The query's prompt is what one wrong document says, thrice: it costs the first place, and none wins it back."""
    write_beir(
        tmp_path / "set",
        corpus={"d1": "restore a backup", "d2": "zebra zebra zebra", "d3": "quagga"},
        queries={"q1": "restore a backup"},
        qrels={"q1": {"d1": 1}},
    )
    task = {"name": "set", "type": "retrieval", "data": str(tmp_path / "set"), "main_score": "mrr_at_10"}
    for model in api.with_prompts([MODEL], "auto,none,swap"):
        (result,) = api.evaluate(model, task, results=tmp_path / "results")
        assert (
            result.signature.prompts
            == {
                "auto": {"query": "zebra zebra zebra ", "document": "quagga "},
                "none": {"query": "", "document": ""},
                "swap": {"query": "quagga ", "document": "zebra zebra zebra "},
            }[model.prompting]
        )
    board = api.leaderboard(tmp_path / "results")
    assert sorted(row.label for row in board.rows) == [
        "hashing (own prompts)",
        "hashing (own prompts, no prompts)",
        "hashing (own prompts, swapped prompts)",
    ]
