"""How long does a whole gate on ten stored tasks take, and how soon are gate, compare and leaderboard there?

Bars: 2 s for the gate, from the start of the process to its end; 0.8 s for each of the others on two small tasks.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import best, interleaved, write
from embeval import metrics
from embeval.core import provenance
from embeval.core.records import ItemRecords
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.runner import assemble
from embeval.store.results import ResultStore

QUERIES, PAIRS = 300, 1379
CUTOFFS = (1, 3, 5, 10, 20, 100, 1000)
RANKING = [
    f"{name}_at_{k}" for name in ("ndcg", "map", "mrr", "recall", "precision", "success", "judged") for k in CUTOFFS
]
MODELS = ("old", "new")


def main() -> None:
    """Measures and writes the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store_all(folder / "ten", [*(f"retrieval-{n}" for n in range(8)), "sts-0", "sts-1"])
        store_all(folder / "two", ["retrieval-0", "sts-0"])
        ten = policy(folder / "ten.yaml", [*(f"retrieval-{n}" for n in range(8)), "sts-0", "sts-1"])
        two = policy(folder / "two.yaml", ["retrieval-0"])
        commands = {
            "gate, 10 tasks": ["gate", "new", "-b", "old", "-c", str(ten), "--results", str(folder / "ten")],
            "gate, 1 of 2 tasks": ["gate", "new", "-b", "old", "-c", str(two), "--results", str(folder / "two")],
            "compare, 1 of 2 tasks": ["compare", "old", "new", "-t", "retrieval-0", "--results", str(folder / "two")],
            "leaderboard, 2 tasks": ["leaderboard", "show", "--results", str(folder / "two")],
        }
        seconds = interleaved({name: starter(words) for name, words in commands.items()}, rounds=5)
    write(
        "gate",
        {
            "queries": QUERIES,
            "pairs": PAIRS,
            "resamples": 10_000,
            "best_seconds": {name: round(best(rounds), 2) for name, rounds in seconds.items()},
            "seconds": {name: [round(each, 3) for each in rounds] for name, rounds in seconds.items()},
        },
    )


def starter(words: Sequence[str]) -> Callable[[], Any]:
    """What runs a command and waits for it; one that could not decide is a mistake of this script."""

    def run() -> None:
        done = subprocess.run([sys.executable, "-m", "embeval", *words], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1, 4), done.stderr

    return run


def policy(file: Path, tasks: Sequence[str]) -> Path:
    """A file with a rule for each task."""
    rules = [f"  - {{metric: {task}/{main_score(task)}, no_regression: 0.02}}" for task in tasks]
    file.write_text("\n".join(["rules:", *rules, ""]), encoding="utf-8")
    return file


def main_score(task: str) -> str:
    """The metric of its rule."""
    return "cosine_spearman" if task.startswith("sts") else "ndcg_at_10"


def store_all(root: Path, tasks: Sequence[str]) -> None:
    """Results of two models on each task, the second a little worse on some items."""
    store = ResultStore(root)
    for number, task in enumerate(tasks):
        rng = np.random.default_rng(number)
        records = pairs(rng) if task.startswith("sts") else queries(rng)
        names = list(records.columns) if not task.startswith("sts") else ["cosine_spearman", "cosine_pearson"]
        names.sort(key=lambda each: each != main_score(task))
        for model in MODELS:
            evidence = assemble.Evidence(
                model=ModelSpec(name=model, revision=f"builtin:{model}"),
                task=TaskSpec(name=task, type=task.partition("-")[0], dataset=DatasetRef(path=task)),
                protocol={"data": task, "split": "test"},
                metrics=[metrics.get(each) for each in names],
                records=records if model == "old" else worsened(records, rng),
                provenance=provenance.collect(),
            )
            for part in assemble.results(evidence, StatisticsOptions(resamples=0), None):
                store.put(part.result, part.records, part.run)


def queries(rng: np.random.Generator) -> ItemRecords:
    """Records of a retrieval task, with two slices."""
    ids = tuple(f"q{n}" for n in range(QUERIES))
    columns = {name: np.round(rng.beta(1.2, 0.8, QUERIES), 4) for name in RANKING}
    slices = {name: tuple(f"label {n % 4}" for n in rng.permutation(QUERIES)) for name in ("kind", "language")}
    return ItemRecords(unit="query", ids=ids, columns=columns, slices=slices)


def pairs(rng: np.random.Generator) -> ItemRecords:
    """Records of an STS task."""
    gold = np.round(rng.uniform(0, 5, PAIRS) * 5) / 5
    columns = {"gold": gold, "cosine": gold / 5 + rng.normal(0, 0.2, PAIRS)}
    return ItemRecords(unit="pair", ids=tuple(f"p{n}" for n in range(PAIRS)), columns=columns)


def worsened(records: ItemRecords, rng: np.random.Generator) -> ItemRecords:
    """The same with a change on a fifth of the items."""
    changed = rng.random(len(records)) < 0.2
    columns = {
        name: column
        if name == "gold"
        else np.where(changed, np.clip(column + rng.normal(0, 0.1, len(column)), 0, 1), column)
        for name, column in records.columns.items()
    }
    return ItemRecords(unit=records.unit, ids=records.ids, columns=columns, slices=records.slices)


if __name__ == "__main__":
    main()
