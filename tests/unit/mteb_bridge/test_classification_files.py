"""The task type ``classification``: own files are scored as mteb's class scores the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval import metrics
from embeval.core.progress import Silent
from embeval.core.protocols import Collected, TaskRef, Undefined
from embeval.core.specs import DatasetRef, ModelSpec, Role, TaskSpec
from embeval.encoders import loading as encoders
from embeval.errors import ConfigError, DataError
from embeval.mteb_bridge import evaluation
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.mteb_bridge.tasks import _own
from embeval.mteb_bridge.tasks.classification import TASK, ClassificationTask
from tests.support.data import write_jsonl

Rows = list[dict[str, Any]]
LABELS = ["billing", "delivery", "login"]
WORDS = {"billing": "invoice payment", "delivery": "parcel courier", "login": "password account"}


def texts(n: int, seed: int) -> Rows:
    """Texts of three labels; half of the words tell which."""
    rng = np.random.default_rng(seed)
    every = " ".join(WORDS.values()).split()
    rows = []
    for row in range(n):
        label = LABELS[row % 3]
        words = [*rng.choice(WORDS[label].split(), 1), *rng.choice(every, 3)]
        rows.append({"text": f"{' '.join(words)} {seed} {row}", "label": label})
    return rows


def bind(folder: Path, path: str = "data", *, split: str = "test", main: str | None = None, **options: Any) -> Any:
    """The task."""
    dataset = DatasetRef(path=path, split=split)
    spec = TaskSpec(name="own", type="classification", dataset=dataset, options=options, main_score=main)
    return TASK.bind(spec, root=folder)


def written(folder: Path, n: int = 60) -> tuple[Rows, Rows]:
    """Rows of both splits, and their files in ``data``."""
    train, test = texts(n, 1), texts(45, 2)
    write_jsonl(folder / "data" / "train.jsonl", train)
    write_jsonl(folder / "data" / "test.jsonl", test)
    return train, test


def encoder() -> Any:
    """The hashing baseline."""
    return encoders.load(encoders.resolve(ModelSpec(name="h", backend="hashing", args={"dim": 64})))


def collect(task: ClassificationTask) -> Collected:
    """What it gets."""
    return task.collect(task.load(), encoder(), Silent())


def theirs(train: Rows, test: Rows, **attributes: Any) -> dict[str, Any]:
    """The scores of mteb's own class, its scoring untouched."""
    from datasets import Dataset, DatasetDict

    data = DatasetDict(
        {
            split: Dataset.from_dict(
                {"text": [row["text"] for row in rows], "label": [LABELS.index(row["label"]) for row in rows]}
            )
            for split, rows in (("train", train), ("test", test))
        }
    )
    loaded = _own.loaded(
        "theirs",
        task_class="AbsTaskClassification",
        type_name="Classification",
        main_score="accuracy",
        dataset=data,
        split="test",
        attributes=attributes,
    )
    model = BridgedEncoder(encoder(), TaskRef(name="theirs", type="Classification"))
    return dict(evaluation.run(loaded.instance(), loaded.category, model)["default"].scores)


def values(task: ClassificationTask) -> dict[str, Any]:
    """Every metric of the task, by name."""
    collected = collect(task)
    return {metric.name: metric.aggregate(collected.records.columns) for metric in task.metrics(task.load())}


@pytest.mark.parametrize("samples", [8, 16])
def test_scores_equal_those_of_mteb(tmp_path: Path, samples: int) -> None:
    """All seven, to 1e-12."""
    train, test = written(tmp_path)
    expected = theirs(train, test, samples_per_label=samples)
    found = values(bind(tmp_path, samples_per_label=samples))
    assert 0.5 < found["accuracy"] < 1.0
    assert len(found) == 7
    for name, value in found.items():
        assert value == pytest.approx(expected[name], abs=1e-12), name


