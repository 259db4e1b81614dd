"""From the words that a user types to specs: ``demo,truncate_dim=128`` or ``sts:pairs/test.jsonl``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embeval.core import border
from embeval.core.paths import expanded
from embeval.core.protocols import Task
from embeval.core.specs import ModelSpec, TaskSpec
from embeval.data import beir, files
from embeval.encoders.loading import BACKENDS, named
from embeval.errors import ConfigError, DataError, UnknownNameError, UsageError
from embeval.tasks import TASK_TYPES, catalog

if TYPE_CHECKING:
    from embeval.mteb_bridge.names import Filters

MTEB = "mteb"
"""The type of mteb's own tasks, and the key of an entry that names them."""
_NEXT_SETTING = re.compile(r",(?=[A-Za-z_][\w.]*=)")


def split_settings(text: str) -> tuple[str, dict[str, Any]]:
    """``head,key=value,…`` into head and settings.

    Values are read as YAML reads them (``128``, ``true``, ``[7, 9]``); ``columns.score=gold`` sets a key within one.
    """
    import yaml

    if "\0" in text:
        raise ConfigError(f"{text!r} is no name: it holds a NUL character.")
    head, *pieces = _NEXT_SETTING.split(text)
    settings: dict[str, Any] = {}
    for piece in pieces:
        key, _, value = piece.partition("=")
        *outer, last = key.split(".")
        inside = settings
        for name in outer:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise ConfigError(f"{name!r} is set twice in {text!r}.")
        if last in inside:
            raise ConfigError(f"{key!r} is set twice in {text!r}.")
        try:
            inside[last] = yaml.safe_load(value)
        except yaml.YAMLError:
            inside[last] = value
    return head, settings


def parse_model(text: str) -> ModelSpec:
    """A model from ``[BACKEND:]NAME[,key=value…]``. Raises ``ConfigError`` for unknown keys.

    ``hashing`` and ``bm25`` alone are the systems of these names. Keys that are no field of a model are options of the
    backend.
    """
    head, settings = split_settings(text)
    backend, name = named(head)
    settings = {"name": name, **({} if backend is None else {"backend": backend}), **settings}
    if not settings["name"]:
        raise ConfigError(f"{text!r} names no model.")
    known = [field.name for field in fields(ModelSpec)]
    others = [key for key in settings if key not in known]
    # A backend is imported for its options only where some are given: that takes longer than comparing two results.
    options = BACKENDS.get(str(settings.get("backend", "sentence_transformers"))).options if others else ()
    args = {}
    for key in others:
        if key not in options:
            raise ConfigError(f"model {text!r}: {border.unknown_key((key,), [*known, *options])}")
        args[key] = settings.pop(key)
    return model_from({**settings, "args": args} if args else settings, where=f"model {text!r}")


def model_from(value: Mapping[str, Any], *, where: str) -> ModelSpec:
    """A model from the keys of a mapping. Raises ``ConfigError`` that starts with ``where``.

    A name that says the backend, such as ``bm25``, needs no ``backend``.
    """
    if "backend" not in value and isinstance(value.get("name"), str):
        backend, name = named(value["name"])
        value = value if backend is None else {**value, "backend": backend, "name": name}
    try:
        spec = border.load(ModelSpec, dict(value))
    except border.BorderError as error:
        raise ConfigError(f"{where}: {error.problems[0]}", key=error.problems[0].path) from None
    try:
        BACKENDS.refuse_unknown(spec.backend)
    except UnknownNameError as error:
        raise ConfigError(f"{where}: {error}", key=("backend",)) from None
    return spec


def parse_tasks(
    text: str, *, root: Path, data: Path | None, mirror: Path | None = None, filters: Filters | None = None
) -> list[Task[Any]]:
    """The tasks that a word stands for: as ``parse_task``, and several for ``mteb:NAME``.

    ``mirror`` is the folder that data of mteb is read from, and ``filters`` say which tasks of mteb are kept.
    """
    head, settings = split_settings(text)
    kind, colon, name = head.partition(":")
    if colon and kind == MTEB:
        entry = {**settings, MTEB: name}
        return _of_mteb(entry, root=root, mirror=mirror, filters=filters)
    return [_parsed(head, settings, root, data)]


def tasks_from(
    entry: Mapping[str, Any],
    *,
    root: Path,
    data: Path | None,
    mirror: Path | None = None,
    filters: Filters | None = None,
) -> list[Task[Any]]:
    """The tasks that the keys of a mapping stand for: as ``task_from``, and several for ``{mteb: NAME}``."""
    if MTEB in entry:
        return _of_mteb(entry, root=root, mirror=mirror, filters=filters)
    return [task_from(entry, root=root, data=data)]


