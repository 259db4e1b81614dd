"""Standard output and error as users have them: closed, full, not UTF-8, or with a reader that has gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.commands import Done, command, embeval, environment
from tests.support.data import write_pairs

NAME = "Größe – 𝄞"
"""Of a task: characters of one, two, three and four bytes."""
RUN = ("run", "-m", "hashing", "-t", f"sts:pairs.jsonl,name={NAME}", "--resamples", "100")
PLAIN_RUN = ("run", "-m", "hashing", "-t", "demo-pairs", "--resamples", "100")
FAILING = ("run", "-m", "./none", "-m", "hashing", "-t", "sts:pairs.jsonl", "--resamples", "100")
FULL = "Error: Standard output can't be written (No space left on device).\n"
NOT_UTF8: Mapping[str, Mapping[str, str]] = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two tasks were evaluated, one under a name that isn't ASCII."""
    made = tmp_path_factory.mktemp("streams")
    write_pairs(made / "pairs.jsonl", [("a b", "a b", 5.0), ("a b", "a c", 3.0), ("a", "b", 0.0)])
    for words in (RUN, PLAIN_RUN):
        done = embeval(*words, cwd=made)
        assert done.code == 0, done.err
    return made


def redirected(where: str, *words: str, cwd: Path) -> Done:
    """What a command comes to in a shell that redirects its streams."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {where}', "sh", *command(*words)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


# --- not UTF-8 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", list(NOT_UTF8))
@pytest.mark.parametrize("words", [PLAIN_RUN, ("tasks", "list"), ("leaderboard", "show"), ("--help",)])
def test_a_stream_that_is_not_utf8(folder: Path, encoding: str, words: tuple[str, ...]) -> None:
    """Something else is printed for what the encoding lacks, and the exit code is as ever."""
    done = subprocess.run(
        command(*words), cwd=folder, env=environment(NOT_UTF8[encoding]), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    known = "öß·" if encoding == "latin-1" else ""
    assert all(character.isascii() or character in known for character in done.stdout.decode("latin-1"))


@pytest.mark.parametrize(
    ("encoding", "name"), [("ascii", "Gr??e - ?"), ("latin-1", "Größe - ?"), ("C", "Gr??e - ?"), ("utf-8", NAME)]
)
def test_stand_ins(folder: Path, encoding: str, name: str) -> None:
    """A dash for a dash; a question mark for a letter."""
    done = subprocess.run(
        command("results", "list"),
        cwd=folder,
        env=environment(NOT_UTF8.get(encoding)),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    table = done.stdout.decode("utf-8" if encoding == "C" else encoding)
    assert name in table
    assert ("0.1049 – 0.5740" if encoding == "utf-8" else "0.1049 - 0.5740") in table


@pytest.mark.parametrize("encoding", list(NOT_UTF8))
def test_json_loses_nothing_where_a_stream_is_not_utf8(folder: Path, encoding: str) -> None:
    """What isn't ASCII is escaped: the value is the one that UTF-8 holds."""
    words = ("results", "list", "--json")
    done = embeval(*words, cwd=folder, env=NOT_UTF8[encoding])
    assert (done.code, done.err) == (0, "")
    assert done.out.isascii()
    assert done.json == embeval(*words, cwd=folder).json
    assert NAME in {each["task"]["name"] for each in done.json}


def test_a_path_that_is_no_text(folder: Path) -> None:
    """In JSON it is escaped, so that the value is UTF-8; in a message its bytes are as they came in."""
    words = ("leaderboard", "show", "--json", "--results", os.fsdecode(b"r\xff"))
    done = subprocess.run(command(*words), cwd=folder, env=environment(), capture_output=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "r\udcff" in json.loads(done.stdout.decode("utf-8"))["error"]["message"]
    assert b"show in r\xff." in done.stderr


# --- closed -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [RUN, ("results", "list"), ("results", "list", "--json"), ("--help",), ("--version",)]
)
def test_stdout_closed(folder: Path, words: tuple[str, ...]) -> None:
    """As if it went to /dev/null."""
    plain, done = redirected(">/dev/null", *words, cwd=folder), redirected(">&-", *words, cwd=folder)
    assert (done.code, done.out, done.err) == (0, "", plain.err)


def test_stderr_closed(folder: Path) -> None:
    """The table is there, and the exit code is that of the run."""
    plain, done = redirected("2>/dev/null", *RUN, cwd=folder), redirected("2>&-", *RUN, cwd=folder)
    assert (done.code, done.out) == (0, plain.out)
    assert "1.0000" in done.out
    assert redirected("2>&-", *FAILING, cwd=folder).code == 3
    assert redirected("<&- >&- 2>&-", *FAILING, "--overwrite", cwd=folder).code == 3


