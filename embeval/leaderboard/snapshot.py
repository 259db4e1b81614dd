"""A board as it was built: everything that its pages show, and all that they are made from.

``board.json`` holds it, so that pages can be made again, and held against what is committed, without the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from embeval.core.border import BORDER
from embeval.core.facts import ModelFacts
from embeval.core.result import Imported, TrainedOn
from embeval.core.specs import ModelSpec
from embeval.leaderboard.definition import RankBy

SCHEMA_VERSION = 1
"""Version of the form of a built board."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A task by one metric. Values of one column measured the same thing."""

    __pydantic_config__ = BORDER

    task: str
    """Name of the task."""
    heading: str
    """What the column is called."""
    type: str
    """Kind of task, in mteb's words: ``Retrieval``, ``STS``, …"""
    group: str
    """The group it is shown in."""
    split: str
    """Split of the data."""
    subset: str
    """Sub-set: ``all``, ``mean``, or one by name."""
    metric: str
    """The metric."""
    metric_version: int
    """Its version; 0: imported."""
    protocol: str
    """First eight digits of the protocol's hash; values of others can't be compared."""
    higher_is_better: bool
    """Its direction."""
    weight: float = 1.0
    """What it counts in means."""
    refused: str | None = None
    """Why it takes no part in ranks; null: it does."""
    n_items: int | None = None
    """Items that values are computed from; null: only imported values."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A model on a task."""

    __pydantic_config__ = BORDER

    value: float | None
    """Its value; null where undefined, and ``reason`` says why."""
    low: float | None = None
    """Lower end of its confidence interval."""
    high: float | None = None
    """Upper end."""
    n_items: int = 0
    """Items behind it; 0: imported."""
    rough: bool = False
    """Whether the interval is of too few items to be trusted to the digit."""
    reason: str | None = None
    """Why there is no value."""
    trained_on: TrainedOn | None = None
    """Whether the model was trained on the data, by what its makers say."""
    imported: bool = False
    """Whether it was published elsewhere and only read here."""
    result: str | None = None
    """Id of the result, as ``embeval results show`` takes it."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a model stands."""

    __pydantic_config__ = BORDER

    rank: int | None = None
    """Its rank by what the board ranks by; null: not ranked."""
    rank_low: int | None = None
    """The best rank that the data leaves open."""
    rank_high: int | None = None
    """The worst."""
    letters: str | None = None
    """Models that share one can't be told apart; null: no test."""
    mean_task: float | None = None
    """Mean over tasks; null with a gap, and of columns of both directions."""
    mean_type: float | None = None
    """Mean over groups of the means within them; null with a gap, and of columns of both directions."""
    borda: int | None = None
    """Rank by Borda's count."""
    groups: Mapping[str, float | None] = field(default_factory=dict)
    """Mean within each group; null with a gap, and of columns of both directions."""
    gaps: int = 0
    """Tasks without a value; a model that is ranked all the same is ranked as if it were the worst there."""
    untested: str | None = None
    """Why there is no interval of its rank; null: there is one."""


@dataclass(frozen=True, kw_only=True)
class Measures:
    """What a model takes. null: not measured."""

    __pydantic_config__ = BORDER

    recall: float | None = None
    """Mean recall over retrieval tasks at the depth that the RAG system passes on."""
    latency_p95_ms: float | None = None
    """Of a query, milliseconds, median over tasks."""
    tokens_per_s: float | None = None
    """Encoded, median over tasks."""
    index_mib: float | None = None
    """Size of the index, MiB, summed over tasks."""
    usd_per_million_tokens: float | None = None
    """US dollars to encode a million tokens."""
    machine: str | None = None
    """What it was measured on."""


@dataclass(frozen=True, kw_only=True)
class Retention:
    """A model beside the reference, as fractions of it. null: not known on one side."""

    __pydantic_config__ = BORDER

    quality: float | None = None
    """Its mean over tasks."""
    size: float | None = None
    """Bytes of its weights."""
    vectors: float | None = None
    """Bytes of a vector."""
    speed: float | None = None
    """Tokens per second."""