def test_whole_training_split_is_one_classifier(tmp_path: Path) -> None:
    """Equal to scikit-learn's logistic regression on all rows; its metrics say that it is one."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    train, test = written(tmp_path)
    vectors = [encoder().encode([row["text"] for row in rows], role=Role.TEXT).vectors for rows in (train, test)]
    fitted = LogisticRegression(max_iter=100, random_state=42).fit(vectors[0], [row["label"] for row in train])
    predicted = fitted.predict(vectors[1])
    gold = [row["label"] for row in test]
    found = values(bind(tmp_path, samples_per_label=None))
    assert found["accuracy"] == pytest.approx(float(np.mean(predicted == np.array(gold))), abs=1e-12)
    assert found["f1_over_1_fits"] == pytest.approx(f1_score(gold, predicted, average="macro"), abs=1e-12)


def test_neighbours_are_those_of_sklearn(tmp_path: Path) -> None:
    """kNN over all training rows, in the order in which mteb shuffles them: by it goes a tie of distances."""
    from sklearn.neighbors import KNeighborsClassifier

    train, test = written(tmp_path)
    order = list(range(len(train)))
    np.random.RandomState(42).shuffle(order)
    train = [train[row] for row in order]
    vectors = [encoder().encode([row["text"] for row in rows], role=Role.TEXT).vectors for rows in (train, test)]
    fitted = KNeighborsClassifier(3).fit(vectors[0], [row["label"] for row in train])
    hits = fitted.predict(vectors[1]) == np.array([row["label"] for row in test])
    collected = collect(bind(tmp_path, samples_per_label=None, classifier="knn", neighbors=3))
    assert np.array_equal(collected.records.columns["accuracy"], hits.astype(float))
    assert 0.4 < hits.mean() < 1.0


def test_folds_predict_each_text_once(tmp_path: Path) -> None:
    """Five folds of one file: the mean over folds comes first, and the pooled accuracy is the mean of the texts."""
    write_jsonl(tmp_path / "all.jsonl", texts(63, 1))
    task = bind(tmp_path, "all.jsonl", folds=5)
    collected = collect(task)
    names = [metric.name for metric in task.metrics(task.load())]
    assert names[:2] == ["accuracy_over_5_folds", "accuracy"]
    columns = collected.records.columns
    shares = [columns["accuracy"][columns["fold"] == fold].mean() for fold in range(5)]
    assert metrics.get(names[0]).aggregate(columns) == pytest.approx(np.mean(shares), abs=1e-12)
    assert sorted(np.bincount(columns["fold"].astype(int))) == [12, 12, 13, 13, 13]
    assert len(collected.records) == 63


def test_kind_of_file_names_and_order_of_columns_do_not_matter(tmp_path: Path) -> None:
    """csv under other names with numbers as labels: the same hash of the data and the same predictions."""
    train, test = written(tmp_path)
    for name, rows in (("train", train), ("test", test)):
        lines = ["category,comment,id"] + [
            f"{LABELS.index(row['label'])},{row['text']},{place + 1}" for place, row in enumerate(rows)
        ]
        (tmp_path / "csv").mkdir(exist_ok=True)
        (tmp_path / "csv" / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    one, other = bind(tmp_path), bind(tmp_path, "csv", columns={"text": "comment", "label": "category"})
    assert one.load().data_hash == other.load().data_hash
    first, second = collect(one).records, collect(other).records
    assert {name: column.tolist() for name, column in first.columns.items()} == {
        name: column.tolist() for name, column in second.columns.items()
    }
    assert set(second.slices["label"]) == {"0", "1", "2"}
    assert second.ids == tuple(str(place + 1) for place in range(45))
    beside = bind(tmp_path, "data/test.jsonl")
    assert beside.load().data_hash == one.load().data_hash


def test_labels_that_are_numbers_are_in_their_order(tmp_path: Path) -> None:
    """2 before 10: the larger of two is the positive one."""
    rows = [{"text": f"text {place} {'even' * (place % 2)}", "label": [2, 10][place % 2]} for place in range(20)]
    for name in ("train", "test"):
        write_jsonl(tmp_path / "data" / f"{name}.jsonl", rows)
    records = collect(bind(tmp_path)).records
    assert {(label, code) for label, code in zip(records.slices["label"], records.columns["gold"], strict=True)} == {
        ("2", 0.0),
        ("10", 1.0),
    }


def test_ids_and_labels_of_the_file_stay(tmp_path: Path) -> None:
    """Own ids name the items; a column that groups the texts is a slice; known texts are counted."""
    train, test = written(tmp_path)
    rows = [{**row, "id": f"t{place}", "channel": ["mail", "chat"][place % 2]} for place, row in enumerate(test)]
    rows[0]["text"] = train[0]["text"]
    write_jsonl(tmp_path / "data" / "test.jsonl", rows)
    collected = collect(bind(tmp_path))
    assert collected.records.ids[:2] == ("t0", "t1")
    assert collected.records.slices["channel"][:2] == ("mail", "chat")
    assert collected.records.slices["label"] == tuple(row["label"] for row in test)
    assert collected.counts["texts_in_train"] == 1


def changed(rows: Rows, place: int, **values: Any) -> Rows:
    """The rows, one of them with other values."""
    return [{**row, **values} if row is rows[place] else row for row in rows]


@pytest.mark.parametrize(
    ("train", "test", "options", "message"),
    [
        (None, {"place": 4, "text": " \n"}, {}, "test.jsonl, line 5: 'text' is empty"),
        ({"place": 2, "text": ""}, None, {}, "train.jsonl, line 3: 'text' is empty"),
        (None, {"place": 6, "label": "logn"}, {}, "test.jsonl, line 7: no text of .* 'logn'. Did you mean 'login'"),
        ({"place": 9, "label": "once"}, None, {}, "train.jsonl, line 10: only this text has the label 'once'"),
        (None, {"place": 1, "label": None}, {}, "test.jsonl, line 2: 'label' must be an id"),
        (None, {"place": 1, "label": 0.5}, {}, "test.jsonl, line 2: 'label' must be an id"),
        (None, None, {"columns": {"label": "lable"}}, "line 1: there is no column 'lable'"),
        (None, None, {"train_split": "dev"}, "there is no file of the split 'dev'.* Files there: test.jsonl, train"),
        (None, None, {"classifier": "knn", "samples_per_label": 1}, "too few texts to ask 5 neighbours"),
        (None, None, {"folds": 50}, "test.jsonl: 50 folds need at least as many texts, and there are 45"),
    ],
)  # fmt: skip
def test_bad_data_is_never_a_number(tmp_path: Path, train: Any, test: Any, options: Any, message: str) -> None:
    """Refused with file and line before anything is encoded."""
    parts = dict(zip(("train", "test"), written(tmp_path), strict=True))
    for name, change in (("train", train), ("test", test)):
        if change is not None:
            write_jsonl(tmp_path / "data" / f"{name}.jsonl", changed(parts[name], **change))
    with pytest.raises(DataError, match=message):
        bind(tmp_path, **options).load()


def test_one_label_and_one_file_are_refused(tmp_path: Path) -> None:
    """Nothing to tell apart; nothing to learn from but what is asked."""
    rows = [{"text": f"text {place}", "label": "a"} for place in range(6)]
    for name in ("train", "test"):
        write_jsonl(tmp_path / "data" / f"{name}.jsonl", rows)
    with pytest.raises(DataError, match=r"train.jsonl: all 6 texts have the label 'a'; two are needed"):
        bind(tmp_path).load()
    write_jsonl(tmp_path / "all.jsonl", rows)
    with pytest.raises(DataError, match=r"there is one file, and classifiers need texts of their own"):
        bind(tmp_path, "all.jsonl").load()
    (tmp_path / "data" / "test.csv").write_text("text,label\na,b\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"test.csv and test.jsonl are both there"):
        bind(tmp_path).load()


@pytest.mark.parametrize(
    ("options", "main", "message"),
    [
        ({"samples_per_label": 0}, None, "samples_per_label: must be from 1"),
        ({"folds": 1}, None, "folds: must be from 2 to 99"),
        ({"folds": 5, "experiments": 3}, None, "leave experiments out"),
        ({"classifier": "svm"}, None, "classifier"),
        ({"train_split": "test"}, None, "can't be both trained and evaluated on"),
        ({}, "f1_wieghted", "is not a metric of this task. Did you mean 'f1_weighted'"),
        ({"experiments": 5}, "f1", "With these options it is 'f1_over_5_fits'"),
        ({"folds": 4}, "f1", "With these options it is 'f1_over_4_folds'"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: Any, main: str | None, message: str) -> None:
    """With the name of the option, or of the metric that was meant."""
    with pytest.raises(ConfigError, match=message):
        bind(tmp_path, main=main, **options)


def test_a_file_of_another_split_is_refused(tmp_path: Path) -> None:
    """Its texts would be stored as the test split's."""
    with pytest.raises(ConfigError, match=r"dev.jsonl is not the split 'test'"):
        bind(tmp_path, "data/dev.jsonl")
    assert bind(tmp_path, "data/dev.jsonl", split="dev").path == tmp_path / "data" / "dev.jsonl"


