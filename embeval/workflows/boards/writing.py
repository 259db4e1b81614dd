"""The files of a board: written, and held against what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from embeval.leaderboard import snapshot
from embeval.leaderboard.definition import Definition, Output
from embeval.leaderboard.snapshot import Snapshot
from embeval.store import atomic


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


def write(made: Snapshot, definition: Definition) -> list[Path]:
    """The files of a board, each replaced as a whole."""
    written = []
    for kind in definition.board.outputs:
        path = definition.output(kind)
        atomic.write(path, FORMS[kind](made))
        written.append(path)
    return written
