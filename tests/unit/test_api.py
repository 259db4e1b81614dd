"""The façade that notebooks and CI scripts call."""

from __future__ import annotations

import gzip
import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embeval
from embeval import api
from embeval.core.result import Result
from embeval.core.specs import DatasetRef, ModelSpec, Role, RuntimeOptions, StatisticsOptions, TaskSpec
from embeval.errors import ConfigError, DataError, ModelError
from embeval.tasks import TASK_TYPES
from tests.support.data import write_beir, write_pairs

FEW = StatisticsOptions(resamples=100)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Alike, half alike, nothing alike; gold puts the second above the first."""
    return write_pairs(
        tmp_path / "pairs.jsonl",
        [
            ("the backup server", "the backup server", 3.0),
            ("restore the document", "restore the archive", 5.0),
            ("red fox", "quick lime", 0.0),
        ],
    )


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """q1 finds its document first, q2 second after its own twin."""
    return write_beir(
        tmp_path / "golden",
        corpus={"d1": "restore a backup", "d2": "rotate the keys", "d3": "rotate the logs", "d4": "zebra quagga"},
        queries={"q1": "restore a backup", "q2": "rotate the keys"},
        qrels={"q1": {"d1": 1}, "q2": {"d3": 1}},
    )


def main_value(result: Result) -> float:
    """The value that stands for the task; never undefined here."""
    value = result.main_value
    assert value is not None
    assert value.value is not None
    return value.value


def test_evaluate_gives_the_results_in_order(tmp_path: Path, pairs: Path, golden: Path) -> None:
    """Models outside, tasks inside; the values are those worked out by hand."""
    results = embeval.evaluate(
        ["hashing", ModelSpec(name="wide", backend="hashing", args={"dim": 1024})],
        [f"sts:{pairs}", str(golden)],
        results=tmp_path / "results",
        statistics=FEW,
    )
    assert [(result.model.name, result.task.name) for result in results] == [
        ("hashing", "pairs"),
        ("hashing", "golden"),
        ("wide", "pairs"),
        ("wide", "golden"),
    ]
    for result in results:
        if result.task.name == "pairs":
            # Ranks 3, 2, 1 against gold 2, 3, 1: 1 - 6 * 2 / (3 * 8).
            assert main_value(result) == pytest.approx(0.5)
        else:
            assert main_value(result) == pytest.approx((1 + 1 / math.log2(3)) / 2)
        assert result.status == "ok"
        assert result.statistics == FEW


def test_models_and_tasks_come_in_any_form(tmp_path: Path, pairs: Path, golden: Path) -> None:
    """Words, keys as in embeval.yaml, specs and bound tasks, one or many, all name the same evaluation."""
    spec = TaskSpec(name="pairs", type="sts", dataset=DatasetRef(path=str(pairs)))
    models: list[Any] = [
        "hashing,dim=64",
        {"name": "hashing", "backend": "hashing", "args": {"dim": 64}},
        ModelSpec(name="hashing", backend="hashing", args={"dim": 64}),
    ]
    tasks: list[Any] = [
        f"sts:{pairs}",
        pairs,
        {"data": str(pairs)},
        {"data": pairs},
        spec,
        TASK_TYPES.get("sts").bind(spec, root=Path()),
    ]
    found = [
        embeval.evaluate(model, task, results=tmp_path / f"{n}", statistics=FEW)
        for n, (model, task) in enumerate(
            [*((each, tasks[0]) for each in models), *((models[0], each) for each in tasks)]
        )
    ]
    assert [len(results) for results in found] == [1] * 9
    assert len({results[0].signature.model_digest for results in found}) == 1
    assert {main_value(results[0]) for results in found} == {main_value(found[0][0])}
    both = embeval.evaluate(tuple(models[:1]), [tasks[1], golden_keys(golden)], results=tmp_path / "r", statistics=FEW)
    assert [result.task.name for result in both] == ["pairs", "golden"]


def golden_keys(golden: Path) -> dict[str, Any]:
    """The keys of a retrieval task."""
    return {"data": str(golden), "type": "retrieval"}


@pytest.mark.parametrize(
    ("model", "task", "message"),
    [
        (7, "demo-pairs", "A model is a name, keys or a ModelSpec, not 7."),
        ([None], "demo-pairs", "A model is a name, keys or a ModelSpec, not None."),
        ("hashing", [3.5], "A task is a name, keys, a TaskSpec or a bound task, not 3.5."),
        ({"name": "x", "dtyp": "x"}, "demo-pairs", "dtyp: unknown key. Did you mean 'dtype'"),
        ("hashing", {"dat": "x"}, "dat"),
        (ModelSpec(name="h", backend="hashing", normalize="no"), "demo-pairs", "model: normalize: .* not 'no'"),  # type: ignore[arg-type]
        (ModelSpec(name="h", backend="hashing", truncate_dim=5.5), "demo-pairs", "model: truncate_dim: "),  # type: ignore[arg-type]
        (ModelSpec(name="h", prompts="x"), "demo-pairs", "model: prompts: "),  # type: ignore[arg-type]
        ("hashing", TaskSpec(name="t", type=5, dataset=DatasetRef(path="x")), "task: type: "),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_model_or_task_is_told(tmp_path: Path, model: Any, task: Any, message: str) -> None:
    """Nothing is run and nothing is written."""
    with pytest.raises(ConfigError, match=message):
        embeval.evaluate(model, task, results=tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"results": None}, "results must be the path of a folder, not None"),
        ({"results": ""}, "results must be the path of a folder, not ''"),
        ({"data": 5}, "data must be the path of a folder, not 5"),
        ({"statistics": {"resamples": 100}}, r"statistics must be StatisticsOptions\(…\), not {'resamples': 100}"),
        ({"runtime": "cpu"}, r"runtime must be RuntimeOptions\(…\), not 'cpu'"),
        ({"statistics": StatisticsOptions(seed=1.5)}, "statistics: seed: "),  # type: ignore[arg-type]
    ],
)
def test_wrong_options_are_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, message: str
) -> None:
    """Whatever is passed, it is a message of ours and no trace on disk."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        embeval.evaluate("hashing", "demo-pairs", **options)
    assert list(tmp_path.iterdir()) == []


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: Path) -> None:
    """``~/x`` is in the home folder, as on the command line, and no folder called ``~``."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    embeval.evaluate("hashing", pairs, results="~/results", statistics=FEW)
    assert len(api.leaderboard("~/results").rows) == 1
    assert (tmp_path / "home" / "results").is_dir()
    assert not (tmp_path / "~").exists()


def test_a_model_asked_for_twice_is_refused(tmp_path: Path) -> None:
    """Under the same settings; others make another model."""
    with pytest.raises(ConfigError, match="The model 'hashing' is named twice"):
        embeval.evaluate(["hashing", "hashing,dim=64", "hashing"], "demo-pairs", results=tmp_path / "r")


def test_what_is_finished_is_read(tmp_path: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call gives the same results without a model; with ``overwrite`` it needs one."""
    first = embeval.evaluate(["hashing"], [f"sts:{pairs}"], results=tmp_path / "results", statistics=FEW)

    def refuse(*_: Any) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr("embeval.encoders.loading.load_system", refuse)
    second = embeval.evaluate(["hashing"], [f"sts:{pairs}"], results=tmp_path / "results", statistics=FEW)
    assert second == first
    with pytest.raises(AssertionError, match="the model was loaded"):
        embeval.evaluate(["hashing"], [f"sts:{pairs}"], results=tmp_path / "results", statistics=FEW, overwrite=True)


