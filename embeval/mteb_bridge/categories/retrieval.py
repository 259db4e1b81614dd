"""Retrieval, reranking and their kinds with instructions: one item is a judged query, as for the type ``retrieval``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embeval.core import ir
from embeval.core.ir import NOTHING, Run, SelfMatch
from embeval.core.records import Column, ItemRecords
from embeval.core.result import MOST_CANDIDATES
from embeval.core.words import plural
from embeval.errors import EvaluationError
from embeval.metrics import get as get_metric
from embeval.metrics import mteb_ranking, query_groups, ranking
from embeval.metrics import rerank as rerank_metrics
from embeval.mteb_bridge import door, retrieval_data
from embeval.mteb_bridge.categories import _query_groups
from embeval.mteb_bridge.categories._category import PARITY_PREFIX, SEARCHED, Gathered, Outcome, Setting
from embeval.mteb_bridge.search import BridgedSearch
from embeval.tasks._ranked import Measured, rank_and_measure
from embeval.tasks._retrieval_options import RetrievalOptions

USUAL = "ndcg_at_10"
"""Whose ties are counted where the main score has no cut-off of its own."""


class _Retrieval:
    task_class = SEARCHED
    one_thread = False
    together = False

    def content(self, setting: Setting, subset: str) -> Iterator[Sequence[str]]:
        rows, task = retrieval_data.rows_of(setting, subset), setting.task
        yield ["retrieval", str(task._top_k), str(task.ignore_identical_ids), str(task.skip_first_result)]
        corpus, queries = retrieval_data.documents(rows["corpus"]), retrieval_data.queries(rows["queries"])
        qrels, candidates = retrieval_data.judgments(rows), retrieval_data.candidates(rows)
        for doc, text in sorted(zip(corpus.ids, corpus.texts, strict=True)):
            yield ["document", doc, text]
        for query, text in sorted(zip(queries.ids, queries.texts, strict=True)):
            if query not in qrels.judgments:  # mteb leaves it out
                continue
            yield ["query", query, text]
            for doc, grade in sorted(qrels.judgments[query].items()):
                yield ["judgment", query, doc, str(grade)]
            if candidates is not None:
                yield ["candidates", query, *sorted(candidates.get(query, ()))]
        if task.metadata.main_score == query_groups.P_MRR:
            for query, docs in sorted(_query_groups.changed(setting, subset).items()):
                yield ["changed", query, *sorted(docs)]

    def metrics(self, setting: Setting) -> Sequence[str]:
        main, names = setting.task.metadata.main_score, _names(setting)
        try:
            get_metric(main)
        except Exception as error:
            raise EvaluationError(f"mteb:{setting.task.metadata.name}: {error}") from None
        names = (*names, *mteb_ranking.capped_names(_capped(setting)))
        if setting.parity == "embeval":
            return tuple(dict.fromkeys([main, *names]))
        parity = _parity_names(setting)
        return tuple(dict.fromkeys([parity.get(main, main), main, *names, *parity.values()]))

    def gather(self, setting: Setting, outcomes: Mapping[str, Outcome], model: Any) -> Gathered:
        parts = [_part(setting, subset, outcomes[subset], model) for subset in setting.subsets]
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
        parity = _parity_names(setting)
        differing = [ours for ours, theirs in parity.items() if _differ(columns[ours], columns[theirs])]
        sizes = {subset: len(part.ids) for subset, part in zip(setting.subsets, parts, strict=True)}
        records = ItemRecords(
            unit="query",
            ids=tuple(name for part in parts for name in part.ids),
            columns=columns,
            slices={
                **{name: tuple(x for part in parts for x in part.slices[name]) for name in parts[0].slices},
                **setting.labels(sizes),
            },
            clusters=None if parts[0].clusters is None else tuple(x for part in parts for x in part.clusters or ()),
        )
        return Gathered(
            records=records,
            run=_joined([part.run for part in parts], setting),
            counts={
                **_added([part.measured.counts for part in parts]),
                MOST_CANDIDATES: max(part.most_candidates for part in parts),
            },
            warnings=(*_sentences(setting, parts), *_of_parity(setting, columns, differing)),
            also=tuple(parity.values()) if differing else (),
        )


@dataclass(frozen=True)
class _Part:
    """A sub-set with its numbers."""

    ids: tuple[str, ...]
    columns: Mapping[str, Column]
    slices: Mapping[str, tuple[str, ...]]
    measured: Measured
    run: Run
    clusters: tuple[str, ...] | None
    most_candidates: int
    """Documents that the query with most of them could find."""


def _names(setting: Setting) -> tuple[str, ...]:
    """The ranking metrics at mteb's cut-offs, that of the main score first."""
    task = setting.task
    main = mteb_ranking.known_as(task.metadata.main_score)
    names = ranking.names(sorted(k for k in task.k_values if k <= task._top_k))
    return tuple(dict.fromkeys([main or USUAL, *names]))


def staged_names(setting: Setting, depth: int) -> tuple[str, ...]:
    """The metrics of a second stage that scored ``depth`` candidates, at the cut-off of the main score."""
    main = _names(setting)[0]
    kinds = [kind for kind in ranking.MEASURES if kind != "judged"]
    base = dict.fromkeys([main, *(f"{kind}_at_{ranking.cutoff(main)}" for kind in kinds)])
    return rerank_metrics.names(base, depth=depth)


def _capped(setting: Setting) -> list[int]:
    """Cut-offs of the capped recall, for the tasks of mteb that report it."""
    reports = hasattr(sys.modules.get(type(setting.task).__module__), "recall_cap")
    return sorted(setting.task.k_values) if reports else []


