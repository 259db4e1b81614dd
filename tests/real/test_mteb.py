"""all-MiniLM-L6-v2 on mteb's tasks from a mirror, against published numbers and against mteb 2.26 itself.

Published numbers: ``reference_scores.json`` of the data folder (embeddings-benchmark/results, mteb 1.12).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from embeval.core.specs import ModelSpec
from embeval.encoders.locate import locate
from embeval.store.results import ResultStore, Stored
from tests.support.commands import Done, embeval
from tests.support.library import library_model, library_scores, library_task
from tests.support.mirror import SEVERAL, lay_out

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200), pytest.mark.enable_socket]

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
TOLERANCES = {
    "STSBenchmark": 1e-4,
    "STS12": 1e-4,
    "STS14": 1e-3,
    "STS15": 1e-4,
    "STSBenchmarkMultilingualSTS": 5e-4,
    "Banking77Classification": 1e-4,
    "AmazonCounterfactualClassification": 1e-9,
    "SciFact": 1e-4,
}
"""Task -> how near to the published score. The library itself gives 0.75600 for STS14 on this copy of the data where
0.75589 is published."""
SUBSETS = [(task, subset) for task in TOLERANCES for subset in SEVERAL.get(task, ("default",))]


@pytest.fixture(scope="module")
def mirror(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of these tasks as a mirror."""
    return lay_out(real_data, tmp_path_factory.mktemp("mteb") / "mirror", tuple(TOLERANCES))


@pytest.fixture(scope="module")
def command(mirror: Path) -> list[str]:
    """``embeval run`` on them."""
    tasks = [
        word
        for task in TOLERANCES
        for subsets in [f",subsets=[{', '.join(SEVERAL[task])}]" if task in SEVERAL else ""]
        for word in ("-t", f"mteb:{task},splits=[test]{subsets}")
    ]
    # Intervals are held to be there, not to their digits.
    return ["run", "-m", "demo", *tasks, "--mirror", str(mirror), "--resamples", "1000", "--json"]


@pytest.fixture(scope="module")
def run(encoded: None, mirror: Path, command: list[str]) -> Done:
    """The command, its hub a socket of these tests that must stay unused."""
    with socket.create_server(("127.0.0.1", 0)) as hub:
        endpoint = f"http://127.0.0.1:{hub.getsockname()[1]}"
        done = embeval(
            *command, cwd=mirror.parent, env={"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"}, timeout=1000, model=True
        )
        hub.setblocking(False)
        with pytest.raises(BlockingIOError):
            hub.accept()
    return done


@pytest.fixture(scope="module")
def results(run: Done, mirror: Path) -> Mapping[tuple[str, str], Stored]:
    """(task, sub-set) -> stored result, also of tasks that have one sub-set."""
    assert run.code == 0, run.err
    found = ResultStore(mirror.parent / "results").find(status="ok")
    return {(each.result.task.name.removeprefix("mteb:"), each.result.subset): each for each in found}


@pytest.mark.parametrize(("task", "subset"), SUBSETS)
def test_equals_the_published_score(
    results: Mapping[tuple[str, str], Stored], real_data: Path, task: str, subset: str
) -> None:
    """The main score in float32, and an interval around it."""
    content = json.loads((real_data / "reference_scores.json").read_text(encoding="utf-8"))
    scores = content["mteb_results"]["models"][MODEL][task][0]["scores"]["test"]
    (published,) = [each["main_score"] for each in scores if each["hf_subset"] == subset]
    value = results[task, "all" if subset == "default" else subset].result.main_value
    assert value is not None
    assert value.value == pytest.approx(published, abs=TOLERANCES[task])
    assert value.ci_low is not None
    assert value.ci_high is not None
    assert value.ci_low < value.value < value.ci_high  # type: ignore[operator]  # approx above refuses None


@pytest.mark.parametrize(("task", "subsets"), [("STSBenchmark", None), ("AmazonCounterfactualClassification", ["en"])])
def test_equals_mteb_itself(
    results: Mapping[tuple[str, str], Stored],
    mirror: Path,
    task: str,
    subsets: list[str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``mteb.evaluate`` with sentence-transformers on the same files, which it loads itself: to 1e-4."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)  # where it would find tables of other files
    folder = locate(ModelSpec(name="demo")).folder
    assert folder is not None
    theirs = library_scores(library_model(folder), library_task(task, mirror / task, subsets=subsets))
    assert list(theirs) == (subsets or ["default"])
    for subset, score in theirs.items():
        value = results[task, "all" if subset == "default" else subset].result.main_value
        assert value is not None
        assert value.value == pytest.approx(score, abs=1e-4), subset


def test_every_result_has_its_items(results: Mapping[tuple[str, str], Stored], mirror: Path) -> None:
    """As many rows as the split has, for sub-sets and for the whole."""
    store = ResultStore(mirror.parent / "results")
    sizes = {key: len(store.records(stored)) for key, stored in results.items()}
    assert sizes["STSBenchmark", "all"] == 1379
    assert sizes["Banking77Classification", "all"] == 3080
    assert sizes["SciFact", "all"] == 300
    assert sizes["AmazonCounterfactualClassification", "en"] == 670
    for task, subsets in SEVERAL.items():
        if task in TOLERANCES:
            assert sizes[task, "all"] == sum(sizes[task, subset] for subset in subsets)


def test_once_more_nothing_is_run(run: Done, mirror: Path, command: list[str]) -> None:
    """The same command finds everything finished."""
    done = embeval(*command, cwd=mirror.parent, timeout=300, model=True)
    assert done.code == 0, done.err
    assert {step["status"] for step in done.json["steps"]} == {"skipped"}
