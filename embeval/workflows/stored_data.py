"""The data behind a stored result, read again: results hold its hash, not its texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from embeval.core.protocols import Task
from embeval.core.specs import TaskSpec
from embeval.data.beir import RetrievalData
from embeval.errors import DataError, EmbevalError, UsageError
from embeval.store.results import Stored
from embeval.tasks import TASK_TYPES, catalog
from embeval.workflows import requests

HASH_SHOWN = 12
"""Characters of a hash in a message."""


def retrieval_data(
    stored: Stored, *, golden: Path | None = None, data: Path | None = None, ranked: bool = False
) -> RetrievalData:
    """Corpus, queries and judgments that a result was made from.

    They are looked for in ``golden``, else where the result says, relative paths starting from the current folder and
    those of catalogue tasks from ``data``. ``ranked`` says that there is a ranking, though it isn't stored. Raises
    ``UsageError`` for a result of another kind of task, and ``DataError`` where the data is not there or not the same.
    """
    spec = stored.result.task
    if stored.result.run is None and not ranked:
        raise _no_ranking(stored)
    try:
        payload = _task(spec, golden, data).load()
    except EmbevalError as error:
        if golden is not None:
            raise
        raise DataError(
            f"The data of {spec.name!r} can't be read from where the result says: {error}\n"
            "Say where it is with --golden FOLDER."
        ) from error
    if not isinstance(payload, RetrievalData):
        raise _no_ranking(stored)
    wanted = str(stored.result.signature.protocol.get("data"))
    if payload.data_hash != wanted:
        raise DataError(
            f"{golden or spec.dataset.path}: not the data that the result {stored.id} was made from (sha256 "
            f"{payload.data_hash[:HASH_SHOWN]}…, the result's is {wanted[:HASH_SHOWN]}…).\n"
            "Name the folder as it was with --golden, or run the evaluation again on the data as it is."
        )
    return payload


def _no_ranking(stored: Stored) -> UsageError:
    result = stored.result
    why = "it failed" if result.status == "error" else f"its task is of type {result.task.type}"
    return UsageError(
        f"The result {stored.id} holds no ranking of a corpus: {why}. Give one of a retrieval task; "
        "'embeval results list' shows what there is."
    )


def _task(spec: TaskSpec, golden: Path | None, data: Path | None) -> Task[object]:
    task_type = TASK_TYPES.get(spec.type)
    if golden is not None:
        return task_type.bind(replace(spec, dataset=replace(spec.dataset, path=str(golden))), root=Path())
    known = catalog.find(spec.name)
    if known is not None and known.type == spec.type:
        entry = {"name": known.name, "split": spec.dataset.split, **spec.options}
        return requests.task_from(entry, root=Path(), data=data)
    return task_type.bind(spec, root=Path())
