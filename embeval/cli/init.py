"""``embeval init``: a commented embeval.yaml to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, JsonOption, QuietOption
from embeval.errors import UsageError

app = typer.Typer(add_completion=False)


@app.command()
def init(
    force: Annotated[
        bool, typer.Option("--force", envvar="EMBEVAL_FORCE", help="Replaces an embeval.yaml that is there.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Writes a commented embeval.yaml into the current folder.

    It runs as it is, on the data that comes with the package: embeval init && embeval run
    """
    from embeval.store import atomic
    from embeval.workflows.config import FILE_NAME
    from embeval.workflows.template import TEMPLATE

    path = Path(FILE_NAME)
    if path.exists() and not force:
        raise UsageError(f"{path} is there already. Edit it, or replace it with --force.")
    atomic.write(path, TEMPLATE.encode("utf-8"))
    if json:
        _state.out_json({"file": str(path)})
        return
    _state.note(f"Wrote {path}. It runs as it is: embeval run")
