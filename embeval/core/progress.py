"""How long work tells how far it is, without knowing who watches."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A watcher of one piece of work after another. The command line has a bar and a plain one."""

    def start(self, label: str, total: int, unit: str) -> None:
        """A piece of work begins: ``total`` ``unit``s of it are to be done."""

    def advance(self, amount: int) -> None:
        """Some of it is done."""

    def finish(self) -> None:
        """All of it is done."""

    def note(self, text: str) -> None:
        """A sentence on the work, such as how long it is going to take."""


class Silent:
    """Progress that nobody watches."""

    def start(self, label: str, total: int, unit: str) -> None:
        """Does nothing."""

    def advance(self, amount: int) -> None:
        """Does nothing."""

    def finish(self) -> None:
        """Does nothing."""

    def note(self, text: str) -> None:
        """Does nothing."""
