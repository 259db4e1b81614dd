"""How long does a folder of 1,000 models on 60 tasks take: to be read first, to be searched, and to become a board?

Bars: 1 s for a search, 10 s and 1 GiB for the board, with a catalogue of the folder. Results are made up, 5 kB each,
without items. Every figure is from a process of its own: seconds from the call to its end and of CPU, start and
imports left out, and its largest resident memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import write
from embeval.core import provenance
from embeval.store.results import ResultStore
from tests.support import boards

MODELS, TASKS = 1000, 60
ROUNDS = 3


def main() -> None:
    """Measures and writes the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--step", choices=STEPS, help="one measurement in this process")
    arguments.add_argument("--folder", type=Path)
    given = arguments.parse_args()
    if given.step:
        print(json.dumps(measured(STEPS[given.step], given.folder)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        boards.synthetic_store(folder / "results", MODELS, TASKS)
        (folder / "board.yaml").write_text("outputs: [html, json]\n", encoding="utf-8")
        time.sleep(3)  # files younger than that are read again
        figures = {"read first": [measured_apart("search", folder)]}
        for step in ("search", "search_model", "read_all", "board"):
            figures[step] = [measured_apart(step, folder) for _ in range(ROUNDS)]
        sizes = {path.name: path.stat().st_size for path in (folder / "results" / ".catalogue.npz",)}
    write(
        "leaderboard",
        {
            "models": MODELS,
            "tasks": TASKS,
            "catalogue_mib": round(sizes[".catalogue.npz"] / 2**20, 1),
            "best_seconds": {name: min(each["seconds"] for each in rounds) for name, rounds in figures.items()},
            "best_cpu_seconds": {name: min(each["cpu_seconds"] for each in rounds) for name, rounds in figures.items()},
            "peak_mib": {name: max(each["peak_mib"] for each in rounds) for name, rounds in figures.items()},
            "rounds": figures,
        },
    )


def measured_apart(step: str, folder: Path) -> dict[str, float]:
    """A measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_leaderboard", "--step", step, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measured(step: Callable[[Path], Any], folder: Path) -> dict[str, float]:
    """What one call takes."""
    began, cpu_began = time.perf_counter(), time.process_time()
    step(folder)
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(time.process_time() - cpu_began, 2),
        "peak_mib": provenance.peak_rss_mib(),
    }


def search_task(folder: Path) -> None:
    """The results of one task."""
    assert len(list(ResultStore(folder / "results").find(task="Task07"))) == MODELS


def search_model(folder: Path) -> None:
    """Those of one model."""
    assert len(list(ResultStore(folder / "results").find(model="org/model-0007"))) == TASKS


def read_all(folder: Path) -> None:
    """All of them."""
    assert len(list(ResultStore(folder / "results").find())) == MODELS * TASKS


def build_board(folder: Path) -> None:
    """The board and its files."""
    from embeval.leaderboard import definition
    from embeval.workflows.boards import building, writing

    board = definition.load(folder / "board.yaml")
    made = building.snapshot(board)
    assert len(made.models) == MODELS
    writing.write(made, board)


STEPS: dict[str, Callable[[Path], Any]] = {
    "search": search_task,
    "search_model": search_model,
    "read_all": read_all,
    "board": build_board,
}

if __name__ == "__main__":
    main()
