"""BLiMP as it is published, by its name in the catalogue, with a tiny causal model."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from embeval.store.results import ResultStore
from embeval.workflows import report
from tests.support.commands import here
from tests.support.minimal_pairs import save_causal

pytestmark = pytest.mark.real


def test_fields_and_paradigms_of_blimp(real_data: Path, tmp_path: Path) -> None:
    """34 paradigms in 4 fields, each accuracy the mean of its own pairs, as the files group them."""
    save_causal(tmp_path / "tiny")
    words = ("run", "-m", "./tiny,max_seq_length=64", "-t", "blimp,per_paradigm=20", "--data", str(real_data))
    done = here(*words, "--resamples", "200", cwd=tmp_path)
    assert done.code == 0, done.err
    store = ResultStore(tmp_path / "results")
    (stored,) = store.find(task="blimp", subset="all")
    records = store.records(stored)
    value_of = dict(zip(records.ids, records.columns["ll_accuracy"], strict=True))
    expected: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for file in (real_data / "lm" / "blimp").iterdir():
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                if int(row["pairID"]) < 20:
                    expected[row["field"]][row["UID"]].append(value_of.pop(f"{row['UID']}/{row['pairID']}"))
    assert not value_of
    assert sum(map(len, expected.values())) == 34
    found = report.by_field(store, stored)
    assert {each.label for each in found} == set(expected) == {"morphology", "semantics", "syntax", "syntax_semantics"}
    for field in found:
        of_field = [value for values in expected[field.label].values() for value in values]
        assert field.value.n_items == len(of_field)
        assert field.value.value == pytest.approx(np.mean(of_field))
        assert {part.label: part.value.value for part in field.parts} == {
            paradigm: pytest.approx(np.mean(values)) for paradigm, values in expected[field.label].items()
        }
    assert len(list(store.find(task="blimp"))) == 34 + 3
