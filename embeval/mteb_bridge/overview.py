"""What there is to choose from: mteb's tasks of texts with size, languages and licence, and its benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embeval.core.border import BORDER
from embeval.mteb_bridge import door, mirror, names
from embeval.mteb_bridge.names import Filters


@dataclass(frozen=True, kw_only=True)
class Described:
    """What mteb says of a task."""

    __pydantic_config__ = BORDER

    name: str
    """Its name, as mteb spells it."""
    type: str
    """Its type, such as ``STS``."""
    description: str
    """What it is, in a sentence or two."""
    languages: tuple[str, ...]
    """ISO 639-3 codes of what is evaluated."""
    domains: tuple[str, ...]
    """Where its texts come from, such as ``Legal``."""
    splits: tuple[str, ...]
    """Splits that mteb evaluates."""
    subsets: tuple[str, ...]
    """Its sub-sets."""
    items: int | None
    """Rows of these splits by mteb's statistics, all sub-sets; documents count too. None where mteb has none."""
    license: str | None
    """Licence of the data."""
    main_score: str
    """The metric that stands for it at mteb."""
    dataset: str
    """Its data set on the hub."""
    revision: str
    """The commit of it."""
    superseded_by: str | None
    """The task that mteb recommends instead."""
    in_mirror: bool | None
    """Whether the mirror holds its data; None: there is no mirror."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A list of tasks that mteb gives a name."""

    __pydantic_config__ = BORDER

    name: str
    """Its name."""
    tasks: int
    """How many tasks it has, the tasks of aggregates counted each."""


def tasks(filters: Filters, folder: Path | None = None) -> tuple[Described, ...]:
    """Public tasks of texts that aren't superseded, filtered, by name. ``folder`` is a mirror."""
    return described(names.every(filters), folder)


def described(found: Sequence[Any], folder: Path | None = None) -> tuple[Described, ...]:
    """What mteb says of its task objects, in their order. Raises ``DataError`` where ``folder`` is none."""
    if folder is not None:
        mirror.refuse_absent(folder)
    with door.quiet():
        return tuple(_described(task, folder) for task in found)


def benchmarks() -> tuple[Benchmark, ...]:
    """All benchmarks that are of texts alone, by name."""
    found = [(name, names.named(name)) for name in names.benchmarks()]
    return tuple(
        Benchmark(name=name, tasks=len(parts))
        for name, parts in found
        if all(set(part.metadata.modalities) == {"text"} for part in parts)
    )


def _described(task: Any, folder: Path | None) -> Described:
    metadata = task.metadata
    sizes = metadata.n_samples or {}
    known = [sizes[split] for split in task.eval_splits if split in sizes]
    return Described(
        name=metadata.name,
        type=metadata.type,
        description=" ".join(metadata.description.split()),
        languages=tuple(metadata.languages),
        domains=tuple(metadata.domains or ()),
        splits=tuple(task.eval_splits),
        subsets=tuple(task.hf_subsets),
        items=sum(known) if known else None,
        license=metadata.license,
        main_score=metadata.main_score,
        dataset=metadata.dataset["path"],
        revision=metadata.dataset["revision"],
        superseded_by=task.superseded_by or metadata.superseded_by,
        in_mirror=None if folder is None else mirror.has(folder, metadata.name),
    )
