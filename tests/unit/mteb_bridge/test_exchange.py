"""Results to and from mteb's files, and into model cards.

Published scores are those of the repository embeddings-benchmark/results at commit f4cc6c8b; what mteb reads is tried
with mteb 2.26 itself, and model cards are read with huggingface_hub.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from embeval.core.provenance import Provenance
from embeval.core.result import Imported, MetricValue, Result, Timings
from embeval.core.signature import Signature
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.errors import ConfigError, DataError, EvidenceError, StoreError
from embeval.mteb_bridge import contamination, door
from embeval.mteb_bridge.exchange import from_mteb, layout, model_card, to_mteb
from embeval.runner import local
from embeval.store.results import ResultStore
from embeval.tasks import TASK_TYPES
from embeval.workflows import exchange, sides
from tests.support.data import write_jsonl

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
COMMIT = "8b3219a92973c328a8e22fadcfa821b5dc75636a"
STS12: dict[str, Any] = {
    "dataset_revision": "a0d554a64d88156834ff5ae9920b964011b16384",
    "mteb_version": "1.12.75",
    "task_name": "STS12",
    "evaluation_time": 2.5,
    "kg_co2_emissions": None,
    "scores": {
        "test": [
            {
                "cosine_pearson": 0.8135998603947158,
                "cosine_spearman": 0.7236899998079941,
                "main_score": 0.7236899998079941,
                "spearman": [0.723693431883416, 0.0],
                "hf_subset": "default",
                "languages": ["eng-Latn"],
            }
        ]
    },
}
COUNTERFACTUAL = {"en-ext": 0.6559220389805098, "en": 0.6364179104477612, "de": 0.5781584582441114}
OLD_STS: dict[str, Any] = {
    "mteb_dataset_name": "STS12",
    "mteb_version": "1.0.2",
    "dataset_revision": "a0d554a64d88156834ff5ae9920b964011b16384",
    "test": {"cos_sim": {"pearson": 0.81, "spearman": 0.72}, "evaluation_time": 3.0},
}
"""The form of mteb before 1.11."""


def write(root: Path, name: str, value: Any, *, model: str = MINILM, revision: str = COMMIT) -> Path:
    """A file of mteb's layout."""
    file = root / "results" / model.replace("/", "__") / revision / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return file


def counterfactual(splits: tuple[str, ...] = ("test",)) -> dict[str, Any]:
    """The published file of a task with sub-sets."""
    scores = [
        {"accuracy": value, "main_score": value, "hf_subset": name, "languages": ["eng-Latn"]}
        for name, value in COUNTERFACTUAL.items()
    ]
    return {**STS12, "task_name": "AmazonCounterfactualClassification", "scores": dict.fromkeys(splits, scores)}


def imported(root: Path) -> list[Result]:
    """What all files below a folder become."""
    return [result for place in layout.places(root) for result in from_mteb.read(place, root)]


def ours(
    task: str = "STS12",
    *,
    name: str = "demo/all-MiniLM-L6-v2",
    subset: str = "all",
    subsets: tuple[str, ...] = (),
    main: str = "cosine_spearman",
    day: int = 1,
    mirror: str | None = "mirror",
    scores: dict[str, float | None] | None = None,
    **model: Any,
) -> Result:
    """A result that was measured here."""
    spec = ModelSpec(name=name, revision="sha256:" + "c4" * 32, **model)
    values = scores or {main: 0.72367558}
    protocol: dict[str, Any] = {"type": "mteb", "task": task, "split": "test", "subset": subset, "data": "5ee6" * 16}
    return Result(
        status="ok",
        task=TaskSpec(
            name=f"mteb:{task}",
            type="mteb",
            dataset=DatasetRef(path=task),
            options={} if mirror is None else {"mirror": mirror},
        ),
        model=spec,
        split="test",
        subset=subset,
        scores={
            name: MetricValue(value=value, n_items=9, reason=None if value is not None else "constant_input")
            for name, value in values.items()
        },
        main_score=main,
        signature=Signature(
            protocol={**protocol, "subsets": list(subsets)} if subsets else protocol,
            metrics=dict.fromkeys(values, 1),
            model_digest=spec.digest,
        ),
        provenance=Provenance(python="3.11", packages={"mteb": door.installed_version()}, os="os", cpu="cpu", n_cpus=1),
        timings=Timings(started_at=f"2026-01-{day:02}T00:00:00+00:00", wall_s=2.5, cpu_s=1.0),
    )


