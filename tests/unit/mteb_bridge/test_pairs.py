"""Pair classification, bitext mining and summarization: what mteb 2.26 gives, from our item records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval import metrics
from embeval.core.progress import Silent
from embeval.core.protocols import TaskRef, Undefined
from embeval.core.specs import DatasetRef, ModelSpec, Role, TaskSpec
from embeval.encoders import loading as encoders
from embeval.errors import ConfigError, DataError, InvalidEmbeddingsError
from embeval.mteb_bridge import categories, door, evaluation
from embeval.mteb_bridge.categories import Gathered, Outcome, Setting
from embeval.mteb_bridge.categories.bitext import NAMES
from embeval.mteb_bridge.loading import Loaded, eager
from embeval.mteb_bridge.model import BridgedEncoder
from embeval.tasks import TASK_TYPES
from tests.support.data import write_jsonl
from tests.support.doubles import TableEncoder

WORDS = ("backup", "restore", "server", "token", "user", "file", "page", "archive", "night", "key")


def hashing() -> Any:
    """The baseline that needs no model."""
    return encoders.load(encoders.resolve(ModelSpec(name="hashing", backend="hashing")))


def sentences(n: int, seed: int) -> list[str]:
    """Texts of a few words."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(3, 7))) for _ in range(n)]


def mock(name: str, dataset: Any, **changes: Any) -> Loaded:
    """A mock task of mteb with rows of ours."""
    import mteb.mocks.mock_tasks as mocks

    with door.quiet():
        task = getattr(mocks, name)()
    task.dataset, task.data_loaded = dataset, True
    for attribute, value in changes.items():
        setattr(task, attribute, value)
    eager(task)
    return Loaded(Setting(task=task, split="test", subsets=tuple(task.hf_subsets)), categories.of(task))


def table(**columns: Sequence[Any]) -> Any:
    """A data set of the hub's kind."""
    from datasets import Dataset

    return Dataset.from_dict({name: list(values) for name, values in columns.items()})


def evaluated(loaded: Loaded, encoder: Any) -> tuple[Gathered, Mapping[str, Outcome]]:
    """Ours and mteb's."""
    setting = loaded.instance()
    model = BridgedEncoder(encoder, TaskRef(name="example", type=setting.task.metadata.type), Silent())
    outcomes = evaluation.run(setting, loaded.category, model)
    return loaded.category.gather(setting, outcomes, model), outcomes


def value(gathered: Gathered, name: str, subset: str | None = None) -> float:
    """A metric by its name alone, of one sub-set or of all items that have a value."""
    records = gathered.records
    if subset is not None:
        records = records.take(records.rows_by("subset")[subset])
    metric = metrics.get(name)
    there = ~np.isnan(np.stack([records.columns[column] for column in metric.columns])).any(axis=0)
    found = metric.aggregate({column: records.columns[column][there] for column in metric.columns})
    assert not isinstance(found, Undefined), name
    return found


def pairs(n: int, seed: int) -> Any:
    """Pairs of which those that belong together share words."""
    left = sentences(n, seed)
    labels = np.random.default_rng(seed).integers(0, 2, n).tolist()
    other = sentences(n, seed + 1)
    right = [text.rsplit(" ", 1)[0] + " night" if label else far for text, far, label in zip(left, other, labels)]  # noqa: B905
    return table(sentence1=left, sentence2=right, labels=labels)


def test_pair_classification_equals_mteb_in_every_sub_set() -> None:
    """All thirty scores of mteb's task class, to 1e-6, in both sub-sets; those that differ are told."""
    loaded = mock(
        "MockMultilingualPairClassificationTask", {"eng": {"test": pairs(60, 1)}, "fra": {"test": pairs(45, 2)}}
    )
    gathered, outcomes = evaluated(loaded, hashing())
    ours = list(loaded.category.metrics(loaded.setting))
    assert len(ours) == 30
    assert gathered.also == ()
    for subset, outcome in outcomes.items():
        for name in ours:
            assert value(gathered, name, subset) == pytest.approx(outcome.scores[name], abs=1e-6), (subset, name)
    assert gathered.records.ids[60] == "fra/0"
    assert not [name for name in gathered.records.columns if name.startswith("mteb_")]


