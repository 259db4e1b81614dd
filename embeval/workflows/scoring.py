"""Scores a ranking from a TREC file, with no model: against judgments alone, or against a golden set.

With a golden set the result is what a run of the same ranking would give: same numbers, same protocol, same place
among the results. From judgments alone nothing is known of the corpus, so counts of it are null.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from embeval.core import provenance, strict_json
from embeval.core.ir import NOTHING, Run, SelfMatch
from embeval.core.paths import expanded
from embeval.core.result import Result, Timings
from embeval.core.specs import ModelSpec, StatisticsOptions
from embeval.core.words import are, plural
from embeval.data import files, trec
from embeval.data.beir import RetrievalData
from embeval.encoders import locate
from embeval.errors import ConfigError, DataError
from embeval.metrics import ranking
from embeval.runner import assemble
from embeval.runner.local import portable
from embeval.store.results import ResultStore, Stored
from embeval.tasks.retrieval import RetrievalTask, rank_and_measure
from embeval.workflows import requests

BACKEND = "ranking"
"""The backend that ranks as a file says: a scored file and a run of that backend are the same system."""
OF_THE_CORPUS = ("documents_same_text", "queries_unanswerable", "unreachable_relevant")
"""Counts that judgments alone don't tell."""


@dataclass(frozen=True, kw_only=True)
class ScoreRequest:
    """What to score, against what, and how."""

    run: Path
    """TREC file of the ranking."""
    qrels: str | None = None
    """File of judgments; this or ``data``."""
    data: str | None = None
    """BEIR folder of a golden set; this or ``qrels``."""
    split: str | None = None
    """Split of the golden set; null: test."""
    metrics: tuple[str, ...] = ()
    """Metrics that are wanted, the main one first; empty: all."""
    options: Mapping[str, strict_json.Json] = field(default_factory=dict)
    """Options of a retrieval task that differ from their defaults."""
    name: str | None = None
    """What the system is called; null: as the file."""
    task: str | None = None
    """What the task is called; null: as the data."""
    statistics: StatisticsOptions = field(default_factory=StatisticsOptions)


class Scored(NamedTuple):
    """A scored ranking."""

    result: Result
    """The whole of it, every metric included."""
    metrics: tuple[str, ...]
    """The metrics that are wanted, in order."""
    stored: Stored | None
    """Where it was stored, if so."""


def score(request: ScoreRequest, store: ResultStore | None = None) -> Scored:
    """The numbers of a ranking; stored where there is a store.

    Raises ``ConfigError`` for options that don't fit and ``DataError`` for files that can't be read or have nothing
    to do with each other.
    """
    if store is not None:
        store.refuse_unwritable()
    parts = measured(request)
    stored = None
    if store is not None:
        stored = [store.put(part.result, part.records, part.run) for part in parts][-1]
    result = parts[-1].result if stored is None else stored.result
    main = result.main_score or ""
    everything = (main, *(name for name in result.scores if name != main))
    return Scored(result, request.metrics or everything, stored)


def measured(request: ScoreRequest) -> list[assemble.Part]:
    """The results of a ranking with what they are made from, the one for the whole split last; nothing is stored.

    Raises as ``score`` does.
    """
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    began, cpu_began = time.perf_counter(), time.process_time()
    task = _task(request)
    payload = task.load() if request.qrels is None else _from_qrels(task.path)
    file = expanded(str(request.run))
    read = trec.read_run_file(file, task.options.ties)
    _refuse_strangers(read.run, payload, file, corpus_known=request.qrels is None)
    loaded = time.perf_counter()

    metrics = task.metrics(payload)
    if request.qrels is not None:  # the others need texts
        metrics = tuple(metric for metric in metrics if ranking.FAMILY.make(metric.name) is not None)
    run, outside = _within_corpus(read.run, payload) if request.qrels is None else (read.run, None)
    run = _as_searched(run, payload, task)
    known = payload if request.qrels is None else _with_documents(payload, run)
    measured = rank_and_measure(run, known, [metric.name for metric in metrics], task.options)
    unknown = dict.fromkeys(OF_THE_CORPUS) if request.qrels is not None else {}
    evidence = assemble.Evidence(
        model=_system(file, request.name),
        task=portable(task.spec),
        protocol=task.protocol(payload),
        metrics=metrics,
        records=measured.records,
        provenance=provenance.collect(),
        run=run,
        counts={**measured.counts, **unknown, "hits_not_in_corpus": outside},
        warnings=(*measured.warnings, *_warnings(run, outside), *read.remarks),
        labels=task.labels(payload),
    )
    done = time.perf_counter()
    timings = Timings(
        started_at=started_at,
        wall_s=round(done - began, 3),
        cpu_s=round(time.process_time() - cpu_began, 3),
        peak_rss_mib=provenance.peak_rss_mib(),
        phases={"load_data": round(loaded - began, 3), "measure": round(done - loaded, 3)},
    )
    return assemble.results(evidence, request.statistics, timings)


