"""Every verb as a process of its own: what it prints where, in which form, and how it ends."""

from __future__ import annotations

import functools
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer
import yaml
from typer.core import TyperOption

from embeval.cli.main import VERBS
from embeval.core import border
from embeval.core.signature import RESERVED_SUBSETS
from embeval.store.results import ResultStore
from embeval.tasks import TASK_TYPES, catalog
from embeval.tasks.retrieval import RetrievalOptions
from embeval.workflows.template import TEMPLATE
from tests.support.commands import Done, embeval, environment
from tests.support.data import write_pairs

FEW = ("--resamples", "100")


def walk() -> Iterator[tuple[str, Any]]:
    """(words, command) of every verb and of every verb below a verb."""
    for verb in VERBS:
        found: Any = typer.main.get_command(import_module(f"embeval.cli.{verb}").app)
        below = getattr(found, "commands", None)
        if below is None:
            yield verb, found
        else:
            yield from ((f"{verb} {name}", each) for name, each in below.items())


COMMANDS = dict(walk())
GROUPS = sorted({words.split()[0] for words in COMMANDS if " " in words})


@dataclass(frozen=True)
class Project:
    """A folder in which something was evaluated."""

    folder: Path
    first: Done
    """What the first run came to."""
    second: Done
    """What the same command came to after that."""

    done: dict[tuple[str, ...], Done] = field(default_factory=dict)
    """What commands that only read came to."""

    def __call__(self, *words: str, env: Mapping[str, str] | None = None) -> Done:
        """A command in that folder; one that only reads is not run a second time."""
        if env or words[0] in ("run", "init"):
            return embeval(*words, cwd=self.folder, env=env)
        if words not in self.done:
            self.done[words] = embeval(*words, cwd=self.folder)
        return self.done[words]

    @property
    def results(self) -> ResultStore:
        """What is stored."""
        return ResultStore(self.folder / "results")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The baseline on the bundled data, run twice; an embeval.yaml; a file where a folder is wanted."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "embeval.yaml").write_text(TEMPLATE, encoding="utf-8")
    (folder / "file").write_text("in the way", encoding="utf-8")
    (folder / "golden.jsonl").write_text('{"_id": "a", "text": "restore a document"}\n', encoding="utf-8")
    board = folder / "leaderboards" / "mine" / "board.yaml"
    board.parent.mkdir(parents=True)
    board.write_text("results: [../../results]\noutputs: [html, json]\n", encoding="utf-8")
    words = ("run", "-m", "hashing", "-t", "demo-docs", "-t", "demo-pairs", *FEW)
    return Project(folder, embeval(*words, cwd=folder), embeval(*words, cwd=folder))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A folder with sentence pairs whose order the baseline finds: cosine 1, in between, 0."""
    write_pairs(
        tmp_path / "pairs.jsonl",
        [
            ("the backup server", "the backup server", 3.0),
            ("restore the document", "restore the archive", 5.0),
            ("red fox", "quick lime", 0.0),
        ],
    )
    return tmp_path


def values(results: Any) -> dict[tuple[str, str], float]:
    """(model, task) -> main score of the results in ``run --json``, the whole splits only."""
    return {
        (each["model"]["name"], each["task"]["name"]): each["scores"][each["main_score"]]["value"]
        for each in results["results"]
        if each["subset"] == "all"
    }


# --- help ---------------------------------------------------------------------------------------------------------


@functools.cache
def help_of(words: str) -> Done:
    """What --help prints, which hangs on no folder."""
    return embeval(*words.split(), "--help", cwd=Path(__file__).parent)


def first_sentence(done: Done) -> str:
    """The first line of a help text after the line on usage."""
    lines = [line.strip() for line in done.out.splitlines() if line.strip()]
    assert lines[0].startswith("Usage: embeval")
    return lines[1]


@pytest.mark.parametrize("verb", list(VERBS))
def test_help_of_each_verb_begins_as_the_overview_says(verb: str) -> None:
    """The table that the overview comes from can't fall behind the verbs."""
    done = help_of(verb)
    assert (done.code, done.err) == (0, "")
    assert first_sentence(done) == VERBS[verb]
    assert f"Usage: embeval {verb}" in done.out


@pytest.mark.parametrize("words", [words for words in COMMANDS if " " in words])
def test_help_of_each_verb_below_a_verb(words: str) -> None:
    """It exits 0, is called by its whole name, and begins with a sentence."""
    done = help_of(words)
    assert (done.code, done.err) == (0, "")
    assert f"Usage: embeval {words} " in done.out
    assert first_sentence(done).endswith(".")


def test_the_overview_lists_every_verb(tmp_path: Path) -> None:
    """With the first line of its help, in the order of the table; -h is --help."""
    long, short = help_of(""), embeval("-h", cwd=tmp_path)
    assert (long.code, long.out) == (0, short.out)
    assert re.findall(r"^│ (\w+) +(.+?) +│$", long.out.split("Commands", 1)[1], re.MULTILINE) == list(VERBS.items())


@pytest.mark.parametrize("verb", GROUPS)
def test_the_overview_of_a_group_lists_its_verbs(verb: str) -> None:
    """Each verb below it, with a line on it."""
    done = help_of(verb)
    listed = re.findall(r"^│ (\w+) +(.+?) +│$", done.out.split("Commands", 1)[1], re.MULTILINE)
    assert [f"{verb} {name}" for name, _ in listed] == [words for words in COMMANDS if words.startswith(f"{verb} ")]
    assert all(text for _, text in listed)


def test_every_option_has_a_variable_and_a_help() -> None:
    """EMBEVAL_… for each option of each verb, and never one variable for two different options of one verb."""
    n_options = 0
    for words, found in COMMANDS.items():
        seen: dict[str, str] = {}
        for option in found.params:
            if not isinstance(option, TyperOption):
                continue
            n_options += 1
            assert isinstance(option.envvar, str), (words, option.opts)
            assert re.fullmatch(r"EMBEVAL_[A-Z0-9_]+", option.envvar), (words, option.opts)
            assert option.envvar not in seen, (words, option.opts, seen)
            assert option.name is not None
            seen[option.envvar] = option.name
            assert option.help, (words, option.opts)
    assert n_options > 50


@pytest.mark.parametrize("words", list(COMMANDS))
def test_every_verb_has_json_quiet_and_debug(words: str) -> None:
    """Wherever one is, the three are there, under the same variables."""
    options = {option.opts[0]: option.envvar for option in COMMANDS[words].params if isinstance(option, TyperOption)}
    assert {name: options.get(name) for name in ("--json", "--quiet", "--debug")} == {
        "--json": "EMBEVAL_JSON",
        "--quiet": "EMBEVAL_QUIET",
        "--debug": "EMBEVAL_DEBUG",
    }


