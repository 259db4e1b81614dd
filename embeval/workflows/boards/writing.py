"""The files of a board: written, and held against what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from embeval.core.paths import content
from embeval.errors import StoreError
from embeval.leaderboard import differences, snapshot
from embeval.leaderboard.definition import Definition, Output
from embeval.leaderboard.snapshot import Snapshot
from embeval.store import atomic
from embeval.workflows.boards import building, gathering, reports


def _html(made: Snapshot) -> bytes:
    from embeval.leaderboard.render.html import html

    return html(made).encode()


def _readme(made: Snapshot) -> bytes:
    from embeval.leaderboard.render.readme import readme

    return readme(made).encode()


def _svg(made: Snapshot) -> bytes:
    from embeval.leaderboard.render.picture import svg

    return svg(made).encode()


def _csv(made: Snapshot) -> bytes:
    from embeval.leaderboard.render.flat import flat

    return flat(made).encode()


def _json(made: Snapshot) -> bytes:
    return snapshot.dumps(made).encode()


def _parquet(made: Snapshot) -> bytes:
    from embeval.leaderboard.render.parquet import parquet

    return parquet(made)


FORMS: Mapping[Output, Callable[[Snapshot], bytes]] = {
    "html": _html,
    "readme": _readme,
    "svg": _svg,
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}
"""How each output is made."""
MARKS: Mapping[Output, bytes] = {
    "html": b'<meta name="generator" content="embeval">',
    "readme": b"By embeval from stored results, as [board.yaml](board.yaml) says.",
}
"""What stands in a file that we made, of those whose names many folders have a file of."""


@dataclass(frozen=True)
class Stale:
    """A file that isn't what the board's results make now."""

    path: Path
    """The file."""
    why: str
    """What differs, as a sentence without its stop."""


@dataclass(frozen=True)
class Checked:
    """The committed files of a board, held against what they are made from."""

    stale: tuple[Stale, ...]
    """Those that are to be built again; empty: all is fresh."""
    from_results: bool
    """Whether the results were there. Else the pages were held against ``board.json``, and that against nothing."""


def rendered(made: Snapshot, definition: Definition) -> dict[Path, bytes]:
    """Every file of a board with its content, in the order of the definition."""
    return {definition.output(kind): FORMS[kind](made) for kind in definition.board.outputs}


def everything(made: Snapshot, definition: Definition) -> dict[Path, bytes]:
    """Every file of a board, and the reports that it links to, which take its results."""
    linked = reports.pages(made, definition)
    return {**rendered(made, definition), **{definition.path.parent / file: page for file, page in linked.items()}}


def write(made: Snapshot, definition: Definition) -> list[Path]:
    """Writes the files of a board: all are rendered before any is replaced. Files that are fresh stay as they are.

    Raises ``ConfigError`` where somebody's own README.md or index.html would be lost, and ``StoreError``.
    """
    files = everything(made, definition)
    _refuse_others(definition)
    for folder in {path.parent for path in files}:
        atomic.sweep(folder)
    atomic.write_all({path: data for path, data in files.items() if not _same(path, data)})
    return list(files)


def _refuse_others(definition: Definition) -> None:
    """Raises ``ConfigError`` where a file that isn't a board's is in the way."""
    for kind, mark in MARKS.items():
        there = _content(definition.output(kind)) if kind in definition.board.outputs else None
        if there is not None and there.strip() and mark not in there:
            raise definition.wrong(
                ("outputs",),
                f"{definition.output(kind)} is not of a board, and would be lost. Put {definition.path.name} into a "
                f"folder of its own, move that file, or leave {kind!r} out.",
            )


def check(definition: Definition) -> Checked:
    """The files of a board that are stale, as the results make them now, or without these as ``board.json`` does.

    Raises what building a board raises, and ``StoreError`` where there are neither results nor a ``board.json``.
    """
    from_results = gathering.at_hand(definition)
    kept = _kept(definition)
    if from_results:
        made = building.snapshot(definition)
    elif isinstance(kept, StoreError):
        raise StoreError(f"{definition.path}: the results aren't here, and nor is what was built of them.\n{kept}")
    else:
        made = kept
        if told := _against_file(made, definition):
            return Checked((Stale(definition.output("json"), told),), from_results=False)
    why = "made by another version, or edited by hand"
    if not isinstance(kept, StoreError):
        why = differences.first(kept, made) or why
    files = everything(made, definition) if from_results else rendered(made, definition)
    stale = [
        Stale(path, why if path.exists() else "not there") for path, data in files.items() if not _same(path, data)
    ]
    return Checked(tuple(stale), from_results)


def _kept(definition: Definition) -> Snapshot | StoreError:
    """What was built before, or why it can't be known."""
    try:
        return snapshot.load(definition.output("json"))
    except StoreError as error:
        return error


def _against_file(made: Snapshot, definition: Definition) -> str | None:
    """What a built board has otherwise than its file says, where that can be seen without the results."""
    board = definition.board
    said = {
        "title": definition.title,
        "description": board.description,
        "rank_by": board.rank_by,
        "gaps": board.gaps,
        "level": board.level,
        "rag_k": board.rag_k,
    }
    for name, value in said.items():
        if (was := getattr(made, name)) != value:
            return f"{name}: {was!r} there, {value!r} in {definition.path.name}"
    return None


def _same(path: Path, data: bytes) -> bool:
    """Whether a file is as it was rendered; one of Parquet by what it holds, since pyarrow's version stands in it."""
    there = _content(path)
    if there is None or there == data or path.suffix != ".parquet":
        return there == data
    from embeval.leaderboard.render.parquet import same

    return same(there, data)


def _content(path: Path) -> bytes | None:
    """The content of a file; None where there is none. Raises ``StoreError`` where it can't be read."""
    try:
        return content(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(f"{path}: can't be read ({error.strerror}).") from None
