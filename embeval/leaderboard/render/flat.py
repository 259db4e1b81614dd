"""A built board as CSV, one row for each model, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from embeval.core.characters import visible
from embeval.leaderboard.render.deciding import prompts, settings
from embeval.leaderboard.snapshot import Cell, Column, Model, Snapshot

Value = str | int | float | None

_FORMULA = re.compile(r"(^|[;,\t\r\n])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""What a spreadsheet runs begins like this: at the start of a cell, or behind what another language's spreadsheet takes
for the end of one."""


def flat(made: Snapshot) -> str:
    """CSV (RFC 4180, lines end in a line feed) with a line of headings.

    Numbers are written so that reading them gives the same number; an empty cell is a gap, something undefined or not
    known. Texts that a spreadsheet would run as a formula get an apostrophe in front, as it would ask for.
    """
    text = io.StringIO()
    of_tasks = column_names(made)
    rows = [dict(_row(made, model, of_tasks)) for model in made.models]
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([harmless(name) for name in names])
    writer.writerows([[_written(row.get(name)) for name in names] for row in rows])
    return text.getvalue()


def harmless(text: str) -> str:
    """A text from data that no spreadsheet runs: in one line, an apostrophe before what could begin a formula."""
    return _FORMULA.sub(r"\1\2'", " ".join(visible(text).split()))


def column_names(made: Snapshot) -> list[str]:
    """The heading of each task's values: with its metric, and with what tells two alike apart."""
    short = [f"{column.heading} {column.metric}" for column in made.columns]
    return [
        name if short.count(name) == 1 else f"{name} {column.split} {column.subset} #{column.protocol}"
        for name, column in zip(short, made.columns, strict=True)
    ]


def _written(value: Value) -> Value:
    return harmless(value) if isinstance(value, str) else repr(value) if isinstance(value, float) else value


def _row(made: Snapshot, model: Model, of_tasks: Sequence[str]) -> Iterator[tuple[str, Value]]:
    yield from _standing(made, model)
    for name, column, cell in zip(of_tasks, made.columns, model.cells, strict=True):
        yield from _cell(name, column, cell)
    yield from _taken(made, model)
    yield from _identity(model)
    yield "trained_on", "; ".join(_seen(made, model)) or None


def _standing(made: Snapshot, model: Model) -> Iterator[tuple[str, Value]]:
    standing = model.standing
    yield "rank", standing.rank
    yield "model", model.label
    yield "rank_low", standing.rank_low
    yield "rank_high", standing.rank_high
    yield "letters", standing.letters
    yield "untested", standing.untested
    yield "gaps", standing.gaps
    yield "mean_task", standing.mean_task
    yield "mean_type", standing.mean_type
    yield "borda", standing.borda
    for group in dict.fromkeys(column.group for column in made.columns):
        yield f"mean of {group}", standing.groups.get(group)


def _cell(name: str, column: Column, cell: Cell | None) -> Iterator[tuple[str, Value]]:
    yield name, None if cell is None else cell.value
    if column.n_items is not None:
        yield f"{name} low", None if cell is None else cell.low
        yield f"{name} high", None if cell is None else cell.high


def _seen(made: Snapshot, model: Model) -> Iterator[str]:
    """Headings of the tasks whose data the model was trained on, by what its makers say."""
    for column, cell in zip(made.columns, model.cells, strict=True):
        if cell is not None and cell.trained_on == "declared":
            yield column.heading


def _taken(made: Snapshot, model: Model) -> Iterator[tuple[str, Value]]:
    measures, facts = model.measures, model.facts
    taken: Mapping[str, Value] = {
        f"recall_at_{made.rag_k}": measures.recall,
        "latency_p95_ms": measures.latency_p95_ms,
        "tokens_per_s": measures.tokens_per_s,
        "speed_of": measures.speed_of,
        "machine": measures.machine,
        "parameters": facts.parameters,
        "weight_bytes": facts.weight_bytes,
        "dimensions": facts.dimensions,
        "vector_bytes": measures.vector_bytes,
        "index_mib": measures.index_mib,
        "usd_per_million_tokens": measures.usd_per_million_tokens,
        "max_tokens": facts.max_tokens,
    }
    yield from taken.items()
    if made.reference is not None:
        kept = model.retention
        yield "quality_kept", None if kept is None else kept.quality
        yield "weights_kept", None if kept is None else kept.size
        yield "vectors_kept", None if kept is None else kept.vectors
        yield "speed_kept", None if kept is None else kept.speed
    if any(each.gate is not None for each in made.models):
        yield "gate", None if model.gate is None else model.gate.outcome
        yield "gate_reason", None if model.gate is None else model.gate.sentence


def _identity(model: Model) -> Iterator[tuple[str, Value]]:
    spec, facts = model.spec, model.facts
    yield "name", spec.name
    yield "revision", spec.revision
    yield "digest", model.digest
    yield "backend", spec.backend
    yield "dtype", spec.dtype
    yield "truncate_dim", spec.truncate_dim
    yield "quantize", spec.quantize
    yield "prompts", prompts(model) or None
    yield "languages", " ".join(facts.languages) or None
    yield "license", facts.license
    yield "imported", None if model.imported is None else model.imported.source
    yield "settings", settings(model.imported) or None
    yield "date", model.date
    yield "report", model.report
