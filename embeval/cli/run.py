"""``embeval run``: evaluates models on tasks and writes results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embeval.cli import _state
from embeval.cli._complete import complete_model, complete_task
from embeval.cli._state import (
    DataOption,
    DebugOption,
    DeviceOption,
    DomainOption,
    JsonOption,
    LanguageOption,
    MirrorOption,
    QuietOption,
    ResultsOption,
    ThreadsOption,
    TypeOption,
)
from embeval.core.paths import expanded
from embeval.errors import EmbevalError, ExitCode, UsageError

if TYPE_CHECKING:
    from embeval.api import Request
    from embeval.core.result import MetricValue
    from embeval.runner.local import Outcome, Step

app = typer.Typer(add_completion=False)


@app.command()
def run(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            envvar="EMBEVAL_MODELS",
            autocompletion=complete_model,
            help="Hub name, folder, 'demo' or 'hashing', with settings: demo,truncate_dim=128. Repeatable.",
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            "-t",
            envvar="EMBEVAL_TASKS",
            autocompletion=complete_task,
            help="Catalogue name, file or folder, with settings: sts:pairs.csv, golden,split=dev. Repeatable.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            "-c",
            envvar="EMBEVAL_CONFIG",
            help="Evaluation file; -m and -t replace its lists.  (default: embeval.yaml if -m or -t is missing)",
        ),
    ] = None,
    type: TypeOption = None,
    language: LanguageOption = None,
    domain: DomainOption = None,
    data: DataOption = None,
    mirror: MirrorOption = None,
    results: ResultsOption = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", envvar="EMBEVAL_OVERWRITE", help="Runs again what is finished.")
    ] = False,
    precision: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_PRECISION",
            help="fp32, bf16, fp16, int8, or auto: the fastest that gives nearly the vectors of fp32. For models whose "
            "settings say no dtype.",
        ),
    ] = None,
    prompts: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_PROMPTS",
            help="auto, none or swap, or several with commas: each model with its prompts, without, with those of "
            "queries and documents exchanged.  (default: auto)",
        ),
    ] = None,
    bm25: Annotated[
        bool | None,
        typer.Option(
            "--bm25/--no-bm25",
            envvar="EMBEVAL_BM25",
            help="Evaluates BM25 as well on retrieval tasks: what a model has to beat.  (default: --bm25)",
        ),
    ] = None,
    interleave: Annotated[
        bool,
        typer.Option(
            "--interleave",
            envvar="EMBEVAL_INTERLEAVE",
            help="Times all models in turns, so that their latencies can be compared; needs a task with latency.",
        ),
    ] = False,
    device: DeviceOption = None,
    batch_tokens: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_BATCH_TOKENS",
            help="Padded tokens per batch, or auto: measured once on this machine.  (default: auto on a GPU)",
        ),
    ] = None,
    threads: ThreadsOption = None,
    compile: Annotated[
        bool | None,
        typer.Option(
            "--compile", envvar="EMBEVAL_COMPILE", help="Compiles the model first: slow to start, then faster."
        ),
    ] = None,
    cache: Annotated[
        bool | None,
        typer.Option(
            "--cache/--no-cache", envvar="EMBEVAL_USE_CACHE", help="Keeps vectors on this machine and finds them again."
        ),
    ] = None,
    resamples: Annotated[
        int | None,
        typer.Option(envvar="EMBEVAL_RESAMPLES", help="Bootstrap resamples; 0 for no intervals.  (default: 10000)"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(envvar="EMBEVAL_SEED", help="Seed of the resampling.  (default: 0)", min=0)
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", envvar="EMBEVAL_VERIFY", help="Hashes model files again.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Evaluates models on tasks and writes results.

    What is finished is skipped, so the same command goes on after an
    interruption. A failing task is recorded, the others go on, and the exit
    code is 3.

    Examples: embeval run -m demo -t demo-docs  ·  embeval run -c embeval.yaml  ·
    embeval run -m ./my-model -m demo -t sts:pairs/test.jsonl -t golden/support
    """
    from embeval import api

    request = _request(
        models=model or [],
        tasks=task or [],
        config=config,
        data=data,
        mirror=mirror,
        filters={"types": type, "languages": language, "domains": domain},
        results=results,
        runtime={
            "device": device,
            "batch_tokens": _budget(batch_tokens),
            "num_threads": threads,
            "compile": compile,
            "cache": cache,
        },
        statistics={"resamples": resamples, "seed": seed},
        overwrite=overwrite,
        verify=verify,
        bm25=bm25,
        interleave=interleave,
    )
    request = _varied(request, precision=precision, prompts=prompts)
    outcomes: list[Outcome] = []
    progress = _state.progress()
    seconds: list[float] = []
    try:
        for outcome in api.run(request, progress=progress, on_start=lambda step: _announce(step, seconds)):
            if outcome.status == "done":
                seconds.append(outcome.seconds)
            _tell(outcome)
            if outcome.status == "timed":  # in the place of what it was before
                outcomes = [each for each in outcomes if each.step != outcome.step]
            outcomes.append(outcome)
    finally:
        progress.finish()  # also after Ctrl-C: a bar that is left running would be drawn over the message
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if json:
        _state.out_json(_as_json(outcomes))
    else:
        from embeval.cli import _tables

        if len(failed) < len(outcomes):
            _state.out(_tables.outcomes(outcomes, _state.console()))
            done = [outcome.result for outcome in outcomes if outcome.result is not None]
            values = [*(each.main_value for each in done), *_by_field(outcomes, request)]
            for line in _tables.legend((each.main_score or "" for each in done), values):
                _state.out(line)
        _state.note(f"Results: {request.results}")
    if failed:
        ours = all(isinstance(outcome.error, EmbevalError) for outcome in failed)
        advice = (
            "Mend what is said above and run the same command again: what is finished is not repeated."
            if ours
            else "A fault in embeval is not yours to mend: --debug shows its traceback, please report it."
        )
        _state.note(f"{len(failed)} of {len(outcomes)} failed. {advice}")
        raise typer.Exit(ExitCode.CANNOT_EVALUATE if ours else ExitCode.INTERNAL)


