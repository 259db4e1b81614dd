"""Clustering against mteb 2.26's own task classes, and one's own files."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from embeval import metrics
from embeval.core.progress import Silent
from embeval.core.protocols import TaskRef
from embeval.core.specs import DatasetRef, StatisticsOptions, TaskSpec
from embeval.errors import ConfigError, DataError, EvaluationError
from embeval.mteb_bridge import door, evaluation
from embeval.mteb_bridge.categories import Gathered, Outcome, _partitions, of
from embeval.mteb_bridge.loading import Loaded
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.mteb_bridge.tasks import _own
from embeval.mteb_bridge.tasks.clustering import TASK
from embeval.stats import scoring
from tests.support.data import write_jsonl
from tests.support.doubles import TableEncoder

TEXTS = [f"text {row}" for row in range(24)]
VECTORS = np.random.default_rng(7).normal(size=(24, 4)) + 3.0 * np.repeat(np.eye(4), 6, axis=0)
ENCODER = TableEncoder(dict(zip(TEXTS, VECTORS.tolist(), strict=True)))
BROAD = [row // 12 for row in range(24)]
FINE = [row // 6 for row in range(24)]


def table(**columns: Sequence[Any]) -> Any:
    """A data set in memory."""
    from datasets import Dataset

    return Dataset.from_dict(columns)


def of_mteb(task_class: str, subsets: Mapping[str, Any], **attributes: Any) -> Loaded:
    """A task of one of mteb's classes with these sub-sets."""
    loaded = _own.loaded(
        "Example",
        task_class=task_class,
        type_name="Clustering",
        main_score="v_measure",
        dataset={subset: {"test": rows} for subset, rows in subsets.items()},
        split="test",
        attributes=attributes,
    )
    loaded.setting.task.hf_subsets = list(subsets)
    return Loaded(replace(loaded.setting, subsets=tuple(subsets)), of(loaded.setting.task))


def ran(loaded: Loaded) -> tuple[Gathered, dict[str, Outcome]]:
    """What the category makes of mteb's task class, and what that class gave."""
    setting = loaded.instance()
    model = BridgedEncoder(ENCODER, TaskRef(name="Example", type="Clustering"))
    outcomes = evaluation.run(setting, loaded.category, model)
    return loaded.category.gather(setting, outcomes, model), outcomes


def mean(gathered: Gathered, metric: str, subset: str | None = None) -> float:
    """The metric by its name alone, of all items or of a sub-set."""
    records = gathered.records if subset is None else gathered.records.take(gathered.records.rows_by("subset")[subset])
    value = metrics.get(metric).aggregate(records.columns)
    assert isinstance(value, float)
    return value


@pytest.fixture(scope="module")
def hierarchy() -> Loaded:
    """Two sub-sets, one of them with two levels of labels; of each, a sample is embedded."""
    return of_mteb(
        "AbsTaskClustering",
        {
            "one": table(sentences=TEXTS, labels=[list(pair) for pair in zip(BROAD, FINE, strict=True)]),
            "other": table(sentences=TEXTS[::-1], labels=FINE[::-1]),
        },
        max_fraction_of_documents_to_embed=None,
        max_document_to_embed=20,
        max_documents_per_cluster=30,
    )


def test_a_clustering_by_hand() -> None:
    """Labels 0 0 1 1, clusters 0 0 1 2: from the definitions, AMI's expectation over all 24 orders of the clusters."""
    found = _partitions.measures(list("aabb"), [0, 0, 1, 2])
    h_clusters, h_labels = 1.5 * np.log(2), np.log(2)

    def information(clusters: Sequence[int]) -> float:
        pairs = list(zip("aabb", clusters, strict=True))
        return float(sum(np.log(pairs.count(pair) / (0.5 * clusters.count(pair[1]))) for pair in pairs) / 4)

    expected = np.mean([information(order) for order in itertools.permutations([0, 0, 1, 2])])
    assert found == pytest.approx(
        {
            "homogeneity": 1.0,
            "completeness": 2 / 3,
            "v_measure": 0.8,
            "ari": (1 - 2 / 6) / (1.5 - 2 / 6),
            "ami": (np.log(2) - expected) / ((h_clusters + h_labels) / 2 - expected),
            "cluster_accuracy": 0.75,
        },
        abs=1e-12,
    )