def test_mteb_values_are_kept_where_they_differ() -> None:
    """Fault F19 (i) through a task: all pairs alike. Accuracy 1/2 and F1 2/3; mteb's 0 stand beside, as mteb has it."""
    texts = {"a": (1.0, 0.0), "b": (1.0, 0.0)}
    data = table(sentence1=["a"] * 4, sentence2=["b"] * 4, labels=[1, 1, 0, 0])
    gathered, outcomes = evaluated(mock("MockPairClassificationTask", {"test": data}), TableEncoder(texts))
    assert value(gathered, "max_accuracy") == 0.5
    assert value(gathered, "max_f1") == pytest.approx(2 / 3)
    assert value(gathered, "max_ap") == 0.5
    assert set(gathered.also) >= {"mteb_max_accuracy", "mteb_max_f1", "mteb_cosine_f1"}
    assert "mteb_max_ap" not in gathered.also
    for name in gathered.also:
        assert value(gathered, name) == outcomes["default"].scores[name.removeprefix("mteb_")] == 0.0


def test_a_zero_vector_has_cosine_0() -> None:
    """As for STS (fault F12): mteb's cosine is 0.5 with it, its AP 0.5; ours puts the pair last, and AP is 1."""
    texts = {"zero": (0.0, 0.0), "x": (1.0, 0.0), "near": (0.3, 0.953939), "y": (0.9, 0.43589)}
    data = table(sentence1=["zero", "x", "x"], sentence2=["x", "near", "y"], labels=[0, 1, 1])
    loaded = mock("MockPairClassificationTask", {"test": data})
    gathered, outcomes = evaluated(loaded, TableEncoder(texts))
    assert gathered.records.columns["cosine"] == pytest.approx([0.0, 0.3, 0.9], abs=1e-6)
    assert value(gathered, "cosine_ap") == 1.0
    assert outcomes["default"].scores["cosine_ap"] == pytest.approx(5 / 6)
    assert value(gathered, "mteb_cosine_ap") == pytest.approx(5 / 6)
    assert "mteb_cosine_ap" in gathered.also


def test_under_parity_the_value_of_mteb_stands() -> None:
    """``parity: mteb``: its main score comes first, its scores are all there, and equal it to the digit."""
    loaded = mock("MockPairClassificationTask", {"test": pairs(40, 3)})
    setting = Setting(task=loaded.setting.task, split="test", subsets=loaded.setting.subsets, parity="mteb")
    loaded = Loaded(setting, loaded.category)
    names = loaded.category.metrics(setting)
    assert names[0] == "mteb_similarity_ap"  # the mock task's main score
    gathered, outcomes = evaluated(loaded, hashing())
    for name in names[:30]:
        theirs = outcomes["default"].scores[name.removeprefix("mteb_")]
        assert value(gathered, name) == pytest.approx(theirs, abs=1e-12), name


def test_pairs_in_a_single_row_are_the_same_pairs() -> None:
    """Older data sets hold lists in one row: the same items, and the same hash of the data."""
    rows = pairs(20, 4)
    one_row = table(**{name: [rows[name][:]] for name in rows.column_names})
    found = [mock("MockPairClassificationTask", {"test": data}) for data in (rows, one_row)]
    assert found[0].data_hash == found[1].data_hash
    first, second = (evaluated(each, hashing())[0].records for each in found)
    assert first.ids == second.ids
    assert all(np.array_equal(column, second.columns[name]) for name, column in first.columns.items())


def test_a_label_that_is_neither_0_nor_1_is_refused() -> None:
    """mteb would count it as one that belongs together for F1 and as neither for accuracy."""
    data = table(sentence1=["a", "b"], sentence2=["b", "a"], labels=[1, 2])
    with pytest.raises(DataError, match=r"row 1: the label of a pair must be 0 or 1, not 2"):
        evaluated(mock("MockPairClassificationTask", {"test": data}), hashing())


