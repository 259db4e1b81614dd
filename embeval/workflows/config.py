"""``embeval.yaml``: a whole evaluation in one file, checked to the key, every complaint with its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from embeval.core import border
from embeval.core.border import BORDER, KeyPath
from embeval.core.paths import expanded
from embeval.core.protocols import Task
from embeval.core.specs import ModelSpec, RuntimeOptions, StatisticsOptions
from embeval.encoders import loading, locate
from embeval.errors import ConfigError, DataError, ModelError, UsageError
from embeval.tasks import TASK_TYPES
from embeval.workflows import requests

FILE_NAME = "embeval.yaml"
HYBRID = "hybrid"
"""The backend whose name lists other models."""
MAX_NODES = 100_000
"""Values that a file may have once its aliases are followed: a small file of nested aliases can stand for billions."""
TEXT_KEYS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """The part of the file that isn't models and tasks."""

    __pydantic_config__ = BORDER

    results: str = "results"
    """Folder that results are written to."""
    data: str | None = None
    """Folder that holds the data of catalogue tasks."""
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
    runtime: RuntimeOptions
    """How models are run."""
    statistics: StatisticsOptions
    """How uncertainty is estimated."""
    bm25: bool
    """Whether BM25 is evaluated as well."""


def load_config(path: Path, *, data: Path | None = None) -> Config:
    """The content of a file. ``data`` overrides its ``data``. Raises ``ConfigError`` with file and line."""
    value, lines = read_yaml(path)
    root = path.resolve().parent
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: the file must hold keys such as 'models' and 'tasks'.")

    def fail(where: KeyPath, text: str) -> ConfigError:
        return ConfigError(f"{path}, line {_line(lines, where)}: {text}")

    known = ["models", "tasks", *(each.name for each in fields(_Settings))]
    for key in value:
        if key not in known:
            raise fail((key,), str(border.unknown_key((key,), known)))
    rest = {key: value[key] for key in value if key not in ("models", "tasks")}
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
    tasks = []
    for number, entry in enumerate(_list(value, "tasks", fail)):
        try:
            if isinstance(entry, str):
                tasks.append(requests.parse_task(entry, root=root, data=data))
            elif isinstance(entry, dict):
                tasks.append(requests.task_from(entry, root=root, data=data))
            else:
                raise ConfigError(f"a name or keys are needed here, not {entry!r}.")
        except UsageError as error:
            raise fail(("tasks", number, *_key(error)), f"tasks[{number}]: {error}") from None
        except (DataError, ModelError) as error:
            place = f"{path}, line {_line(lines, ('tasks', number))}"
            raise type(error)(f"{place}: tasks[{number}]: {error}") from None
    try:
        requests.refuse_same_names(tasks)
    except ConfigError as error:
        raise fail(("tasks", *error.key), str(error)) from None
    return Config(
        path=path,
        models=tuple(models),
        tasks=tuple(tasks),
        results=folder("results"),
        data=data,
        runtime=settings.runtime,
        statistics=settings.statistics,
        bm25=settings.bm25,
    )


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
    model = border.schema(ModelSpec)
    settings = border.schema(_Settings)
    definitions = {**settings.pop("$defs", {}), "ModelSpec": model}
    entries: list[dict[str, Any]] = [{"type": "string", "description": "Name in the catalogue, or [type:]path."}]
    for name in TASK_TYPES.names():
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
    string_model = {"type": "string", "description": "[backend:]name[,key=value…]; 'demo' needs no download."}
    properties = {
        "models": {
            "type": "array",
            "items": {"anyOf": [string_model, {"$ref": "#/$defs/ModelSpec"}]},
            "description": "Models to evaluate.",
        },
        "tasks": {"type": "array", "items": {"anyOf": entries}, "description": "Tasks to evaluate them on."},
        **settings["properties"],
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


def read_yaml(path: Path) -> tuple[Any, dict[KeyPath, int]]:
    """(value, line of each key path). Raises ``ConfigError`` for broken YAML, double keys and endless aliases."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file. 'embeval init' writes one.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: can't be read ({error}).") from None
    try:
        loader = _loader()
        node = yaml.compose(text, Loader=loader)
        lines: dict[KeyPath, int] = {}
        if node is not None:
            _walk(node, (), lines, path, ())
        value = yaml.load(text, Loader=loader)  # noqa: S506  # the loader below is a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{path}{place}: not valid YAML ({error.problem or error.context}).") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid YAML ({str(error).splitlines()[0]}).") from None
    return value, lines


def _loader() -> Any:
    """A SafeLoader that leaves dates as the text that they are in the file."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def _walk(node: Any, where: KeyPath, lines: dict[KeyPath, int], path: Path, inside: tuple[int, ...]) -> None:
    import yaml

    if id(node) in inside:
        raise ConfigError(f"{path}, line {node.start_mark.line + 1}: this value contains itself through an alias.")
    if len(lines) > MAX_NODES:
        raise ConfigError(f"{path}: more than {MAX_NODES} values once aliases are followed.")
    lines[where] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, below in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.tag not in TEXT_KEYS:
                shown = key.value if isinstance(key, yaml.ScalarNode) else "…"
                raise ConfigError(f"{path}, line {line}: unknown key {shown!r}. A key must be text.")
            here = (*where, key.value)
            if here in lines:
                raise ConfigError(f"{path}, line {line}: the key {key.value!r} stands here twice.")
            _walk(below, here, lines, path, (*inside, id(node)))
            lines[here] = line
    elif isinstance(node, yaml.SequenceNode):
        for number, below in enumerate(node.value):
            _walk(below, (*where, number), lines, path, (*inside, id(node)))


def _key(error: UsageError) -> KeyPath:
    return error.key if isinstance(error, ConfigError) else ()


def _line(lines: Mapping[KeyPath, int], where: KeyPath) -> int:
    while where and where not in lines:
        where = where[:-1]
    return lines.get(where, 1)
