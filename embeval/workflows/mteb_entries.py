"""From ``{mteb: Name, …}`` to bound tasks: one for each split of each task that the name stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from embeval.core import border
from embeval.core.border import BORDER
from embeval.core.protocols import Task
from embeval.core.specs import DatasetRef, TaskSpec
from embeval.errors import ConfigError
from embeval.mteb_bridge import names
from embeval.mteb_bridge.categories import Parity
from embeval.mteb_bridge.names import Evaluation, Filters
from embeval.tasks import TASK_TYPES
from embeval.tasks._retrieval_options import RerankOptions
from embeval.workflows import requests

KIND = requests.MTEB
"""The type of these tasks, and the key of an entry that names them."""


@dataclass(frozen=True, kw_only=True)
class MtebEntry:
    """What an entry says of tasks of mteb."""

    __pydantic_config__ = BORDER

    mteb: str
    """A task or benchmark of mteb by its name, or tasks by a pattern such as `STS*`."""
    types: tuple[str, ...] = ()
    """Only tasks of these types, such as `PairClassification`."""
    languages: tuple[str, ...] = ()
    """Only tasks, and of these the sub-sets, in these languages (ISO 639-3)."""
    domains: tuple[str, ...] = ()
    """Only tasks of these domains, such as `Legal`."""
    splits: tuple[str, ...] | None = None
    """Splits to evaluate; null: those that mteb does."""
    subsets: tuple[str, ...] | None = None
    """Sub-sets to evaluate, such as `de`; null: all that a task has."""
    parity: Parity = "embeval"
    """Whose value stands for a task where mteb's is wrong: `embeval` or `mteb`."""
    main_score: str | None = None
    """The metric that stands for the tasks in tables; null: mteb's."""
    mirror: str | None = None
    """Folder that their data is read from instead of the hub, relative to this file."""
    rerank: RerankOptions | str | None = None
    """For retrieval and reranking: a cross-encoder that orders the first candidates anew, by name or settings."""


def tasks_from(
    entry: Mapping[str, Any], *, root: Path, mirror: Path | None = None, filters: Filters | None = None
) -> list[Task[Any]]:
    """The tasks of an entry. ``filters`` hold for all entries, ``mirror`` for those that name none.

    A value that should be a list may be one name. Raises ``ConfigError`` for a key or value that there is not and where
    nothing is left, ``UnknownNameError`` for a name.
    """
    asked = _read(entry)
    own = Filters(types=asked.types, languages=asked.languages, domains=asked.domains)
    every = (own,) if filters is None else (own, filters)
    folder = asked.mirror or (None if mirror is None else str(mirror))
    found = names.expand(asked.mteb, *every, splits=asked.splits, subsets=asked.subsets)
    return [_bound(each, asked, folder, root) for each in found]


def words(text: str, there: Iterable[str] = ()) -> list[str]:
    """``mteb:NAME`` as one word for each task that the name stands for, each as ``run -t`` takes it.

    A word that isn't of mteb stays as it is, and so does one that fits the name of a task that is ``there``.
    """
    found = [] if _fits(text, there) else _parsed(text)
    return [text] if len(found) < 2 else [_word(task.spec) for task in found]


def filed_under(text: str, there: Iterable[str]) -> list[str]:
    """Those ``there`` that results of the tasks which a word stands for are filed under; a word that fits one as it is.

    A word that stands for none that is there stays as it is, too.
    """
    found = [] if _fits(text, there) else [task.spec.name for task in _parsed(text)]
    return sorted({*found} & {*there}) or [text]


def _fits(text: str, there: Iterable[str]) -> bool:
    return not text.startswith(f"{KIND}:") or any(text.casefold() in name.casefold() for name in there)


def _parsed(text: str) -> list[Task[Any]]:
    return requests.parse_tasks(text, root=Path(), data=None)


def _word(spec: TaskSpec) -> str:
    settings: dict[str, Any] = {"splits": spec.dataset.split, "main_score": spec.main_score, **spec.options}
    if isinstance(rerank := settings.get("rerank"), Mapping):
        settings |= {"rerank": None, **{f"rerank.{key}": value for key, value in rerank.items()}}
    told = [
        f"{key}=[{', '.join(value)}]"
        if isinstance(value, Sequence) and not isinstance(value, str)
        else f"{key}={value}"
        for key, value in settings.items()
        if value is not None
    ]
    return ",".join([spec.name, *told])


def _read(entry: Mapping[str, Any]) -> MtebEntry:
    lists = ("types", "languages", "domains", "splits", "subsets")
    known = [field.name for field in fields(MtebEntry)]
    name = entry.get(KIND)
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"'{KIND}' must be the name of a task or benchmark of mteb, not {name!r}.", key=(KIND,))
    for key in entry:
        if key not in known:
            raise ConfigError(f"mteb:{name}: {border.unknown_key((key,), known)}", key=(key,))
    value = {key: [each] if key in lists and isinstance(each, str) else each for key, each in entry.items()}
    for key in lists:
        if value.get(key) == []:
            raise ConfigError(f"mteb:{name}: {key} must name at least one.", key=(key,))
    try:
        return border.load(MtebEntry, {**value, KIND: name.strip()})
    except border.BorderError as error:
        raise ConfigError(f"mteb:{name}: {error.problems[0]}", key=error.problems[0].path) from None


def _told(rerank: RerankOptions) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    given, plain = border.dump(rerank), border.dump(RerankOptions(model=rerank.model))
    return {key: value for key, value in given.items() if key == "model" or value != plain[key]}


def _bound(found: Evaluation, asked: MtebEntry, mirror: str | None, root: Path) -> Task[Any]:
    options: dict[str, Any] = {"subsets": None if found.subsets is None else list(found.subsets), "mirror": mirror}
    options |= {"parity": asked.parity} if asked.parity != "embeval" else {}
    options["rerank"] = _told(asked.rerank) if isinstance(asked.rerank, RerankOptions) else asked.rerank
    spec = TaskSpec(
        name=f"{KIND}:{found.name}",
        type=KIND,
        dataset=DatasetRef(path=found.name, split=found.split),
        options={name: value for name, value in options.items() if value is not None},
        main_score=asked.main_score,
        languages=found.languages,
        license=found.license,
        citation=found.citation,
        category=found.type,
    )
    return TASK_TYPES.get(KIND).bind(spec, root=root)