def test_version(tmp_path: Path) -> None:
    """That of the installed package, from the command as from ``python -m``."""
    done = embeval("--version", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, f"embeval-toolkit {version('embeval-toolkit')}\n", "")
    script = subprocess.run(
        [str(Path(sys.executable).parent / "embeval"), "--version"],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert script.stdout == done.out


@pytest.mark.parametrize(
    ("words", "close"),
    [(["rnu"], "run"), (["modles"], "models"), (["results", "lst"], "list"), (["leaderboard", "shwo"], "show")],
)
def test_an_unknown_verb_exits_2_and_offers_the_closest(tmp_path: Path, words: list[str], close: str) -> None:
    """At both levels, without a traceback."""
    done = embeval(*words, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert f"No such command '{words[-1]}'" in done.err
    assert f"Did you mean '{close}'?\nSee" in done.err


# --- --json, --quiet, --debug -------------------------------------------------------------------------------------

FINE = [
    "run -m hashing -t demo-docs -t demo-pairs --resamples 100",
    "init --force",
    "leaderboard show",
    "leaderboard show --format markdown",
    "leaderboard show --board mine",
    "leaderboard build mine",
    "leaderboard init other",
    "tasks list",
    "tasks show demo-docs",
    "tasks show STS12",
    "models show hashing",
    "results list",
    "results list --results none",
    "results show demo-docs",
    "results show demo-docs --by all",
    "results why demo-docs",
    "search restore --corpus golden.jsonl -m hashing",
    "cache stats",
    "cache verify",
    "cache prune --to 1GB",
    "schema result",
    "schema config",
    "schema board",
    "doctor",
]
WRONG = [
    ("run -m hashing -t nope", 2),
    ("run -m hashing -t demo-docs -c none.yaml", 2),
    ("run -m hashing -t demo-pairs --resamples 5", 2),
    ("run -m hashing -t demo-pairs --results file", 3),
    ("init", 2),
    ("leaderboard show --metric nope", 2),
    ("leaderboard show --results none", 3),
    ("leaderboard show --board nope", 2),
    ("leaderboard show --board mine --metric ndcg_at_10", 2),
    ("leaderboard build nope", 2),
    ("leaderboard build file", 2),
    ("leaderboard init a/b", 2),
    ("leaderboard init mine", 2),
    ("leaderboard serve nope", 2),
    ("leaderboard serve mine --port 70000", 2),
    ("tasks show nope", 2),
    ("tasks show sts:none.csv", 3),
    ("models show ./none", 3),
    ("results show nope", 3),
    ("results show", 2),
    ("results why nope", 3),
    ("results why demo-pairs", 2),
    ("search restore", 2),
    ("search restore --corpus none", 3),
    ("cache prune", 2),
    ("cache prune --to much", 2),
    # Found by the parser, before any verb runs.
    ("run --resamples many", 2),
    ("run --no-such-option", 2),
    ("schema nope", 2),
    ("leaderboard show --format nope", 2),
    ("results nope", 2),
]


@pytest.mark.parametrize("words", FINE)
def test_json_is_one_value_on_stdout_and_quiet_silences_stderr(project: Project, words: str) -> None:
    """Whatever the verb, nothing else is printed on either."""
    done = project(*words.split(), "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert isinstance(done.json, dict | list)
    assert done.out.endswith(("}\n", "]\n"))


@pytest.mark.parametrize(("words", "code"), WRONG)
def test_json_of_an_error(project: Project, words: str, code: int) -> None:
    """One value that holds type, message and exit code; the message stands on stderr too."""
    done = project(*words.split(), "--json")
    assert done.code == code
    problem = done.json["error"]
    assert problem["exit_code"] == code
    assert problem["type"].endswith(("Error", "NoSuchOption", "BadParameter"))
    assert problem["message"].splitlines()[0] in done.err
    assert "Traceback" not in done.err


def test_json_of_failed_steps(project: Project, pairs: Path) -> None:
    """A run in which a step fails gives the results of the others, the reason of each failure, and exit code 3."""
    done = embeval("run", "-m", "hashing", "-m", "./none", "-t", "sts:pairs.jsonl", "--json", *FEW, cwd=pairs)
    assert done.code == 3
    assert list(values(done.json)) == [("hashing", "pairs")]
    bad, good = done.json["steps"]  # what is bound to fail comes first
    assert (good["model"], good["task"], good["status"], good["error"]) == ("hashing", "pairs", "done", None)
    assert [Path(file).name.split(".")[1] for file in good["files"]] == ["all"]
    assert all((pairs / file).is_file() for file in good["files"])
    assert (bad["model"], bad["status"], bad["files"]) == ("./none", "failed", [])
    assert bad["error"] == {"type": "ModelError", "message": "Model folder './none' does not exist."}


def test_json_of_a_finished_run_is_that_of_the_run(project: Project) -> None:
    """The same results, sub-sets included, whether they were made now or before."""
    again = project("run", "-m", "hashing", "-t", "demo-pairs", *FEW, "--json", "--overwrite")
    before = project("run", "-m", "hashing", "-t", "demo-pairs", *FEW, "--json")
    assert [step["status"] for step in before.json["steps"]] == ["skipped"]
    assert before.json["results"] == again.json["results"]


def test_the_exit_code_does_not_hang_on_json(project: Project) -> None:
    """An empty leaderboard is an error either way."""
    plain, as_json = (project("leaderboard", "show", "--results", "none", *more) for more in ([], ["--json"]))
    assert (plain.code, as_json.code) == (3, 3)


def test_quiet_leaves_the_results(project: Project) -> None:
    """What goes to stdout is the same with and without it; what went to stderr is gone."""
    for words in (["tasks", "list"], ["tasks", "show", "STS12"]):
        loud, quiet = project(*words), project(*words, "-q")
        assert (quiet.out, quiet.err) == (loud.out, "")
        assert loud.err
    run = project("run", "-m", "hashing", "-t", "demo-docs", "-t", "demo-pairs", *FEW, "-q")
    assert (run.code, run.out, run.err) == (0, project.second.out, "")
    written = project("init", "--force", "-q")
    assert (written.code, written.out, written.err) == (0, "", "")


def test_quiet_does_not_silence_errors(project: Project) -> None:
    """A failing command that says nothing would help nobody."""
    done = project("results", "show", "nope", "-q")
    assert (done.code, done.out) == (3, "")
    assert done.err == "Error: No stored result fits. 'embeval results list' shows what there is.\n"


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        ("results show nope", 3, "StoreError"),
        ("run -m hashing -t nope", 2, "UnknownNameError"),
        ("run -m ./none -t demo-pairs", 3, "ModelError"),
    ],
)
def test_debug_shows_the_traceback(project: Project, words: str, code: int, name: str) -> None:
    """Of errors that end the command and of steps that failed; the exit code is the one without --debug."""
    plain, debugged = project(*words.split()), project(*words.split(), "--debug")
    assert "Traceback" not in plain.err
    assert "Traceback (most recent call last)" in debugged.err
    assert f"embeval.errors.{name}" in debugged.err
    assert (plain.code, debugged.code) == (code, code)


# --- run ----------------------------------------------------------------------------------------------------------


def test_results_on_stdout_and_notes_on_stderr(project: Project) -> None:
    """A row per step with its value on stdout; steps, values, times and the folder on stderr."""
    done = project.first
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines() if line.strip()]
    assert rows[0][:5] == ["Model", "Task", "Split", "Metric", "Value"]
    assert [row[:5] for row in rows[2:]] == [
        ["hashing", "demo-docs", "test", "ndcg_at_10", "0.3920"],
        ["hashing", "demo-pairs", "test", "cosine_spearman", "0.3249"],
    ]
    assert "[1/2]" not in done.out
    lines = done.err.splitlines()
    assert lines[0] == "[1/2] demo-docs · hashing"
    assert re.fullmatch(r" +ndcg_at_10 0\.3920 \[0\.\d{4}, 0\.\d{4}\] · \d+\.\d s · (341|0) texts encoded", lines[1])
    assert "[2/2] demo-pairs · hashing" in lines
    assert lines[-1] == "Results: results"


