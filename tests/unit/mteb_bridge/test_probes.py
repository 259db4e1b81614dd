"""Classification, multilabel classification and regression: every number equals mteb's on the same predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embeval import metrics
from embeval.core.protocols import TaskRef, Undefined
from embeval.core.specs import ModelSpec
from embeval.encoders import loading as encoders
from embeval.mteb_bridge import evaluation
from embeval.mteb_bridge.categories import Gathered, Outcome
from embeval.mteb_bridge.loading import Loaded
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.mteb_bridge.tasks import _own

WORDS = "red green blue old new token server backup folder key page night user archive restore delete".split()


def sentences(n: int, seed: int) -> list[str]:
    """Texts of three to eight words, none of them twice."""
    rng = np.random.default_rng(seed)
    return [f"{' '.join(rng.choice(WORDS, size=rng.integers(3, 9)))} {seed} {row}" for row in range(n)]


def own(task_class: str, main: str, splits: Mapping[str, Mapping[str, Any]], **attributes: Any) -> Loaded:
    """A task of one of mteb's classes."""
    import datasets

    data = datasets.DatasetDict({name: datasets.Dataset.from_dict(dict(rows)) for name, rows in splits.items()})
    kind = {"AbsTaskRegression": "Regression", "AbsTaskMultilabelClassification": "MultilabelClassification"}
    return _own.loaded(
        "probe",
        task_class=task_class,
        type_name=kind.get(task_class, "Classification"),
        main_score=main,
        dataset=data,
        split="test",
        attributes=attributes,
    )


def several(loaded: Loaded, of_subset: Mapping[str, Any]) -> Loaded:
    """The same task with sub-sets."""
    task = loaded.setting.task
    task.dataset, task.hf_subsets = dict(of_subset), list(of_subset)
    return replace(loaded, setting=replace(loaded.setting, subsets=tuple(of_subset)))


def run(loaded: Loaded) -> tuple[dict[str, Outcome], Gathered, list[str]]:
    """What mteb gave for each sub-set, what we made of it, and the names of our metrics."""
    encoder = encoders.load(encoders.resolve(ModelSpec(name="h", backend="hashing", args={"dim": 32})))
    setting = loaded.instance()
    model = BridgedEncoder(encoder, TaskRef(name="probe", type="Classification"))
    outcomes = evaluation.run(setting, loaded.category, model)
    return outcomes, loaded.category.gather(setting, outcomes, model), list(loaded.category.metrics(setting))


def value(gathered: Gathered, name: str, subset: str | None = None) -> float:
    """A metric from the records alone."""
    records = gathered.records
    if subset is not None:
        records = records.take(records.rows_by("subset")[subset])
    found = metrics.get(name).aggregate(records.columns)
    assert not isinstance(found, Undefined), name
    return found


def labelled(n: int, seed: int, labels: list[Any]) -> dict[str, list[Any]]:
    """Texts, each with a label that some of its words tell."""
    rows = sentences(n, seed)
    return {"text": rows, "label": [labels[(("red" in row) + 2 * ("old" in row)) % len(labels)] for row in rows]}


CLASSIFICATION = ("accuracy", "f1", "f1_weighted", "precision", "precision_weighted", "recall", "recall_weighted")


@pytest.mark.parametrize("labels", [[0, 1], [0, 2, 7], [-1, 1], ["no", "yes", "perhaps"]])
@pytest.mark.parametrize("experiments", [10, 3])
def test_classification_equals_mteb(labels: list[Any], experiments: int) -> None:
    """All of its scores to 1e-12, for two labels and more, numbers and words; ``ap`` where there are two."""
    splits = {"train": labelled(80, 1, labels), "test": labelled(60, 2, labels)}
    loaded = own("AbsTaskClassification", "f1", splits, n_experiments=experiments)
    outcomes, gathered, names = run(loaded)
    scores = outcomes["default"].scores
    suffix = "" if experiments == 10 else "_over_3_fits"
    kinds = [*CLASSIFICATION, *(("ap", "ap_weighted") if len(labels) == 2 else ())]
    assert names[0] == "f1" + suffix
    assert set(names) == {"accuracy", *(kind + suffix for kind in kinds if kind != "accuracy")}
    assert 0.4 < scores["accuracy"] < 0.99
    for kind in kinds:
        name = kind if kind == "accuracy" else kind + suffix
        assert value(gathered, name) == pytest.approx(scores[kind], abs=1e-12), name
    predicted = np.array(outcomes["default"].predictions)
    hits = (predicted == np.array(splits["test"]["label"])).mean(axis=0)
    assert gathered.records.columns["accuracy"].tolist() == hits.tolist()
    assert gathered.records.slices["label"] == tuple(map(str, splits["test"]["label"]))


