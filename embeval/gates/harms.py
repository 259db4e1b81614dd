"""Evidence spoiled in known ways, as somebody or something might: what a gate must take for broken."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np

from embeval import metrics
from embeval.compare import evidence as proof
from embeval.compare.evidence import Evidence
from embeval.core.protocols import Undefined
from embeval.core.records import ItemRecords
from embeval.core.result import MetricValue
from embeval.core.words import plural

SHARE = 10
"""One item of so many is left out or loses its value."""
Spoil = Callable[[Evidence], Evidence | None]
"""From the candidate's evidence to what a gate would get in its place; None: nothing."""


def broken(
    where: str, watched: Sequence[str], candidate: Evidence, baseline: Evidence | None
) -> Iterator[tuple[str, Spoil]]:
    """(in words, what does it) of everything that breaks evidence on one place; some of it only beside a baseline."""
    n = max(1, len(candidate.records) // SHARE)
    items = plural(n, "item")
    yield f"no result of {where}", _gone
    for name in dict.fromkeys(watched):
        if name not in candidate.result.scores:
            continue
        yield f"score of {name} of {where} edited by hand", partial(_edited, metric=name, by=0.01)
        yield f"score of {name} of {where} is NaN", partial(_edited, metric=name, by=float("nan"))
        if not getattr(metrics.get(name), "of_some_items", False):
            yield f"{items} of {where} without a value of {name}", partial(_holes, metric=name, n=n)
        yield f"an infinite value of {name} of {where}", partial(_infinite, metric=name)
    if candidate.result.timings is not None:
        yield f"result of {where} from the future", _from_the_future
    if candidate.hits:
        yield f"ranking of {where} lacks {plural(n, 'query', 'queries')}", partial(_cut, n=n)
    if baseline is not None:
        yield f"{items} of {where} left out", partial(_fewer, n=n)
        yield f"other data behind the result of {where}", _other_data
        yield f"the baseline's own result as candidate of {where}", partial(_taken, other=baseline)


def rescored(shell: Evidence, records: ItemRecords, purpose: str) -> Evidence:
    """A result with these items and the scores that they give. Raises ``EvidenceError``."""
    scores = {}
    for name, found in proof.recomputed(shell.result, records, shell.source).items():
        value, reason = (None, found.value.reason) if isinstance(found.value, Undefined) else (found.value, None)
        scores[name] = MetricValue(value=value, reason=reason, n_items=found.n_items, n_unscored=found.n_unscored)
    result = replace(shell.result, scores=scores)
    return replace(shell, result=result, records=records, digest=_name(shell, purpose))


def _gone(_: Evidence) -> None:
    return None


def _taken(_: Evidence, *, other: Evidence) -> Evidence:
    return other


def _edited(evidence: Evidence, *, metric: str, by: float) -> Evidence:
    old = evidence.result.scores[metric]
    scores = {**evidence.result.scores, metric: replace(old, value=(old.value or 0.0) + by)}
    return replace(evidence, result=replace(evidence.result, scores=scores), digest=_name(evidence, "edited"))


def _holes(evidence: Evidence, *, metric: str, n: int) -> Evidence:
    return _with_values(evidence, metric, n, float("nan"))


def _infinite(evidence: Evidence, *, metric: str) -> Evidence:
    return _with_values(evidence, metric, 1, float("inf"), recompute=False)


def _with_values(evidence: Evidence, metric: str, n: int, value: float, *, recompute: bool = True) -> Evidence:
    name = metrics.get(metric).columns[-1]
    column = evidence.records.columns[name].copy()
    column[np.flatnonzero(np.isfinite(column))[:n]] = value
    records = replace(evidence.records, columns={**evidence.records.columns, name: column})
    if not recompute:
        return replace(evidence, records=records, digest=_name(evidence, "infinite"))
    return rescored(evidence, records, "holes")


def _from_the_future(evidence: Evidence) -> Evidence:
    at = datetime.now(UTC) + timedelta(days=365)
    timings = evidence.result.timings
    assert timings is not None
    result = replace(evidence.result, timings=replace(timings, started_at=at.isoformat()))
    return replace(evidence, result=result, digest=_name(evidence, "later"))


def _cut(evidence: Evidence, *, n: int) -> Evidence:
    lacking = set(list(evidence.hits or {})[:n])
    hits = {query: found for query, found in (evidence.hits or {}).items() if query not in lacking}
    return replace(evidence, hits=hits, digest=_name(evidence, "cut"))


def _fewer(evidence: Evidence, *, n: int) -> Evidence:
    return rescored(evidence, evidence.records.take(range(n, len(evidence.records))), "fewer")


def _other_data(evidence: Evidence) -> Evidence:
    signature = evidence.result.signature
    protocol = {**signature.protocol, "data": hashlib.sha256(b"other").hexdigest()}
    result = replace(evidence.result, signature=replace(signature, protocol=protocol))
    return replace(evidence, result=result, digest=_name(evidence, "data"))


def _name(evidence: Evidence, purpose: str) -> str:
    """A digest of its own: a spoiled result is another one."""
    return hashlib.sha256(f"{evidence.digest} {purpose}".encode()).hexdigest()
