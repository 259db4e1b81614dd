"""A board as it was built: everything that its pages show, and all that they are made from.

``board.json`` holds it, so that pages can be made again, and held against what is committed, without the results.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from embeval.core import border, strict_json
from embeval.core.border import BORDER
from embeval.core.facts import ModelFacts
from embeval.core.paths import content
from embeval.core.result import Imported, TrainedOn
from embeval.core.specs import ModelSpec
from embeval.errors import StoreError
from embeval.leaderboard.definition import Gaps, Output, RankBy

SCHEMA_VERSION = 1
"""Version of the form of a built board."""
REPORT = re.compile(r"reports/[A-Za-z0-9-]+\.html")
"""Where the report of a model lies, from the board."""
LEVELS = 0.5, 1.0
"""Between these lies a level; the second is too much."""
REMEDY = "Build the board again: embeval leaderboard build."


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
    """What a model takes. null: not measured. Times and speeds are all of one machine, ``machine``."""

    __pydantic_config__ = BORDER

    recall: float | None = None
    """Mean recall over retrieval tasks at the depth that the RAG system passes on; null where the model lacks one."""
    latency_p95_ms: float | None = None
    """Of a query, milliseconds, median over tasks: those that every timed model was timed on, if there are any."""
    session: str | None = None
    """Models with the same one had their latencies measured in turns with each other, so that these can be held
    against each other to the digit; null: timed alone, and a machine is now fast and now slow."""
    tokens_per_s: float | None = None
    """Encoded, median over tasks, chosen likewise; texts that came from the cache don't count."""
    speed_of: str | None = None
    """Label of the model on the board that ``tokens_per_s`` and ``usd_per_million_tokens`` were measured with: the
    same weights in the same number format, whose vectors are only cut or quantised here; null: measured itself."""
    index_mib: float | None = None
    """Size of the index, MiB, summed over retrieval tasks; null where the model lacks one."""
    vector_bytes: int | None = None
    """Bytes of a vector as it is stored, cut and quantised; 0 for a system without vectors."""
    usd_per_million_tokens: float | None = None
    """US dollars to encode a million tokens: the price of an endpoint, or what the machine costs in that time."""
    machine: str | None = None
    """What ``latency_p95_ms`` and ``tokens_per_s`` were measured on: processor, device, threads."""
    elsewhere: bool = False
    """Whether ``machine`` is not the one that most models of the board were measured on: its times and speeds say
    little beside theirs, and are to be marked."""


@dataclass(frozen=True, kw_only=True)
class Retention:
    """A model beside the reference, as fractions of it: 0.5 is half. null: not known of one, or 0 of the reference."""

    __pydantic_config__ = BORDER

    quality: float | None = None
    """The mean that the board ranks by, over groups for ``mean_type``, else over tasks; null with a gap. Of values of
    which less is better the other way round, so that above 1 is better than the reference in any case."""
    size: float | None = None
    """Bytes of its weights."""
    vectors: float | None = None
    """Bytes of a vector as it is stored."""
    speed: float | None = None
    """Tokens per second: 2 is twice as fast; null also where the machines differ."""


@dataclass(frozen=True, kw_only=True)
class GateOutcome:
    """Whether a model may replace the one in use, ``Snapshot.production``."""

    __pydantic_config__ = BORDER

    outcome: Literal["in_use", "pass", "fail", "inconclusive", "error"]
    """``in_use``: it is that one itself; ``error``: the evidence is missing or broken."""
    sentence: str
    """Why, in one sentence: what blocks, else that nothing does."""
    rules: tuple[str, ...] = ()
    """The rules that block, each with the reason and its numbers; empty: none does."""


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
    """A revision of a model that has several, on the board or off it."""

    __pydantic_config__ = BORDER

    model: str
    """What its revisions share: the name with the settings, as ``minilm (int8)``. They make one line of a picture."""
    label: str
    """Its label, which tells its revisions apart; that of ``Snapshot.models`` where it is shown."""
    revision: str
    """The revision."""
    date: str
    """When its newest result was made: UTC, ISO 8601."""
    values: tuple[float | None, ...]
    """Its values, in the order of the columns; null: a gap."""
    mean: float | None
    """Their mean over tasks as the board weighs them; null with a gap, and of columns of both directions."""


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
    gaps: Gaps = "exclude"
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
    """Revisions of the models that have several, by model, date and label."""
    remarks: tuple[str, ...] = ()
    """What a reader should know of the numbers, as sentences."""
    failures: tuple[str, ...] = ()
    """Failed runs, as sentences."""
    date: str | None = None
    """When the newest result was made."""
    outputs: tuple[Output, ...] = ()
    """What is written of it, side by side: so that one may link to another."""