def test_bitext_equals_mteb_where_many_take_one_for_theirs() -> None:
    """F1, precision, recall and accuracy of scikit-learn's weighted scores, to 1e-12; hubs and copies among them."""
    left = sentences(40, 5)
    right = [text.rsplit(" ", 1)[0] for text in left[:30]] + ["backup"] * 10
    loaded = mock("MockBitextMiningTask", {"test": table(sentence1=left, sentence2=right)})
    gathered, outcomes = evaluated(loaded, hashing())
    assert loaded.category.metrics(loaded.setting)[0] == "accuracy"  # the mock task's main score
    for theirs, ours in NAMES.items():
        assert value(gathered, ours) == pytest.approx(outcomes["default"].scores[theirs], abs=1e-12), ours
    assert 0.2 < value(gathered, "bitext_precision") < value(gathered, "bitext_recall") < 1.0


def test_bitext_of_columns_that_sub_sets_share() -> None:
    """Each pair of languages has its own items; mteb encodes every column once."""
    texts = sentences(20, 6)
    other = [f"{text} night" for text in texts]
    import mteb.mocks.mock_tasks as mocks

    subsets = mocks.MockMultilingualParallelBitextMiningTask.metadata.hf_subsets
    columns = {name: texts for subset in subsets for name in subset.split("-")}
    columns[subsets[0].split("-")[1]] = other
    encoder = CountedTexts(hashing())
    loaded = mock("MockMultilingualParallelBitextMiningTask", {"test": table(**columns)})
    gathered, outcomes = evaluated(loaded, encoder)
    assert len(gathered.records) == 20 * len(subsets)
    assert encoder.n == 20 * len(columns)
    for subset in subsets:
        for theirs, ours in NAMES.items():
            assert value(gathered, ours, subset) == pytest.approx(outcomes[subset].scores[theirs], abs=1e-12)
    assert (
        loaded.data_hash
        != mock("MockMultilingualParallelBitextMiningTask", {"test": table(**dict.fromkeys(columns, texts))}).data_hash
    )


