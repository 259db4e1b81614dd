"""Names for shell completion."""

from __future__ import annotations


def complete_task(incomplete: str) -> list[str]:
    """Catalogue names that begin like what was typed."""
    from embeval.tasks import catalog

    # What was typed stays as it is, since shells drop a completion that doesn't begin with it; the catalogue doesn't
    # mind upper and lower case.
    names = [spec.name for spec in catalog.specs() if spec.name.casefold().startswith(incomplete.casefold())]
    return [incomplete + name[len(incomplete) :] for name in names]


def complete_model(incomplete: str) -> list[str]:
    """Models that need no download."""
    return [name for name in ("demo", "hashing") if name.startswith(incomplete)]
