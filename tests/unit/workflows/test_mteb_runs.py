"""Tasks of mteb from names to a table, a comparison and a gate: which sub-set stands, what fails, what is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import embeval
from embeval import api
from embeval.core.specs import RuntimeOptions, StatisticsOptions
from embeval.errors import DataError, EvaluationError
from embeval.mteb_bridge.tasks.mteb import MtebTask
from embeval.store.results import ResultStore
from embeval.workflows import requests
from tests.support.data import write_pairs

TASK = "STSBenchmarkMultilingualSTS"
PAIRS = {
    "de": [
        ("ein roter Ball", "ein roter runder Ball", 4.5),
        ("ein Hund schläft", "eine Katze schläft", 2.0),
        ("der Bericht ist fertig", "der fertige Bericht", 4.0),
        ("es regnet", "die Rechnung ist bezahlt", 0.0),
        ("das Fenster ist offen", "ein offenes Fenster", 3.0),
    ],
    "es": [
        ("una pelota roja", "una pelota redonda roja", 3.0),
        ("un perro duerme", "un gato duerme", 4.0),
        ("el informe está listo", "llueve en la ciudad", 1.0),
        ("la ventana está abierta", "la ventana abierta", 2.0),
        ("la cuenta está pagada", "han pagado la cuenta", 5.0),
        ("el tren llega tarde", "el tren tiene retraso", 4.5),
    ],
}
SPLIT = f"mteb:{TASK},subsets=[de, es],splits=test"
MODELS = ("hashing:one,dim=64", "hashing:two,dim=16")


def lay_out(mirror: Path) -> None:
    """Two sub-sets of a task of mteb, as a mirror has them."""
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: test\n    path: {name}.jsonl\n" for name in PAIRS
    )
    for name, pairs in PAIRS.items():
        write_pairs(mirror / TASK / f"{name}.jsonl", pairs)
    (mirror / TASK / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a mirror, and results of two models on both sub-sets."""
    folder = tmp_path_factory.mktemp("mteb")
    lay_out(folder / "mirror")
    embeval.evaluate(
        list(MODELS),
        SPLIT,
        results=folder / "results",
        mirror=folder / "mirror",
        runtime=RuntimeOptions(cache=False),
        statistics=StatisticsOptions(resamples=1000),
    )
    return folder


def correlations(place: Path, model: str) -> dict[str, float]:
    """Sub-set -> Spearman of the stored similarities, computed by scipy."""
    (whole,) = ResultStore(place / "results").find(model=model, subset="all")
    records = ResultStore(place / "results").records(whole)
    return {
        label: float(stats.spearmanr(part.columns["gold"], part.columns["cosine"]).statistic)
        for label, rows in records.rows_by("subset").items()
        for part in [records.take(rows)]
    }


def test_the_mean_over_sub_sets_stands(place: Path) -> None:
    """In what ``evaluate`` gives, on a leaderboard, in a comparison and in a gate, and nothing else there."""
    expected = {model: sum(found.values()) / 2 for model in ("one", "two") for found in [correlations(place, model)]}
    found = embeval.evaluate(list(MODELS), SPLIT, results=place / "results", mirror=place / "mirror")
    assert [(each.subset, each.stands, each.model.name) for each in found] == [
        ("mean", True, "one"),
        ("mean", True, "two"),
    ]
    board = api.leaderboard(place / "results")
    assert [column.subset for column in board.columns] == ["mean"]
    shown = {row.label.split()[0]: cell.value for row in board.rows for cell in row.cells.values()}
    assert shown == pytest.approx(expected, abs=1e-12)
    assert expected["one"] != expected["two"]
    report = api.compare("one", "two", results=place / "results")
    (difference,) = report.comparisons
    assert (difference.task, difference.subset) == (f"mteb:{TASK}", "mean")
    assert difference.delta == pytest.approx(expected["two"] - expected["one"], abs=1e-12)
    rule = {"metric": f"mteb:{TASK}/cosine_spearman", "min": expected["two"] - 1e-6}
    policy: dict[str, Any] = {"rules": [rule]}
    assert api.gate(policy, "two", results=place / "results").outcome == "pass"
    above = {"rules": [{**rule, "min": expected["two"] + 1e-6}]}
    assert api.gate(above, "two", results=place / "results").outcome == "fail"


def test_other_sub_sets_are_there_for_the_asking(place: Path) -> None:
    """By name, in a comparison and in a rule."""
    of_german = {model: correlations(place, model)["de"] for model in ("one", "two")}
    (difference,) = api.compare("one", "two", results=place / "results", subset="de").comparisons
    assert difference.delta == pytest.approx(of_german["two"] - of_german["one"], abs=1e-12)
    rule = {"metric": f"mteb:{TASK}[subset=de]/cosine_spearman", "min": of_german["two"] - 1e-6}
    assert api.gate({"rules": [rule]}, "two", results=place / "results").outcome == "pass"


def test_a_comparison_by_task(place: Path) -> None:
    """``-t mteb:NAME`` finds what is stored, in any spelling of the name."""
    report = api.compare("one", "two", results=place / "results", tasks=f"mteb:{TASK.lower()}")
    assert [each.task for each in report.comparisons] == [f"mteb:{TASK}"]


def test_what_is_missing_is_told_before_anything_is_encoded(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task that the mirror lacks comes first and fails; the other is done, its data loaded once."""
    loaded = []
    original = MtebTask.load

    def load(self: MtebTask) -> Any:
        loaded.append(self.spec.name)
        return original(self)

    monkeypatch.setattr(MtebTask, "load", load)
    tasks = [
        task
        for word in (SPLIT, "mteb:STS12")
        for task in requests.parse_tasks(word, root=place, data=None, mirror=Path("mirror"))
    ]
    request = api.Request(
        models=(requests.parse_model("hashing"),),
        tasks=tuple(tasks),
        results=tmp_path / "results",
        runtime=RuntimeOptions(cache=False),
        statistics=StatisticsOptions(resamples=0),
    )
    outcomes = list(api.run(request))
    assert [(each.step.task.name, each.status) for each in outcomes] == [
        ("mteb:STS12", "failed"),
        (f"mteb:{TASK}", "done"),
    ]
    assert isinstance(outcomes[0].error, DataError)
    assert "embeval data pull STS12 --to" in str(outcomes[0].error)
    assert loaded == ["mteb:STS12", f"mteb:{TASK}"]
    (failed,) = ResultStore(tmp_path / "results").find(status="error")
    assert failed.result.stands


def test_a_task_of_images_is_refused_at_once(tmp_path: Path) -> None:
    """Without its data being asked for."""
    task = requests.parse_task("mteb:CIFAR10", root=tmp_path, data=None)
    with pytest.raises(EvaluationError, match="mteb:CIFAR10 needs image, and embeval evaluates models of texts"):
        task.check()  # type: ignore[attr-defined]  # of tasks with large data


def test_a_mirror_that_is_no_folder(tmp_path: Path) -> None:
    """Told by its path."""
    task = requests.parse_task("mteb:BIOSSES,mirror=gone", root=tmp_path, data=None)
    with pytest.raises(DataError, match="gone: no such folder"):
        task.check()  # type: ignore[attr-defined]  # of tasks with large data
