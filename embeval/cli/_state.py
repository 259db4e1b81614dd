"""What every verb shares: --json, --quiet, --debug, and where messages go.

Results go to stdout. Everything else (progress, notes, warnings, errors) goes to stderr, so that a pipe holds
results only. With --json stdout holds one JSON value, also when something went wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embeval.cli import _streams
from embeval.core.characters import steady
from embeval.core.paths import expanded
from embeval.errors import ExitCode, StoreError, UsageError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from embeval.core.progress import Progress
    from embeval.core.specs import RuntimeOptions
    from embeval.mteb_bridge.names import Filters


@dataclass
class Settings:
    """Set once per process, the first three by the options below."""

    json: bool = False
    quiet: bool = False
    debug: bool = False
    json_begun: bool = False
    """Whether stdout holds a JSON value, or a part of one."""
    interrupted: str = "Interrupted. Finished results are stored; the same command goes on where this one stopped."
    """What Ctrl-C is answered with."""


settings = Settings()


def _set(name: str) -> Any:
    def callback(value: bool) -> bool:
        setattr(settings, name, value)
        return value

    return callback


JsonOption = Annotated[
    bool,
    typer.Option("--json", envvar="EMBEVAL_JSON", callback=_set("json"), help="Prints one JSON value on stdout."),
]
QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", envvar="EMBEVAL_QUIET", callback=_set("quiet"), help="No progress, no notes."),
]
DebugOption = Annotated[
    bool,
    typer.Option("--debug", envvar="EMBEVAL_DEBUG", callback=_set("debug"), help="Shows the traceback of an error."),
]
ResultsOption = Annotated[
    str | None,
    typer.Option("--results", envvar="EMBEVAL_RESULTS", help="Folder of results.  (default: results)"),
]
DataOption = Annotated[
    str | None,
    typer.Option("--data", envvar="EMBEVAL_DATA", help="Folder that holds the data of catalogue tasks."),
]
MirrorOption = Annotated[
    str | None,
    typer.Option(
        "--mirror",
        envvar="EMBEVAL_MIRROR",
        help="Folder that the data of mteb's tasks is read from, without the network.",
    ),
]
TypeOption = Annotated[
    list[str] | None,
    typer.Option("--type", envvar="EMBEVAL_TYPES", help="Keeps mteb's tasks of this type, such as STS. Repeatable."),
]
LanguageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--language",
        envvar="EMBEVAL_LANGUAGES",
        help="Keeps mteb's tasks, and of these the sub-sets, in this language (ISO 639-3: deu). Repeatable.",
    ),
]
DomainOption = Annotated[
    list[str] | None,
    typer.Option(
        "--domain", envvar="EMBEVAL_DOMAINS", help="Keeps mteb's tasks of this domain, such as Legal. Repeatable."
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option("--device", envvar="EMBEVAL_DEVICE", help="auto, cpu, cuda, cuda:1 or mps.  (default: auto)"),
]
ThreadsOption = Annotated[int | None, typer.Option("--threads", envvar="EMBEVAL_THREADS", help="CPU threads.", min=1)]


def runtime(**options: Any) -> RuntimeOptions:
    """Runtime options from those of the command line that were given. Raises ``UsageError``."""
    from embeval.core.specs import RuntimeOptions

    try:
        return RuntimeOptions(**{name: value for name, value in options.items() if value is not None})
    except ValueError as error:
        raise UsageError(f"{error}.") from None


def filters(given: Mapping[str, list[str] | None]) -> Filters | None:
    """Filters of mteb's tasks from the options that were given; None where none was."""
    named = {name: tuple(values) for name, values in given.items() if values}
    if not named:
        return None
    from embeval.mteb_bridge.names import Filters

    return Filters(**named)


def results_folder(given: str | None) -> Path:
    """The folder that ``--results`` names, for verbs that read. Raises ``StoreError`` where it is none."""
    folder = expanded(given or "results")
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder}: not a folder.")
    return folder


def out_json(value: Any) -> None:
    """One JSON value on stdout; what the stream's encoding may lack is escaped."""
    import json
    import re

    from embeval.core import strict_json

    lacking = r"[\ud800-\udfff]" if _streams.is_utf8(sys.stdout) else r"[^\x00-\x7f]"
    text = re.sub(lacking, lambda found: json.dumps(found[0])[1:-1], strict_json.dumps(value))
    settings.json_begun = True
    out_text(text)


def out(renderable: RenderableType) -> None:
    """A table or text on stdout; what would steer the terminal in a text is replaced."""
    console().print(steady(renderable) if isinstance(renderable, str) else renderable)


def out_text(text: str) -> None:
    """Text on stdout, exactly as it is."""
    sys.stdout.write(text)
    sys.stdout.flush()


def console(stderr: bool = False) -> Console:
    """A rich console that doesn't read markup out of names and texts."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # In a pipe a table must not be cut to a window that isn't there.
    width = None if stream.isatty() else 200
    return Console(stderr=stderr, markup=False, highlight=False, width=width, soft_wrap=False)


def note(text: str) -> None:
    """A line on stderr, unless --quiet."""
    if not settings.quiet:
        error_line(text)


def error(problem: BaseException, code: ExitCode) -> ExitCode:
    """An error on stderr, with --json on stdout as well, with --debug after its traceback. Gives the code back."""
    message = str(problem) or type(problem).__name__
    if code is ExitCode.INTERNAL:
        message = (
            f"A fault in embeval: {type(problem).__name__}: {message.splitlines()[0]}\n"
            "Run again with --debug for the traceback, and please report it."
        )
    traceback(problem)
    error_line(message if code is ExitCode.INTERRUPTED else f"Error: {message}")
    if settings.json and not settings.json_begun:
        out_json({"error": {"type": type(problem).__name__, "message": message, "exit_code": int(code)}})
    return code


def traceback(problem: BaseException) -> None:
    """The traceback of an error on stderr, with --debug only."""
    if settings.debug:
        import traceback as library

        library.print_exception(problem)


def progress() -> Progress:
    """A bar in a terminal, plain lines elsewhere, nothing with --quiet."""
    from embeval.cli import _progress
    from embeval.core.progress import Silent

    if settings.quiet:
        return Silent()
    return _progress.Bar() if sys.stderr.isatty() else _progress.Lines()


def error_line(text: str) -> None:
    """A line on stderr even with --quiet. A name that it tells doesn't steer the terminal."""
    print(steady(text), file=sys.stderr, flush=True)
