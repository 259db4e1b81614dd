"""Metrics of fitted classifiers against scikit-learn 1.x on the same predictions."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score

from embeval import metrics
from embeval.core.protocols import Undefined
from embeval.errors import UnknownNameError
from embeval.metrics import classification
from embeval.metrics.multilabel import from_bits, to_bits
from embeval.stats import bootstrap

Columns = dict[str, np.ndarray]
SKLEARN: dict[str, Callable[..., float]] = {
    "f1": lambda gold, found: f1_score(gold, found, average="macro", zero_division=0),
    "f1_weighted": lambda gold, found: f1_score(gold, found, average="weighted", zero_division=0),
    "precision": lambda gold, found: precision_score(gold, found, average="macro", zero_division=0),
    "precision_weighted": lambda gold, found: precision_score(gold, found, average="weighted", zero_division=0),
    "recall": lambda gold, found: recall_score(gold, found, average="macro", zero_division=0),
    "recall_weighted": lambda gold, found: recall_score(gold, found, average="weighted", zero_division=0),
}


def predictions(n: int, labels: list[float], fits: int, seed: int = 0) -> Columns:
    """Gold labels, and predictions of which a third are of any label."""
    rng = np.random.default_rng(seed)
    gold = rng.choice(labels, n)
    columns = {"gold": gold}
    for fit in range(fits):
        found = gold.copy()
        wrong = rng.random(n) < 1 / 3
        found[wrong] = rng.choice([*labels, 99.0], int(wrong.sum()))  # 99 is never right
        columns[f"predicted_{fit}"] = found
    return columns


def mean(columns: Columns, of_one: Callable[..., float]) -> float:
    """The mean over classifiers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(np.mean([of_one(columns["gold"], each) for name, each in columns.items() if name != "gold"]))


@pytest.mark.parametrize("kind", SKLEARN)
@pytest.mark.parametrize("labels", [[0.0, 1.0], [0.0, 1.0, 2.0, 5.0, 7.0]])
def test_equal_to_sklearn(kind: str, labels: list[float]) -> None:
    """Ten classifiers and three, with a label that is predicted and never right."""
    for name, fits in ((kind, 10), (f"{kind}_over_3_fits", 3)):
        columns = predictions(60, labels, fits)
        assert metrics.get(name).aggregate(columns) == pytest.approx(mean(columns, SKLEARN[kind]), abs=1e-12)


