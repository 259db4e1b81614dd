"""What is written to disk for one model, task, split and subset: numbers, provenance and signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from embeval.core import strict_json
from embeval.core.border import BORDER
from embeval.core.facts import ModelFacts
from embeval.core.provenance import Provenance
from embeval.core.signature import Signature
from embeval.core.specs import ModelSpec, StatisticsOptions, TaskSpec

SCHEMA_VERSION = 1
"""Version of the form of a result file."""
IMPORTED = "(imported)"
"""Ends the label of a model whose values were published elsewhere and only read here."""
MOST_CANDIDATES = "most_candidates"
"""Count of the documents that the query with most of them could find."""
APPROXIMATE_BELOW = 50
"""Below this many items an interval may cover less than 94 % or more than 96 % where 95 % is aimed at, by
``benchmarks/results/intervals.md``, and the result says so."""


TrainedOn = Literal["declared", "not_declared", "unknown"]
"""What the makers of a model say of a task: trained on it or on data that overlaps with it, no such data among what
they name, or nothing. No answer means that a model never saw the data."""


@dataclass(frozen=True, kw_only=True)
class MetricValue:
    """One number with its uncertainty. ``value`` is null where the metric is undefined, and ``reason`` says why."""

    __pydantic_config__ = BORDER

    value: float | None
    """The metric on all items."""
    ci_low: float | None = None
    """Lower end of the confidence interval."""
    ci_high: float | None = None
    """Upper end of the confidence interval."""
    n_items: int
    """Items that the value is computed from; 0 for an imported value, which came without them."""
    n_unscored: int = 0
    """Items without a value, left out."""
    reason: str | None = None
    """Why ``value`` is null: ``constant_input``, ``too_few_items``, ``undefined_in_subset:…``."""
    note: str | None = None
    """What to keep in mind when reading the interval."""
    interval: str | None = None
    """How the interval was made: ``bca`` or ``wilson``; null: there is none, or it is an older one by percentiles."""

    @property
    def approximate(self) -> bool:
        """Whether the interval is known to be rough."""
        return self.ci_low is not None and self.n_items < APPROXIMATE_BELOW


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why there is no number."""

    __pydantic_config__ = BORDER

    type: str
    """Class of the error."""
    message: str
    """Its message."""


@dataclass(frozen=True, kw_only=True)
class FileRef:
    """A file that belongs to a result, named by its content."""

    __pydantic_config__ = BORDER

    file: str
    """Name, in the folder of the result."""
    sha256: str
    """Hash of its bytes, 64 hexadecimal digits."""


