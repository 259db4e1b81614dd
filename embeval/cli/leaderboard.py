"""``embeval leaderboard``: stored results as a table of models by tasks, in the terminal and as pages."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embeval.cli import _state
from embeval.cli._complete import complete_board
from embeval.cli._state import DebugOption, JsonOption, QuietOption, ResultsOption
from embeval.errors import EmbevalError, ExitCode, StoreError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Shows stored results as a table of models by tasks, or builds pages of them.",
)


class Format(StrEnum):
    """How the table is written."""

    TABLE = "table"
    MARKDOWN = "markdown"


@app.callback()
def _group() -> None:
    """Shows stored results as a table of models by tasks, or builds pages of them."""


@app.command()
def show(
    results: ResultsOption = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task", "-t", envvar="EMBEVAL_TASK", help="Tasks called so, or with it in the name. Repeatable."
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(envvar="EMBEVAL_METRIC", help="This metric instead of each task's main score.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", envvar="EMBEVAL_ALL", help="Also results on older data.")] = False,
    board: Annotated[
        str | None,
        typer.Option(
            envvar="EMBEVAL_BOARD",
            autocompletion=complete_board,
            help="A board instead of all results: its name, folder or board.yaml, or a board.json.",
        ),
    ] = None,
    format: Annotated[Format, typer.Option(envvar="EMBEVAL_FORMAT", help="table or markdown.")] = Format.TABLE,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Shows models by tasks, with confidence intervals.

    Only results that measured the same thing share a column. A missing result is a gap, and a model with gaps has
    no mean. With --board: ranks as that board has them, with their intervals; models that share a letter can't be told
    apart.
    """
    if board is not None:
        given = {"--results": results, "--task": task, "--metric": metric, "--all": all or None}
        given["--format"] = None if format is Format.TABLE else format
        _show_board(board, [name for name, value in given.items() if value is not None])
        return
    from embeval import api
    from embeval.leaderboard.render.markdown import markdown
    from embeval.store.results import ResultStore

    if metric is not None:
        from embeval import metrics

        metrics.get(metric)
    folder = _state.results_folder(results)
    found = api.leaderboard(folder, metric=metric, task=task, older=all)
    if not found.rows and not found.failures:
        if found.broken:
            raise StoreError(found.broken[0])
        asked = [f"the task {' or '.join(map(repr, task))}"] if task else []
        asked += [f"the metric {metric!r}"] if metric else []
        if asked and any(ResultStore(folder).find()):
            wanted = " and ".join(asked)
            raise StoreError(f"No stored result in {folder} fits {wanted}. 'embeval results list' shows what there is.")
        raise StoreError(f"There are no results to show in {folder}. 'embeval run' writes them.")
    if json:
        _state.out_json(found.to_json())
        return
    if format is Format.MARKDOWN:
        _state.out_text(markdown(found))
        return
    from embeval.cli import _tables

    if found.rows:
        _state.out(_tables.board(found, _state.console()))
    for remark in found.remarks():
        _state.out(remark)
    for failure in found.failures:
        _state.note(f"Failed: {failure}")


def _show_board(given: str, others: list[str]) -> None:
    """A board with its ranks; where its results aren't here, as it was built."""
    if others:
        raise UsageError(f"A board says itself what it shows: --board and {others[0]} can't go together.")
    from embeval.core import border
    from embeval.workflows.boards import opening

    opened = opening.opened(given)
    made = opened.made
    if opened.why is not None:
        _state.note(f"As it was built: {opened.why}")
    if _state.settings.json:
        _state.out_json(border.dump(made))
        return
    from embeval.cli import _boards

    _state.out_text(f"{made.title}\n")
    _state.out(_boards.table(made, _state.console()))
    for remark in _boards.remarks(made):
        _state.out(remark)
    for failure in made.failures:
        _state.note(f"Failed: {failure}")


BoardsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="BOARD",
        envvar="EMBEVAL_BOARD",
        autocompletion=complete_board,
        help="Names below leaderboards, folders, or board.yaml files.  (default: every board in leaderboards)",
    ),
]