def test_a_published_file_says_what_the_model_is(tmp_path: Path) -> None:
    """What stands beside it first, then what mteb lists: 22,713,216 parameters, ``apache-2.0``, and an STS task."""
    write(tmp_path, "STS12", STS12)
    write(tmp_path, "model_meta", {"name": MINILM, "revision": COMMIT, "max_tokens": 128, "languages": ["deu-Latn"]})
    write(tmp_path, "STS12", STS12, model="nobody/knows-it")
    listed, unknown = sorted(imported(tmp_path), key=lambda each: each.model.name, reverse=True)
    assert listed.facts is not None
    assert (listed.facts.parameters, listed.facts.dimensions, listed.facts.license) == (22_713_216, 384, "apache-2.0")
    assert (listed.facts.max_tokens, listed.facts.languages) == (128, ("deu-Latn",))
    assert unknown.facts is None
    assert (listed.task.category, unknown.task.category) == ("STS", "STS")


def test_a_published_file(tmp_path: Path) -> None:
    """Its numbers as they are, its settings, no items, and whose they are by the place of the file."""
    write(tmp_path, "STS12", STS12)
    write(tmp_path, "model_meta", {"name": MINILM, "revision": COMMIT, "max_tokens": 256, "citation": "long"})
    runs = tmp_path.rglob("STS12.json")
    line = {"task": "STS12", "splits": ["test"], "encode_kwargs": {"batch_size": 32}}
    (next(iter(runs)).parent / "run_settings.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    (result,) = imported(tmp_path)
    assert (result.task.name, result.split, result.subset) == ("mteb:STS12", "test", "all")
    assert (result.model.name, result.model.revision) == (MINILM, COMMIT)
    assert {name: each.value for name, each in result.scores.items()} == {
        "cosine_pearson": 0.8135998603947158,
        "cosine_spearman": 0.7236899998079941,
    }
    assert result.main_score == "cosine_spearman"
    assert result.items is None
    assert all(each.ci_low is None and each.n_items == 0 for each in result.scores.values())
    assert result.imported is not None
    assert result.imported.settings == {"max_tokens": 256, "encode_kwargs": {"batch_size": 32}}
    assert (result.imported.mteb_version, result.imported.evaluation_time) == ("1.12.75", 2.5)
    assert result.imported.source == f"results/sentence-transformers__all-MiniLM-L6-v2/{COMMIT}/STS12.json"


def test_sub_sets_and_their_mean(tmp_path: Path) -> None:
    """The mean is mteb's own: its ``get_score`` of the same file. Splits that mteb doesn't count are left out."""
    file = write(tmp_path, "AmazonCounterfactualClassification", counterfactual(("validation", "test")))
    found = {result.subset: result for result in imported(tmp_path)}
    assert found.keys() == {*COUNTERFACTUAL, "mean"}
    assert {result.split for result in found.values()} == {"test"}
    mean = found["mean"].main_value
    assert mean is not None
    assert mean.value is not None
    assert mean.value == pytest.approx(door.library().TaskResult.from_disk(file).get_score(splits=["test"]), abs=1e-12)
    assert found["mean"].signature.protocol["stands"] == "mean"


def test_files_of_mteb_1_and_undefined_values(tmp_path: Path) -> None:
    """Old names are today's; a bare NaN becomes null with a reason, in the value and in the mean over sub-sets."""
    write(tmp_path, "STS12", OLD_STS)
    (old,) = imported(tmp_path)
    assert {name: each.value for name, each in old.scores.items()} == {"cosine_pearson": 0.81, "cosine_spearman": 0.72}
    assert old.imported is not None
    assert (old.imported.mteb_version, old.imported.evaluation_time) == ("1.0.2", 3.0)

    broken = counterfactual()
    broken["scores"]["test"][1] |= {"accuracy": math.nan, "main_score": math.nan}
    write(tmp_path / "nan", "AmazonCounterfactualClassification", broken)
    found = {result.subset: result.main_value for result in imported(tmp_path / "nan")}
    assert found["en"] is not None
    assert (found["en"].value, found["en"].reason) == (None, "not_a_number")
    assert found["mean"] is not None
    assert found["mean"].value is None


def test_where_files_may_lie(tmp_path: Path) -> None:
    """With and without a folder for the revision, and in one for other settings, which are part of the model."""
    top = tmp_path / "results" / "org__name"
    for folder in (top, top / "abc", top / "abc" / "experiments" / "dtype_int8"):
        folder.mkdir(parents=True)
        (folder / "STS12.json").write_text(json.dumps(STS12))
    (folder / "model_meta.json").write_text(
        json.dumps({"name": "org/name", "revision": "abc", "experiment_kwargs": {"dtype": "int8"}})
    )
    found = {(result.model.revision, tuple(result.model.args.items())) for result in imported(tmp_path)}
    assert found == {("no_revision_available", ()), ("abc", ()), ("abc", (("dtype", "int8"),))}
    assert {result.model.name for result in imported(top / "abc")} == {"org/name"}


def test_a_folder_into_a_store(tmp_path: Path) -> None:
    """Broken files are told and the others are imported; twice changes nothing; other values only by force."""
    write(tmp_path, "STS12", STS12)
    write(tmp_path, "STS13", {**STS12, "task_name": "STS13", "scores": {"test": [{"cosine_spearman": 1}]}})
    write(tmp_path, "STS14", "{")
    write(tmp_path, "notes", {"a": 1})
    store = ResultStore(tmp_path / "store")
    report = exchange.import_mteb(tmp_path / "results", store)
    assert [each.result.task.name for each in report.stored] == ["mteb:STS12"]
    assert [Path(problem.split(": ")[0]).stem for problem in report.problems] == ["STS13", "STS14"]
    assert report.others == 1
    again = exchange.import_mteb(tmp_path / "results", store, task=["STS12"])
    assert (again.stored, again.unchanged, again.problems) == ((), 1, ())

    other = json.loads(json.dumps(STS12))
    other["scores"]["test"][0] |= {"cosine_spearman": 0.9, "main_score": 0.9}
    write(tmp_path, "STS12", other)
    assert "--force" in exchange.import_mteb(tmp_path, store, task=["STS12"]).problems[0]
    assert next(store.find()).result.scores["cosine_spearman"].value == 0.7236899998079941
    exchange.import_mteb(tmp_path, store, task=["STS12"], overwrite=True)
    assert next(store.find()).result.scores["cosine_spearman"].value == 0.9
    for folder, said in ((tmp_path / "none", "no such folder"), (tmp_path / "store" / "x", "no such folder")):
        with pytest.raises(DataError, match=said):
            exchange.import_mteb(folder, store)
    with pytest.raises(DataError, match="no result of mteb there that fits"):
        exchange.import_mteb(tmp_path, store, task=["Banking77"])


def test_decisions_refuse_imported_results(tmp_path: Path) -> None:
    """They have no items; and beside a result of ours they never are what a name stands for."""
    write(tmp_path, "STS12", STS12)
    store = ResultStore(tmp_path / "store")
    exchange.import_mteb(tmp_path / "results", store)
    with pytest.raises(EvidenceError, match="no items to compare or decide on") as raised:
        sides.resolve("all-MiniLM-L6-v2", store)
    assert f"embeval run -m {MINILM} -t TASK" in str(raised.value)
    store.put(ours())
    assert sides.resolve("all-MiniLM-L6-v2", store).stored[0].result.imported is None
    with pytest.raises(EvidenceError):
        sides.resolve("all-MiniLM-L6-v2 (imported)", store)


def test_there_and_back(tmp_path: Path) -> None:
    """mteb itself finds and validates what is exported, and an import gives the same numbers to the last digit."""
    name = "AmazonCounterfactualClassification"
    numbers = {"en": 0.1 + 0.2, "de": 1 / 3, "mean": 0.3166, "all": 0.5}
    parts = [
        ours(name, subset=subset, subsets=("en", "de"), main="accuracy", scores={"accuracy": value})
        for subset, value in numbers.items()
    ]
    report = exchange.export_mteb([ours(), *parts], tmp_path)
    assert len(report.files) == 2
    library = door.library()
    cache = library.ResultCache(tmp_path)
    revision = "sha256-" + "c4" * 32
    found = cache.load_task_result("STS12", "demo/all-MiniLM-L6-v2", revision)
    assert found is not None
    assert found.get_score() == 0.72367558
    assert found.dataset_revision == "sha256:" + "5ee6" * 16  # a local copy is never given out as the hub's
    found = cache.load_task_result(name, "demo/all-MiniLM-L6-v2", revision)
    assert found is not None
    assert {each["hf_subset"]: each["languages"] for each in found.scores["test"]} == {
        "en": ["eng-Latn"],
        "de": ["deu-Latn"],
    }
    back = {(each.task.name, each.subset): each.main_value for each in imported(tmp_path)}
    values = {key: None if each is None else each.value for key, each in back.items()}
    mean = (0.1 + 0.2 + 1 / 3) / 2  # of the parts: a mean and a pooled value are not in mteb's files
    assert values.pop((f"mteb:{name}", "mean")) == pytest.approx(mean, abs=1e-15)
    assert values == {
        ("mteb:STS12", "all"): 0.72367558,
        (f"mteb:{name}", "en"): 0.1 + 0.2,
        (f"mteb:{name}", "de"): 1 / 3,
    }


def test_mteb_s_own_value_has_the_plain_name(tmp_path: Path) -> None:
    """Where ours differs it stands beside it, and comes back under the names that we use."""
    both = ours(scores={"cosine_spearman": 1.0, "mteb_cosine_spearman": 0.5})
    exchange.export_mteb([both], tmp_path)
    (written,) = tmp_path.rglob("STS12.json")
    (scores,) = json.loads(written.read_bytes())["scores"]["test"]
    assert (scores["cosine_spearman"], scores["main_score"], scores["embeval_cosine_spearman"]) == (0.5, 0.5, 1.0)
    (back,) = imported(tmp_path)
    assert {name: each.value for name, each in back.scores.items()} == {
        "cosine_spearman": 1.0,
        "mteb_cosine_spearman": 0.5,
    }
    assert back.main_score == "cosine_spearman"
    theirs = ours(main="mteb_cosine_spearman", scores={"cosine_spearman": 1.0, "mteb_cosine_spearman": 0.5})
    exchange.export_mteb([theirs], tmp_path, overwrite=True)
    assert [each.main_score for each in imported(tmp_path)] == ["mteb_cosine_spearman"]


def test_what_is_written_and_what_is_not(tmp_path: Path) -> None:
    """The newest of two, other settings apart, no undefined main score, nothing over other values without force."""
    made = to_mteb.files(
        [
            ours(day=1, scores={"cosine_spearman": 0.1}),
            ours(day=2, subsets=("a",), scores={"cosine_spearman": 0.2}),
            ours(truncate_dim=64),
            ours("STS13", scores={"cosine_spearman": None}),
            replace(ours(), task=TaskSpec(name="own", type="sts", dataset=DatasetRef(path="p"))),
        ]
    )
    places = {each.path.as_posix().split("/", 3)[3]: each.content for each in made.files}
    assert places.keys() == {
        "STS12.json", "model_meta.json", "experiments/truncate_dim_64/STS12.json",
        "experiments/truncate_dim_64/model_meta.json",
    }  # fmt: skip
    assert places["STS12.json"]["scores"]["test"][0]["main_score"] == 0.2
    assert places["experiments/truncate_dim_64/model_meta.json"]["experiment_kwargs"] == {"truncate_dim": 64}
    assert [sentence.split(":")[0] for sentence in made.left_out] == ["own", "all-MiniLM-L6-v2 on STS13 (test)"]

    exchange.export_mteb([ours()], tmp_path)
    exchange.export_mteb([ours()], tmp_path)
    with pytest.raises(ConfigError, match="--force"):
        exchange.export_mteb([ours(scores={"cosine_spearman": 0.3})], tmp_path)
    with pytest.raises(StoreError, match="no task of mteb"):
        exchange.export_mteb(
            [replace(ours(), task=TaskSpec(name="o", type="sts", dataset=DatasetRef(path="p")))], tmp_path
        )


@pytest.mark.parametrize("task", ["../../../evil", "a/b", "a\0b", ".."])
def test_names_that_lead_elsewhere_are_no_places(task: str, tmp_path: Path) -> None:
    """Names in files of others may be of any kind; nothing is written outside of the folder, and no fault is met."""
    made = to_mteb.files([ours("STS13"), ours(task), ours(name="a\0b")])
    assert [each.path.name for each in made.files] == ["STS13.json", "model_meta.json"]
    assert len(made.left_out) == 2
    assert all(sentence.endswith("its names can't be those of files.") for sentence in made.left_out)
    write(tmp_path, "x", {**STS12, "task_name": task})
    place = next(layout.places(tmp_path))
    with pytest.raises(DataError, match=r"x\.json: .* is no name of a task\.$"):
        from_mteb.read(place, tmp_path)


def test_a_revision_that_leads_elsewhere_is_no_place(tmp_path: Path) -> None:
    """It may come from a ``model_meta.json`` of others, as may settings that are no mapping."""
    file = write(tmp_path, "STS12", STS12)
    meta = {"name": MINILM, "revision": "../../../r", "experiment_kwargs": 5}
    (file.parent / layout.META).write_text(json.dumps(meta), encoding="utf-8")
    made = to_mteb.files(imported(tmp_path))
    assert made.files == ()
    assert len(made.left_out) == 1


def test_data_of_the_hub_has_its_revision() -> None:
    """The one that this version of mteb asks for; under another version nobody knows, and the hash stands there."""
    metadata = door.library().get_task("STS12").metadata
    assert to_mteb.dataset_revision(ours(mirror=None)) == metadata.revision
    other = replace(ours(mirror=None), provenance=replace(ours().provenance, packages={"mteb": "1.0"}))
    assert to_mteb.dataset_revision(other) == "sha256:" + "5ee6" * 16


README = """---
language: no
license: mit   # as it is
model-index:
- name: mine
  results:
  - task: {type: sentence-similarity}
    dataset: {type: a, name: b, config: no, split: test}
    metrics: [{type: c, value: 1}]
date: 2026-01-01
---

# Title

---
model-index: not the block
"""


def imported_example() -> Result:
    """A result that was imported."""
    told = Imported(
        source="results/x.json", mteb_version="2.1.0", dataset_revision=STS12["dataset_revision"], evaluation_time=1.0
    )
    return replace(ours(), imported=told)


def test_a_model_card() -> None:
    """What huggingface_hub reads from it, and that everything else in a README stays as it is."""
    from huggingface_hub.repocard_data import model_index_to_eval_results

    found = model_card.index([ours(scores={"cosine_spearman": 0.7, "cosine_pearson": 0.8})])
    text = model_card.merged(README, found, "README.md")
    _, front, rest = text.split("---\n", 2)
    assert rest == README.split("---\n", 2)[2]
    assert front.startswith("language: no\nlicense: mit   # as it is\n")
    assert front.endswith("\ndate: 2026-01-01\n")
    name, entries = model_index_to_eval_results(yaml.safe_load(front)["model-index"])
    assert name == "mine"
    assert [(each.dataset_config, each.metric_type, each.metric_value) for each in entries] == [
        ("no", "c", 1),
        ("default", "cosine_spearman", 0.7),
        ("default", "cosine_pearson", 0.8),
    ]
    metadata = door.library().get_task("STS12").metadata
    assert (entries[1].dataset_type, entries[1].task_name) == (metadata.dataset["path"], "STS")
    assert model_card.merged(text, found, "README.md") == text  # an entry is replaced, not added again
    for bare in ("", "# Title\n"):
        assert model_card.merged(bare, found, "README.md") == model_card.block(found) + bare
    published = replace(imported_example(), task=replace(imported_example().task, dataset=DatasetRef(path="Gone")))
    block = model_card.block(model_card.index([published, replace(published, split="dev")]))
    assert f"revision: {STS12['dataset_revision']}" in block  # of the data, though mteb has no such task
    assert "*" not in block  # no alias of YAML, which not every reader knows
    with pytest.raises(ConfigError, match="no YAML"):
        model_card.merged("---\na: [\n---\n", found, "README.md")
    with pytest.raises(StoreError, match="of 2"):
        model_card.index([ours(), ours(truncate_dim=64)])


@pytest.mark.parametrize(
    ("name", "revision", "task", "expected"),
    [
        (MINILM, COMMIT, "MSMARCO", "declared"),
        ("demo/all-MiniLM-L6-v2", "sha256:ab", "MSMARCO", "declared"),
        (MINILM, COMMIT, "NQ-VN", "declared"),
        (MINILM, COMMIT, "STS12", "not_declared"),
        ("all-MiniLM-L6-v2", "sha256:ab", "STS12", "unknown"),
        (MINILM, "sha256:ab", "MSMARCO", "unknown"),
        ("org/nobody-knows-it", COMMIT, "STS12", "unknown"),
        ("hashing", "builtin:1", "STS12", "not_declared"),
    ],
)
def test_what_a_model_was_trained_on(name: str, revision: str, task: str, expected: str) -> None:
    """MS MARCO and Natural Questions are among the training data on the card of all-MiniLM-L6-v2; NQ-VN translates it.

    A folder is unknown whatever it is called.
    """
    assert contamination.of(ModelSpec(name=name, revision=revision), task) == expected


def test_what_a_model_was_adapted_from_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its parent tells nothing, no task is told to be outside its training data."""
    known = door.library().get_model_meta(MINILM, fetch_from_hf=False)
    child = known.model_copy(update={"adapted_from": "org/parent"})
    silent = known.model_copy(update={"training_datasets": None, "adapted_from": None})
    metas = {"org/child": child, "org/parent": silent}
    monkeypatch.setattr(contamination, "_listed", metas.get)
    model = ModelSpec(name="org/child", revision=COMMIT)
    assert (contamination.of(model, "STS12"), contamination.of(model, "MSMARCO")) == ("unknown", "declared")


def test_the_runner_asks_and_keeps_the_answer(tmp_path: Path) -> None:
    """In every result of a task of mteb, also where it is made again from stored items; other tasks have none."""
    rows = [{"sentence1": f"a {n}", "sentence2": f"b {n % 3}", "score": n} for n in range(6)]
    write_jsonl(tmp_path / "pairs.jsonl", rows)
    own = TASK_TYPES.get("sts").bind(
        TaskSpec(name="own", type="sts", dataset=DatasetRef(path="pairs.jsonl")), root=tmp_path
    )
    of_mteb = replace(own, spec=replace(own.spec, name="mteb:STS12", type="mteb"))  # type: ignore[type-var]
    store = ResultStore(tmp_path / "results")
    model = ModelSpec(name="hashing", backend="hashing")

    def run(resamples: int) -> list[tuple[str, str | None]]:
        options = local.RunOptions(statistics=StatisticsOptions(resamples=resamples))
        done = list(local.run([model], [own, of_mteb], store, options))
        return [(each.status, stored.result.trained_on) for each in done for stored in each.stored]

    assert run(0) == [("done", None), ("done", "not_declared")]
    assert run(100) == [("rescored", None), ("rescored", "not_declared")]