@dataclass(frozen=True, kw_only=True)
class Timings:
    """What differs from run to run on one machine. Nothing here takes part in a comparison."""

    __pydantic_config__ = BORDER

    started_at: str
    """UTC, ISO 8601."""
    wall_s: float
    """Seconds from the first load of data to the last number, model loading excluded."""
    cpu_s: float
    """CPU seconds of this process in that time, all threads added."""
    load_model_s: float | None = None
    """Seconds to load the model; null where another task of the same run had loaded it."""
    peak_rss_mib: float | None = None
    """Largest resident memory of the process so far, MiB."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Wall seconds of each phase: ``load_data``, ``encode``, ``search``, ``score``."""
    texts_encoded: int | None = None
    """Distinct texts that went through the model; what came from the cache did not."""
    texts_per_s: float | None = None
    """Of these, per second; null where there were none."""
    tokens_per_s: float | None = None
    """Their tokens per second, padding not counted."""
    session: str | None = None
    """Where queries were timed in turns with those of other systems: one id for all of them; null: timed alone."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Where published numbers come from. Nothing here was measured by embeval, and there are no items behind it."""

    __pydantic_config__ = BORDER

    source: str
    """The file, from the folder that was imported."""
    mteb_version: str | None
    """Version of mteb that made them; null where they don't tell."""
    dataset_revision: str
    """Revision of the data set, as they tell it."""
    evaluation_time: float | None = None
    """Seconds that the evaluation took."""
    settings: Mapping[str, strict_json.Json] = field(default_factory=dict)
    """What stands beside them on how the model was run, such as ``max_tokens``; empty: nothing."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The outcome of one task on one split and subset for one model."""

    __pydantic_config__ = BORDER
    left_out_if_null: ClassVar[tuple[str, ...]] = ("imported", "trained_on", "facts", "tokens")
    """Fields that came after results were stored: null ones aren't written, so that the hash of these stays."""

    schema_version: int = SCHEMA_VERSION
    """Version of this form: 1."""
    status: Literal["ok", "error"]
    """``error``: ``error`` says why, and there are no scores."""
    task: TaskSpec
    """The task, its data path relative and only for information: ``signature`` holds the hash of the data."""
    model: ModelSpec
    """The model as it was run, revision resolved."""
    split: str
    """Split of the data set."""
    subset: str
    """A part of the split by name, ``all`` (every item pooled), ``mean`` or ``wmean`` over subsets."""
    scores: Mapping[str, MetricValue] = field(default_factory=dict)
    """Metric name -> value."""
    main_score: str | None = None
    """Which of ``scores`` stands for the task."""
    statistics: StatisticsOptions = field(default_factory=StatisticsOptions)
    """How the intervals were made."""
    counts: Mapping[str, int | None] = field(default_factory=dict)
    """Items, texts and tokens that went into the run, by name; null where not known."""
    warnings: tuple[str, ...] = ()
    """What a reader of the numbers should know."""
    labels: str | None = None
    """Hash of the labels by which items can be grouped, where the task has such labels."""
    items: FileRef | None = None
    """Parquet file of the item records."""
    run: FileRef | None = None
    """Parquet file of the ranking, for retrieval."""
    tokens: FileRef | None = None
    """Parquet file of the tokens one by one, where the task keeps them; null: there is none."""
    signature: Signature
    """What must be equal for two results to be compared."""
    provenance: Provenance
    """Code, packages and hardware."""
    timings: Timings | None = None
    """Everything that differs between two equal runs."""
    error: Failure | None = None
    """Why there are no scores."""
    imported: Imported | None = None
    """Where the numbers come from, if they were published elsewhere and only read here."""
    trained_on: TrainedOn | None = None
    """What the makers of the model say of this data, for tasks of mteb: ``declared``: trained on it or on data that
    overlaps with it, so not zero-shot; ``not_declared``: it is not among the training sets that they name;
    ``unknown``: they name none. null: nobody was asked."""
    facts: ModelFacts | None = None
    """Size, limits, languages and licence of the model; null: not known, as in results from before they were kept."""

    def __post_init__(self) -> None:
        if self.schema_version != SCHEMA_VERSION:
            raise ValueError(f"schema_version must be {SCHEMA_VERSION}, not {self.schema_version}")

    @property
    def files(self) -> tuple[tuple[str, FileRef], ...]:
        """(what it holds, file) of each file that belongs to it."""
        named = (("items", self.items), ("run", self.run), ("tokens", self.tokens))
        return tuple((kind, file) for kind, file in named if file is not None)

    @property
    def label(self) -> str:
        """The label of the model, which says if its numbers are imported."""
        return label_of(self.model, imported=self.imported is not None)

    @property
    def started_at(self) -> str:
        """When it was begun: UTC, ISO 8601, so that later ones are larger; empty where nobody knows."""
        return "" if self.timings is None else self.timings.started_at

    @property
    def stands(self) -> bool:
        """Whether this result stands for its task in tables, comparisons and gates, as a failed run always does."""
        return self.status == "error" or self.subset == self.signature.stands

    @property
    def main_value(self) -> MetricValue | None:
        """The value of ``main_score``; None for a failed run."""
        return None if self.main_score is None else self.scores.get(self.main_score)


def label_of(model: ModelSpec, *, imported: bool) -> str:
    """The label of a model, which says if its numbers are imported."""
    return f"{model.label} {IMPORTED}" if imported else model.label


def without_timings(result: strict_json.Json) -> strict_json.Json:
    """A result's JSON without what differs between two equal runs."""
    return {key: value for key, value in result.items() if key != "timings"}
