"""Results as mteb's result files, in mteb's layout of folders: what ``mteb.TaskResult`` and ``ResultCache`` read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from embeval.core import strict_json
from embeval.core.result import Result
from embeval.core.signature import RESERVED_SUBSETS, WHOLE
from embeval.core.specs import ModelSpec
from embeval.mteb_bridge import contamination, door
from embeval.mteb_bridge.categories import ONE_SUBSET, PARITY_PREFIX
from embeval.mteb_bridge.exchange import layout
from embeval.mteb_bridge.exchange._latest import latest
from embeval.mteb_bridge.exchange.from_mteb import BACKEND, MAIN, OWN_PREFIX

USUAL = ("sentence_transformers", BACKEND)
"""Backends that run a model as mteb itself would, or that aren't ours; another is told among the settings."""
MAX_PARTS = 6
"""Of a path: results, model, revision, experiments, settings, file."""
WITHOUT_ORG = "local"
"""mteb demands an organisation in the name of a model; this one stands for a folder of one's own."""


@dataclass(frozen=True)
class File:
    """A file of mteb's layout."""

    path: Path
    """Its place below the folder that is written."""
    content: strict_json.Json
    """What it holds."""


@dataclass(frozen=True)
class Written:
    """What results become."""

    files: tuple[File, ...]
    """Result files, and one ``model_meta.json`` for each model."""
    left_out: tuple[str, ...]
    """One sentence for each result that has no place in mteb's form."""


def files(results: Iterable[Result]) -> Written:
    """The files for all results of mteb's tasks; of several of one model, task and split the newest counts."""
    results = list(results)
    found: dict[Path, dict[str, list[Result]]] = {}
    others = sorted({result.task.name for result in results if result.task.type != "mteb"})
    left_out = [f"{name}: no task of mteb, so its files have no place for it." for name in others]
    for (_, task, split), measured in _measured(results).items():
        place = layout.path(Path(), **_place(measured[0].model), task=task)
        if not all(map(layout.is_plain, (task, *place.parts[1:]))) or len(place.parts) > MAX_PARTS:
            left_out.append(f"{measured[0].model.label!r} on {task!r} ({split}): its names can't be those of files.")
            continue
        whole = [each for each in measured if _stands_for_a_part(each, measured)]
        undefined = [each for each in whole if each.main_value is None or each.main_value.value is None]
        if undefined:
            left_out.append(f"{undefined[0].model.label} on {task} ({split}): its main score is undefined.")
        elif whole:
            found.setdefault(place, {})[split] = whole
    made = [File(place, _task_result(of_split)) for place, of_split in sorted(found.items())]
    metas = {
        place.parent / layout.META: _meta(next(iter(of_split.values()))[0].model) for place, of_split in found.items()
    }
    return Written((*made, *(File(place, meta) for place, meta in sorted(metas.items()))), tuple(left_out))


def _measured(results: Iterable[Result]) -> dict[tuple[str, str, str], list[Result]]:
    """(model, task, split) -> what was measured last: sub-sets and means together."""
    whole = [result for result in results if result.status == "ok" and result.task.type == "mteb"]
    return latest(whole, lambda each: (each.signature.model_digest, each.task.dataset.path, each.split))


def _stands_for_a_part(result: Result, measured: Sequence[Result]) -> bool:
    """Whether it is of one sub-set: mteb keeps no means, and of several no pooled value."""
    return result.subset not in RESERVED_SUBSETS or (result.subset == WHOLE and len(measured) == 1)


def subset_name(result: Result) -> str:
    """mteb's name of the sub-set that a result is of."""
    if result.subset != WHOLE:
        return result.subset
    told = result.task.options.get("subsets")
    if isinstance(told, Sequence) and not isinstance(told, str) and len(told) == 1:
        return str(told[0])
    metadata = door.task_metadata(result.task.dataset.path)
    names = [ONE_SUBSET] if metadata is None else list(metadata.hf_subsets)
    return str(names[0]) if len(names) == 1 else ONE_SUBSET


