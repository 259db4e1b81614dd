"""Results as a machine made them, for tests of what a board says of times, sizes and costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embeval.core.facts import ModelFacts
from embeval.core.provenance import Provenance
from embeval.core.result import MetricValue, Result, Timings
from embeval.core.signature import Signature
from embeval.core.specs import DatasetRef, ModelSpec, TaskSpec


def result(
    model: str = "minilm",
    task: str = "docs",
    *,
    kind: str = "retrieval",
    category: str | None = None,
    scores: Mapping[str, float | None] | None = None,
    counts: Mapping[str, int | None] | None = None,
    facts: ModelFacts | None = None,
    revision: str = "abc",
    day: int = 1,
    speed: float | None = None,
    texts: int = 1000,
    session: str | None = None,
    cpu: str = "EPYC",
    device: str = "cpu",
    threads: int | None = 2,
    extra: Mapping[str, str] | None = None,
    data: str = "hash",
    **fields: Any,
) -> Result:
    """A result with the scores given, ``ndcg_at_10`` the main one; ``fields`` are of the model's spec."""
    spec = ModelSpec(name=model, revision=revision, **fields)
    values = {"ndcg_at_10": 0.5, **(scores or {})}
    return Result(
        status="ok",
        task=TaskSpec(name=task, type=kind, dataset=DatasetRef(path=task), category=category),
        model=spec,
        split="test",
        subset="all",
        scores={
            name: MetricValue(value=value, n_items=9, reason=None if value is not None else "too_few_items")
            for name, value in values.items()
        },
        main_score="ndcg_at_10",
        counts=dict(counts or {}),
        signature=Signature(
            protocol={"task": task, "data": data, "split": "test", "subset": "all"},
            metrics=dict.fromkeys(values, 1),
            model_digest=spec.digest,
        ),
        provenance=Provenance(
            python="3.11",
            packages={},
            os="Linux",
            cpu=cpu,
            n_cpus=4,
            device=device,
            num_threads=threads,
            extra=dict(extra or {}),
        ),
        timings=Timings(
            started_at=f"2026-01-{day:02}T00:00:00+00:00",
            wall_s=1.0,
            cpu_s=1.0,
            texts_encoded=texts,
            tokens_per_s=speed,
            session=session,
        ),
        facts=facts,
    )