def _request(
    *,
    models: list[str],
    tasks: list[str],
    config: str | None,
    data: str | None,
    mirror: str | None,
    filters: dict[str, list[str] | None],
    results: str | None,
    runtime: dict[str, Any],
    statistics: dict[str, Any],
    overwrite: bool,
    verify: bool,
    bm25: bool | None,
    interleave: bool,
) -> Request:
    from dataclasses import replace

    from embeval.api import Request
    from embeval.core.specs import RuntimeOptions, StatisticsOptions
    from embeval.workflows import requests
    from embeval.workflows.config import FILE_NAME, load_config

    data_folder = expanded(data) if data is not None else None
    mirror_folder = expanded(mirror) if mirror is not None else None
    kept = _state.filters(filters)
    loaded = None
    if config is not None or not (models and tasks):
        file = Path(config if config is not None else FILE_NAME)
        if config is None and not file.exists():
            missing = "-m MODEL" if not models else "-t TASK"
            raise UsageError(
                f"Nothing says what to evaluate: give {missing}, or write {FILE_NAME} ('embeval init' does).\n"
                "To see it work: embeval run -m demo -t demo-docs"
            )
        loaded = load_config(file, data=data_folder, mirror=mirror_folder, filters=kept)
    chosen_models = tuple(requests.parse_model(each) for each in models) or (loaded.models if loaded else ())
    chosen_tasks = tuple(
        requests.each_once(
            task
            for each in tasks
            for task in requests.parse_tasks(each, root=Path(), data=data_folder, mirror=mirror_folder, filters=kept)
        )
    )
    if not chosen_tasks and loaded:
        chosen_tasks = loaded.tasks
    requests.refuse_same_names(chosen_tasks)
    if not chosen_models or not chosen_tasks:
        lacking = "models" if not chosen_models else "tasks"
        raise UsageError(f"There are no {lacking} to evaluate. Add them to {config or FILE_NAME}, or give -m and -t.")
    try:
        return Request(
            models=chosen_models,
            tasks=chosen_tasks,
            results=expanded(results) if results else (loaded.results if loaded else Path("results")),
            runtime=replace(loaded.runtime if loaded else RuntimeOptions(), **_given(runtime)),
            statistics=replace(loaded.statistics if loaded else StatisticsOptions(), **_given(statistics)),
            overwrite=overwrite,
            verify=verify,
            bm25=bm25 if bm25 is not None else loaded.bm25 if loaded else True,
            interleave=interleave,
        )
    except ValueError as error:
        raise UsageError(f"{error}.") from None


MAX_DIGITS = 18
"""More are no number of tokens, and from some thousand on, none that Python reads."""