def test_values_are_those_of_mteb(hierarchy: Loaded) -> None:
    """V-measure and AMI per sub-set, over draws of all levels, to 1e-12."""
    gathered, outcomes = ran(hierarchy)
    for subset, outcome in outcomes.items():
        for metric in ("v_measure", "ami"):
            assert mean(gathered, metric, subset) == pytest.approx(outcome.scores[metric], abs=1e-12)
    assert 0.2 < mean(gathered, "v_measure") < 0.99


def test_the_draws_are_those_that_mteb_made(hierarchy: Loaded) -> None:
    """ARI of each item is that of the labels and clusters which mteb itself compared, in its order."""
    from sklearn.metrics import adjusted_rand_score, v_measure_score

    expected = []

    def seen(gold: Any, clusters: Any) -> float:
        expected.append(adjusted_rand_score(gold, clusters))
        return float(v_measure_score(gold, clusters))

    with mock.patch("mteb.abstasks.clustering.v_measure_score", seen):
        gathered, _ = ran(hierarchy)
    assert gathered.records.columns["ari"].tolist() == expected
    assert len(set(expected)) > 20


def test_items_are_draws_at_a_level(hierarchy: Loaded) -> None:
    """Ids and labels; draws of both levels come together, so that a resample holds as many of each."""
    gathered, _ = ran(hierarchy)
    records = gathered.records
    assert records.unit == "draw"
    assert records.ids[0] == "one/level-0/draw-0"
    assert records.ids[19:21] == ("one/level-1/draw-9", "other/draw-0")
    assert records.slices["level"] == ("0",) * 10 + ("1",) * 10 + ("0",) * 10
    assert records.clusters is not None
    assert records.clusters[3] == records.clusters[13] == "one/draw-3"
    assert gathered.counts == {"draws": 30, "documents": 48, "documents_embedded": 40}
    assert gathered.warnings[0].startswith("Intervals speak of 10 draws of the same documents, not of other documents")


def test_levels_do_not_widen_the_interval(hierarchy: Loaded) -> None:
    """Levels that score differently are no spread of the draws: as wide as a bootstrap within each level."""
    gathered, _ = ran(hierarchy)
    records = gathered.records.take(gathered.records.rows_by("subset")["one"])
    levels = records.columns["v_measure"].reshape(2, 10)
    rng = np.random.default_rng(0)
    within = [np.mean([rng.choice(level, 10).mean() for level in levels]) for _ in range(4000)]
    estimate = scoring.estimate(records, [metrics.get("v_measure")], StatisticsOptions(resamples=4000))["v_measure"]
    assert np.std(estimate.samples) == pytest.approx(np.std(within), rel=0.4)
    assert np.std(estimate.samples) < 0.6 * np.std(records.columns["v_measure"]) / np.sqrt(20)


def test_draws_that_can_not_be_followed_are_refused(hierarchy: Loaded) -> None:
    """Another V-measure than that of the documents drawn: no number."""
    _, outcomes = ran(hierarchy)
    outcomes["other"].scores["v_measures"]["Level 0"][4] += 1e-6
    with pytest.raises(EvaluationError, match=r"can't be followed \(other, level 0, draw 4\)"):
        hierarchy.category.gather(hierarchy.instance(), outcomes, None)


def test_documents_without_a_label_among_text_are_told() -> None:
    """mteb takes its sign for "no label" for a label where the others are text; among numbers it leaves them out."""
    for second, n_told in (("x", 1), (1, 0)):
        labels = [[second], *([other, second] for other in ([0, 1] if second == 1 else ["a", "b"]) * 8)]
        rows = table(sentences=TEXTS[: len(labels)], labels=labels)
        gathered, outcomes = ran(of_mteb("AbsTaskClustering", {"default": rows}, max_documents_per_cluster=12,
                                         max_fraction_of_documents_to_embed=None))  # fmt: skip
        told = [each for each in gathered.warnings if "without a label" in each]
        assert len(told) == n_told
        assert mean(gathered, "v_measure") == pytest.approx(outcomes["default"].scores["v_measure"], abs=1e-12)


