"""Names for shell completion."""

from __future__ import annotations


def complete_task(incomplete: str) -> list[str]:
    """Catalogue names that begin like what was typed."""
    from embeval.tasks import catalog

    names = [spec.name for spec in catalog.specs()]
    return [name for name in names if name.casefold().startswith(incomplete.casefold())]


def complete_model(incomplete: str) -> list[str]:
    """Models that need no download."""
    return [name for name in ("demo", "hashing") if name.startswith(incomplete)]