def test_the_second_run_says_finished_before(project: Project) -> None:
    """The same values, in the table and in the notes, and the same files."""
    done = project.second
    assert done.code == 0
    assert done.out.count("finished before") == 2
    assert done.err.count("· finished before") == 2
    for value in ("0.3920", "0.3249"):
        assert value in done.out
    assert "finished before" not in project.first.out


def test_stored_numbers_follow_from_stored_items(project: Project) -> None:
    """Every mean of a ranking metric is the mean of its column; the table shows the stored value."""
    (stored,) = project.results.find(task="demo-docs")
    assert stored.result.items is not None
    table = pq.read_table(stored.path.parent / stored.result.items.file)
    assert table.num_rows == 109  # 6 of them unanswerable: they have no ranking metric
    scores = stored.result.scores
    assert {"ndcg_at_10", "map_at_100", "mrr_at_10", "recall_at_100", "precision_at_1", "success_at_5"} <= set(scores)
    for name, score in scores.items():
        if "answerable" in name or "recall_at_recall" in name or "at_recall_95" in name:
            assert (score.n_items, score.n_unscored) == (109, 0)
            continue
        column = [value for value in table[name].to_pylist() if value is not None]
        assert score.value == pytest.approx(sum(column) / len(column))
        assert (score.n_items, score.n_unscored) == (103, 0)
    assert round(scores["ndcg_at_10"].value or 0.0, 4) == 0.3920


def test_sub_sets_of_the_bundled_pairs(project: Project) -> None:
    """Five sub-sets, mean and wmean beside all; wmean weights by pairs."""
    found = {each.result.subset: each.result.main_value for each in project.results.find(task="demo-pairs")}
    assert set(found) == {"paraphrase", "detail", "negation", "numbers", "unrelated", "mean", "wmean", "all"}
    parts = {name: value for name, value in found.items() if name not in ("mean", "wmean", "all")}
    numbers = {name: (part.value, part.n_items) for name, part in parts.items() if part is not None}
    assert sum(n for _, n in numbers.values()) == 73
    mean = sum(value or 0.0 for value, _ in numbers.values()) / 5
    weighted = sum((value or 0.0) * n for value, n in numbers.values()) / 73
    assert found["mean"] is not None
    assert found["wmean"] is not None
    assert found["mean"].value == pytest.approx(mean)
    assert found["wmean"].value == pytest.approx(weighted)


def test_settings_in_words(pairs: Path) -> None:
    """A model and a task of one's own, with a name, settings and a metric; the value is worked out by hand."""
    done = embeval(
        *("run", "-m", "hashing:x,dim=64", "-t", "sts:pairs.jsonl,name=mine,split=dev", "--json", *FEW), cwd=pairs
    )
    assert done.code == 0
    (result,) = done.json["results"]
    assert (result["model"]["name"], result["model"]["args"]) == ("x", {"dim": 64})
    assert (result["task"]["name"], result["task"]["type"], result["split"]) == ("mine", "sts", "dev")
    assert result["scores"]["cosine_spearman"]["value"] == pytest.approx(0.5)
    (file,) = done.json["steps"][0]["files"]
    assert re.fullmatch(r"results/x/builtin-1/[0-9a-f]{8}/mine/dev\.all\.[0-9a-f]{8}\.json", file)


def test_an_evaluation_file(pairs: Path) -> None:
    """-c from elsewhere: paths start at the file's folder, its settings hold, and options stand over them."""
    (pairs / "embeval.yaml").write_text(
        "models: [hashing, {name: wide, backend: hashing, args: {dim: 512}}]\n"
        "tasks: [{name: mine, type: sts, data: pairs.jsonl}]\n"
        "results: out\n"
        "statistics: {resamples: 100, seed: 3}\n",
        encoding="utf-8",
    )
    elsewhere = pairs / "elsewhere"
    elsewhere.mkdir()
    done = embeval("run", "-c", "../embeval.yaml", "--json", cwd=elsewhere)
    assert done.code == 0
    assert list(values(done.json)) == [("hashing", "mine"), ("wide", "mine")]
    assert {result["statistics"]["seed"] for result in done.json["results"]} == {3}
    assert len(list(ResultStore(pairs / "out").find())) == 2
    assert list(elsewhere.iterdir()) == []

    here = embeval("run", "--seed", "4", "--results", "other", "-m", "hashing,dim=32", "--json", cwd=pairs)
    assert here.code == 0
    (result,) = here.json["results"]
    assert (result["model"]["args"], result["task"]["name"]) == ({"dim": 32}, "mine")
    assert (result["statistics"]["seed"], result["statistics"]["resamples"]) == (4, 100)
    assert len(list(ResultStore(pairs / "other").find())) == 1


