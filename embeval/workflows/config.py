"""``embeval.yaml``: a whole evaluation in one file, checked to the key, every complaint with its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embeval.core import border
from embeval.core.border import BORDER, KeyPath
from embeval.core.paths import expanded
from embeval.core.protocols import Task
from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions
from embeval.core.yaml_files import line_of, read_yaml
from embeval.encoders import loading, locate
from embeval.errors import ConfigError, DataError, ModelError, UnknownNameError, UsageError
from embeval.tasks import TASK_TYPES
from embeval.workflows import mteb_entries, requests

if TYPE_CHECKING:
    from embeval.gates.policy import Policy
    from embeval.mteb_bridge.names import Filters

FILE_NAME = "embeval.yaml"
GATE = "gate"
"""The key with the policy of a release gate."""
HYBRID = "hybrid"
"""The backend whose name lists other models."""


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """The part of the file that isn't models and tasks."""

    __pydantic_config__ = BORDER

    results: str = "results"
    """Folder that results are written to."""
    data: str | None = None
    """Folder that holds the data of catalogue tasks."""
    mirror: str | None = None
    """Folder that the data of mteb's tasks is read from, without the network."""
    runtime: RuntimeOptions = field(default_factory=RuntimeOptions)
    """How models are run."""
    statistics: StatisticsOptions = field(default_factory=StatisticsOptions)
    """How uncertainty is estimated."""
    bm25: bool = True
    """Whether BM25 is evaluated as well, on every retrieval task: what a model has to beat."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a file asks for. Relative paths in it start at its own folder."""

    path: Path
    """The file."""
    models: tuple[ModelSpec, ...]
    """Models, in order."""
    tasks: tuple[Task[Any], ...]
    """Tasks, in order."""
    results: Path
    """Folder of results."""
    data: Path | None
    """Folder of the data of catalogue tasks."""
    mirror: Path | None
    """Folder of the data of mteb's tasks; None: the hub."""
    runtime: RuntimeOptions
    """How models are run."""
    statistics: StatisticsOptions
    """How uncertainty is estimated."""
    bm25: bool
    """Whether BM25 is evaluated as well."""
    gate: Policy | None = None
    """The policy of ``embeval gate``."""


def load_config(
    path: Path, *, data: Path | None = None, mirror: Path | None = None, filters: Filters | None = None
) -> Config:
    """The content of a file. Raises ``ConfigError`` with file and line.

    ``data`` and ``mirror`` override the keys of these names; ``filters`` say which of mteb's tasks are kept.
    """
    value, lines = read_yaml(path)
    root = path.resolve().parent
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: the file must hold keys such as 'models' and 'tasks'.")

    def fail(where: KeyPath, text: str) -> ConfigError:
        return ConfigError(f"{path}, line {line_of(lines, where)}: {text}")

    known = ["models", "tasks", GATE, *(each.name for each in fields(_Settings))]
    for key in value:
        if key not in known:
            raise fail((key,), str(border.unknown_key((key,), known)))
    rest = {key: value[key] for key in value if key not in ("models", "tasks", GATE)}
    try:
        settings = border.load(_Settings, rest)
    except border.BorderError as error:
        problem = error.problems[0]
        raise fail(problem.path, str(problem)) from None

    models = []
    for number, entry in enumerate(_list(value, "models", fail)):
        try:
            models.append(_model(entry, root))
        except UsageError as error:
            raise fail(("models", number, *_key(error)), f"models[{number}]: {error}") from None
    try:
        requests.refuse_same_models(models)
    except ConfigError as error:
        raise fail(("models", *error.key), str(error)) from None

    def folder(name: str) -> Path:
        try:
            return root / expanded(getattr(settings, name))
        except ConfigError as error:
            raise fail((name,), f"{name}: {error}") from None

    if data is None and settings.data is not None:
        data = folder("data")
    mirror = folder("mirror") if mirror is None and settings.mirror is not None else mirror and mirror.absolute()
    tasks: list[Task[Any]] = []
    for number, entry in enumerate(_list(value, "tasks", fail)):
        try:
            if isinstance(entry, str):
                tasks += requests.parse_tasks(entry, root=root, data=data, mirror=mirror, filters=filters)
            elif isinstance(entry, dict):
                tasks += requests.tasks_from(entry, root=root, data=data, mirror=mirror, filters=filters)
            else:
                raise ConfigError(f"a name or keys are needed here, not {entry!r}.")
        except UsageError as error:
            raise fail(("tasks", number, *_key(error)), f"tasks[{number}]: {error}") from None
        except (DataError, ModelError) as error:
            place = f"{path}, line {line_of(lines, ('tasks', number))}"
            raise type(error)(f"{place}: tasks[{number}]: {error}") from None
    tasks = requests.each_once(tasks)
    try:
        requests.refuse_same_names(tasks)
    except ConfigError as error:
        raise fail(("tasks", *error.key), str(error)) from None
    policy = _gate(value[GATE], path, lines, tasks, fail) if GATE in value else None
    return Config(
        path=path,
        models=tuple(models),
        tasks=tuple(tasks),
        results=folder("results"),
        data=data,
        mirror=mirror,
        runtime=settings.runtime,
        statistics=settings.statistics,
        bm25=settings.bm25,
        gate=policy,
    )


