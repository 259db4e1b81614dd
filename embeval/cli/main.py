"""``embeval``: finds the verb, runs it, and turns errors into messages and exit codes.

A verb's file is imported when that verb is called. The overview (``embeval --help``) comes from the table below, so
it imports none of them.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from embeval.cli import _state
from embeval.errors import EmbevalError, ExitCode

if TYPE_CHECKING:
    from typer._click import Context

VERBS: dict[str, str] = {
    "run": "Evaluates models on tasks and writes results.",
    "demo": "Shows the whole thing: a real model on a bundled golden set, in under two minutes.",
    "init": "Writes a commented embeval.yaml into the current folder.",
    "leaderboard": "Shows stored results as a table of models by tasks.",
    "tasks": "Lists task types and the catalogue, or shows one task.",
    "models": "Shows what a model is: dimensions, limits, prompts, size.",
    "results": "Lists stored results, or shows one.",
    "schema": "Prints the JSON Schema of a result or of embeval.yaml.",
    "doctor": "Says what this machine can do, and what stands in the way.",
}
"""Every verb with the first line of its help."""


class _Verbs(TyperGroup):
    """A group that imports a verb only when it is called."""

    def list_commands(self, ctx: Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Context, cmd_name: str) -> Any:
        """A stand-in that knows its help and nothing else: enough for the overview and for "did you mean"."""
        return TyperCommand(cmd_name, help=VERBS[cmd_name]) if cmd_name in VERBS else None

    def resolve_command(self, ctx: Context, args: list[str]) -> Any:
        """The real command, once it is clear which one is called."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else _load(name), rest

    def invoke(self, ctx: Context) -> Any:
        try:
            return super().invoke(ctx)
        except EmbevalError as error:
            _fail(error, error.exit_code)
        except KeyboardInterrupt:
            _state.note("Interrupted. Finished results are stored; the same command goes on where this one stopped.")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:  # the reader of a pipe has seen enough, as in "embeval results list | head"
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.OK) from None
        except MemoryError:
            _fail(EmbevalError("Out of memory. Try a smaller runtime.batch_tokens."), ExitCode.CANNOT_EVALUATE)
        except (typer.TyperException, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            _fail(error, ExitCode.INTERNAL)


def _load(name: str) -> Any:
    command = typer.main.get_command(import_module(f"embeval.cli.{name}").app)
    command.name = name
    return command


def _fail(error: Exception, code: ExitCode) -> None:
    _state.error(error, code)
    if _state.settings.debug:
        raise error
    raise typer.Exit(code)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"embeval-toolkit {version('embeval-toolkit')}")
        raise typer.Exit


app = typer.Typer(
    name="embeval",
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Embedding-quality evaluation: STS and retrieval with confidence intervals, on your own data, offline.",
)


@app.callback()
def _root(
    version: Annotated[  # the callback does the work
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Prints the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point of the ``embeval`` command."""
    app(prog_name="embeval")
