"""``embeval``: finds the verb, runs it, and turns errors into messages and exit codes.

A verb's file is imported when that verb is called. The overview (``embeval --help``) comes from the table below, so
it imports none of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from embeval.cli import _state, _streams
from embeval.core import packages
from embeval.errors import EmbevalError, EvaluationError, ExitCode, UsageError

if TYPE_CHECKING:
    from typer._click import Context

VERBS: dict[str, str] = {
    "run": "Evaluates models on tasks and writes results.",
    "demo": "Shows the whole thing: a real model on a bundled golden set, in under two minutes.",
    "init": "Writes a commented embeval.yaml into the current folder.",
    "score": "Scores a TREC run against judgments or a golden set, with no model.",
    "compare": "Compares candidates with a baseline: differences, intervals, p-values.",
    "leaderboard": "Shows stored results as a table of models by tasks, or builds pages of them.",
    "gate": "Decides by a policy whether a model may be released.",
    "tasks": "Lists task types and the catalogue, or shows one task.",
    "models": "Shows what a model is, or checks that it behaves.",
    "data": "Makes golden sets from what you have, checks them, and splits them; keeps mirrors of mteb's data.",
    "export": "Writes a model as ONNX graphs, each compared with the model itself.",
    "results": "Lists stored results, shows, tags, exports or imports them, or clears what is left over.",
    "search": "Asks a corpus one query with one model or several, and shows the hits.",
    "cache": "Shows the embedding cache, makes room in it, or checks it.",
    "schema": "Prints the JSON Schema of a result, of embeval.yaml or of board.yaml.",
    "doctor": "Says what this machine can do, and what stands in the way.",
}
"""Every verb with the first line of its help."""


class _Verbs(TyperGroup):
    """A group that imports a verb only when it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Stand-ins that know their help and nothing else: enough for the overview and for "did you mean".
        self.commands = {name: TyperCommand(name, help=text) for name, text in VERBS.items()}

    def list_commands(self, ctx: Context) -> list[str]:
        """In the order of the table, which is that of a first visit."""
        return list(VERBS)

    def resolve_command(self, ctx: Context, args: list[str]) -> Any:
        """The real command, once it is clear which one is called."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else _load(name), rest


def _load(name: str) -> Any:
    command = typer.main.get_command(import_module(f"embeval.cli.{name}").app)
    command.name = name
    return command


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
    _streams.prepare()
    try:
        code = _run()
        if code == ExitCode.INTERRUPTED:
            _streams.drop(_streams.STDOUT)  # a slow reader doesn't hold up the end
        sys.stdout.flush()
    except EvaluationError as error:  # stdout can't be written
        code = _state.error(error, error.exit_code)
    sys.exit(code)


def _run() -> int:
    try:
        code = typer.main.get_command(app).main(prog_name="embeval", standalone_mode=False)
    except typer.TyperException as error:
        return _refused(error)
    except EmbevalError as error:
        return _state.error(error, error.exit_code)
    except MemoryError:
        return _state.error(EvaluationError("Out of memory. Try a smaller --batch-tokens."), ExitCode.CANNOT_EVALUATE)
    except OSError as error:
        if error.errno is None:  # not from the system
            return _state.error(error, ExitCode.INTERNAL)
        return _state.error(_refused_by_system(error), ExitCode.CANNOT_EVALUATE)
    except ModuleNotFoundError as error:
        problem = packages.not_installed(error)
        return _state.error(problem or error, problem.exit_code if problem is not None else ExitCode.INTERNAL)
    except Exception as error:
        return _state.error(error, ExitCode.INTERNAL)
    if code == ExitCode.INTERRUPTED:  # typer has turned Ctrl-C into this code
        return _state.error(KeyboardInterrupt(_state.settings.interrupted), ExitCode.INTERRUPTED)
    return code if isinstance(code, int) else ExitCode.OK


def _refused_by_system(error: OSError) -> EvaluationError:
    """What the system doesn't let us do, such as reading a file that has just been deleted."""
    reason = error.strerror or str(error)
    try:
        Path.cwd()
        what = error.filename if error.filename is not None else "The system refuses"
        problem = EvaluationError(f"{what}: {reason}. Run the command again once that is mended; --debug shows more.")
    except OSError:  # what every relative path starts at
        problem = EvaluationError(f"The current folder: {reason}. Change to a folder that is there, then run it again.")
    problem.__cause__ = error  # for --debug
    return problem


def _refused(error: typer.TyperException) -> int:
    """What the parser of the command line doesn't take, in two lines and with the word that it stumbled over."""
    message = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
    if not message:  # called without a verb: the parser has shown the help
        return ExitCode.USAGE
    cause: Any = error.__cause__
    if hasattr(cause, "errors") and (details := cause.errors()):
        given = repr(details[0]["input"])
        message += f", not {given}" if given not in message else ""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "embeval"
    if "--json" in sys.argv:  # the parser stopped before it could act on the option
        _state.settings.json = True
    stop = "" if message.endswith("?") else "."
    return _state.error(UsageError(f"{message}{stop}\nSee '{path} --help'."), ExitCode.USAGE)
