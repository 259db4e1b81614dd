"""What a result tells besides its metrics: shares of texts that were cut, dimensions, bytes per document.

They follow from the counts of a result and have no items, so they have no interval: a rule on one holds its plain
value against a threshold, or against the baseline's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from embeval.core.result import Result
from embeval.errors import EvidenceError
from embeval.metrics import cost, latency

QUERIES, DOCUMENTS, SENTENCES = "queries_encoded", "documents", "texts"
"""What texts are called in the counts of a result."""
TEXTS = (QUERIES, DOCUMENTS, SENTENCES)
MIB = 1 << 20
ONCE_PER_PROCESS = "peak_rss_mib"
"""The largest memory of a process, which can't be told apart where several systems share one."""

Counts = Mapping[str, int | None]


@dataclass(frozen=True)
class Fact:
    """One value by name."""

    name: str
    """As a rule writes it, like a metric."""
    higher_is_better: bool
    """Direction of improvement."""
    meaning: str
    """One line for listings."""
    read: Callable[[Result], float | None]
    """The value; None where the result doesn't tell."""


def value(result: Result, name: str) -> float | None:
    """The fact of that name; None where the result doesn't tell: a model that counts no tokens, a result without texts.

    Raises ``KeyError`` for a name that is not in ``NAMES``.
    """
    return NAMES[name].read(result)


def is_timing(metric: str) -> bool:
    """Whether a metric hangs on the machine and the moment: latencies, throughput, memory of the process."""
    return latency.FAMILY.make(metric) is not None or metric == ONCE_PER_PROCESS


def is_measured_once(metric: str) -> bool:
    """Whether a metric has one value per run and none per item, and so no interval: throughput, memory, index size."""
    return metric in cost.NAMES or (latency.FAMILY.make(metric) is not None and "latency_p" not in metric)


def refuse_unless_together(baseline: Result, candidate: Result, metric: str) -> None:
    """Raises ``EvidenceError`` for a time that was not measured in turns, both sides in one process.

    A machine is now fast and now slow, so two times that were taken one after the other differ by that too. Memory
    and cold times are never in turns: a process has one peak of memory, and is cold once.
    """
    if not is_timing(metric):
        return
    if metric == ONCE_PER_PROCESS or "cold_latency" in metric:
        what = "has one peak of memory" if metric == ONCE_PER_PROCESS else "is cold once"
        raise EvidenceError(
            f"{metric} can't be compared: a process {what}, so two systems can't be measured in turns.\n"
            "Give it a limit of its own (max), and evaluate the model in a run of its own."
        )
    one, other = (None if each.timings is None else each.timings.session for each in (baseline, candidate))
    if one is None or other is None:
        whose = baseline if one is None else candidate
        lacking = f"{whose.model.label} on {whose.task.name} was timed alone"
    elif one != other:
        lacking = f"{baseline.model.label} and {candidate.model.label} on {candidate.task.name} were timed apart"
    else:
        return
    raise EvidenceError(
        f"{metric}: {lacking}, and a machine is now fast and now slow.\nMeasure both in turns: "
        "embeval run -m BASELINE -m CANDIDATE -t TASK,latency=200 --interleave"
    )


def _sum(counts: Counts, names: list[str]) -> int | None:
    """The counts added up; None where one is missing or null."""
    found = [counts.get(name) for name in names]
    known = [each for each in found if each is not None]
    return sum(known) if found and len(known) == len(found) else None


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _there(counts: Counts, groups: tuple[str, ...]) -> list[str]:
    return [group for group in groups if group in counts]


def _of_texts(what: str, *groups: str) -> Callable[[Result], float | None]:
    """Texts with a property over all texts of the groups that the result has."""

    def read(result: Result) -> float | None:
        there = _there(result.counts, groups)
        return _share(_sum(result.counts, [f"{group}_{what}" for group in there]), _sum(result.counts, there))

    return read


def _tokens_lost(result: Result) -> float | None:
    there = _there(result.counts, TEXTS)
    lost, kept = (_sum(result.counts, [f"{group}_tokens_{what}" for group in there]) for what in ("lost", "kept"))
    return None if lost is None or kept is None else _share(lost, lost + kept)


def _tied(result: Result) -> float | None:
    tied = [name for name in result.counts if name.startswith("queries_tied_at_")]
    return _share(_sum(result.counts, tied), result.counts.get("queries_scored"))


def _count(name: str) -> Callable[[Result], float | None]:
    def read(result: Result) -> float | None:
        count = result.counts.get(name)
        return None if count is None else float(count)

    return read


def _index_bytes(result: Result) -> float | None:
    if result.signature.protocol.get("index", "exact") == "exact":
        return _count("vector_bytes")(result)  # exact search keeps the vectors and nothing else
    size, n = result.scores.get("index_mib"), result.counts.get("documents")
    return None if size is None or size.value is None or not n else size.value * MIB / n


NAMES: Mapping[str, Fact] = {
    fact.name: fact
    for fact in (
        Fact("truncated_share", False, "Texts that were cut, over all texts.", _of_texts("truncated", *TEXTS)),
        Fact("queries_truncated_share", False, "Queries that were cut.", _of_texts("truncated", QUERIES)),
        Fact("documents_truncated_share", False, "Documents that were cut.", _of_texts("truncated", DOCUMENTS)),
        Fact("tokens_lost_share", False, "Tokens cut off, over all tokens.", _tokens_lost),
        Fact("empty_share", False, "Texts that are empty, over all texts.", _of_texts("empty", *TEXTS)),
        Fact("tied_share", False, "Queries with a tie across the cut-off of the main score.", _tied),
        Fact("dimensions", False, "Dimensions of a vector; of a hybrid, all its encoders added.", _count("dimensions")),
        Fact("vector_bytes", False, "Bytes of a text's vector, as it is stored.", _count("vector_bytes")),
        Fact("index_bytes_per_document", False, "Bytes of the index, over the documents in it.", _index_bytes),
    )
}
"""Every fact by name. ``index_mib`` and ``usd_per_million_queries`` are metrics already, where latency was measured."""