def dataset_revision(result: Result) -> str:
    """The revision of the data: the hub's where mteb loaded it from there, else the hash of its content."""
    if result.imported is not None:
        return result.imported.dataset_revision
    metadata = door.task_metadata(result.task.dataset.path)
    from_hub = result.task.options.get("mirror") is None
    if from_hub and metadata is not None and result.provenance.packages.get("mteb") == door.installed_version():
        return str(metadata.revision)
    return f"sha256:{result.signature.protocol.get('data')}"


def _task_result(of_split: Mapping[str, Sequence[Result]]) -> strict_json.Json:
    first = next(iter(of_split.values()))[0]
    version = first.imported.mteb_version if first.imported is not None else first.provenance.packages.get("mteb")
    started = [result.started_at for results in of_split.values() for result in results if result.timings is not None]
    return {
        "dataset_revision": dataset_revision(first),
        "task_name": first.task.dataset.path,
        "mteb_version": version,
        "scores": {split: [_scores(result) for result in results] for split, results in sorted(of_split.items())},
        "evaluation_time": _seconds(of_split.values()),
        "kg_co2_emissions": None,
        "date": datetime.fromisoformat(max(started)).timestamp() if started else None,
    }


def _seconds(groups: Iterable[Sequence[Result]]) -> float | None:
    """Sub-sets of one split were measured in one go and share its time."""
    times = []
    for results in groups:
        first = results[0]
        if first.imported is not None:
            return first.imported.evaluation_time  # of all splits
        times.append(first.timings.wall_s if first.timings is not None else 0.0)
    return sum(times)


def _scores(result: Result) -> dict[str, strict_json.Json]:
    """mteb's name -> value. Where ours and mteb's differ, mteb's has the plain name, and ours one that says so."""
    known = {name: each.value for name, each in result.scores.items() if each.value is not None}
    theirs = {
        name.removeprefix(PARITY_PREFIX): value for name, value in known.items() if name.startswith(PARITY_PREFIX)
    }
    plain = {name: value for name, value in known.items() if not name.startswith(PARITY_PREFIX)}
    ours = {f"{OWN_PREFIX}{name}": value for name, value in plain.items() if name in theirs}
    scores = {**plain, **theirs, **ours}
    main = (result.main_score or "").removeprefix(PARITY_PREFIX)
    if main == result.main_score and main in theirs:
        scores[f"{OWN_PREFIX}{MAIN}"] = plain[main]
    subset = subset_name(result)
    metadata = door.task_metadata(result.task.dataset.path)
    languages = {} if metadata is None else metadata.hf_subsets_to_langscripts
    return {**scores, MAIN: scores[main], "hf_subset": subset, "languages": list(languages.get(subset, []))}


def _place(model: ModelSpec) -> dict[str, Any]:
    meta = _model_meta(model)
    return {"model": meta.name, "revision": meta.revision, "experiment": meta.experiment_name}


def _model_meta(model: ModelSpec) -> Any:
    """mteb's ``ModelMeta`` of a model as it was run: what it lists of it, under our name, revision and settings."""
    door.library()
    with door.quiet():
        from mteb.models.model_meta import ModelMeta

        known = contamination.declared(model) or ModelMeta.create_empty()
        name = model.name if "/" in model.name else f"{WITHOUT_ORG}/{model.name}"
        revision = (model.revision or layout.NO_REVISION).replace(":", "-")
        return known.model_copy(
            update={"name": name, "revision": revision, "experiment_kwargs": settings(model) or None}
        )


def settings(model: ModelSpec) -> dict[str, strict_json.Json]:
    """What a model was run with that isn't usual for it."""
    usual = asdict(ModelSpec(name=model.name))
    named = ("name", "revision", "args")
    found = {name: value for name, value in asdict(model).items() if name not in named and value != usual[name]}
    if found.get("backend") in USUAL:
        del found["backend"]
    return {**found, **model.args}


def _meta(model: ModelSpec) -> strict_json.Json:
    with door.quiet():
        found = _model_meta(model).to_dict()
    return strict_json.loads(strict_json.dumps(_plain(found)))


def _plain(value: Any) -> strict_json.Json:
    """A value as JSON can hold it: dates and the like as texts, sets as sorted lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