@pytest.mark.parametrize("labels", [[0.0, 1.0], [0.0, 1.0, 2.0, 5.0, 7.0]])
def test_sums_are_the_same_in_however_many_pieces(labels: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are added up in pieces that fit into the processor's cache: one piece and many give the same digits."""
    columns = predictions(300, labels, 10)
    chosen = [metrics.get(name) for name in SKLEARN]
    counts = np.random.default_rng(1).multinomial(300, np.full(300, 1 / 300), size=16).T
    found = []
    for rows in (10**9, 7):
        monkeypatch.setattr(classification, "PIECE", rows)
        found.append(bootstrap.resampler(chosen, columns)(counts))
    assert found[0].tolist() == found[1].tolist()
    drawn = {name: np.repeat(column, counts[:, 3]) for name, column in columns.items()}
    assert found[1][0, 3] == pytest.approx(mean(drawn, SKLEARN["f1"]), abs=1e-12)


@pytest.mark.parametrize("labels", [[0.0, 1.0], [-1.0, 1.0]])
def test_average_precision_is_sklearns(labels: list[float]) -> None:
    """Of hard predictions, the larger label being the one looked for; both names give it."""
    columns = predictions(60, labels, 10)
    expected = mean(columns, lambda gold, found: average_precision_score(gold, found))
    for name in ("ap", "ap_weighted"):
        assert metrics.get(name).aggregate(columns) == pytest.approx(expected, abs=1e-12)


def test_average_precision_looks_for_the_larger_label() -> None:
    """Labels 1 and 2: as for 0 and 1, where sklearn's default would look for 1 among scores that favour 2."""
    columns = predictions(60, [0.0, 1.0], 10)
    moved = {name: column + 1.0 for name, column in columns.items()}
    assert metrics.get("ap").aggregate(moved) == metrics.get("ap").aggregate(columns)


def test_average_precision_needs_two_labels() -> None:
    """One or three: undefined with a reason; a resample of one label is NaN."""
    for labels in ([1.0], [0.0, 1.0, 2.0]):
        found = metrics.get("ap").aggregate(predictions(30, labels, 10))
        assert found == Undefined("not_two_labels")
    columns = predictions(30, [0.0, 1.0], 10)
    one_label = (columns["gold"] == 1.0).astype(np.int64)[:, None]
    metric = metrics.get("ap")
    assert np.isnan(metric.resampler([metric], columns)(one_label)[0, 0])  # type: ignore[attr-defined]


def test_folds_are_averaged() -> None:
    """The mean of sklearn's value in each fold, whatever their sizes; a slice without a fold has the others' mean."""
    columns = predictions(50, [0.0, 1.0, 2.0], 1)
    columns["predicted"] = columns.pop("predicted_0")
    columns["fold"] = np.repeat([0.0, 1.0, 2.0], [10, 25, 15])
    folds = [columns["fold"] == number for number in range(3)]
    scores = [SKLEARN["f1"](columns["gold"][rows], columns["predicted"][rows]) for rows in folds]
    assert metrics.get("f1_over_3_folds").aggregate(columns) == pytest.approx(np.mean(scores), abs=1e-12)
    hits = columns["gold"] == columns["predicted"]
    assert metrics.get("accuracy_over_3_folds").aggregate(columns) == pytest.approx(
        np.mean([hits[rows].mean() for rows in folds]), abs=1e-12
    )
    rest = {name: column[~folds[1]] for name, column in columns.items()}
    assert metrics.get("f1_over_3_folds").aggregate(rest) == pytest.approx(np.mean([scores[0], scores[2]]), abs=1e-12)
    assert metrics.get("f1_over_2_folds").aggregate(columns) == Undefined("more_folds")


@pytest.mark.parametrize(
    "name", ["f1_over_10_fits", "f1_over_0_fits", "f1_over_05_fits", "f1_over_1_folds", "accuracy_over_5_fits", "f2"]
)
def test_names_that_are_none(name: str) -> None:
    """Ten fits have the plain name, and no other spelling; accuracy is one whatever the number of fits."""
    with pytest.raises(UnknownNameError):
        metrics.get(name)


def test_swapped_sides_are_computed_anew() -> None:
    """Differences after texts changed places equal those of the metric on the swapped columns, to 1e-12."""
    baseline, candidate = predictions(40, [0.0, 1.0, 2.0], 10, seed=1), predictions(40, [0.0, 1.0, 2.0], 10, seed=2)
    candidate["gold"] = baseline["gold"]
    names = [*SKLEARN]
    chosen = [metrics.get(name) for name in names]
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (40, 5))
    found = type(chosen[0]).swapper(chosen, baseline, candidate)(signs)  # type: ignore[attr-defined]
    for place in range(5):
        stay = signs[:, place] > 0
        before = {name: np.where(stay, baseline[name], candidate[name]) for name in baseline}
        after = {name: np.where(stay, candidate[name], baseline[name]) for name in baseline}
        expected = [metric.aggregate(after) - metric.aggregate(before) for metric in chosen]  # type: ignore[operator]
        assert found[:, place] == pytest.approx(expected, abs=1e-12)


def test_intervals_are_fast() -> None:
    """All measures of ten classifiers of 77 labels on 1,000 resamples of 3,000 texts: a second, and half is usual."""
    columns = predictions(3000, [float(label) for label in range(77)], 10)
    chosen = [metrics.get(name) for name in SKLEARN]
    began = time.process_time()
    bootstrap.distribution(chosen, columns, resamples=1000, seed=0)
    assert time.process_time() - began < 2.0


def test_bits_hold_52_labels() -> None:
    """There and back, the last one too."""
    labels = np.random.default_rng(0).random((20, 52)) < 0.5
    labels[3] = True
    assert np.array_equal(from_bits(to_bits(labels), 52).T, labels)


@pytest.mark.parametrize("fits", [10, 4])
def test_multilabel_f1_is_sklearns(fits: int) -> None:
    """Macro over labels, averaged over classifiers; labels that nobody has stay out of a slice."""
    rng = np.random.default_rng(5)
    gold = rng.random((50, 6)) < 0.3
    found = [np.where(rng.random(gold.shape) < 0.8, gold, ~gold) for _ in range(fits)]
    columns = {"gold_bits": to_bits(gold), **{f"predicted_bits_{fit}": to_bits(each) for fit, each in enumerate(found)}}
    name = "multilabel_f1" if fits == 10 else f"multilabel_f1_over_{fits}_fits"
    expected = np.mean([f1_score(gold, each, average="macro") for each in found])
    assert metrics.get(name).aggregate(columns) == pytest.approx(expected, abs=1e-12)
    for each in (gold, *found):
        each[:, 5] = False
    without = {"gold_bits": to_bits(gold), **{f"predicted_bits_{fit}": to_bits(each) for fit, each in enumerate(found)}}
    expected = np.mean([f1_score(gold[:, :5], each[:, :5], average="macro") for each in found])
    assert metrics.get(name).aggregate(without) == pytest.approx(expected, abs=1e-12)
    nothing = {column: np.zeros(50) for column in columns}
    assert metrics.get(name).aggregate(nothing) == Undefined("no_labels")