def test_variables_instead_of_options(pairs: Path) -> None:
    """Every option of a run by its variable; an option that is given wins."""
    env = {
        "EMBEVAL_MODELS": "hashing hashing:x,dim=64",
        "EMBEVAL_TASKS": "sts:pairs.jsonl",
        "EMBEVAL_RESULTS": "out",
        "EMBEVAL_RESAMPLES": "100",
        "EMBEVAL_SEED": "9",
        "EMBEVAL_BATCH_TOKENS": "11",
        "EMBEVAL_JSON": "1",
        "EMBEVAL_QUIET": "true",
    }
    done = embeval("run", cwd=pairs, env=env)
    assert (done.code, done.err) == (0, "")
    assert list(values(done.json)) == [("hashing", "pairs"), ("x", "pairs")]
    for result in done.json["results"]:
        assert (result["statistics"]["resamples"], result["statistics"]["seed"]) == (100, 9)
        assert result["provenance"]["batch_tokens"] == 11
    assert {path.name for path in (pairs / "out").iterdir()} == {"hashing", "x"}

    again = embeval("run", "-m", "hashing", "--seed", "1", cwd=pairs, env={**env, "EMBEVAL_OVERWRITE": "1"})
    assert [(step["model"], step["status"]) for step in again.json["steps"]] == [("hashing", "done")]
    assert again.json["results"][0]["statistics"]["seed"] == 1


def test_an_evaluation_file_by_variable(pairs: Path) -> None:
    """EMBEVAL_CONFIG names the file."""
    (pairs / "other.yaml").write_text("models: [hashing]\ntasks: [pairs.jsonl]\nstatistics: {resamples: 0}\n", "utf-8")
    done = embeval("run", "--json", cwd=pairs, env={"EMBEVAL_CONFIG": "other.yaml"})
    assert list(values(done.json)) == [("hashing", "pairs")]


