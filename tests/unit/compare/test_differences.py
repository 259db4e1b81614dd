"""Differences against numbers from the items' Parquet files, slices, and items lost and gained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from embeval.compare import changes, differences, evidence, pairs, repetitions, slices, words
from embeval.compare.differences import Names
from embeval.core.comparison import Finding
from embeval.core.specs import StatisticsOptions
from embeval.errors import UnknownNameError, UsageError
from embeval.store.results import ResultStore, Stored
from tests.support import stored as support

QUICK = StatisticsOptions(resamples=500)
NAMES = Names("a", "b")
MAIN = "ndcg_at_10"
ONE = [0.9, 0.2, 0.4, 1.0, 0.0, 0.7, 0.5, 0.3]
OTHER = [0.8, 0.2, 0.1, 1.0, 0.3, 0.6, 0.4, 0.1]


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    """An empty folder of results."""
    return ResultStore(tmp_path / "results")


def paired(
    store: ResultStore, one: Mapping[str, Sequence[float]], other: Mapping[str, Sequence[float]], **options: Any
) -> pairs.Pair:
    """The pair of two stored results with those columns."""
    made = [support.put(store, columns, model=model, **options)[-1] for model, columns in (("a", one), ("b", other))]
    return pairs.pair(evidence.gather(store, made[0]), evidence.gather(store, made[1]), QUICK)


def column(stored: Stored, name: str) -> list[float]:
    """A column of a result's items as pyarrow reads it."""
    assert stored.result.items is not None
    table = pq.read_table(stored.path.parent / stored.result.items.file)
    return [float(value) for value in table[name].to_pylist()]


def test_a_difference_by_hand(store: ResultStore) -> None:
    """Mean, effect size and outcomes from the Parquet files by the textbook formulas."""
    made = [support.put(store, {MAIN: values}, model=model)[-1] for model, values in (("a", ONE), ("b", OTHER))]
    pair = pairs.pair(evidence.gather(store, made[0]), evidence.gather(store, made[1]), QUICK)
    (found,) = differences.compared(pair, [MAIN], NAMES)
    before, after = (column(each, MAIN) for each in made)
    d = [y - x for x, y in zip(before, after, strict=True)]
    mean = sum(d) / len(d)
    spread = math.sqrt(sum((each - mean) ** 2 for each in d) / (len(d) - 1))
    assert [found.baseline, found.candidate] == pytest.approx([0.5, 0.4375])
    assert found.delta == pytest.approx(mean)
    assert found.effect_size == pytest.approx(mean / spread)
    assert (found.wins, found.ties, found.losses, found.n_items) == (1, 2, 5, 8)
    # (z of 0.975 + z of 0.8) standard errors, both from tables
    assert found.detectable == pytest.approx((1.959964 + 0.841621) * spread / math.sqrt(8), rel=0.01)
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert found.ci_low < mean < found.ci_high


def test_p_is_that_of_all_sign_flips(store: ResultStore) -> None:
    """The exact two-sided p of paired randomisation, by all 2^8 ways to swap the sides, within Monte-Carlo error."""
    pair = paired(store, {MAIN: ONE}, {MAIN: OTHER})
    (found,) = differences.compared(pair, [MAIN], NAMES)
    d = np.array(OTHER) - np.array(ONE)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1)
    exact = float((np.abs(d @ signs) >= abs(d.sum()) - 1e-12).mean())
    assert found.p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 500) + 0.01)
    assert found.test == "randomization"


def test_no_difference_on_any_item_is_said_so(store: ResultStore) -> None:
    """Equal is not the same as not told apart."""
    (found,) = differences.compared(paired(store, {MAIN: ONE}, {MAIN: ONE}), [MAIN], NAMES)
    assert found.finding is Finding.SAME
    assert words.verdict(found) == "same on every item"
    assert found.delta == 0.0


def test_lower_is_better(store: ResultStore) -> None:
    """A cost that falls on every query is better, and its difference stays negative."""
    name = "usd_per_million_queries"
    high = [10.0 + number / 10 for number in range(40)]
    pair = paired(store, {name: high}, {name: [each - 5.0 for each in high]})
    (found,) = differences.adjusted(differences.compared(pair, [name], NAMES), "holm")
    assert found.delta == pytest.approx(-5.0)
    assert (found.finding, found.wins, found.losses) == (Finding.BETTER, 40, 0)


