"""What the benchmark scripts share: interleaved timing, and results with the machine they were made on."""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from embeval.core import provenance, strict_json
from embeval.core.border import dump

RESULTS = Path(__file__).parent / "results"


def interleaved(contenders: Mapping[str, Callable[[], Any]], *, rounds: int) -> dict[str, list[float]]:
    """Name -> seconds of each round; the contenders take turns, so that drift of the machine hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            gc.collect()
            began = time.perf_counter()
            contender()
            seconds[name].append(time.perf_counter() - began)
    return seconds


def best(seconds: list[float]) -> float:
    """The fastest round: the one least disturbed."""
    return min(seconds)


def median(seconds: list[float]) -> float:
    """The middle round."""
    return statistics.median(seconds)


def data_folder() -> Path | None:
    """Real evaluation data, or None."""
    folder = Path(os.environ.get("EMBEVAL_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data")
    return folder if folder.is_dir() else None


def machine() -> dict[str, Any]:
    """The machine and the versions that figures are made with."""
    found: dict[str, Any] = dump(provenance.collect())
    found.pop("extra")
    return found


def write(name: str, figures: Mapping[str, Any]) -> None:
    """Prints figures and writes them to ``results/<name>.json`` beside the machine's description."""
    RESULTS.mkdir(exist_ok=True)
    content = {
        "benchmark": name,
        "command": " ".join([f"python -m benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]]),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "figures": dict(figures),
    }
    (RESULTS / f"{name}.json").write_text(strict_json.dumps(content), encoding="utf-8")
    print(strict_json.dumps(dict(figures)), end="")
