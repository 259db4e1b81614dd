"""Values of groups of queries, for the tasks of mteb whose main score is one of ``metrics.query_groups``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embeval.core import ir
from embeval.core.ir import NOTHING, Qrels, Run
from embeval.metrics import ranking
from embeval.metrics.query_groups import MAX_OVER, P_MRR, PAIRED_ACCURACY, ROBUSTNESS
from embeval.mteb_bridge import door
from embeval.mteb_bridge.categories._category import Setting

ORIGINAL, CHANGED = "-og", "-changed"
Changed = Mapping[str, Sequence[str]]
"""Query id without its ending -> documents whose relevance the changed instruction takes away."""


@dataclass(frozen=True)
class Groups:
    """Queries that belong together."""

    values: Mapping[str, float]
    """Query id -> value of its group, for one query of each group that has one."""
    group_of: Mapping[str, str]
    """Query id -> name of its group: items that are not independent."""


def groups(setting: Setting, subset: str, run: Run, qrels: Qrels) -> Groups | None:
    """The groups that the main score of a task speaks of; None for a task whose queries each stand alone."""
    main = setting.task.metadata.main_score
    queries = qrels.judged
    if main == P_MRR:
        return Groups(
            _p_mrr(run, changed(setting, subset)),
            {query: query.removesuffix(ORIGINAL).removesuffix(CHANGED) for query in queries},
        )
    if main == PAIRED_ACCURACY:
        return _by_query(
            run, qrels, lambda query: query.split("_")[0], "recall_at_1", lambda found: float(min(found) == 1)
        )
    if main == ROBUSTNESS:
        return _by_query(run, qrels, lambda query: query.split("_")[0], "ndcg_at_10", min)
    if main.startswith(MAX_OVER):
        return _merged(run, qrels, main.removeprefix(MAX_OVER))
    return None


def changed(setting: Setting, subset: str) -> Changed:
    """The documents whose relevance changes with the instruction, which mteb loads while it scores."""
    import datasets

    metadata = setting.task.metadata
    own = getattr(sys.modules[type(setting.task).__module__], "load_qrel_diff", None)
    with door.quiet():
        if own is not None:  # a task of several languages
            return dict(own(metadata, subset))
        rows = datasets.load_dataset(metadata.dataset["path"], split="qrel_diff", revision=metadata.dataset["revision"])
        return {row["query-id"]: row["corpus-ids"] for row in rows}


def _p_mrr(run: Run, changed_docs: Changed) -> dict[str, float]:
    """Query id of the changed instruction -> mean over its documents."""
    rows = {query: row for row, query in enumerate(run.query_ids)}
    found = {}
    for query, docs in changed_docs.items():
        if docs and query + ORIGINAL in rows and query + CHANGED in rows:
            before, after = (_ranks(run, rows[query + ending]) for ending in (ORIGINAL, CHANGED))
            moves = [_move(before.get(doc, len(before) + 1), after.get(doc, len(after) + 1)) for doc in docs]
            found[query + CHANGED] = float(np.mean(moves))
    return found


def _ranks(run: Run, row: int) -> dict[str, int]:
    docs = run.docs[row]
    return {run.doc_ids[doc]: rank for rank, doc in enumerate(docs[docs != NOTHING].tolist(), start=1)}


def _move(before: int, after: int) -> float:
    return after / before - 1.0 if before >= after else 1.0 - before / after


def _by_query(
    run: Run, qrels: Qrels, group: Callable[[str], str], metric: str, of: Callable[[list[float]], float]
) -> Groups:
    """``of`` of a ranking metric over the queries of each group."""
    judged = ir.judge(run, qrels)
    values = dict(zip(judged.query_ids, ranking.measure(judged, [metric])[metric].tolist(), strict=True))
    members = _members(values, group)
    return Groups(
        {queries[0]: of([values[query] for query in queries]) for queries in members.values()},
        {query: name for name, queries in members.items() for query in queries},
    )


def _merged(run: Run, qrels: Qrels, metric: str) -> Groups:
    """A ranking metric of the documents by their best score for any query of a group."""
    members = _members(qrels.judged, lambda query: query.rpartition("_")[0])
    rows = {query: row for row, query in enumerate(run.query_ids)}
    best: dict[str, dict[str, float]] = {}
    for name, queries in members.items():
        scores = best.setdefault(name, {})
        for query in queries:
            docs = run.docs[rows[query]]
            for doc, score in zip(docs[docs != NOTHING].tolist(), run.scores[rows[query]].tolist(), strict=False):
                scores[run.doc_ids[doc]] = max(score, scores.get(run.doc_ids[doc], -np.inf))
    same = Qrels({name: qrels.judgments[queries[-1]] for name, queries in members.items()})
    judged = ir.judge(Run.from_dict(best), same)
    values = dict(zip(judged.query_ids, ranking.measure(judged, [metric])[metric].tolist(), strict=True))
    return Groups(
        {queries[0]: values[name] for name, queries in members.items()},
        {query: name for name, queries in members.items() for query in queries},
    )


def _members(queries: Any, group: Callable[[str], str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for query in queries:
        found.setdefault(group(query), []).append(query)
    return found
