"""One data-only file per public data set, and for the data that ships with the package.

Each holds ``SPEC``, a ``TaskSpec`` whose data path is relative to the data root (``--data``); a path that starts with
``embeval:`` lies inside the package. ``find`` looks a name up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from embeval.core.specs import TaskSpec
from embeval.registry import Registry

CATALOG: Registry[TaskSpec] = Registry(
    kind="task", package="embeval.tasks.catalog", attribute="SPEC", group="embeval.catalog"
)
IN_PACKAGE = "embeval:"


def specs() -> Iterator[TaskSpec]:
    """Every entry, in the order of their file names."""
    for name in CATALOG.names():
        yield CATALOG.get(name)


def find(name: str) -> TaskSpec | None:
    """The entry of that name, upper and lower case alike; None if there is none."""
    return next((spec for spec in specs() if spec.name.casefold() == name.casefold()), None)


def package_folder(path: str) -> Path | None:
    """The folder that a path of the form ``embeval:…`` starts from; None for any other path."""
    if not path.startswith(IN_PACKAGE):
        return None
    return Path(__file__).parents[2]
