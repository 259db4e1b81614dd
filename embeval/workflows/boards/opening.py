"""A board to be looked at: made of its results, or where these aren't there as it was built."""

from __future__ import annotations

from dataclasses import dataclass

from embeval.core.paths import expanded
from embeval.leaderboard import definition, snapshot
from embeval.leaderboard.definition import Definition
from embeval.leaderboard.snapshot import Snapshot
from embeval.workflows.boards import building, finding, gathering


@dataclass(frozen=True)
class Opened:
    """A board."""

    made: Snapshot
    """All that it shows."""
    why: str | None = None
    """Why it is shown as it was built before; None: it was made of its results just now."""


def opened(given: str) -> Opened:
    """The board that is named as ``finding.find`` takes it, or by a ``board.json``.

    Raises what building raises, also where there are no results and it was never built.
    """
    path = expanded(given)
    if path.suffix == ".json" and path.is_file():
        return Opened(snapshot.load(path), f"{path}.")
    return defined(definition.load(finding.find(given)))


def defined(found: Definition) -> Opened:
    """The board of a definition, as ``opened`` gives it."""
    if gathering.at_hand(found) or not found.output("json").is_file():
        return Opened(building.snapshot(found))
    return Opened(snapshot.load(found.output("json")), "the results aren't here.")
