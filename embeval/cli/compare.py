"""``embeval compare``: a baseline and candidates, and how sure their differences are."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embeval.cli import _state
from embeval.cli._complete import complete_task
from embeval.cli._state import (
    DataOption,
    DebugOption,
    DeviceOption,
    JsonOption,
    MirrorOption,
    QuietOption,
    ResultsOption,
)
from embeval.core.paths import expanded
from embeval.errors import UsageError

if TYPE_CHECKING:
    from embeval.compare.report import CompareReport
    from embeval.core.specs import StatisticsOptions
    from embeval.runner.local import Step

app = typer.Typer(add_completion=False)


class Format(StrEnum):
    """How the report is written."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"


class Correction(StrEnum):
    """How p-values are corrected."""

    HOLM = "holm"
    BH = "bh"
    NONE = "none"


ENDINGS = {
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".json": Format.JSON,
    ".html": Format.HTML,
    ".htm": Format.HTML,
}


@app.command()
def compare(
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="SIDE",
            help="The baseline, then the candidates. Each a model (label or name), a result (id, .json or folder), "
            "tag:NAME, a TREC run (with --golden or --qrels), or 'LABEL*' in quotes: repetitions of one system.",
        ),
    ],
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            "-t",
            envvar="EMBEVAL_TASKS",
            autocompletion=complete_task,
            help="Tasks called so, or with it in the name; a model without a result is run. Repeatable.  (default: all "
            "that both have)",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(envvar="EMBEVAL_METRIC", help="Such as recall_at_100. Repeatable.  (default: each main score)"),
    ] = None,
    all_metrics: Annotated[
        bool, typer.Option("--all-metrics", envvar="EMBEVAL_ALL_METRICS", help="Every metric that both have.")
    ] = False,
    subset: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_SUBSET",
            help="all, mean, wmean or one of the data's own.  (default: all; mean for mteb's tasks with sub-sets)",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(envvar="EMBEVAL_BY", help="Compares by label of this slice, or of all.")
    ] = None,
    min_items: Annotated[
        int, typer.Option(envvar="EMBEVAL_MIN_ITEMS", help="Labels of fewer items are not compared.", min=2)
    ] = 20,
    show: Annotated[
        int, typer.Option(envvar="EMBEVAL_SHOW", help="Largest losses and gains shown of each task.", min=0)
    ] = 3,
    golden: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_GOLDEN",
            help="Golden set (folder or task of the catalogue): what a TREC run is scored against, and where texts "
            "come from.  (default: where the result says)",
        ),
    ] = None,
    qrels: Annotated[
        str | None, typer.Option(envvar="EMBEVAL_QRELS", help="Judgments that TREC runs are scored against.")
    ] = None,
    data: DataOption = None,
    mirror: MirrorOption = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", envvar="EMBEVAL_RUN", help="Runs what is missing of --task.")
    ] = True,
    level: Annotated[
        float | None, typer.Option(envvar="EMBEVAL_LEVEL", help="Coverage of intervals.  (default: 0.95)")
    ] = None,
    resamples: Annotated[
        int | None, typer.Option(envvar="EMBEVAL_RESAMPLES", help="Resamples; 0 for none.  (default: 10000)")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(envvar="EMBEVAL_SEED", help="Seed of the resampling.  (default: 0)", min=0)
    ] = None,
    correction: Annotated[
        Correction, typer.Option(envvar="EMBEVAL_CORRECTION", help="Of p-values, over the report.")
    ] = Correction.HOLM,
    form: Annotated[
        Format | None,
        typer.Option("--format", envvar="EMBEVAL_FORMAT", help="(default: by the ending of --to, else terminal)"),
    ] = None,
    to: Annotated[str | None, typer.Option(envvar="EMBEVAL_TO", help="File to write the report to.")] = None,
    results: ResultsOption = None,
    device: DeviceOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Compares candidates with a baseline: differences, intervals, p-values.

    All items that both sides have are resampled together. Results that did
    not measure the same thing are refused, and the parts that differ named.
    The exit code is 0 whatever the verdict; 'embeval gate' decides.

    Examples: embeval compare minilm minilm-int8  ·  embeval compare tag:prod
    demo -t demo-docs  ·  embeval compare a.run b.run --golden golden/support
    """
    from embeval.workflows import comparing

    form = _form(form, to, json=json)
    request = comparing.CompareRequest(
        sides=tuple(sides),
        results=_state.results_folder(results),
        tasks=tuple(task or ()),
        metrics=tuple(dict.fromkeys(metric or ())),
        all_metrics=all_metrics,
        subset=subset,
        by=by,
        min_items=min_items,
        show=show,
        qrels=qrels,
        **_golden(golden, data),
        mirror=expanded(mirror) if mirror is not None else None,
        statistics=_statistics(level=level, resamples=resamples, seed=seed),
        correction=correction.value,
        run_missing=run,
        runtime=_state.runtime(device=device),
    )
    progress = _state.progress()
    try:
        report = comparing.compare(request, progress, _announce)
    finally:
        progress.finish()
    if to is not None:
        from embeval.store import atomic

        atomic.write(expanded(to), _text(report, form).encode("utf-8"))
        _state.note(f"Wrote {to}.")
    if json:
        _state.out_json(report.to_json())
    elif form is Format.TERMINAL:
        from embeval.cli import _compare

        _compare.show(report)
    elif to is None:
        _state.out_text(_text(report, form))
    else:
        for candidate in report.candidates:
            _state.out(report.sentence(candidate))


def _announce(step: Step) -> None:
    _state.note(f"Not stored, so it is run: {step.model.label} on {step.task.name}")


def _form(form: Format | None, to: str | None, *, json: bool) -> Format:
    if form is None and to is not None:
        form = ENDINGS.get(Path(to).suffix.lower())
        if form is None:
            raise UsageError(f"--to {to}: the ending doesn't say the format. Add --format markdown, json or html.")
    if form is Format.TERMINAL and to is not None:
        raise UsageError("--to takes --format markdown, json or html.")
    return form or (Format.JSON if json else Format.TERMINAL)


def _golden(golden: str | None, data: str | None) -> dict[str, Any]:
    """--data names the folder of the catalogue's data; a golden set that is given there is taken for one."""
    if golden is None and data is not None:
        from embeval.tasks import catalog

        if (expanded(data) / "corpus.jsonl").is_file() or catalog.find(data) is not None:
            return {"golden": data, "data": None}
    return {"golden": golden, "data": expanded(data) if data is not None else None}


def _statistics(**given: Any) -> StatisticsOptions:
    from embeval.core.specs import StatisticsOptions

    try:
        return StatisticsOptions(**{key: value for key, value in given.items() if value is not None})
    except ValueError as error:
        raise UsageError(f"{error}.") from None


def _text(report: CompareReport, form: Format) -> str:
    from embeval.compare import render

    if form is Format.HTML:
        from embeval.compare.html import html

        return html(report)
    return render.json_text(report) if form is Format.JSON else render.markdown(report)
