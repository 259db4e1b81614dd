"""Where boards lie, and new ones."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

from embeval.core.paths import expanded
from embeval.errors import UnknownNameError, UsageError
from embeval.leaderboard.definition import FILE_NAME
from embeval.store import atomic
from embeval.workflows.boards.template import TEMPLATE

FOLDER = Path("leaderboards")
"""Where boards lie, each in a folder of its own."""
INIT = "'embeval leaderboard init' writes one."
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What the folder of a board that we make may be called."""


def find(given: str) -> Path:
    """The file of a board that is named by it, by its folder, or by the name of its folder below ``leaderboards``.

    Raises ``UnknownNameError`` with the closest names for none, ``UsageError`` for a path that is none.
    """
    path = expanded(given)
    if _is(path, Path.is_file):
        return path
    is_path = os.sep in given or given.startswith(("~", "."))
    folders = [path] if is_path else [FOLDER / given, path]
    for folder in folders:
        if _is(found := folder / FILE_NAME, Path.is_file):
            return found
    if _is(path, Path.is_dir):
        raise UsageError(f"{path}: no {FILE_NAME} in this folder, so it is no board. {INIT}")
    if is_path or path.suffix in (".yaml", ".yml"):
        raise UsageError(f"{path}: no such board. {INIT}")
    known = [each.parent.name for each in there()]
    raise UnknownNameError("board", given, known, hint=f"A board is a folder with a {FILE_NAME}. {INIT}")


def _is(path: Path, kind: Callable[[Path], bool]) -> bool:
    """Whether there is a file or a folder of that name."""
    try:
        return kind(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # no file can be called so
            return False
        raise


def there() -> list[Path]:
    """The files of all boards below ``leaderboards``, by name."""
    return sorted(FOLDER.glob(f"*/{FILE_NAME}"))


def chosen(given: list[str]) -> list[Path]:
    """The boards that are named, or without a name all that there are. Raises ``UsageError`` where there is none."""
    found = [find(each) for each in given] or there()
    if not found:
        raise UsageError(f"There is no board here: no {FOLDER}/*/{FILE_NAME}. {INIT}")
    return list(dict.fromkeys(found))


def one(given: str | None) -> Path:
    """The board that is named, or the only one. Raises ``UsageError`` where there are several, or none."""
    found = chosen([] if given is None else [given])
    if len(found) > 1:
        raise UsageError(f"Which board? There are {', '.join(each.parent.name for each in found)}.")
    return found[0]


def begin(name: str, *, overwrite: bool = False) -> Path:
    """Writes a commented file for a new board of the results here, and says where.

    Raises ``UsageError`` for a name that no folder should have, and for a board that is there, unless ``overwrite``.
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"A board can't be called {name!r}: its name is up to 64 letters, digits, dots, dashes and underscores, "
            "and starts with a letter or digit."
        )
    path = FOLDER / name / FILE_NAME
    if path.exists() and not overwrite:
        raise UsageError(f"{path} is there already. Edit it, or replace it with --force.")
    atomic.write(path, TEMPLATE.encode("utf-8"))
    return path
