"""``embeval data pull``, ``data mirror``, ``data import --as-mteb`` and a run on a mirror, as users meet them."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.support import hub
from tests.support.commands import command, embeval, environment, here
from tests.support.data import write_pairs

PAIRS = [(f"text {number}", f"text {number * number % 101}", number / 25) for number in range(100)]
"""As many as mteb 2.26 says that BIOSSES has."""


@pytest.mark.enable_socket
def test_a_pull_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed while a file is half there: the mirror holds nothing, and the next attempt needs that file only."""
    rows = "".join(json.dumps({"sentence1": a, "sentence2": b, "score": s}) + "\n" for a, b, s in PAIRS).encode()
    with hub.running() as server:
        server.files["mteb/biosses-sts"] = {"a.md": b"first", "test.jsonl": rows}
        server.stalled.add("test.jsonl")
        env = environment({"HF_ENDPOINT": server.url, "HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home")})
        words = ("data", "pull", "BIOSSES", "--to", "mirror")
        process = subprocess.Popen(
            command(*words), cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        until = time.monotonic() + 120
        while set(server.sent) != {"a.md", "test.jsonl"} and time.monotonic() < until and process.poll() is None:
            time.sleep(0.02)
        time.sleep(0.2)
        process.kill()
        process.communicate()
        assert "test.jsonl" in server.sent
        empty = here("data", "mirror", "mirror", "--json", cwd=tmp_path)
        assert (empty.code, empty.json["data_sets"]) == (0, [])
        server.stalled.clear()
        server.sent.clear()
        done = embeval(*words, cwd=tmp_path, env=env)
        assert (done.code, done.out) == (0, f"mteb/biosses-sts: {(len(rows) + 5) / 1000:.1f} kB\n"), done.err
        assert "embeval run -m MODEL -t mteb:BIOSSES --mirror mirror" in done.err
        assert server.sent == ["test.jsonl"]
    run = here("run", "-m", "hashing", "-t", "mteb:BIOSSES", "--mirror", "mirror", "--resamples", "100", cwd=tmp_path)
    assert run.code == 0, run.err
    (file,) = (tmp_path / "results").rglob("test.all.*.json")
    result = json.loads(file.read_text(encoding="utf-8"))
    assert result["provenance"]["extra"]["data"] == f"mirror of mteb/biosses-sts at {hub.COMMIT}"
    listed = here("data", "mirror", "mirror", cwd=tmp_path)
    assert listed.code == 0
    (row,) = [line.split() for line in listed.out.splitlines() if "BIOSSES" in line]
    assert row == ["BIOSSES", "the", "hub", f"{(len(rows) + 5) / 1000:.1f}", "kB", "as", "stored"]


def test_an_import_and_a_run_on_it(tmp_path: Path) -> None:
    """What is said, what the result says, and what a file that was changed comes to."""
    write_pairs(tmp_path / "test.jsonl", PAIRS[:60])
    words = ("data", "import", "test.jsonl", "--as-mteb", "BIOSSES", "--to", "mirror")
    refused = here(*words, cwd=tmp_path)
    assert (refused.code, refused.out) == (3, "")
    assert refused.err.startswith("Error: mteb:BIOSSES: test has 60 rows, and 100 in mteb's statistics.\n")
    done = here(*words, "--anyway", cwd=tmp_path)
    assert (done.code, done.out) == (0, "mirror/BIOSSES: 60 in default/test.\n")
    assert done.err == (
        "Warning: test has 60 rows, and 100 in mteb's statistics.\n"
        "Evaluate on it: embeval run -m MODEL -t mteb:BIOSSES --mirror mirror\n"
    )
    on_it = ("run", "-m", "hashing", "-t", "mteb:BIOSSES", "--mirror", "mirror", "--resamples", "100", "--bm25")
    run = here(*on_it, cwd=tmp_path)
    assert run.code == 0, run.err
    assert "bm25" not in run.out  # nothing is ranked
    assert "The data differs from mteb's: test has 60 rows, and 100 in mteb's statistics." in run.err
    missing = here("run", "-m", "hashing", "-t", "mteb:STS12", "--mirror", "mirror", cwd=tmp_path)
    assert missing.code == 3
    assert "embeval data pull STS12 --to mirror" in missing.err
    (tmp_path / "mirror" / "BIOSSES" / "README.md").write_text("---\n---\n", encoding="utf-8")
    changed = here("data", "mirror", "mirror", cwd=tmp_path)
    assert changed.code == 3
    assert "broken" in changed.out
    assert "README.md was changed since it was stored" in changed.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pull", "STS12"), "Say what to store and where"),
        (("mirror",), "Say which folder"),
        (("import", "a.csv", "b.csv", "--to", "x"), "Several files or folders go with --as-mteb only"),
        (("import", "--as-mteb", "STS12", "--to", "x"), "Say which files"),
        (("import", "a.csv", "--as-mteb", "STS12", "--to", "x", "--limit", "3"), "--limit doesn't go with --as-mteb"),
        (("import", "a.csv", "--as-mteb", "STS12", "--to", "x", "--chunker", "none"), "--chunker goes with"),
        (("import", "a.csv", "--as-mteb", "STS12", "--to", "x", "--columns", "a"), "--columns takes name=column"),
        (("import", "a.csv", "--to", "x", "--anyway"), "--anyway goes with a task of mteb"),
    ],
)
def test_words_that_do_not_go_together(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """A usage error that says what does."""
    (tmp_path / "a.csv").write_text("question,document\na,b\n", encoding="utf-8")
    done = here("data", *words, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("tasks", "list", "--mteb", "--mirror", "nowhere"), 3, "The mirror nowhere: no such folder."),
        (("tasks", "show", "mteb:STS12", "--mirror", "nowhere"), 3, "The mirror nowhere: no such folder."),
        (("tasks", "list", "--type", "STS"), 2, "Add --mteb."),
        (("data", "import", "nowhere.csv", "--as-mteb", "STS12", "--to", "m"), 3, "nowhere.csv: no such file."),
    ],
)
def test_mistakes(words: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    """Told in one line, where a list without any data or with what wasn't asked for would be taken for an answer."""
    done = here(*words, cwd=tmp_path)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("Error: ")
    assert done.err.endswith(f"{said}\n")
    assert done.err.count("\n") == 1


def test_variables_of_other_verbs_are_left_alone(tmp_path: Path) -> None:
    """What is meant for runs is no option of a list of other things."""
    done = here("tasks", "list", cwd=tmp_path, env={"EMBEVAL_TYPES": "STS", "EMBEVAL_MTEB_RESULTS": "published"})
    assert done.code == 0, done.err