@app.command()
def build(
    board: BoardsArgument = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", envvar="EMBEVAL_CHECK", help="Writes nothing; exits 1 where a file isn't what results make now."
        ),
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Writes the pages of boards: index.html, README.md, and the numbers as CSV, JSON and Parquet.

    A board is a board.yaml in a folder of its own; init writes one. The same results give the same files to the byte.
    --check holds committed files against the results, or where these aren't there against board.json.
    Examples: embeval leaderboard build  ·  embeval leaderboard build models --check
    """
    from embeval.workflows.boards import finding

    told: list[dict[str, Any]] = []
    problem: EmbevalError | None = None
    for path in finding.chosen(board or []):
        try:
            told.append((_check if check else _build)(path))
        except EmbevalError as error:
            if problem is not None:
                _state.error_line(f"Error: {error}")
            problem = problem or error
            told.append({"board": str(path), "error": {"type": type(error).__name__, "message": str(error)}})
    if len(told) > 1 or problem is None:
        _out(told)
    if problem is not None:
        raise problem
    if any(each.get("stale") for each in told):
        raise typer.Exit(ExitCode.OVER_BOUND)


def _out(told: list[dict[str, Any]]) -> None:
    if _state.settings.json:
        _state.out_json({"boards": told})


def _build(path: Path) -> dict[str, Any]:
    from embeval.cli import _boards
    from embeval.leaderboard import definition
    from embeval.workflows.boards import building, writing

    found = definition.load(path)
    made = building.snapshot(found)
    files = writing.write(made, found)
    if not _state.settings.json:
        for file in files:
            _state.out_text(f"{file}\n")
        _state.note(_boards.summary(made))
        for remark in made.remarks:
            _state.note(remark)
    return {
        "board": str(path),
        "files": [str(file) for file in files],
        "models": len(made.models),
        "columns": len(made.columns),
        "remarks": list(made.remarks),
        "failures": list(made.failures),
    }


def _check(path: Path) -> dict[str, Any]:
    from embeval.cli import _boards
    from embeval.leaderboard import definition
    from embeval.workflows.boards import writing

    found = writing.check(definition.load(path))
    if not _state.settings.json:
        _boards.checked(path, found)
        if found.stale:
            _state.note(f"Build it again: embeval leaderboard build {path.parent}")
    return {
        "board": str(path),
        "stale": [{"file": str(each.path), "why": each.why} for each in found.stale],
        "from_results": found.from_results,
    }


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="Name of the board, and of its folder.")] = "models",
    force: Annotated[
        bool, typer.Option("--force", envvar="EMBEVAL_FORCE", help="Replaces a board.yaml that is there.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Writes a commented board.yaml into leaderboards/NAME.

    It works as it is, on the folder results: embeval leaderboard init && embeval leaderboard build
    """
    from embeval.workflows.boards import finding

    path = finding.begin(name, overwrite=force)
    if json:
        _state.out_json({"file": str(path)})
        return
    _state.note(f"Wrote {path}. It works as it is: embeval leaderboard build {name}")


@app.command()
def serve(
    board: Annotated[
        str | None,
        typer.Argument(
            envvar="EMBEVAL_BOARD",
            autocompletion=complete_board,
            help="Name below leaderboards, folder, or board.yaml.  (default: the only board there)",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(envvar="EMBEVAL_PORT", help="Port of 127.0.0.1; 0: any that is free.", min=0, max=65535)
    ] = 8377,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Serves a board to browsers on this machine, built again as results arrive; Ctrl-C ends it.

    Nothing is written. Open pages load themselves again. While a board can't be built, the last good one stays.
    """
    import threading

    from embeval.workflows.boards import finding, serving

    def tell(text: str) -> None:
        (_state.error_line if text.startswith(serving.NOT_BUILT) else _state.note)(text)

    _state.settings.interrupted = "Stopped."
    with serving.served(finding.one(board), port, tell) as address:
        if json:
            _state.out_json({"address": address})
        else:
            _state.out_text(f"{address}\n")
            _state.note("Ctrl-C ends it.")
        threading.Event().wait()