def test_a_set_of_texts_is_an_item_of_the_older_class() -> None:
    """V-measure of each set as mteb lists it; a set of one label is 1, and told."""
    rows = table(
        sentences=[TEXTS[:20], TEXTS[20:], TEXTS[4:]],
        labels=[BROAD[:20], [7] * 4, FINE[4:]],
    )
    gathered, outcomes = ran(of_mteb("AbsTaskClusteringLegacy", {"default": rows}))
    records, scores = gathered.records, outcomes["default"].scores
    assert records.columns["v_measure"] == pytest.approx(scores["v_measures"], abs=1e-12)
    assert mean(gathered, "v_measure") == pytest.approx(scores["v_measure"], abs=1e-12)
    assert (records.ids, records.unit) == (("0", "1", "2"), "set")
    assert 0.0 < records.columns["ari"][0] < 1.0
    assert records.columns["ari"][1] == 1.0
    assert gathered.counts == {"sets": 3, "documents": 44}
    assert gathered.warnings == (
        "1 set has fewer than two labels: v_measure 1 there, whatever the model.",
        "Intervals speak of 3 sets of documents, each clustered once.",
    )


def test_other_rows_have_another_hash() -> None:
    """A text that moves to the labels, or from one set to the next, changes what the hash says."""
    sets = [[["a", "b"], ["c"]], [["a"], ["b", "c"]]]
    hashes = {
        of_mteb("AbsTaskClusteringLegacy", {"default": table(sentences=texts, labels=labels)}).data_hash
        for texts, labels in itertools.product(sets, sets)
    }
    assert len(hashes) == 4
    flat = [of_mteb("AbsTaskClustering", {"default": table(sentences=["a"], labels=[label])}) for label in ("b", ["b"])]
    assert flat[0].data_hash == flat[1].data_hash  # mteb reads both alike


def own(path: Path, **options: Any) -> Any:
    """The task of one's own file."""
    spec = TaskSpec(name="own", type="clustering", dataset=DatasetRef(path=path.name), options=options)
    return TASK.bind(spec, root=path.parent)


def rows(labels: Sequence[Any]) -> list[dict[str, Any]]:
    """A text for each label."""
    return [{"text": text, "label": label} for text, label in zip(TEXTS, labels, strict=False)]


def test_an_own_file_is_scored_as_mteb_scores(tmp_path: Path) -> None:
    """The mean V-measure of mteb's function on the same vectors, with its seed and these options."""
    door.library()
    from mteb.abstasks.clustering import _evaluate_clustering_bootstrapped

    expected, _ = _evaluate_clustering_bootstrapped(
        VECTORS.astype(np.float32),
        [[f"label {each}"] for each in FINE],
        n_clusters=4,
        cluster_size=50,
        kmean_batch_size=8,
        max_depth=None,
        rng_state=random.Random(42),  # noqa: S311 - mteb's
        seed=42,
    )
    task = own(
        write_jsonl(tmp_path / "own.jsonl", rows([f"label {each}" for each in FINE])),
        draws=4, documents_per_draw=50, batch_size=8,
    )  # fmt: skip
    collected = task.collect(task.load(), ENCODER, Silent())
    assert collected.records.columns["v_measure"] == pytest.approx(expected["v_measure"]["Level 0"], abs=1e-12)
    assert collected.records.ids == ("draw-0", "draw-1", "draw-2", "draw-3")
    assert collected.counts["documents"] == 24


def test_levels_and_a_sample_of_an_own_file(tmp_path: Path) -> None:
    """A list of labels is a hierarchy; what is missing at a level is left out there, text or not."""
    labels = [[f"b{broad}", f"f{fine}"] for broad, fine in zip(BROAD, FINE, strict=True)]
    labels[0] = labels[0][:1]
    path = write_jsonl(tmp_path / "own.jsonl", rows(labels))
    task = own(path, draws=3, documents_per_draw=40)
    found = task.collect(task.load(), ENCODER, Silent())
    assert found.records.slices["level"] == ("0",) * 3 + ("1",) * 3
    assert not any("without a label" in each for each in found.warnings)
    one = own(path, draws=3, documents_per_draw=40, max_depth=1, max_documents=12)
    collected = one.collect(one.load(), ENCODER, Silent())
    assert "level" not in collected.records.slices
    assert collected.counts["documents_embedded"] == 12
    assert collected.counts["texts"] == 12


