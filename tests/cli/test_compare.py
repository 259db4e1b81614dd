"""``embeval compare`` as users meet it, on the bundled golden set and the hashing baseline."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import embeval
from embeval import api
from embeval.cli import _compare, _state
from embeval.core.specs import RuntimeOptions, StatisticsOptions
from embeval.errors import ConfigError, NotComparableError, UsageError
from embeval.store.results import ResultStore
from embeval.store.tags import Tags
from embeval.workflows import handing_over
from tests.support.commands import Done, here
from tests.support.stored import put

DEMO = Path(embeval.__file__).parent / "data" / "demo"
MODELS = ("hashing", "hashing,dim=64", "hashing,dim=96", "hashing,dim=128")
Compare = Callable[..., Done]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results of four sizes of the baseline on the two bundled tasks."""
    folder = tmp_path_factory.mktemp("compare")
    embeval.evaluate(
        MODELS,
        ["demo-docs", "demo-pairs"],
        results=folder / "results",
        runtime=RuntimeOptions(cache=False),
        statistics=StatisticsOptions(resamples=100),
    )
    return folder


@pytest.fixture(scope="module")
def compare(made: Path) -> Compare:
    """Runs the command there."""

    def call(*words: str, cwd: Path = made) -> Done:
        return here("compare", *words, "--resamples", "200", cwd=cwd)

    return call


def report(made: Path, *sides: str, **options: Any) -> Any:
    """The JSON of the report, without a process of its own."""
    statistics = StatisticsOptions(resamples=200)
    return api.compare(*sides, results=made / "results", statistics=statistics, **options).to_json()


def test_a_table_a_sentence_and_what_was_lost(compare: Compare) -> None:
    """Names and values as stored, the verdict in words, queries with texts and ranks; exit code 0."""
    done = compare("hashing", "hashing (dim=64)", "--show", "1")
    assert done.code == 0, done.err
    assert "hashing (dim=64) against hashing, 2 comparisons: worse on 1 (demo-docs)" in done.out
    assert "0.3920" in done.out
    assert "0.2308" in done.out
    assert "-0.1612" in done.out
    assert "58 lost, 15 gained, 30 unchanged" in done.out
    assert "sec-rotate-master-key: 1 → 35" in done.out
    assert "keep old master.key.1" in done.out
    assert "Largest drops by label" in done.out


def test_json_agrees_with_the_stored_values(compare: Compare, made: Path) -> None:
    """The two main scores, and their difference, from the result files."""
    stored = {
        each.result.model.label: each.result.scores["ndcg_at_10"].value
        for each in ResultStore(made / "results").find(task="demo-docs", subset="all")
    }
    told = compare("hashing", "hashing (dim=64)", "-t", "demo-docs", "--json").json
    assert told == report(made, "hashing", "hashing (dim=64)", tasks="demo-docs")
    (found,) = told["comparisons"]
    assert found["baseline"] == pytest.approx(stored["hashing"])
    assert found["candidate"] == pytest.approx(stored["hashing (dim=64)"])
    assert found["delta"] == pytest.approx(found["candidate"] - found["baseline"])
    assert (found["finding"], found["n_items"], found["test"]) == ("worse", 103, "randomization")
    assert found["wins"] + found["ties"] + found["losses"] == 103
    assert told["candidates"] == ["hashing (dim=64)"]


def test_sides_by_id_path_folder_and_spec_are_one(made: Path) -> None:
    """Every way to name a result gives the same numbers."""
    (stored,) = ResultStore(made / "results").find(model="hashing (dim=64)", task="demo-docs", subset="all")
    folder = stored.path.parents[1]
    ways = [stored.id, str(stored.path), str(folder), "hashing,dim=64"]
    found = [report(made, "hashing", way, tasks="demo-docs", show=0)["comparisons"] for way in ways]
    assert all(each == found[0] for each in found)


def test_a_tag_is_a_side(made: Path, tmp_path: Path) -> None:
    """By tag:NAME and by the bare name."""
    shutil.copytree(made / "results", tmp_path / "results")
    store = ResultStore(tmp_path / "results")
    Tags(store.root).put("prod", list(store.find(model="hashing (dim=128)")))
    for side in ("tag:prod", "prod"):
        assert report(tmp_path, side, "hashing", tasks="demo-docs", show=0)["baseline"] == "hashing (dim=128)"


