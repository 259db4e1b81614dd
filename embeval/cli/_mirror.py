"""``embeval data pull``, ``embeval data mirror`` and what ``embeval data import --as-mteb`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from embeval.cli import _state
from embeval.cli._state import DebugOption, DomainOption, JsonOption, LanguageOption, QuietOption, TypeOption
from embeval.core.figures import size
from embeval.core.paths import expanded
from embeval.core.words import plural
from embeval.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embeval.mteb_bridge.holdings import Held
    from embeval.mteb_bridge.importing import Imported
    from embeval.mteb_bridge.pulling import Pulled

SOURCES = {"hub": "the hub", "import": "an import", "hand": "laid out by hand", "unknown": "unknown"}
"""Where a data set came from, in words."""


def pull(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Tasks and benchmarks of mteb, or patterns: STS12, 'MTEB(eng, v2)', 'STS*'."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", envvar="EMBEVAL_MIRROR", help="The mirror: a folder to store them in. Needed.")
    ] = None,
    type_: TypeOption = None,
    language: LanguageOption = None,
    domain: DomainOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Stores the data of mteb's tasks in a mirror, for machines without a network.

    Each data set is that of mteb's own revision, whole and compared with the hub's hashes, or not there; run it again
    to go on after an interruption. Exits with 3 where one can't be had; the others are stored all the same.

    Example: embeval data pull 'MTEB(eng, v2)' --to mirror
    """
    from embeval.mteb_bridge import pulling

    if not names or to is None:
        raise UsageError("Say what to store and where: embeval data pull STS12 --to mirror.")
    filters = _state.filters({"types": type_, "languages": language, "domains": domain})
    done = []
    for each in pulling.pull(names, expanded(to), filters=filters, progress=_state.progress()):
        done.append(each)
        if each.error is not None:
            _state.traceback(each.error)
            _state.error_line(f"Error: {each.error}")
        elif not json:
            _state.out_text(f"{each.source.path}: {size(each.bytes)}{_remark(each)}\n")
    failed = [each for each in done if each.error is not None]
    if json:
        _state.out_json({"mirror": to, "data_sets": [_as_json(each) for each in done]})
    elif not failed:
        _state.note(f"Read it instead of the hub: embeval run -m MODEL -t mteb:{done[0].tasks[0]} --mirror {to}")
    if failed:
        _state.note(f"{len(failed)} of {plural(len(done), 'data set')} could not be stored.")
        raise typer.Exit(ExitCode.CANNOT_EVALUATE)


def _remark(pulled: Pulled) -> str:
    return ", was there already" if pulled.status == "present" else ""


def _as_json(pulled: Pulled) -> Mapping[str, object]:
    return {
        "path": pulled.source.path,
        "revision": pulled.source.revision,
        "tasks": list(pulled.tasks),
        "status": pulled.status,
        "bytes": pulled.bytes,
        "error": None if pulled.error is None else str(pulled.error),
    }


def mirror(
    folder: Annotated[
        str | None, typer.Argument(envvar="EMBEVAL_MIRROR", help="A folder that 'data pull' stored data sets in.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", envvar="EMBEVAL_VERIFY", help="Hashes all files again.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Lists what a mirror holds: tasks, size, where it came from, and whether every file is as it was stored.

    Exits with 3 where one isn't.
    """
    from embeval.mteb_bridge.holdings import held

    if folder is None:
        raise UsageError("Say which folder: embeval data mirror FOLDER.")
    path = expanded(folder)
    found = list(held(path, verify=verify))
    if json:
        rows = [
            {
                "folder": each.folder.relative_to(path).as_posix(),
                "tasks": list(each.tasks),
                "source": each.source,
                "bytes": each.bytes,
                "problem": each.problem,
            }
            for each in found
        ]
        _state.out_json({"mirror": folder, "data_sets": rows})
    else:
        _show(found)
    broken = [each for each in found if each.problem is not None]
    for each in broken:
        _state.error_line(f"Error: {each.problem}")
    if broken:
        raise typer.Exit(ExitCode.CANNOT_EVALUATE)


def _show(found: Sequence[Held]) -> None:
    from embeval.cli import _tables

    if not found:
        _state.note("It holds no data of a task of mteb.")
        return
    rows = [
        [
            ", ".join(each.tasks) or "none of this mteb",
            SOURCES[each.source],
            size(each.bytes),
            _as_it_was(each),
        ]
        for each in found
    ]
    _state.out(_tables.fitting(["Tasks", "From", "Size", "State"], rows, _state.console(), right=["Size"], spare=()))
    total = sum(each.bytes for each in found)
    _state.note(f"{plural(len(found), 'data set')}, {size(total)}.")


def _as_it_was(each: Held) -> str:
    if each.problem is not None:
        return "broken"
    return "" if each.source == "hand" else "as stored"  # nobody wrote down what a hand laid out


def tell(imported: Imported, mirror_folder: str) -> None:
    """Says what ``embeval data import --as-mteb`` laid out."""
    rows = ", ".join(f"{n:,} in {place}" for place, n in imported.rows.items())
    _state.out_text(f"{imported.folder}: {rows}.\n")
    for each in imported.differences:
        _state.note(f"Warning: {each}.")
    name = f"mteb:{imported.task}"
    if imported.missing:
        name = f"'{name},subsets=[{','.join(imported.subsets)}]'"
        shown = ", ".join(imported.missing[:12]) + (", …" if len(imported.missing) > 12 else "")
        _state.note(f"Without the sub-sets {shown}.")
    _state.note(f"Evaluate on it: embeval run -m MODEL -t {name} --mirror {mirror_folder}")