def test_evaluate_raises_what_a_step_ran_into(tmp_path: Path, pairs: Path) -> None:
    """Broken data, a missing model, two tasks of one name: the error itself, not a result without numbers."""
    with pytest.raises(DataError, match=r"gone\.jsonl: no such file"):
        embeval.evaluate(["hashing"], [f"sts:{tmp_path / 'gone.jsonl'}"], results=tmp_path / "results")
    with pytest.raises(ModelError, match="does not exist"):
        embeval.evaluate([str(tmp_path / "gone")], [f"sts:{pairs}"], results=tmp_path / "results")
    with pytest.raises(ConfigError, match="Two tasks are called 'pairs'"):
        embeval.evaluate(["hashing"], [f"sts:{pairs}", f"sts:{pairs}"], results=tmp_path / "results")


def test_data_is_where_catalogue_tasks_find_theirs(tmp_path: Path) -> None:
    """``data`` holds STS12 at the path that its entry names."""
    rows = [{"sentence1": "a b c", "sentence2": text, "score": score} for text, score in [("a b c", 1), ("x y", 0)]]
    file = tmp_path / "data" / "sts" / "STS12" / "test.jsonl.gz"
    file.parent.mkdir(parents=True)
    file.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    (result,) = embeval.evaluate(
        ["hashing"], ["STS12"], results=tmp_path / "results", data=tmp_path / "data", statistics=FEW
    )
    assert result.task.name == "STS12"
    assert main_value(result) == pytest.approx(1.0)
    with pytest.raises(DataError, match="STS12"):
        embeval.evaluate(["hashing"], ["STS12"], results=tmp_path / "results")


def test_run_reports_failures_as_outcomes(tmp_path: Path, pairs: Path) -> None:
    """``run`` goes on where ``evaluate`` raises, and announces each step before it starts."""
    from embeval.workflows import requests

    tasks = [requests.parse_task(f"sts:{path}", root=Path(), data=None) for path in (tmp_path / "gone.jsonl", pairs)]
    announced: list[tuple[int, int, str]] = []
    request = api.Request(
        models=(ModelSpec(name="hashing", backend="hashing"),),
        tasks=tuple(tasks),
        results=tmp_path / "results",
        statistics=FEW,
    )
    outcomes = list(api.run(request, on_start=lambda step: announced.append((step.number, step.total, step.task.name))))
    assert announced == [(1, 2, "gone"), (2, 2, "pairs")]
    assert [outcome.status for outcome in outcomes] == ["failed", "done"]
    assert isinstance(outcomes[0].error, DataError)


