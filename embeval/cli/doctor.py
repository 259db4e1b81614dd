"""``embeval doctor``: what this machine can do."""

from __future__ import annotations

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, JsonOption, QuietOption, ResultsOption
from embeval.errors import ExitCode

app = typer.Typer(add_completion=False)


@app.command()
def doctor(
    results: ResultsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Says what this machine can do, and what stands in the way.

    Ends with exit code 3 where something would make an evaluation fail or mislead.
    """
    from pathlib import Path

    from embeval.workflows import checks

    found = checks.run(Path(results or "results"))
    if json:
        _state.out_json([check.to_json() for check in found])
    else:
        from embeval.cli import _tables

        made = _tables.table(["", "What", "Found"])
        for check in found:
            _tables.add(made, [check.state, check.name, check.found])
        _state.out(made)
    if any(check.state == "error" for check in found):
        raise typer.Exit(ExitCode.CANNOT_EVALUATE)