def test_protocol_has_each_option_that_changes_a_number(tmp_path: Path) -> None:
    """Other texts per label, experiments, classifier or neighbours: not comparable."""
    written(tmp_path)
    choices: list[dict[str, Any]] = [
        {},
        {"samples_per_label": 16},
        {"samples_per_label": None},
        {"experiments": 5},
        {"folds": 4},
        {"classifier": "knn"},
        {"classifier": "knn", "neighbors": 3},
    ]
    tasks = [bind(tmp_path, **options) for options in choices]
    protocols = [json.dumps(task.protocol(task.load()), sort_keys=True) for task in tasks]
    assert len(set(protocols)) == len(choices)
    written_out = bind(tmp_path, experiments=10)
    assert json.dumps(written_out.protocol(written_out.load()), sort_keys=True) == protocols[0]
    assert str(tmp_path) not in "".join(protocols)


def test_protocol_has_the_ids(tmp_path: Path) -> None:
    """Records of texts with other ids are no records of these."""
    _, test = written(tmp_path)
    task = bind(tmp_path)
    before = task.load(), task.protocol(task.load())
    write_jsonl(tmp_path / "data" / "test.jsonl", [{**row, "id": f"t{place}"} for place, row in enumerate(test)])
    assert task.load().data_hash == before[0].data_hash
    assert task.protocol(task.load()) != before[1]