@dataclass(frozen=True, kw_only=True)
class GateOutcome:
    """Whether a model may replace the one in use."""

    __pydantic_config__ = BORDER

    outcome: str
    """``pass``, ``fail``, ``inconclusive``, ``error``."""
    sentence: str
    """Why, in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """An item that a model lost or gained against the reference."""

    __pydantic_config__ = BORDER

    id: str
    """Its id."""
    reference: float
    """Value of the reference."""
    value: float
    """Value of the model."""
    text: str | None = None
    """What it says, where the board shows texts."""


@dataclass(frozen=True, kw_only=True)
class ItemList:
    """The items of a task that a model lost and gained most on."""

    __pydantic_config__ = BORDER

    column: int
    """Place of the column."""
    n_lost: int
    """Items on which it is worse than the reference."""
    n_gained: int
    """Items on which it is better."""
    lost: tuple[Item, ...] = ()
    """Those with the largest losses."""
    gained: tuple[Item, ...] = ()
    """Those with the largest gains."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A row."""

    __pydantic_config__ = BORDER

    label: str
    """Its name on the board, unlike any other."""
    spec: ModelSpec
    """The model as it was run."""
    digest: str
    """First eight digits of its spec's hash."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """The text put before inputs, by role, as used."""
    facts: ModelFacts = field(default_factory=ModelFacts)
    """Size, limits, languages, licence."""
    imported: Imported | None = None
    """Where its values come from, if they were published elsewhere."""
    date: str | None = None
    """When the newest of its results was made: UTC, ISO 8601."""
    cells: tuple[Cell | None, ...]
    """Its values, in the order of the columns; null: a gap."""
    standing: Standing
    """Where it stands."""
    measures: Measures = field(default_factory=Measures)
    """What it takes."""
    retention: Retention | None = None
    """Beside the reference; null: there is none, or it is the reference."""
    gate: GateOutcome | None = None
    """Whether it may replace the model in use; null: nothing decides that."""
    items: tuple[ItemList, ...] = ()
    """Items lost and gained, by task."""
    report: str | None = None
    """File of its comparison with the reference, relative to the board."""


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """How sure the differences of models on one column are: all pairs of ``Snapshot.tested``.

    Pairs stand in the order (1, 0), (2, 0), (2, 1), (3, 0), …
    """

    __pydantic_config__ = BORDER

    variances: tuple[float | None, ...]
    """Squared standard error of each difference; null: not known."""
    different: tuple[int, ...]
    """Items, or clusters of them, that differ."""
    freedom: float
    """Degrees of freedom."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """An earlier or later revision of a model."""

    __pydantic_config__ = BORDER

    model: str
    """Name of the model, without its revision."""
    label: str
    """Its label on the board, or what it would be."""
    revision: str
    """The revision."""
    date: str
    """When it was evaluated: UTC, ISO 8601."""
    values: tuple[float | None, ...]
    """Its values, in the order of the columns."""
    mean: float | None
    """Their mean as the board weighs them; null with a gap."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A built board."""

    __pydantic_config__ = BORDER

    schema_version: int = SCHEMA_VERSION
    """Version of this form."""
    title: str
    """Heading."""
    description: str = ""
    """What a reader should know."""
    rank_by: RankBy = "mean_task"
    """What it is ranked by."""
    gaps: str = "exclude"
    """What becomes of models with gaps."""
    level: float = 0.95
    """Confidence of intervals and tests."""
    rag_k: int = 10
    """Depth of ``Measures.recall``."""
    columns: tuple[Column, ...]
    """Tasks."""
    models: tuple[Model, ...]
    """Rows: ranked ones by rank, then the others by name."""
    tested: tuple[int, ...] = ()
    """Places of the models that have items on every ranked column: their pairs are tested."""
    pairs: tuple[Pairs, ...] = ()
    """For each column, in their order; empty: nothing is tested."""
    reference: int | None = None
    """Place of the reference."""
    production: str | None = None
    """Label of the model in use."""
    history: tuple[Point, ...] = ()
    """Revisions of the models, by model and date."""
    remarks: tuple[str, ...] = ()
    """What a reader should know of the numbers, as sentences."""
    failures: tuple[str, ...] = ()
    """Failed runs, as sentences."""
    date: str | None = None
    """When the newest result was made."""
