"""From a board's file and stored results to what its pages show: what is chosen, in which order, and what is told."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embeval.core import border
from embeval.core.result import Failure, MetricValue
from embeval.errors import ConfigError, MissingPackageError, StoreError
from embeval.leaderboard import definition
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Snapshot
from embeval.store.results import ResultStore
from embeval.store.tags import Tags
from embeval.workflows.boards import building, choosing, gathering
from tests.support.board_files import FAIR, GOOD, NDCG, POOR, RECALL, board, results, three
from tests.support.stored import put

RESULTS = "results: [../../results]\n"


def built(root: Path, text: str) -> Snapshot:
    """The board of a file beside the results."""
    return building.snapshot(board(root, RESULTS + text))


def labels(made: Snapshot) -> list[str]:
    """Its models, in their order."""
    return [model.label for model in made.models]


def headings(made: Snapshot) -> list[str]:
    """Its columns, in their order."""
    return [column.heading for column in made.columns]


def wrong(root: Path, text: str) -> str:
    """What is said of the file."""
    with pytest.raises(ConfigError) as caught:
        building.snapshot(board(root, RESULTS + text))
    return str(caught.value).partition("board.yaml, ")[2]


# --- all of it ----------------------------------------------------------------------------------------------------


def test_all_results_of_a_folder(tmp_path: Path) -> None:
    """Models by rank, tasks by name, values as stored; means worked out by hand."""
    three(tmp_path)
    made = built(tmp_path, "")
    assert (labels(made), headings(made)) == (["good", "fair", "poor"], ["docs", "faq"])
    assert [[cell and cell.value for cell in model.cells] for model in made.models] == [
        [pytest.approx(0.85), pytest.approx(0.75)],
        [pytest.approx(0.75), pytest.approx(0.75)],
        [pytest.approx(0.2), pytest.approx(0.2)],
    ]
    assert [model.standing.mean_task for model in made.models] == [pytest.approx(each) for each in (0.8, 0.75, 0.2)]
    assert {column.group for column in made.columns} == {"Retrieval"}
    assert border.load(Snapshot, border.dump(made)) == made


def test_two_builds_are_equal_wherever_they_are_called_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path and an absolute one give the same board, also where a file is broken and its path is told."""
    store = three(tmp_path)
    next(store.find()).path.write_text("{", encoding="utf-8")
    first = built(tmp_path, "")
    monkeypatch.chdir(tmp_path / "leaderboards")
    assert building.snapshot(definition.load(Path("mine/board.yaml"))) == first
    (told,) = [remark for remark in first.remarks if remark.startswith("Left out: ")]
    assert told.startswith("Left out: ../../results/org__fair/")
    assert str(tmp_path) not in repr(first)


# --- folders ------------------------------------------------------------------------------------------------------


