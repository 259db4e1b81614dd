"""Names for shell completion."""

from __future__ import annotations

MTEB = "mteb:"
"""Begins the name of a task of mteb."""


def complete_task(incomplete: str) -> list[str]:
    """Catalogue names that begin like what was typed; after ``mteb:`` names of mteb's tasks."""
    from embeval.tasks import catalog

    if incomplete.startswith(MTEB):
        typed = incomplete.removeprefix(MTEB)
        return [incomplete + name[len(typed) :] for name in _of_mteb() if name.casefold().startswith(typed.casefold())]
    # What was typed stays as it is, since shells drop a completion that doesn't begin with it; the catalogue doesn't
    # mind upper and lower case.
    names = [spec.name for spec in catalog.specs() if spec.name.casefold().startswith(incomplete.casefold())]
    of_mteb = [MTEB] if incomplete and MTEB.startswith(incomplete) else []
    return [*(incomplete + name[len(incomplete) :] for name in names), *of_mteb]


def _of_mteb() -> list[str]:
    """mteb's tasks of texts, sorted: by the files of its statistics, since it takes seconds to import."""
    from importlib.util import find_spec
    from pathlib import Path

    found = find_spec("mteb")
    folders = found.submodule_search_locations if found is not None else None
    files = (file for folder in folders or () for file in Path(folder).glob("descriptive_stats/*/*.json"))
    return sorted(file.stem for file in files)


def complete_model(incomplete: str) -> list[str]:
    """Models that need no download."""
    return [name for name in ("demo", "hashing") if name.startswith(incomplete)]


def complete_board(incomplete: str) -> list[str]:
    """Boards below leaderboards."""
    from embeval.workflows.boards import finding

    return [path.parent.name for path in finding.there() if path.parent.name.startswith(incomplete)]
