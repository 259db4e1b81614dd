"""mteb's folder of results: ``results/<org>__<model>/<revision>/<task>.json``, one ``model_meta.json`` beside them.

A model that was run in another way than usual has a folder of its own, ``…/<revision>/experiments/<settings>/``.
Before version 1.12 there was no folder for the revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from embeval.core import strict_json

RESULTS = "results"
META = "model_meta.json"
RUNS = "run_settings.jsonl"
"""One line for each task that was run: mteb 2 writes it beside the results."""
EXPERIMENTS = "experiments"
NO_REVISION = "no_revision_available"
"""mteb's name for the revision of a model that has none."""
SEPARATOR = "__"
"""Stands for the ``/`` in the name of a model."""
SETTINGS = (
    "max_tokens",
    "embed_dim",
    "similarity_fn_name",
    "use_instructions",
    "framework",
    "loader_kwargs",
    "output_dtypes",
)
"""What ``model_meta.json`` tells of how a model was run."""


@dataclass(frozen=True)
class Place:
    """A result file, with what its place says."""

    file: Path
    """The file."""
    model: str
    """Name of the model on the hub."""
    revision: str
    """Its revision."""
    experiment: str | None
    """Name of the settings that differ from the usual ones."""
    settings: Mapping[str, strict_json.Json] = field(default_factory=dict)
    """What ``model_meta.json`` tells of how it was run."""
    experiment_kwargs: Mapping[str, strict_json.Json] = field(default_factory=dict)
    """The settings that differ from the usual ones."""
    meta: Mapping[str, strict_json.Json] = field(default_factory=dict)
    """All of ``model_meta.json``; empty: there is none."""


def places(folder: Path) -> Iterator[Place]:
    """Every result file below a folder of mteb's layout, or below a part of one, by path."""
    for file in sorted(folder.rglob("*.json")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.name != META and not hidden:
            yield _place(file)


def is_plain(name: str) -> bool:
    """Whether a name can be that of a file or folder: one that leads nowhere else, and that can be shown."""
    return name not in ("", ".", "..") and "/" not in name and name.isprintable()


def path(folder: Path, *, model: str, revision: str, experiment: str | None, task: str) -> Path:
    """Where mteb looks for a result. Source: ``mteb.cache.ResultCache.get_task_result_path``."""
    inner = [EXPERIMENTS, experiment] if experiment else []
    return folder.joinpath(
        RESULTS, model.replace("/", SEPARATOR).replace(" ", "_"), revision, *inner, f"{task}.json"
    )  # fmt: skip


def _place(file: Path) -> Place:
    above = list(file.resolve().parent.parts)
    experiment = above.pop() if len(above) > 1 and above[-2] == EXPERIMENTS else None
    if experiment is not None:
        above.pop()
    without_revision = SEPARATOR in above[-1] or (len(above) > 1 and above[-2] == RESULTS)
    revision = NO_REVISION if without_revision else above.pop()
    meta = _meta(file.parent / META)
    name, told, kwargs = (meta.get(key) for key in ("name", "revision", "experiment_kwargs"))
    return Place(
        file=file,
        model=name if isinstance(name, str) and name else above[-1].replace(SEPARATOR, "/", 1),
        revision=told if isinstance(told, str) and told else revision,
        experiment=experiment,
        settings=_told({key: meta.get(key) for key in SETTINGS} | _run(file)),
        experiment_kwargs=kwargs if isinstance(kwargs, dict) else {},
        meta=meta,
    )


def _meta(file: Path) -> dict[str, strict_json.Json]:
    """What ``model_meta.json`` holds; nothing where there is none, or none that can be read."""
    try:
        value = _loaded(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _loaded(data: bytes) -> strict_json.Json:
    """The value in JSON. Raises ``ValueError``, also for half a character, which no file of ours could hold."""
    value = strict_json.loads(data)
    strict_json.canonical(value).encode("utf-8")
    return value


def _told(settings: Mapping[str, strict_json.Json]) -> dict[str, strict_json.Json]:
    return {name: value for name, value in settings.items() if value not in (None, {}, [])}


def _run(file: Path) -> dict[str, strict_json.Json]:
    """How a task was run: what its line of ``run_settings.jsonl`` tells; nothing where there is none."""
    try:
        lines = [_loaded(line) for line in (file.parent / RUNS).read_bytes().splitlines()]
    except (OSError, ValueError):
        return {}
    of_task = [line for line in lines if isinstance(line, dict) and line.get("task") == file.stem]
    return {"encode_kwargs": of_task[-1].get("encode_kwargs")} if of_task else {}
