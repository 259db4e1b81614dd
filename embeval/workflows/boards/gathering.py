"""Which results a board is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from embeval.core.paths import seen_from_here
from embeval.core.result import Result
from embeval.core.words import plural
from embeval.errors import DataError, MissingPackageError, StoreError
from embeval.leaderboard.board import RowKey
from embeval.leaderboard.definition import Definition
from embeval.store.pins import Tag
from embeval.store.results import ResultStore, Stored
from embeval.store.tags import Tags
from embeval.workflows.boards import choosing

LAYOUT = "They lie in results/<org>__<model>/<revision>/<task>.json."
"""Where mteb puts its results."""


@dataclass(frozen=True)
class Gathered:
    """Results with where they lie."""

    results: tuple[Result, ...]
    """Results of the models that are shown, in the order of the folders and of their paths."""
    places: Mapping[int, tuple[ResultStore, Stored]]
    """``id`` of a result -> where it lies; imported ones that lie nowhere are left out."""
    broken: tuple[str, ...] = ()
    """One message for each file that can't be read and each tagged result that has changed, paths as in the file."""
    everything: tuple[Result, ...] = ()
    """All results of the folders, also of models and revisions that are not shown."""
    tags: Mapping[str, Tag] = field(default_factory=dict)
    """Tags of the folders; of several of one name the first."""
    notes: tuple[str, ...] = ()
    """What a reader should know of the choice, as sentences."""


def at_hand(definition: Definition) -> bool:
    """Whether the folders that a board is made from are all there, as they may not be beside committed pages."""
    board = definition.board
    return all(definition.folder(given).is_dir() for given in (*board.results, *board.imported))


def gather(definition: Definition) -> Gathered:
    """The results that a definition asks for.

    Raises ``ConfigError`` for a folder that isn't there and a name that fits nothing, ``StoreError`` where there is
    no result at all or the tags can't be read, ``MissingPackageError`` where published ones can't be read without mteb.
    """
    broken: list[str] = []
    found: list[tuple[ResultStore, Stored]] = []
    tags: dict[str, Tag] = {}
    for place, given in enumerate(definition.board.results):
        store = ResultStore(_there(definition, "results", place, given, "'embeval run' writes results."))
        told: list[str] = []
        found += [(store, each) for each in store.find(broken=told)]
        tags = {**Tags(store.root).all(), **tags}
        broken += [message.replace(str(store.root), given) for message in told]
    published = list(_published(definition, broken))
    everything = (*(stored.result for _, stored in found), *published)
    if not everything:
        folders = ", ".join((*definition.board.results, *definition.board.imported))
        raise StoreError(broken[0] if broken else f"{definition.path}: there are no results in {folders}.")
    shown = _tagged(definition, found, tags, broken) if definition.board.tags else found
    shown, notes = _newest(shown) if len(definition.board.results) > 1 else (shown, ())
    results = [*(stored.result for _, stored in shown), *published]
    return Gathered(
        tuple(_of_models(definition, results)),
        {id(stored.result): (store, stored) for store, stored in shown},
        tuple(broken),
        everything,
        tags,
        notes,
    )


def _of_models(definition: Definition, results: list[Result]) -> list[Result]:
    """The results of the models that the board shows."""
    if not definition.board.models:
        return results
    keys = [RowKey.of(each) for each in results]
    wanted = choosing.models(definition, choosing.model_names(keys))
    return [each for key, each in zip(keys, results, strict=True) if key in wanted]


def _there(definition: Definition, key: str, place: int, given: str, remedy: str) -> Path:
    folder = definition.folder(given)
    if not folder.is_dir():
        what = "not a folder" if folder.exists() else "no such folder"
        start = f"Paths start at {seen_from_here(definition.path.parent)}."
        raise definition.wrong((key, place), f"{seen_from_here(folder)}: {what}. {start} {remedy}")
    return folder


def _tagged(
    definition: Definition, found: list[tuple[ResultStore, Stored]], tags: Mapping[str, Tag], broken: list[str]
) -> list[tuple[ResultStore, Stored]]:
    """The results that tags of the board pin and that still are what was tagged; the others are told."""
    for place, name in enumerate(definition.board.tags):
        if name not in tags:
            raise definition.wrong(("tags", place), f"no tag {name!r} in these folders. {choosing.known(tags, name)}")
    pinned = set[Path]()
    for given in definition.board.results:
        of_folder = Tags(definition.folder(given))
        for name in set(definition.board.tags) & set(of_folder.all()):
            held, problems = of_folder.held(name)
            pinned.update(held)
            broken += [message.replace(str(of_folder.root), given) for message in problems]
    return [(store, stored) for store, stored in found if stored.path in pinned]


def _newest(
    found: list[tuple[ResultStore, Stored]],
) -> tuple[list[tuple[ResultStore, Stored]], tuple[str, ...]]:
    """Of each measurement the newest, where several folders hold it; (those, how many were passed over)."""
    newest: dict[tuple[object, ...], tuple[ResultStore, Stored]] = {}
    for each in found:
        result = each[1].result
        measured = (
            RowKey.of(result),
            result.task.name,
            result.split,
            result.subset,
            result.signature.protocol_digest,
            result.status,
        )
        before = newest.get(measured)
        if before is None or result.started_at > before[1].result.started_at:
            newest[measured] = each
    passed = len(found) - len(newest)
    note = f"{plural(passed, 'result')} passed over: another folder holds the same measurement, made later."
    return list(newest.values()), (note,) if passed else ()


def _published(definition: Definition, broken: list[str]) -> Iterator[Result]:
    """Published results of mteb, read from their files; those that can't be read are told."""
    given = definition.board.imported
    if given and find_spec("mteb") is None:
        raise MissingPackageError("mteb", "", f"{definition.path}: reading published results ('imported')")
    for number, name in enumerate(given):
        folder = _there(definition, "imported", number, name, "Give a folder of mteb's results.")
        n_read = 0
        for result in _read(definition, folder, name, broken):
            n_read += 1
            yield result
        if not n_read:
            raise definition.wrong(
                ("imported", number), f"{seen_from_here(folder)}: no result of mteb there that fits. {LAYOUT}"
            )


def _read(definition: Definition, folder: Path, given: str, broken: list[str]) -> Iterator[Result]:
    from embeval.mteb_bridge.exchange import from_mteb, layout

    for place in layout.places(folder):
        if not (_may_be_shown(definition, place.model) and _may_be_asked(definition, place.file.stem)):
            continue
        try:
            if from_mteb.names_a_task(place.file):
                yield from from_mteb.read(place, folder)
        except DataError as error:
            broken.append(str(error).replace(str(folder), given))


def _may_be_shown(definition: Definition, model: str) -> bool:
    """Whether patterns of models leave it open that a published one is shown: a folder may hold thousands of files."""
    short = model.rpartition("/")[2]
    heads = [pattern.split("*")[0].split(" (")[0].casefold() for pattern in definition.board.models]
    names = [name.casefold() for name in (model, short)]
    return not heads or any(name.startswith(head) or head.startswith(name) for head in heads for name in names)


def _may_be_asked(definition: Definition, task: str) -> bool:
    """Whether the tasks of the board leave it open that a published result is shown, likewise."""
    words = [each.task for each in definition.shown]
    if not words or any("*" in word or word.startswith(choosing.MTEB) for word in words):
        return True
    return task.casefold() in (word.casefold() for word in words)
