"""How long does the command line take to start, and the demo to run? Bars: 0.6 s for any --help, 90 s for the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.harness import interleaved, median, write

VERBS = ("", "run", "demo", "init", "leaderboard", "tasks", "models", "results", "schema", "doctor")


def command(*words: str) -> None:
    """Runs ``embeval`` in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "embeval", *words],
            cwd=folder,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            check=True,
        )


def main() -> None:
    """Measures and writes the figures."""
    contenders: dict[str, Callable[[], Any]] = {
        f"embeval {verb} --help".replace("  ", " "): partial(command, *verb.split(), "--help") for verb in VERBS
    }
    contenders["python -c pass"] = partial(subprocess.run, [sys.executable, "-c", "pass"], check=True)
    seconds = interleaved(contenders, rounds=5)
    demo = interleaved({"embeval demo": partial(command, "demo")}, rounds=1)
    write(
        "startup",
        {
            "median_seconds": {name: round(median(rounds), 3) for name, rounds in seconds.items()},
            "slowest_help": round(max(median(each) for name, each in seconds.items() if "--help" in name), 3),
            "demo_seconds": round(demo["embeval demo"][0], 1),
        },
    )


if __name__ == "__main__":
    main()
