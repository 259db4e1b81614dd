"""Item by item: what a candidate lost, gained and left as it was."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np

from embeval import metrics
from embeval.compare.pairs import Pair
from embeval.compare.report import TaskChanges
from embeval.core.comparison import ItemChange, RankedPositive
from embeval.data.beir import RetrievalData
from embeval.data.excerpts import excerpt

EXCERPT = 200
"""Characters of a document's text."""

Rankings = Mapping[str, tuple[str, ...]]
"""Query -> its documents, best first."""


def changes(pair: Pair, candidate: str, show: int, name: str | None = None) -> TaskChanges | None:
    """Counts, and the ``show`` largest losses and gains by a metric, the main one unless named; ids only.

    None where single items have no value of it, such as a correlation, or where there is no difference.
    """
    if not pair.metric_names or (name is not None and name not in pair.metric_names):
        return None
    metric = metrics.get(name or pair.metric_names[0])
    one, other = pair.baseline.records, pair.candidate.records
    if metric.columns != (metric.name,) or pair.refusal(metric, one, other) is not None:
        return None
    before, after = one.columns[metric.name], other.columns[metric.name]
    gains = after - before if metric.higher_is_better else before - after
    known = np.flatnonzero(~np.isnan(gains))
    won, lost = int((gains[known] > 0).sum()), int((gains[known] < 0).sum())
    order = known[np.argsort(gains[known], kind="stable")]

    def items(rows: Collection[int]) -> tuple[ItemChange, ...]:
        return tuple(
            ItemChange(id=one.ids[row], baseline=float(before[row]), candidate=float(after[row])) for row in rows
        )

    result = pair.baseline.result
    return TaskChanges(
        task=result.task.name,
        split=result.split,
        subset=result.subset,
        metric=metric.name,
        candidate=candidate,
        n_lost=lost,
        n_gained=won,
        n_same=len(known) - won - lost,
        lost=items(order[: min(show, lost)].tolist()),
        gained=items(order[::-1][: min(show, won)].tolist()),
    )


def with_rankings(
    found: TaskChanges, data: RetrievalData, rankings: Callable[[Collection[str]], tuple[Rankings, Rankings]]
) -> TaskChanges:
    """The same with texts, relevant documents and their ranks; ``rankings`` gives those of both sides."""
    ids = {item.id for item in (*found.lost, *found.gained)}
    before, after = rankings(ids)
    texts = dict(zip(data.doc_ids, data.doc_texts, strict=True))

    def told(item: ItemChange) -> ItemChange:
        query = data.queries.get(item.id, "")
        one, other = before.get(item.id, ()), after.get(item.id, ())
        first = other[0] if other else None
        return replace(
            item,
            text=query,
            positives=_positives(item.id, data, one, other, texts),
            baseline_first=one[0] if one else None,
            candidate_first=first,
            candidate_first_text=None if first is None else excerpt(texts.get(first, ""), query, EXCERPT),
        )

    return replace(found, lost=tuple(map(told, found.lost)), gained=tuple(map(told, found.gained)))


def _positives(
    query: str, data: RetrievalData, one: tuple[str, ...], other: tuple[str, ...], texts: Mapping[str, str]
) -> tuple[RankedPositive, ...]:
    """Best grade first, then by the better of the two ranks."""
    ranks = [{doc: rank for rank, doc in enumerate(docs, start=1)} for docs in (one, other)]
    nowhere = len(one) + len(other) + 1
    found = [
        RankedPositive(
            doc=doc,
            grade=grade,
            baseline_rank=ranks[0].get(doc),
            candidate_rank=ranks[1].get(doc),
            text=excerpt(texts[doc], data.queries.get(query, ""), EXCERPT) if doc in texts else None,
        )
        for doc, grade in data.qrels.judgments.get(query, {}).items()
        if grade > 0
    ]
    return tuple(
        sorted(
            found,
            key=lambda each: (
                -each.grade,
                min(each.baseline_rank or nowhere, each.candidate_rank or nowhere),
                each.doc,
            ),
        )
    )