def test_the_same_rows_in_another_format_are_the_same_data(tmp_path: Path) -> None:
    """Numbers in jsonl, text in csv; every option that changes a number is in the protocol."""
    jsonl = own(write_jsonl(tmp_path / "own.jsonl", rows(FINE)))
    (tmp_path / "own.csv").write_text(
        "text,topic\n" + "".join(f"{row['text']},{row['label']}\n" for row in rows(FINE)), encoding="utf-8"
    )
    csv = own(tmp_path / "own.csv", columns={"label": "topic"})
    assert csv.load().data_hash == jsonl.load().data_hash
    assert csv.protocol(csv.load()) == jsonl.protocol(jsonl.load())
    for option in (
        {"draws": 5},
        {"documents_per_draw": 99},
        {"max_documents": 20},
        {"batch_size": 4},
        {"max_depth": 1},
    ):
        other = own(tmp_path / "own.jsonl", **option)
        assert other.protocol(other.load()) != jsonl.protocol(jsonl.load())


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (rows(["a", "b", "a"]), {"columns": {"label": "lable"}}, r"line 1: there is no column 'lable'.*Did you mean"),
        ([*rows(["a", "b", "a"]), {"text": "t"}], {}, r"line 4: there is no column 'label'"),
        ([*rows(["a", "b", "a"]), {"text": " ", "label": "a"}], {}, r"line 4: 'text' is empty"),
        ([*rows(["a", "b", "a"]), {"text": "t", "label": None}], {}, r"line 4: 'label' must be an id"),
        ([*rows(["a", "b", "a"]), {"text": "t", "label": []}], {}, r"line 4: 'label' is an empty list"),
        ([*rows(["a", "b", "a"]), {"text": "t", "label": ["a", 1.5]}], {}, r"line 4: 'label' must be an id"),
        (rows(["a", "a", "a"]), {}, r"own.jsonl: all texts have the label 'a'"),
        (rows(["a", "b", "c"]), {}, r"own.jsonl: each of 3 texts has a label of its own"),
        (rows([["a", "x"], ["b", "x"], ["b", "x"]]), {}, r"level 1 of the labels: all texts have the label 'x'"),
        (rows([*"abcabc"]), {"documents_per_draw": 2}, r"3 labels, and only 2 documents in a draw"),
        (rows(["a"] * 20 + ["b"] * 4), {"max_documents": 2}, r"jsonl, 2 documents sampled: "),
    ],
)  # fmt: skip
def test_rows_that_can_not_be_clustered_are_refused(
    tmp_path: Path, content: list[dict[str, Any]], options: dict[str, Any], message: str
) -> None:
    """File, line and what to do, never a number."""
    path = write_jsonl(tmp_path / "own.jsonl", content)
    with pytest.raises(DataError, match=rf"(?s){message}") as caught:
        own(path, **options).load()
    assert str(path) in str(caught.value)


def test_options_out_of_range_are_refused(tmp_path: Path) -> None:
    """Each with its name and its lowest value; and a metric that clustering doesn't have."""
    for name, least in {
        "draws": 2,
        "documents_per_draw": 2,
        "max_documents": 2,
        "batch_size": 1,
        "max_depth": 1,
    }.items():
        with pytest.raises(ConfigError, match=f"{name}: must be at least {least}, not 0"):
            own(tmp_path / "own.jsonl", **{name: 0})
    with pytest.raises(ConfigError, match="Did you mean 'v_measure'"):
        TASK.bind(
            TaskSpec(name="own", type="clustering", dataset=DatasetRef(path="own.jsonl"), main_score="vmeasure"),
            root=tmp_path,
        )
    with pytest.raises(ConfigError, match=r"test\.jsonl is not the split 'dev'"):
        TASK.bind(TaskSpec(name="own", type="clustering", dataset=DatasetRef(path="test.jsonl", split="dev")),
                  root=tmp_path)  # fmt: skip


def test_results_are_plain_json(tmp_path: Path) -> None:
    """Counts and protocol hold no numpy types."""
    task = own(write_jsonl(tmp_path / "own.jsonl", rows(FINE)), draws=2, documents_per_draw=30)
    payload = task.load()
    json.dumps([task.protocol(payload), dict(task.collect(payload, ENCODER, Silent()).counts)])


def test_labels_of_several_levels_in_a_csv_file(tmp_path: Path) -> None:
    """A list in a cell is JSON and stands for levels; a text that only begins like one is a label."""
    lines = [f'text {row},"[""{row // 4}"", {row // 2}]"' for row in range(8)]
    (tmp_path / "mine.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    assert own(tmp_path / "mine.csv").load().setting.task.dataset["test"]["labels"][:3] == [[0, 1], [0, 1], [0, 2]]
    lines = [f"text {row},[draft {row // 4}" for row in range(8)]
    (tmp_path / "mine.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    assert own(tmp_path / "mine.csv").load().setting.task.dataset["test"]["labels"][:5] == [[0]] * 4 + [[1]]
