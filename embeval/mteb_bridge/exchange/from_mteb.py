"""Published result files of mteb as results, marked as imported: they have numbers, but no items and no intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from embeval.core import strict_json
from embeval.core.facts import ModelFacts
from embeval.core.provenance import Provenance
from embeval.core.result import Imported, MetricValue, Result, Timings
from embeval.core.signature import STANDS, WHOLE, Signature
from embeval.core.specs import DatasetRef, ModelSpec, Scalar, StatisticsOptions, TaskSpec
from embeval.errors import DataError
from embeval.mteb_bridge import contamination, door, model_facts
from embeval.mteb_bridge.categories import ONE_SUBSET, PARITY_PREFIX
from embeval.mteb_bridge.exchange import layout
from embeval.mteb_bridge.exchange.layout import Place
from embeval.mteb_bridge.tasks.mteb import PREFIX

OWN_PREFIX = "embeval_"
"""Begins the name of a value of ours in a file that we exported, where mteb's stands under the plain name."""
BACKEND = "imported"
"""Stands for the backend of a model that was not run here."""
MEAN = "mean"
MAIN = "main_score"
NOTE = "imported, no interval"
NOT_KNOWN = "not known"
NO_NUMBER = "not_a_number"
VERSION = 1
"""Raised when the same file gives other results."""


@dataclass(frozen=True)
class Entry:
    """The scores of one split and sub-set."""

    split: str
    subset: str
    scores: Mapping[str, float | None]
    main: float | None


def read(place: Place, folder: Path) -> list[Result]:
    """The results of one file: of each split every sub-set, and their mean where there are several.

    Of splits that mteb doesn't count some files tell more; they are left out, as mteb itself leaves them out. Files of
    mteb 1 and 2 are read as ``mteb.TaskResult.from_disk`` does. Raises ``DataError`` for a file that is no
    result of mteb.
    """
    library = door.library()
    try:
        with door.quiet():
            found = library.TaskResult.from_disk(place.file)
            return list(_results(found, place, folder))
    except DataError:
        raise
    except Exception as error:  # what mteb raises for a broken file is of any kind
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise DataError(
            f"{place.file}: not a result that mteb {door.installed_version()} reads ({type(error).__name__}: {reason})."
        ) from None


