"""Where a result is strong and where it is weak: by slice, and item by item, from what is stored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from embeval import metrics
from embeval.core import strict_json
from embeval.core.protocols import Metric
from embeval.core.records import TOKEN_COLUMNS, ItemRecords, TokenRecords
from embeval.core.result import MetricValue
from embeval.errors import ConfigError, StoreError, UnknownNameError
from embeval.stats import scoring
from embeval.store.results import ResultStore, Stored


class SliceValue(NamedTuple):
    """A metric on the items of one label."""

    label: str
    """The label; empty where items have none."""
    value: MetricValue
    """The metric, with its interval and number of items."""


class LabelValue(NamedTuple):
    """A metric on the items of one label of one slice."""

    slice: str
    """The slice."""
    label: str
    """The label; empty where items have none."""
    value: MetricValue
    """The metric, with its interval and number of items."""


class FieldValue(NamedTuple):
    """A metric on the items of one field, and on those of each of its sub-sets."""

    label: str
    """The field."""
    value: MetricValue
    """The metric, with its interval and number of items."""
    parts: tuple[SliceValue, ...]
    """Its sub-sets, such as the paradigms of BLiMP."""


FIELD, SUBSET = "field", "subset"
"""Slices of which the one groups the other."""
FEW_ITEMS = 5
"""A label of fewer items says little, and stands after the others."""


class Item(NamedTuple):
    """One item with its value."""

    id: str
    """Its id."""
    value: float
    """Its value of the metric."""
    labels: dict[str, str]
    """Its labels by slice."""


class ItemTokens(NamedTuple):
    """The tokens of one item."""

    id: str
    """Its id."""
    tokens: TokenRecords
    """The tokens, and no others."""
    values: dict[str, float | None]
    """What is stored of the item, column by column; null where it has no value."""

    def to_json(self) -> strict_json.Json:
        """Plain JSON: the item, its columns, and one object per token."""
        shown = self.tokens
        return {
            "id": self.id,
            "values": self.values,
            "tokens": [
                {
                    "token": token,
                    **{name: int(getattr(shown, name)[row]) for name in TOKEN_COLUMNS},
                    "log_prob": {mode: float(values[row]) for mode, values in shown.log_probs.items()},
                }
                for row, token in enumerate(shown.tokens)
            ],
        }


def all_tokens(store: ResultStore, stored: Stored) -> TokenRecords:
    """The tokens behind a result. Raises ``StoreError`` where there are none."""
    if stored.result.tokens is None:
        raise StoreError(
            f"{stored.path}: this result has no tokens. They stand beside the result for all texts of a "
            "pseudo_likelihood task, unless it takes a sample or says 'keep_tokens: false'."
        )
    return store.tokens(stored)


def tokens_of(store: ResultStore, stored: Stored, item: str) -> ItemTokens:
    """The tokens of one item. Raises ``UnknownNameError`` for no such item, ``StoreError`` as ``all_tokens`` does."""
    found = all_tokens(store, stored)
    if item not in found.items:
        raise UnknownNameError("item", item, found.items)
    records = store.records(stored)
    row = records.ids.index(item)
    values = {name: float(column[row]) for name, column in records.columns.items()}
    return ItemTokens(item, found.of(item), {name: None if np.isnan(v) else v for name, v in values.items()})


def by_slice(store: ResultStore, stored: Stored, slice_name: str, metric: str | None = None) -> list[SliceValue]:
    """A metric (the main one unless named) for each label of a slice, worst first.

    Raises ``UnknownNameError`` for a slice or metric that the result doesn't have.
    """
    records = store.records(stored)
    if slice_name not in records.slices:
        hint = "" if records.slices else "This result has no slices."
        raise UnknownNameError("slice", slice_name, records.slices, hint=hint)
    chosen = _metric(stored, metric)
    values = []
    for label, rows in records.rows_by(slice_name).items():
        value = _value(stored, chosen, records.take(rows), slice_name, label)
        if value.n_items or value.n_unscored:  # a label of unanswerable queries alone has nothing to show
            values.append(SliceValue(label, value))
    return sorted(values, key=_worst_first)


def by_field(store: ResultStore, stored: Stored, metric: str | None = None) -> list[FieldValue]:
    """A metric (the main one unless named) for each field and each sub-set in it, worst first on both levels.

    Nothing where items have no fields, or the result is not of several sub-sets together.
    Raises ``UnknownNameError`` for a metric that the result doesn't have.
    """
    if stored.result.status != "ok" or stored.result.imported is not None or not stored.result.stands:
        return []
    chosen = _metric(stored, metric)
    records = store.records(stored, chosen.columns)
    if FIELD not in records.slices or len(set(records.slices.get(SUBSET, ()))) < 2:
        return []
    found = []
    for field, rows in records.rows_by(FIELD).items():
        of_field = records.take(rows)
        parts = [
            SliceValue(label, _value(stored, chosen, of_field.take(of_label), SUBSET, label))
            for label, of_label in of_field.rows_by(SUBSET).items()
        ]
        value = _value(stored, chosen, of_field, FIELD, field)
        found.append(FieldValue(field, value, tuple(sorted(parts, key=_worst_first))))
    return sorted(found, key=_worst_first)


def _worst_first(each: SliceValue | FieldValue) -> tuple[bool, float | None, str]:
    return each.value.value is None, each.value.value, each.label


def _value(stored: Stored, metric: Metric, records: ItemRecords, slice_name: str, label: str) -> MetricValue:
    """A metric on the items of a label; of a sub-set with the interval that its own result has."""
    place = (label,) if slice_name == SUBSET else (slice_name, label)
    data = str(stored.result.signature.protocol.get("data"))
    return scoring.value(records, metric, stored.result.statistics, data, *place)


def all_slices(store: ResultStore, stored: Stored, metric: str | None = None) -> list[LabelValue]:
    """A metric (the main one unless named) for each label of every slice, worst first over all of them.

    Labels of fewer than ``FEW_ITEMS`` items come last. A slice with one label is left out: it is the whole result.
    Raises ``UnknownNameError`` for a metric that the result doesn't have.
    """
    slices = store.records(stored).slices
    values = [
        LabelValue(name, label, value)
        for name, labels in slices.items()
        if len(set(labels)) > 1
        for label, value in by_slice(store, stored, name, metric)
    ]
    return sorted(
        values,
        key=lambda each: (
            each.value.n_items < FEW_ITEMS,
            each.value.value is None,
            each.value.value,
            each.slice,
            each.label,
        ),
    )


def worst_items(store: ResultStore, stored: Stored, n: int, metric: str | None = None) -> list[Item]:
    """The ``n`` items with the worst value of a metric, worst first: the lowest, or of a loss the highest.

    A ratio of sums, such as a loss per token, has a value of each item too. Raises ``ConfigError`` for a metric that
    items have no value of, such as a correlation.
    """
    records = store.records(stored)
    chosen = _metric(stored, metric)
    if isinstance(chosen, metrics.RatioOf):
        column = chosen.of_items(records.columns)
    elif chosen.columns == (chosen.name,):
        column = records.columns[chosen.name].astype(float)
    else:
        raise ConfigError(f"{chosen.name!r} is a value of all items together; single items have none.")
    return [
        Item(records.ids[row], float(column[row]), {name: labels[row] for name, labels in records.slices.items()})
        for row in np.argsort(column if chosen.higher_is_better else -column, kind="stable")[:n]
        if not np.isnan(column[row])
    ]


def _metric(stored: Stored, name: str | None) -> Metric:
    wanted = name or stored.result.main_score or ""
    if wanted not in stored.result.scores:
        raise UnknownNameError("metric of this result", wanted, stored.result.scores)
    return metrics.get(wanted)