def test_init_then_run(tmp_path: Path) -> None:
    """The file that init writes is the template, is not overwritten unasked, and run finds it by itself."""
    done = embeval("init", cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert done.err == "Wrote embeval.yaml. It runs as it is: embeval run\n"
    assert (tmp_path / "embeval.yaml").read_text(encoding="utf-8") == TEMPLATE
    assert [path.name for path in tmp_path.iterdir()] == ["embeval.yaml"]

    # -m takes the place of its models, of which one needs half a minute.
    ran = embeval("run", "-m", "hashing", "--json", *FEW, cwd=tmp_path)
    assert ran.code == 0
    assert {key: round(value, 4) for key, value in values(ran.json).items()} == {
        ("hashing", "demo-docs"): 0.3920,
        ("hashing", "demo-pairs"): 0.3249,
    }

    (tmp_path / "embeval.yaml").write_text("mine", encoding="utf-8")
    refused = embeval("init", cwd=tmp_path)
    assert refused.code == 2
    assert "embeval.yaml is there already" in refused.err
    assert (tmp_path / "embeval.yaml").read_text(encoding="utf-8") == "mine"
    assert embeval("init", "--force", cwd=tmp_path).code == 0
    assert (tmp_path / "embeval.yaml").read_text(encoding="utf-8") == TEMPLATE


def test_run_without_anything_says_what_to_do(tmp_path: Path) -> None:
    """Exit code 2 and a command that works."""
    done = embeval("run", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "embeval init" in done.err
    assert "embeval run -m demo -t demo-docs" in done.err


def test_a_failed_step_beside_a_good_one(pairs: Path) -> None:
    """The table shows both, the reason stands on stderr, and the exit code is 3."""
    (pairs / "bad.jsonl").write_text('{"sentence1": "a", "sentence2": "b"}\n', encoding="utf-8")
    done = embeval("run", "-m", "hashing", "-t", "sts:bad.jsonl", "-t", "sts:pairs.jsonl", *FEW, cwd=pairs)
    assert done.code == 3
    rows = [line.split() for line in done.out.splitlines() if line.strip()]
    assert ["hashing", "bad", "test", "failed"] in rows
    assert any(row[:5] == ["hashing", "pairs", "test", "cosine_spearman", "0.5000"] for row in rows)
    assert "Failed: bad.jsonl, line 1: there is no column 'score'." in done.err


def test_names_are_shown_as_they_are(pairs: Path) -> None:
    """No markup is read out of a name, and a long one is not cut."""
    name = "[bold]x[/bold] <b> | " + "long " * 12 + "end"
    done = embeval("run", "-m", "hashing", "-t", f"sts:pairs.jsonl,name={name}", *FEW, cwd=pairs)
    assert done.code == 0
    assert name in done.err
    shown = embeval("leaderboard", "show", "--json", cwd=pairs)
    assert [column["task"] for column in shown.json["columns"]] == [name]


# --- what is stored -----------------------------------------------------------------------------------------------


def test_results_list(project: Project) -> None:
    """A line for each result; filters take any part of a name, by option or variable."""
    everything = project("results", "list", "--json").json
    assert len(everything) == 9
    assert all((project.folder / each["file"]).is_file() for each in everything)
    some = project("results", "list", "-t", "PAIRS", "-m", "hash", "--json").json
    assert {each["task"]["name"] for each in some} == {"demo-pairs"}
    assert len(some) == 8
    assert project("results", "list", "--json", env={"EMBEVAL_TASK": "docs"}).json == [
        each for each in everything if each["task"]["name"] == "demo-docs"
    ]
    assert project("results", "list", "-t", "docs", "-t", "PAIRS", "--json").json == everything
    (pooled,) = project("results", "list", "-t", "pairs", "--subset", "wmean", "--json").json
    assert pooled["subset"] == "wmean"
    assert len({each["id"] for each in everything}) == 9
    table = project("results", "list").out
    assert all(len(re.findall(rf"^ *{each['id']} ", table, re.MULTILINE)) == 1 for each in everything)
    assert re.search(r"hashing +demo-docs +test +all +ndcg_at_10 +0\.3920 +0\.3345 – 0\.4494 +103 ", table)


def test_nothing_stored_is_said(project: Project) -> None:
    """An empty list is no error."""
    done = project("results", "list", "--results", "none")
    assert (done.code, done.out, done.err) == (0, "", "There are no such results in none.\n")
    assert project("results", "list", "--results", "none", "--json").json == []


def test_results_show(project: Project) -> None:
    """By id, model and task, a part of its path or its file: every metric, counts, protocol, provenance.

    As JSON it is the file's content, with the id and the file.
    """
    (stored,) = project.results.find(task="demo-docs")
    file = stored.path.relative_to(project.folder).as_posix()
    by_part, by_file = project("results", "show", "demo-docs"), project("results", "show", file)
    assert (by_part.code, by_part.err) == (0, "")
    assert by_part.out == by_file.out
    assert project("results", "show", stored.id).out == by_file.out
    assert project("results", "show", "-m", "HASHING", "-t", "demo-docs").out == by_file.out
    shown = [line.split()[0] for line in by_file.out.splitlines() if re.match(r" *[a-z]+(_at_\d+)? +\d\.\d{4} ", line)]
    assert shown[:4] == ["ndcg_at_10", "ndcg_at_1", "ndcg_at_3", "ndcg_at_5"]  # and not _100 before _3
    for part in ("ndcg_at_10", "recall_at_100", "0.3920", "documents", "232", "builtin:1", "doc_id_desc", file):
        assert part in by_part.out
    value = project("results", "show", file, "--json").json
    assert (value.pop("file"), value.pop("id")) == (file, stored.id)
    assert value == json.loads(stored.path.read_bytes())


def test_results_show_of_several(project: Project) -> None:
    """Words that fit several are a usage error; the message names some of them by id and stays short."""
    done = project("results", "show")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: 2 results fit, such as ")
    assert all(
        f"{each.id} (hashing on {each.result.task.name})" in done.err for each in project.results.find(subset="all")
    )
    assert len(done.err.splitlines()) <= 3


def test_results_show_takes_the_whole_split_unless_told_otherwise(project: Project) -> None:
    """A task with sub-sets has one result for everything; the others are asked for by name."""
    whole = project("results", "show", "demo-pairs", "--json").json
    assert whole["subset"] == "all"
    names = sorted({each.result.subset for each in project.results.find(task="demo-pairs")})
    for name in names:
        one = project("results", "show", "demo-pairs", "--subset", name, "--json").json
        assert one["subset"] == name
        assert project("results", "show", one["id"], "--json").json == one


def test_results_show_by_slice(project: Project) -> None:
    """A metric by label, worst first, each the mean of the stored items with that label."""
    (stored,) = project.results.find(task="demo-docs")
    records = project.results.records(stored)
    wanted = sorted(
        (float(np.mean(values)), label, len(values))
        for label, rows in records.rows_by("kind").items()
        for values in [records.columns["recall_at_5"][rows][~records.outside[rows]]]
        if len(values)
    )
    words = ("results", "show", "demo-docs", "--by", "kind", "--metric", "recall_at_5")
    found = [(each["value"], each["label"], each["n_items"]) for each in project(*words, "--json").json["by"]]
    assert [each[1:] for each in found] == [each[1:] for each in wanted]
    assert [each[0] for each in found] == pytest.approx([each[0] for each in wanted])
    table = project(*words).out
    for value, label, n_items in wanted:
        assert re.search(rf"{re.escape(label)} +{n_items} +{value:.4f} ", table)
    assert "≈" in table  # labels with fewer than 50 queries
    by_main = project("results", "show", "demo-docs", "--by", "kind").out
    assert "ndcg_at_10" in by_main


def test_results_show_by_subset(project: Project) -> None:
    """With the values and the intervals of the sub-sets' own results."""
    found = project("results", "show", "demo-pairs", "--by", "subset", "--json").json["by"]
    own = {
        each.result.subset: border.dump(each.result.main_value)
        for each in project.results.find(task="demo-pairs")
        if each.result.subset not in RESERVED_SUBSETS
    }
    assert len(own) > 1
    assert {each.pop("label"): each for each in found} == own


def test_results_show_worst(project: Project) -> None:
    """The items with the lowest values, lowest first, with their labels."""
    (stored,) = project.results.find(task="demo-docs")
    records = project.results.records(stored)
    wanted = sorted(range(len(records)), key=lambda row: (records.columns["ndcg_at_10"][row], row))[:4]
    found = project("results", "show", "demo-docs", "--worst", "4", "--json").json["worst"]
    assert [each["id"] for each in found] == [records.ids[row] for row in wanted]
    assert [each["labels"]["kind"] for each in found] == [records.slices["kind"][row] for row in wanted]
    table = project("results", "show", "demo-docs", "--worst", "4").out
    assert [line.split()[0] for line in table.splitlines() if re.search(r"0\.\d{4}", line)] == [
        records.ids[row] for row in wanted
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("demo-docs --by knid", 2, "Unknown slice 'knid'. Did you mean 'kind'?"),
        ("demo-docs --by kind --metric cosine_spearman", 2, "Unknown metric of this result 'cosine_spearman'"),
        ("demo-pairs --worst 3", 2, "'cosine_spearman' is a value of all items together; single items have none."),
        ("demo-docs --worst 0", 2, "Invalid value for '--worst'"),
        ("-m hashing -t demo-docs --subset de", 3, "No stored result fits."),
    ],
)
def test_results_show_refuses(project: Project, words: str, code: int, said: str) -> None:
    """Slices, metrics and sub-sets that aren't there are named, and nothing is printed."""
    done = project("results", "show", *words.split())
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_a_broken_file_among_the_results(project: Project, tmp_path: Path) -> None:
    """It is named, the others are shown, and the run that wrote it mends it; junk that stays is no obstacle."""
    shutil.copytree(project.folder / "results", tmp_path / "results")
    (path,) = [each.path for each in ResultStore(tmp_path / "results").find(task="demo-pairs", subset="negation")]
    path.write_text("{", encoding="utf-8")
    (path.parent / "junk.json").write_text("{}", encoding="utf-8")
    relative = path.relative_to(tmp_path).as_posix()
    said = f"Left out: {relative}: not valid JSON"
    shown = embeval("leaderboard", "show", cwd=tmp_path)
    assert (shown.code, said in shown.out) == (0, True)
    listed = embeval("results", "list", "--json", cwd=tmp_path)
    assert (listed.code, len(listed.json), said in listed.err) == (0, 8, True)
    assert "Run that evaluation again, or remove the file." in listed.err
    assert embeval("results", "show", "demo-docs", cwd=tmp_path).code == 0
    assert embeval("results", "gc", cwd=tmp_path).code == 0
    again = embeval("run", "-q", "-m", "hashing", "-t", "demo-docs", "-t", "demo-pairs", *FEW, "--json", cwd=tmp_path)
    assert [step["status"] for step in again.json["steps"]] == ["skipped", "rescored"]
    assert len(embeval("results", "list", "--json", cwd=tmp_path).json) == 9


def test_what_to_do_after_a_failure_is_said(project: Project) -> None:
    """Once, at the end, whatever failed."""
    done = project(
        "run", "-m", "hashing", "-t", "STS12", "-t", "demo-docs", "--data", "none", "--results", "other", *FEW
    )
    assert done.code == 3
    assert done.err.splitlines()[-1] == (
        "1 of 2 failed. Mend what is said above and run the same command again: what is finished is not repeated."
    )


def test_results_gc(project: Project, tmp_path: Path) -> None:
    """Records of failures, files of no result and remains of kills go; results, their files and young files stay."""
    shutil.copytree(project.folder / "results", tmp_path / "results")
    before = {path for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert embeval("run", "-q", "-m", "hashing", "-t", "STS12", "--data", "none", cwd=tmp_path).code == 3
    folder = next(path.parent for path in before)
    old = [folder / "0123456789abcdef.items.parquet", folder / ".test.all.json.x.tmp"]
    young = folder / "fedcba9876543210.run.parquet"
    for path in (*old, young):
        path.write_bytes(b"x")
    for path in old:
        os.utime(path, (0, 0))
    would = embeval("results", "gc", "--dry-run", "--json", cwd=tmp_path).json
    assert would == {"removed": [], "found": 3}
    done = embeval("results", "gc", "--json", cwd=tmp_path).json
    gone = {tmp_path / each for each in done["removed"]}
    assert {path.name.split(".", 1)[-1] for path in gone - set(old)} == {"all.error.json"}
    assert set(old) < gone
    assert {path for path in (tmp_path / "results").rglob("*") if path.is_file()} == {*before, young}
    again = embeval("results", "gc", cwd=tmp_path)
    assert (again.code, again.out, again.err) == (0, "", "0 files were removed.\n")


def test_leaderboard_in_three_forms(project: Project) -> None:
    """Table, Markdown and JSON show the same numbers."""
    value = project("leaderboard", "show", "--json").json
    (row,) = value["rows"]
    assert [(column["task"], column["metric"]) for column in value["columns"]] == [
        ("demo-docs", "ndcg_at_10"),
        ("demo-pairs", "cosine_spearman"),
    ]
    cells = [f"{each['value']:.4f} [{each['ci_low']:.4f}, {each['ci_high']:.4f}]" for each in row["values"]]
    assert [cell[:6] for cell in cells] == ["0.3920", "0.3249"]
    assert row["mean"] == pytest.approx(sum(each["value"] for each in row["values"]) / 2)
    assert project("leaderboard", "show", "--format", "markdown").out == (
        "| Model | Mean | demo-docs ndcg_at_10 | demo-pairs cosine_spearman |\n"
        "|---|---:|---:|---:|\n"
        f"| hashing | {row['mean']:.4f} | {cells[0]} | {cells[1]} |\n"
        "\nBrackets hold 95 % intervals.\n"
    )
    table = project("leaderboard", "show").out
    for shown in (f"{row['mean']:.4f}", *(part for cell in cells for part in cell.split(" ", 1))):
        assert shown in table


def test_leaderboard_of_one_metric_or_task(project: Project) -> None:
    """By option or variable; tasks more than once; of one column, the mean would say nothing."""
    value = project("leaderboard", "show", "--metric", "recall_at_100", "--json").json
    assert [column["metric"] for column in value["columns"]] == ["recall_at_100"]
    by_variable = {"EMBEVAL_TASK": "pairs", "EMBEVAL_FORMAT": "markdown"}
    assert project("leaderboard", "show", env=by_variable).out.startswith("| Model | demo-pairs cosine_spearman |")
    both = project("leaderboard", "show", "-t", "demo-pairs", "-t", "demo-docs", "--json").json
    assert both == project("leaderboard", "show", "--json").json
    absent = project("leaderboard", "show", "--metric", "ndcg_at_7")
    assert (absent.code, absent.out) == (3, "")
    assert absent.err == (
        "Error: No stored result in results fits the metric 'ndcg_at_7'. 'embeval results list' shows what there is.\n"
    )


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("-t nope", "the task 'nope'"),
        ("-t nope -t demo-dosc", "the task 'nope' or 'demo-dosc'"),
        ("-t demo-docs --metric cosine_spearman", "the task 'demo-docs' and the metric 'cosine_spearman'"),
    ],
)
def test_leaderboard_of_what_is_not_stored(project: Project, words: str, wanted: str) -> None:
    """Where there are results, but none that fits, the message doesn't say that there are none."""
    done = project("leaderboard", "show", *words.split())
    assert (done.code, done.out) == (3, "")
    assert (
        done.err == f"Error: No stored result in results fits {wanted}. 'embeval results list' shows what there is.\n"
    )
    empty = project("leaderboard", "show", *words.split(), "--results", "none")
    assert empty.err == "Error: There are no results to show in none. 'embeval run' writes them.\n"


