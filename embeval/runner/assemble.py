"""From what a task collected to results: the whole split, each sub-set, and the means over sub-sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, get_args

from embeval.core import strict_json
from embeval.core.facts import ModelFacts
from embeval.core.ir import Run
from embeval.core.protocols import Metric
from embeval.core.provenance import Provenance
from embeval.core.records import ItemRecords, TokenRecords
from embeval.core.result import Result, Timings, TrainedOn
from embeval.core.signature import WHOLE, Signature
from embeval.core.specs import ModelSpec, StatisticsOptions, TaskSpec
from embeval.stats import scoring

ALL = WHOLE
"""Sub-set of every item pooled."""
RESERVED = (*get_args(scoring.Weighting), ALL)
"""Sub-sets that are not parts of the data, in the order in which they are written."""


def place(subset: str) -> tuple[int, str]:
    """Where a result stands among those of its task: sub-sets by name, their means, then the whole."""
    return (RESERVED.index(subset) + 1 if subset in RESERVED else 0, subset)


class Part(NamedTuple):
    """One result with the rows that belong beside it."""

    result: Result
    records: ItemRecords
    run: Run | None
    tokens: TokenRecords | None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that results are made from."""

    model: ModelSpec
    task: TaskSpec
    protocol: Mapping[str, strict_json.Json]
    metrics: Sequence[Metric]
    records: ItemRecords
    provenance: Provenance
    run: Run | None = None
    tokens: TokenRecords | None = None
    counts: Mapping[str, int | None] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    labels: str | None = None
    trained_on: TrainedOn | None = None
    facts: ModelFacts | None = None
    tokenizer: str | None = None


def results(evidence: Evidence, statistics: StatisticsOptions, timings: Timings | None) -> list[Part]:
    """The results of one task, the one for ``all`` last, so that its file means "finished"."""
    records = evidence.records
    names = (str(evidence.protocol.get("data")),)  # the data and not its name: a renamed task has the same interval
    groups = records.rows_by("subset") if "subset" in records.slices else {}
    parts = []
    if len(groups) > 1:
        estimates = {}
        for label, rows in sorted(groups.items()):
            part = records.take(rows)
            estimates[label] = scoring.estimate(part, evidence.metrics, statistics, *names, label)
            own = replace(evidence, counts={"items": len(part)})  # the others speak of all items
            parts.append(_part(own, label, part, estimates[label], statistics, timings))
        for weighting in get_args(scoring.Weighting):
            mean = scoring.mean_over(estimates, weighting)
            parts.append(_part(evidence, weighting, records, mean, statistics, timings))
    pooled = scoring.estimate(records, evidence.metrics, statistics, *names, ALL)
    whole = _part(evidence, ALL, records, pooled, statistics, timings)
    return [*parts, whole._replace(run=evidence.run, tokens=evidence.tokens)]


def signature(
    model: ModelSpec,
    protocol: Mapping[str, strict_json.Json],
    subset: str,
    metrics: Sequence[Metric],
    prompts: Mapping[str, str],
    tokenizer: str | None = None,
) -> Signature:
    """What must be equal for two results to be compared."""
    return Signature(
        protocol={**protocol, "subset": subset},
        metrics={metric.name: metric.version for metric in metrics},
        model_digest=model.digest,
        prompts=dict(prompts),
        tokenizer=tokenizer,
    )


def _part(
    evidence: Evidence,
    subset: str,
    records: ItemRecords,
    estimates: Mapping[str, scoring.Estimate],
    statistics: StatisticsOptions,
    timings: Timings | None,
) -> Part:
    result = Result(
        status="ok",
        task=evidence.task,
        model=evidence.model,
        split=evidence.task.dataset.split,
        subset=subset,
        scores={name: estimate.to_value(statistics) for name, estimate in estimates.items()},
        main_score=evidence.metrics[0].name,
        statistics=statistics,
        counts=dict(evidence.counts),
        warnings=evidence.warnings,
        labels=evidence.labels,
        signature=signature(
            evidence.model, evidence.protocol, subset, evidence.metrics, evidence.prompts, evidence.tokenizer
        ),
        provenance=evidence.provenance,
        timings=timings,
        trained_on=evidence.trained_on,
        facts=evidence.facts,
    )
    return Part(result, records, None, None)
