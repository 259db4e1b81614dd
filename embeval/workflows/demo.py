"""What ``embeval demo`` does: evaluate, show the leaderboard, where the model is weak, and decide on a release."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core import strict_json
from embeval.core.progress import Progress
from embeval.core.protocols import Task
from embeval.data.beir import RetrievalData
from embeval.leaderboard.board import Board, build
from embeval.leaderboard.render.cells import cell_text
from embeval.runner import local
from embeval.runner.local import Outcome
from embeval.store.results import ResultStore
from embeval.workflows import demo_release, report, requests
from embeval.workflows.demo_release import Release

MODELS = ("demo", "hashing")
BASELINE = "bm25"
"""Stands beside them where it can: on the documents."""
TASKS = ("demo-docs", "demo-pairs")
MODEL_WORD = "MiniLM"
"""Enough of the model's name to find its results by."""
METRIC = "ndcg_at_10"
HARDEST = 3
"""Queries shown in full."""


@dataclass(frozen=True)
class Report:
    """What the demo found."""

    board: Board
    """Models by tasks."""
    models: tuple[str, ...]
    """Labels of the models."""
    by_kind: tuple[tuple[str, int, tuple[float | None, ...]], ...]
    """(kind of query, number of queries, nDCG@10 of each model)."""
    hardest: str
    """The queries on which the first model does worst, with what it found instead."""
    release: Release
    """Whether an export may replace the first model."""
    next_steps: str
    """How to go on."""

    def to_json(self) -> strict_json.Json:
        """Plain values."""
        return {
            "leaderboard": self.board.to_json(),
            "by_kind": [
                {"kind": kind, "queries": n, METRIC: dict(zip(self.models, values, strict=True))}
                for kind, n, values in self.by_kind
            ],
            "release": self.release.to_json(),
        }


def run(results: str | None, *, on_step: Callable[[str], None], progress: Progress) -> Report:
    """Evaluates the demo models on the demo tasks. Raises the error of the first step that fails.

    ``results`` keeps the results in that folder; None uses a temporary one.
    """
    if results is not None:
        return _run(Path(results), results, on_step, progress)
    with tempfile.TemporaryDirectory(prefix="embeval-demo-") as folder:
        return _run(Path(folder), None, on_step, progress)


def _run(folder: Path, kept: str | None, on_step: Callable[[str], None], progress: Progress) -> Report:
    store = ResultStore(folder)
    tasks = [requests.parse_task(name, root=Path(), data=None) for name in TASKS]
    models = [requests.parse_model(name) for name in MODELS]
    outcomes = []
    also = [(requests.parse_model(BASELINE), tasks[:1])]
    steps = local.run(models, tasks, store, local.RunOptions(), also=also, progress=progress)
    on_step(f"Evaluating {', '.join(MODELS)} and {BASELINE} on {' and '.join(TASKS)} (they come with the package)")
    for outcome in steps:
        if outcome.error is not None:
            raise outcome.error
        assert outcome.result is not None
        value = cell_text(outcome.result.main_value)
        on_step(f"  {outcome.result.model.label} on {outcome.result.task.name}: {value} ({outcome.seconds:.1f} s)")
        outcomes.append(outcome)
    retrieval = [outcome for outcome in outcomes if outcome.step.task.name == TASKS[0]]
    return Report(
        board=build(outcome.result for outcome in outcomes if outcome.result is not None),
        models=tuple(outcome.result.model.label for outcome in retrieval if outcome.result is not None),
        by_kind=_by_kind(store, retrieval),
        hardest=_hardest(store, retrieval[0], tasks[0]),
        release=demo_release.ask(
            store,
            retrieval[0].stored[-1].result.model,
            TASKS,
            folder,
            keep=kept is not None,
            say=on_step,
            progress=progress,
        ),
        next_steps=_next_steps(kept),
    )


def _by_kind(store: ResultStore, outcomes: list[Outcome]) -> tuple[tuple[str, int, tuple[float | None, ...]], ...]:
    per_model = [
        {each.label: each.value for each in report.by_slice(store, outcome.stored[-1], "kind")} for outcome in outcomes
    ]
    return tuple(
        (kind, value.n_items, tuple(values[kind].value for values in per_model)) for kind, value in per_model[0].items()
    )


def _hardest(store: ResultStore, outcome: Outcome, task: Task[Any]) -> str:
    payload: RetrievalData = task.load()
    stored = outcome.stored[-1]
    ranking = store.run(stored)
    lines = [f"The {HARDEST} hardest queries for {stored.result.model.label}:"]
    for item in report.worst_items(store, stored, HARDEST):
        grades = payload.qrels.judgments[item.id]
        found = [doc for doc, _ in ranking.hits(item.id)]
        wanted = [doc for doc, grade in grades.items() if grade == max(grades.values())]
        places = ", ".join(f"{doc} at rank {found.index(doc) + 1}" for doc in wanted if doc in found)
        lines += [
            f"  {payload.queries[item.id]!r}",
            f"    nDCG {item.value:.2f}: wanted {places}",
            f"    found first {found[0]}",
        ]
    return "\n".join(lines)


def _next_steps(kept: str | None) -> str:
    lines = [
        "Next, with data of your own:",
        "  embeval init                           a commented embeval.yaml, runs as it is",
        "  embeval run -m demo -t path/to/golden  a folder with corpus, queries and qrels",
        "  embeval run -m demo -t sts:pairs.csv   columns sentence1, sentence2 and score",
        "  embeval leaderboard show               all stored results side by side",
        "  embeval compare OLD NEW                what differs, how sure that is, which queries are lost",
        "  embeval gate NEW --baseline OLD        the verdict, from the rules under 'gate' in embeval.yaml",
    ]
    if kept is None:
        lines.append("These results were not kept; embeval demo --results results keeps them.")
    else:
        again, policy = f"--results {kept}", Path(kept, demo_release.POLICY_FILE)
        where = f"-m {MODEL_WORD} -t {TASKS[0]} {again}"
        lines += [
            "What this demo stored:",
            f"  embeval leaderboard show --results {kept}",
            f"  embeval results show {where}",
            f"  embeval results show {where} --by kind",
            f"  embeval gate {demo_release.FOLDER} -b {demo_release.BASELINE} {again} -c {policy}",
            f"  {Path(kept, demo_release.REPORT_FILE)}   its report as a page",
        ]
    return "\n".join(lines)