def test_cross_validation_equals_mteb() -> None:
    """The mean over folds of unequal size, to 1e-12; the pooled accuracy is another number, and each text has one."""
    loaded = own("AbsTaskClassification", "accuracy", {"test": labelled(63, 3, [0, 1])}, train_split="test",
                 is_cross_validation=True, n_splits=4)  # fmt: skip
    outcomes, gathered, names = run(loaded)
    assert names[0] == "accuracy_over_4_folds"
    scores = outcomes["default"].scores
    for kind in (*CLASSIFICATION, "ap"):
        assert value(gathered, f"{kind}_over_4_folds") == pytest.approx(scores[kind], abs=1e-12), kind
    assert value(gathered, "accuracy") == pytest.approx(float(gathered.records.columns["accuracy"].mean()))
    assert value(gathered, "accuracy") != pytest.approx(scores["accuracy"], abs=1e-9)
    assert sorted(np.bincount(gathered.records.columns["fold"].astype(int))) == [15, 16, 16, 16]


def test_classification_of_several_subsets_equals_mteb() -> None:
    """Each sub-set for itself; a word that is a label in one only has one code in all."""
    import datasets

    base = own("AbsTaskClassification", "accuracy", {"test": labelled(4, 1, [0, 1])})
    parts = {"en": ["b", "c", "d"], "de": ["a", "b", "c"]}
    loaded = several(
        base,
        {
            name: datasets.DatasetDict(
                {split: datasets.Dataset.from_dict(labelled(40, 10 * len(labels) + seed, labels))
                 for seed, split in enumerate(["train", "test"])}
            )
            for name, labels in parts.items()
        },
    )  # fmt: skip
    outcomes, gathered, _ = run(loaded)
    for subset in parts:
        for kind in CLASSIFICATION:
            assert value(gathered, kind, subset) == pytest.approx(outcomes[subset].scores[kind], abs=1e-12)
    assert gathered.records.ids[:2] == ("en/0", "en/1")
    names, codes = gathered.records.slices["label"], gathered.records.columns["gold"]
    assert {name: {code for each, code in zip(names, codes, strict=True) if each == name} for name in "abcd"} == {
        "a": {0.0},
        "b": {1.0},
        "c": {2.0},
        "d": {3.0},
    }


def test_labels_of_few_training_rows_and_known_texts_are_told() -> None:
    """Ten rows of one label where the task wants 16; three test texts stand in the training split."""
    train, test = labelled(120, 1, [0, 1]), labelled(40, 2, [0, 1])
    rare = [row for row, label in enumerate(train["label"]) if label == 1][:10]
    keep = sorted({row for row, label in enumerate(train["label"]) if label == 0} | set(rare))
    train = {name: [each[row] for row in keep] for name, each in train.items()}
    test["text"][:3] = train["text"][:3]
    _, gathered, _ = run(own("AbsTaskClassification", "accuracy", {"train": train, "test": test}, samples_per_label=16))
    assert gathered.counts["texts_in_train"] == 3
    assert gathered.warnings == (
        "1 label has fewer than 16 training rows, and the classifiers saw all of these.",
    )  # fmt: skip


def multi(n: int, seed: int, labels: list[Any]) -> dict[str, list[Any]]:
    """Texts with up to as many labels as there are."""
    rows = sentences(n, seed)
    marked = [[label for label, word in zip(labels, WORDS, strict=False) if word in row] for row in rows]
    return {"text": rows, "label": marked}


