"""The façade: what the command line, notebooks and CI scripts call.

>>> import embeval
>>> results = embeval.evaluate(["demo"], ["demo-docs"])
>>> results[0].scores["ndcg_at_10"].value
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions

if TYPE_CHECKING:
    from embeval.core.progress import Progress
    from embeval.core.protocols import Encoder, Task
    from embeval.core.result import Result
    from embeval.leaderboard.board import Board
    from embeval.runner.local import Outcome, Step


@dataclass(frozen=True, kw_only=True)
class Request:
    """An evaluation to be done: what ``embeval.yaml`` and the command line come to."""

    models: tuple[ModelSpec, ...]
    """Models."""
    tasks: tuple[Task[Any], ...]
    """Tasks."""
    results: Path
    """Folder that results are written to."""
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    """How models are run."""
    statistics: StatisticsOptions = field(default_factory=StatisticsOptions)
    """How uncertainty is estimated."""
    overwrite: bool = False
    """Whether to run again what is finished."""
    verify: bool = False
    """Whether to hash model files again."""


def run(
    request: Request, *, progress: Progress | None = None, on_start: Callable[[Step], None] | None = None
) -> Iterator[Outcome]:
    """The outcome of each model on each task, as it is reached. Failures are outcomes, not exceptions."""
    from embeval.runner import local
    from embeval.store.results import ResultStore

    options = local.RunOptions(
        runtime=request.runtime, statistics=request.statistics, overwrite=request.overwrite, verify=request.verify
    )
    yield from local.run(
        request.models, request.tasks, ResultStore(request.results), options, progress=progress, on_start=on_start
    )


def evaluate(
    models: Sequence[str | ModelSpec],
    tasks: Sequence[str | Task[Any]],
    *,
    results: str | Path = "results",
    data: str | Path | None = None,
    runtime: RuntimeOptions | None = None,
    statistics: StatisticsOptions | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Result]:
    """The result of each model on each task, models outside, tasks inside; finished ones are read from ``results``.

    Models and tasks are given as on the command line: ``"demo,truncate_dim=128"``, ``"sts:pairs/test.jsonl"``.
    ``data`` is the folder with the data of catalogue tasks. Raises the first error that a step ran into.
    """
    request = Request(
        models=tuple(_model(model) for model in models),
        tasks=tuple(_tasks(tasks, data)),
        results=Path(results),
        runtime=runtime or RuntimeOptions(),
        statistics=statistics or StatisticsOptions(),
        overwrite=overwrite,
    )
    found = []
    for outcome in run(request, progress=progress):
        if outcome.error is not None:
            raise outcome.error
        assert outcome.result is not None
        found.append(outcome.result)
    return found


def load_encoder(model: str | ModelSpec, *, runtime: RuntimeOptions | None = None) -> Encoder:
    """A model ready to encode, its revision resolved. Raises ``ModelError``."""
    from embeval.encoders import loading

    return loading.load(loading.resolve(_model(model)), runtime)


def leaderboard(results: str | Path = "results", *, metric: str | None = None, task: str | None = None) -> Board:
    """Stored results as a table of models by tasks; ``metric`` shows that one instead of each main score."""
    from embeval.leaderboard.board import build
    from embeval.store.results import ResultStore

    return build((each.result for each in ResultStore(Path(results)).find(task=task)), metric=metric)


def _model(model: str | ModelSpec) -> ModelSpec:
    if isinstance(model, ModelSpec):
        return model
    from embeval.workflows.requests import parse_model

    return parse_model(model)


def _tasks(tasks: Sequence[str | Task[Any]], data: str | Path | None) -> list[Task[Any]]:
    from embeval.workflows import requests

    folder = Path(data) if data is not None else None
    bound = [requests.parse_task(task, root=Path(), data=folder) if isinstance(task, str) else task for task in tasks]
    requests.refuse_same_names(bound)
    return bound
