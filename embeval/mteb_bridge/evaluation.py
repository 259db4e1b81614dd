"""Runs a task class of mteb on one split and keeps what it predicts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from embeval.errors import EmbevalError, EvaluationError
from embeval.mteb_bridge import door, loaders
from embeval.mteb_bridge.categories import Outcome, Setting
from embeval.mteb_bridge.categories._category import Category

BATCH = 32
"""The batch size that mteb's data loaders are made with; our encoders make batches of their own."""


def run(setting: Setting, category: Category, model: Any) -> dict[str, Outcome]:
    """Sub-set -> scores and predictions of ``setting.task.evaluate``.

    Raises ``EvaluationError`` where mteb itself fails, and for a version of it whose tasks hand over their predictions
    in another way.
    """
    task = setting.task
    if not hasattr(task, "_save_task_predictions"):
        raise EvaluationError(
            f"mteb:{task.metadata.name}: mteb {door.installed_version()} doesn't hand over predictions as embeval "
            "needs it. Install a version that embeval is tested with, such as 2.26.24."
        )
    predictions: dict[str, Any] = {}

    def keep(found: Any, *_: Any, hf_subset: str, **__: Any) -> None:
        predictions[hf_subset] = found

    task._save_task_predictions = keep
    scores: dict[str, Any] = {}
    parts = [list(setting.subsets)] if category.together else [[subset] for subset in setting.subsets]
    threads = _one_thread(model) if category.one_thread else contextlib.nullcontext()
    with _theirs(task.metadata.name), door.quiet(), loaders.of_texts(), threads:
        for part in parts:
            model.label = " ".join([task.metadata.name, setting.split, *(part if len(setting.subsets) > 1 else [])])
            scores |= task.evaluate(
                model,
                setting.split,
                subsets_to_run=part,
                encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
                prediction_folder=Path(),
            )
    # Bitext mining over columns that sub-sets share has one set of predictions, by pair of columns.
    shared = predictions.get("parallel")
    return {subset: Outcome(scores[subset], predictions.get(subset, shared)) for subset in setting.subsets}


@contextlib.contextmanager
def _theirs(name: str) -> Iterator[None]:
    """Inside, an error that comes up in code other than ours is no fault of embeval, and is told as mteb's."""
    try:
        yield
    except (EmbevalError, MemoryError, OSError):
        raise
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        if place is None or str(place.tb_frame.f_globals.get("__name__")).split(".")[0] == "embeval":
            raise
        said = str(error).strip().splitlines()
        raise EvaluationError(
            f"mteb:{name} can't be evaluated: mteb {door.installed_version()} stops with {type(error).__name__}"
            f"{f' ({said[0][:200]})' if said else ''}.\n--debug shows where."
        ) from error


@contextlib.contextmanager
def _one_thread(model: Any) -> Iterator[None]:
    """Inside, numpy and scikit-learn use one thread, but for the time that ``model`` encodes.

    On the small matrices of a linear probe two threads are eight times slower than one, and more are no better.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1) as limits:
        before = limits.get_original_num_threads()
        model.around = lambda: threadpool_limits(before)
        yield
