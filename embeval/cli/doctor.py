"""``embeval doctor``: what this machine can do."""

from __future__ import annotations

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, JsonOption, QuietOption, ResultsOption
from embeval.core.paths import expanded
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
    from embeval.workflows import checks

    found = checks.run(expanded(results or "results"), variables=_variables())
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


def _variables() -> set[str]:
    """The environment variable of every option of every verb, and those for endpoints."""
    from importlib import import_module

    from embeval.cli.main import VERBS
    from embeval.encoders import endpoint

    found = set(endpoint.VARIABLES)
    waiting = [typer.main.get_command(import_module(f"embeval.cli.{verb}").app) for verb in VERBS]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        found |= {str(option.envvar) for option in command.params if getattr(option, "envvar", None)}
    return found