@pytest.mark.parametrize("labels", [[0, 1, 2, 5], ["a", "b", "c"]])
@pytest.mark.parametrize("experiments", [10, 2])
def test_multilabel_equals_mteb(labels: list[Any], experiments: int) -> None:
    """accuracy, lrap, hamming and f1 to 1e-12, with texts that have no label and texts that have all."""
    splits = {"train": multi(90, 1, labels), "test": multi(70, 2, labels)}
    counts = {len(each) for each in splits["test"]["label"]}
    assert {0, len(labels)} & counts
    loaded = own("AbsTaskMultilabelClassification", "lrap", splits, n_experiments=experiments)
    outcomes, gathered, names = run(loaded)
    scores = outcomes["default"].scores
    f1 = "multilabel_f1" if experiments == 10 else "multilabel_f1_over_2_fits"
    assert names == ["lrap", "accuracy", "hamming", f1]
    assert value(gathered, f1) == pytest.approx(scores["f1"], abs=1e-12)
    for name in names[:3]:
        assert value(gathered, name) == pytest.approx(scores[name], abs=1e-12), name


def test_multilabel_of_more_texts_than_mteb_evaluates() -> None:
    """The items are the rows that mteb drew, under their own numbers, and the others are counted."""
    splits = {"train": multi(60, 1, [0, 1, 2]), "test": multi(80, 2, [0, 1, 2])}
    loaded = own("AbsTaskMultilabelClassification", "accuracy", splits, max_eval_samples=30)
    outcomes, gathered, names = run(loaded)
    n = len(outcomes["default"].predictions[0])
    assert len(gathered.records) == n < 80
    assert gathered.counts["texts_not_drawn"] == 80 - n
    assert len(set(gathered.records.ids)) == n
    assert gathered.records.ids != tuple(map(str, range(n)))
    for name, theirs in zip(names, ["accuracy", "lrap", "hamming", "f1"], strict=True):
        assert value(gathered, name) == pytest.approx(outcomes["default"].scores[theirs], abs=1e-12), name
    rows = np.array(gathered.records.ids, dtype=int)
    gold = np.array([sum(2**label for label in splits["test"]["label"][row]) for row in rows], dtype=float)
    assert np.array_equal(gathered.records.columns["gold_bits"], gold)


def test_multilabel_f1_of_too_many_labels_is_left_out() -> None:
    """53 labels: no F1, and a warning that says so."""
    rows = {"text": sentences(106, 1), "label": [[row % 53] for row in range(106)]}
    loaded = own("AbsTaskMultilabelClassification", "accuracy", {"train": rows, "test": rows}, n_experiments=1)
    outcomes, gathered, names = run(loaded)
    assert names == ["accuracy", "lrap", "hamming"]
    assert gathered.warnings == ("No F1: it is computed for up to 52 labels, and there are 53.",)
    assert value(gathered, "hamming") == pytest.approx(outcomes["default"].scores["hamming"], abs=1e-12)


@pytest.mark.parametrize("n_samples", [2048, 40])
def test_regression_equals_mteb(n_samples: int) -> None:
    """All five scores, for the same training rows in all ten fits and for rows drawn for each.

    To 1e-6: predictions are float32, and mteb squares some of them as such.
    """
    splits = {
        name: {"text": sentences(n, seed), "value": [float(len(text) % 7) for text in sentences(n, seed)]}
        for name, n, seed in (("train", 100, 1), ("test", 60, 2))
    }
    loaded = own("AbsTaskRegression", "kendalltau", splits, n_samples=n_samples)
    outcomes, gathered, names = run(loaded)
    assert names == ["kendalltau", "rmse", "r2", "mse", "mae"]
    for name in names:
        assert value(gathered, name) == pytest.approx(outcomes["default"].scores[name], rel=1e-6), name
    same = np.array_equal(gathered.records.columns["predicted_0"], gathered.records.columns["predicted_9"])
    assert same == (n_samples == 2048)


def test_two_evaluations_give_the_same_digits() -> None:
    """mteb draws from the random states of the task object; each evaluation has its own copy."""
    splits = {"train": multi(90, 1, [0, 1, 2]), "test": multi(70, 2, [0, 1, 2])}
    loaded = own("AbsTaskMultilabelClassification", "accuracy", splits)
    (_, first, _), (_, second, _) = run(loaded), run(loaded)
    for name, column in first.records.columns.items():
        assert np.array_equal(column, second.records.columns[name]), name