class CountedTexts:
    """An encoder that counts what it is given."""

    def __init__(self, encoder: Any) -> None:
        self._encoder, self.n = encoder, 0

    def encode(self, texts: Sequence[str], **keys: Any) -> Any:
        """Vectors of the encoder inside."""
        self.n += len(texts)
        return self._encoder.encode(texts, **keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


def test_bitext_where_the_data_says_what_is_to_be_found() -> None:
    """As BUCC: more sentences on the other side, and two that look for the same one."""
    left = ["backup server", "token user", "user token", "night key"]
    right = ["file page", "night key", "user token archive", "backup server"]
    data = {"sentence1": left, "sentence2": right, "gold": [(0, 3), (1, 2), (2, 2), (3, 1)]}
    loaded = mock("MockBitextMiningTask", {"test": data})
    gathered, outcomes = evaluated(loaded, hashing())
    for theirs, ours in NAMES.items():
        assert value(gathered, ours) == pytest.approx(outcomes["default"].scores[theirs], abs=1e-12), ours
    assert value(gathered, "accuracy") == 1.0


def test_a_copy_of_the_translation_is_told() -> None:
    """Two sentences have one translation: one of them finds the other's, which counts as wrong."""
    data = table(sentence1=["backup server", "server backup night"], sentence2=["backup server"] * 2)
    gathered, _ = evaluated(mock("MockBitextMiningTask", {"test": data}), hashing())
    assert value(gathered, "accuracy") == 0.5
    assert gathered.counts["found_a_copy"] == 1
    assert gathered.warnings == ("1 sentence found another copy of the very same translation, which counts as wrong.",)


def summaries(n: int, machines: int) -> dict[str, list[Any]]:
    """Texts with summaries and grades."""
    rng = np.random.default_rng(7)
    return {
        "text": sentences(n, 8),
        "human_summaries": [sentences(1 + row % 3, 100 + row) for row in range(n)],
        "machine_summaries": [sentences(machines, 200 + row) for row in range(n)],
        "relevance": (rng.integers(1, 6, (n, machines)) / 2).tolist(),
    }


def test_summarization_equals_mteb() -> None:
    """All six scores of mteb's task class, to 1e-6, from one value for each text."""
    loaded = mock("MockSummarizationTask", {"test": table(**summaries(12, 6))}, min_score=0, max_score=5)
    gathered, outcomes = evaluated(loaded, hashing())
    names = loaded.category.metrics(loaded.setting)
    assert len(names) == 6
    for name in names:
        theirs = outcomes["default"].scores[name.removeprefix("mean_")]
        assert value(gathered, name) == pytest.approx(theirs, abs=1e-6), name
    assert (len(gathered.records), gathered.also) == (12, ())


def test_a_text_whose_summaries_are_all_one_has_no_value() -> None:
    """Fault F13: it is unscored and told, and the mean is that of the others, as mteb's; grades likewise."""
    rows = summaries(12, 6)
    rows["machine_summaries"][3] = ["backup of the server"] * 6
    rows["relevance"][5] = [3.0] * 6
    loaded = mock("MockSummarizationTask", {"test": table(**rows)}, min_score=0, max_score=5)
    gathered, outcomes = evaluated(loaded, hashing())
    column = gathered.records.columns["mean_cosine_spearman"]
    assert np.flatnonzero(np.isnan(column)).tolist() == [3, 5]
    assert value(gathered, "mean_cosine_spearman") == pytest.approx(
        outcomes["default"].scores["cosine_spearman"], abs=1e-6
    )
    assert gathered.counts["constant_input"] == 2
    assert gathered.warnings[0].startswith("2 of 12 texts left out (constant_input)")


def test_no_text_with_a_value_gives_no_number() -> None:
    """All summaries alike: null with a reason in the result, and no NaN in its JSON."""
    rows = summaries(4, 3)
    rows["machine_summaries"] = [["backup"] * 3] * 4
    loaded = mock("MockSummarizationTask", {"test": table(**rows)}, min_score=0, max_score=5)
    gathered, _ = evaluated(loaded, hashing())
    from embeval.core.specs import StatisticsOptions
    from embeval.stats import scoring

    metric = metrics.get("mean_cosine_spearman")
    found = scoring.estimate(gathered.records, [metric], StatisticsOptions(resamples=100))[metric.name]
    told = found.to_value(StatisticsOptions(resamples=100))
    assert (told.value, told.reason, told.n_items, told.n_unscored) == (None, "too_few_items", 0, 4)


def test_the_first_summarization_tasks_average_p_values_too() -> None:
    """mteb#1156: ``SummEvalSummarization`` gives the mean of coefficients and p-values; ours has coefficients only."""
    from mteb._evaluators.text.summarization_evaluator import DeprecatedSummarizationEvaluator

    rows = summaries(6, 6)
    loaded = mock(
        "MockSummarizationTask",
        {"test": table(**rows)},
        min_score=0,
        max_score=5,
        evaluator=DeprecatedSummarizationEvaluator,
    )
    gathered, outcomes = evaluated(loaded, hashing())
    assert len(gathered.also) == 6
    for name in gathered.also:
        theirs = outcomes["default"].scores[name.removeprefix("mteb_mean_")]
        assert value(gathered, name) == pytest.approx(theirs, abs=1e-6), name
    right = evaluated(mock("MockSummarizationTask", {"test": table(**rows)}, min_score=0, max_score=5), hashing())[1]
    assert value(gathered, "mean_cosine_spearman") == pytest.approx(
        right["default"].scores["cosine_spearman"], abs=1e-6
    )
    assert "takes the mean of coefficients and p-values" in gathered.warnings[-1]


def collected(spec: TaskSpec, folder: Path) -> Any:
    """What the hashing baseline gets on a file of one's own."""
    task = TASK_TYPES.get(spec.type).bind(spec, root=folder)
    return task.collect(task.load(), hashing(), Silent())


def spec_of(task_type: str, file: str, **options: Any) -> TaskSpec:
    """A task on a file."""
    return TaskSpec(name="mine", type=task_type, dataset=DatasetRef(path=file), options=options)


def test_own_pairs_score_as_public_ones(tmp_path: Path) -> None:
    """A csv file with other names of columns: what mteb's class gives on the same rows; ids and slices are its own."""
    rows = pairs(24, 9)
    lines = [
        f"p{row},{left},{right},{label},{'long' if row < 12 else 'short'}"
        for row, (left, right, label) in enumerate(
            zip(rows["sentence1"], rows["sentence2"], rows["labels"], strict=True)
        )
    ]
    (tmp_path / "mine.csv").write_text("\n".join(["id,a,b,same,kind", *lines]) + "\n", encoding="utf-8")
    names = {"sentence1": "a", "sentence2": "b", "label": "same"}
    found = collected(spec_of("pair_classification", "mine.csv", columns=names), tmp_path)
    public, outcomes = evaluated(mock("MockPairClassificationTask", {"test": rows}), hashing())
    for name, column in public.records.columns.items():
        assert np.array_equal(found.records.columns[name], column), name
    assert found.records.ids[:2] == ("p0", "p1")
    assert found.records.slices["kind"][11:13] == ("long", "short")
    assert metrics.get("max_ap").aggregate(found.records.columns) == pytest.approx(
        outcomes["default"].scores["max_ap"], abs=1e-6
    )


def test_own_pairs_under_parity(tmp_path: Path) -> None:
    """The main score is mteb's; both are in the records."""
    rows = pairs(24, 9)
    write_jsonl(tmp_path / "mine.jsonl", ({**row, "label": bool(row["labels"])} for row in rows))
    spec = spec_of("pair_classification", "mine.jsonl", parity="mteb")
    task = TASK_TYPES.get(spec.type).bind(spec, root=tmp_path)
    assert task.metrics(task.load())[0].name == "mteb_max_ap"
    assert {"cosine", "mteb_cosine"} <= set(collected(spec, tmp_path).records.columns)


def test_own_translations_in_sub_sets(tmp_path: Path) -> None:
    """A column ``subset`` gives a result for each; a sentence is looked for among all. The value, by hand: 3 of 4."""
    rows = [
        {"sentence1": "backup server", "sentence2": "server backup", "subset": "de"},
        {"sentence1": "token user", "sentence2": "user token", "subset": "de"},
        {"sentence1": "night key", "sentence2": "key night", "subset": "es"},
        {"sentence1": "file page", "sentence2": "token", "subset": "es"},
    ]
    write_jsonl(tmp_path / "mine.jsonl", rows)
    found = collected(spec_of("bitext", "mine.jsonl"), tmp_path).records
    assert found.columns["accuracy"][:3].tolist() == [1.0, 1.0, 1.0]
    assert found.slices["subset"] == ("de", "de", "es", "es")
    assert found.ids == ("1", "2", "3", "4")


def test_own_summaries_score_as_public_ones(tmp_path: Path) -> None:
    """Lists in jsonl, and written as JSON in csv: what mteb's class gives on the same rows."""
    rows = summaries(8, 5)
    lines = [{name: values[row] for name, values in rows.items()} for row in range(8)]
    write_jsonl(tmp_path / "mine.jsonl", lines)
    outcomes = evaluated(mock("MockSummarizationTask", {"test": table(**rows)}, min_score=0, max_score=5), hashing())[1]
    found = collected(spec_of("summarization", "mine.jsonl"), tmp_path)
    expected = outcomes["default"].scores["cosine_spearman"]
    assert metrics.get("mean_cosine_spearman").aggregate(found.records.columns) == pytest.approx(expected, abs=1e-6)
    import csv
    import json

    with (tmp_path / "mine.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows([[json.dumps(value) for value in line.values()] for line in lines])
    again = collected(spec_of("summarization", "mine.csv"), tmp_path)
    assert np.array_equal(again.records.columns["mean_cosine_spearman"], found.records.columns["mean_cosine_spearman"])


GOOD: dict[str, dict[str, Any]] = {
    "pair_classification": {"sentence1": "a", "sentence2": "b", "label": 1},
    "bitext": {"sentence1": "a", "sentence2": "b"},
    "summarization": {"human_summaries": ["a"], "machine_summaries": ["b", "c"], "relevance": [1, 2]},
}


@pytest.mark.parametrize(
    ("task_type", "rows", "told"),
    [
        ("pair_classification", [{"label": 2}], r"mine.jsonl, line 2: 'label' must be 0 or 1, not 2"),
        ("pair_classification", [{"label": None}], r"line 2: 'label' must be 0 or 1, not None"),
        ("pair_classification", [{"label": 1}], r"all 2 pairs have the label 1"),
        ("pair_classification", [{"sentence2": None}], r"line 2: 'sentence2' must be text"),
        ("pair_classification", [{"id": "x"}], r"line 2: some rows have an 'id' and this one differs"),
        ("pair_classification", [{"sub": "x"}, {"label": 0, "subset": "all"}], "can't"),
        ("bitext", [], r"holds one pair"),
        ("bitext", [{"sentence1": 4}], r"line 2: 'sentence1' must be text"),
        ("summarization", [{"relevance": [1]}], r"line 2: 2 'machine_summaries', but 1 'relevance'"),
        ("summarization", [{"relevance": [1, "x"]}], r"line 2: 'relevance' must be a number"),
        ("summarization", [{"relevance": [1, 1e308]}], r"line 2: 'relevance' is 1e\+308, which is no score"),
        ("summarization", [{"human_summaries": []}], r"line 2: 'human_summaries' must be a list that is not empty"),
        ("summarization", [{"machine_summaries": "b"}], r"line 2: 'machine_summaries' must be a list"),
    ],
)
def test_bad_rows_are_told_with_their_line(
    task_type: str, rows: list[dict[str, Any]], told: str, tmp_path: Path
) -> None:
    """Never a number from what can't be scored."""
    write_jsonl(tmp_path / "mine.jsonl", [GOOD[task_type], *({**GOOD[task_type], **row} for row in rows)])
    task = TASK_TYPES.get(task_type).bind(spec_of(task_type, "mine.jsonl"), root=tmp_path)
    if told == "can't":  # one row of each label: columns that don't group aren't slices
        assert task.load().setting.slices == {}
        return
    with pytest.raises(DataError, match=told):
        task.load()


@pytest.mark.parametrize("task_type", sorted(GOOD))
def test_a_column_that_is_not_there_is_told(task_type: str, tmp_path: Path) -> None:
    """With the names that are, and how to say which one it is."""
    first, *_ = GOOD[task_type]
    write_jsonl(tmp_path / "mine.jsonl", [{**GOOD[task_type], "mine": "x"}])
    options = {"columns": {first: "main"}}
    task = TASK_TYPES.get(task_type).bind(spec_of(task_type, "mine.jsonl", **options), root=tmp_path)
    with pytest.raises(
        DataError, match=rf"line 1: there is no column 'main'.*Did you mean 'mine'\?\n.*columns.{first}="
    ):
        task.load()


def test_a_sub_set_may_not_take_the_name_of_a_pooled_result(tmp_path: Path) -> None:
    """``all`` is the result of all sub-sets together."""
    row = GOOD["bitext"]
    write_jsonl(tmp_path / "mine.jsonl", [{**row, "subset": "all"}] * 2)
    task = TASK_TYPES.get("bitext").bind(spec_of("bitext", "mine.jsonl"), root=tmp_path)
    with pytest.raises(DataError, match="may not be called 'all'"):
        task.load()
    write_jsonl(tmp_path / "mine.jsonl", [{**row, "subset": name} for name in ("a", "a", "", "")])
    with pytest.raises(DataError, match=r"mine.jsonl: 2 rows have no 'subset', and others have one"):
        task.load()


@pytest.mark.parametrize("task_type", sorted(GOOD))
def test_wrong_main_scores_and_splits_are_refused(task_type: str, tmp_path: Path) -> None:
    """A metric of another type, and the file of another split."""
    task = TASK_TYPES.get(task_type)
    with pytest.raises(ConfigError, match="'ndcg_at_10' is not a metric of"):
        task.bind(
            TaskSpec(name="x", type=task_type, dataset=DatasetRef(path="x.jsonl"), main_score="ndcg_at_10"),
            root=tmp_path,
        )
    with pytest.raises(ConfigError, match=r"train.jsonl is not the split 'test'"):
        task.bind(spec_of(task_type, "train.jsonl"), root=tmp_path)


@pytest.mark.parametrize("task_type", sorted(GOOD))
def test_other_ids_and_labels_are_other_rows(task_type: str, tmp_path: Path) -> None:
    """They change no number over all rows, but those of sub-sets and slices: stored records aren't taken for them."""

    def protocol(*columns: dict[str, str]) -> Mapping[str, Any]:
        other = {"label": 0} if task_type == "pair_classification" else {}
        rows = [{**GOOD[task_type], **(other if row % 2 else {}), **more} for row, more in enumerate(columns)]
        write_jsonl(tmp_path / "mine.jsonl", rows)
        task = TASK_TYPES.get(task_type).bind(spec_of(task_type, "mine.jsonl"), root=tmp_path)
        return task.protocol(task.load())

    plain, labelled = protocol({}, {}), protocol({"kind": "a"}, {"kind": "a"})
    named = protocol({"id": "x"}, {"id": "y"})
    assert plain["data"] == labelled["data"] == named["data"]
    assert len({plain["rows"], labelled["rows"], named["rows"]}) == 3
    assert protocol({}, {}) == plain


@pytest.mark.parametrize("task_type", ["sts", "classification", "reranking", *GOOD])
def test_one_column_in_two_parts_is_refused(task_type: str, tmp_path: Path) -> None:
    """Compared with itself a text always fits; ids may be another part as well."""
    names = {"classification": ("text", "label"), "reranking": ("positive", "negative")}
    first, second, *_ = names.get(task_type) or [*GOOD.get(task_type, GOOD["bitext"])]
    task = TASK_TYPES.get(task_type)
    with pytest.raises(ConfigError, match=rf"{first} and {second} can't both be the column '{first}'"):
        task.bind(spec_of(task_type, "mine.jsonl", columns={second: first}), root=tmp_path)
    own = {"reranking": "query_id"}.get(task_type, "id")
    task.bind(spec_of(task_type, "mine.jsonl", columns={own: first}), root=tmp_path)


@pytest.mark.parametrize(("scale", "refused"), [(1e20, True), (1e15, False)])
def test_vectors_whose_products_overflow_are_refused(scale: float, refused: bool) -> None:
    """Dot products of 1e40 are infinite in mteb's float32, and what it makes of them is no score."""
    vectors = {"a": (scale, 0.0), "b": (scale, scale), "c": (0.0, scale)}
    loaded = mock(
        "MockPairClassificationTask", {"test": table(sentence1=["a"] * 2, sentence2=["b", "c"], labels=[1, 0])}
    )
    if refused:
        with pytest.raises(
            InvalidEmbeddingsError, match=r"of 2 of 2 texts, such as '.*/test/0', hold numbers up to 1e"
        ):
            evaluated(loaded, TableEncoder(vectors))
    else:
        assert value(evaluated(loaded, TableEncoder(vectors))[0], "max_ap") == 1.0


def test_mteb_without_a_value_is_told_in_words() -> None:
    """Products of 1e-60 are 0 in float32, so that mteb leaves out every text; the cosines are as good as any."""
    rows = summaries(4, 6)
    encoder = hashing()
    names = [text for column in ("human_summaries", "machine_summaries") for texts in rows[column] for text in texts]
    vectors = encoder.encode(names, role=Role.TEXT).vectors * 1e-30
    small = TableEncoder(dict(zip(names, vectors.tolist(), strict=True)))
    gathered, _ = evaluated(mock("MockSummarizationTask", {"test": table(**rows)}, min_score=0, max_score=5), small)
    assert "mteb gives no cosine_spearman here: no text is left that it has a value for." in gathered.warnings


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "manhattan"])
def test_a_model_is_measured_by_its_own_similarity(similarity: Any) -> None:
    """Vectors of many lengths, so that each similarity has an order of its own: by numpy, and as mteb has it."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 2, 40)
    texts = [f"text {number}" for number in range(80)]
    vectors = rng.normal(size=(80, 3)) * rng.uniform(0.2, 3.0, (80, 1))
    left, right = vectors[:40], vectors[40:]
    scores = {
        "dot": (left * right).sum(axis=1),
        "euclidean": -np.linalg.norm(left - right, axis=1),
        "manhattan": -np.abs(left - right).sum(axis=1),
    }[similarity]
    encoder = TableEncoder(dict(zip(texts, vectors.tolist(), strict=True)), similarity=similarity)
    data = table(sentence1=texts[:40], sentence2=texts[40:], labels=labels.tolist())
    gathered, outcomes = evaluated(mock("MockPairClassificationTask", {"test": data}), encoder)
    np.testing.assert_allclose(gathered.records.columns["similarity"], scores, atol=1e-5)
    theirs = outcomes["default"].scores
    assert theirs["similarity_ap"] != pytest.approx(theirs["cosine_ap"], abs=1e-3)
    assert value(gathered, "similarity_ap") == pytest.approx(theirs["similarity_ap"], abs=1e-6)
    rows: dict[str, Sequence[Any]] = {
        "text": ["a", "b"],
        "human_summaries": [texts[:3], texts[3:6]],
        "machine_summaries": [texts[10:18], texts[20:28]],
        "relevance": rng.uniform(0, 5, (2, 8)).tolist(),
    }
    gathered, outcomes = evaluated(
        mock("MockSummarizationTask", {"test": table(**rows)}, min_score=0, max_score=5), encoder
    )
    theirs = outcomes["default"].scores
    assert theirs["spearman"] != pytest.approx(theirs["cosine_spearman"], abs=1e-3)
    assert value(gathered, "mean_spearman") == pytest.approx(theirs["spearman"], abs=1e-6)
    assert value(gathered, "mean_pearson") == pytest.approx(theirs["pearson"], abs=1e-6)
    data = table(sentence1=texts[:20], sentence2=texts[20:40])
    gathered, _ = evaluated(mock("MockBitextMiningTask", {"test": data}), encoder)
    one, other = vectors[:20, None], vectors[None, 20:40]
    all_scores = {
        "dot": (one * other).sum(axis=2),
        "euclidean": -np.linalg.norm(one - other, axis=2),
        "manhattan": -np.abs(one - other).sum(axis=2),
    }[similarity]
    hits = (all_scores.argmax(axis=1) == np.arange(20)).astype(float)
    assert gathered.records.columns["accuracy"].tolist() == hits.tolist()


def test_mteb_leaves_a_text_out_of_all_means_where_one_has_no_value() -> None:
    """Summaries in one direction: the cosine is constant and the dot product is not; ours keeps the latter's value."""
    vectors = {"h": [1.0, 0.0], "a": [1.0, 0.0], "b": [2.0, 0.0], "c": [3.0, 0.0], "d": [1.0, 1.0], "e": [1.0, 2.0]}
    rows: dict[str, Sequence[Any]] = {
        "text": ["1", "2"],
        "human_summaries": [["h"], ["h"]],
        "machine_summaries": [["a", "b", "c"], ["d", "e", "c"]],
        "relevance": [[3.0, 2.0, 1.0], [1.0, 0.0, 2.0]],
    }
    loaded = mock("MockSummarizationTask", {"test": table(**rows)}, min_score=0, max_score=5)
    gathered, outcomes = evaluated(loaded, TableEncoder(vectors))
    ours, theirs = (gathered.records.columns[f"{prefix}mean_dot_spearman"] for prefix in ("", "mteb_"))
    assert ours[0] == pytest.approx(-1.0)
    assert np.isnan(theirs[0])
    assert ours[1] == theirs[1]
    assert value(gathered, "mteb_mean_dot_spearman") == pytest.approx(
        outcomes["default"].scores["dot_spearman"], abs=1e-6
    )
