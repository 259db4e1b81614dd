"""Stored results made from given rows, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from embeval import metrics
from embeval.core import provenance
from embeval.core.ir import Run
from embeval.core.records import ItemRecords
from embeval.core.result import Timings
from embeval.core.specs import DatasetRef, ModelSpec, StatisticsOptions, TaskSpec
from embeval.runner import assemble
from embeval.store.results import ResultStore, Stored

ORIGIN = provenance.collect(device="cpu")
MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""When the results were made, unless said otherwise."""


def put(
    store: ResultStore,
    columns: Mapping[str, Sequence[float]],
    *,
    model: str = "org/model",
    task: str = "docs",
    revision: str = "abc",
    slices: Mapping[str, Sequence[str]] | None = None,
    ids: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    protocol: Mapping[str, Any] | None = None,
    measured: Sequence[str] | None = None,
    run: Run | None = None,
    days: float = 0,
    documents: int | None = None,
    most_candidates: int | None = None,
    tokenizer: str | None = None,
    **model_fields: Any,
) -> list[Stored]:
    """Stores what the runner makes of item columns, the result for ``all`` last.

    ``measured`` are the metrics, those that the columns are called after unless given; ``days`` moves the date, and
    ``documents`` is the size of the corpus, of which the query with most candidates has so many. ``tokenizer`` is the
    digest of what metrics per token count.
    """
    n = len(next(iter(columns.values())))
    evidence = assemble.Evidence(
        model=ModelSpec(name=model, revision=revision, **model_fields),
        task=TaskSpec(name=task, type="retrieval", dataset=DatasetRef(path=task)),
        protocol={"task": task, "data": f"hash of {task}", **(protocol or {})},
        metrics=[metrics.get(name) for name in measured or columns],
        records=ItemRecords(
            unit="query",
            ids=tuple(ids or (f"q{row}" for row in range(n))),
            columns={name: np.asarray(values, dtype=np.float64) for name, values in columns.items()},
            slices={name: tuple(labels) for name, labels in (slices or {}).items()},
            clusters=None if clusters is None else tuple(clusters),
        ),
        provenance=ORIGIN,
        run=run,
        counts={
            name: count
            for name, count in (("documents", documents), ("most_candidates", most_candidates))
            if count is not None
        },
        tokenizer=tokenizer,
    )
    at = MADE_AT + timedelta(days=days)
    timings = Timings(started_at=at.isoformat(), wall_s=1.0, cpu_s=1.0)
    parts = assemble.results(evidence, StatisticsOptions(resamples=0), timings)
    return [store.put(part.result, part.records, part.run) for part in parts]