def parse_task(text: str, *, root: Path, data: Path | None, mirror: Path | None = None) -> Task[Any]:
    """A task from a catalogue name, ``mteb:NAME`` or ``[TYPE:]PATH``, each with ``,key=value…`` for its options.

    ``root`` is where relative paths start, ``data`` the folder that holds the data of catalogue tasks. Raises
    ``UsageError`` for a name that stands for several.
    """
    found = parse_tasks(text, root=root, data=data, mirror=mirror)
    if len(found) > 1:
        raise UsageError(f"{text!r} stands for {len(found)} tasks, and one is needed here.")
    return found[0]


def _parsed(head: str, settings: Mapping[str, Any], root: Path, data: Path | None) -> Task[Any]:
    kind, colon, path = head.partition(":")
    if colon and kind.replace("-", "_") in TASK_TYPES.names():
        return task_from({"type": kind.replace("-", "_"), "data": path, **settings}, root=root, data=data)
    if (spec := catalog.find(head)) is not None:
        return task_from({"name": spec.name, **settings}, root=root, data=data)
    if (root / head).exists() or "/" in head or Path(head).suffix:
        return task_from({"data": head, **settings}, root=root, data=data)
    known = [spec.name for spec in catalog.specs()]
    raise UnknownNameError("task", head, known, hint="Nor is there a file or folder of that name.")


def _of_mteb(entry: Mapping[str, Any], **options: Any) -> list[Task[Any]]:
    from embeval.workflows import mteb_entries  # what compares stored results doesn't need it

    return mteb_entries.tasks_from(entry, **options)


DESCRIPTION_KEYS = ("main_score", "languages", "license", "citation", "version")
TASK_KEYS = ("name", "type", "data", "split", *DESCRIPTION_KEYS)
"""What every entry of ``tasks`` may say; the rest are options of its type."""


def task_from(entry: Mapping[str, Any], *, root: Path, data: Path | None) -> Task[Any]:
    """A task from the keys of a mapping; ``type`` and ``name`` are found from the data where they are left out."""
    if entry.get("type") == MTEB or MTEB in entry:
        raise ConfigError("A task of mteb is named by {mteb: NAME}, with no other 'name', 'type' or 'data'.", ("type",))
    options = {key: value for key, value in entry.items() if key not in TASK_KEYS}
    known = catalog.find(entry["name"]) if isinstance(entry.get("name"), str) and "data" not in entry else None
    if known is not None:
        return _from_catalog(known, entry, options, data)
    if "data" in entry and not (isinstance(entry["data"], str) and entry["data"]):
        raise ConfigError(f"'data' must be the path of a file or folder, not {entry['data']!r}.", key=("data",))
    if "data" not in entry:
        if isinstance(entry.get("name"), str):
            names = [spec.name for spec in catalog.specs()]
            raise UnknownNameError(
                "task", entry["name"], names, hint="For data of your own, say where it is: 'data: …'."
            )
        raise ConfigError("A task needs 'data' (a file or folder) or the 'name' of a task from the catalogue.")
    if not isinstance(name := entry.get("name", ""), str):
        raise ConfigError(f"'name' must be text, not {name!r}.", key=("name",))
    path = root / expanded(entry["data"])
    kind = entry.get("type") or _guess_type(path)
    name, split = _guess_name(path, kind, options)
    value = {
        "name": entry.get("name", name),
        "type": kind,
        "dataset": {"path": entry["data"], "split": entry.get("split", split)},
        "options": options,
        **{key: entry[key] for key in DESCRIPTION_KEYS if key in entry},
    }
    return _bind(value, root)


def _from_catalog(known: TaskSpec, entry: Mapping[str, Any], options: dict[str, Any], data: Path | None) -> Task[Any]:
    if (wanted := entry.get("type", known.type)) != known.type:
        raise ConfigError(f"Task {known.name!r} of the catalogue is of type {known.type!r}, not {wanted!r}.")
    value = border.dump(known)
    value["options"] = {**value["options"], **options}
    split = value["dataset"]["split"] = entry.get("split", known.dataset.split)
    file = Path(known.dataset.path)
    if split != known.dataset.split and file.suffix and isinstance(split, str):
        if not files.names_split(file):
            raise ConfigError(
                f"Task {known.name!r} has one split, {known.dataset.split!r}, and not {split!r}.", key=("split",)
            )
        value["dataset"]["path"] = str(files.of_split(file, split))
    for key in DESCRIPTION_KEYS:
        if key in entry:
            value[key] = entry[key]
    if (package := catalog.package_folder(known.dataset.path)) is not None:
        value["dataset"]["path"] = known.dataset.path.removeprefix(catalog.IN_PACKAGE)
        return _bind(value, package)
    if data is None:
        raise DataError(
            f"Task {known.name!r} needs its data, which is not part of the package.\n"
            f"Say where it is with --data DIR (or EMBEVAL_DATA): DIR/{value['dataset']['path']}. "
            f"See 'embeval tasks show {known.name}'."
        )
    return _bind(value, data)


