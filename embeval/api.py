"""The façade: what the command line, notebooks and CI scripts call.

>>> import embeval
>>> results = embeval.evaluate(["demo"], ["demo-docs"])
>>> results[0].scores["ndcg_at_10"].value
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from embeval.core.paths import expanded
from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions, TaskSpec
from embeval.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from embeval.compare.report import CompareReport
    from embeval.core.progress import Progress
    from embeval.core.protocols import Encoder, Task
    from embeval.core.result import Result
    from embeval.core.verdict import GateReport
    from embeval.gates.policy import Policy
    from embeval.leaderboard.board import Board
    from embeval.leaderboard.snapshot import Snapshot
    from embeval.runner.local import Outcome, Step
    from embeval.workflows.precision import Choice


BASELINE = "bm25"
"""The model that costs nothing and is always there."""

S = TypeVar("S", ModelSpec, TaskSpec, RuntimeOptions, StatisticsOptions)


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
    bm25: bool = False
    """Whether to evaluate BM25 as well, on every task that it fits: what a model has to beat."""
    interleave: bool = False
    """Whether to time all models in turns afterwards, so that their times can be compared."""


def run(
    request: Request, *, progress: Progress | None = None, on_start: Callable[[Step], None] | None = None
) -> Iterator[Outcome]:
    """The outcome of each model on each task, as it is reached. Failures are outcomes, not exceptions.

    With ``interleave`` another one comes at the end for each that was timed in turns.
    """
    from embeval.runner import interleaved, local
    from embeval.store.results import ResultStore
    from embeval.workflows import requests

    requests.refuse_same_models(request.models)
    bm25 = requests.parse_model(BASELINE)
    with_baseline = request.bm25 and all(model.backend != BASELINE for model in request.models)
    ranked = [task for task in request.tasks if _ranks(task)] if with_baseline else []
    options = local.RunOptions(
        runtime=request.runtime, statistics=request.statistics, overwrite=request.overwrite, verify=request.verify
    )
    yield from (interleaved.run if request.interleave else local.run)(
        request.models,
        request.tasks,
        ResultStore(request.results),
        options,
        also=[(bm25, ranked)] if ranked else (),
        progress=progress,
        on_start=on_start,
    )


def _ranks(task: Task[Any]) -> bool:
    """Whether a system that ranks documents without vectors fits a task."""
    from embeval.core.protocols import Selective
    from embeval.tasks import TASK_TYPES

    if TASK_TYPES.get(task.spec.type).needs_vectors:
        return False
    return task.ranks() if isinstance(task, Selective) else True


Wanted = str | PathLike[str] | Mapping[str, Any]
"""As on the command line (``"demo,truncate_dim=128"``), a path, or the keys of an entry of embeval.yaml."""


def evaluate(
    models: Wanted | ModelSpec | Sequence[Wanted | ModelSpec],
    tasks: Wanted | TaskSpec | Task[Any] | Sequence[Wanted | TaskSpec | Task[Any]],
    *,
    results: str | Path = "results",
    data: str | Path | None = None,
    mirror: str | Path | None = None,
    runtime: RuntimeOptions | None = None,
    statistics: StatisticsOptions | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Result]:
    """The result of each model on each task, models outside, tasks inside; finished ones are read from ``results``.

    Models and tasks are given as on the command line (``"sts:pairs.csv,columns.score=gold"``), as the keys of an
    entry of embeval.yaml, or as specs; one alone needs no list. ``data`` is the folder with the data of catalogue
    tasks, ``mirror`` that with the data of mteb's. Raises the first error that a step ran into.
    """
    request = Request(
        models=tuple(_model(model) for model in _listed(models)),
        tasks=tuple(_tasks(_listed(tasks), data, mirror)),
        results=_path(results, "results"),
        runtime=_checked(runtime or RuntimeOptions(), RuntimeOptions, "runtime"),
        statistics=_checked(statistics or StatisticsOptions(), StatisticsOptions, "statistics"),
        overwrite=overwrite,
    )
    found = []
    for outcome in run(request, progress=progress):
        if outcome.error is not None:
            raise outcome.error
        assert outcome.result is not None
        found.append(outcome.result)
    return found


def with_prompts(models: Sequence[ModelSpec], modes: str) -> tuple[ModelSpec, ...]:
    """Each model once for each of the modes ``auto``, ``none``, ``swap``, given with commas between them."""
    from embeval.core.specs import Prompting

    wanted = [mode.strip() for mode in modes.split(",")]
    for mode in wanted:
        if mode not in get_args(Prompting):
            known = ", ".join(get_args(Prompting))
            raise ConfigError(f"prompts must be {known}, or several with commas, not {mode!r}.")
    return tuple(replace(model, prompting=mode) for model in models for mode in dict.fromkeys(wanted))  # type: ignore[arg-type]


def with_precision(models: Sequence[ModelSpec], precision: str, runtime: RuntimeOptions | None = None) -> list[Choice]:
    """Each model in fp32, bf16, fp16, int8, or for ``auto`` in the fastest that gives nearly the vectors of float32.

    A model whose spec states a dtype keeps it, and so does one whose backend has no choice.
    """
    from embeval.encoders.cache import open_cache
    from embeval.workflows import precision as workflow
    from embeval.workflows import samples

    options = runtime or RuntimeOptions()
    sample = samples.take(None) if precision == workflow.AUTO else None
    return workflow.applied(models, precision, options, sample, open_cache() if options.cache else None)


def load_encoder(model: Wanted | ModelSpec, *, runtime: RuntimeOptions | None = None) -> Encoder:
    """A model ready to encode, its revision resolved. Raises ``ModelError``.

    Vectors are kept and found again unless ``runtime`` says ``cache=False``; a model of which all is there is loaded
    only when a new text comes.
    """
    from embeval.encoders import loading
    from embeval.encoders.cache import open_cache

    options = _checked(runtime or RuntimeOptions(), RuntimeOptions, "runtime")
    return loading.load(loading.resolve(_model(model)), options, open_cache() if options.cache else None)


def leaderboard(
    results: str | Path = "results",
    *,
    metric: str | None = None,
    task: str | Sequence[str] | None = None,
    older: bool = False,
) -> Board:
    """Stored results as a table of models by tasks; ``metric`` shows that one instead of each main score.

    ``task`` keeps tasks of that name, or with it in their name, or those of ``mteb:BENCHMARK``; ``older`` also shows
    results on data that is not the latest. Files that can't be read are left out and listed in ``broken``.
    """
    from embeval.leaderboard.board import build
    from embeval.store.results import ResultStore

    broken: list[str] = []
    store = ResultStore(_path(results, "results"))
    wanted = [task] if isinstance(task, str) else task
    if wanted is not None and any(each.startswith("mteb:") for each in wanted):
        from embeval.workflows import mteb_entries

        there = {each.result.task.name for each in store.find(broken=[])}
        wanted = [name for each in wanted for name in mteb_entries.filed_under(each, there)]
    found = store.find(task=wanted, broken=broken)
    return replace(build((each.result for each in found), metric=metric, older=older), broken=tuple(broken))


def build_board(board: str | Path, *, write: bool = True) -> Snapshot:
    """A board as ``embeval leaderboard build`` makes it; unless ``write`` its files are left as they are.

    ``board`` is its name below ``leaderboards``, its folder or its board.yaml. Raises ``ConfigError`` for what is wrong
    in that file, with the line, and ``StoreError`` where there is nothing to show.
    """
    from embeval.leaderboard import definition
    from embeval.workflows.boards import building, finding, writing

    found = definition.load(finding.find(str(_path(board, "board"))))
    made = building.snapshot(found)
    if write:
        writing.write(made, found)
    return made


def stale_files(board: str | Path) -> dict[Path, str]:
    """Files of a board that aren't what its results make now, each with what differs; empty: all are fresh.

    Where the results aren't there, the others are held against its ``board.json``.
    """
    from embeval.leaderboard import definition
    from embeval.workflows.boards import finding, writing

    checked = writing.check(definition.load(finding.find(str(_path(board, "board")))))
    return {each.path: each.why for each in checked.stale}


def gate(
    policy: str | PathLike[str] | Mapping[str, Any] | Policy,
    candidates: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    *,
    baseline: str | PathLike[str] | None = None,
    results: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> GateReport:
    """Whether ``candidates`` may be released by a policy; one alone needs no list.

    ``policy`` is a file (an embeval.yaml with ``gate:`` in it, or one of its own), its keys, or a ``Policy``.
    Candidates and ``baseline`` are named as on the command line and default to the policy's; ``results`` is the folder
    of results and ``data`` that of catalogue tasks, for the texts of lost queries. Broken or missing evidence is the
    outcome ``error``, never an exception. Raises ``ConfigError`` and ``UsageError`` for a policy that can't be applied.
    """
    from embeval.gates.policy import Policy, PolicyFile, from_value, load
    from embeval.workflows import gating

    if isinstance(policy, str | PathLike):
        file = load(expanded(policy))
    elif isinstance(policy, Policy):
        file = PolicyFile(Path("policy"), policy)
    else:
        file = PolicyFile(Path("policy"), from_value(_without_paths(policy), "policy"))
    return gating.gate(
        gating.Request(
            policy=file.policy,
            source=str(file.path),
            results=_path(results, "results") if results is not None else file.results or Path("results"),
            candidates=() if candidates is None else tuple(str(each) for each in _listed(candidates)),
            baseline=None if baseline is None else fspath(baseline),
            root=file.path.resolve().parent if isinstance(policy, str | PathLike) else None,
            data=_path(data, "data") if data is not None else file.data,
        )
    )


def compare(
    baseline: str | PathLike[str],
    candidate: str | PathLike[str],
    *more: str | PathLike[str],
    tasks: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    results: str | Path = "results",
    statistics: StatisticsOptions | None = None,
    data: str | Path | None = None,
    mirror: str | Path | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> CompareReport:
    """A baseline and candidates on everything that can be compared, with intervals and corrected p-values.

    A side is a path, an id, ``tag:NAME`` or a model, as for ``embeval compare``. ``options`` are the other fields of
    ``workflows.comparing.CompareRequest``: ``by``, ``golden``, ``subset``, ``correction``, … Raises
    ``NotComparableError`` where nothing can be compared.
    """
    from embeval.workflows import comparing

    named = {"sides", "tasks", "metrics", "results", "statistics", "data", "mirror"}
    known = {each.name for each in fields(comparing.CompareRequest)} - named
    if strange := [name for name in options if name not in known]:
        raise UnknownNameError("option of compare", strange[0], known)
    request = comparing.CompareRequest(
        sides=tuple(_side(each) for each in (baseline, candidate, *more)),
        results=_path(results, "results"),
        tasks=_names(tasks, "tasks"),
        metrics=_names(metrics, "metrics"),
        statistics=_checked(statistics or StatisticsOptions(), StatisticsOptions, "statistics"),
        data=_path(data, "data") if data is not None else None,
        mirror=_path(mirror, "mirror") if mirror is not None else None,
        **options,
    )
    return comparing.compare(request, progress)


def _side(given: Any) -> str:
    if not isinstance(given, str | PathLike) or not isinstance(fspath(given), str):
        raise ConfigError(f"A side of a comparison must be a text or a path, not {given!r}.")
    return fspath(given)


def _names(given: Any, name: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (None,)
    if not all(isinstance(each, str) for each in names):
        raise ConfigError(f"{name} must be names, not {given!r}.")
    return names


def _listed(given: Any) -> list[Any]:
    from embeval.core.protocols import Task

    alone = isinstance(given, str | PathLike | Mapping | ModelSpec | TaskSpec | Task) or not isinstance(given, Iterable)
    return [fspath(each) if isinstance(each, PathLike) else each for each in ([given] if alone else given)]


def _without_paths(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an entry with each ``Path`` as the text that it would be in embeval.yaml."""
    return {
        key: fspath(value)
        if isinstance(value, PathLike)
        else _without_paths(value)
        if isinstance(value, Mapping)
        else value
        for key, value in keys.items()
    }