def test_times_that_were_not_taken_in_turns_are_not_compared(store: ResultStore) -> None:
    """The two values are shown, with the reason."""
    columns = {"latency_ms": [10.0, 11.0, 12.0]}
    pair = paired(store, columns, columns, measured=["latency_p50_ms"])
    (found,) = differences.compared(pair, ["latency_p50_ms"], NAMES)
    assert (found.baseline, found.candidate, found.delta) == (11.0, 11.0, None)
    assert found.reason is not None
    assert "was timed alone" in found.reason


@pytest.mark.parametrize("side", [0, 1])
def test_f13_a_correlation_of_a_constant_has_no_difference(store: ResultStore, side: int) -> None:
    """Null with its reason, never NaN, whichever side it is (F13)."""
    gold = [1.0, 2.0, 3.0, 4.0]
    columns = [{"gold": gold, "cosine": [0.1, 0.3, 0.2, 0.9]}, {"gold": gold, "cosine": [0.5] * 4}]
    name = "cosine_spearman"
    pair = paired(store, columns[side], columns[1 - side], measured=[name])
    (found,) = differences.adjusted(differences.compared(pair, [name], NAMES), "holm")
    assert (found.delta, found.p, found.reason, found.finding) == (None, None, "constant_input", Finding.UNDEFINED)
    assert words.verdict(found) == "no difference: constant_input"


def test_one_item_is_too_few(store: ResultStore) -> None:
    """A difference without an interval, and nothing told of it (F13: n = 1)."""
    (found,) = differences.compared(paired(store, {MAIN: [0.5]}, {MAIN: [0.7]}), [MAIN], NAMES)
    assert (found.ci_low, found.p, found.finding) == (None, None, Finding.NOT_TOLD_APART)
    assert words.verdict(found) == "not told apart: there is no interval"


def test_a_metric_of_one_side_has_a_reason_and_its_value(store: ResultStore) -> None:
    """The value of the side that has it is shown."""
    one = support.put(store, {MAIN: ONE, "recall_at_10": ONE}, model="a")[-1]
    other = support.put(store, {MAIN: OTHER}, model="b")[-1]
    pair = pairs.pair(evidence.gather(store, one), evidence.gather(store, other), QUICK)
    (found,) = differences.compared(pair, ["recall_at_10"], NAMES)
    assert found.baseline == pytest.approx(0.5)
    assert (found.candidate, found.delta) == (None, None)
    assert found.reason == "b has no recall_at_10 on docs"
    with pytest.raises(UnknownNameError, match="ndcg_at_10"):
        differences.compared(pair, ["ndcg_at_11"], NAMES)


def test_corrections_count_all_comparisons(store: ResultStore) -> None:
    """Holm by hand: the smallest of two p-values is doubled, the other at least as large."""
    name = "recall_at_10"
    pair = paired(store, {MAIN: ONE, name: ONE}, {MAIN: OTHER, name: [0.0] * 8})
    plain = differences.compared(pair, [MAIN, name], NAMES)
    p = [each.p for each in plain]
    assert p[0] is not None
    assert p[1] is not None
    adjusted = differences.adjusted(plain, "holm")
    assert [each.p_adjusted for each in adjusted] == pytest.approx([max(p[0], 2 * p[1]), 2 * p[1]])
    assert [each.p_adjusted for each in differences.adjusted(plain, "none")] == [None, None]
    with pytest.raises(UnknownNameError, match="bonferroni"):
        differences.adjusted(plain, "bonferroni")


LABELS = {"kind": ["x"] * 4 + ["y"] * 3 + ["z"], "whole": ["same"] * 8}


def test_slices_by_hand_and_labels_that_are_too_small(store: ResultStore) -> None:
    """Means of the rows of each label; one of a single item is only named."""
    pair = paired(store, {MAIN: ONE}, {MAIN: OTHER}, slices=LABELS)
    found = slices.by_slice(pair, [MAIN], NAMES, "kind", 3)
    assert [(each.label, each.n_items) for each in found.comparisons] == [("x", 4), ("y", 3)]
    assert [each.delta for each in found.comparisons] == pytest.approx([-0.4 / 4, 0.1 / 3])
    assert [(each.label, each.n_items) for each in found.few] == [("z", 1)]
    assert {each.slice for each in slices.by_slice(pair, [MAIN], NAMES, slices.ALL, 1).comparisons} == {"kind"}
    with pytest.raises(UnknownNameError, match="slice 'sort'"):
        slices.by_slice(pair, [MAIN], NAMES, "sort", 3)


