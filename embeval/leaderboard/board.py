"""Stored results as a table: a row for each model, a column for each task.

Results share a column only if they measured the same thing: same task, split, sub-set and protocol signature. A
model without a result has a gap there, never a zero, and no mean. Imported values are the exception: nobody can hold
their data against ours, so they stand beside ours of the same name in rows that say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from embeval import metrics
from embeval.core import border, strict_json
from embeval.core.protocols import Metric
from embeval.core.result import IMPORTED, Imported, MetricValue, Result, TrainedOn
from embeval.core.signature import RESERVED_SUBSETS, STANDS, other_tokens
from embeval.core.words import plural
from embeval.errors import UnknownNameError

SHOWN = 3
"""Broken files named."""
SHOWN_IMPORTED = 8
"""Imported models whose settings are told."""
STATE = ("data", "task_version", "type_version")
"""Parts of a protocol that change as data and code move on, and not because somebody chose another option."""
TOLD_ELSEWHERE = (*STATE, "imported", STANDS)
"""Parts of a protocol that no heading has to tell."""
TRAINED = "†"
"""Marks a value on data that the model was trained on."""
APPROXIMATE = "≈ marks intervals from fewer than 50 items: approximate."
DOWN = "↓"
"""Behind the name of a metric of which less is better."""
LESS = f"{DOWN} less is better."


class ColumnKey(NamedTuple):
    """What results of one column have in common."""

    task: str
    split: str
    subset: str
    metric: str
    metric_version: int
    protocol: str


class _Measured(NamedTuple):
    """What ours and imported values have in common that speak of the same: names, since the data can't be compared."""

    task: str
    split: str
    metric: str
    parts: tuple[str, ...]
    """Sub-sets that the value is of: one, or several for a mean; empty: the task has only one."""

    @classmethod
    def of(cls, result: Result, metric: str) -> _Measured:
        if result.subset not in RESERVED_SUBSETS:
            return cls(result.task.name, result.split, metric, (result.subset,))
        told = result.signature.protocol.get("subsets") or result.task.options.get("subsets") or ()
        names = tuple(sorted(map(str, told)))
        over = (result.subset, *names) if len(names) > 1 else names
        return cls(result.task.name, result.split, metric, over)


class RowKey(NamedTuple):
    """What results of one row have in common."""

    label: str
    name: str
    revision: str
    digest: str

    @classmethod
    def of(cls, result: Result) -> RowKey:
        """The row that a result belongs to."""
        model = result.model
        return cls(result.label, model.name, model.revision or "", result.signature.model_digest[:8])


class Background(NamedTuple):
    """What belongs to a value and isn't in the number."""

    imported: Imported | None
    """Where it comes from, if it was published elsewhere."""
    trained_on: TrainedOn | None
    """Whether the model was trained on the data."""


NO_BACKGROUND = Background(None, None)


@dataclass(frozen=True)
class Row:
    """A model with its values."""

    key: RowKey
    """The model."""
    label: str
    """Its name in the table, made unique where two models share one."""
    cells: Mapping[ColumnKey, MetricValue]
    """Its values; a missing key is a gap."""
    mean: float | None
    """Mean over the columns that count; None where a value is missing or undefined, or there is no such mean."""
    backgrounds: Mapping[ColumnKey, Background] = field(default_factory=dict)
    """What belongs to its values."""
    results: Mapping[ColumnKey, Result] = field(default_factory=dict, repr=False, compare=False)
    """The results that its values stand in."""

    def background(self, key: ColumnKey) -> Background:
        """What belongs to one of its values."""
        return self.backgrounds.get(key, NO_BACKGROUND)

    def mark(self, key: ColumnKey) -> str:
        """What is put after one of its values: that it isn't zero-shot."""
        return TRAINED if self.background(key).trained_on == "declared" else ""


