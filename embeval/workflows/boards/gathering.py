"""Which results a board is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from embeval.core.result import Result
from embeval.errors import ConfigError
from embeval.leaderboard.definition import Definition
from embeval.store.results import ResultStore, Stored


@dataclass(frozen=True)
class Gathered:
    """Results with where they lie."""

    results: tuple[Result, ...]
    """Results, in the order of the folders and of their paths."""
    places: Mapping[int, tuple[ResultStore, Stored]]
    """``id`` of a result -> where it lies; imported ones that lie nowhere are left out."""
    broken: tuple[str, ...] = ()
    """One message for each file that can't be read."""


def gather(definition: Definition) -> Gathered:
    """The results that a definition asks for. Raises ``ConfigError`` for a folder that isn't there."""
    found: list[tuple[ResultStore, Stored]] = []
    broken: list[str] = []
    for given in definition.board.results:
        folder = definition.folder(given)
        if not folder.is_dir():
            raise ConfigError(f"{definition.path}: no folder of results at {folder}. 'embeval run' writes one.")
        store = ResultStore(folder)
        found += [(store, each) for each in store.find(broken=broken)]
    return Gathered(
        tuple(stored.result for _, stored in found),
        {id(stored.result): (store, stored) for store, stored in found},
        tuple(broken),
    )