def _budget(given: str | None) -> int | str | None:
    if given is None or given == "auto":
        return given
    if not given.isascii() or not given.isdigit() or len(given) > MAX_DIGITS or int(given) < 1:
        raise UsageError(f"--batch-tokens must be a whole number from 1, or auto, not {given!r}.")
    return int(given)


def _varied(request: Request, *, precision: str | None, prompts: str | None) -> Request:
    """The request with its models in the precision and with the prompts that were asked for."""
    from dataclasses import replace

    from embeval import api

    if prompts is not None:
        request = replace(request, models=api.with_prompts(request.models, prompts))
    if precision is None:
        return request
    if precision == "auto":
        _refuse_tokens(request)
        _state.note("Looking for the fastest precision that gives nearly the vectors of float32 …")
    chosen = api.with_precision(request.models, precision, request.runtime)
    for choice in chosen if precision == "auto" else ():
        _state.note(f"  {choice.sentence}")
    return replace(request, models=tuple(choice.spec for choice in chosen))


def _refuse_tokens(request: Request) -> None:
    """Raises ``UsageError`` for tasks that score tokens, of which nearly the same vectors say nothing."""
    from embeval.core.protocols import OfTokens

    if names := [task.spec.name for task in request.tasks if isinstance(task, OfTokens)]:
        raise UsageError(
            f"--precision auto compares vectors, which says nothing of the log-probabilities of tokens that the task "
            f"{names[0]!r} is of.\nLeave --precision out, or say which one: fp32, bf16, fp16."
        )


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


FORECAST_FROM = 3
"""Steps that have to be done before the time that is left is told."""


def _announce(step: Step, seconds: Sequence[float]) -> None:
    """Says what is next. ``seconds`` are those of the steps that were done, by which the others may go."""
    from embeval.core.figures import duration

    split = step.task.dataset.split
    parts = [step.task.name if split == "test" else f"{step.task.name} ({split})", step.model.label]
    if len(seconds) >= FORECAST_FROM:
        left = sum(seconds) / len(seconds) * (step.total - step.number + 1)
        parts.append(f"at this pace {duration(left)} left")
    _state.note(f"[{step.number}/{step.total}] {' · '.join(parts)}")


def _tell(outcome: Outcome) -> None:
    if outcome.error is not None:
        _state.traceback(outcome.error)
        ours = isinstance(outcome.error, EmbevalError)
        fault = "" if ours else f"a fault in embeval: {type(outcome.error).__name__}: "
        _state.error_line(f"Failed: {fault}{outcome.error}")
        return
    result = outcome.result
    assert result is not None
    if outcome.status == "timed":
        _state.note(f"Timed in turns: {result.task.name} · {result.model.label}")
        return
    done = {"done": f"{outcome.seconds:.1f} s", "skipped": "finished before", "rescored": "from stored items"}
    value = result.main_value
    from embeval.leaderboard.render.cells import cell_text

    encoded = result.timings.texts_encoded if result.timings is not None and outcome.status == "done" else None
    unit = "passes" if "passes" in result.counts else "texts encoded"
    work = f" · {encoded:,} {unit}" if encoded is not None else ""
    _state.note(f"      {result.main_score} {cell_text(value)} · {done[outcome.status]}{work}")
    for warning in result.warnings:
        _state.note(f"      Note: {warning}")


def _by_field(outcomes: Sequence[Outcome], request: Request) -> list[MetricValue]:
    """Prints the main metrics by field of tasks that have fields, and gives their values."""
    from embeval.cli import _tables
    from embeval.store.results import ResultStore
    from embeval.workflows import report

    store = ResultStore(request.results)
    several = [outcome.stored[-1] for outcome in outcomes if len(outcome.stored) > 1]
    found = [(each.result, report.by_field(store, each)) for each in several]
    if any(values for _, values in found):
        _state.out(_tables.fields(found, _state.console()))
        _state.note("By sub-set: embeval results show -m MODEL -t TASK")
    return [each.value for _, values in found for each in values]


def _as_json(outcomes: list[Outcome]) -> Any:
    from embeval.core import border

    return {
        "results": [border.dump(each.result) for outcome in outcomes for each in outcome.stored],
        "steps": [
            {
                "model": outcome.step.model.name,
                "task": outcome.step.task.name,
                "split": outcome.step.task.dataset.split,
                "status": outcome.status,
                "seconds": round(outcome.seconds, 3),
                "files": [str(each.path) for each in outcome.stored],
                "error": None
                if outcome.error is None
                else {"type": type(outcome.error).__name__, "message": str(outcome.error)},
            }
            for outcome in outcomes
        ],
    }