def test_several_folders(tmp_path: Path) -> None:
    """Their models stand side by side; of the same measurement in both, the newer counts, and that is told."""
    results(tmp_path, {("org/good", "docs"): GOOD}, "one")
    two = results(tmp_path, {("org/poor", "docs"): POOR}, "two")
    put(two, {NDCG: FAIR, RECALL: FAIR}, model="org/good", task="docs", days=1)
    for order in ("../../one, ../../two", "../../two, ../../one"):
        made = building.snapshot(board(tmp_path, f"results: [{order}]\n"))
        assert {model.label: round(model.cells[0].value or 0, 4) for model in made.models if model.cells[0]} == {
            "good": 0.75,
            "poor": 0.2,
        }
        assert "1 result passed over: another folder holds the same measurement, made later." in made.remarks


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Told with its line, and so is a file in its place; a folder without results is a case for the other exit code."""
    assert wrong(tmp_path, "").startswith("line 1: results[0]: ")
    (tmp_path / "results").write_text("", encoding="utf-8")
    assert "not a folder" in wrong(tmp_path, "")
    (tmp_path / "results").unlink()
    board_folder = board(tmp_path, "").path.parent
    assert wrong(tmp_path, "").startswith(
        f"line 1: results[0]: {tmp_path / 'results'}: no such folder. Paths start at {board_folder}. 'embeval run'"
    )
    (tmp_path / "results").mkdir()
    with pytest.raises(StoreError, match=r"there are no results in \.\./\.\./results"):
        built(tmp_path, "")


# --- models -------------------------------------------------------------------------------------------------------


def test_models_by_label_by_name_and_by_pattern(tmp_path: Path) -> None:
    """A label is that model alone, although it is also the name of its variants; a name is all of them."""
    store = three(tmp_path)
    put(store, {NDCG: POOR, RECALL: POOR}, model="org/good", task="docs", truncate_dim=64)
    for patterns, expected in {
        "good": ["good"],
        "org/good": ["good", "good (64d)"],
        "GOOD": ["good"],
        "g*d": ["good"],
        "good*": ["good", "good (64d)"],
        "'*(64d)'": ["good (64d)"],
        "fair, good": ["good", "fair"],
        "org/*r": ["fair", "poor"],
        "'*'": ["good", "fair", "poor", "good (64d)"],
    }.items():
        assert labels(built(tmp_path, f"models: [{patterns}]\n")) == expected, patterns


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    """A pattern that fits nothing is told with its line and what it may have been meant to be; brackets are text."""
    three(tmp_path)
    assert wrong(tmp_path, "models:\n  - good\n  - fiar\n") == (
        "line 4: models[1]: 'fiar' fits no model. Did you mean 'fair'?"
    )
    assert "fits no model. There are: fair, org/fair, good" in wrong(tmp_path, "models: [x*y*z]\n")
    assert "'[gf]*' fits no model" in wrong(tmp_path, "models: ['[gf]*']\n")


# --- tasks --------------------------------------------------------------------------------------------------------


def test_tasks_in_the_order_of_the_file(tmp_path: Path) -> None:
    """With metrics, groups, weights and headings; the mean is weighted: (3 * 0.85 + 0.375) / 4 for the best."""
    three(tmp_path)
    made = built(
        tmp_path,
        "tasks:\n  - {task: faq, metric: recall_at_10, group: Ours, heading: Questions}\n  - {task: docs, weight: 3}\n",
    )
    assert [(each.heading, each.metric, each.group, each.weight) for each in made.columns] == [
        ("Questions", RECALL, "Ours", 1.0),
        ("docs", NDCG, "Retrieval", 3.0),
    ]
    assert labels(made)[0] == "good"
    assert "What tasks count in means: docs 3; any other 1." in made.remarks
    assert made.models[0].standing.mean_task == pytest.approx((0.375 + 3 * 0.85) / 4)
    assert made.models[0].standing.groups == {"Ours": pytest.approx(0.375), "Retrieval": pytest.approx(0.85)}


def test_one_task_by_two_metrics(tmp_path: Path) -> None:
    """Two columns, told apart by their metric, and a remark that the task counts twice."""
    three(tmp_path)
    made = built(tmp_path, "tasks: [docs, {task: docs, metric: recall_at_10}]\n")
    assert headings(made) == ["docs ndcg_at_10", "docs recall_at_10"]
    assert made.remarks == ("docs counts in 2 columns. Tests take them for the same items.",)


def test_patterns_of_tasks(tmp_path: Path) -> None:
    """``*`` takes what no other entry names, in the place where it stands."""
    results(tmp_path, {("org/good", name): GOOD for name in ("docs-a", "docs-b", "docs-c", "faq")})
    assert headings(built(tmp_path, "tasks: [faq, 'docs-*']\n")) == ["faq", "docs-a", "docs-b", "docs-c"]
    made = built(tmp_path, "tasks: ['docs-*', {task: docs-b, weight: 2}]\n")
    assert [(each.task, each.weight) for each in made.columns] == [("docs-a", 1.0), ("docs-c", 1.0), ("docs-b", 2.0)]
    assert headings(built(tmp_path, "tasks: [FAQ]\n")) == ["faq"]


def parts(store: ResultStore, model: str, values: dict[tuple[str, str], float]) -> None:
    """For (split, sub-set) a result; that of the mean stands for its split."""
    (whole,) = put(store, {NDCG: GOOD}, model=model, task="langs")
    for (split, subset), value in values.items():
        protocol = {"task": "langs", "split": split, "subset": subset, "subsets": ["de", "en"], "stands": "mean"}
        store.put(
            replace(
                whole.result,
                split=split,
                subset=subset,
                scores={NDCG: MetricValue(value=value, n_items=20)},
                signature=replace(whole.result.signature, protocol=protocol),
                items=None,
            )
        )
    whole.path.unlink()


def test_splits_and_sub_sets(tmp_path: Path) -> None:
    """A sub-set that is asked for has a column, although it doesn't stand for the task; so has each split."""
    store = ResultStore(tmp_path / "results")
    values = {("test", "de"): 0.4, ("test", "en"): 0.6, ("test", "mean"): 0.5, ("dev", "mean"): 0.9}
    parts(store, "org/good", values)

    def columns(text: str) -> list[tuple[str, str, float]]:
        made = built(tmp_path, text)
        values = [cell.value if cell else None for cell in made.models[0].cells]
        return [(each.split, each.subset, value or 0.0) for each, value in zip(made.columns, values, strict=True)]

    assert columns("") == [("dev", "mean", 0.9), ("test", "mean", 0.5)]
    assert columns("tasks: [{task: langs, split: test}]\n") == [("test", "mean", 0.5)]
    assert columns("tasks: [{task: langs, subset: en}]\n") == [("test", "en", 0.6)]
    both = "tasks: [{task: langs, subset: en}, {task: langs, subset: de}, {task: langs, split: dev}]\n"
    assert columns(both) == [("test", "en", 0.6), ("test", "de", 0.4), ("dev", "mean", 0.9)]
    assert len(set(headings(built(tmp_path, both)))) == 3
    assert all(name.startswith("langs") for name in headings(built(tmp_path, both)))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("dosc", "tasks[1]: no result of a task 'dosc'. Did you mean 'docs'?"),
        ("{task: support}", "tasks[1].task: no result of a task 'support'. There are: docs, faq."),
        ("'x*'", "tasks[1]: no result of a task 'x*'."),
        ("{task: docs, metric: ndcg_at_100}", "tasks[1].metric: no result of docs has the metric 'ndcg_at_100'. Did"),
        ("{task: docs, split: dev}", "tasks[1].split: no result of docs has the split 'dev'. There are: test."),
        ("{task: docs, subset: de}", "tasks[1].subset: no result of docs has the sub-set 'de'. There are: all."),
    ],
)
def test_a_task_that_is_not_there(entry: str, said: str, tmp_path: Path) -> None:
    """A name, a metric, a split or a sub-set that no result has: the line, and what there is."""
    three(tmp_path)
    told = wrong(tmp_path, f"tasks:\n  - faq\n  - {entry}\n")
    assert told.startswith(f"line 4: {said}")


