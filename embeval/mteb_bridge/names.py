"""From names of mteb's tasks and benchmarks, and filters, to the splits and sub-sets that are to be evaluated."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from embeval.errors import ConfigError, UnknownNameError
from embeval.mteb_bridge import door

WHERE = "'embeval tasks list --mteb' lists them."
"""Where all names are found."""


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which tasks are kept. Empty: all; several of one kind: any of them."""

    types: tuple[str, ...] = ()
    """Types as mteb calls them, such as `STS` or `PairClassification`; case, `-` and `_` don't count."""
    languages: tuple[str, ...] = ()
    """ISO 639-3 codes (`deu`), also with a script (`deu-Latn`). Of a task only sub-sets in one of them are kept."""
    domains: tuple[str, ...] = ()
    """Domains as mteb calls them, such as `Legal`."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One split of a task."""

    name: str
    """The task, as mteb spells it."""
    split: str
    """The split."""
    subsets: tuple[str, ...] | None
    """The sub-sets; None: all that the task has."""
    languages: tuple[str, ...]
    """ISO 639-3 codes."""
    license: str | None
    """Licence of the data."""
    citation: str | None
    """Where the data was published."""
    type: str
    """Kind of task, as mteb calls it: ``Retrieval``, ``STS``."""


def expand(
    name: str,
    *filters: Filters,
    splits: Collection[str] | None = None,
    subsets: Collection[str] | None = None,
) -> tuple[Evaluation, ...]:
    """What a task, a benchmark, or a pattern such as ``STS*`` comes to, each task of it once.

    An aggregate such as CQADupstackRetrieval comes to its tasks. What fits all ``filters`` is kept; ``splits``
    replaces those that mteb evaluates, and ``subsets`` keeps these only. Raises ``UnknownNameError`` for a name, type,
    language, domain or sub-set that there is not, and ``ConfigError`` where nothing is left.
    """
    tasks = named(name)
    for each in filters:
        if not (tasks := kept(tasks, each)):
            raise ConfigError(f"mteb:{name}: no task of {_spelled(each)}.")
    if subsets is not None:
        tasks = _with_subsets(name, tasks, subsets)
    return tuple(
        Evaluation(
            name=metadata.name,
            split=split,
            subsets=None if set(task.hf_subsets) == set(metadata.hf_subsets) else tuple(task.hf_subsets),
            languages=tuple(metadata.languages),
            license=metadata.license,
            citation=None if metadata.reference is None else str(metadata.reference),
            type=metadata.type,
        )
        for task in tasks
        for metadata in [task.metadata]
        for split in (task.eval_splits if splits is None else splits)
    )


def named(name: str) -> list[Any]:
    """The tasks (new objects of mteb) that a name or a pattern stands for; aggregates as their tasks."""
    library = door.library()
    with door.quiet():
        if "*" in name:
            found = [task for task in _usual() if fnmatchcase(task.metadata.name.casefold(), name.casefold())]
            if not found:
                raise UnknownNameError("mteb task", name, (), hint=f"No task fits this pattern; {WHERE}")
        elif (task_name := _tasks().get(_plain(name))) is not None:
            found = [library.get_task(task_name)]
        elif (benchmark := _benchmarks().get(_plain(name))) is not None:
            found = list(library.get_benchmark(benchmark).tasks)
        else:
            raise UnknownNameError("mteb task or benchmark", name, [*_tasks().values(), *benchmarks()], hint=WHERE)
        unique = {task.metadata.name: task for each in found for task in _parts(each)}
        return list(unique.values())


def kept(tasks: Iterable[Any], filters: Filters) -> list[Any]:
    """Those of the tasks that fit; of tasks with several languages only the sub-sets that do."""
    fits = _fitting(filters)
    found = []
    with door.quiet():
        for task in tasks:
            if not fits(task.metadata):
                continue
            if filters.languages:
                spoken = task.metadata.hf_subsets_to_langscripts
                task.hf_subsets = [each for each in task.hf_subsets if _speaks(spoken[each], filters.languages)]
            if task.hf_subsets:
                found.append(task)
    return found


def every(filters: Filters) -> list[Any]:
    """All tasks of texts that are public and not superseded, filtered, by name."""
    with door.quiet():
        return kept(sorted(_usual(), key=lambda task: str(task.metadata.name)), filters)