def _bind(value: dict[str, Any], root: Path) -> Task[Any]:
    if not isinstance(value["type"], str):
        raise ConfigError(f"Task {value['name']!r}: 'type' must be text, not {value['type']!r}.", key=("type",))
    try:
        task_type = TASK_TYPES.get(value["type"])
    except UnknownNameError as error:
        raise ConfigError(f"Task {value['name']!r}: {error}", key=("type",)) from None
    known = [*TASK_KEYS, *(field.name for field in fields(task_type.options))]
    for key in value["options"]:
        if key not in known:
            problem = border.unknown_key((key,), known)
            raise ConfigError(f"Task {value['name']!r} ({value['type']}): {problem}", key=problem.path)
    try:
        spec = border.load(TaskSpec, value)
    except border.BorderError as error:
        problem = error.problems[0]
        # In an entry, what belongs to the data set stands beside the rest.
        where = problem.path[1:] if problem.path[:1] == ("dataset",) else problem.path
        raise ConfigError(f"Task {value['name']!r}: {border.Problem(where, problem.text)}", key=where) from None
    return task_type.bind(spec, root=root)


def _guess_type(path: Path) -> str:
    if beir.is_beir(path):
        return "retrieval"
    if path.is_dir():
        raise ConfigError(
            f"{path}: this folder holds no corpus.jsonl, so its task type isn't clear. Say it with "
            f"'type', or on the command line: classification:{path}."
        )
    if not path.exists():
        raise DataError(f"{path}: no such file or folder.")
    first = next(iter(files.rows(path)))
    if {"sentence1", "sentence2", "score"} <= set(first.values):
        return "sts"
    raise ConfigError(
        f"{path}: the columns {', '.join(map(repr, first.values))} don't tell what kind of task this is.\n"
        f"Say it with 'type' ({', '.join(TASK_TYPES.names())}), as in sts:{path.name}."
    )


def _guess_name(path: Path, kind: Any, options: Mapping[str, Any]) -> tuple[str, str]:
    """Name and split. Where one file serves several rulers, they say what is put behind its name."""
    if kind == "retrieval" or path.is_dir():
        name, split = path.resolve().name, "test"
    else:
        name, split = path.name.split(".")[0], "test"
        if files.names_split(path):
            name, split = path.resolve().parent.name, name
    ruler = getattr(TASK_TYPES.get(kind), "ruler", None) if kind in TASK_TYPES.names() else None
    return (name if ruler is None else f"{name}-{ruler(options)}"), split


def refuse_same_models(models: Sequence[ModelSpec]) -> None:
    """Raises ``ConfigError`` where a model is asked for twice."""
    for number, model in enumerate(models):
        if model in models[:number]:
            raise ConfigError(f"The model {model.label!r} is named twice, with the same settings.", key=(number,))


def each_once(tasks: Iterable[Task[Any]]) -> list[Task[Any]]:
    """The tasks without those of mteb that came up before, as in a benchmark and by their own name."""
    found: list[Task[Any]] = []
    for task in tasks:
        if task.spec.type != MTEB or all(task.spec != other.spec for other in found):
            found.append(task)
    return found


def refuse_same_names(tasks: Sequence[Task[Any]]) -> None:
    """Raises ``ConfigError`` where two tasks would write to one folder of results."""
    seen: dict[tuple[str, str], str] = {}
    for number, task in enumerate(tasks):
        key = (task.spec.name, task.spec.dataset.split)
        if key in seen and task.spec.type == MTEB:
            raise ConfigError(
                f"{task.spec.name} ({task.spec.dataset.split}) is asked for twice, with other options or sub-sets. "
                "Evaluate the two into different folders (--results).",
                key=(number,),
            )
        if key in seen:
            raise ConfigError(
                f"Two tasks are called {task.spec.name!r} ({seen[key]} and {task.spec.dataset.path}). "
                "Name them in embeval.yaml, or with ,name=… on the command line.",
                key=(number,),
            )
        seen[key] = task.spec.dataset.path