def test_a_task_of_which_every_run_failed(tmp_path: Path) -> None:
    """It has no column, which is told; the file isn't wrong."""
    store = three(tmp_path)
    (stored,) = store.find(task="faq", model="poor")
    task = replace(stored.result.task, name="broken")
    failed = replace(
        stored.result, status="error", task=task, scores={}, items=None, error=Failure(type="DataError", message="no")
    )
    store.put(failed)
    made = built(tmp_path, "tasks: [docs, broken]\n")
    assert headings(made) == ["docs"]
    assert "Without a column, since every run of them failed: broken." in made.remarks


def test_older_data(tmp_path: Path) -> None:
    """Results on data that isn't the latest have a column only on demand, and that is told."""
    store = ResultStore(tmp_path / "results")
    put(store, {NDCG: GOOD}, model="org/good", protocol={"data": "first"})
    put(store, {NDCG: POOR}, model="org/good", protocol={"data": "second"}, days=1)
    made = built(tmp_path, "")
    assert [cell and cell.value for cell in made.models[0].cells] == [pytest.approx(0.2)]
    assert made.remarks[0].startswith("1 older column is left out")
    both = built(tmp_path, "older: true\n")
    assert len(both.columns) == 2
    assert len(set(headings(both))) == 2


# --- tags, reference, production ------------------------------------------------------------------------------------


def test_only_what_tags_pin(tmp_path: Path) -> None:
    """Results that aren't tagged are left out, also those of a tagged model."""
    store = three(tmp_path)
    tags = Tags(store.root)
    tags.put("prod", list(store.find(model="good", task="docs")))
    tags.put("next", list(store.find(model="poor")))
    made = built(tmp_path, "tags: [prod]\n")
    assert (labels(made), headings(made)) == (["good"], ["docs"])
    made = built(tmp_path, "tags: [prod, next]\n")
    assert {model.label: model.standing.gaps for model in made.models} == {"poor": 0, "good": 1}
    assert wrong(tmp_path, "title: x\ntags: [prd]\n") == (
        "line 3: tags[0]: no tag 'prd' in these folders. Did you mean 'prod'?"
    )


