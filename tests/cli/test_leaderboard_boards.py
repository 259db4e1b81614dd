"""``embeval leaderboard`` build, init, serve and show --board: what is printed where, and how it ends."""

from __future__ import annotations

import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

import embeval
from embeval.leaderboard import snapshot
from tests.support.board_files import NDCG, POOR, RECALL, board, three
from tests.support.commands import Done, command, environment, here
from tests.support.stored import put

TEXT = "results: [../../results]\noutputs: [html, json]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with results and a board."""
    three(tmp_path)
    board(tmp_path, TEXT)
    return tmp_path


def run(folder: Path, *words: str) -> Done:
    """What ``embeval leaderboard`` comes to."""
    return here("leaderboard", *words, cwd=folder)


def test_build_and_check(project: Path) -> None:
    """The files on stdout, the rest on stderr; fresh is 0, stale is 1 with a line for each file and what to do."""
    done = run(project, "build")
    assert (done.code, done.out) == (0, "leaderboards/mine/index.html\nleaderboards/mine/board.json\n")
    assert done.err == "mine: 3 models, 2 columns. good is the best (95 % confidence).\n"
    assert run(project, "build", "--check") == Done(0, "leaderboards/mine: fresh.\n", "")

    put(three(project), {NDCG: POOR, RECALL: POOR}, model="org/new", task="docs")
    before = {path: path.read_bytes() for path in (project / "leaderboards" / "mine").iterdir()}
    stale = run(project, "build", "mine", "--check")
    assert stale.code == 1
    assert stale.out.splitlines() == [
        f"leaderboards/mine/{name}: stale: the model new is not there yet." for name in ("index.html", "board.json")
    ]
    assert stale.err == "Build it again: embeval leaderboard build leaderboards/mine\n"
    assert {path: path.read_bytes() for path in (project / "leaderboards" / "mine").iterdir()} == before
    as_json = run(project, "build", "--check", "--json")
    assert (as_json.code, as_json.json["boards"][0]["from_results"]) == (1, True)
    assert [each["why"] for each in as_json.json["boards"][0]["stale"]] == ["the model new is not there yet"] * 2


def test_check_without_the_results(project: Path) -> None:
    """What is checked instead is said; it is enough for an exit code of 0."""
    run(project, "build")
    shutil.rmtree(project / "results")
    done = run(project, "build", "--check")
    assert (done.code, done.out) == (0, "leaderboards/mine: fresh.\n")
    assert "the results aren't here; the pages were only held against board.json" in done.err
    assert run(project, "build", "--check", "--json").json["boards"][0]["from_results"] is False
    refused = run(project, "build")
    assert refused.code == 2
    assert "board.yaml, line 1: results[0]: " in refused.err


def test_several_boards(project: Path) -> None:
    """All are built, and one that can't be doesn't keep the others; the exit code is that of the first problem."""
    board(project, TEXT + "tasks: [dosc]\n", name="broken")
    board(project, TEXT + "tasks: [faq]\n", name="small")
    done = run(project, "build")
    assert done.code == 2
    assert done.out.count("board.json") == 2
    assert "no result of a task 'dosc'. Did you mean 'docs'?" in done.err
    as_json = run(project, "build", "--json")
    assert as_json.code == 2
    assert [each.get("error", {}).get("type") for each in as_json.json["boards"]] == ["ConfigError", None, None]
    assert run(project, "build", "small", "mine").code == 0


def test_init_and_build(project: Path) -> None:
    """The board works as it is written; one that is there is left alone."""
    done = run(project, "init")
    assert done == Done(
        0,
        "",
        "Wrote leaderboards/models/board.yaml. It works as it is: embeval leaderboard build models\n",
    )
    file = project / "leaderboards" / "models" / "board.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "outputs: [html, json]\n", encoding="utf-8")
    built = run(project, "build", "models")
    assert (built.code, built.err) == (0, "models: 3 models, 2 columns. good is the best (95 % confidence).\n")
    assert run(project, "init").code == 2
    assert run(project, "init", "--force", "--json").json == {"file": "leaderboards/models/board.yaml"}


def test_show_a_board(project: Path) -> None:
    """Ranks with intervals and letters; the letters differ where the items tell the models apart."""
    done = run(project, "show", "--board", "mine")
    assert done.code == 0, done.err
    rows = [line.split() for line in done.out.splitlines() if " good " in line or " poor " in line]
    assert [row[-4:] for row in rows] == [
        ["good", "0.8000", "0.8500", "0.7500"],
        ["poor", "0.2000", "0.2000", "0.2000"],
    ]
    assert (rows[0][0], rows[1][0]) == ("1", "3")
    assert rows[0][2] != rows[1][2]  # letters
    made = run(project, "show", "--board", "mine", "--json").json
    assert [model["label"] for model in made["models"]] == ["good", "fair", "poor"]


