"""Runs that are stopped, by Ctrl-C or by force, and go on where they stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from embeval.core import strict_json
from embeval.core.result import without_timings
from embeval.store.results import ResultStore
from tests.support.commands import command, embeval, environment
from tests.support.data import write_beir, write_jsonl

FEW = ("--resamples", "100")
WORDS = [f"word{number}" for number in range(500)]
N_LARGE = 30_000
"""Documents of the large set: some seconds of work."""
KILLS = 6


@dataclass(frozen=True)
class Data:
    """A folder with three tasks."""

    folder: Path

    @property
    def small(self) -> list[str]:
        """Words for two tasks that are quickly done."""
        return ["-t", "sts:pairs.jsonl", "-t", "golden"]


def texts(rng: np.random.Generator, n: int, length: int) -> list[str]:
    """Texts of random words."""
    return [" ".join(WORDS[word] for word in row) for row in rng.integers(0, len(WORDS), size=(n, length)).tolist()]


def write_retrieval(folder: Path, rng: np.random.Generator, n_docs: int, n_queries: int) -> None:
    """A golden set with one relevant document per query."""
    write_beir(
        folder,
        corpus={f"d{number}": text for number, text in enumerate(texts(rng, n_docs, 15))},
        queries={f"q{number}": text for number, text in enumerate(texts(rng, n_queries, 5))},
        qrels={f"q{number}": {f"d{number}": 1} for number in range(n_queries)},
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    """Sentence pairs in four sub-sets, a small golden set and a large one."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    write_jsonl(
        folder / "pairs.jsonl",
        (
            {"sentence1": left, "sentence2": right, "score": score, "subset": f"part{row % 4}"}
            for row, (left, right, score) in enumerate(
                zip(texts(rng, 80, 5), texts(rng, 80, 5), rng.random(80).tolist(), strict=True)
            )
        ),
    )
    write_retrieval(folder / "golden", rng, 200, 20)
    write_retrieval(folder / "large", rng, N_LARGE, 20)
    return Data(folder)


def start(data: Data, results: str, words: Sequence[str], options: Sequence[str] = ()) -> subprocess.Popen[str]:
    """A run of the baseline in the background."""
    return subprocess.Popen(
        [sys.executable, *options, *command("run", "-m", "hashing", *words, *FEW, "--results", results)[1:]],
        cwd=data.folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stop(process: subprocess.Popen[str], after: str, seconds: float) -> tuple[str, str]:
    """(stdout, stderr after the line that ends with ``after``) of a run that gets Ctrl-C that much later."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.rstrip().endswith(after):
            break
    else:
        raise AssertionError(f"the run ended before it said {after!r}")
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return out, err


def check_store(root: Path) -> set[str]:
    """Names of the tasks that are finished; fails unless each result in the store is whole and has its items."""
    store = ResultStore(root)
    finished = set()
    for stored in store.find():
        assert stored.result.status == "ok"
        records = store.records(stored)
        score = stored.result.main_value
        assert score is not None
        assert len(records) == score.n_items + score.n_unscored
        if stored.result.run is not None:
            assert set(store.run(stored).query_ids) == set(records.ids)
        if stored.result.subset == "all":
            finished.add(stored.result.task.name)
    for path in root.rglob("*"):
        if path.is_file():
            hidden = path.name.startswith(".") and path.suffix == ".tmp"
            assert hidden or path.name.endswith((".json", ".items.parquet", ".run.parquet")), path
    return finished


def contents(root: Path) -> dict[str, bytes]:
    """Every file but temporary ones; results without their timings."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix != ".tmp":
            raw = path.read_bytes()
            if path.suffix == ".json":
                raw = strict_json.dumps(without_timings(strict_json.loads(raw))).encode()
            found[path.relative_to(root).as_posix()] = raw
    return found


def test_ctrl_c_in_the_middle_of_a_run(data: Data) -> None:
    """Exit code 130, one line, no half-written file; the same command skips what is finished and does the rest."""
    words = ["-t", "sts:pairs.jsonl", "-t", "large"]
    process = start(data, "ctrl-c", words)
    out, err = stop(process, "[2/2] large · hashing", 0.5)
    assert process.returncode == 130
    assert out == ""
    assert err == "Interrupted. Finished results are stored; the same command goes on where this one stopped.\n"
    results = data.folder / "ctrl-c"
    assert check_store(results) == {"pairs"}
    assert list(results.rglob("*.tmp")) == []
    assert list(results.rglob("*.error.json")) == []

    done = embeval(*("run", "-m", "hashing", *words, *FEW, "--results", "ctrl-c", "--json"), cwd=data.folder)
    assert done.code == 0
    assert [(step["task"], step["status"]) for step in done.json["steps"]] == [("pairs", "skipped"), ("large", "done")]
    assert check_store(results) == {"pairs", "large"}


def test_ctrl_c_with_json(data: Data) -> None:
    """Stdout holds one JSON value then too, with the exit code."""
    process = start(data, "ctrl-c-json", ["-t", "large", "--json"])
    out, err = stop(process, "[1/1] large · hashing", 0.3)
    assert process.returncode == 130
    assert err.startswith("Interrupted.")
    assert json.loads(out)["error"]["exit_code"] == 130


def test_ctrl_c_while_the_run_begins(data: Data) -> None:
    """While libraries are imported: 130 and one line as well, and no results."""
    process = start(data, "ctrl-c-early", ["-t", "large"], options=["-X", "importtime"])
    out, err = stop(process, " embeval.core.protocols", 0.0)
    said = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert process.returncode == 130
    assert out == ""
    assert len(said) == 1, said
    assert said[0].startswith("Interrupted.")
    assert not (data.folder / "ctrl-c-early").exists()


def test_kill_at_random_moments(data: Data) -> None:
    """Ten kills, each at another number of files: the store is whole each time, resuming gives the same bytes."""
    whole = start(data, "whole", data.small)
    whole.communicate(timeout=60)
    assert whole.returncode == 0
    expected = contents(data.folder / "whole")
    assert len(expected) == 7 + 5 + 3  # results and items of pairs; result, items and ranking of golden

    rng = np.random.default_rng()
    last = len(expected) - 1  # when all of the pairs is there, and all but the result of the golden set
    counts = [*sorted(rng.choice(last, size=KILLS - 1, replace=False).tolist()), last]
    finished_before = []
    for number, count in enumerate(counts):
        results = data.folder / f"killed-{number}"
        process = start(data, results.name, data.small)
        while process.poll() is None and sum(path.is_file() for path in results.rglob("*")) < count:
            time.sleep(0.0005)
        time.sleep(float(rng.uniform(0.0, 0.003)))
        process.kill()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, count
        finished = check_store(results)
        finished_before.append(len(finished))

        done = embeval(
            *("run", "-m", "hashing", *data.small, *FEW, "--results", results.name, "--json"),
            cwd=data.folder,
        )
        assert done.code == 0
        assert {step["task"] for step in done.json["steps"] if step["status"] == "skipped"} == finished
        assert check_store(results) == {"pairs", "golden"}
        assert contents(results) == expected, count
    assert finished_before[0] == 0
    assert finished_before[-1] >= 1, finished_before