@dataclass(frozen=True)
class Board:
    """A table of models by tasks."""

    columns: tuple[ColumnKey, ...]
    """Columns, by task name."""
    headings: Mapping[ColumnKey, str]
    """Heading of each column."""
    rows: tuple[Row, ...]
    """Rows: complete ones by mean, best first, then the others by name."""
    failures: tuple[str, ...] = field(default=())
    """One sentence for each failed run of a task that is a column."""
    hidden_columns: int = 0
    """Columns left out because newer results of the same task were made with other data or options."""
    hidden_failures: int = 0
    """Failed runs of tasks that are no column."""
    levels: tuple[float, ...] = ()
    """Coverage that the intervals aim at; more than one where results differ in it."""
    broken: tuple[str, ...] = ()
    """One sentence for each stored file that could not be read and is left out."""
    refused: Mapping[ColumnKey, str] = field(default_factory=dict)
    """Why columns take no part in means and ranks, of those that don't."""

    @property
    def counted(self) -> tuple[ColumnKey, ...]:
        """The columns that take part in means and ranks."""
        return tuple(column for column in self.columns if column not in self.refused)

    @property
    def approximate(self) -> bool:
        """Whether any interval is known to be rough."""
        return any(cell.approximate for row in self.rows for cell in row.cells.values())

    @property
    def has_means(self) -> bool:
        """Whether a mean is worth showing: of one column it says nothing, and with a gap in each row there is none."""
        return len(self.counted) > 1 and any(row.mean is not None for row in self.rows)

    def of_values(self) -> list[str]:
        """What a reader of the values should know wherever they stand, as sentences."""
        refused = [f"Not ranked by {self.headings[key]}: {why}." for key, why in self.refused.items()]
        return [*refused, *self._training(), *self._imported()]

    def remarks(self) -> list[str]:
        """What a reader of the table in a terminal should know, as sentences."""
        falling = LESS if any(not higher_is_better(key.metric) for key in self.columns) else ""
        return [*self.notes(falling, self._without_mean(), more="--all shows everything")]

    def notes(self, *of_means: str, more: str) -> list[str]:
        """What a reader of the values should know, as sentences; ``more`` tells how to see what isn't shown."""
        found = []
        if self.levels:
            shown = " and ".join(f"{level * 100:g} %" for level in self.levels)
            found.append(f"Brackets hold {shown} intervals.")
        if self.approximate:
            found.append(APPROXIMATE)
        found += [each for each in of_means if each]
        found += self.of_values()
        if n := self.hidden_columns:
            older = plural(n, "older column is", "older columns are")
            found.append(f"{older} hidden (same task, other data); {more}.")
        if n := self.hidden_failures:
            found.append(f"{plural(n, 'failed run')} of other tasks; see embeval results list.")
        found += [f"Left out: {message.splitlines()[0]}" for message in self.broken[:SHOWN]]
        if (n := len(self.broken) - SHOWN) > 0:
            found.append(f"Left out as well: {plural(n, 'more file')} that can't be read.")
        return found

    def _without_mean(self) -> str:
        """Why there is no mean; empty where there is one."""
        if _variants(self.counted):
            return "No mean: some columns are variants of one task; --task shows some of them."
        if _both_ways(self.counted):
            return "No mean: higher is better in some columns and lower in others; --task shows some of them."
        if _unlike(self.counted):
            return "No mean: the columns have different units; --task shows some of them."
        if len(self.counted) > 1 and self.rows and not self.has_means:
            return "No mean: no model has a value in every column; --task shows some of them."
        return ""

    def _training(self) -> Iterator[str]:
        """What is known of the training of the models, as sentences."""
        if any(row.mark(key) for row in self.rows for key in self.columns):
            yield (
                f"{TRAINED} marks values that aren't zero-shot: the model's makers say that it was trained on this "
                "data, or on data that overlaps with it."
            )
        unknown = [
            row.label for row in self.rows if any(row.background(key).trained_on == "unknown" for key in self.columns)
        ]
        if unknown:
            yield f"Unknown whether trained on this data: {listed(unknown)}."

    def _imported(self) -> Iterator[str]:
        """Where imported values come from, as sentences."""
        settings = {
            row.label: list(dict.fromkeys(_settings(each) for each in there))
            for row in self.rows
            if (there := [each for key in self.columns if (each := row.background(key).imported) is not None])
        }
        if not settings:
            return
        yield f"{IMPORTED} marks values that were published and not measured here; their data can't be checked."
        for label, told in list(settings.items())[:SHOWN_IMPORTED]:
            yield f"{label}: {'; '.join(told)}."
        if (n := len(settings) - SHOWN_IMPORTED) > 0:
            yield f"Settings of {plural(n, 'more imported model')}: embeval results show."
        revisions = {
            f"{key.task} {each.dataset_revision[:8]}"
            for row in self.rows
            for key in self.columns
            if (each := row.background(key).imported) is not None
        }
        yield f"Data of imported values: {listed(sorted(revisions))}."

    def to_json(self) -> strict_json.Json:
        """The table as plain values."""
        return {
            "columns": [{**key._asdict(), "heading": self.headings[key]} for key in self.columns],
            "rows": [
                {
                    "model": row.label,
                    "name": row.key.name,
                    "revision": row.key.revision,
                    "digest": row.key.digest,
                    "mean": row.mean,
                    "values": [_cell_json(row.cells.get(key), row.background(key)) for key in self.columns],
                }
                for row in self.rows
            ],
            "failures": list(self.failures),
            "hidden_columns": self.hidden_columns,
            "hidden_failures": self.hidden_failures,
            "levels": list(self.levels),
            "broken": list(self.broken),
        }