def benchmarks() -> tuple[str, ...]:
    """Names of the benchmarks, sorted."""
    with door.quiet():
        return tuple(sorted(each.name for each in door.library().get_benchmarks()))


def _parts(task: Any) -> list[Any]:
    """The tasks of an aggregate, in the splits of the aggregate; a task that is none as it is. All are copies.

    mteb's benchmarks hand out the same objects each time, and filters change them.
    """
    if not task.is_aggregate:
        return [copy.copy(task)]
    found = [part for each in task.metadata.tasks for part in _parts(each)]
    for part in found:
        there = [split for split in part.metadata.eval_splits if split in task.eval_splits]
        part.filter_eval_splits(there or None)
    return found


def _usual() -> list[Any]:
    """What mteb itself lists, without tasks that need more than texts."""
    library = door.library()
    with door.quiet():
        found = library.get_tasks(modalities=["text"], exclusive_modality_filter=True)
    return [task for task in found if not task.is_aggregate]


@cache
def _tasks() -> dict[str, str]:
    """Plain name -> name of every task."""
    from mteb.get_tasks import _TASK_RENAMES, _TASKS_REGISTRY

    return {_plain(old): new for old, new in _TASK_RENAMES.items()} | {_plain(name): name for name in _TASKS_REGISTRY}


@cache
def _benchmarks() -> dict[str, str]:
    """Plain name or alias -> name of every benchmark."""
    found = door.library().get_benchmarks()
    aliases = {_plain(alias): each.name for each in found for alias in each.aliases or ()}
    return aliases | {_plain(each.name): each.name for each in found}


def _plain(name: str) -> str:
    """A name without what is easily got wrong: case and blanks, as in ``mteb(eng,v2)``."""
    return "".join(name.casefold().split())


def _fitting(filters: Filters) -> Callable[[Any], bool]:
    types = _known("type", filters.types)
    domains = _known("domain", filters.domains)
    _known("language", filters.languages)

    def fits(metadata: Any) -> bool:
        return (not types or metadata.type in types) and (not domains or not domains.isdisjoint(metadata.domains or ()))

    return fits


def _known(kind: str, wanted: Sequence[str]) -> set[str]:
    """The names as mteb spells them."""
    if not wanted:
        return set()
    spelled = {_bare(each): each for each in sorted(_every()[kind])}
    for name in wanted:
        if _bare(name) not in spelled:
            hint = "Languages are ISO 639-3 codes, such as deu." if kind == "language" else ""
            raise UnknownNameError(f"{kind} of mteb tasks", name, _every()[kind], hint=hint)
    return {spelled[_bare(name)] for name in wanted}


@cache
def _every() -> dict[str, frozenset[str]]:
    """Every type, domain and language that there is."""
    every = [task.metadata for task in _usual()]
    return {
        "type": frozenset(each.type for each in every),
        "domain": frozenset(domain for each in every for domain in each.domains or ()),
        "language": frozenset(code for each in every for code in _codes(each)),
    }


def _codes(metadata: Any) -> list[str]:
    """Languages with and without their script."""
    scripts = [each for langs in metadata.hf_subsets_to_langscripts.values() for each in langs]
    return [*scripts, *(each.split("-")[0] for each in scripts)]


def _speaks(scripts: Sequence[str], wanted: Sequence[str]) -> bool:
    spoken = {_bare(code) for each in scripts for code in (each, each.split("-")[0])}
    return any(_bare(each) in spoken for each in wanted)


def _bare(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


def _with_subsets(name: str, tasks: Sequence[Any], subsets: Collection[str]) -> list[Any]:
    """Those of the tasks that have one of the sub-sets, with these only."""
    there = {each for task in tasks for each in task.hf_subsets}
    for subset in subsets:
        if subset not in there:
            raise UnknownNameError(f"sub-set of mteb:{name}", subset, there)
    for task in tasks:
        task.hf_subsets = [each for each in task.hf_subsets if each in subsets]
    return [task for task in tasks if task.hf_subsets]


def _spelled(filters: Filters) -> str:
    kinds = {"type": filters.types, "language": filters.languages, "domain": filters.domains}
    return " and ".join(f"the {kind} {' or '.join(names)}" for kind, names in kinds.items() if names)
