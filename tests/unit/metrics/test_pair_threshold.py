"""Best thresholds against every possible one, against scikit-learn and against mteb."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from embeval import metrics
from embeval.core.protocols import Undefined
from embeval.metrics.pair_threshold import FAMILY, SIMILARITIES, Threshold

Columns = dict[str, np.ndarray]


def value(name: str, scores: list[float] | np.ndarray, gold: list[int] | np.ndarray) -> float:
    """The metric of one similarity, given to every column it reads."""
    metric = metrics.get(name)
    found = metric.aggregate(
        {column: np.array(gold if column == "gold" else scores, dtype=np.float64) for column in metric.columns}
    )
    assert not isinstance(found, Undefined)
    return found


def columns_for(seed: int, n: int, digits: int) -> Columns:
    """Random labels and scores that partly follow them, rounded so that many tie."""
    rng = np.random.default_rng(seed)
    gold = (rng.random(n) < 0.4).astype(np.float64)
    gold[0] = 1.0
    scores = {name: np.round(gold * 0.3 + rng.random(n), digits) for name in SIMILARITIES}
    return {"gold": gold, **scores, **{f"mteb_{name}": column for name, column in scores.items()}}


def by_every_threshold(scores: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    """Brute force: each distinct score as the lowest that is accepted, and nothing accepted."""
    best = {"accuracy": float((gold == 0).mean()), "f1": -1.0}
    for cut in sorted(set(scores), reverse=True):
        accepted = scores >= cut
        right = float(gold[accepted].sum())
        best["accuracy"] = max(best["accuracy"], float((accepted == (gold == 1)).mean()))
        f1 = 2 * right / (accepted.sum() + gold.sum())
        if f1 > best["f1"]:
            best |= {"f1": f1, "precision": right / accepted.sum(), "recall": right / gold.sum()}
    return best


@pytest.mark.parametrize("gold", [[1, 1, 0, 0], [0, 0, 1, 1]])
def test_a_threshold_does_not_split_equal_scores(gold: list[int]) -> None:
    """Fault F19 (i): all scores 0.5, in both orders: accuracy 1/2, F1 2/3, AP 1/2; mteb 2.26.24 gives 0 and 0."""
    scores = [0.5] * 4
    assert value("max_accuracy", scores, gold) == 0.5
    assert value("max_f1", scores, gold) == pytest.approx(2 / 3)
    assert value("max_ap", scores, gold) == 0.5
    assert (value("mteb_max_accuracy", scores, gold), value("mteb_max_f1", scores, gold)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("gold", "accuracy", "f1", "ap", "of_mteb"),
    [([1, 1, 1, 1], 1.0, 1.0, 1.0, (0.75, 6 / 7)), ([0, 1, 1, 1], 0.75, 6 / 7, 23 / 36, (0.5, 2 / 3))],
)
def test_accepting_every_pair_is_tried(
    gold: list[int], accuracy: float, f1: float, ap: float, of_mteb: tuple[float, float]
) -> None:
    """Fault F19 (ii) and (iii), by hand; mteb 2.26.24 misses the last cut."""
    scores = [0.9, 0.8, 0.7, 0.6]
    assert value("cosine_accuracy", scores, gold) == accuracy
    assert value("cosine_f1", scores, gold) == pytest.approx(f1)
    assert value("cosine_ap", scores, gold) == pytest.approx(ap, abs=1e-12)
    found = value("mteb_cosine_accuracy", scores, gold), value("mteb_cosine_f1", scores, gold)
    assert found == pytest.approx(of_mteb)


def test_accepting_no_pair_is_tried() -> None:
    """The one pair that belongs together has the lowest score: who says no to all is right about two of three."""
    assert value("dot_accuracy", [0.9, 0.8, 0.7], [0, 0, 1]) == pytest.approx(2 / 3)
    assert value("mteb_dot_accuracy", [0.9, 0.8, 0.7], [0, 0, 1]) == pytest.approx(1 / 3)


@pytest.mark.parametrize("digits", [0, 1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_equal_to_brute_force_and_to_scikit_learn(seed: int, digits: int) -> None:
    """Every threshold tried one by one, and ``average_precision_score`` (scikit-learn 1.9) for AP, to 1e-12."""
    columns = columns_for(seed, 5 + 3 * seed, digits)
    scores, gold = columns["cosine"], columns["gold"]
    for name, expected in by_every_threshold(scores, gold).items():
        assert value(f"cosine_{name}", scores, gold) == pytest.approx(expected, abs=1e-12), name
    assert value("cosine_ap", scores, gold) == pytest.approx(average_precision_score(gold, scores), abs=1e-12)


def test_the_largest_of_all_similarities() -> None:
    """``max_…`` is the largest over cosine, dot, euclidean and manhattan."""
    columns = columns_for(3, 40, 2)
    for statistic in ("ap", "accuracy", "f1", "precision", "recall"):
        each = [metrics.get(f"{name}_{statistic}").aggregate(columns) for name in SIMILARITIES[1:]]
        assert metrics.get(f"max_{statistic}").aggregate(columns) == max(
            each  # type: ignore[type-var]  # none is undefined
        )


@pytest.mark.parametrize("parity", [False, True])
@pytest.mark.parametrize("digits", [0, 1, 3])
def test_resampling_equals_the_drawn_items(digits: int, parity: bool) -> None:
    """Counts as weights give what the drawn items give, for all metrics at once, with all ties."""
    columns = columns_for(5, 60, digits)
    names = [name for name in FAMILY.names() if name.startswith("mteb_") == parity]
    family = [FAMILY.make(name) for name in names]
    chosen = [metric for metric in family if metric is not None]
    counts = np.random.default_rng(0).multinomial(60, np.full(60, 1 / 60), size=10).T
    counts[:, 0] = 1
    found = Threshold.resampler(chosen, columns)(counts)
    for resample in range(10):
        drawn = {name: np.repeat(column, counts[:, resample]) for name, column in columns.items()}
        assert found[:, resample] == pytest.approx([metric.aggregate(drawn) for metric in chosen], abs=1e-12)


def test_no_pair_that_belongs_together() -> None:
    """No AP and no F1, and never 0; accuracy is that of saying no. The same in a resample that draws none."""
    scores, gold = [0.9, 0.1, 0.5], [0, 0, 0]
    columns = {name: np.array(gold if name == "gold" else scores, dtype=float) for name in ("gold", "cosine")}
    for name in ("cosine_ap", "cosine_f1", "cosine_precision", "cosine_recall"):
        assert metrics.get(name).aggregate(columns) == Undefined("no_positive_pairs")
    assert metrics.get("cosine_accuracy").aggregate(columns) == 1.0
    columns["gold"] = np.array([0.0, 1.0, 0.0])
    chosen = [Threshold("a", "ap", ("cosine",)), Threshold("b", "f1", ("cosine",))]
    chosen += [Threshold("c", "accuracy", ("cosine",))]
    found = Threshold.resampler(chosen, columns)(np.array([[3], [0], [0]]))[:, 0]
    assert np.isnan(found[:2]).all()
    assert found[2] == 1.0


def test_resamples_of_many_pairs_are_fast() -> None:
    """All thirty metrics on 1,000 resamples of 3,000 pairs take seconds at most, not minutes."""
    columns = columns_for(1, 3000, 5)
    chosen = [FAMILY.make(name) for name in FAMILY.names() if not name.startswith("mteb_")]
    resample = Threshold.resampler([metric for metric in chosen if metric is not None], columns)
    counts = np.random.default_rng(0).multinomial(3000, np.full(3000, 1 / 3000), size=32).T
    began = time.perf_counter()
    for _ in range(32):
        resample(counts)
    assert time.perf_counter() - began < 5.0