def listed(names: Sequence[str]) -> str:
    """The first names, and how many there are more."""
    more = f" and {plural(len(names) - SHOWN_IMPORTED, 'more')}" if len(names) > SHOWN_IMPORTED else ""
    return f"{', '.join(names[:SHOWN_IMPORTED])}{more}"


def _settings(imported: Imported) -> str:
    """The version of mteb and how the model was run, as far as it is told."""
    version = "a version of mteb that isn't told" if imported.mteb_version is None else f"mteb {imported.mteb_version}"
    told = [f"{name} {strict_json.canonical(value)}" for name, value in imported.settings.items()]
    return ", ".join([version, *(told or ["settings not told"])])


def _cell_json(cell: MetricValue | None, background: Background) -> dict[str, Any] | None:
    if cell is None:
        return None
    imported, trained_on = background
    return {
        **({} if imported is None else {"imported": border.dump(imported)}),
        **({} if trained_on is None else {"trained_on": trained_on}),
        "value": cell.value,
        "ci_low": cell.ci_low,
        "ci_high": cell.ci_high,
        "n_items": cell.n_items,
        "reason": cell.reason,
        "note": cell.note,
    }


def build(
    results: Iterable[Result],
    *,
    metric: str | None = None,
    older: bool = False,
    shown: Callable[[Result], Iterable[tuple[str, bool]]] | None = None,
) -> Board:
    """The table of the results that stand for their tasks; ``metric`` instead of each task's main score.

    ``shown`` chooses otherwise: (metric, whether it has a column of its own) for each way in which a result is shown.
    An imported one without a column of its own still stands beside ours of the same sub-sets.

    Where a task was evaluated under several states of its data, only the state of the newest result is shown, unless
    ``older``. Different options are variants that somebody chose, and columns of their own.
    """
    table, failed, published = _Table(), [], []
    for result in results:
        if result.status == "error":
            failed.append(result)
            continue
        for name, alone in _standing(result, metric) if shown is None else shown(result):
            if result.imported is not None:
                published.append((result, name, alone))
            elif alone:
                table.put_ours(result, name)
    shown_of_ours = set(table.newest if older else _latest(table.newest, table.protocols))
    only_published = {column for each in published for column in table.put_published(*each, shown_of_ours)}
    columns = tuple(sorted(shown_of_ours | only_published))
    refused = _refused(columns, list(table.results.values()))
    counted = tuple(column for column in columns if column not in refused)
    tasks = {column.task for column in columns}
    told = [result for result in failed if result.task.name in tasks or not tasks]
    return Board(
        columns,
        _headings(columns, table.protocols, table.rerankers),
        tuple(_rows(table.results, columns, counted)),
        tuple(_sentence(result) for result in told),
        hidden_columns=len(table.newest) - len(shown_of_ours),
        hidden_failures=len(failed) - len(told),
        levels=tuple(sorted(set().union(*(table.levels.get(column, set()) for column in columns)))),
        refused=refused,
    )