def _scored(task: Any, run: Run) -> Run:
    """The hits that mteb scores."""
    if task.ignore_identical_ids:
        run = run.without_self_matches()
    if task.skip_first_result:
        run = replace(run, docs=run.docs[:, 1:], scores=run.scores[:, 1:])
    return run


def _parity_names(setting: Setting) -> dict[str, str]:
    """Ours -> mteb's, of the metrics that mteb averages otherwise."""
    main = setting.task.metadata.main_score
    own = [main] if mteb_ranking.known_as(main) else []
    names = [*own, *(name for name in _names(setting) if not name.startswith("judged_"))]
    return {name: PARITY_PREFIX + name for name in dict.fromkeys(names)}


def _part(setting: Setting, subset: str, outcome: Outcome, model: BridgedSearch) -> _Part:
    task, data = setting.task, retrieval_data.read(setting, subset)
    run = _scored(task, model.runs[subset])
    grouped = _query_groups.groups(setting, subset, run, data.qrels)
    main = task.metadata.main_score
    extra = {} if grouped is None else {main: grouped.values}
    options = RetrievalOptions(depth=task._top_k, self_match=SelfMatch.KEEP)
    measured = rank_and_measure(run, data, _names(setting), options, extra)
    queries = measured.records.ids
    columns = {**measured.records.columns, **mteb_ranking.capped_recall(measured.judged, _capped(setting))}
    if (own := mteb_ranking.known_as(main)) is not None:
        columns[main] = columns[own]
    elif main == "accuracy":  # mteb's name, where one of several answers is to be chosen
        columns[main] = ranking.measure(measured.judged, ["recall_at_1"])["recall_at_1"]
    answered = np.array([query in outcome.predictions for query in queries], dtype=np.bool_)
    for ours, theirs in _parity_names(setting).items():
        columns[theirs] = np.where(answered, columns[ours], np.nan)
    if model.second is not None:
        before = ir.judge(_scored(task, model.before[subset]), data.qrels)
        depth = model.second.depth
        columns |= rerank_metrics.columns(before, measured.judged, staged_names(setting, depth), depth=depth)
    several = len(setting.subsets) > 1
    clusters = None
    if grouped is not None:
        clusters = tuple(f"{subset}/{grouped.group_of[q]}" if several else grouped.group_of[q] for q in queries)
    return _Part(
        ids=tuple(setting.name(subset, query) for query in queries),
        columns=columns,
        slices={**measured.records.slices, **_query_groups.labels(setting, queries)},
        measured=measured,
        run=run,
        clusters=clusters,
        most_candidates=_most_candidates(setting, subset, len(data.doc_ids)),
    )


def _most_candidates(setting: Setting, subset: str, n_documents: int) -> int:
    task, given = setting.task, retrieval_data.candidates(retrieval_data.rows_of(setting, subset))
    most = n_documents if given is None else max(len(set(docs)) for docs in given.values())
    # Of these mteb doesn't score the query itself, or the first hit.
    return most - 1 if task.ignore_identical_ids or task.skip_first_result else most


def _differ(ours: Column, theirs: Column) -> bool:
    there = ~np.isnan(theirs)
    return bool(there.any()) and abs(float(ours.mean()) - float(theirs[there].mean())) > 1e-9


def _of_parity(setting: Setting, columns: Mapping[str, Column], differing: Sequence[str]) -> list[str]:
    if not differing:
        return []
    main = setting.task.metadata.main_score
    name = main if main in differing else differing[0]
    theirs = columns[PARITY_PREFIX + name]
    left_out = int(np.isnan(theirs).sum())
    queries, count = plural(left_out, "query", "queries"), "counts" if left_out == 1 else "count"
    value = f"mteb {door.installed_version()} gives {name} {np.nanmean(theirs):.4f} here"
    return [f"{value}: it leaves out {queries} without a ranking, which {count} 0 in ours."]


def _sentences(setting: Setting, parts: Sequence[_Part]) -> list[str]:
    several = len(setting.subsets) > 1
    return [
        f"{subset}: {sentence}" if several else sentence
        for subset, part in zip(setting.subsets, parts, strict=True)
        for sentence in part.measured.warnings
    ]


def _added(counts: Sequence[Mapping[str, int | None]]) -> dict[str, int | None]:
    return {name: sum(each[name] or 0 for each in counts) for name in counts[0]}


def _joined(runs: Sequence[Run], setting: Setting) -> Run:
    """One ranking of the queries of all sub-sets, each with the documents of its own."""
    if len(runs) == 1:
        return runs[0]
    width = max(run.docs.shape[1] for run in runs)
    docs, scores, offset = [], [], 0
    for run in runs:
        pad = ((0, 0), (0, width - run.docs.shape[1]))
        moved = np.where(run.docs == NOTHING, NOTHING, run.docs + offset).astype(np.int32)
        docs.append(np.pad(moved, pad, constant_values=NOTHING))
        scores.append(np.pad(run.scores, pad, constant_values=-np.inf))
        offset += len(run.doc_ids)
    named = list(zip(setting.subsets, runs, strict=True))
    return Run(
        query_ids=tuple(setting.name(subset, query) for subset, run in named for query in run.query_ids),
        doc_ids=tuple(setting.name(subset, doc) for subset, run in named for doc in run.doc_ids),
        docs=np.concatenate(docs),
        scores=np.concatenate(scores),
        ties=runs[0].ties,
        n_duplicates=sum(run.n_duplicates for run in runs),
    )


CATEGORY = _Retrieval()
