"""Options of a task, checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from embeval.core import border
from embeval.core.paths import expanded
from embeval.core.specs import TaskSpec
from embeval.data import files
from embeval.errors import ConfigError, did_you_mean
from embeval.metrics import MetricFamily

Options = TypeVar("Options")
MAY_REPEAT = ("id", "query_id", "subset")
"""Parts of a row that may stand in the column of another one, such as a text that names its row."""


def read(options: type[Options], spec: TaskSpec) -> Options:
    """The options of a spec as their dataclass. Raises ``ConfigError`` naming the option and the nearest known one."""
    try:
        found = border.load(options, dict(spec.options))
    except border.BorderError as error:
        problem = error.problems[0]
        raise ConfigError(f"Task {spec.name!r} ({spec.type}): {problem}", key=problem.path) from None
    _check_columns(getattr(found, "columns", None), spec)
    return found


def _check_columns(columns: Any, spec: TaskSpec) -> None:
    """Raises ``ConfigError`` for one column in two parts: compared with itself, a text always fits."""
    part_of: dict[str, str] = {}
    for part, name in vars(columns).items() if columns is not None else ():
        if part not in MAY_REPEAT and (first := part_of.setdefault(name, part)) != part:
            raise ConfigError(
                f"Task {spec.name!r} ({spec.type}): {first} and {part} can't both be the column {name!r}.",
                key=("options", "columns", part),
            )


def main_score(spec: TaskSpec, family: MetricFamily, default: str) -> str:
    """The metric that stands for the task. Raises ``ConfigError`` for one that a task of this type doesn't have."""
    name = spec.main_score or default
    if family.make(name) is None:
        advice = did_you_mean(name, family.names()) or f"Known: {', '.join(family.names()[:8])}, …"
        raise ConfigError(f"Task {spec.name!r}: {name!r} is not a metric of {spec.type}. {advice}", key=("main_score",))
    return name


def check_main_score(spec: TaskSpec, known: Sequence[str], *, having: str = "", advice: str | None = None) -> None:
    """Raises ``ConfigError`` where the main score of a spec is none of the metrics of the task.

    ``having`` says by which of its options it has just these, ``advice`` what to do where the nearest name won't help.
    """
    name = spec.main_score
    if name is None or name in known:
        return
    advice = advice or did_you_mean(name, known) or f"Known: {', '.join(known)}."
    raise ConfigError(
        f"Task {spec.name!r}: {name!r} is not a metric of {spec.type}{having}. {advice}", key=("main_score",)
    )


def own_split(spec: TaskSpec) -> None:
    """Raises ``ConfigError`` where the file is of another split, as which its items would be stored."""
    file, split = Path(spec.dataset.path), spec.dataset.split
    if files.of_split(file, split) != file:
        raise ConfigError(f"Task {spec.name!r}: {file.name} is not the split {split!r}.", key=("split",))


def model_name(name: str, root: Path) -> str:
    """The name of a model that a task runs; where it is a folder, that folder looked up under ``root``."""
    local = root / expanded(name)
    return str(local) if name.startswith((".", "/", "~")) or local.is_dir() else name


def data_path(spec: TaskSpec, root: Path) -> Path:
    """The data of a task: its path, looked up under ``root`` unless it is absolute."""
    return root / expanded(spec.dataset.path)
