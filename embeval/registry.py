"""Finding parts by name: built-in ones by their file name, others by an entry point.

A new backend, index, metric family or task type is one file in the right folder. Nothing has to be listed
anywhere: ``Registry`` reads the folder, and imports a file only when its name is asked for.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from embeval.errors import EvaluationError, UnknownNameError

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to parts of one kind.

    ``kind`` is the word for messages ("encoder backend"), ``package`` the folder whose modules are the
    built-ins, ``attribute`` what each module must hold, ``group`` the entry-point group of plug-ins. ``also`` names a
    second folder: parts that build on what lies above the first one, and so can't live in it.
    Module names are spelled with ``_``; a ``-`` in a name is accepted for it.
    """

    def __init__(self, *, kind: str, package: str, attribute: str, group: str, also: str | None = None) -> None:
        self.kind, self.attribute, self.group = kind, attribute, group
        self.packages = (package,) if also is None else (package, also)

    @cached_property
    def _builtin(self) -> dict[str, str]:
        """Name -> module."""
        return {
            info.name: f"{package}.{info.name}"
            for package in self.packages
            for info in pkgutil.iter_modules(importlib.import_module(package).__path__)
            if not info.ispkg and not info.name.startswith("_")
        }

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        for point in entry_points(group=self.group):
            name = point.name.replace("-", "_")
            if name in self._builtin or name in found:
                raise EvaluationError(
                    f"Two packages offer the {self.kind} {point.name!r}; one comes from {point.value!r}. "
                    "Uninstall one of them."
                )
            found[name] = point
        return found

    def names(self) -> tuple[str, ...]:
        """All known names, sorted; imports none of the parts."""
        return tuple(sorted({*self._builtin, *self._plugins}))

    def refuse_unknown(self, name: str) -> None:
        """Raises ``UnknownNameError`` with the closest names where there is no part of that name; imports none."""
        if name.replace("-", "_") not in self.names():
            raise UnknownNameError(self.kind, name, self.names())

    def get(self, name: str) -> T:
        """The part of that name, imported now. Raises ``UnknownNameError`` with the closest names."""
        wanted = name.replace("-", "_")
        if wanted in self._builtin:
            part: Any = getattr(importlib.import_module(self._builtin[wanted]), self.attribute)
        elif wanted in self._plugins:
            part = self._plugins[wanted].load()
        else:
            raise UnknownNameError(self.kind, name, self.names())
        return part  # type: ignore[no-any-return]  # the attribute's type is the folder's contract