@pytest.mark.parametrize("words", ["results list", "results show", "results gc", "leaderboard show", "results show x"])
def test_results_that_are_a_file(project: Project, words: str) -> None:
    """Not a folder without results, but no folder at all."""
    done = project(*words.split(), "--results", "file")
    assert (done.code, done.out, done.err) == (3, "", "Error: file: not a folder.\n")


def test_leaderboard_names_failures(project: Project, tmp_path: Path) -> None:
    """Beside the table, in the Markdown and in the JSON: those of tasks that are a column."""
    shutil.copytree(project.folder / "results", tmp_path / "results")
    assert embeval("run", "-q", "-m", "hashing", "-t", "STS12", "--data", "none", cwd=tmp_path).code == 3
    only_counted = embeval("leaderboard", "show", "--json", cwd=tmp_path).json
    assert (only_counted["failures"], only_counted["hidden_failures"]) == ([], 1)
    other = ("run", "-q", "-m", "hashing,dim=64", "-t", "STS12")
    write_pairs(
        tmp_path / "sets" / "sts" / "STS12" / "test.jsonl", [("a b", "a b", 3.0), ("a b", "a c", 2.0), ("a", "b", 0.0)]
    )
    (tmp_path / "sets" / "sts" / "STS12" / "test.jsonl.gz").write_bytes(
        gzip.compress((tmp_path / "sets" / "sts" / "STS12" / "test.jsonl").read_bytes())
    )
    assert embeval(*other, *FEW, "--data", "sets", cwd=tmp_path).code == 0
    sentence = "hashing on STS12: none/sts/STS12/test.jsonl.gz: no such file."
    assert embeval("leaderboard", "show", "--json", cwd=tmp_path).json["failures"] == [sentence]
    assert f"Failed: {sentence}" in embeval("leaderboard", "show", cwd=tmp_path).err
    assert f"\nFailed: {sentence}\n" in embeval("leaderboard", "show", "--format", "markdown", cwd=tmp_path).out


