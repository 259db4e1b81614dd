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
    built-ins, ``attribute`` what each module must hold, ``group`` the entry-point group of plug-ins.
    Module names are spelled with ``_``; a ``-`` in a name is accepted for it.
    """

    def __init__(self, *, kind: str, package: str, attribute: str, group: str) -> None:
        self.kind, self.package, self.attribute, self.group = kind, package, attribute, group

    @cached_property
    def _builtin(self) -> frozenset[str]:
        path = importlib.import_module(self.package).__path__
        return frozenset(
            info.name for info in pkgutil.iter_modules(path) if not info.ispkg and not info.name.startswith("_")
        )

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
        return tuple(sorted(self._builtin | set(self._plugins)))

    def get(self, name: str) -> T:
        """The part of that name, imported now. Raises ``UnknownNameError`` with the closest names."""
        wanted = name.replace("-", "_")
        if wanted in self._builtin:
            part: Any = getattr(importlib.import_module(f"{self.package}.{wanted}"), self.attribute)
        elif wanted in self._plugins:
            part = self._plugins[wanted].load()
        else:
            raise UnknownNameError(self.kind, name, self.names())
        return part  # type: ignore[no-any-return]  # the attribute's type is the folder's contract
