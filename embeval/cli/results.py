"""``embeval results``: what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, JsonOption, QuietOption, ResultsOption
from embeval.errors import StoreError, UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Lists stored results, or shows one.")

ModelFilter = Annotated[
    str | None, typer.Option("--model", "-m", envvar="EMBEVAL_MODEL", help="Only models with this in their name.")
]
TaskFilter = Annotated[
    str | None, typer.Option("--task", "-t", envvar="EMBEVAL_TASK", help="Only tasks with this in their name.")
]


@app.command("list")
def list_(
    results: ResultsOption = None,
    model: ModelFilter = None,
    task: TaskFilter = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Lists stored results, one line each."""
    from embeval.core import border
    from embeval.store.results import ResultStore

    found = list(ResultStore(Path(results or "results")).find(model=model, task=task))
    if json:
        _state.out_json([{"file": str(each.path), **border.dump(each.result)} for each in found])
        return
    if not found:
        _state.note(f"There are no such results in {results or 'results'}.")
        return
    from embeval.cli import _tables

    _state.out(_tables.stored(found))


@app.command()
def show(
    which: Annotated[str, typer.Argument(help="A result's JSON file, or a part of its path.")],
    results: ResultsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Shows one result: every metric, counts, warnings, model, signature and provenance."""
    from embeval.core import border
    from embeval.store.results import ResultStore, Stored

    store = ResultStore(Path(results or "results"))
    if Path(which).is_file():
        stored = Stored(Path(which), store.get(Path(which)))
    else:
        found = [each for each in store.find() if which.casefold() in str(each.path).casefold()]
        if not found:
            raise StoreError(f"No stored result has {which!r} in its path. 'embeval results list' shows them.")
        if len(found) > 1:
            raise UsageError(
                f"{which!r} fits {len(found)} results, such as {found[0].path}\nand {found[1].path}.\n"
                "Say more of the path; 'embeval results list' shows what there is."
            )
        stored = found[0]
    if json:
        _state.out_json({"file": str(stored.path), **border.dump(stored.result)})
        return
    from embeval.cli import _show

    _show.result(stored)
