"""The labels on which a candidate drops most, picked among all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from embeval.compare import evidence, pairs, slices
from embeval.compare.differences import Names
from embeval.core.specs import StatisticsOptions
from embeval.store.results import ResultStore
from tests.support import stored as support

KINDS = ("down",) * 8 + ("up",) * 8 + ("same",) * 8
BEFORE = [0.5] * 24
AFTER = [0.4, 0.3, 0.45, 0.2, 0.4, 0.3, 0.5, 0.35, *[0.6] * 8, *[0.5] * 8]


def test_the_worst_label_pays_for_having_been_picked(tmp_path: Path) -> None:
    """Only labels that drop; p times the number of labels that were looked at, by hand from all 2^7 signs."""
    store = ResultStore(tmp_path)
    one, other = (
        support.put(store, {"ndcg_at_10": values}, model=model, slices={"kind": KINDS})[-1]
        for model, values in (("a", BEFORE), ("b", AFTER))
    )
    pair = pairs.pair(evidence.gather(store, one), evidence.gather(store, other), StatisticsOptions(resamples=1000))
    (found,) = slices.worst([(pair, Names("a", "b"))], min_items=5)
    assert (found.slice, found.label, found.n_items) == ("kind", "down", 8)
    assert found.delta == pytest.approx(sum(AFTER[:8]) / 8 - 0.5)
    # Seven items drop and one stays: of all signs only none turned and all turned are as far from zero.
    assert found.p == pytest.approx(2 / 2**7)
    assert found.p_adjusted == pytest.approx(3 * 2 / 2**7)
    assert slices.worst([(pair, Names("a", "b"))], min_items=9) == ()