@pytest.mark.parametrize(
    "words", [("--results", "results"), ("--task", "docs"), ("--metric", NDCG), ("--all",), ("--format", "markdown")]
)
def test_a_board_says_itself_what_it_shows(project: Path, words: tuple[str, ...]) -> None:
    """An option that would choose otherwise is refused, and none is passed over."""
    done = run(project, "show", "--board", "mine", *words)
    assert done.code == 2
    assert f"--board and {words[0]} can't go together" in done.err


def test_what_to_know_of_a_board_is_told(project: Path) -> None:
    """A file that can't be read is left out, and a reader hears of it on stderr, in JSON and from show."""
    file = next((project / "results").rglob("*.json"))
    file.write_text("{", encoding="utf-8")
    told = "Left out: ../../results/"
    assert told in run(project, "build").err
    (made,) = run(project, "build", "--json").json["boards"]
    assert [each.startswith(told) for each in made["remarks"]].count(True) == 1
    assert told in run(project, "show", "--board", "mine").out


def test_thousands_of_failed_runs(project: Path, tmp_path: Path) -> None:
    """The first are named, and how many more there are; --json has all."""
    made = snapshot.Snapshot(title="x", columns=(), models=(), failures=tuple(f"run {n}" for n in range(3000)))
    (tmp_path / "other.json").write_text(snapshot.dumps(made), encoding="utf-8")
    lines = run(project, "show", "--board", "other.json").err.splitlines()
    assert lines[-21:] == [*(f"Failed: run {n}" for n in range(20)), "… and 2980 more, which --json shows."]
    assert len(run(project, "show", "--board", "other.json", "--json").json["failures"]) == 3000


def test_show_a_board_as_it_was_built(project: Path) -> None:
    """Where the results aren't here, and of a board.json; where it was never built, the results are missed."""
    missing = run(project, "show", "--board", "mine")
    assert missing.code == 0
    shutil.rmtree(project / "results")
    assert "results: no such folder" in run(project, "show", "--board", "mine").err
    three(project)
    run(project, "build")
    shutil.rmtree(project / "results")
    done = run(project, "show", "--board", "mine")
    assert (done.code, done.err) == (0, "As it was built: the results aren't here.\n")
    assert done.out == missing.out
    assert run(project, "show", "--board", "leaderboards/mine/board.json").out == missing.out


def test_by_variables(project: Path) -> None:
    """EMBEVAL_BOARD names boards, EMBEVAL_CHECK checks."""
    board(project, TEXT, name="other")
    done = here("leaderboard", "build", cwd=project, env={"EMBEVAL_BOARD": "other mine"})
    assert [line.split("/")[1] for line in done.out.splitlines()] == ["other", "other", "mine", "mine"]
    checked = here("leaderboard", "build", cwd=project, env={"EMBEVAL_BOARD": "mine", "EMBEVAL_CHECK": "1"})
    assert checked.out == "leaderboards/mine: fresh.\n"
    assert here("leaderboard", "show", cwd=project, env={"EMBEVAL_BOARD": "mine"}).out.startswith("mine\n")


def test_from_python(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same through ``embeval.api``."""
    monkeypatch.chdir(project)
    made = embeval.api.build_board("mine", write=False)
    assert not Path("leaderboards/mine/board.json").exists()
    assert embeval.api.stale_files("mine").keys() == {
        Path("leaderboards/mine/index.html"),
        Path("leaderboards/mine/board.json"),
    }
    assert embeval.api.build_board(Path("leaderboards/mine")) == made
    assert snapshot.load(Path("leaderboards/mine/board.json")) == made
    assert embeval.api.stale_files("mine") == {}


@pytest.mark.enable_socket
def test_serve_until_ctrl_c(project: Path) -> None:
    """The address on stdout, then one line and 130; the page is answered in between, and nothing is written."""
    with subprocess.Popen(
        command("leaderboard", "serve", "--port", "0"),
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310  # our own address
                assert b"Leaderboard" in answer.read()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, "")
    built, hint, stopped = err.splitlines()
    assert built.startswith("Built mine: 3 models, 2 columns")
    assert (hint, stopped) == ("Ctrl-C ends it.", "Stopped.")
    assert [path.name for path in (project / "leaderboards" / "mine").iterdir()] == ["board.yaml"]