# --- what there is ------------------------------------------------------------------------------------------------


def test_tasks_list(project: Project) -> None:
    """Task types and the whole catalogue, and whether the data is there; --data looks in a folder."""
    value = project("tasks", "list", "--json").json
    assert set(value["types"]) == set(TASK_TYPES.names())
    names = [entry["name"] for entry in value["catalogue"]]
    assert names == [spec.name for spec in catalog.specs()]
    assert [entry["name"] for entry in value["catalogue"] if entry["data_found"]] == ["demo-docs", "demo-pairs"]
    table = project("tasks", "list").out
    assert all(name in table for name in names)
    (project.folder / "sets" / "retrieval" / "SciFact").mkdir(parents=True, exist_ok=True)
    found = project("tasks", "list", "--json", env={"EMBEVAL_DATA": "sets"}).json["catalogue"]
    assert {entry["name"] for entry in found if entry["data_found"]} == {"demo-docs", "demo-pairs", "SciFact"}


def test_tasks_of_mteb(tmp_path: Path) -> None:
    """Listed under filters, with mteb's own size and licence, and whether the mirror has their data."""
    write_pairs(tmp_path / "copies" / "BIOSSES" / "test.jsonl", [("one", "two", 1.0)])
    env = {"EMBEVAL_MIRROR": "copies", "EMBEVAL_DOMAINS": "medical", "EMBEVAL_TYPES": "sts"}
    listed = embeval("tasks", "list", "--mteb", "--language", "eng", cwd=tmp_path, env=env)
    assert listed.code == 0
    assert re.search(r"^ BIOSSES +STS +eng +100 +not specified +Medical +yes", listed.out, re.MULTILINE)
    shown = embeval("tasks", "show", "mteb:biosses", "--json", cwd=tmp_path).json["tasks"]
    assert [(each["name"], each["items"], each["in_mirror"]) for each in shown] == [("BIOSSES", 100, None)]


def test_run_of_tasks_of_mteb(tmp_path: Path) -> None:
    """What the mirror lacks is a recorded failure and the exit code 3; the rest of the pattern is done."""
    write_pairs(tmp_path / "copies" / "STS13" / "test.jsonl", [("one", "one two", 3.0), ("two", "a", 1), ("b", "c", 0)])
    done = embeval("run", "-m", "hashing", "-t", "mteb:STS1*", "--mirror", "copies", "--json", cwd=tmp_path)
    assert done.code == 3
    assert {step["task"]: step["status"] for step in done.json["steps"]} == {
        f"mteb:STS{year}": "done" if year == 13 else "failed" for year in (12, 13, 14, 15, 16, 17)
    }
    assert [result["task"]["name"] for result in done.json["results"]] == ["mteb:STS13"]
    assert done.err.count("embeval data pull STS1") == 5


@pytest.mark.parametrize("kind", sorted(TASK_TYPES.names()))
def test_tasks_show_of_a_type_says_how_to_evaluate_one(project: Project, kind: str) -> None:
    """Its main score, its options, and the next command; mteb has no one main score."""
    shown = project("tasks", "show", kind)
    assert shown.code == 0
    assert "main_score" not in shown.out
    assert f"embeval run -m MODEL -t {kind}:" in shown.err


def test_tasks_show(project: Project, pairs: Path) -> None:
    """What the data holds where it is there, where it belongs where it is not, and one's own data."""
    value = project("tasks", "show", "demo-docs", "--json").json
    assert value["task"]["name"] == "demo-docs"
    assert {key: value["data"][key] for key in ("documents", "queries", "judgments")} == {
        "documents": 232,
        "queries": 109,
        "judgments": 474,
    }
    missing = project("tasks", "show", "STS12")
    assert missing.code == 0
    assert "DIR/sts/STS12/test.jsonl.gz" in missing.err
    assert project("tasks", "show", "STS12", "--json").json["data"] is None
    own = embeval("tasks", "show", "sts:pairs.jsonl", "--json", cwd=pairs).json
    assert (own["task"]["name"], own["data"]["items"]) == ("pairs", 3)


def test_tasks_show_takes_settings_without_the_data(project: Project) -> None:
    """They are checked and shown, whether or not the data is there."""
    shown = project("tasks", "show", "STSBenchmark,split=dev").out
    assert "sts/stsbenchmark/dev.jsonl.gz" in shown
    for word, said in (
        ("STSBenchmark,split=a/b", "split: must be a plain name"),
        ("SciFact,foo=1", "foo: unknown key"),
    ):
        done = project("tasks", "show", word)
        assert (done.code, done.out) == (2, "")
        assert said in done.err


def test_doctor_knows_which_variables_are_read(project: Project) -> None:
    """Those of any verb; a misspelt one is told as such."""
    env = {"EMBEVAL_SEED": "7", "EMBEVAL_BY": "kind", "EMBEVAL_CACHE_LIMIT": "1GB", "EMBEVAL_NOPE": "1"}
    found = [each["found"] for each in project("doctor", "--json", env=env).json if each["name"] == "environment"]
    assert found[0] == "set and used: EMBEVAL_BM25=false, EMBEVAL_BY=kind, EMBEVAL_CACHE_LIMIT=1GB, EMBEVAL_SEED=7"
    assert found[1].startswith("EMBEVAL_NOPE is set, but nothing reads it.")


def test_tasks_show_explains_every_option(project: Project) -> None:
    """Name, value, a sentence and the choices of each, in the table as in the JSON."""
    options = {each["name"]: each for each in project("tasks", "show", "demo-docs", "--json").json["options"]}
    assert list(options) == [field.name for field in fields(RetrievalOptions)]
    out = project("tasks", "show", "demo-docs").out
    for name, option in options.items():
        assert len(option["text"].split()) >= 4, name
        (row,) = [line for line in out.splitlines() if line.startswith(f" {name} ")]
        assert " ".join(option["text"].split()[:4]) in row
        assert ", ".join(option["choices"]) in row
    assert options["ties"]["choices"] == ["doc_id_desc", "doc_id_asc", "average"]
    assert (options["depth"]["default"], options["depth"]["choices"]) == (1000, [])


def test_tasks_show_as_json_refers_to_nothing_outside(project: Project) -> None:
    """A reference in the options can be followed within the value that was printed."""
    value = project("tasks", "show", "demo-docs", "--json").json
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(value)):
        node = value
        for step in reference.split("/"):
            assert step in node, reference
            node = node[step]


