"""What every task type must do, compared by value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embeval.core import border, strict_json
from embeval.core.progress import Silent
from embeval.core.protocols import OfTokens, Task, Undefined
from embeval.core.specs import ModelSpec, TaskSpec
from embeval.encoders import loading
from embeval.errors import ConfigError, DataError
from embeval.language_models import loading as language_models
from embeval.tasks import TASK_TYPES, catalog
from tests.contracts.examples import TASKS
from tests.support.language_models import tiny_language_model

MAIN_SCORES = {"mteb": "cosine_spearman"}
"""Main score of the example, for a type that has none of its own."""


@pytest.fixture(params=TASK_TYPES.names())
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> TaskSpec:
    """A task of every type, its data in ``tmp_path``."""
    return TASKS[request.param](tmp_path)


def bind(spec: TaskSpec, root: Path) -> Task[Any]:
    """The task."""
    return TASK_TYPES.get(spec.type).bind(spec, root=root)


def collect(task: Task[Any]) -> Any:
    """What the hashing baseline gets on it, or a tiny language model where it scores tokens."""
    if isinstance(task, OfTokens):
        kind = task.kind
        located = loading.resolve(ModelSpec(name=str(tiny_language_model(kind))))
        known, tokenizer = language_models.known_of(located)
        assert known == kind
        fitted = task.fitted(known, tokenizer, located.spec)
        return fitted.collect(fitted.load(), language_models.load(located, kind), Silent())
    encoder = loading.load(loading.resolve(ModelSpec(name="h", backend="hashing")))
    return task.collect(task.load(), encoder, Silent())


def test_every_task_type_has_an_example() -> None:
    """A new task type joins this suite by an entry in examples.TASKS."""
    assert set(TASKS) == set(TASK_TYPES.names())


def test_records_hold_what_the_metrics_read(spec: TaskSpec, tmp_path: Path) -> None:
    """Unique ids, finite columns for every metric, and every metric has a value in its range."""
    task = bind(spec, tmp_path)
    collected = collect(task)
    for metric in task.metrics(task.load()):
        assert set(metric.columns) <= set(collected.records.columns)
        value = metric.aggregate(collected.records.columns)
        assert not isinstance(value, Undefined)
        if metric.higher_is_better:
            assert -1.0 <= value <= 1.0
        else:
            assert value >= 0.0  # an error, in units of the data


def test_main_metric_comes_first(spec: TaskSpec, tmp_path: Path) -> None:
    """The type's main score, or the one that the spec names."""
    task_type = TASK_TYPES.get(spec.type)
    task = bind(spec, tmp_path)
    names = [metric.name for metric in task.metrics(task.load())]
    assert names[0] == MAIN_SCORES.get(spec.type, task_type.main_score)
    assert len(set(names)) == len(names)
    later = names[min(3, len(names) - 1)]
    other = bind(replace(spec, main_score=later), tmp_path)
    assert other.metrics(other.load())[0].name == later


def test_two_runs_are_equal_to_the_bit(spec: TaskSpec, tmp_path: Path) -> None:
    """The same columns, counts, warnings and prompts."""
    first, second = collect(bind(spec, tmp_path)), collect(bind(spec, tmp_path))
    for name, column in first.records.columns.items():
        assert np.array_equal(column, second.records.columns[name]), name
    assert first.records.ids == second.records.ids
    assert (first.counts, first.warnings, first.prompts) == (second.counts, second.warnings, second.prompts)


def test_protocol_is_plain_json_and_names_the_data(spec: TaskSpec, tmp_path: Path) -> None:
    """No value that JSON can't hold, no path of this machine, and the hash of the data."""
    task = bind(spec, tmp_path)
    payload = task.load()
    protocol = task.protocol(payload)
    assert strict_json.loads(strict_json.canonical(protocol)) == protocol
    assert str(tmp_path) not in strict_json.canonical(protocol)
    assert protocol["data"] == payload.data_hash
    assert protocol["type"] == spec.type


def test_protocol_changes_with_data_version_and_split(spec: TaskSpec, tmp_path: Path) -> None:
    """Other data, another version of the task: not comparable any more."""
    task = bind(spec, tmp_path)
    before = task.protocol(task.load())
    newer = bind(replace(spec, version=2), tmp_path)
    assert newer.protocol(newer.load()) != before
    for file in tmp_path.rglob("*.jsonl"):
        if file.name != "queries.jsonl":
            file.write_text(file.read_text(encoding="utf-8").replace("backup", "copy"), encoding="utf-8")
    assert task.protocol(task.load()) != before


def test_every_option_is_known_and_no_other(spec: TaskSpec, tmp_path: Path) -> None:
    """Each option at its default changes nothing; an unknown one is refused with the nearest name."""
    task_type = TASK_TYPES.get(spec.type)
    defaults: Mapping[str, Any] = border.dump(task_type.options())
    task = bind(spec, tmp_path)
    same = bind(replace(spec, options={**defaults, **spec.options}), tmp_path)
    assert same.protocol(same.load()) == task.protocol(task.load())
    name = next(iter(defaults))
    with pytest.raises(ConfigError, match=f"unknown key. Did you mean '{name}'"):
        bind(replace(spec, options={**spec.options, name + "x": 1}), tmp_path)


def test_missing_data_is_a_data_error(spec: TaskSpec, tmp_path: Path) -> None:
    """The message names the place."""
    task = bind(spec, tmp_path / "elsewhere")
    with pytest.raises(DataError, match="elsewhere"):
        task.load()


def test_catalogue_entries_are_complete() -> None:
    """Unique names, a known type, options that bind, and languages, licence and citation for each."""
    entries = list(catalog.specs())
    assert len({entry.name.casefold() for entry in entries}) == len(entries)
    for entry in entries:
        TASK_TYPES.get(entry.type).bind(entry, root=Path())
        assert entry.languages, entry.name
        assert entry.license, entry.name
        assert entry.citation, entry.name
        assert not Path(entry.dataset.path).is_absolute()