def test_a_tagged_result_that_has_changed(tmp_path: Path) -> None:
    """It is left out and told; what still is as it was tagged is shown."""
    store = three(tmp_path)
    Tags(store.root).put("prod", list(store.find(model="good")))
    (changed,) = store.find(model="good", task="faq")
    changed.path.write_bytes(changed.path.read_bytes() + b"\n")
    made = built(tmp_path, "tags: [prod]\n")
    assert headings(made) == ["docs"]
    (told,) = made.remarks
    assert told.startswith("Left out: ../../results/org__good/")
    assert "tagged 'prod', has changed since" in told


def test_reference_and_production(tmp_path: Path) -> None:
    """By label, by name, and the one in use also by a tag, which may be of a model that isn't shown."""
    store = three(tmp_path)
    Tags(store.root).put("prod", list(store.find(model="poor")))
    made = built(tmp_path, "reference: org/fair\nproduction: good\n")
    assert (made.reference, made.production) == (1, "good")
    assert built(tmp_path, "production: prod\n").production == "poor"
    assert built(tmp_path, "production: tag:prod\nmodels: [good, fair]\n").production == "poor"
    assert wrong(tmp_path, "reference: fare\n").startswith(
        "line 2: reference: no model on this board is called 'fare'. Did you mean 'fair'"
    )
    assert "no model on this board is called 'poor'" in wrong(tmp_path, "models: [good]\nreference: poor\n")
    assert wrong(tmp_path, "production: prd\n").startswith(
        "line 2: production: no tag or model is called 'prd'. Did you mean 'prod'?"
    )
    assert "no tag or model is called 'tag:good'" in wrong(tmp_path, "production: tag:good\n")


def test_a_reference_that_fits_several(tmp_path: Path) -> None:
    """Two variants have one name: the label is asked for; a label wins over a name."""
    store = three(tmp_path)
    put(store, {NDCG: POOR, RECALL: POOR}, model="org/good", task="docs", truncate_dim=64)
    assert "'org/good' fits several models: 'good', 'good (64d)'" in wrong(tmp_path, "reference: org/good\n")
    assert built(tmp_path, "reference: good\n").reference == 0


# --- published results --------------------------------------------------------------------------------------------


def publish(root: Path, model: str, task: str, value: float) -> Path:
    """A result file in mteb's layout, below ``published``."""
    folder = root / "published" / "results" / model.replace("/", "__") / ("a" * 40)
    folder.mkdir(parents=True, exist_ok=True)
    scores: dict[str, Any] = {"cosine_spearman": value, "main_score": value, "hf_subset": "default"}
    scores["languages"] = ["eng-Latn"]
    file = folder / f"{task}.json"
    file.write_text(
        json.dumps(
            {
                "task_name": task,
                "dataset_revision": "r1",
                "mteb_version": "2.0.0",
                "evaluation_time": 1.0,
                "scores": {"test": [scores]},
            }
        ),
        encoding="utf-8",
    )
    return file


def only_published(root: Path, text: str = "") -> Definition:
    """A board of published results alone."""
    return board(root, f"results: []\nimported: [../../published]\n{text}")


def test_published_results(tmp_path: Path) -> None:
    """They are read from mteb's files, stand on the board, and say where they come from; the folder stays as it is."""
    publish(tmp_path, "org/one", "STS12", 0.7)
    publish(tmp_path, "org/two", "STS12", 0.8)
    publish(tmp_path, "org/two", "STS13", 0.6)
    made = building.snapshot(only_published(tmp_path, "tasks: [STS12]\nmodels: ['org/*']\n"))
    assert [(model.label, model.cells[0] and model.cells[0].value) for model in made.models] == [
        ("two (imported)", 0.8),
        ("one (imported)", 0.7),
    ]
    assert [cell and cell.imported for model in made.models for cell in model.cells] == [True, True]
    assert headings(made) == ["mteb:STS12"]
    assert [path.name for path in (tmp_path / "published").iterdir()] == ["results"]
    one = building.snapshot(only_published(tmp_path, "models: ['two (imported)']\n"))
    assert labels(one) == ["two (imported)"]


def test_published_values_of_a_task_that_is_called_alike(tmp_path: Path) -> None:
    """One's own STS12 is not mteb's, so they share no column, and which is told until there is such a run."""
    store = results(tmp_path, {("org/good", "STS12"): FAIR})
    publish(tmp_path, "org/one", "STS12", 0.7)
    both = f"results: [../../{store.root.name}]\nimported: [../../published]\n"
    told = (
        "Published values are of mteb:STS12, which is not STS12 and shares no column with it: "
        "'embeval run -t mteb:STS12' measures what they measured."
    )
    for text in ("", "tasks: [STS12]\n"):
        assert told in building.snapshot(board(tmp_path, both + text)).remarks
    put(store, {NDCG: FAIR, RECALL: FAIR}, model="org/good", task="mteb:STS12")
    assert told not in building.snapshot(board(tmp_path, both)).remarks


