"""Stored results in forms that other tools read: rankings as TREC runs, values per item or token as csv or jsonl."""

from __future__ import annotations

import csv
import gzip
import io
import math
from pathlib import Path

from embeval.core import strict_json
from embeval.core.records import TOKEN_COLUMNS, ItemRecords, TokenRecords
from embeval.core.specs import ModelSpec
from embeval.data import trec
from embeval.errors import ConfigError, StoreError, UnknownNameError
from embeval.store import atomic
from embeval.store.results import ResultStore, Stored
from embeval.workflows import report

FORMS = ("trec", "csv", "jsonl", "tokens")
"""``trec``: the ranking; ``csv`` and ``jsonl``: every metric and label of every item; ``tokens``: a csv of every token
with its log-probabilities."""
BY_ENDING = ("trec", "csv", "jsonl")
"""Forms that the ending of a file's name stands for."""


def form_of(to: str) -> str:
    """The form that the name of a file stands for; ``trec`` for any other."""
    ending = to.lower().removesuffix(".gz").rpartition(".")[2]
    return ending if ending in BY_ENDING else "trec"


def rendered(store: ResultStore, stored: Stored, form: str) -> bytes:
    """The ranking, the items or the tokens of a stored result, as UTF-8 text in one of ``FORMS``.

    Raises ``UnknownNameError`` for another form, ``StoreError`` where the result has no such rows, and ``DataError``
    for ids that can't stand in a TREC file.
    """
    if form not in FORMS:
        raise UnknownNameError("form", form, FORMS)
    if form == "tokens":
        return _tokens(report.all_tokens(store, stored)).encode("utf-8")
    if form != "trec":
        records = store.records(stored)
        return (_csv(records) if form == "csv" else _jsonl(records)).encode("utf-8")
    if stored.result.run is None:
        raise StoreError(
            f"{stored.path}: this result has no ranking; one stands beside the result for all items of a retrieval "
            "task.\nValues per item: --format csv or jsonl."
        )
    out = io.BytesIO()
    trec.write_run(store.run(stored), out, tag(stored.result.model))
    return out.getvalue()


def write(data: bytes, place: Path, *, overwrite: bool = False) -> None:
    """Writes a file that is either whole or not there; gzipped where its name ends in .gz.

    Raises ``ConfigError`` where there is one already that is not to be replaced.
    """
    if place.exists() and not overwrite:
        raise ConfigError(f"{place} exists. Choose another name, or give --force to replace it.")
    if place.is_dir():
        raise ConfigError(f"{place} is a folder; the name of a file is needed.")
    atomic.write(place, gzip.compress(data, mtime=0) if place.name.endswith(".gz") else data)


def tag(model: ModelSpec) -> str:
    """The name of a system for the last column of a run, which can't hold spaces."""
    return "-".join(model.label.split())


def _csv(records: ItemRecords) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", *records.columns, *(f"label.{name}" for name in records.slices)])
    columns = [
        ["" if math.isnan(value) else repr(value) for value in each.tolist()] for each in records.columns.values()
    ]
    writer.writerows(zip(records.ids, *columns, *records.slices.values(), strict=True))
    return out.getvalue()


def _tokens(tokens: TokenRecords) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["item", "token", *TOKEN_COLUMNS, *(f"log_prob_{mode}" for mode in tokens.log_probs)])
    items = (tokens.items[row] for row in tokens.item.tolist())
    numbers = [getattr(tokens, name).tolist() for name in TOKEN_COLUMNS]
    # As short as a float32 is told from its neighbours, not as long as the same number in float64.
    log_probs = [[str(value) for value in values] for values in tokens.log_probs.values()]
    writer.writerows(zip(items, tokens.tokens, *numbers, *log_probs, strict=True))
    return out.getvalue()


def _jsonl(records: ItemRecords) -> str:
    lines = []
    for row, item in enumerate(records.ids):
        values = {name: float(column[row]) for name, column in records.columns.items()}
        line: strict_json.Json = {
            "id": item,
            "values": {name: None if math.isnan(value) else value for name, value in values.items()},
            "labels": {name: labels[row] for name, labels in records.slices.items()},
        }
        lines.append(strict_json.canonical(line) + "\n")
    return "".join(lines)
