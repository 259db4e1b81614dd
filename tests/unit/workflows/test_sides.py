"""What a user calls a side of a comparison."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from embeval.core.specs import ModelSpec
from embeval.encoders.locate import DEMO_LABEL
from embeval.store.results import ResultStore, Stored
from embeval.workflows import sides


@pytest.mark.parametrize(
    ("text", "label"), [("demo", "all-MiniLM-L6-v2"), ("demo,truncate_dim=64", "all-MiniLM-L6-v2 (64d)")]
)
def test_the_demo_model_is_called_as_run_calls_it(
    text: str, label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``demo`` names that model, although every cut of it has ``demo`` in its name."""

    def stored(truncate_dim: int | None) -> Stored:
        model = ModelSpec(name=DEMO_LABEL, truncate_dim=truncate_dim)
        return cast(Stored, SimpleNamespace(id="none", result=SimpleNamespace(model=model, imported=None)))

    of_label = {each.result.model.label: [each] for each in map(stored, (None, 64, 128))}
    monkeypatch.setattr(sides, "_by_model", lambda _found: of_label)
    found: Any = [each for (each,) in of_label.values()]
    assert sides.resolve(text, ResultStore(tmp_path), found).label == label