@pytest.mark.parametrize(("labels", "folds"), [("aabbbbbbbb", 2), ("aabb", 3), ("abbbbbbbbb", 3)])
def test_folds_that_leave_one_label_are_refused(tmp_path: Path, labels: str, folds: int) -> None:
    """Else scikit-learn fails in the middle; of 4 texts in 3 folds, mteb fits on 2 each time though 3 are there."""
    rows = [{"text": f"text {row}", "label": label} for row, label in enumerate(labels)]
    write_jsonl(
        tmp_path / "data" / "test.jsonl", rows if labels.count("a") > 1 else [*rows, {"text": "z", "label": "a"}]
    )
    with pytest.raises(DataError, match=rf"outside one of {folds} folds have the label '[ab]', and a classifier needs"):
        bind(tmp_path, folds=folds).load()


def test_a_measure_that_no_fold_has_is_undefined(tmp_path: Path) -> None:
    """Average precision over folds of one text each: there is no fold with two labels."""
    rows = [{"text": f"text {row}", "label": "ab"[row % 2]} for row in range(6)]
    write_jsonl(tmp_path / "data" / "test.jsonl", rows)
    collected = collect(bind(tmp_path, folds=6))
    assert metrics.get("ap_over_6_folds").aggregate(collected.records.columns) == Undefined("not_two_labels")