def _path(given: Any, name: str) -> Path:
    if not isinstance(given, str | PathLike) or not fspath(given):
        raise ConfigError(f"{name} must be the path of a folder, not {given!r}.")
    return expanded(given)


def _checked(value: Any, kind: type[S], name: str) -> S:
    """The value, once its fields are what they should be: dataclasses take anything, and it would show up on disk."""
    from embeval.core import border

    if not isinstance(value, kind):
        raise ConfigError(f"{name} must be {kind.__name__}(…), not {value!r}.")
    try:
        return border.load(kind, _without_paths(asdict(value)))
    except border.BorderError as error:
        raise ConfigError(f"{name}: {error.problems[0]}") from None


def _model(model: Any) -> ModelSpec:
    from embeval.workflows import requests

    if isinstance(model, ModelSpec):
        return _checked(model, ModelSpec, "model")

    if isinstance(model, str | PathLike):
        return requests.parse_model(fspath(model))
    if isinstance(model, Mapping):
        return requests.model_from(_without_paths(model), where="model")
    raise ConfigError(f"A model is a name, keys or a ModelSpec, not {model!r}.")


def _tasks(tasks: Sequence[Any], data: str | Path | None, mirror: str | Path | None) -> list[Task[Any]]:
    from embeval.core.protocols import Task
    from embeval.tasks import TASK_TYPES
    from embeval.workflows import requests

    folder = _path(data, "data") if data is not None else None
    of_mteb = _path(mirror, "mirror") if mirror is not None else None
    bound: list[Task[Any]] = []
    for task in tasks:
        if isinstance(task, str):
            bound += requests.parse_tasks(task, root=Path(), data=folder, mirror=of_mteb)
        elif isinstance(task, Mapping):
            bound += requests.tasks_from(_without_paths(task), root=Path(), data=folder, mirror=of_mteb)
        elif isinstance(task, TaskSpec):
            spec = _checked(task, TaskSpec, "task")
            bound.append(TASK_TYPES.get(spec.type).bind(spec, root=Path()))
        elif isinstance(task, Task):
            bound.append(task)
        else:
            raise ConfigError(f"A task is a name, keys, a TaskSpec or a bound task, not {task!r}.")
    bound = requests.each_once(bound)
    requests.refuse_same_names(bound)
    return bound