def test_bm25_is_evaluated_where_documents_are_ranked(tmp_path: Path) -> None:
    """Of mteb's tasks those whose class searches: retrieval and reranking, not STS, and not what needs pictures."""
    pytest.importorskip("mteb")
    names = ["STS12", "SciFact", "Banking77Classification", "AskUbuntuDupQuestions", "VidoreDocVQARetrieval"]
    specs = [
        TaskSpec(
            name=f"mteb:{name}", type="mteb", dataset=DatasetRef(path=name), options={"mirror": str(tmp_path / "none")}
        )
        for name in names
    ]
    steps: list[tuple[str, str]] = []
    request = api.Request(
        models=(ModelSpec(name="hashing", backend="hashing"),),
        tasks=tuple(TASK_TYPES.get("mteb").bind(spec, root=Path()) for spec in specs),
        results=tmp_path / "results",
        bm25=True,
    )
    outcomes = list(api.run(request, on_start=lambda step: steps.append((step.model.name, step.task.name))))
    assert {outcome.status for outcome in outcomes} == {"failed"}  # the mirror isn't there
    assert sorted(task for model, task in steps if model == "bm25") == ["mteb:AskUbuntuDupQuestions", "mteb:SciFact"]
    assert [task for model, task in steps if model == "hashing"] == [spec.name for spec in specs]


def test_load_encoder(tmp_path: Path) -> None:
    """Given as on the command line or as a spec: ready to encode, revision resolved, runtime options kept."""
    encoder = embeval.load_encoder("hashing,dim=64", runtime=RuntimeOptions(batch_tokens=7))
    assert (encoder.spec.revision, encoder.info.dim, encoder.info.batch_tokens) == ("builtin:1", 64, 7)
    vectors = encoder.encode(["restore a backup", "zebra", "Restore  a backup!"], role=Role.TEXT).vectors
    assert np.array_equal(vectors[0], vectors[2])
    assert not np.array_equal(vectors[0], vectors[1])
    same = embeval.load_encoder(ModelSpec(name="hashing", backend="hashing", args={"dim": 64}))
    assert np.array_equal(same.encode(["zebra"], role=Role.QUERY).vectors[0], vectors[1])
    with pytest.raises(ModelError, match="does not exist"):
        embeval.load_encoder(str(tmp_path / "gone"))


def test_leaderboard_reads_the_store(tmp_path: Path, pairs: Path, golden: Path) -> None:
    """Models by tasks with the values of the results; one metric or the tasks of one name on request."""
    store = tmp_path / "results"
    sts, retrieval = embeval.evaluate(["hashing"], [f"sts:{pairs}", str(golden)], results=store, statistics=FEW)
    board = api.leaderboard(store)
    assert [(key.task, key.metric) for key in board.columns] == [("golden", "ndcg_at_10"), ("pairs", "cosine_spearman")]
    (row,) = board.rows
    assert row.mean == pytest.approx((main_value(sts) + main_value(retrieval)) / 2)
    assert [row.cells[key].value for key in board.columns] == [main_value(retrieval), main_value(sts)]

    by_metric = api.leaderboard(store, metric="ndcg_at_1")
    assert [(key.task, key.metric) for key in by_metric.columns] == [("golden", "ndcg_at_1")]
    assert by_metric.rows[0].mean == pytest.approx(0.5)
    assert [key.task for key in api.leaderboard(store, task="PAIR").columns] == ["pairs"]
    assert api.leaderboard(tmp_path / "nothing-here").rows == ()


def test_public_names() -> None:
    """Each is what its home module holds, also once every folder of the package was imported; others are refused.

    None has the name of a folder: importing ``embeval.leaderboard.board`` would put the folder in its place.
    """
    folders = {path.name for path in Path(embeval.__path__[0]).iterdir() if path.is_dir()}
    assert not folders & set(embeval.__all__)
    assert sorted(embeval.__all__) == dir(embeval)
    homes = {
        "evaluate": "embeval.api",
        "gate": "embeval.api",
        "load_encoder": "embeval.api",
        "MetricValue": "embeval.core.result",
        "Result": "embeval.core.result",
        "ModelSpec": "embeval.core.specs",
        "Role": "embeval.core.specs",
        "RuntimeOptions": "embeval.core.specs",
        "StatisticsOptions": "embeval.core.specs",
        "TaskSpec": "embeval.core.specs",
        "EmbevalError": "embeval.errors",
    }
    assert sorted([*homes, "__version__"]) == sorted(embeval.__all__)
    for name, home in homes.items():
        assert getattr(embeval, name) is getattr(import_module(home), name), name
    assert embeval.__version__ == "0.1.0"
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        embeval.evaluat  # noqa: B018