def _task(request: ScoreRequest) -> RetrievalTask:
    """The retrieval task that the request describes, with the cut-offs of the metrics that are wanted."""
    if (request.qrels is None) == (request.data is None):
        raise ConfigError("Say what to score against: judgments (--qrels FILE) or a golden set (--data FOLDER).")
    if request.qrels is not None and request.split is not None:
        raise ConfigError("A file of judgments has no splits: --split goes with --data.")
    options = dict(request.options)
    for name in request.metrics:
        if ranking.FAMILY.make(name) is None:
            raise ConfigError(f"{name!r} is not a ranking metric. Known: {', '.join(ranking.MEASURES)}, each _at_k.")
    if request.metrics and "cutoffs" not in options:
        options["cutoffs"] = sorted({ranking.cutoff(name) for name in request.metrics})
    entry: dict[str, strict_json.Json] = {"type": "retrieval", "data": request.data or request.qrels, **options}
    if request.qrels is not None:
        entry["name"], entry["split"] = _named_by(Path(request.qrels))
    if request.split is not None:
        entry["split"] = request.split
    if request.task is not None:
        entry["name"] = request.task
    if request.metrics:
        entry["main_score"] = request.metrics[0]
    task = requests.task_from(entry, root=Path(), data=None)
    assert isinstance(task, RetrievalTask)
    deep = [name for name in request.metrics if ranking.cutoff(name) > task.options.depth]
    if deep:
        raise ConfigError(f"depth {task.options.depth} is less than the cut-off of {deep[0]!r}.")
    if missing := [name for name in request.metrics if ranking.cutoff(name) not in task.options.cutoffs]:
        raise ConfigError(f"{missing[0]!r} needs its cut-off among --cutoffs.")
    return task


def _named_by(qrels: Path) -> tuple[str, str]:
    """Name of the task and split that a file of judgments stands for: of ``golden/qrels/dev.tsv`` golden and dev."""
    stem = qrels.name.partition(".")[0] or qrels.name
    if not files.names_split(qrels):
        return stem, "test"
    folder = expanded(str(qrels)).resolve().parent
    return (folder.parent if folder.name == "qrels" else folder).name, stem


def _from_qrels(path: Path) -> RetrievalData:
    """What judgments alone tell: which queries there are."""
    qrels = trec.read_qrels(path)
    return RetrievalData(doc_ids=(), doc_texts=(), queries=dict.fromkeys(qrels.judgments, ""), qrels=qrels)


def _with_documents(payload: RetrievalData, run: Run) -> RetrievalData:
    """With every document that judgments or ranking name, so that query ids which are document ids are noticed."""
    judged = (doc for grades in payload.qrels.judgments.values() for doc in grades)
    docs = tuple(dict.fromkeys((*run.doc_ids, *judged)))
    return replace(payload, doc_ids=docs, doc_texts=("",) * len(docs))


def _as_searched(run: Run, payload: RetrievalData, task: RetrievalTask) -> Run:
    """The ranking without what a search would not have given: excluded documents, self-matches, ranks too deep."""
    run = run.without(payload.excluded)
    if task.options.self_match == SelfMatch.DROP:
        run = run.without_self_matches()
    depth = task.options.depth
    return replace(run, docs=run.docs[:, :depth], scores=run.scores[:, :depth])


def _within_corpus(run: Run, payload: RetrievalData) -> tuple[Run, int]:
    """The ranking without documents that the corpus doesn't have, and how many hits these were.

    No search of the corpus can give them, and the backend that ranks by a file leaves them out as well.
    """
    inside = np.array([doc in payload.doc_id_set for doc in run.doc_ids], dtype=np.bool_)
    if inside.all():
        return run, 0
    there = run.docs != NOTHING
    rows, places = np.nonzero(there & inside[run.docs])
    kept = Run.from_hits(
        query_ids=run.query_ids,
        doc_ids=run.doc_ids,
        rows=rows,
        docs=run.docs[rows, places],
        scores=run.scores[rows, places],
        ties=run.ties,
    )
    return replace(kept, n_duplicates=run.n_duplicates), int(there.sum()) - len(rows)


def _warnings(run: Run, outside: int | None) -> list[str]:
    found = []
    if outside:
        found.append(f"{plural(outside, 'hit')} of the run {are(outside)} not in the corpus and left out.")
    if n := run.n_duplicates:
        found.append(f"{plural(n, 'hit')} left out: the same document stands higher for the same query.")
    return found


def _refuse_strangers(run: Run, payload: RetrievalData, file: Path, *, corpus_known: bool) -> None:
    """Raises ``DataError`` where no id of the run is known: every number would be 0, and mean nothing."""
    judged = payload.qrels.judged
    if not judged:
        raise DataError("There is no judgment to score against.")
    if not set(run.query_ids) & set(judged):
        raise DataError(
            f"{file}: none of its {plural(len(run.query_ids), 'query', 'queries')} is judged: "
            f"{run.query_ids[0]!r} here, {judged[0]!r} in the judgments."
        )
    if corpus_known and payload.doc_id_set.isdisjoint(run.doc_ids):
        raise DataError(
            f"{file}: none of its {plural(len(run.doc_ids), 'document')} is in the corpus: "
            f"{run.doc_ids[0]!r} here, {payload.doc_ids[0]!r} in the corpus."
        )


def _system(file: Path, name: str | None) -> ModelSpec:
    """The spec that the backend gives the same file, but for a name that was asked for."""
    revision = locate.files_revision({"run": file})
    return ModelSpec(backend=BACKEND, name=name or locate.short_name(file.resolve()), revision=revision)
