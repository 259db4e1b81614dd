"""The files of a board: written, and held against what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from embeval.core import border, strict_json
from embeval.leaderboard.definition import Definition, Output
from embeval.leaderboard.snapshot import Snapshot
from embeval.store import atomic


def _html(made: Snapshot) -> bytes:
    from embeval.leaderboard.render.html import html

    return html(made).encode()


def _json(made: Snapshot) -> bytes:
    return (strict_json.canonical(border.dump(made)) + "\n").encode()


FORMS: Mapping[Output, Callable[[Snapshot], bytes]] = {"html": _html, "json": _json}
"""How each output is made."""


def write(made: Snapshot, definition: Definition) -> list[Path]:
    """The files of a board, each replaced as a whole."""
    written = []
    for kind in definition.board.outputs:
        path = definition.output(kind)
        atomic.write(path, FORMS[kind](made))
        written.append(path)
    return written