def test_a_part_that_fits_several_is_refused_with_their_labels(compare: Compare) -> None:
    """A usage error that lists what fits."""
    done = compare("hashing", "hash")
    assert done.code == 2
    assert "'hash' fits 4 models: 'hashing', 'hashing (dim=128)', 'hashing (dim=64)', 'hashing (dim=96)'" in done.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("hashing", "hashing"), 2, "named twice"),
        (("hashing", "tag:nobody"), 2, "nobody"),
        (("hashing", "hashing (dim=64)", "--by", "sort"), 2, "Unknown slice 'sort'"),
        (("hashing", "hashing (dim=*)", "--by", "kind"), 2, "a side with * has no comparison by label"),
        (("hashing", "hashing (dim=64)", "--metric", "ann_recall_at_1"), 2, "ann_recall_at_1"),
        (("hashing", "hashing (dim=64)", "--subset", "other"), 3, "No result fits"),
        (("hashing", "hashing (dim=64)", "--to", "report.txt"), 2, "the ending doesn't say the format"),
        (("hashing", "nobody", "-t", "demo-docs", "--no-run"), 3, "--no-run"),
    ],
)
def test_mistakes_are_told(compare: Compare, words: tuple[str, ...], code: int, said: str) -> None:
    """No number, a message and the exit code of its kind."""
    done = compare(*words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_more_mistakes(made: Path) -> None:
    """The same without a process each."""
    with pytest.raises(UsageError, match="Unknown side 'nobody'"):
        report(made, "hashing", "nobody")
    with pytest.raises(UsageError, match="ndcg_at_10"):
        report(made, "hashing", "hashing (dim=64)", metrics="ndgc_at_10")
    with pytest.raises(UsageError, match="correction 'bonferroni'"):
        report(made, "hashing", "hashing (dim=64)", correction="bonferroni")
    with pytest.raises(UsageError, match="option of compare 'metric'"):
        report(made, "hashing", "hashing (dim=64)", metric="ndcg_at_10")
    with pytest.raises(UsageError, match="holds results of 4 models"):
        report(made, "hashing", str(made / "results"))


@pytest.mark.parametrize(
    "options",
    [
        {"show": -1},
        {"show": True},
        {"min_items": 1},
        {"by": 5},
        {"correction": None},
        {"tasks": 5},
        {"metrics": [None]},
    ],
    ids=str,
)
def test_values_of_the_wrong_kind_are_refused(made: Path, options: dict[str, Any]) -> None:
    """A negative number of losses would list all but some of them."""
    with pytest.raises(ConfigError, match=f"^{next(iter(options))} must be"):
        report(made, "hashing", "hashing (dim=64)", **options)
    with pytest.raises(ConfigError, match="A side of a comparison must be"):
        report(made, "hashing", None)  # type: ignore[arg-type]


def test_a_task_that_no_side_has_is_told_beside_the_others(made: Path) -> None:
    """In a note; alone it is an error that names it."""
    told = report(made, "hashing", "hashing (dim=64)", tasks=["demo-docs", "demo-dosc"])
    assert ([each["task"] for each in told["comparisons"]], told["notes"]) == (
        ["demo-docs"],
        ["No side has a result of 'demo-dosc'."],
    )
    with pytest.raises(NotComparableError, match="No side has a result of 'demo-dosc'"):
        report(made, "hashing", "hashing (dim=64)", tasks="demo-dosc")


def test_a_metric_that_no_result_has_is_told_beside_the_others(made: Path) -> None:
    """In a note."""
    told = report(made, "hashing", "hashing (dim=64)", metrics=["ndcg_at_10", "ann_recall_at_1"], tasks="demo-docs")
    assert [each["metric"] for each in told["comparisons"]] == ["ndcg_at_10"]
    assert "No result that was compared has ann_recall_at_1." in told["notes"]


def test_a_broken_file_is_told_and_the_others_are_compared(made: Path, tmp_path: Path) -> None:
    """One result that can't be read doesn't vanish in silence."""
    shutil.copytree(made / "results", tmp_path / "results")
    (stored,) = ResultStore(tmp_path / "results").find(model="hashing (dim=96)", task="demo-docs", subset="all")
    stored.path.write_text("{", encoding="utf-8")
    told = report(tmp_path, "hashing", "hashing (dim=64)", tasks="demo-docs", show=0)
    assert len(told["comparisons"]) == 1
    assert [note for note in told["notes"] if str(stored.path) in note]


def test_a_result_edited_by_hand_is_not_compared(made: Path, tmp_path: Path) -> None:
    """Its score doesn't follow from its items (F20); what remains is compared, or the reason is the error."""
    shutil.copytree(made / "results", tmp_path / "results")
    (stored,) = ResultStore(tmp_path / "results").find(model="hashing (dim=64)", task="demo-docs", subset="all")
    value = stored.result.scores["ndcg_at_10"].value
    text = stored.path.read_text(encoding="utf-8")
    stored.path.write_text(text.replace(f'"value": {value!r}', '"value": 0.9'), encoding="utf-8")
    told = report(tmp_path, "hashing", "hashing (dim=64)", show=0)
    assert [each["task"] for each in told["comparisons"]] == ["demo-pairs"]
    assert any("The file was changed after the run" in each for each in told["not_comparable"])
    with pytest.raises(NotComparableError, match="ndcg_at_10 is 0\\.9 on 103 items"):
        report(tmp_path, "hashing", "hashing (dim=64)", tasks="demo-docs", show=0)


def test_results_of_other_data_are_refused_with_the_part_that_differs(compare: Compare, made: Path) -> None:
    """Fault F20 f: another depth is named, and with nothing left to compare the exit code is 3."""
    embeval.evaluate(
        "hashing,dim=32",
        {"name": "demo-docs", "depth": 500, "cutoffs": [10]},
        results=made / "other",
        runtime=RuntimeOptions(cache=False),
        statistics=StatisticsOptions(resamples=100),
    )
    (stored,) = ResultStore(made / "other").find()
    done = compare("hashing", str(stored.path))
    assert done.code == 3
    assert "demo-docs (test): hashing and hashing (dim=32) didn't measure the same thing" in done.err
    assert "depth: 1000 and 500" in done.err


def test_what_is_missing_is_run_and_stored(compare: Compare, tmp_path: Path) -> None:
    """Two models that were never run, with a task; a second time nothing is run."""
    words = ("hashing,dim=16", "hashing,dim=32", "-t", "demo-pairs")
    first = compare(*words, cwd=tmp_path)
    assert first.code == 0, first.err
    assert "Not stored, so it is run: hashing (dim=16) on demo-pairs" in first.err
    second = compare(*words, "--no-run", cwd=tmp_path)
    assert second.out == first.out
    assert "is run" not in second.err


def test_rankings_are_scored_in_memory(compare: Compare, made: Path, tmp_path: Path) -> None:
    """A TREC run that was exported gives the difference of the result it came from, and nothing is stored."""
    (stored,) = ResultStore(made / "results").find(model="hashing (dim=64)", task="demo-docs", subset="all")
    file = tmp_path / "h64.run"
    handing_over.write(handing_over.rendered(ResultStore(made / "results"), stored, "trec"), file, overwrite=False)
    before = len(list(ResultStore(made / "results").find()))
    expected = report(made, "hashing", "hashing (dim=64)", tasks="demo-docs")
    for golden in ("demo-docs", str(DEMO)):
        told = report(made, "hashing", str(file), golden=golden)
        assert told["comparisons"] == [{**expected["comparisons"][0], "candidate_model": "h64.run"}]
        assert told["changes"] == [{**expected["changes"][0], "candidate": "h64.run"}]
    given = compare("hashing", str(file), "--data", str(DEMO), "--json").json
    assert given["comparisons"] == told["comparisons"]
    with pytest.raises(NotComparableError, match=r"Nothing of .* can be compared"):  # judgments alone are other data
        report(made, str(file), "hashing", tasks="demo-docs", qrels=str(DEMO / "qrels" / "test.tsv"))
    assert len(list(ResultStore(made / "results").find())) == before
    with pytest.raises(UsageError, match="--golden FOLDER"):
        report(made, "hashing", str(file))


def test_a_ranking_that_is_cut_gives_no_difference(made: Path, tmp_path: Path) -> None:
    """Five hits a query are too few for nDCG at 10, and queries that are missing are told."""
    (stored,) = ResultStore(made / "results").find(model="hashing (dim=64)", task="demo-docs", subset="all")
    lines = handing_over.rendered(ResultStore(made / "results"), stored, "trec").decode().splitlines()
    short, few = tmp_path / "short.run", tmp_path / "few.run"
    short.write_text("".join(f"{line}\n" for line in lines if int(line.split()[3]) <= 5))
    few.write_text("".join(f"{line}\n" for line in lines if line < "q100"))
    (found,) = report(made, "hashing", str(short), golden="demo-docs", show=0)["comparisons"]
    assert found["delta"] is None
    assert "holds 5 hits per query at most, and ndcg_at_10 looks at 10" in found["reason"]
    (found,) = report(made, "hashing", str(few), golden="demo-docs", show=0)["comparisons"]
    assert found["note"].startswith("no ranking for ")
    assert found["note"].endswith(" of few.run: counted as 0")


def test_repetitions_of_one_system(made: Path) -> None:
    """A pattern stands for all that fit; a correlation over all pairs can't be averaged."""
    told = report(made, "hashing", "hashing (dim=*)")
    docs, correlations = told["comparisons"]
    assert (docs["task"], docs["delta"] < 0, docs["ci_low"]) == ("demo-docs", True, None)
    assert docs["note"].startswith("1 run and 3 runs, resampled with the items")
    assert correlations["reason"].startswith("a value of all items together")
    assert told["candidates"] == ["hashing (dim=*)"]


def test_by_label(made: Path) -> None:
    """Labels of fewer than 20 queries are listed apart."""
    told = report(made, "hashing", "hashing (dim=64)", tasks="demo-docs", by="query_length", show=0)
    assert {each["slice"] for each in told["slices"]} == {"query_length"}
    assert all(each["n_items"] >= 20 for each in told["slices"])
    assert all(each["n_items"] < 20 for each in told["few"])
    assert sum(each["n_items"] for each in (*told["slices"], *told["few"])) == 103


def test_files(compare: Compare, made: Path, tmp_path: Path) -> None:
    """The form follows the ending; standard output holds the sentence."""
    file = tmp_path / "report.md"
    done = compare("hashing", "hashing (dim=64)", "-t", "demo-docs", "--to", str(file))
    assert done.out.startswith("hashing (dim=64) against hashing, 1 comparison: worse on 1 (demo-docs).")
    found = file.read_text(encoding="utf-8")
    assert found.startswith("### hashing (dim=64) against hashing\n")
    assert "| demo-docs | ndcg_at_10 | 0.3920 | 0.2308 | -0.1612 | [" in found
    page = compare("hashing", "hashing (dim=64)", "-t", "demo-docs", "--format", "html")
    assert page.out.startswith("<!doctype html>")
    assert "0.2308" in page.out


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_a_narrow_terminal_keeps_names_and_numbers(made: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is cut, and no line is longer than the terminal."""
    found = api.compare(
        "hashing",
        "hashing (dim=64)",
        tasks="demo-docs",
        results=made / "results",
        statistics=StatisticsOptions(resamples=200),
    )
    console = Console(width=columns, markup=False, highlight=False, record=True, file=io.StringIO())
    monkeypatch.setattr(_state, "console", lambda stderr=False: console)
    _compare.show(found)
    shown = console.export_text()
    assert all(len(line) <= columns for line in shown.splitlines())
    for text in ("demo-docs", "ndcg_at_10", "0.3920", "0.2308", "-0.1612", "worse"):
        assert text in shown


def test_stored_results_need_no_heavy_package(made: Path) -> None:
    """No torch, scipy, faiss or transformers for results that are there."""
    code = (
        "import sys\n"
        "sys.argv = ['embeval', 'compare', 'hashing', 'hashing (dim=64)', '--resamples', '100', '--quiet']\n"
        "from embeval.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = {'torch', 'scipy', 'faiss', 'transformers', 'huggingface_hub'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_name_does_not_steer_the_terminal(tmp_path: Path) -> None:
    """Escape sequences, and characters that turn the direction of text, in a message about stored models."""
    put(ResultStore(tmp_path / "results"), {"ndcg_at_10": [0.5, 0.6]}, model="org/\x1b[31mred\u202e")
    done = here("compare", "nobody", "nobody else", cwd=tmp_path)
    assert "Known: \ufffd[31mred\ufffd." in done.err
