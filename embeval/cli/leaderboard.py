"""``embeval leaderboard``: stored results as a table of models by tasks."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, JsonOption, QuietOption, ResultsOption
from embeval.errors import StoreError

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Shows stored results as a table of models by tasks."
)


class Format(StrEnum):
    """How the table is written."""

    TABLE = "table"
    MARKDOWN = "markdown"


@app.callback()
def _group() -> None:
    """Shows stored results as a table of models by tasks."""


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
    format: Annotated[Format, typer.Option(envvar="EMBEVAL_FORMAT", help="table or markdown.")] = Format.TABLE,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Shows models by tasks, with confidence intervals.

    Only results that measured the same thing share a column. A missing result is a gap, and a model with gaps has
    no mean.
    """
    from embeval import api
    from embeval.leaderboard.render.cells import markdown
    from embeval.store.results import ResultStore

    if metric is not None:
        from embeval import metrics

        metrics.get(metric)
    folder = _state.results_folder(results)
    board = api.leaderboard(folder, metric=metric, task=task, older=all)
    if not board.rows and not board.failures:
        if board.broken:
            raise StoreError(board.broken[0])
        asked = [f"the task {' or '.join(map(repr, task))}"] if task else []
        asked += [f"the metric {metric!r}"] if metric else []
        if asked and any(ResultStore(folder).find()):
            wanted = " and ".join(asked)
            raise StoreError(f"No stored result in {folder} fits {wanted}. 'embeval results list' shows what there is.")
        raise StoreError(f"There are no results to show in {folder}. 'embeval run' writes them.")
    if json:
        _state.out_json(board.to_json())
        return
    if format is Format.MARKDOWN:
        _state.out_text(markdown(board))
        return
    from embeval.cli import _tables

    if board.rows:
        _state.out(_tables.board(board, _state.console()))
    for remark in board.remarks():
        _state.out(remark)
    for failure in board.failures:
        _state.note(f"Failed: {failure}")


@app.command()
def build(
    board: Annotated[str, typer.Argument(envvar="EMBEVAL_BOARD", help="A board.yaml, or the folder that holds one.")],
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Writes the pages of a board: index.html, README.md, and its numbers as CSV, JSON and Parquet."""
    from pathlib import Path

    from embeval.leaderboard import definition
    from embeval.workflows.boards import building, writing

    path = Path(board)
    found = definition.load(path / definition.FILE_NAME if path.is_dir() else path)
    for written in writing.write(building.snapshot(found), found):
        _state.out(str(written))
