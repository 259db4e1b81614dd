"""From ``{mteb: Name, …}`` to bound tasks: one for each split of each task that the name stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from embeval.core import border
from embeval.core.protocols import Task
from embeval.core.specs import DatasetRef, TaskSpec
from embeval.errors import ConfigError
from embeval.tasks import TASK_TYPES

if TYPE_CHECKING:
    from embeval.mteb_bridge.names import Evaluation, Filters

KIND = "mteb"
"""The type of these tasks, and the key of an entry that names them."""
FILTERS = ("types", "languages", "domains")
"""Keys that say which tasks are kept."""
KEYS = (KIND, *FILTERS, "splits", "subsets", "parity", "main_score", "mirror")
"""What an entry may say."""


def tasks_from(
    entry: Mapping[str, Any], *, root: Path, mirror: Path | None = None, filters: Filters | None = None
) -> list[Task[Any]]:
    """The tasks of an entry. ``filters`` are those that hold for all entries; ``mirror`` is for entries without one.

    Raises ``ConfigError`` for a key or value that there is not and where nothing is left, ``UnknownNameError`` for a
    name.
    """
    # Imported here: mteb takes seconds, and only these entries need it.
    from embeval.mteb_bridge import names
    from embeval.mteb_bridge.categories import Parity

    name = entry.get(KIND)
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"'{KIND}' must be the name of a task or benchmark, not {name!r}.", key=(KIND,))
    for key in entry:
        if key not in KEYS:
            raise ConfigError(f"mteb:{name}: {border.unknown_key((key,), KEYS)}", key=(key,))
    own = names.Filters(**{key: _texts(entry, key) or () for key in FILTERS})
    if (parity := entry.get("parity", "embeval")) not in get_args(Parity):
        raise ConfigError(f"mteb:{name}: parity must be {' or '.join(get_args(Parity))}, not {parity!r}.", ("parity",))
    folder = entry.get("mirror", None if mirror is None else str(mirror))
    if folder is not None and not (isinstance(folder, str) and folder):
        raise ConfigError(f"mteb:{name}: mirror must be the path of a folder, not {folder!r}.", key=("mirror",))
    every = (own,) if filters is None else (own, filters)
    found = names.expand(name.strip(), *every, splits=_texts(entry, "splits"), subsets=_texts(entry, "subsets"))
    shared = {"parity": parity} if parity != "embeval" else {}
    shared |= {"mirror": folder} if folder is not None else {}
    return [_bound(each, shared, entry.get("main_score"), root) for each in found]


def _bound(found: Evaluation, options: Mapping[str, Any], main_score: Any, root: Path) -> Task[Any]:
    if main_score is not None and not isinstance(main_score, str):
        raise ConfigError(f"main_score must be the name of a metric, not {main_score!r}.", key=("main_score",))
    spec = TaskSpec(
        name=f"{KIND}:{found.name}",
        type=KIND,
        dataset=DatasetRef(path=found.name, split=found.split),
        options={**options, **({} if found.subsets is None else {"subsets": list(found.subsets)})},
        main_score=main_score,
        languages=found.languages,
        license=found.license,
        citation=found.citation,
    )
    return TASK_TYPES.get(KIND).bind(spec, root=root)


def _texts(entry: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    """The value of a key as texts: one alone needs no list."""
    value = entry.get(key)
    if value is None:
        return None
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(each, str) and each for each in listed):
        raise ConfigError(f"'{key}' must be a name or a list of names, not {value!r}.", key=(key,))
    return tuple(dict.fromkeys(listed))
