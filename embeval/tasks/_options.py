"""Options of a task, checked."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from embeval.core import border
from embeval.core.specs import TaskSpec
from embeval.errors import ConfigError

Options = TypeVar("Options")


def read(options: type[Options], spec: TaskSpec) -> Options:
    """The options of a spec as their dataclass. Raises ``ConfigError`` naming the option and the nearest known one."""
    try:
        return border.load(options, dict(spec.options))
    except border.BorderError as error:
        problem = error.problems[0]
        raise ConfigError(f"Task {spec.name!r} ({spec.type}): {problem}", key=problem.path) from None


def data_path(spec: TaskSpec, root: Path) -> Path:
    """The data of a task: its path, looked up under ``root`` unless it is absolute."""
    return root / Path(spec.dataset.path).expanduser()