def test_no_file_takes_the_place_of_a_closed_stream(folder: Path, tmp_path: Path) -> None:
    """What is printed doesn't end up in a file that was opened in between."""
    closed = redirected("<&- >&- 2>&-", *RUN, "--results", str(tmp_path), cwd=folder)
    assert closed.code == 0
    found = embeval("results", "list", "--results", str(tmp_path), "--json", cwd=folder)
    assert [each["task"]["name"] for each in found.json] == [NAME]


# --- full ---------------------------------------------------------------------------------------------------------


@needs_full
@pytest.mark.parametrize(
    "words",
    [
        ("results", "list"),
        ("results", "list", "--json"),
        ("leaderboard", "show", "--format", "markdown"),
        ("--help",),
        ("--version",),
        (*RUN, "--quiet"),
    ],
)
def test_stdout_full(folder: Path, words: tuple[str, ...]) -> None:
    """Exit code 3 and one line that says what can't be written, and why."""
    done = redirected(">/dev/full", *words, cwd=folder)
    assert (done.code, done.err) == (3, FULL)


@needs_full
def test_stdout_full_at_the_end(folder: Path) -> None:
    """The same where something was left in a buffer until the process ends."""
    script = (
        "import sys; from embeval.cli import _state, main; _state.out_text = lambda text: sys.stdout.write(text); "
        "sys.argv[1:] = ['results', 'list', '--results', 'none', '--json']; main.main()"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=folder,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (3, FULL)


@needs_full
def test_stderr_full(folder: Path) -> None:
    """Nobody can be told; the table and the exit code are as ever."""
    done = redirected("2>/dev/full", *RUN, cwd=folder)
    assert (done.code, done.out) == (0, redirected("2>/dev/null", *RUN, cwd=folder).out)


# --- a reader that has gone ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("leaderboard", "show"), 0),
        (("tasks", "list", "--quiet"), 0),
        (("results", "list", "--json"), 0),
        (("schema", "result"), 0),
        (("--help",), 0),
        (("run", "--help"), 0),
        (("--version",), 0),
        ((*RUN, "--quiet"), 0),
    ],
)
def test_a_reader_that_has_gone(folder: Path, words: tuple[str, ...], code: int) -> None:
    """``| head`` ends quietly."""
    assert without_reader(words, folder) == (code, "")


def test_a_failed_step_counts_though_the_reader_has_gone(folder: Path) -> None:
    """A pipeline with ``set -o pipefail`` learns of it."""
    code, said = without_reader(FAILING, folder)
    assert code == 3
    assert "Model folder './none' does not exist." in said
    assert "Broken pipe" not in said


def without_reader(words: tuple[str, ...], folder: Path) -> tuple[int, str]:
    """(exit code, stderr) of a command whose stdout nobody reads."""
    process = subprocess.Popen(
        command(*words),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    return process.returncode, errors


# --- a slow reader ------------------------------------------------------------------------------------------------


def test_ctrl_c_while_a_value_is_printed(folder: Path) -> None:
    """No second value follows the part that was printed; the message is on stderr."""
    whole = embeval("results", "list", "--json", cwd=folder).out
    assert len(whole) > 20_000
    process = subprocess.Popen(
        command("results", "list", "--json"),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pipesize=4096,
        bufsize=0,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        begun = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)  # with nobody reading
        said = process.stderr.read().decode()
        begun += process.stdout.read()
    assert process.returncode == 130
    assert said.startswith("Interrupted.")
    assert len(said.splitlines()) == 1
    assert whole.encode().startswith(begun)
    assert len(begun) < 20_000


# --- the system refuses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("doctor",), ("run", "-m", "hashing", "-t", "demo-pairs")])
def test_a_current_folder_that_is_gone(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Exit code 3, one line with the reason and what to do; the traceback with --debug, the line as JSON too."""

    def attempt(*more: str) -> Done:
        gone = tmp_path / "gone"
        gone.mkdir()
        done = subprocess.run(
            ["sh", "-c", 'rmdir "$0" && exec "$@"', str(gone), *command(*words, *more)],
            cwd=gone,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    message = "The current folder: No such file or directory. Change to a folder that is there, then run it again."
    plain = attempt()
    assert (plain.code, plain.out, plain.err) == (3, "", f"Error: {message}\n")
    debugged = attempt("--debug", "--json")
    assert debugged.code == 3
    assert "FileNotFoundError" in debugged.err
    assert debugged.json["error"] == {"type": "EvaluationError", "message": message, "exit_code": 3}


def test_a_path_that_the_system_refuses(tmp_path: Path) -> None:
    """Exit code 3 and the path with the system's reason, not a fault of embeval."""
    name = "x" * 300
    done = embeval("results", "list", "--results", name, cwd=tmp_path)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"Error: {name}: File name too long. ")
    assert len(done.err.splitlines()) == 1