def test_published_values_of_tasks_that_are_not_shown(tmp_path: Path) -> None:
    """A board without any of them says so."""
    store = results(tmp_path, {("org/good", "docs-a"): FAIR})
    publish(tmp_path, "org/one", "STS12", 0.7)
    both = f"results: [../../{store.root.name}]\nimported: [../../published]\n"
    told = "No published value is shown: the board shows none of their tasks."
    assert told in building.snapshot(board(tmp_path, both + "tasks: ['docs-*']\n")).remarks
    assert told not in building.snapshot(board(tmp_path, both)).remarks


def test_only_files_that_can_be_shown_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may hold many thousand files, and each takes mteb a moment."""
    from embeval.mteb_bridge.exchange import from_mteb

    for model in ("org/one", "org/two"):
        for task in ("STS12", "STS13"):
            publish(tmp_path, model, task, 0.5)
    read, opened = from_mteb.read, list[str]()

    def watched(place: Any, folder: Path) -> Any:
        opened.append(f"{place.model} {place.file.stem}")
        return read(place, folder)

    monkeypatch.setattr(from_mteb, "read", watched)
    building.snapshot(only_published(tmp_path, "tasks: [STS13]\nmodels: ['org/tw*']\n"))
    assert opened == ["org/two STS13"]


def test_published_files_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken one is told with its path as in the file; a folder without any is a complaint with its line."""
    publish(tmp_path, "org/one", "STS12", 0.7)
    publish(tmp_path, "org/two", "STS12", 0.7).write_text("{", encoding="utf-8")
    made = building.snapshot(only_published(tmp_path))
    assert labels(made) == ["one (imported)"]
    (told,) = [remark for remark in made.remarks if remark.startswith("Left out")]
    assert told.startswith("Left out: ../../published/results/org__two/")
    with pytest.raises(ConfigError, match=r"line 2: imported\[0\]: .*: no result of mteb there that fits"):
        building.snapshot(only_published(tmp_path, "tasks: [STS22]\n"))
    (tmp_path / "empty").mkdir()
    for folder, said in (("empty", "no result of mteb there"), ("none", "no such folder")):
        with pytest.raises(ConfigError, match=said):
            building.snapshot(board(tmp_path, f"results: []\nimported: [../../{folder}]\n"))
    monkeypatch.setattr(gathering, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="needs the package 'mteb'"):
        building.snapshot(only_published(tmp_path))


# --- words --------------------------------------------------------------------------------------------------------


def test_kinds_of_names_in_their_order() -> None:
    """The first kind of name by which any fits decides; upper and lower case as written before any."""
    names = {1: ("E5", "org/E5"), 2: ("e5", "org/e5"), 3: ("org/E5", "x")}
    assert choosing.fitting("E5", names) == [1]
    assert choosing.fitting("e5", names) == [2]
    assert choosing.fitting("org/E5", names) == [3]
    assert choosing.fitting("ORG/e5", names) == [3]
    assert choosing.fitting("org/e5", {key: names[key] for key in (1, 2)}) == [2]
    assert choosing.fitting("?5", names) == []
    assert choosing.fitting("E5", {}) == []


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_patterns_fit_as_in_a_shell(pattern: str, name: str) -> None:
    """As Python's fnmatch takes a star."""
    assert bool(choosing.fitting(pattern, {1: (name,)})) == fnmatch.fnmatchcase(name, pattern)


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    """With a regular expression this one would not end."""
    assert choosing.fitting("*a" * 40 + "b", {1: ("a" * 100,)}) == []
    assert choosing.fitting("*a" * 40 + "*", {1: ("a" * 100,)}) == [1]


@pytest.mark.parametrize("text", ["models: ['(']", "tasks: ['(?']", "tasks: ['mteb:no such task']", "tags: ['..']"])
def test_names_that_could_mean_something_else(text: str, tmp_path: Path) -> None:
    """Patterns, benchmarks and paths: each is a name that nothing has."""
    three(tmp_path)
    assert wrong(tmp_path, text + "\n").startswith("line 2: ")
