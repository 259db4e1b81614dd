"""What every category of mteb's tasks must do, on mteb's own mock tasks with more rows.

mteb 2.26 itself is what the values are pinned to: to what its task class gave for the same vectors, and to
``mteb.evaluate`` with its own wrapper around the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from embeval import metrics
from embeval.core.progress import Silent
from embeval.core.protocols import Collected, Encoder, Metric
from embeval.core.records import ItemRecords
from embeval.core.result import MetricValue
from embeval.core.specs import ModelSpec, StatisticsOptions
from embeval.encoders import loading
from embeval.mteb_bridge import evaluation
from embeval.mteb_bridge.categories import CATEGORIES, PARITY_PREFIX, Outcome, Parity
from embeval.runner import local
from embeval.runner.assemble import RESERVED
from embeval.stats import scoring
from embeval.store.results import ResultStore
from tests.support.library import library_model, library_scores
from tests.support.mocks import MOCKS, NOT_FOR_TEXTS, mock_task, text_mocks
from tests.support.models import save_tiny_static

KNOWN = {CATEGORIES.get(name).task_class: name for name in CATEGORIES.names()}
"""mteb's abstract class -> category."""
NAMES = [mock for task_class in KNOWN for mock in MOCKS.get(task_class, ())]
"""Mock tasks of the categories that there are."""
SEVERAL = ("MockMultilingualSTSTask", "MockMultilingualRetrievalTask")
FEWER = [name for name in NAMES if "Multilingual" not in name or name in SEVERAL]
"""Those without sub-sets, and two with: for what hangs on the category and not on sub-sets."""
POINT = StatisticsOptions(resamples=0)
SAME = 1e-6
ROUNDED = 5.1e-6
"""mteb rounds the scores of retrieval to five digits."""


@dataclass(frozen=True)
class Ran:
    """A mock task that a model was evaluated on."""

    metrics: tuple[Metric, ...]
    outcomes: Mapping[str, Outcome]
    collected: Collected

    def values(self, subset: str) -> dict[str, float | None]:
        """Metric -> value on a sub-set, from the item records alone."""
        names = [*dict.fromkeys([*(metric.name for metric in self.metrics), *getattr(self.collected, "also", ())])]
        chosen = [metrics.get(name) for name in names]
        found = scoring.estimate(part(self.collected.records, subset), chosen, POINT)
        return {name: each.to_value(POINT).value for name, each in found.items()}


def part(records: ItemRecords, subset: str) -> ItemRecords:
    """The items of a sub-set."""
    return records.take(records.rows_by("subset")[subset]) if "subset" in records.slices else records


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """On rows so few, two threads that have to share a core wait for each other most of the time."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> ModelSpec:
    """A model of random word vectors: dense, so that no two similarities are equal but for their last digit."""
    folder = save_tiny_static(tmp_path_factory.mktemp("static") / "model", normalize=True)
    return ModelSpec(name=str(folder), backend="static")


def loaded(model: ModelSpec) -> Encoder:
    """The model, loaded anew."""
    return loading.load(loading.resolve(model))


def ran(name: str, model: Encoder, parity: Parity = "embeval") -> Ran:
    """What the task class and the category made of a mock task."""
    task = mock_task(name, parity)
    payload = task.load()
    kept: dict[str, Outcome] = {}
    original = evaluation.run

    def kept_run(*args: Any, **keys: Any) -> dict[str, Outcome]:
        found = original(*args, **keys)
        kept.update(found)
        return found

    with mock.patch.object(evaluation, "run", kept_run):
        collected = task.collect(payload, model, Silent())
    return Ran(task.metrics(payload), kept, collected)


Once = Callable[[str, Parity], Ran]


@pytest.fixture(scope="module")
def once(static: ModelSpec) -> Once:
    """A mock task with that model, evaluated when it is first asked for."""
    return cache(lambda name, parity: ran(name, loaded(static), parity))


def test_every_category_has_a_mock() -> None:
    """A new category joins this suite by an entry in ``MOCKS``."""
    assert set(KNOWN) <= set(MOCKS)


def test_every_mock_for_texts_is_in_this_suite() -> None:
    """Those of mteb 2.26, but for two classes that are no category."""
    found: dict[str, set[str]] = {}
    for name, task_class in text_mocks().items():
        found.setdefault(task_class, set()).add(name)
    assert {name: set(mocks) for name, mocks in MOCKS.items()} == {
        name: mocks for name, mocks in found.items() if name not in NOT_FOR_TEXTS
    }


@pytest.mark.parametrize(
    ("name", "parity"), [*((name, "embeval") for name in NAMES), *((name, "mteb") for name in FEWER)]
)
def test_values_from_the_items_are_those_of_mteb(once: Once, name: str, parity: Parity) -> None:
    """Every metric that mteb gives under that name, and the main one; ``mteb_`` means mteb's where ours differs."""
    found = once(name, parity)
    tolerance = ROUNDED if "Retrieval" in name or "Reranking" in name else SAME
    for subset, outcome in found.outcomes.items():
        ours = found.values(subset)
        main = next(iter(ours))
        theirs = {**outcome.scores, main.removeprefix(PARITY_PREFIX): outcome.scores["main_score"]}
        compared = {name for name in ours if _is_mtebs(name, ours) and name.removeprefix(PARITY_PREFIX) in theirs}
        assert main in compared or PARITY_PREFIX + main in compared
        for metric in compared:
            assert ours[metric] == pytest.approx(theirs[metric.removeprefix(PARITY_PREFIX)], abs=tolerance), metric


