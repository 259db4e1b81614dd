"""mteb's tasks through embeval, beside mteb itself with its own wrapper around sentence-transformers (batch 32).

Both evaluate all-MiniLM-L6-v2 on the same files, task by task in turns: mteb, ours in float32 with an empty cache, ours
in bfloat16 with an empty cache, and ours once more in float32 with the vectors kept. Seconds hold loading the data,
encoding, scoring and, on our side, intervals and results on disk; models are loaded and libraries imported before, and
the first task was loaded once, so that nobody pays for what happens once in a process. ``suite`` adds up the tasks, and
has one run of all of them in bfloat16 with a compiled model, the seconds of compiling included.
``--only TASK…`` measures some tasks, and writes them to ``mteb_<TASK>.json``; ``--model FOLDER`` another model.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import data_folder, write
from embeval.core.protocols import Task
from embeval.core.specs import Dtype, ModelSpec, Role, RuntimeOptions
from embeval.encoders import loading
from embeval.encoders.locate import locate
from embeval.mteb_bridge import door
from embeval.runner import local
from embeval.store.results import ResultStore
from tests.support.library import library_model, library_scores, library_task
from tests.support.mirror import bound, lay_out, subsets

TASKS = ("STSBenchmark", "STS12", "Banking77Classification", "AmazonCounterfactualClassification", "SciFact")
THREADS = 2
PEER = "mteb"
COMPILED = "bfloat16, compiled, cold"


def main() -> None:
    """Measures and writes the figures."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS), metavar="TASK")
    words.add_argument("--model", default="demo")
    asked = words.parse_args()
    data = data_folder()
    if data is None:
        sys.exit("bench_mteb.py needs the data of these tasks: set EMBEVAL_TEST_DATA.")
    with tempfile.TemporaryDirectory() as folder:
        figures = _measured(asked.model, asked.only, lay_out(data, Path(folder) / "mirror", asked.only), Path(folder))
    write("_".join(["mteb", *(asked.only if asked.only != list(TASKS) else [])]), figures)


def _measured(model: str, tasks: list[str], mirror: Path, folder: Path) -> dict[str, Any]:
    import datasets
    import torch

    torch.set_num_threads(THREADS)
    door.library()
    located = locate(ModelSpec(name=model))
    if located.folder is None:
        sys.exit(f"bench_mteb.py needs a model with files, and {model} has none.")
    library = library_model(located.folder)
    library.encode(["kernels are set up"] * 64)
    loading.load(loading.resolve(ModelSpec(name=model))).encode(["the same here"], role=Role.TEXT)
    _own_cache(folder, "first")
    datasets.config.HF_DATASETS_CACHE = folder / "datasets"  # what mteb makes of the files
    bound(tasks[0], mirror).load()
    library_task(tasks[0], mirror / tasks[0], subsets=subsets(tasks[0])).load_data()
    measured = {name: _task(name, model, library, mirror, folder) for name in tasks}
    suite = _suite(measured)
    suite[COMPILED] = _compiled([bound(name, mirror) for name in tasks], model, folder, suite[PEER]["seconds"])
    return {"model": model, "threads": THREADS, "suite": suite, "tasks": measured}


def _suite(measured: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Seconds of each contender on all tasks together."""
    labels = next(iter(measured.values()))
    seconds = {label: sum(found[label]["seconds"] for found in measured.values()) for label in labels}
    return {
        label: {"seconds": round(total, 2), "times_as_fast_as_mteb": round(seconds[PEER] / total, 2)}
        for label, total in seconds.items()
    }


def _compiled(tasks: list[Task[Any]], model: str, folder: Path, peer: float) -> dict[str, Any]:
    """Seconds of all tasks in one run, in which the model is compiled once, within the first task."""
    _own_cache(folder, "compiled")
    options = local.RunOptions(runtime=RuntimeOptions(num_threads=THREADS, compile=True))
    outcomes = list(
        local.run([ModelSpec(name=model, dtype="bfloat16")], tasks, ResultStore(folder / COMPILED), options)
    )
    seconds = sum(outcome.seconds - _load_s(outcome) for outcome in outcomes)
    return {"seconds": round(seconds, 2), "times_as_fast_as_mteb": round(peer / seconds, 2)}


def _load_s(outcome: local.Outcome) -> float:
    if outcome.error is not None or outcome.result is None or outcome.result.timings is None:
        raise RuntimeError(f"{outcome.step.task.name} failed") from outcome.error
    return outcome.result.timings.load_model_s or 0.0


def _own_cache(folder: Path, name: str) -> None:
    """Vectors and prepared data are kept here from now on: nobody finds what another contender prepared."""
    os.environ["EMBEVAL_CACHE"] = str(folder / f"cache-{name}")
    gc.collect()


def _task(name: str, model: str, library: Any, mirror: Path, folder: Path) -> dict[str, Any]:
    """Seconds and scores of each contender on one task."""
    _own_cache(folder, f"{name}-{PEER}")
    began = time.perf_counter()
    theirs = library_scores(library, library_task(name, mirror / name, subsets=subsets(name)))
    peer = time.perf_counter() - began
    found: dict[str, Any] = {PEER: {"seconds": round(peer, 2), "scores": theirs}}
    contenders: dict[str, Dtype] = {
        "float32, cold": "float32",
        "bfloat16, cold": "bfloat16",
        "float32, warm": "float32",
    }
    for label, dtype in contenders.items():
        _own_cache(folder, f"{name}-{dtype}")
        seconds, result = _ours(bound(name, mirror), ModelSpec(name=model, dtype=dtype), folder / label)
        scores = {subset: result[subset] for subset in theirs}
        found[label] = {
            "seconds": round(seconds, 2),
            "times_as_fast_as_mteb": round(peer / seconds, 2),
            "scores": scores,
            "largest_difference_to_mteb": max(abs(scores[subset] - theirs[subset]) for subset in theirs),
            "phases": result["phases"],
        }
    return found


def _ours(task: Task[Any], model: ModelSpec, results: Path) -> tuple[float, dict[str, Any]]:
    """Seconds without loading the model, and sub-set -> main score."""
    options = local.RunOptions(runtime=RuntimeOptions(num_threads=THREADS))
    began = time.perf_counter()
    (outcome,) = local.run([model], [task], ResultStore(results), options)
    seconds = time.perf_counter() - began
    load_s = _load_s(outcome)
    values = {stored.result.subset: stored.result.main_value for stored in outcome.stored}
    found: dict[str, Any] = {
        "default" if subset == "all" else subset: value.value for subset, value in values.items() if value is not None
    }
    assert outcome.result is not None
    assert outcome.result.timings is not None
    return seconds - load_s, {**found, "phases": dict(outcome.result.timings.phases)}


if __name__ == "__main__":
    main()