class _Table:
    """Results by row and column, as they are put in."""

    def __init__(self) -> None:
        self.results: dict[RowKey, dict[ColumnKey, Result]] = {}
        self.newest: dict[ColumnKey, str] = {}
        """When the newest of ours was made, of each column that has any."""
        self.levels: dict[ColumnKey, set[float]] = {}
        """Coverage that intervals of ours aim at."""
        self.protocols: dict[str, Mapping[str, strict_json.Json]] = {}
        """Beginning of the digest -> protocol."""
        self.rerankers: dict[str, str] = {}
        """Likewise -> name of the reranker."""
        self._ours: dict[_Measured, dict[ColumnKey, None]] = {}
        self._digests: dict[int, tuple[Any, str]] = {}

    def put_ours(self, result: Result, metric: str) -> None:
        """Takes in what was measured here."""
        column = self._put_alone(result, metric)
        self._ours.setdefault(_Measured.of(result, metric), {})[column] = None
        self.newest[column] = max(self.newest.get(column, ""), result.started_at)
        if result.scores[metric].ci_low is not None:
            self.levels.setdefault(column, set()).add(result.statistics.level)

    def put_published(
        self, result: Result, metric: str, alone: bool, shown_of_ours: Collection[ColumnKey]
    ) -> list[ColumnKey]:
        """Takes in what was published, beside ours where any fit; (the column of its own that it then needs)."""
        fitting = [column for column in self._ours.get(_Measured.of(result, metric), ()) if column in shown_of_ours]
        for column in fitting:
            self._put(result, column)
        return [] if fitting or not alone else [self._put_alone(result, metric)]

    def _put_alone(self, result: Result, metric: str) -> ColumnKey:
        column = self._column(result, metric)
        self._put(result, column)
        self.protocols[column.protocol] = result.signature.protocol
        self.rerankers[column.protocol] = _reranker(result)
        return column

    def _put(self, result: Result, column: ColumnKey) -> None:
        self.results.setdefault(RowKey.of(result), {})[column] = result

    def _column(self, result: Result, metric: str) -> ColumnKey:
        protocol = result.signature.protocol  # one for many results, where they come from a catalogue
        if id(protocol) not in self._digests:  # kept beside its digest: another would be given its id once it is gone
            self._digests[id(protocol)] = protocol, result.signature.protocol_digest[:8]
        version = result.signature.metrics.get(metric, 0)
        return ColumnKey(result.task.name, result.split, result.subset, metric, version, self._digests[id(protocol)][1])


def _rows(
    results: Mapping[RowKey, Mapping[ColumnKey, Result]],
    columns: tuple[ColumnKey, ...],
    counted: tuple[ColumnKey, ...],
) -> list[Row]:
    """The rows that have any value, in the order of the table."""
    labels = unique_labels(results)
    averaged = not _variants(counted) and not _both_ways(counted) and not _unlike(counted)
    rows = [
        Row(
            key,
            labels[key],
            values,
            _mean(values, counted) if averaged else None,
            {column: Background(each.imported, each.trained_on) for column, each in of_row.items()},
            of_row,
        )
        for key, of_row in results.items()
        if (values := {column: of_row[column].scores[column.metric] for column in columns if column in of_row})
    ]
    best_first = -1.0 if all(higher_is_better(column.metric) for column in counted) else 1.0
    return sorted(rows, key=lambda row: (row.mean is None, best_first * (row.mean or 0.0), row.label))


def _standing(result: Result, metric: str | None) -> list[tuple[str, bool]]:
    """What ``shown`` is unless given."""
    name = metric or result.main_score
    return [] if name is None or name not in result.scores else [(name, result.stands)]


def _latest(
    newest: Mapping[ColumnKey, str], protocols: Mapping[str, Mapping[str, strict_json.Json]]
) -> list[ColumnKey]:
    """The columns that measured the latest state of their task's data, by the latest version of their metric."""

    def options(key: ColumnKey) -> str:
        return strict_json.digest({name: each for name, each in protocols[key.protocol].items() if name not in STATE})

    state: dict[tuple[str, str, str], str] = {}
    version: dict[tuple[str, str, str, str], int] = {}
    for key in sorted(newest, key=lambda key: (newest[key], key)):
        state[key.task, key.split, options(key)] = key.protocol
        version[key.task, key.split, key.protocol, key.metric] = key.metric_version
    return [
        key
        for key in newest
        if state[key.task, key.split, options(key)] == key.protocol
        and version[key.task, key.split, key.protocol, key.metric] == key.metric_version
    ]