def _gate(value: Any, path: Path, lines: Mapping[KeyPath, int], tasks: list[Task[Any]], fail: Any) -> Policy:
    """The policy of the file, once each of its rules speaks of a task of the file, where it names any."""
    from embeval.gates import policy as policies

    policy = policies.from_value(value, str(path), lines, (GATE,))
    names = {task.spec.name for task in tasks}
    for rule, where in policies.walk(policy.rules):
        if names and rule.metric is not None and rule.ref.place.task not in names:
            problem = UnknownNameError("task", rule.ref.place.task, names)
            raise fail((GATE, *where, "metric"), f"{border.spell((GATE, *where, 'metric'))}: {problem}")
    return policy


def _model(entry: Any, root: Path) -> ModelSpec:
    if isinstance(entry, str):
        spec = requests.parse_model(entry)
    elif isinstance(entry, dict):
        spec = requests.model_from(entry, where="model")
    else:
        raise ConfigError(f"a name or keys are needed here, not {entry!r}.")
    key = ("name",) if isinstance(entry, dict) else ()
    if spec.backend == HYBRID:
        return replace(spec, name="+".join(_part(part.strip(), root, key) for part in spec.name.split("+")))
    return replace(spec, name=_rooted(spec.name, spec.backend, root, key))


def _part(text: str, root: Path, key: KeyPath) -> str:
    backend, name = loading.named(text)
    rooted = _rooted(name, backend, root, key)
    return text if rooted == name else f"{backend}:{rooted}" if backend else rooted


def _rooted(name: str, backend: str | None, root: Path, key: KeyPath) -> str:
    """The name of a model, where it is a path one that starts at the folder of the file."""
    if backend in loading.FREE_OF_FILES or name in (locate.DEMO_NAME, locate.DEMO_LABEL):
        return name  # no folder, even where there is one of that name
    if name.startswith(("./", "../")) or (root / name).exists():
        return str(root / name)
    if Path(name).exists() and not Path(name).is_absolute():
        what = "folder" if Path(name).is_dir() else "file"
        raise ConfigError(
            f"{name!r} is a {what} of the current directory, but paths in this file start at its own folder.", key=key
        )
    return name


def _list(value: Mapping[str, Any], key: str, fail: Any) -> list[Any]:
    found = value.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise fail((key,), f"{key} must be a list: one '- …' line for each.")
    return found


def config_schema() -> dict[str, Any]:
    """The JSON Schema of ``embeval.yaml``, made from the classes that read it."""
    from embeval.gates.policy import Policy

    policy = border.schema(Policy)
    model = border.schema(ModelSpec)
    settings = border.schema(_Settings)
    definitions = {**settings.pop("$defs", {}), **policy.pop("$defs", {}), "ModelSpec": model, "Policy": policy}
    entries: list[dict[str, Any]] = [
        {"type": "string", "description": "Name in the catalogue, mteb:NAME, or [type:]path."}
    ]
    for name in (name for name in TASK_TYPES.names() if name != mteb_entries.KIND):
        options = border.schema(TASK_TYPES.get(name).options)
        definitions.update(options.get("$defs", {}))
        common = {
            "name": {"type": "string", "description": "Short and unique; names the folder of its results."},
            "type": {"const": name, "description": TASK_TYPES.get(name).summary},
            "data": {"type": "string", "description": "File or folder, relative to this file."},
            "split": {"type": "string", "description": "Which part of the data set."},
            "main_score": {"type": "string", "description": "The metric that stands for the task in tables."},
            "languages": {"type": "array", "items": {"type": "string"}, "description": "ISO 639-3 codes."},
            "license": {"type": "string", "description": "Licence of the data."},
            "citation": {"type": "string", "description": "Where the data was published."},
            "version": {"type": "integer", "description": "Raised when the same name measures something else."},
        }
        properties = {**common, **options["properties"]}
        entries.append({"type": "object", "additionalProperties": False, "properties": properties})
    entries.append(border.schema(mteb_entries.MtebEntry))
    string_model = {"type": "string", "description": "[backend:]name[,key=value…]; 'demo' needs no download."}
    properties = {
        "models": {
            "type": "array",
            "items": {"anyOf": [string_model, {"$ref": "#/$defs/ModelSpec"}]},
            "description": "Models to evaluate.",
        },
        "tasks": {"type": "array", "items": {"anyOf": entries}, "description": "Tasks to evaluate them on."},
        **settings["properties"],
        GATE: {"$ref": "#/$defs/Policy", "description": "When a candidate may be released, for embeval gate."},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": FILE_NAME,
        "description": "A whole evaluation in one file.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "$defs": definitions,
    }


def _key(error: UsageError) -> KeyPath:
    return error.key if isinstance(error, ConfigError) else ()