def test_the_worst_slices_are_those_with_a_drop(store: ResultStore) -> None:
    """Of x (-0.1), y (+0.033) and z (-0.2) two, z first; p is multiplied by three."""
    pair = paired(store, {MAIN: ONE}, {MAIN: OTHER}, slices=LABELS)
    found = slices.worst([(pair, NAMES)], 1)
    assert [each.label for each in found] == ["z", "x"]
    assert [each.delta for each in found] == pytest.approx([-0.2, -0.1])
    assert found[1].p is not None
    assert found[1].p_adjusted == pytest.approx(min(1.0, 3 * found[1].p))


def test_items_lost_and_gained(store: ResultStore) -> None:
    """The largest first; what didn't change is counted."""
    found = changes.changes(paired(store, {MAIN: ONE}, {MAIN: OTHER}), "b", 2)
    assert found is not None
    assert (found.n_lost, found.n_gained, found.n_same) == (5, 1, 2)
    assert [item.id for item in found.lost] == ["q2", "q7"]
    assert [item.id for item in found.gained] == ["q4"]
    assert found.gained[0].delta == pytest.approx(0.3)


def test_a_correlation_has_no_items_to_lose(store: ResultStore) -> None:
    """Single pairs have no value of a rank correlation."""
    gold = [1.0, 2.0, 3.0, 4.0]
    one, other = {"gold": gold, "cosine": [0.1, 0.3, 0.2, 0.9]}, {"gold": gold, "cosine": [0.1, 0.2, 0.3, 0.9]}
    assert changes.changes(paired(store, one, other, measured=["cosine_spearman"]), "b", 3) is None


def test_repetitions_by_hand(store: ResultStore) -> None:
    """Means over runs and items; two runs of a side give an interval, one gives none."""
    rng = np.random.default_rng(0)
    base = rng.uniform(0.2, 0.8, 60)

    def values(shift: float) -> list[float]:
        return [float(each) for each in base + shift + rng.normal(0, 0.02, 60)]

    runs = {
        model: evidence.gather(store, support.put(store, {MAIN: values(shift)}, model=model)[-1])
        for model, shift in (("a1", 0.0), ("a2", 0.01), ("b1", 0.1), ("b2", 0.11))
    }
    one, other = [runs["a1"], runs["a2"]], [runs["b1"], runs["b2"]]
    (found,) = repetitions.compared(one, other, [MAIN], NAMES, QUICK)
    by_hand = [np.mean([each.records.columns[MAIN] for each in side]) for side in (one, other)]
    assert found.delta == pytest.approx(by_hand[1] - by_hand[0])
    assert found.delta is not None
    assert found.ci_low is not None
    assert found.ci_low < found.delta
    assert found.test == "two-way bootstrap"
    (alone,) = repetitions.compared(one[:1], other, [MAIN], NAMES, QUICK)
    assert alone.ci_low is None
    assert alone.note == (
        "1 run and 2 runs, resampled with the items; one run of a side says nothing of others, so there is no interval"
    )


def test_repetitions_refuse_what_is_no_mean_and_a_run_of_both_sides(store: ResultStore) -> None:
    """A correlation has no value per item, and a system is not a repetition of itself."""
    gold = [1.0, 2.0, 3.0, 4.0]
    made = [
        evidence.gather(
            store, support.put(store, {"gold": gold, "cosine": values}, model=model, measured=["cosine_spearman"])[-1]
        )
        for model, values in (("a", [0.1, 0.3, 0.2, 0.9]), ("b", [0.1, 0.2, 0.3, 0.9]))
    ]
    (found,) = repetitions.compared(made[:1], made[1:], ["cosine_spearman"], NAMES, QUICK)
    assert found.delta is None
    assert found.reason is not None
    assert found.reason.startswith("a value of all items together")
    with pytest.raises(UsageError, match="'a2' is a run of both sides"):
        repetitions.refuse_shared({"a1", "a2"}, {"a2", "a3"})