def test_models_show(project: Project) -> None:
    """Dimensions, limit, revision and size of a model, with the settings that were given."""
    value = project("models", "show", "hashing:x,dim=64,max_seq_length=7", "--json").json
    assert {key: value[key] for key in ("dimensions", "max_seq_length", "similarity", "parameters", "device")} == {
        "dimensions": 64,
        "max_seq_length": 7,
        "similarity": "cosine",
        "parameters": 0,
        "device": "cpu",
    }
    assert (value["model"]["name"], value["model"]["revision"]) == ("x", "builtin:1")
    table = project("models", "show", "hashing").out
    assert re.search(r"dimensions +256", table)
    assert value["digest"][:8] not in table


def test_doctor(project: Project) -> None:
    """Each check with its state; exit code 3 as soon as one is an error."""
    value = project("doctor", "--json").json
    assert {check["state"] for check in value} <= {"ok", "note"}
    assert "torch" in {check["name"] for check in value}
    table = project("doctor").out
    assert all(check["name"] in table for check in value)


def test_doctor_finds_that_results_cannot_be_written(project: Project) -> None:
    """A file where the folder should be makes every run fail, so doctor ends with 3."""
    done = project("doctor", "--results", "file/below", "--json")
    assert done.code == 3
    assert [check["name"] for check in done.json if check["state"] == "error"] == ["results folder"]


# --- schemas ------------------------------------------------------------------------------------------------------

KNOWN_WORDS = {
    *("$schema", "$defs", "$ref", "title", "description", "default", "type", "properties", "required", "items"),
    *("additionalProperties", "anyOf", "const", "enum"),
}
TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


def problems(value: Any, schema: Any, whole: Any, where: str = "") -> list[str]:
    """Why a value doesn't fit a JSON Schema of 2020-12; every keyword in use is understood, or the test fails."""
    assert set(schema) <= KNOWN_WORDS, set(schema) - KNOWN_WORDS
    found: list[str] = []
    if "$ref" in schema:
        found += problems(value, whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], whole, where)
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: not one of {schema['enum']}")
    if "anyOf" in schema and all(problems(value, option, whole, where) for option in schema["anyOf"]):
        found.append(f"{where}: fits no option")
    if "type" in schema:
        right = isinstance(value, TYPES[schema["type"]])
        if isinstance(value, bool) and schema["type"] in ("number", "integer"):
            right = False
        if not right:
            return [*found, f"{where}: not {schema['type']}"]
    if isinstance(value, dict):
        found += [f"{where}: {key} is missing" for key in schema.get("required", ()) if key not in value]
        for key, below in value.items():
            if key in schema.get("properties", {}):
                found += problems(below, schema["properties"][key], whole, f"{where}.{key}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{where}: {key} is not allowed")
            elif isinstance(schema.get("additionalProperties"), dict):
                found += problems(below, schema["additionalProperties"], whole, f"{where}.{key}")
    if isinstance(value, list) and "items" in schema:
        for place, below in enumerate(value):
            found += problems(below, schema["items"], whole, f"{where}[{place}]")
    return found


def test_the_schema_of_a_result_fits_every_result(project: Project, tmp_path: Path) -> None:
    """Finished ones and records of failures; a missing, wrong or additional key does not fit."""
    schema = project("schema", "result").json
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    shutil.copytree(project.folder / "results", tmp_path / "results")
    embeval("run", "-q", "-m", "hashing", "-t", "STS12", "--data", "none", cwd=tmp_path)
    files = sorted((tmp_path / "results").rglob("*.json"))
    assert sum(file.name.endswith(".error.json") for file in files) == 1
    assert len(files) == 10
    for file in files:
        assert problems(json.loads(file.read_bytes()), schema, schema) == []

    value = json.loads(files[0].read_bytes())
    assert problems({**value, "extra": 1}, schema, schema) == [": extra is not allowed"]
    assert problems({**value, "status": "fine"}, schema, schema) == [".status: not one of ['ok', 'error']"]
    del value["signature"]
    assert problems(value, schema, schema) == [": signature is missing"]


def test_the_schema_of_a_file_fits_what_init_writes(project: Project) -> None:
    """The template as it is and with its examples brought to life; an unknown key does not fit."""
    schema = project("schema", "config").json
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    living = re.sub(r"^( *)# (?![A-Z])", r"\1", TEMPLATE, flags=re.MULTILINE)
    for text in (TEMPLATE, living):
        assert problems(yaml.safe_load(text), schema, schema) == []
    assert len(yaml.safe_load(living)["models"]) == 5
    value = yaml.safe_load(TEMPLATE)
    assert problems({**value, "modles": []}, schema, schema) == [": modles is not allowed"]
    assert problems({**value, "tasks": [{"type": "sts", "depth": 5}]}, schema, schema) == [".tasks[0]: fits no option"]


# --- completion ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("embeval ", list(VERBS)),
        ("embeval r", ["run", "results"]),
        ("embeval results ", ["list", "show", "import", "export", "why", "tag", "gc"]),
        ("embeval run -t demo", ["demo-docs", "demo-pairs"]),
        ("embeval run -m ", ["demo", "hashing"]),
        (
            "embeval run --task STSB",
            ["STSBenchmark", *(f"STSBenchmarkMultilingualSTS-{language}" for language in ("de", "es", "zh"))],
        ),
        ("embeval run -t m", ["mteb:"]),
        ("embeval tasks show mteb:stsbenchmarkm", ["mteb:stsbenchmarkmultilingualSTS"]),
        ("embeval tasks show SciF", ["SciFact"]),
        ("embeval tasks show scif", ["scifact"]),  # a completion must begin as what was typed does
        ("embeval models show h", ["hashing"]),
        ("embeval leaderboard show --format ", ["table", "markdown"]),
        ("embeval leaderboard ", ["show", "build", "init", "serve"]),
        ("embeval leaderboard build m", ["mine"]),
        ("embeval leaderboard show --board ", ["mine"]),
        ("embeval schema ", ["result", "config", "board"]),
        ("embeval run --re", ["--results", "--resamples"]),
    ],
)
def test_completion(tmp_path: Path, typed: str, expected: list[str]) -> None:
    """Bash is told the verbs, options, names of the catalogue and values that fit what was typed."""
    board = tmp_path / "leaderboards" / "mine" / "board.yaml"
    board.parent.mkdir(parents=True)
    board.touch()
    words = typed.split(" ")
    env = {"_EMBEVAL_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    done = embeval(cwd=tmp_path, env=env)
    assert (done.code, done.err) == (0, "")
    assert done.out.split() == expected