def _is_mtebs(name: str, names: Iterable[str]) -> bool:
    return name.startswith(PARITY_PREFIX) or PARITY_PREFIX + name not in names


@pytest.mark.parametrize("name", NAMES)
def test_records_are_whole(once: Once, name: str) -> None:
    """Unique ids, a sub-set for each item, finite columns that metrics found by name alone can read."""
    found = once(name, "embeval")
    records = found.collected.records
    assert len(set(records.ids)) == len(records) > 0
    assert (set(records.slices.get("subset", ())) or {"default"}) == set(found.outcomes)
    for metric in found.metrics:
        again = metrics.get(metric.name)
        assert (again.name, again.version, again.columns) == (metric.name, metric.version, metric.columns)
        columns = {column: records.columns[column] for column in metric.columns}
        whole = np.all([np.isfinite(column) for column in columns.values()], axis=0)
        assert whole.any(), metric.name
        assert again.aggregate({name: column[whole] for name, column in columns.items()}) == metric.aggregate(
            {name: column[whole] for name, column in columns.items()}
        )


def test_alone_in_any_order_and_twice_the_digits_are_the_same(static: ModelSpec, once: Once) -> None:
    """A new encoder for each task, and one for all of them in the other order: columns equal to the bit."""
    shared = loaded(static)
    backwards = {name: ran(name, shared) for name in reversed(FEWER)}
    for name in FEWER:
        one, other = once(name, "embeval"), backwards[name]
        first, second = one.collected, other.collected
        assert first.records.ids == second.records.ids
        assert first.records.slices == second.records.slices
        assert first.records.columns.keys() == second.records.columns.keys()
        for column, values in first.records.columns.items():
            np.testing.assert_array_equal(values, second.records.columns[column], err_msg=f"{name} {column}")
        assert (first.counts, first.warnings, first.prompts) == (second.counts, second.warnings, second.prompts)


def test_main_scores_are_those_of_mteb_with_its_own_wrapper(tiny_model: Path) -> None:
    """``mteb.evaluate`` on the same rows with sentence-transformers, float32 and batches of 32: to 1e-4."""
    ours = loaded(ModelSpec(name=str(tiny_model)))
    model = library_model(tiny_model)
    for name in FEWER:
        run = ran(name, ours, "mteb")
        theirs = library_scores(model, mock_task(name).load().setting.task)
        found = {subset: next(iter(run.values(subset).values())) for subset in run.outcomes}
        assert found == pytest.approx(theirs, abs=1e-4), name


@pytest.fixture(scope="module")
def store(static: ModelSpec, tmp_path_factory: pytest.TempPathFactory) -> ResultStore:
    """Results of the static model on mock tasks, made by the runner."""
    store = ResultStore(tmp_path_factory.mktemp("mocks"))
    for outcome in evaluated(static, store):
        assert outcome.status == "done", (outcome.step.task.name, outcome.error)
    return store


def evaluated(model: ModelSpec, store: ResultStore) -> list[local.Outcome]:
    """The runner's outcomes on mock tasks."""
    options = local.RunOptions(statistics=StatisticsOptions(resamples=200))
    tasks = [mock_task(name) for name in FEWER]
    return list(local.run([model], tasks, store, options))


@pytest.mark.parametrize("name", FEWER)
def test_results_have_items_and_intervals(once: Once, store: ResultStore, name: str) -> None:
    """Each sub-set, their means and the whole; the stored items give the values again; an interval around each."""
    found = {each.result.subset: each for each in store.find(task=f"mteb:{name}")}
    outcomes = once(name, "embeval").outcomes
    assert set(found) - set(RESERVED) == (set(outcomes) if len(outcomes) > 1 else set())
    for subset, stored in found.items():
        value = stored.result.main_value
        assert isinstance(value, MetricValue)
        assert None not in (value.value, value.ci_low, value.ci_high), (subset, value)
        assert value.ci_low <= value.value <= value.ci_high  # type: ignore[operator]
    whole = found["all"]
    again = scoring.estimate(store.records(whole), [metrics.get(name) for name in whole.result.scores], POINT)
    for metric, score in whole.result.scores.items():
        assert again[metric].to_value(POINT).value == pytest.approx(score.value, abs=1e-12)


def test_finished_mock_tasks_stay_finished(static: ModelSpec, store: ResultStore) -> None:
    """A second run finds everything as it was wanted."""
    assert {(outcome.step.task.name, outcome.status) for outcome in evaluated(static, store)} == {
        (f"mteb:{name}", "skipped") for name in FEWER
    }
