"""How the scores of a model moved over its revisions, those that the board doesn't show too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from embeval.core.result import Result
from embeval.leaderboard import ranking, standings
from embeval.leaderboard.board import ColumnKey, RowKey, unique_labels
from embeval.leaderboard.snapshot import Column, Point

_Series = tuple[str, str, str]
"""(label, name, digest of the settings): what the revisions of a model share."""


def points(results: Iterable[Result], keys: Sequence[ColumnKey], columns: Sequence[Column]) -> tuple[Point, ...]:
    """The revisions of models that were run here and have several, by model, date and label.

    ``keys`` are those of ``columns``: what was measured otherwise, as on older data, is a gap. Of one measurement the
    newest counts.
    """
    rows: dict[RowKey, list[Result]] = {}
    for each in results:
        if each.status == "ok" and each.imported is None:
            rows.setdefault(RowKey.of(each), []).append(each)
    labels = unique_labels(rows)
    series: dict[_Series, dict[RowKey, list[Result]]] = {}
    for row, of_row in rows.items():
        series.setdefault(_series(of_row[0]), {})[row] = of_row
    several = {key: of for key, of in series.items() if len({row.revision for row in of}) > 1}
    names = _unlike(several)
    found = [
        point
        for key, of in several.items()
        for row, of_row in of.items()
        if (point := _point(names[key], labels[row], of_row, keys, columns)) is not None
    ]
    return tuple(sorted(found, key=lambda each: (each.model, each.date, each.label)))


def _series(result: Result) -> _Series:
    model = result.model
    return result.label, model.name, replace(model, revision=None).digest


def _unlike(series: Iterable[_Series]) -> Mapping[_Series, str]:
    """A name for each series, with the beginning of its digest where two share one."""
    keys = [RowKey(label, name, "", digest[:8]) for label, name, digest in series]
    labels = unique_labels(keys)
    return {each: labels[key] for each, key in zip(series, keys, strict=True)}


def _point(
    model: str, label: str, results: Sequence[Result], keys: Sequence[ColumnKey], columns: Sequence[Column]
) -> Point | None:
    """One revision; None where nothing of it is on the board, or nobody knows when it was made."""
    measured = _measured(results)
    values = [_value(measured, key) for key in keys]
    date = max(each.started_at for each in results)
    if not date or all(value is None for value in values):
        return None
    return Point(
        model=model,
        label=label,
        revision=results[0].model.revision or "",
        date=date,
        values=tuple(values),
        mean=_mean(values, columns),
    )


def _mean(values: Sequence[float | None], columns: Sequence[Column]) -> float | None:
    """Over the columns that count; None with a gap, and where they have no mean."""
    counted = ranking.ranked(columns)
    known = [value for place in counted if (value := values[place]) is not None]
    if not counted or len(known) < len(counted) or ranking.unlike([columns[place] for place in counted]):
        return None
    shares = standings.task_shares([columns[place].weight for place in counted])
    return float(standings.means(np.array([known]), shares)[0])


def _measured(results: Sequence[Result]) -> dict[tuple[str, str, str, str], Result]:
    """(task, split, sub-set, protocol) -> the newest of these results that measured it."""
    return {
        (each.task.name, each.split, each.subset, each.signature.protocol_digest[:8]): each
        for each in sorted(results, key=lambda each: each.started_at)
    }


def _value(measured: Mapping[tuple[str, str, str, str], Result], key: ColumnKey) -> float | None:
    result = measured.get((key.task, key.split, key.subset, key.protocol))
    if result is None or result.signature.metrics.get(key.metric) != key.metric_version:
        return None
    found = result.scores.get(key.metric)
    return None if found is None else found.value
