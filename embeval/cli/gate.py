"""``embeval gate``: whether a model may be released, by a policy."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embeval.cli import _state
from embeval.cli._state import DataOption, DebugOption, JsonOption, QuietOption, ResultsOption
from embeval.core.paths import expanded
from embeval.errors import ConfigError, EvaluationError, UsageError

if TYPE_CHECKING:
    from embeval.core.verdict import GateReport
    from embeval.workflows.gating import Request

app = typer.Typer(add_completion=False)

SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable with the file that GitHub shows below a job."""


class Format(StrEnum):
    """How the report is written."""

    TERMINAL = "terminal"
    JSON = "json"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    HTML = "html"


class OnInconclusive(StrEnum):
    """What becomes of a rule with too little evidence."""

    FAIL = "fail"
    PASS = "pass"  # noqa: S105  # no password


def _file(name: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        f"--{name}", envvar=f"EMBEVAL_{name.replace('-', '_').upper()}", help=f"Also writes the report there as {what}."
    )
    return option


@app.command()
def gate(
    context: typer.Context,
    candidates: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CANDIDATE",
            help="What is to be released: a model, tag:NAME, an id, or a path of results.  (default: the policy's)",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-c",
            envvar="EMBEVAL_POLICY",
            help="File with the rules: an embeval.yaml with 'gate:' in it, or one of its own.  (default: embeval.yaml)",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", "-b", envvar="EMBEVAL_BASELINE", help="What it is held against, named likewise."),
    ] = None,
    results: ResultsOption = None,
    data: DataOption = None,
    on_inconclusive: Annotated[
        OnInconclusive | None,
        typer.Option(envvar="EMBEVAL_ON_INCONCLUSIVE", help="What becomes of too little evidence.  (default: fail)"),
    ] = None,
    format: Annotated[
        Format, typer.Option(envvar="EMBEVAL_FORMAT", help="terminal, json, junit, markdown or html.")
    ] = Format.TERMINAL,
    to: Annotated[
        str, typer.Option(envvar="EMBEVAL_TO", help="File that the report is written to; - for stdout.")
    ] = "-",
    json_file: Annotated[str | None, _file("json-file", "JSON")] = None,
    junit: Annotated[str | None, _file("junit", "JUnit XML")] = None,
    markdown: Annotated[str | None, _file("markdown", "Markdown")] = None,
    html: Annotated[str | None, _file("html", "a page")] = None,
    github_summary: Annotated[
        bool,
        typer.Option(
            "--github-summary",
            envvar="EMBEVAL_GITHUB_SUMMARY",
            help=f"Adds the Markdown to the file that ${SUMMARY} names, where it names one.",
        ),
    ] = False,
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test",
            envvar="EMBEVAL_SELF_TEST",
            help="Decides nothing: spoils the candidate's results in known ways, and says what the policy lets pass.",
        ),
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Decides by a policy whether a model may be released.

    Everything is read from stored results; nothing is run. Those of a baseline are compared item by item.
    Ends with 0 for pass, 1 for fail, 4 for inconclusive, 3 for missing or broken evidence, 2 for a wrong policy.

    Examples: embeval gate my-new-model --baseline tag:prod  ·  embeval gate a b c --policy gate.yaml --junit gate.xml
    """
    if json and format is not Format.TERMINAL:
        raise UsageError("--json is --format json. Say one of them.")
    chosen = Format.JSON if json else format
    if chosen is Format.TERMINAL and to != "-":
        raise UsageError("--to goes with --format json, junit, markdown or html.")
    request = _request(context, policy, candidates or [], baseline, results, data, on_inconclusive)
    if self_test:
        from embeval.cli import _self_test

        _refuse_reports(context)
        raise typer.Exit(_self_test.shown(request))
    files = {Format.JSON: json_file, Format.JUNIT: junit, Format.MARKDOWN: markdown, Format.HTML: html}
    _refuse_same([file for file in (*files.values(), to) if file not in (None, "-")])
    report = _decided(request)
    for kind, file in reversed(files.items()):  # JSON last: who reads a verdict there finds one that ended well
        if file is not None:
            _write(_rendered(report, kind), file)
    if github_summary:
        _add_to_summary(_rendered(report, Format.MARKDOWN))
    if chosen is Format.TERMINAL:
        from embeval.cli import _gate

        _gate.show(report)
    elif to == "-":
        _state.settings.json_begun = True
        _state.out_text(_rendered(report, chosen))
    else:
        _write(_rendered(report, chosen), to)
    raise typer.Exit(report.exit_code)


def _request(
    context: typer.Context,
    policy: str | None,
    candidates: list[str],
    baseline: str | None,
    results: str | None,
    data: str | None,
    on_inconclusive: OnInconclusive | None,
) -> Request:
    """What the policy and the command line come to. Raises ``UsageError``."""
    from dataclasses import replace

    from embeval.gates import policy as policies
    from embeval.workflows.gating import Request

    file = policies.load(_policy_file(policy))
    chosen = file.policy
    if on_inconclusive is not None:
        chosen = replace(chosen, on_inconclusive="pass" if on_inconclusive is OnInconclusive.PASS else "fail")
    folder = expanded(results) if results is not None else file.results or Path("results")
    return Request(
        policy=chosen,
        source=str(file.path),
        results=folder,
        candidates=tuple(candidates),
        baseline=baseline,
        root=file.path.resolve().parent,
        data=expanded(data) if data is not None else file.data,
        warnings=tuple(_from_elsewhere(context, file.policy, chosen)),
    )


def _refuse_same(files: list[str | None]) -> None:
    """Raises ``UsageError`` where two reports would be written to one file."""
    places = [expanded(file).resolve() for file in files if file is not None]
    if double := next((place for place in places if places.count(place) > 1), None):
        raise UsageError(f"Two reports can't be written to one file: {double}.")


def _refuse_reports(context: typer.Context) -> None:
    """Raises ``UsageError`` for options that go with a report."""
    for name in ("format", "to", "json_file", "junit", "markdown", "html", "github_summary"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(
                f"--{name.replace('_', '-')} goes with a report, which --self-test has none of; see --json."
            )


def _policy_file(given: str | None) -> Path:
    if given is not None:
        return expanded(given)
    file = Path("embeval.yaml")
    if not file.exists():
        raise ConfigError("There is no policy: no embeval.yaml here. Name a file with --policy; README shows one.")
    return file


def _from_elsewhere(context: typer.Context, written: object, chosen: object) -> list[str]:
    """What a reader should know that the policy does not say: variables of the environment, and a laxer option."""
    found = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "ENVIRONMENT" and parameter.name not in ("quiet", "debug"):
            variable = parameter.envvar if isinstance(parameter.envvar, str) else (parameter.envvar or [""])[0]
            found.append(
                f"{variable} is set in the environment, and decides --{(parameter.name or '').replace('_', '-')}."
            )
    if written != chosen:
        found.append("on_inconclusive was set on the command line or in the environment, not by the policy.")
    return found


def _decided(request: Request) -> GateReport:
    """The report; whatever stops it is one with the outcome error."""
    from embeval.workflows import gating

    try:
        _state.results_folder(str(request.results))
        return gating.gate(request)
    except EvaluationError as error:
        _state.traceback(error)
        return gating.failed(request, str(error))


def _rendered(report: GateReport, kind: Format) -> str:
    if kind is Format.JSON:
        from embeval.gates.render.json import json_text

        return json_text(report)
    if kind is Format.JUNIT:
        from embeval.gates.render.junit import junit

        return junit(report)
    if kind is Format.HTML:
        from embeval.gates.render.html import html

        return html(report)
    from embeval.gates.render.markdown import markdown

    return markdown(report)


def _write(text: str, file: str) -> None:
    from embeval.store import atomic

    path = expanded(file)
    atomic.write(path, text.encode("utf-8"))
    _state.note(f"Wrote {path}.")


def _add_to_summary(text: str) -> None:
    import os

    if not (name := os.environ.get(SUMMARY)):
        _state.note(f"${SUMMARY} is not set; no summary was written.")
        return
    try:
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        _state.note(f"{name}: the summary can't be written ({error.strerror}).")