def dumps(made: Snapshot) -> str:
    """The board as JSON: equal boards give equal texts.

    What is as it is by default is left out. Each model, column and pair of models stands in a line of its own, so that
    a difference of two boards can be read.
    """
    plain = _without_defaults(made, border.dump(made))
    lines = [f"{strict_json.canonical(name)}:{_in_lines(plain[name])}" for name in sorted(plain)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load(path: Path) -> Snapshot:
    """The board in a file that ``dumps`` made. Raises ``StoreError`` where it is missing, broken or of another form."""
    try:
        value = strict_json.loads(content(path))
    except OSError as error:
        raise StoreError(f"{path}: can't be read ({error.strerror}).") from None
    except ValueError as error:
        raise StoreError(f"{path}: not valid JSON ({error}).\n{REMEDY}") from None
    version = value.get("schema_version") if isinstance(value, dict) else None
    if type(version) is not int or version != SCHEMA_VERSION:
        raise StoreError(f"{path}: not a board of form {SCHEMA_VERSION} (found {version!r}).\n{REMEDY}")
    try:
        made = border.load(Snapshot, value)
    except border.BorderError as error:
        raise StoreError(f"{path}: not a board: {error.problems[0]}\n{REMEDY}") from None
    if (problem := next(_problems(made), None)) is not None:
        raise StoreError(f"{path}: not a board: {problem}.\n{REMEDY}")
    return made


def _problems(made: Snapshot) -> Iterator[str]:
    """What doesn't fit together in a board, as no board that was built has it."""
    n_columns, n_models, n_tested = len(made.columns), len(made.models), len(made.tested)
    labels = [model.label for model in made.models]
    if len(set(labels)) < n_models:
        yield "two models have the same label"
    for model in made.models:
        if len(model.cells) != n_columns:
            yield f"{model.label} has {len(model.cells)} cells, and there are {n_columns} columns"
        if any(not 0 <= each.column < n_columns for each in model.items):
            yield f"{model.label} has items of a column that isn't there"
        if model.report is not None and not REPORT.fullmatch(model.report):
            yield f"the report of {model.label} is no file of this folder"
    if made.reference is not None and not 0 <= made.reference < n_models:
        yield "the reference isn't among the models"
    if len(set(made.tested)) < n_tested or any(not 0 <= place < n_models for place in made.tested):
        yield "what is tested isn't among the models"
    if made.pairs and len(made.pairs) != n_columns:
        yield f"there are pairs of {len(made.pairs)} columns, and {n_columns} columns"
    for column, pairs in zip(made.columns, made.pairs, strict=False):
        n_pairs = n_tested * (n_tested - 1) // 2
        if {len(pairs.variances), len(pairs.different)} != {n_pairs} and (pairs.variances or column.refused is None):
            yield f"{column.heading} has other pairs than the models that are tested"
        if not pairs.freedom > 0:
            yield f"{column.heading} has pairs of no degrees of freedom"
    if any(not column.weight > 0 for column in made.columns):
        yield "a column has no weight"
    if any(len(point.values) != n_columns for point in made.history):
        yield "the history has other columns"
    if not LEVELS[0] <= made.level < LEVELS[1]:
        yield f"level must be at least {LEVELS[0]:g} and below {LEVELS[1]:g}, not {made.level:g}"


def _in_lines(value: strict_json.Json) -> str:
    if not isinstance(value, list) or not value:
        return strict_json.canonical(value)
    return "[\n" + ",\n".join(map(strict_json.canonical, value)) + "\n]"


def _without_defaults(value: Any, plain: Any) -> Any:
    """The plain form of a value, without the fields of its records that are as they are by default."""
    if isinstance(value, tuple):
        return [_without_defaults(each, below) for each, below in zip(value, plain, strict=True)]
    if not dataclasses.is_dataclass(value):
        return plain
    return {
        each.name: _without_defaults(found, plain[each.name])
        for each in dataclasses.fields(value)
        if each.name in plain
        and ((found := getattr(value, each.name)) != _default(each) or each.name == "schema_version")
    }


def _default(of: dataclasses.Field[Any]) -> Any:
    return of.default_factory() if of.default_factory is not dataclasses.MISSING else of.default