def names_a_task(file: Path) -> bool:
    """Whether a JSON file is a result of mteb at all. Raises ``DataError`` where it can't be read.

    mteb writes the bare word NaN, which is no strict JSON.
    """
    try:
        value = json.loads(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: can't be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: not valid JSON ({error}).") from None
    return isinstance(value, dict) and not {"task_name", "mteb_dataset_name"}.isdisjoint(value)


def _results(found: Any, place: Place, folder: Path) -> Iterator[Result]:
    model = _model(place)
    if not layout.is_plain(found.task_name):
        raise DataError(f"{place.file}: {found.task_name!r} is no name of a task.")
    entries = [_entry(split, scores) for split, of_split in found.scores.items() for scores in of_split]
    if not entries:
        raise DataError(f"{place.file}: a result of mteb without scores.")
    metadata = door.task_metadata(found.task_name)
    main = _main_name(None if metadata is None else metadata.main_score, entries)
    imported = Imported(
        source=place.file.relative_to(folder).as_posix(),
        mteb_version=found.mteb_version,
        dataset_revision=found.dataset_revision,
        evaluation_time=found.evaluation_time,
        settings=place.settings,
    )
    trained_on = contamination.of(model, found.task_name)
    facts = model_facts.declared(place.meta).completed(model_facts.of(model))
    for split in _splits(entries, metadata):
        parts = {entry.subset: _values(entry, main) for entry in entries if entry.split == split}
        shown = _parts(parts)
        whole = [ONE_SUBSET] if metadata is None else metadata.hf_subsets
        named = sorted(parts) if sorted(parts) != sorted(whole) or len(parts) > 1 else []
        for subset, scores in shown.items():
            yield Result(
                status="ok",
                task=TaskSpec(
                    name=f"{PREFIX}{found.task_name}",
                    type="mteb",
                    dataset=DatasetRef(path=found.task_name, split=split),
                    options={"subsets": named} if named else {},
                    category=None if metadata is None else metadata.type,
                ),
                model=model,
                split=split,
                subset=subset,
                scores=scores,
                main_score=main,
                statistics=StatisticsOptions(resamples=0),
                signature=Signature(
                    protocol=_protocol(found, split, subset, named),
                    metrics=dict.fromkeys(scores, 0),
                    model_digest=model.digest,
                ),
                provenance=Provenance(
                    python=NOT_KNOWN,
                    packages={} if found.mteb_version is None else {"mteb": found.mteb_version},
                    os=NOT_KNOWN,
                    cpu=NOT_KNOWN,
                    n_cpus=0,
                ),
                timings=_timings(found),
                imported=imported,
                trained_on=trained_on,
                facts=None if facts == ModelFacts() else facts,
            )


def _splits(entries: Sequence[Entry], metadata: Any | None) -> list[str]:
    """The splits that count for mteb; all of them where none does."""
    there = list(dict.fromkeys(entry.split for entry in entries))
    return [split for split in there if metadata is not None and split in metadata.eval_splits] or there


def _model(place: Place) -> ModelSpec:
    args: dict[str, Scalar] = {
        name: value if isinstance(value, str | int | float | bool) else strict_json.canonical(value)
        for name, value in place.experiment_kwargs.items()
    }
    if place.experiment is not None and not args:
        args = {"experiment": place.experiment}
    return ModelSpec(name=place.model, backend=BACKEND, revision=place.revision, args=args)


def _entry(split: str, scores: Mapping[str, Any]) -> Entry:
    numbers = {name: _number(value) for name, value in scores.items() if _is_number(value)}
    main = numbers.pop(MAIN, None)
    main = numbers.pop(f"{OWN_PREFIX}{MAIN}", main)
    for name in [name for name in numbers if name.startswith(OWN_PREFIX)]:  # a file of ours: both values
        plain = name.removeprefix(OWN_PREFIX)
        if plain in numbers:
            numbers[f"{PARITY_PREFIX}{plain}"] = numbers[plain]
        numbers[plain] = numbers.pop(name)
    return Entry(split, str(scores["hf_subset"]), numbers, main)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _main_name(named: str | None, entries: Sequence[Entry]) -> str:
    """The metric that every main score is the value of: the one that mteb names, else any; else ``main_score``."""
    common = sorted(set.intersection(*(set(entry.scores) for entry in entries)))
    candidates = [name for name in (named, f"{PARITY_PREFIX}{named}", *common) if name in common]
    fits = [name for name in candidates if all(entry.scores[name] == entry.main for entry in entries)]
    return fits[0] if fits else MAIN


def _values(entry: Entry, main: str) -> dict[str, MetricValue]:
    scores = dict(entry.scores) if main in entry.scores else {**entry.scores, main: entry.main}
    return {name: _value(value, NO_NUMBER) for name, value in sorted(scores.items())}


def _value(value: float | None, reason: str) -> MetricValue:
    return MetricValue(value=value, n_items=0, note=NOTE, reason=reason if value is None else None)


def _parts(parts: Mapping[str, Mapping[str, MetricValue]]) -> dict[str, Mapping[str, MetricValue]]:
    """Sub-sets as this package names them: the only one is ``all``; several have a ``mean``."""
    if len(parts) == 1:
        return {WHOLE: next(iter(parts.values()))}
    common = sorted(set.intersection(*(set(scores) for scores in parts.values())))
    mean = {}
    for name in common:
        undefined = [subset for subset, scores in parts.items() if scores[name].value is None]
        values = [value for scores in parts.values() if (value := scores[name].value) is not None]
        mean[name] = (
            _value(None, f"undefined_in_subset:{undefined[0]}")
            if undefined
            else _value(math.fsum(values) / len(values), "")
        )
    return {**parts, MEAN: mean}


def _protocol(found: Any, split: str, subset: str, subsets: list[str]) -> dict[str, strict_json.Json]:
    protocol: dict[str, strict_json.Json] = {
        "type": "mteb",
        "type_version": VERSION,
        "task": found.task_name,
        "imported": "mteb",
        "data_revision": found.dataset_revision,
        "split": split,
        "subset": subset,
    }
    if subsets:
        protocol["subsets"] = subsets
    return {**protocol, STANDS: MEAN} if len(subsets) > 1 else protocol


def _timings(found: Any) -> Timings | None:
    if found.date is None:
        return None
    at = found.date if found.date.tzinfo is not None else found.date.replace(tzinfo=UTC)
    seconds = found.evaluation_time or 0.0
    return Timings(started_at=at.astimezone(UTC).isoformat(timespec="seconds"), wall_s=seconds, cpu_s=0.0)
