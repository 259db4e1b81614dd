"""Progress on stderr: a bar for people, lines for logs."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINE_EVERY_S = 10.0
"""Seconds between lines in a log."""


class Bar:
    """A bar that goes away when its work is done."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def start(self, label: str, total: int, unit: str) -> None:
        """Shows the bar."""
        self._progress = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeRemainingColumn(),
            console=Console(stderr=True, markup=False, highlight=False),
            transient=True,
        )
        self._progress.start()
        self._task = self._progress.add_task(label, total=total)

    def advance(self, amount: int) -> None:
        """Moves it on."""
        if self._progress is not None:
            self._progress.advance(self._task, amount)

    def finish(self) -> None:
        """Takes it away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def note(self, text: str) -> None:
        """A line above it, which stays."""
        if self._progress is None:
            _line(text)
        else:
            self._progress.console.print(f"  {text}")


class Lines:
    """A line now and then, for logs and CI."""

    def start(self, label: str, total: int, unit: str) -> None:
        """Begins to count."""
        self._label, self._total, self._unit, self._done = label, total, unit, 0
        self._began = self._last = time.monotonic()

    def advance(self, amount: int) -> None:
        """Counts on, and speaks when it is time."""
        self._done += amount
        now = time.monotonic()
        if now - self._last >= LINE_EVERY_S and self._done:
            self._last = now
            left = (now - self._began) * (self._total - self._done) / self._done
            print(
                f"  {self._label}: {self._done}/{self._total} {self._unit}, about {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )

    def finish(self) -> None:
        """Stops counting."""

    def note(self, text: str) -> None:
        """A line of its own."""
        _line(text)


def _line(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