def unique_labels(keys: Iterable[RowKey]) -> dict[RowKey, str]:
    """A label for each model; where two share one, the beginning of the digest is added."""
    shared = Counter(key.label for key in keys)
    return {key: key.label if shared[key.label] == 1 else f"{key.label} #{key.digest}" for key in keys}


def _sentence(result: Result) -> str:
    assert result.error is not None
    reason = next(iter(result.error.message.splitlines()), "") or result.error.type
    return f"{result.model.label} on {result.task.name}: {reason}"


def _mean(cells: Mapping[ColumnKey, MetricValue], columns: tuple[ColumnKey, ...]) -> float | None:
    values = [cells[key].value for key in columns if key in cells]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if columns and len(known) == len(columns) else None


def _variants(columns: tuple[ColumnKey, ...]) -> bool:
    """Whether two columns hold one task in two ways: a mean would count its queries twice."""
    return len({(key.task, key.split, key.metric) for key in columns}) < len(columns)


def higher_is_better(metric: str) -> bool:
    """The direction of a metric; one that only imported results know is taken for a score."""
    found = _metric(metric)
    return found is None or found.higher_is_better


def _metric(name: str) -> Metric | None:
    try:
        return metrics.get(name)
    except UnknownNameError:  # of an imported result
        return None


def _both_ways(columns: tuple[ColumnKey, ...]) -> bool:
    """Whether higher is better in some columns and lower in others: a mean would say nothing."""
    return len({higher_is_better(key.metric) for key in columns}) > 1


def _unlike(columns: tuple[ColumnKey, ...]) -> bool:
    """Whether different losses, times or perplexities stand beside each other: they have no scale in common."""
    return any(not higher_is_better(key.metric) for key in columns) and len({key.metric for key in columns}) > 1


def _refused(columns: tuple[ColumnKey, ...], rows: Sequence[Mapping[ColumnKey, Result]]) -> dict[ColumnKey, str]:
    """Why columns take no part in means and ranks, of those that don't."""
    reasons = {
        column: other_tokens(row[column].signature for row in rows if column in row)
        for column in columns
        if metrics.is_per_token(column.metric)
    }
    return {column: why for column, why in reasons.items() if why is not None}


def _reranker(result: Result) -> str:
    """Name of the reranker of a task; empty where there is none."""
    given = result.task.options.get("rerank")
    name = given.get("model", "") if isinstance(given, Mapping) else given or ""
    return str(name).rstrip("/").rpartition("/")[2]


def _option(name: str, value: strict_json.Json, reranker: str) -> str:
    """A part of a protocol for a heading; a reranker by its name, since its digest tells people nothing."""
    if name == "rerank" and isinstance(value, Mapping):
        return f"rerank={reranker} ({str(value.get('model'))[:8]}), depth {value.get('depth')}"
    if name == "data_revision":
        return f"{name}={str(value)[:8]}"
    return f"{name}={value}"


def _headings(
    columns: tuple[ColumnKey, ...],
    protocols: Mapping[str, Mapping[str, strict_json.Json]],
    rerankers: Mapping[str, str],
) -> dict[ColumnKey, str]:
    """Task names, with what tells them apart where names alone would not: split, options, protocol, metric version."""
    headings = {}
    for key in columns:
        same_task = [other for other in columns if other.task == key.task and other != key]
        parts = [key.task]
        if key.split != "test" or any(other.split != key.split for other in same_task):
            parts.append(f"({key.split})")
        alike = [other for other in same_task if (other.split, other.metric) == (key.split, key.metric)]
        own = protocols[key.protocol]
        others = [protocols[other.protocol] for other in alike if other.protocol != key.protocol]
        differing = sorted(
            {name for other in others for name in own if other.get(name) != own[name]} - {*TOLD_ELSEWHERE}
        )
        parts += [_option(name, own[name], rerankers[key.protocol]) for name in differing]
        if any(all(other.get(name) == own[name] for name in differing) for other in others):
            parts.append(f"#{key.protocol}")
        if key.metric_version and any(other.metric_version not in (0, key.metric_version) for other in alike):
            parts.append(f"v{key.metric_version}")
        headings[key] = " ".join(parts)
    return headings
